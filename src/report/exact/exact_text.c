/* SPDX-License-Identifier: MIT */
/* See exact.h. */
#include "base/measured.h"
#include "base/memory.h"
#include "exact/machine.h"
#include "report/exact/exact.h"
#include "report/text/stat.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>

enum { FUNCTIONS_SHOWN = 12, CALLS_SHOWN = 12, VARYING_SHOWN = 5 };

/* "  deflate (gzip)" */
static void put_function(struct strbuf *out, const char *name, const char *module)
{
    strbuf_put_safe(out, name, strlen(name), 80);
    if (*module) {
        strbuf_puts(out, " (");
        strbuf_put_safe(out, module, strlen(module), 40);
        strbuf_putc(out, ')');
    }
    strbuf_putc(out, '\n');
}

static void put_functions(struct strbuf *out, const struct exact_functions *f)
{
    size_t shown = f->count < FUNCTIONS_SHOWN ? f->count : FUNCTIONS_SHOWN;
    uint64_t rest = f->instructions;
    strbuf_puts(out, "\n Instructions by function:\n\n");
    for (size_t i = 0; i < shown; i++) {
        const struct exact_function *x = &f->items[i];
        rest -= x->instructions;
        strbuf_put_grouped(out, (double)x->instructions, 0, 18);
        strbuf_printf(out, " %6.2f%%  ", 100 * (double)x->instructions / (double)f->instructions);
        put_function(out, x->name, x->module);
    }
    if (f->count > shown) {
        strbuf_put_grouped(out, (double)rest, 0, 18);
        strbuf_printf(out, " %6.2f%%  %zu other %s\n", 100 * (double)rest / (double)f->instructions,
                      f->count - shown, plural(f->count - shown, "function", "functions"));
    }
}

static int by_count(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return x[1] != y[1] ? (x[1] < y[1] ? 1 : -1) : (x[0] > y[0]) - (x[0] < y[0]);
}

static void put_calls(struct strbuf *out, const struct exact_tool *tool,
                      const struct exact_counts *c)
{
    uint64_t used[EXACT_CALLS][2], rest = 0;
    size_t count = 0;
    for (uint64_t i = 0; i < EXACT_CALLS; i++)
        if (c->calls_by_number[i]) {
            used[count][0] = i;
            used[count++][1] = c->calls_by_number[i];
        }
    if (!count)
        return;
    qsort(used, count, sizeof(used[0]), by_count);
    strbuf_puts(out, "\n System calls:\n\n");
    for (size_t i = 0; i < count; i++) {
        if (i >= CALLS_SHOWN) {
            rest += used[i][1];
            continue;
        }
        char name[32];
        strbuf_put_grouped(out, (double)used[i][1], 0, 18);
        strbuf_printf(out, "      %s\n", exact_call_name(tool, used[i][0], name, sizeof(name)));
    }
    if (rest) {
        strbuf_put_grouped(out, (double)rest, 0, 18);
        strbuf_printf(out, "      %zu %s\n", count - CALLS_SHOWN,
                      plural(count - CALLS_SHOWN, "other", "others"));
    }
}

static void put_value(struct strbuf *out, const struct exact_view *v, const char *name,
                      uint64_t (*value_of)(const struct exact_counts *c))
{
    CLEANUP(memory_freep) double *values = memory_zalloc(v->run_count + 1, sizeof(*values));
    for (size_t i = 0; i < v->run_count; i++)
        values[i] = (double)value_of(&v->runs[i].counts);
    struct spread spread = spread_of(values, v->run_count);
    strbuf_put_grouped(out, spread.mean, 0, 18);
    strbuf_printf(out, v->run_count > 1 ? "      %-28s" : "      %s", name);
    if (v->run_count > 1 && spread.min == spread.max)
        strbuf_puts(out, "  identical in all runs");
    else if (v->run_count > 1)
        strbuf_printf(out, "  varies by %.2g of it  [%.0f … %.0f]",
                      (spread.max - spread.min) / spread.mean, spread.min, spread.max);
    strbuf_putc(out, '\n');
}

static uint64_t processes_of(const struct exact_counts *c)
{
    return c->process_count;
}

static uint64_t threads_of(const struct exact_counts *c)
{
    return c->thread_count;
}

