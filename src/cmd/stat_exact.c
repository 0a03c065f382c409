/* SPDX-License-Identifier: MIT */
/* `assay stat --exact`: counts that repeat, by emulation. */
#include "base/memory.h"
#include "base/process.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "cmd/stat.h"
#include "report/exact/exact.h"
#include "vm/exits.h"

#include <errno.h>

struct exact_runs {
    struct exact_result *items;
    size_t count, capacity;
};

static void runs_done(struct exact_runs *runs)
{
    for (size_t i = 0; i < runs->count; i++)
        exact_result_done(&runs->items[i]);
    free(runs->items);
}

static int run_all(const struct stat_options *o, const struct exact_tool *tool, char *const *argv,
                   struct exact_runs *runs, int *ret_start_code, struct error *err)
{
    struct progress progress;
    int r = 0;
    progress_start(&progress);
    while (r == 0 && runs->count < o->repeat_count && !process_signals_caught()) {
        struct exact_result result;
        if (o->repeat_count > 1)
            progress_show(&progress, "emulated run %zu of %llu", runs->count + 1,
                          (unsigned long long)o->repeat_count);
        r = exact_run(tool, argv, &result, ret_start_code, err);
        if (r == 0 && !result.was_stopped)
            ARRAY_PUSH(runs->items, runs->count, runs->capacity) = result;
        else
            exact_result_done(&result);
    }
    progress_end(&progress);
    return r;
}

/* The functions of the first run, and of one that differs from it. */
static void name_functions(struct exact_view *v, struct exact_functions *first,
                           struct exact_functions *other)
{
    if (!v->run_count || v->tool->is_cachegrind)
        return;
    exact_functions_find(first, &v->runs[0].counts);
    v->functions = first;
    for (size_t i = 1; i < v->run_count; i++)
        if (v->runs[i].counts.instructions != v->runs[0].counts.instructions) {
            exact_functions_find(other, &v->runs[i].counts);
            v->others = other;
            return;
        }
}

static int report(const struct stat_options *o, struct exact_view *view,
                  struct stat_reports *reports, struct error *err)
{
    CLEANUP(exact_functions_done) struct exact_functions first = {0};
    CLEANUP(exact_functions_done) struct exact_functions other = {0};
    struct machine machine = {0};
    name_functions(view, &first, &other);
    if (o->json)
        machine_probe(&machine, MACHINE_QUICK);
    view->machine = &machine;
    if (o->json)
        report_exact_json(&reports->data, view);
    else if (o->csv)
        report_exact_csv(&reports->data, view);
    if (reports->wants_text)
        report_exact_text(&reports->text, view);
    if (o->json)
        machine_done(&machine);
    return stat_deliver(reports, err);
}

int stat_exact(const struct stat_options *o, char *const *argv, struct stat_reports *reports,
               struct error *err)
{
    CLEANUP(exact_tool_done) struct exact_tool tool;
    CLEANUP(runs_done) struct exact_runs runs = {0};
    int start_code = 0;
    process_signals_catch();
    int r = cmd_find_exact(&tool, o->exact, err);
    if (r < 0) {
        int caught = process_signals_caught();
        process_signals_restore();
        return caught ? 128 + caught : stat_fail(err, 0);
    }
    process_adopt_orphans();
    r = run_all(o, &tool, argv, &runs, &start_code, err);
    int signal = process_signals_caught();
    process_signals_clear();
    struct exact_view view = {.tool = &tool,
                              .argv = argv,
                              .runs = runs.items,
                              .run_count = runs.count,
                              .requested_runs = o->repeat_count,
                              .signal = signal,
                              .colour = !o->output && term_has_colour(STDERR_FILENO)};
    if (r == 0)
        r = report(o, &view, reports, err);
    process_signals_restore();
    if (r < 0)
        return stat_fail(err, start_code);
    for (size_t i = 0; i < runs.count; i++)
        if (runs.items[i].ran_out)
            return VM_EXIT_NO_MEMORY;
        else if (runs.items[i].status)
            return process_exit_code(runs.items[i].status);
    return runs.count < o->repeat_count ? 128 + signal : 0;
}
