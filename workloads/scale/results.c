/* SPDX-License-Identifier: MIT */
/* What was measured so far, and how it compares with linear scaling. */
#include "report.h"

#include <math.h>
#include <stdlib.h>

#define BEYOND_LINEAR 0.05 /* what a run differs from the next by */

void results_done(struct results *r)
{
    for (size_t i = 0; i < r->count; i++)
        measure_result_done(&r->items[i]);
    for (size_t i = 0; i < r->failure_count; i++)
        free(r->failures[i].reason);
    free(r->items);
    free(r->failures);
}

/* The measurement of the smallest number of tasks. */
static const struct measure_result *base_of(const struct results *r,
                                            const struct measure_result *one)
{
    const struct measure_result *base = NULL;
    for (size_t i = 0; i < r->count; i++) {
        const struct measure_result *m = &r->items[i];
        if (m->test == one->test && m->threads == one->threads &&
            (!base || m->task_count < base->task_count))
            base = m;
    }
    return base;
}

double results_linear(const struct results *r, const struct measure_result *one,
                      double *ret_linear_ops_per_second)
{
    const struct measure_result *base = base_of(r, one);
    *ret_linear_ops_per_second = base ? base->ops_per_second_per_task * one->task_count : NAN;
    return one->ops_per_second / *ret_linear_ops_per_second;
}

bool results_explain_linear(const struct results *r, const struct measure_result *one,
                            struct strbuf *out)
{
    double linear, share = results_linear(r, one, &linear);
    const struct measure_result *base = base_of(r, one);
    if (!(share > 1 + BEYOND_LINEAR) || base == one)
        return false;
    strbuf_printf(out, "%.1f %% of linear: ", 100 * share);
    const char *tasks = base->task_count == 1 ? "one task" : "the fewest tasks";
    if (base->cpu_share < one->cpu_share - BEYOND_LINEAR)
        strbuf_printf(
            out,
            "the reference run with %s got %.0f %% of its CPU time, this one %.0f %%; something "
            "else was running, so repeat the measurement",
            tasks, 100 * base->cpu_share, 100 * one->cpu_share);
    else if (base->idle_share > one->idle_share + BEYOND_LINEAR)
        strbuf_printf(out,
                      "with %s the CPUs idled for %.0f %% of the time, here for %.0f %%: waiting "
                      "costs less if others run in the meantime",
                      tasks, 100 * base->idle_share, 100 * one->idle_share);
    else
        strbuf_printf(
            out,
            "with %s each operation took longer for no visible reason (perhaps the host's "
            "clock rate or its other guests); repeat the measurement before you trust it",
            tasks);
    return true;
}