/* What the kernel was entered for, and what it did then. */
static void put_ways(struct strbuf *out, const struct exact_counts *c)
{
    uint64_t rest = c->kernel;
    size_t shown = c->way_count < CALLS_SHOWN ? c->way_count : CALLS_SHOWN;
    if (!shown)
        return;
    strbuf_puts(out, "\n Kernel instructions, by system call and exception:\n\n");
    for (size_t i = 0; i < shown; i++) {
        char count[32];
        rest -= c->ways[i].instructions;
        strbuf_put_grouped(out, (double)c->ways[i].instructions, 0, 18);
        strbuf_printf(out, "      %s", c->ways[i].name);
        if (c->ways[i].count)
            strbuf_printf(out, " × %s", format_thousands(c->ways[i].count, count, sizeof(count)));
        strbuf_putc(out, '\n');
    }
    if (c->way_count > shown) {
        strbuf_put_grouped(out, (double)rest, 0, 18);
        strbuf_printf(out, "      %zu %s\n", c->way_count - shown,
                      plural(c->way_count - shown, "other", "others"));
    }
}

__attribute__((format(printf, 3, 4))) static void
put_note(struct strbuf *out, const struct exact_view *v, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    strbuf_put_note(out, text, v->colour);
}

static void put_programs(struct strbuf *out, const struct exact_view *v, char *const *list,
                         size_t count, const char *words)
{
    CLEANUP(strbuf_done) struct strbuf names = {0};
    for (size_t i = 0; i < count && names.length < 300; i++) {
        strbuf_puts(&names, i ? ", " : "");
        strbuf_put_safe(&names, list[i], strlen(list[i]), 100);
    }
    if (count)
        put_note(out, v, "%s: %s.", words, strbuf_text(&names));
}

/* What the runs do not have in common. */
static void put_varying(struct strbuf *out, const struct exact_view *v)
{
    if (!v->others)
        return;
    strbuf_puts(out, "\n What varies, as the difference between two of the runs:\n\n");
    report_exact_changes(out, v->functions, v->others, VARYING_SHOWN);
}

/* Where the cycles come from, and how far from a time they are. */
static void put_model(struct strbuf *out, const struct exact_view *v,
                      const struct exact_modelled *m)
{
    char time[32];
    put_note(
        out, v,
        "Modelled by %s: a cycle for an instruction, %d more for a mispredicted branch, %d for "
        "a miss of the first level and %d for one of the last level of caches of 48 KiB and 32 "
        "MiB.",
        v->tool->name, EXACT_MODEL_BRANCH_MISS, EXACT_MODEL_L1_MISS, EXACT_MODEL_LLC_MISS);
    put_note(
        out, v,
        "On " EXACT_MODEL_MACHINE " that would be %s of CPU time, modelled, within a factor "
        "of " EXACT_MODEL_FACTOR " for nine of ten reference programs (of " EXACT_MODEL_PROGRAMS
        "), of " EXACT_MODEL_FACTOR_HALF " for half of them. It is not a measured time.",
        format_duration((double)exact_model_cycles(m) / EXACT_MODEL_PER_NS, time, sizeof(time)));
}

