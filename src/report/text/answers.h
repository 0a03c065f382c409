/* SPDX-License-Identifier: MIT */
/* Answers as sentences, and as JSON with their numbers. */
#ifndef ASSAY_REPORT_TEXT_ANSWERS_H
#define ASSAY_REPORT_TEXT_ANSWERS_H

#include "analysis/answers.h"
#include "base/strings.h"

void report_answers_text(struct strbuf *out, const struct answers *a, bool all, bool colour);
void report_answers_json(struct strbuf *out, const struct answers *a);

#endif
