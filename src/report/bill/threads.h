/* SPDX-License-Identifier: MIT */
/* What the scheduler and locks did to the threads of a command. */
#ifndef ASSAY_REPORT_BILL_THREADS_H
#define ASSAY_REPORT_BILL_THREADS_H

#include "base/json.h"
#include "bill/contention.h"
#include "bill/schedule.h"

void report_schedule_text(struct strbuf *out, const struct schedule *s, const struct timeline *t,
                          bool all);
void report_schedule_json(struct json *j, const struct schedule *s, const struct timeline *t);
void report_contention_text(struct strbuf *out, const struct contention *c, bool all);
void report_contention_json(struct json *j, const struct contention *c);

#endif
