/* SPDX-License-Identifier: MIT */
/* assay-scale: tests of how the kernel scales, those of will-it-scale by name and meaning, written
 * anew.  One test or all, with one number of tasks or many. */
#include "base/clock.h"
#include "base/completion.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "calls.h"
#include "folder.h"
#include "report.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

enum { EXIT_TROUBLE = 1, EXIT_USAGE = 2 };

static void complain(const struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf safe = {0};
    strbuf_put_safe(&safe, err->message, strlen(err->message), SIZE_MAX);
    fflush(stdout);
    fprintf(stderr, "assay-scale: %s\n", strbuf_text(&safe));
}

static void print_help(void)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    options_help(&scale_verb, &text);
    /* Its first line is that of a verb of assay. */
    const char *rest = strchr(strbuf_text(&text), '\n');
    printf("usage: assay-scale %s%s", scale_verb.synopsis, rest ? rest : "\n");
}

static int print_completion(const char *shell)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    struct error err = {0};
    struct completion completion = {.program = "assay-scale",
                                    .only = &scale_verb,
                                    .words = "assay-scale --list | cut -d\" \" -f1; echo all"};
    if (completion_write(&text, &completion, shell, &err) < 0) {
        complain(&err);
        return EXIT_USAGE;
    }
    fputs(strbuf_text(&text), stdout);
    return 0;
}

/* Prints what was gathered at once, so that an end by force loses nothing. */
static void flush_text(struct strbuf *text, bool print)
{
    if (print) {
        fputs(strbuf_text(text), stdout);
        fflush(stdout);
    }
    strbuf_clear(text);
}

struct sweep {
    const struct settings *settings;
    struct results *results;
    struct progress progress;
    const char *folder;
    size_t done, total;
};

/* A failure of one measurement is kept and the others go on; an interruption ends all. */
static int run_one(struct sweep *w, const struct scale_test *test, bool threads, unsigned tasks,
                   struct strbuf *text)
{
    const struct settings *s = w->settings;
    struct results *r = w->results;
    struct error err = {0};
    CLEANUP(memory_freep)
    char *where = memory_printf("%zu of %zu: %s, %u %s", ++w->done, w->total, test->name, tasks,
                                threads ? "threads" : "processes");
    const struct measure_spec spec = {.test = test,
                                      .threads = threads,
                                      .task_count = tasks,
                                      .duration_ns = s->duration_ns,
                                      .warmup_ns = s->warmup_ns,
                                      .interval_ns = s->interval_ns,
                                      .by_ops = s->has_ops || s->calls,
                                      .ops = s->calls && !s->has_ops ? calls_whole_ops(test->calls)
                                                                     : s->ops,
                                      .count_calls = s->calls,
                                      .mappings = s->mappings,
                                      .folder = w->folder,
                                      .cpus = &s->cpus,
                                      .progress = &w->progress,
                                      .progress_text = where};
    struct measure_result one = {0};
    progress_show(&w->progress, "%s", where);
    int code = measure_check(&spec, &err);
    if (code == 0)
        code = measure(&spec, &one, &err);
    progress_end(&w->progress);
    if (code == 0) {
        ARRAY_PUSH(r->items, r->count, r->capacity) = one;
        report_line(text, s, r, &one);
    } else if (code != -EINTR) {
        struct failed f = {.test = test->name,
                           .threads = threads,
                           .task_count = tasks,
                           .reason = memory_strdup(err.message)};
        ARRAY_PUSH(r->failures, r->failure_count, r->failure_capacity) = f;
        report_failure(text, &f);
    }
    return code == -EINTR ? code : 0;
}

static int run_all(struct sweep *w, bool print)
{
    const struct settings *s = w->settings;
    CLEANUP(strbuf_done) struct strbuf text = {0};
    report_head(&text, s);
    flush_text(&text, print);
    progress_start(&w->progress);
    w->total = s->test_count * s->counts.count * (size_t)(s->modes[0] + s->modes[1]);
    for (size_t i = 0; i < s->test_count; i++)
        for (int mode = 0; mode < 2; mode++)
            for (size_t k = 0; s->modes[mode] && k < s->counts.count; k++) {
                int code = run_one(w, s->tests[i], mode == 1, s->counts.items[k], &text);
                flush_text(&text, print);
                if (code < 0)
                    return code;
            }
    report_tail(&text, s, w->results);
    flush_text(&text, print);
    return 0;
}

static int write_results(const struct settings *s, const struct results *r, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf text = {0}, metrics = {0};
    const char *number = getenv("ASSAY_METRICS_FD");
    uint64_t fd;
    report_metrics(&metrics, r);
    if (number && metrics.length && parse_u64(number, &fd, NULL) == 0 && fd < 1 << 20)
        (void)fd_write_all((int)fd, strbuf_text(&metrics), metrics.length);
    if (!s->json)
        return 0;
    report_json(&text, s, r);
    if (s->json[0])
        return file_write(s->json, strbuf_text(&text), text.length, err);
    fputs(strbuf_text(&text), stdout);
    return 0;
}

static int run(const struct settings *s, struct error *err)
{
    CLEANUP(results_done) struct results results = {0};
    struct folder folder = {0};
    process_signals_catch();
    int code = folder_open(&folder, s->folder, err);
    if (code < 0)
        return code;
    struct sweep w = {.settings = s, .results = &results, .folder = folder.path};
    int interrupted = run_all(&w, !s->json || s->json[0]);
    code = folder_close(&folder, err);
    if (interrupted < 0)
        return error_set(err, interrupted, "interrupted");
    if (code == 0)
        code = write_results(s, &results, err);
    if (code == 0 && results.failure_count)
        code = error_set(err, -EIO, "%zu of %zu measurements failed%s%s", results.failure_count,
                         w.total, w.total == 1 ? ": " : "",
                         w.total == 1 ? results.failures[0].reason : "");
    if (code == 0 && s->calls)
        for (size_t i = 0; i < results.count; i++)
            if (!calls_match(results.items[i].test->calls, results.items[i].calls,
                             results.items[i].ops, err))
                return error_wrap(err, -ENOMSG, "%s", results.items[i].test->name);
    return code;
}

int main(int argc, char **argv)
{
    struct settings s;
    struct error err = {0};
    int code = settings_parse(&s, argc, argv, &err), exit_code = 0;
    if (code == 1) {
        print_help();
    } else if (code < 0) {
        complain(&err);
        fputs("Try 'assay-scale --help'.\n", stderr);
        exit_code = EXIT_USAGE;
    } else if (s.list) {
        CLEANUP(strbuf_done) struct strbuf text = {0};
        report_list(&text, s.json != NULL);
        fputs(strbuf_text(&text), stdout);
    } else if (s.completion) {
        exit_code = print_completion(s.completion);
    } else if (run(&s, &err) < 0) {
        complain(&err);
        int number = process_signals_caught();
        exit_code = number ? 128 + number : EXIT_TROUBLE;
    }
    settings_done(&s);
    if ((fflush(stdout) != 0 || ferror(stdout)) && exit_code == 0)
        exit_code = EXIT_TROUBLE;
    return exit_code;
}
