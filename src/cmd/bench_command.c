/* SPDX-License-Identifier: MIT */
/* See bench_command.h. */
#include "cmd/bench_command.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"
#include "bench/cases.h"
#include "bench/runner.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#define RUN_NS (200 * NS_PER_MS) /* how long a command for a profiler takes, about */

char *bench_metric_name(const char *label)
{
    char *name = memory_strdup(label);
    for (char *p = name; *p; p++)
        *p = *p == ' ' || *p == '=' ? ':' : *p;
    return name;
}

void bench_command_words(char **words, const char *label, const char *program)
{
    /* Many short runs rather than few long ones: whoever runs it compares runs. */
    const char *const all[] = {bench_runner_path(), "bench", "--quiet", "--time", "0.3s",
                               "--bench",           label,   program};
    for (size_t i = 0; i < BENCH_COMMAND_WORDS; i++)
        words[i] = (char *)all[i];
}

/* The only benchmark that fits. */
static int find_one(const struct bench_target *t, const struct bench_start *how, const char *label,
                    struct bench_cases *cases, struct error *err)
{
    struct bench_worker w;
    CLEANUP(bench_entries_done) struct bench_entries entries = {0};
    int r = bench_worker_start(&w, t, how, err);
    if (r == 0)
        r = bench_worker_list(&w, &entries, err);
    bench_worker_stop(&w);
    if (r == 0)
        r = bench_cases_make(cases, &entries, NULL, &label, 1, err);
    if (r == 0 && cases->count != 1)
        r = error_set(err, -ENOENT,
                      "--bench %s: %zu benchmarks of %s fit, but one is needed; 'assay bench "
                      "--list' shows them",
                      label, cases->count, t->path);
    return r;
}

/* What one iteration takes, about. */
static int find_time(const struct bench_target *t, const struct bench_start *how,
                     const struct bench_call *call, double *ret_ns, struct error *err)
{
    CLEANUP(bench_said_done) struct bench_said said = {0};
    struct bench_worker w;
    struct bench_sample s = {0};
    bool more = false;
    uint64_t iterations = 1;
    int r = bench_worker_start(&w, t, how, err);
    if (r == 0)
        r = bench_worker_call(&w, call, &more, &said, err);
    while (r == 0 && more && s.wall_ns < (double)RUN_NS / 8 && iterations < 1ull << 40) {
        iterations *= iterations > 1 || s.wall_ns > 0 ? 4 : 1;
        r = bench_worker_go(&w, 0, iterations, &s, &more, &said, err);
    }
    bench_worker_stop(&w);
    if (r == 0 && !more)
        r = error_set(err, -ECHILD, "it does not run: %s",
                      said.failed    ? said.failed
                      : said.skipped ? said.skipped
                                     : "its loop ended");
    if (r == 0)
        *ret_ns = s.wall_ns / (double)iterations;
    return r;
}

int bench_command_texts(const char *label, char *const programs[2], char *const folders[2],
                        char *ret_texts[2], struct error *err)
{
    char *labels[2] = {0};
    double ns[2] = {0};
    int r = 0;
    for (size_t side = 0; r == 0 && side < 2; side++) {
        const struct bench_start how = {
            .cpu = -1, .timeout_ns = 20 * NS_PER_S, .folder = folders ? folders[side] : NULL};
        CLEANUP(bench_target_done) struct bench_target t = {0};
        CLEANUP(bench_cases_done) struct bench_cases cases = {0};
        r = bench_target_open(&t, programs[side], err);
        if (r == 0)
            r = find_one(&t, &how, label, &cases, err);
        if (r == 0)
            r = find_time(&t, &how, &cases.items[0].calls[0], &ns[side], err);
        if (r == 0)
            labels[side] = memory_strdup(cases.items[0].label);
    }
    /* Where one is much faster, both runs are still long enough to be sampled. */
    double iterations = (double)RUN_NS / fmax(sqrt(ns[0] * ns[1]), 1e-3);
    char number[32];
    snprintf(number, sizeof(number), "%.0f", fmax(iterations, 1));
    for (size_t side = 0; r == 0 && side < 2; side++) {
        CLEANUP(strbuf_done) struct strbuf text = {0};
        char *const words[] = {
            (char *)bench_runner_path(), (char *)"bench", (char *)"--bench", labels[side],
            (char *)"--iterations",      number,          programs[side],    NULL};
        strbuf_put_command(&text, words);
        ret_texts[side] = memory_strdup(strbuf_text(&text));
    }
    free(labels[0]);
    free(labels[1]);
    return r;
}
