/* SPDX-License-Identifier: MIT */
/* A message with attachments, as RFC 5322 and RFC 2045 to 2049 have it. */
#ifndef ASSAY_REPORT_MAIL_MAIL_H
#define ASSAY_REPORT_MAIL_MAIL_H

#include "base/strings.h"

#include <time.h>

struct mail_part {
    const char *name; /* of the attached file; NULL for what is read at once */
    const char *text; /* in UTF-8, with line feeds */
};

struct mail {
    const char *from, *subject;
    time_t date;
    const struct mail_part *parts;
    size_t part_count;
};

void report_mail(struct strbuf *out, const struct mail *m);

#endif
