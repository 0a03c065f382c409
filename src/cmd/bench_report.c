/* SPDX-License-Identifier: MIT */
/* Where the results of `assay bench` go: see bench.h. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/term.h"
#include "bench/passes.h"
#include "bench/runner.h"
#include "cmd/bench.h"
#include "cmd/bench_command.h"
#include "cmd/cmd.h"
#include "report/html/html.h"
#include "report/text/stat.h"
#include "session/keep.h"
#include "store/store.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static char *machine_text(const struct machine *machine)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    struct json j = {.out = &text};
    machine_write_json(machine, &j, NULL);
    return memory_strdup(strbuf_text(&text));
}

static void put_html(struct strbuf *out, const struct bench_view *v)
{
    CLEANUP(page_done) struct page page = {0};
    struct embedded *e = &page.data;
    ARRAY_PUSH(e->documents, e->set_count, e->document_capacity) =
        (struct embedded_documents){machine_text(v->machine), memory_strdup(""), memory_strdup("")};
    e->sets = memory_grow(e->sets, &e->set_capacity, 1, sizeof(*e->sets));
    e->sets[0] = *v->outcome->data; /* lent, and taken back below */
    e->command = memory_strdup("assay bench");
    struct error ignored;
    if (page_prepare(&page, &ignored) == 0) { /* nothing can fail with one table */
        page_plot(&page);
        html_put_page(out, &page);
    }
    e->sets[0] = (struct dataset){0};
}

static int write_file(struct outfile *file, const struct strbuf *text, struct error *err)
{
    int r = outfile_write(file, text->data, text->length, err);
    return r < 0 ? r : outfile_commit(file, err);
}

/* Where those that run assay bench (ab, gate, bisect, explain) read figures; -1: nobody does. */
static int metrics_fd(void)
{
    const char *text = getenv("ASSAY_METRICS_FD");
    uint64_t fd;
    return text && parse_u64(text, &fd, NULL) == 0 && fd <= 1 << 20 ? (int)fd : -1;
}

static void tell_metrics(const struct bench_view *v)
{
    int fd = metrics_fd();
    if (fd < 0)
        return;
    for (size_t i = 0; i < v->cases->count; i++) {
        const struct outcome_cell *cell =
            outcome_cell(v->outcome, v->outcome->headline,
                         bench_cell(i, v->results->side_count - 1, v->results->side_count));
        CLEANUP(memory_freep) char *name = bench_metric_name(v->cases->items[i].label);
        if (cell->summary.count)
            dprintf(fd, "assay.metric %s %.17g ns\n", name, cell->summary.median);
    }
}

static int report(const struct bench_options *o, struct bench_view *view, struct bench_files *files,
                  struct error *err)
{
    CLEANUP(doubt_list_done) struct doubt_list notes = {0};
    CLEANUP(strbuf_done) struct strbuf out = {0};
    struct machine machine;
    bool to_stdout = o->json && (!*o->json || str_eq(o->json, "-"));
    int r = 0;
    view->notes = &notes;
    view->all = o->all;
    view->layouts = o->layouts > 0;
    view->one_process = o->one_process;
    view->colour = term_has_colour(STDOUT_FILENO);
    view->columns = isatty(STDOUT_FILENO) ? term_columns(STDOUT_FILENO) : 120;
    report_bench_notes(&notes, view);
    tell_metrics(view);
    if (!to_stdout) {
        report_bench_text(&out, view);
        strbuf_fit_lines(&out, isatty(STDOUT_FILENO) ? view->columns : 0);
        fputs(strbuf_text(&out), stdout);
    }
    if (!o->json && !o->html)
        return 0;
    machine_probe(&machine, MACHINE_QUICK);
    view->machine = &machine;
    strbuf_clear(&out);
    report_bench_json(&out, view);
    if (to_stdout)
        fwrite(strbuf_text(&out), 1, out.length, stdout);
    else if (o->json)
        r = write_file(&files->json, &out, err);
    if (r == 0 && o->html) {
        strbuf_clear(&out);
        put_html(&out, view);
        r = write_file(&files->html, &out, err);
    }
    view->machine = NULL;
    machine_done(&machine);
    return r;
}

