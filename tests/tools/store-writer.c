/* SPDX-License-Identifier: MIT */
/*
 * Writes runs into a store as `assay run` does, without running anything:
 *
 *   store-writer PLACE NAME RUNS
 *
 * A line "ack UUID CELL ROUND" is printed when a run is acknowledged: from then on it must not be
 * lost.  tests/lab/writers.py kills many of these; bench/lab measures with them.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "base/strings.h"
#include "store/store.h"

#include <stdio.h>

/* What a run of a small command has: times, faults, switches, two metrics of its own. */
static const char *const metric_names[] = {"wall",
                                           "user",
                                           "sys",
                                           "peak-rss",
                                           "minor-faults",
                                           "major-faults",
                                           "voluntary-switches",
                                           "involuntary-switches",
                                           "blocks-read",
                                           "blocks-written",
                                           "throughput",
                                           "latency"};

static int begin(struct store *store, const char *name, int64_t *ret_id, int64_t cells[2],
                 struct error *err)
{
    static const char *const factors[] = {"v"}, *const first[] = {"a"}, *const second[] = {"b"};
    static const struct store_new_cell list[] = {{"v=a", "true a", NULL, first},
                                                 {"v=b", "true b", NULL, second}};
    struct store_new new = {.name = name,
                            .question = "",
                            .spec_text = "name: writer",
                            .spec_path = "writer.yaml",
                            .selection = "",
                            .baseline = "v=a",
                            .headline = "wall\n",
                            .git_commit = "",
                            .environment = "{}",
                            .machine = "{}",
                            .factors = factors,
                            .factor_count = 1,
                            .cells = list,
                            .cell_count = 2};
    return store_begin(store, &new, ret_id, cells, err);
}

static int add(struct store *store, int64_t experiment, int64_t cell, uint64_t round,
               struct error *err)
{
    struct store_value values[ARRAY_COUNT(metric_names)];
    for (size_t i = 0; i < ARRAY_COUNT(metric_names); i++) {
        values[i] = (struct store_value){.value = (double)(round * 100 + i)};
        int r = store_metric_id(store, metric_names[i], "",
                                (struct metric_facts){.better = METRIC_LOWER}, "time",
                                &values[i].metric, err);
        if (r < 0)
            return r;
    }
    struct store_new_run run = {.cell = cell,
                                .round = round,
                                .started_at_ns = clock_read_ns(CLOCK_REALTIME),
                                .wall_ns = 1000 + round,
                                .layout = "",
                                .values = values,
                                .value_count = ARRAY_COUNT(metric_names)};
    return store_add_run(store, experiment, &run, err);
}

static int write_runs(struct store *store, const char *name, uint64_t count, struct error *err)
{
    int64_t id = 0, cells[2];
    CLEANUP(store_experiment_done) struct store_experiment e = {0};
    int r = begin(store, name, &id, cells, err);
    if (r == 0)
        r = store_experiment(store, id, &e, err);
    for (uint64_t i = 0; r == 0 && i < count; i++) {
        r = add(store, id, cells[i % 2], i / 2, err);
        if (r == 0) {
            printf("ack %s %s %llu\n", e.uuid, i % 2 ? "v=b" : "v=a", (unsigned long long)(i / 2));
            fflush(stdout);
        }
    }
    return r == 0 ? store_finish(store, id, "done", err) : r;
}

int main(int argc, char **argv)
{
    struct error err = {0};
    uint64_t count;
    if (argc != 4 || parse_u64(argv[3], &count, &err) < 0) {
        fprintf(stderr, "usage: store-writer PLACE NAME RUNS\n");
        return 2;
    }
    CLEANUP(store_closep) struct store *store = NULL;
    if (store_open(&store, argv[1], STORE_CREATE, &err) < 0 ||
        write_runs(store, argv[2], count, &err) < 0) {
        fprintf(stderr, "store-writer: %s\n", err.message);
        return 1;
    }
    return 0;
}
