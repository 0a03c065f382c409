/* SPDX-License-Identifier: MIT */
/* `assay compare --mail`. */
#ifndef ASSAY_CMD_COMPARE_MAIL_H
#define ASSAY_CMD_COMPARE_MAIL_H

#include "base/error.h"
#include "report/text/compare.h"

struct compare_mail {
    const struct compare_view *view;
    const char *base, *new; /* as the user named them */
    const char *db, *in;    /* as the options of compare */
    const char *spec;       /* of the experiment; NULL when it is not known */
};

int compare_mail_write(const struct compare_mail *m, const char *place, struct error *err);

#endif
