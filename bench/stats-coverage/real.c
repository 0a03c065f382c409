/* SPDX-License-Identifier: MIT */
/* See real.h. */
#include "real.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"
#include "rivals.h"
#include "stats/comparison.h"
#include "stats/summary.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

enum { INTERVALS = 4 };
static const char *const interval_names[INTERVALS] = {"assay", "signed rank", "t of logs",
                                                      "median, BCa"};

static int time_once(char *const *argv, double *ret_seconds, struct error *err)
{
    struct process_spec spec = {.argv = argv, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    struct process_result result;
    pid_t pid;
    uint64_t start = clock_now_ns();
    int r = process_spawn(&spec, &pid, err);
    if (r == 0)
        r = process_wait(pid, &result, err);
    if (r == 0 && result.status != 0)
        r = error_set(err, -EIO, "the command failed");
    if (r == 0)
        *ret_seconds = (double)(clock_now_ns() - start) / 1e9;
    return r;
}

static int measure(char *const *argv, size_t rounds, double *first, double *second,
                   struct error *err)
{
    struct rng rng;
    rng_seed(&rng, 1);
    for (size_t i = 0; i < rounds; i++) {
        double *values[2] = {first, second};
        size_t start = (size_t)rng_below(&rng, 2);
        int r = time_once(argv, &values[start][i], err);
        if (r == 0)
            r = time_once(argv, &values[1 - start][i], err);
        if (r < 0)
            return r;
    }
    return 0;
}

static void print_sittings(const double *first, const double *second, size_t rounds, size_t size)
{
    size_t sittings = rounds / size, alarms[INTERVALS + 2] = {0};
    double *widths CLEANUP(memory_freep) =
        memory_alloc((INTERVALS + 1) * (sittings + 1) * sizeof(double));
    struct rng rng;
    rng_seed(&rng, 2);
    for (size_t s = 0; s < sittings; s++) {
        const double *a = first + s * size, *b = second + s * size;
        double logs[RIVAL_VALUES_MAX];
        struct comparison c = {0};
        for (size_t i = 0; i < size; i++)
            logs[i] = log(b[i] / a[i]);
        stats_compare_paired(a, b, size, 0.95, &c, NULL);
        struct interval found[INTERVALS] = {{log(c.low), log(c.high)},
                                            rival_signed_rank(logs, size),
                                            rival_student(logs, size),
                                            rival_bca(logs, size, &rng)};
        for (size_t k = 0; k < INTERVALS; k++) {
            alarms[k] += found[k].low > 0 || found[k].high < 0;
            widths[k * sittings + s] = found[k].high - found[k].low;
        }
        alarms[INTERVALS] += rival_hyperfine_differs(a, b, size);
        alarms[INTERVALS + 1] += rival_robot_differs(a, b, size);
    }
    printf("%6zu %9zu", size, sittings);
    for (size_t k = 0; k < INTERVALS; k++)
        printf("  %5.1f %5.2f", 100 * (double)alarms[k] / (double)sittings,
               100 * stats_median(widths + k * sittings, sittings, widths + INTERVALS * sittings));
    printf("  %9.1f  %5.1f\n", 100 * (double)alarms[INTERVALS] / (double)sittings,
           100 * (double)alarms[INTERVALS + 1] / (double)sittings);
}

int real_print(char *const *argv, size_t rounds, struct error *err)
{
    double *first CLEANUP(memory_freep) = memory_alloc(2 * (rounds + 1) * sizeof(double));
    double *second = first + rounds + 1;
    int r = measure(argv, rounds, first, second, err);
    if (r < 0)
        return r;
    printf("%s against itself, %zu rounds: sittings called different in %%, and the median width "
           "of the\n95 %% interval in %% of the time\n\nrounds  sittings",
           argv[0], rounds);
    for (size_t k = 0; k < INTERVALS; k++)
        printf("%13s", interval_names[k]);
    printf("  hyperfine  robot\n");
    static const size_t sizes[] = {10, 20, 50, 100};
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++)
        if (rounds / sizes[i] > 0)
            print_sittings(first, second, rounds, sizes[i]);
    return 0;
}
