/* SPDX-License-Identifier: MIT */
/*
 * What it costs a command that its output goes somewhere: the wall time that assay's runner
 * measures with each way, over that with /dev/null in the same round.
 *
 *   output ROUNDS          runs itself as: output write COUNT BYTES
 */
#include "base/memory.h"
#include "base/process.h"
#include "numbers/random.h"
#include "numbers/sort.h"
#include "run/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WAYS = 4 };

static const struct {
    const char *name;
    enum run_output to;
} ways[WAYS] = {
    {"null", RUN_DISCARD}, {"memory", RUN_KEEP}, {"pipe", RUN_PIPE}, {"file", RUN_FILE}};

static const struct {
    const char *name, *count, *bytes;
} loads[] = {{"nothing", "0", "1"},
             {"one line", "1", "40"},
             {"10,000 lines, each written at once", "10000", "40"},
             {"1 MB in 4 KB", "256", "4096"},
             {"16 MB in 64 KB", "256", "65536"},
             {"256 MB in 64 KB", "4096", "65536"}};

/* The command: writes, and computes a little between two writes, as programs do. */
static int write_much(size_t count, size_t bytes)
{
    char *text = memory_zalloc(bytes, 1);
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < bytes; k++)
            sum = sum * 31 + (text[k] = (char)('a' + (sum + k) % 26));
        if (write(STDOUT_FILENO, text, bytes) != (ssize_t)bytes)
            return 1;
    }
    free(text);
    return sum == 1;
}

static void run_load(struct runner *r, const char *self, size_t load, size_t rounds)
{
    char *argv[] = {(char *)self, "write", (char *)loads[load].count, (char *)loads[load].bytes,
                    NULL};
    double *walls[WAYS], *ratios = memory_zalloc(rounds, sizeof(*ratios));
    size_t order[WAYS] = {0, 1, 2, 3};
    struct run_result result = {0};
    struct rng rng;
    struct error err = {0};
    rng_seed(&rng, load + 1);
    for (size_t w = 0; w < WAYS; w++)
        walls[w] = memory_zalloc(rounds, sizeof(**walls));
    for (size_t i = 0; i < rounds; i++) {
        rng_shuffle(&rng, order, WAYS);
        for (size_t k = 0; k < WAYS; k++) {
            struct run_spec spec = {
                .argv = argv, .stdout_to = ways[order[k]].to, .output_path = "output-bench.tmp"};
            if (runner_run(r, &spec, &result, &err) < 0 || run_failed(&result)) {
                fprintf(stderr, "%s failed %s\n", ways[order[k]].name, err.message);
                exit(1);
            }
            walls[order[k]][i] = (double)result.wall_ns;
        }
    }
    printf("%-36s", loads[load].name);
    for (size_t w = 1; w < WAYS; w++) {
        for (size_t i = 0; i < rounds; i++)
            ratios[i] = walls[w][i] / walls[0][i];
        printf("%10.3f", select_double(ratios, rounds, rounds / 2));
    }
    printf("%12.2f ms\n", select_double(walls[0], rounds, rounds / 2) / 1e6);
    for (size_t w = 0; w < WAYS; w++)
        free(walls[w]);
    free(ratios);
    run_result_done(&result);
    unlink("output-bench.tmp");
}

int main(int argc, char **argv)
{
    if (argc == 4)
        return write_much(strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10));
    size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    const struct event_list none = {0};
    struct runner r;
    struct error err = {0};
    process_signals_catch();
    if (!rounds || runner_open(&r, &none, &err) < 0) {
        fprintf(stderr, "usage: output ROUNDS %s\n", err.message);
        return 1;
    }
    printf("wall time over that with /dev/null, median of %zu interleaved rounds\n%-36s", rounds,
           "");
    for (size_t w = 1; w < WAYS; w++)
        printf("%10s", ways[w].name);
    printf("%15s\n", "/dev/null");
    for (size_t i = 0; i < ARRAY_COUNT(loads); i++)
        run_load(&r, argv[0], i, rounds);
    runner_done(&r);
    return 0;
}
