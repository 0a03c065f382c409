/* SPDX-License-Identifier: MIT */
/* See losses.h. */
#include "analysis/losses.h"

#include <string.h>
#include <sys/wait.h>

bool losses_is_lost(const struct dataset_cell *cell)
{
    return cell->run_count && cell->failed_count == cell->run_count && !cell->ignored_count;
}

const char *losses_state(const struct store_experiment *e)
{
    return str_eq(e->state, "running") && !e->alive ? "killed" : e->state;
}

void losses_put_failed(struct strbuf *out, const struct dataset *d)
{
    size_t runs = 0, failed = 0, ignored = 0, cells = 0, lost = 0;
    for (size_t c = 0; c < d->cell_count; c++) {
        runs += d->cells[c].run_count;
        failed += d->cells[c].failed_count;
        ignored += d->cells[c].ignored_count;
        cells += d->cells[c].failed_count > 0;
        lost += losses_is_lost(&d->cells[c]);
    }
    if (!failed)
        return;
    if (failed == runs && !ignored) {
        if (runs == 1)
            strbuf_puts(out, "The only run failed");
        else
            strbuf_printf(out, "All %zu %s failed", runs, plural(runs, "run", "runs"));
        strbuf_puts(out, ": there are no values to compare.");
        return;
    }
    strbuf_printf(out, "%zu of %zu runs failed, in %zu of %zu %s", failed, runs, cells,
                  d->cell_count, plural(d->cell_count, "cell", "cells"));
    if (lost)
        strbuf_printf(out, "; %zu %s no values at all", lost,
                      plural(lost, "cell has", "cells have"));
    strbuf_puts(out, ignored ? ". They count like the others (--ignore-failure)."
                             : ". Only the runs that succeeded count.");
}

void losses_put_state(struct strbuf *out, const struct store_experiment *e)
{
    const char *state = losses_state(e);
    if (str_eq(state, "done") || !*state || (str_eq(state, "failed") && e->failed_count))
        return; /* what failed is told by itself */
    if (str_eq(state, "running")) {
        strbuf_puts(out, "This experiment is still running: what follows can change.");
        return;
    }
    strbuf_printf(out, "This experiment %s before its end",
                  str_eq(state, "failed")   ? "failed"
                  : str_eq(state, "killed") ? "was killed"
                                            : "was stopped");
    strbuf_printf(out, ", after %llu %s; ", (unsigned long long)e->run_count,
                  plural(e->run_count, "run", "runs"));
    if (*e->spec_path)
        strbuf_printf(out, "'assay run %s' resumes it.", e->spec_path);
    else
        strbuf_puts(out, "'assay run' with the same spec resumes it.");
}

void losses_put_status(struct strbuf *out, int status)
{
    if (status == 0)
        strbuf_puts(out, "done");
    else if (WIFSIGNALED(status))
        strbuf_printf(out, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        strbuf_printf(out, "exit code %d", WEXITSTATUS(status));
}

void losses_put_cell(struct strbuf *out, const struct dataset_cell *cell)
{
    if (!cell->failed_count)
        return;
    strbuf_printf(out, "%zu of %zu %s failed (", cell->failed_count, cell->run_count,
                  plural(cell->run_count, "run", "runs"));
    losses_put_status(out, cell->last_status);
    strbuf_putc(out, ')');
}

void losses_put_caveat(struct strbuf *out, const struct dataset_cell *base,
                       const struct dataset_cell *new)
{
    if (new->failed_count)
        strbuf_printf(out, "%zu of %zu runs failed", new->failed_count, new->run_count);
    if (base && base != new && base->failed_count)
        strbuf_printf(out, "%s%zu of %zu runs of the base failed", new->failed_count ? ", " : "",
                      base->failed_count, base->run_count);
}
