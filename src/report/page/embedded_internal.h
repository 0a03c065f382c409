/* SPDX-License-Identifier: MIT */
/* What the readers of a page's data share. */
#ifndef ASSAY_REPORT_PAGE_EMBEDDED_INTERNAL_H
#define ASSAY_REPORT_PAGE_EMBEDDED_INTERNAL_H

#include "config.h"
#include "report/page/embedded.h"

/* Behind what is wrong with a page. */
#define EMBEDDED_REMEDY "; copy the file again, or recreate the report with 'assay html'"

#if HAVE_JANSSON
#include <jansson.h>

/* Texts are copies; "" or NULL where there is none. */
char *embedded_text(const json_t *object, const char *key);
char *embedded_text_or_null(const json_t *object, const char *key);
uint64_t embedded_number(const json_t *object, const char *key);
int embedded_damaged(struct error *err, const char *what);

/* All but the experiments: profiles, explanations, monitors, histories. */
int embedded_read_parts(struct embedded *e, const json_t *root, struct error *err);
#endif

#endif
