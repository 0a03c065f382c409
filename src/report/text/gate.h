/* SPDX-License-Identifier: MIT */
/* What a gate found, as Markdown for people, JSON and JUnit's XML for programs. */
#ifndef ASSAY_REPORT_TEXT_GATE_H
#define ASSAY_REPORT_TEXT_GATE_H

#include "base/strings.h"
#include "bisect/gate.h"

/* A change with its interval: "+1.20 % [+0.80, +1.60]". */
void gate_put_interval(struct strbuf *out, const struct comparison *c, const char *unit);
void gate_write_markdown(struct strbuf *out, const struct gate_result_set *set);
void gate_write_junit(struct strbuf *out, const struct gate_result_set *set);
void gate_write_json(struct strbuf *out, const struct gate_result_set *set);

#endif
