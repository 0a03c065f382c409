/* SPDX-License-Identifier: MIT */
/* `assay bench` with programs of other harnesses: see bench.h. */
#include "base/memory.h"
#include "base/term.h"
#include "bench/foreign.h"
#include "cmd/bench.h"
#include "cmd/cmd.h"

#include <errno.h>

int bench_find_harness(const struct bench_options *o, char *const *paths, size_t count,
                       const struct program_harness **ret, struct error *err)
{
    *ret = NULL;
    if (o->harness && !str_eq(o->harness, "auto")) {
        *ret = program_harness_find(o->harness);
        if (*ret || str_eq(o->harness, "assay"))
            return 0;
        CLEANUP(strbuf_done) struct strbuf names = {0};
        for (const struct program_harness *h = program_harnesses; h->name; h++)
            strbuf_printf(&names, ", %s", h->name);
        return error_set(err, -EINVAL, "--harness %s: not one of auto, assay%s", o->harness,
                         strbuf_text(&names));
    }
    for (size_t i = 0; i < count; i++) {
        struct bench_target t;
        int r = bench_target_open(&t, paths[i], err);
        bench_target_done(&t);
        if (r == -ENOENT || r == -EACCES)
            return r;
        const struct program_harness *h =
            r == -ENOTSUP || r == -ENOEXEC ? bench_foreign_detect(paths[i]) : NULL;
        if (i && h != *ret)
            return error_set(err, -EINVAL,
                             "%s is built with %s and %s with %s; compare like with "
                             "like",
                             paths[0], *ret ? (*ret)->title : "assay.h", paths[i],
                             h ? h->title : "assay.h");
        *ret = h;
    }
    return 0;
}

/* What needs assay.h in the program. */
static int check_options(const struct bench_options *o, const struct program_harness *h,
                         struct error *err)
{
    const char *option = o->sim           ? "sim"
                         : o->allocations ? "allocations"
                         : o->layouts     ? "layouts"
                         : o->iterations  ? "iterations"
                                          : NULL;
    return option ? error_set(err, -EINVAL,
                              "--%s is for programs with assay.h; these are built with %s", option,
                              h->title)
                  : 0;
}

static int find_cases(const struct bench_options *o, const struct bench_plan *plan,
                      const struct program_harness **h, struct bench_cases *cases,
                      struct error *err)
{
    struct program_results lists[BENCH_SIDES_MAX] = {0};
    int r = bench_foreign_list(plan, h, lists, err);
    if (r == 0)
        r = bench_foreign_cases(cases, lists, plan->side_count, o->filters.items, o->filters.count,
                                err);
    if (r == 0 && !cases->count)
        r = bench_none_fits(cases, o, plan->side_count, err);
    for (size_t i = 0; i < BENCH_SIDES_MAX; i++)
        program_results_done(&lists[i]);
    return r;
}

int bench_run_foreign(const struct bench_options *o, const struct bench_versions *v,
                      const struct program_harness *h, struct bench_plan *plan, struct error *err)
{
    CLEANUP(bench_cases_done) struct bench_cases cases = {0};
    CLEANUP(bench_results_done) struct bench_results results = {0};
    CLEANUP(bench_files_done) struct bench_files files = {{.fd = -1}, {.fd = -1}};
    struct progress *progress = plan->context;
    time_t started = time(NULL);
    plan->cases = &cases;
    if (check_options(o, h, err) < 0)
        return cmd_usage(&verb_bench, err);
    int r = bench_files_open(&files, o, err);
    if (r == 0)
        r = find_cases(o, plan, &h, &cases, err);
    if (r < 0)
        return bench_fail(err, EXIT_TROUBLE);
    if (o->list)
        return bench_print_list(o, &cases);
    progress_start(progress);
    progress->enabled = progress->enabled && !o->quiet;
    r = bench_foreign_measure(plan, h, &results, err);
    progress_end(progress);
    if (r < 0)
        return bench_fail(err, EXIT_MEASURE_FAILED);
    return bench_conclude(o, v, plan, &results, started, &files, err);
}