static int save(const struct bench_options *o, const struct dataset *d, struct error *err)
{
    int64_t id;
    const char *name = o->save ? o->save : "bench";
    int r = keep_dataset(d, o->db, name, &id, err);
    if (r < 0)
        return error_wrap(err, r, "the result could not be stored");
    fprintf(stderr, "assay bench: kept as experiment %lld (%s) in %s\n", (long long)id, name,
            store_place(o->db));
    return 0;
}

int bench_fail(struct error *err, int code)
{
    int signal = process_signals_caught();
    return signal ? cmd_interrupted(&verb_bench, signal, "nothing was measured")
                  : cmd_fail(&verb_bench, err, code);
}

int bench_files_open(struct bench_files *f, const struct bench_options *o, struct error *err)
{
    int r = o->json && *o->json && !str_eq(o->json, "-") ? outfile_open(&f->json, o->json, err) : 0;
    return r == 0 && o->html ? outfile_open(&f->html, o->html, err) : r;
}

void bench_files_done(struct bench_files *f)
{
    outfile_done(&f->json);
    outfile_done(&f->html);
}

int bench_print_list(const struct bench_options *o, const struct bench_cases *cases)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    if (o->json)
        report_bench_list_json(&out, cases);
    else
        report_bench_list(&out, cases);
    fputs(strbuf_text(&out), stdout);
    return EXIT_DONE;
}

/* The benchmarks that failed, and the exit code. */
static int tell_failures(const struct bench_versions *v, const struct bench_cases *cases,
                         const struct bench_results *results)
{
    size_t failed = 0;
    for (size_t i = 0; i < cases->count; i++)
        for (size_t side = 0; side < v->count; side++) {
            const char *why = results->items[i].sides[side].failed;
            if (!why)
                continue;
            fprintf(stderr, "assay bench: %s of %s: %s\n", cases->items[i].label,
                    v->targets[side].path, why);
            failed++;
        }
    return failed ? EXIT_TROUBLE : EXIT_DONE;
}

int bench_conclude(const struct bench_options *o, const struct bench_versions *v,
                   const struct bench_plan *plan, const struct bench_results *results,
                   time_t started, struct bench_files *files, struct error *err)
{
    const char *paths[BENCH_SIDES_MAX] = {v->targets[0].path, v->targets[1].path};
    CLEANUP(dataset_done) struct dataset d;
    CLEANUP(outcome_done) struct outcome outcome = {0};
    CLEANUP(bench_fits_done) struct bench_fits fits = {0};
    bench_table_make(&d, plan->cases, results, (const char *const *)v->names, paths,
                     plan->start.counters ? bench_counters() : NULL, plan->seed,
                     (uint64_t)started * NS_PER_S);
    outcome_judge(&outcome, &d, NULL, BENCH_METRIC);
    bench_fits_make(&fits, plan->cases, results, &outcome);
    struct bench_view view = {.cases = plan->cases,
                              .fits = &fits,
                              .results = results,
                              .outcome = &outcome,
                              .names = (const char *const *)v->names,
                              .paths = paths,
                              .seed = plan->seed,
                              .started = started};
    int r = report(o, &view, files, err);
    if (r == 0 && (o->save || o->db) && results->round_count)
        r = save(o, &d, err);
    if (r < 0)
        return bench_fail(err, EXIT_TROUBLE);
    fflush(stdout);
    int failed = tell_failures(v, plan->cases, results);
    return results->signal ? 128 + results->signal : failed;
}

int bench_run_once(const struct bench_options *o, const struct bench_target *t,
                   const struct bench_call *call, struct error *err)
{
    CLEANUP(memory_freep) char *once = bench_once_text(call, o->iterations);
    int fd = metrics_fd();
    if (fd >= 0) /* the work of this run: what assay explain says is then of one iteration */
        dprintf(fd, "assay.metric iterations %llu\n", (unsigned long long)o->iterations);
    setenv("ASSAY_ONCE", once, 1);
    unsetenv("ASSAY_WORKER");
    char *const argv[] = {t->kind == BENCH_SHARED ? (char *)BENCH_RUNNER_NAME : t->path,
                          t->kind == BENCH_SHARED ? t->path : NULL, NULL};
    if (t->kind == BENCH_SHARED)
        setenv(BENCH_RUNNER_VARIABLE, "1", 1);
    execv(t->kind == BENCH_SHARED ? "/proc/self/exe" : t->path, argv);
    return error_errno(err, -errno, "%s", t->path);
}