static void put_notes(struct strbuf *out, const struct exact_view *v)
{
    const struct exact_result *last = &v->runs[v->run_count - 1];
    size_t left_behind = 0;
    char wall[32];
    for (size_t i = 0; i < v->run_count; i++)
        left_behind += v->runs[i].left_behind;
    if (v->tool->is_model)
        put_model(out, v, &last->counts.modelled);
    else if (v->tool->is_cachegrind)
        put_note(out, v, "Counted by %s instead of QEMU: %s", v->tool->name, v->tool->why);
    else
        put_note(out, v, "Counted by %s.", v->tool->name);
    put_note(out, v,
             "%s Compare these counts only with those of the same "
             "tool. A run took %s, emulated; such times mean nothing.",
             v->tool->machine ? "User mode and the kernel's work for it."
                              : "User mode only, without the kernel.",
             format_duration((double)last->wall_ns, wall, sizeof(wall)));
    if (last->counts.interrupts)
        put_note(
            out, v,
            "%s instructions more ran meanwhile for interrupts, for files of the host, to refill "
            "the kernel's allocators and to give way to other tasks: when that happens differs "
            "from run to run, and it is not in the counts.",
            format_thousands(last->counts.interrupts + last->counts.aside, wall, sizeof(wall)));
    put_programs(out, v, last->foreign, last->foreign_count,
                 "Not counted, because they are not programs for this processor");
    put_programs(out, v, last->set_id, last->set_id_count,
                 "Run without the permissions of their owner, which emulated programs do not get");
    if (last->counts.unplaced)
        put_note(out, v, "The program has more code than can be told apart by function.");
    if (left_behind)
        put_note(out, v,
                 "After %zu of %zu runs, processes that the command had started were still "
                 "running: what they do from then on is not in the counts.",
                 left_behind, v->run_count);
    if (v->signal)
        put_note(out, v, "Interrupted by signal %d: these are the counts up to then.", v->signal);
    if (last->ran_out)
        put_note(out, v, EXACT_RAN_OUT, EXACT_MEMORY_BYTES >> 20);
    if (WIFSIGNALED(last->status))
        put_note(out, v, "The command was ended by signal %d.", WTERMSIG(last->status));
    else if (WEXITSTATUS(last->status))
        put_note(out, v, "The command ended with exit code %d.", WEXITSTATUS(last->status));
}

void report_exact_text(struct strbuf *out, const struct exact_view *v)
{
    CLEANUP(strbuf_done) struct strbuf command = {0};
    strbuf_puts(out, "\n Exact counts for '");
    strbuf_put_command(&command, v->argv);
    strbuf_put_safe(out, strbuf_text(&command), command.length, 300);
    strbuf_puts(out, "'");
    if (v->requested_runs > 1)
        strbuf_printf(out, " (%zu %s)", v->run_count, plural(v->run_count, "run", "runs"));
    strbuf_puts(out, ":\n\n");
    if (!v->run_count) {
        strbuf_puts(out, "  no run was finished\n\n");
        return;
    }
    for (const struct exact_metric *m = exact_tool_metrics(v->tool); m->name; m++)
        put_value(out, v, m->name, m->value_of);
    if (v->tool->machine)
        put_value(out, v, "processes and threads", threads_of);
    else
        put_value(out, v, "processes (an exec begins another)", processes_of);
    if (v->functions && v->functions->count)
        put_functions(out, v->functions);
    if (v->tool->machine)
        put_ways(out, &v->runs[0].counts);
    else
        put_calls(out, v->tool, &v->runs[0].counts);
    put_varying(out, v);
    strbuf_putc(out, '\n');
    put_notes(out, v);
    strbuf_putc(out, '\n');
}

static void put_change(struct strbuf *out, int64_t change)
{
    char digits[32];
    uint64_t size = (uint64_t)(change < 0 ? -change : change);
    strbuf_printf(out, "%c%s", change < 0 ? '-' : '+',
                  format_thousands(size, digits, sizeof(digits)));
}

static void put_change_line(struct strbuf *out, int64_t change, double whole)
{
    CLEANUP(strbuf_done) struct strbuf number = {0};
    put_change(&number, change);
    strbuf_printf(out, "%18s %+8.3f%%  ", strbuf_text(&number), 100 * (double)change / whole);
}

void report_exact_changes(struct strbuf *out, const struct exact_functions *base,
                          const struct exact_functions *new, size_t most)
{
    CLEANUP(exact_changes_done) struct exact_changes c;
    double whole = base->instructions ? (double)base->instructions : 1;
    int64_t rest = (int64_t)(new->instructions - base->instructions);
    exact_changes_find(&c, base, new);
    size_t shown = c.count < most ? c.count : most;
    for (size_t i = 0; i < shown; i++) {
        int64_t change = (int64_t)(c.items[i].new - c.items[i].base);
        rest -= change;
        put_change_line(out, change, whole);
        put_function(out, c.items[i].name, c.items[i].module);
    }
    if (c.count > shown) {
        put_change_line(out, rest, whole);
        strbuf_printf(out, "%zu other %s\n", c.count - shown,
                      plural(c.count - shown, "function", "functions"));
    }
    put_change_line(out, (int64_t)(new->instructions - base->instructions), whole);
    strbuf_puts(out, "in all\n");
}
