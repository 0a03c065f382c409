/* SPDX-License-Identifier: MIT */
/* Simulated counts as text: see stat.h. */
#include "base/memory.h"
#include "report/text/stat.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>

static void put_event(struct strbuf *out, const struct simulation *s, size_t event)
{
    CLEANUP(memory_freep) double *values = memory_zalloc(s->run_count, sizeof(*values));
    double whole = 0;
    const struct simulated_event *e = simulated_event(event);
    for (size_t i = 0; i < s->run_count; i++) {
        values[i] = (double)s->runs[i].values[event];
        whole += (double)s->runs[i].values[e->of] / (double)s->run_count;
    }
    struct spread spread = spread_of(values, s->run_count);
    strbuf_put_grouped(out, spread.mean, 0, 18);
    bool more = (e->is_miss_of && whole > 0) || s->run_count > 1;
    strbuf_printf(out, more ? "      %-28s" : "      %s", e->name);
    if (e->is_miss_of && whole > 0)
        strbuf_printf(out, " #%8.2f%% of %s", 100 * spread.mean / whole,
                      simulated_event(e->of)->name + strlen("sim:"));
    if (s->run_count > 1 && spread.min == spread.max)
        strbuf_puts(out, "  identical in all runs");
    else if (s->run_count > 1)
        strbuf_put_spread(out, &spread, 1, 0);
    strbuf_putc(out, '\n');
}

__attribute__((format(printf, 3, 4))) static void
put_note(struct strbuf *out, const struct simulation_view *v, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    strbuf_put_note(out, text, v->colour);
}

void report_simulation_text(struct strbuf *out, const struct simulation_view *v)
{
    const struct simulation *s = v->s;
    strbuf_puts(out, "\n Simulated counts for '");
    CLEANUP(strbuf_done) struct strbuf command = {0};
    strbuf_put_command(&command, v->argv);
    strbuf_put_safe(out, strbuf_text(&command), command.length, 300);
    strbuf_puts(out, "'");
    if (v->requested_runs > 1)
        strbuf_printf(out, " (%zu %s)", s->run_count, plural(s->run_count, "run", "runs"));
    strbuf_puts(out, ":\n\n");
    if (!s->run_count) {
        strbuf_puts(out, "  no run was finished\n\n");
        return;
    }
    size_t processes = 0, left_behind = 0;
    double wall_ns = 0;
    for (size_t i = 0; i < s->run_count; i++) {
        processes += s->runs[i].process_count;
        left_behind += s->runs[i].left_behind;
        wall_ns += (double)s->runs[i].wall_ns / (double)s->run_count;
    }
    for (size_t i = 0; i < s->event_count; i++)
        put_event(out, s, i);
    strbuf_putc(out, '\n');
    char wall[32];
    size_t per_run = processes / s->run_count;
    put_note(out, v,
             "Simulated by %s; user mode only, %zu process%s%s. Compare these counts only with "
             "those of the same tool and version.",
             s->tool, per_run, per_run == 1 ? "" : "es",
             s->full ? "; the caches and the predictor are models" : "");
    put_note(out, v,
             "A run took %s under simulation, which makes programs about %s times slower; "
             "such times mean nothing and are not shown.",
             format_duration(wall_ns, wall, sizeof(wall)), s->full ? "20" : "7");
    if (left_behind)
        put_note(out, v,
                 "After %zu of %zu runs, processes that the command had started were still "
                 "running: they are not in the counts, and Valgrind's files for them stay in the "
                 "temporary directory (assay-sim-…).",
                 left_behind, s->run_count);
    if (s->signal)
        put_note(out, v, "Interrupted by signal %d: these are the counts up to then.", s->signal);
    int status = s->runs[s->run_count - 1].status;
    if (WIFSIGNALED(status))
        put_note(out, v, "The command was ended by signal %d.", WTERMSIG(status));
    else if (WEXITSTATUS(status))
        put_note(out, v, "The command ended with exit code %d.", WEXITSTATUS(status));
    strbuf_putc(out, '\n');
}
