/* SPDX-License-Identifier: MIT */
/* What a gate found, judged and written down. */
#ifndef ASSAY_CMD_GATE_H
#define ASSAY_CMD_GATE_H

#include "analysis/judge.h"
#include "base/strings.h"

/* One metric in one cell. */
struct gate_row {
    char *metric, *unit, *cell;
    struct comparison change, control;
    double base_median, new_median;
    enum gate_result result;
    bool control_failed;
};

struct gate_result_set {
    double max_regression;
    const char *base_commit;
    struct gate_row *rows;
    size_t count, capacity;
    enum gate_result result; /* the worst of all */
    bool control_failed;
};

/* d has a factor "side" with base, control and new.  Headline metrics of which one way is better.
 */
int gate_judge(struct gate_result_set *set, const struct dataset *d, struct error *err);
/* A change with its interval: "+1.20 % [+0.80, +1.60]". */
void gate_put_interval(struct strbuf *out, const struct comparison *c, const char *unit);
void gate_write_markdown(struct strbuf *out, const struct gate_result_set *set);
void gate_write_junit(struct strbuf *out, const struct gate_result_set *set);
void gate_write_json(struct strbuf *out, const struct gate_result_set *set);
void gate_result_set_done(struct gate_result_set *set);

#endif
