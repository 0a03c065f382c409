/* SPDX-License-Identifier: MIT */
#include "store/store.h"
#include "analysis/dataset.h"
#include "base/memory.h"
#include "base/strings.h"
#include "store/sql.h"
#include "store/store_copy.h"
#include "store/store_internal.h"
#include "test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Each test has a store of its own, in a folder of its own.  With ASSAY_TEST_PG, the address of an
 * empty PostgreSQL database, each has a schema of its own there instead (tests/lab/store.py).
 */
static char folder[64];

static const char *address(void)
{
    return getenv("ASSAY_TEST_PG");
}

static const char *fresh_schema(const char *name)
{
    static char place[256];
    char text[128];
    struct error err = {0};
    CLEANUP(sql_closep) struct sql *sql = NULL;
    snprintf(text, sizeof(text), "CREATE SCHEMA IF NOT EXISTS \"%s\"", name);
    if (sql_open(&sql, address(), STORE_CREATE, &err) < 0 || sql_script(sql, text, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
    snprintf(place, sizeof(place), "%s?options=-csearch_path%%3D%s", address(), name);
    return place;
}

static const char *fresh_place(const char *name)
{
    static char place[128];
    if (address())
        return fresh_schema(name);
    if (!folder[0]) {
        strcpy(folder, "/tmp/assay-store-XXXXXX");
        if (!mkdtemp(folder))
            folder[0] = '\0';
    }
    snprintf(place, sizeof(place), "%s/%s.db", folder, name);
    return place;
}

__attribute__((destructor)) static void clean_up(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    if (folder[0] && system(command) != 0)
        perror(folder);
}

static struct store *open_new(const char *name)
{
    struct error err = {0};
    struct store *store = NULL;
    if (store_open(&store, fresh_place(name), STORE_CREATE, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
    return store;
}

static int64_t begin(struct store *store, const char *name, int64_t cells[2])
{
    static const char *const factors[] = {"size"}, *const first[] = {"1"}, *const second[] = {"2"};
    static const struct store_new_cell list[] = {{"size=1", "a 1", "abc", first},
                                                 {"size=2", "a 2", NULL, second}};
    struct store_new new = {.name = name,
                            .question = "?",
                            .spec_text = "name: x",
                            .spec_path = "x.yaml",
                            .selection = "",
                            .baseline = "size=1",
                            .headline = "wall\n",
                            .git_commit = "0123456789abcdef",
                            .environment = "{}",
                            .machine = "{\"m\":1}",
                            .seed = 7,
                            .factors = factors,
                            .factor_count = 1,
                            .cells = list,
                            .cell_count = 2};
    int64_t id = 0;
    struct error err = {0};
    if (store_begin(store, &new, &id, cells, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
    return id;
}

static int add(struct store *store, int64_t experiment, int64_t cell, uint64_t round, double wall,
               int status)
{
    struct error err = {0};
    int64_t metric = 0, cycles = 0, monitor = 0;
    store_metric_id(store, "wall", "ns", (struct metric_facts){.better = METRIC_LOWER}, "time",
                    &metric, &err);
    store_metric_id(store, "cycles", "", (struct metric_facts){.better = METRIC_NEITHER}, "counter",
                    &cycles, &err);
    store_metric_id(store, "vmstat.system.cs", "/s",
                    (struct metric_facts){.better = METRIC_NEITHER}, "monitor", &monitor, &err);
    struct store_value values[] = {{.metric = metric, .value = wall},
                                   {.metric = cycles, .value = 5, .enabled_ns = 9, .running_ns = 3},
                                   {.metric = monitor, .value = NAN}};
    uint64_t ticks[3] = {0, 1, 2};
    double points[3] = {1.5, 2.5, 3.5};
    struct store_series series = {.metric = monitor, .values = points};
    struct store_disturbance disturbance = {"steal", 12, "the host"};
    struct store_new_run run = {.cell = cell,
                                .round = round,
                                .started_at_ns = 1000,
                                .wall_ns = 10,
                                .status = status,
                                .layout = "",
                                .output = status ? "said" : NULL,
                                .values = values,
                                .value_count = 3,
                                .tick_ns = ticks,
                                .tick_count = 3,
                                .series = &series,
                                .series_count = 1,
                                .disturbances = &disturbance,
                                .disturbance_count = round == 1};
    return store_add_run(store, experiment, &run, &err);
}

TEST(values_come_back)
{
    CLEANUP(store_closep) struct store *store = open_new("values");
    int64_t cells[2];
    int64_t id = begin(store, "one", cells);
    CHECK_INT(add(store, id, cells[0], 0, 1.25, 0), 0);
    CHECK_INT(add(store, id, cells[1], 0, 2.5, 0), 0);
    CHECK_INT(add(store, id, cells[1], 1, 99, 256), 0); /* failed: no values of it */
    CHECK_INT(add(store, id, cells[1], 1, 2.75, 0), 0); /* tried again */
    struct dataset d;
    struct error err = {0};
    CHECK_INT(dataset_load(&d, store, id, &err), 0);
    CHECK_INT(d.factor_count, 1);
    CHECK_STR(d.factors[0], "size");
    CHECK_INT(d.cell_count, 2);
    CHECK_STR(d.cells[1].levels[0], "2");
    CHECK_STR(d.cells[0].build_id, "abc");
    CHECK_STR(d.cells[1].build_id, "");
    CHECK_INT(d.run_count, 4);
    CHECK_INT(d.runs[3].attempt, 1);
    size_t wall = dataset_metric(&d, "wall");
    CHECK(wall != DATASET_NONE);
    struct dataset_column column = dataset_column(&d, wall, 1);
    CHECK_INT(column.count, 2);
    CHECK_NEAR(column.values[1], 2.75, 0);
    CHECK_INT(column.rounds[1], 1);
    CHECK_INT(d.experiment.run_count, 4);
    CHECK_INT(d.experiment.failed_count, 1);
    CHECK_INT(d.experiment.disturbed_count, 2);
    CHECK(dataset_metric(&d, "vmstat.system.cs") == DATASET_NONE); /* NAN is no value */
    size_t position = 0;
    CHECK_INT(dataset_headline(&d, &position), wall);
    CHECK(dataset_headline(&d, &position) == DATASET_NONE);
    dataset_done(&d);
}

TEST(experiments_are_found)
{
    CLEANUP(store_closep) struct store *store = open_new("find");
    struct error err = {0};
    int64_t cells[2], found = 0;
    CHECK_INT(store_find(store, "last", &found, &err), -ENOENT);
    int64_t first = begin(store, "sort", cells), second = begin(store, "sort", cells);
    int64_t third = begin(store, "other_100%", cells);
    CHECK_INT(store_find(store, "last", &found, &err), 0);
    CHECK_INT(found, third);
    CHECK_INT(store_find(store, "sort", &found, &err), 0);
    CHECK_INT(found, second);
    CHECK_INT(store_find(store, "1", &found, &err), 0);
    CHECK_INT(found, first);
    CHECK_INT(store_find(store, "01234567", &found, &err), 0); /* a commit */
    CHECK_INT(found, third);
    CHECK_INT(store_find(store, "0%", &found, &err), -ENOENT);
    CHECK_INT(store_find(store, "nothing", &found, &err), -ENOENT);
    CHECK_CONTAINS(err.message, "assay list");
    CLEANUP(store_list_done) struct store_list list = {0};
    CHECK_INT(store_list(store, &(struct store_filter){.name = "sort"}, &list, &err), 0);
    CHECK_INT(list.count, 2);
    CHECK_INT(list.items[0].id, second);
    CHECK(list.items[0].alive); /* by this very process */
}

TEST(removal_takes_everything_along)
{
    CLEANUP(store_closep) struct store *store = open_new("remove");
    struct error err = {0};
    int64_t cells[2];
    int64_t id = begin(store, "one", cells);
    add(store, id, cells[0], 1, 1, 0);
    CHECK_INT(store_remove(store, id, &err), 0);
    CHECK_INT(store_remove(store, id, &err), -ENOENT);
    static const char *const queries[] = {
        "SELECT count(*) FROM run",         "SELECT count(*) FROM value",
        "SELECT count(*) FROM series",      "SELECT count(*) FROM cell",
        "SELECT count(*) FROM level",       "SELECT count(*) FROM document",
        "SELECT count(*) FROM disturbance", "SELECT count(*) FROM factor"};
    for (size_t i = 0; i < ARRAY_COUNT(queries); i++) {
        struct sql_rows *rows;
        CHECK_INT(sql_query(store->sql, &rows, &err, queries[i], NULL), 0);
        CHECK_INT(sql_next(rows, &err), 1);
        CHECK_INT(sql_i64(rows, 0), 0);
        sql_rows_done(rows);
    }
}

TEST(a_copy_is_the_same_and_made_once)
{
    CLEANUP(store_closep) struct store *from = open_new("from");
    CLEANUP(store_closep) struct store *to = open_new("to");
    struct error err = {0};
    int64_t cells[2], copy = 0;
    begin(to, "already there", cells);
    int64_t id = begin(from, "one", cells);
    add(from, id, cells[0], 0, 1.25, 0);
    add(from, id, cells[1], 1, 2.25, 0);
    enum copy_outcome outcome;
    CHECK_INT(store_copy(from, to, id, &copy, &outcome, &err), 0);
    CHECK_INT(outcome, COPY_DONE);
    CHECK(copy != id);
    struct dataset d;
    CHECK_INT(dataset_load(&d, to, copy, &err), 0);
    CHECK_STR(d.experiment.name, "one");
    CHECK_STR(d.experiment.state, "stopped"); /* its process does not run it there */
    CHECK_INT(d.run_count, 2);
    CHECK_NEAR(dataset_column(&d, dataset_metric(&d, "wall"), 1).values[0], 2.25, 0);
    CHECK_NEAR(dataset_column(&d, dataset_metric(&d, "cycles"), 0).values[0], 5, 0);
    dataset_done(&d);
    CLEANUP(memory_freep) char *machine = NULL;
    CHECK_INT(store_document(to, copy, "machine", &machine, &err), 0);
    CHECK_STR(machine, "{\"m\":1}");
    int64_t again = 0;
    CHECK_INT(store_copy(from, to, id, &again, &outcome, &err), 0);
    CHECK_INT(outcome, COPY_ALREADY_THERE);
    CHECK_INT(again, copy);
    add(from, id, cells[0], 2, 1.5, 0);
    CHECK_INT(store_copy(from, to, id, &again, &outcome, &err), 0);
    CHECK_INT(outcome, COPY_REPLACED);
    CHECK_INT(dataset_load(&d, to, again, &err), 0);
    CHECK_INT(d.run_count, 3);
    dataset_done(&d);
}

TEST(a_newer_schema_is_refused)
{
    struct error err = {0};
    char place[256];
    strcpy(place, fresh_place("newer"));
    struct store *store = open_new("newer");
    CHECK_INT(sql_script(store->sql, "UPDATE store SET version = 999", &err), 0);
    store_close(store);
    store = NULL;
    CHECK_INT(store_open(&store, place, STORE_READ, &err), -EPROTO);
    CHECK_CONTAINS(err.message, "newer version of assay");
    CHECK_INT(store_open(&store, place, STORE_CREATE, &err), -EPROTO);
}

TEST(what_is_no_store_says_so)
{
    struct error err = {0};
    struct store *store = NULL;
    if (address()) {
        CHECK_INT(store_open(&store, fresh_place("absent"), STORE_READ, &err), -EPROTO);
        CHECK_CONTAINS(err.message, "not an assay store");
        return;
    }
    CHECK_INT(store_open(&store, fresh_place("absent"), STORE_READ, &err), -ENOENT);
    CHECK_CONTAINS(err.message, "--db");
    FILE *file = fopen(fresh_place("text"), "w");
    for (int i = 0; i < 1000; i++)
        fputs("this is not a database\n", file);
    fclose(file);
    CHECK_INT(store_open(&store, fresh_place("text"), STORE_READ, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "not an assay store");
    file = fopen(fresh_place("empty"), "w");
    fclose(file);
    CHECK_INT(store_open(&store, fresh_place("empty"), STORE_READ, &err), -EPROTO);
}

/* An experiment whose process is gone can be taken over; a living one not. */
TEST(only_the_dead_are_taken_over)
{
    struct error err = {0};
    char place[256];
    strcpy(place, fresh_place("claim"));
    struct store *store = open_new("claim");
    int64_t cells[2];
    int64_t mine = begin(store, "mine", cells);
    store_close(store);
    pid_t pid = fork();
    if (pid == 0) {
        struct store *own = NULL;
        if (store_open(&own, place, STORE_CREATE, NULL) < 0)
            _exit(1);
        begin(own, "theirs", cells);
        _exit(0); /* without closing, as if killed */
    }
    int status;
    waitpid(pid, &status, 0);
    CHECK_INT(status, 0);
    store = NULL;
    CHECK_INT(store_open(&store, place, STORE_WRITE, &err), 0);
    int64_t theirs = 0;
    CHECK_INT(store_find(store, "theirs", &theirs, &err), 0);
    CHECK_INT(store_claim(store, theirs, false, &err), 0);
    CHECK_INT(store_claim(store, mine, false, &err), -EBUSY);
    CHECK_INT(store_claim(store, 12345, false, &err), -ENOENT);
    CHECK_INT(store_finish(store, mine, "done", &err), 0);
    CHECK_INT(store_claim(store, mine, false, &err), 0); /* nobody's now */
    store_close(store);
}

/* Two processes write at the same time; nothing is lost. */
TEST(writers_take_turns)
{
    enum { WRITERS = 4, RUNS = 25 };
    char place[256];
    strcpy(place, fresh_place("turns"));
    store_close(open_new("turns"));
    pid_t pids[WRITERS];
    for (int w = 0; w < WRITERS; w++) {
        pids[w] = fork();
        if (pids[w] == 0) {
            struct store *own = NULL;
            int64_t cells[2];
            if (store_open(&own, place, STORE_CREATE, NULL) < 0)
                _exit(1);
            int64_t id = begin(own, "writer", cells);
            for (int i = 0; i < RUNS; i++)
                if (add(own, id, cells[i % 2], (uint64_t)i, i, 0) < 0)
                    _exit(2);
            store_close(own);
            _exit(0);
        }
    }
    for (int w = 0; w < WRITERS; w++) {
        int status;
        waitpid(pids[w], &status, 0);
        CHECK_INT(status, 0);
    }
    struct error err = {0};
    CLEANUP(store_closep) struct store *store = NULL;
    CHECK_INT(store_open(&store, place, STORE_READ, &err), 0);
    CLEANUP(store_list_done) struct store_list list = {0};
    CHECK_INT(store_list(store, &(struct store_filter){0}, &list, &err), 0);
    CHECK_INT(list.count, WRITERS);
    for (size_t i = 0; i < list.count; i++)
        CHECK_INT(list.items[i].run_count, RUNS);
}
