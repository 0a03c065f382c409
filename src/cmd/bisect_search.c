/* SPDX-License-Identifier: MIT */
/* See bisect_search.h. */
#include "cmd/bisect_search.h"
#include "base/memory.h"
#include "base/process.h"
#include "cmd/bench_command.h"
#include "report/text/explain.h"

#include <errno.h>
#include <math.h>

enum { REASONS_MOST = 8 };

/* The reasons in lines; what cannot be told is a line, too. */
static void put_reasons(struct strbuf *out, const struct explain *e, bool is_bench, int code,
                        const struct error *err)
{
    if (code < 0) {
        strbuf_printf(out, "not known: %s", err->message);
        return;
    }
    if (!e->profiled) {
        strbuf_puts(out, is_bench
                             ? "not known: when the benchmark ran again for its functions, its "
                               "time could not be told from that before the commit"
                             : "the time of the runs did not change, so no function accounts "
                               "for it");
        return;
    }
    size_t told = 0;
    double rest = 0;
    for (size_t i = 0; i < e->reason_count; i++) {
        const struct attributed *cost = &e->reasons[i].cost;
        if (told == REASONS_MOST || cost->below_resolution ||
            (isfinite(cost->half_width) && !cost->significant)) {
            rest += cost->change;
            continue;
        }
        told++;
        report_reason_line(out, e, &e->reasons[i]);
        strbuf_putc(out, '\n');
    }
    report_reasons_others(out, e, e->reason_count - told, rest);
}

/* Profiles what was found and keeps the reasons.  Only a signal and the journal are failures. */
static int explain_changes(struct bisect *b, struct error *err)
{
    int r = 0;
    for (size_t i = 0; b->settings.explain && i < b->search.found_count && r == 0; i++) {
        const struct bisection_change *change = &b->search.found[i];
        CLEANUP(strbuf_done) struct strbuf text = {0};
        CLEANUP(explain_done) struct explain e = {0};
        if (b->commits[change->hi].reasons)
            continue;
        r = bisect_explain(b, change, bench_command_texts, &e, err);
        if (r == -EINTR || process_signals_caught())
            return error_set(err, -EINTR, "stopped");
        put_reasons(&text, &e, *b->settings.bench, r, err);
        r = bisect_set_reasons(b, change->hi, strbuf_text(&text), err);
    }
    return r;
}

int bisect_search(struct bisect *b, struct error *err)
{
    int r = bisect_run(b, err);
    if (r == 0)
        r = explain_changes(b, err);
    if (r == 0)
        bisect_finish(b);
    return r;
}
