/* SPDX-License-Identifier: MIT */
/* Differences within nodes, and nodes that stand out. */
#include "analysis/nodes.h"
#include "analysis/compare.h"
#include "base/memory.h"
#include "base/strings.h"
#include "numbers/random.h"
#include "report/text/nodes.h"
#include "test.h"

#include <stdio.h>
#include <unistd.h>

/* Cells a and b (10 % more), as many rounds as given, round r on node r % nodes.  Node 2 shows
 * everything `slow` times as high; there b is `other` times a.  A stray cell's rounds are on the
 * next node. */
struct made {
    struct store *store;
    int64_t id;
    char path[64];
};

static double noise(struct rng *rng)
{
    return 1 + 0.01 * ((double)rng_below(rng, 1000) / 500 - 1);
}

static struct made make(size_t rounds, size_t nodes, double slow, double other)
{
    static const char *const factors[] = {"v"};
    static const char *const values[] = {"a", "b", "stray"};
    struct store_new_cell cells[3];
    char labels[3][16];
    for (size_t c = 0; c < 3; c++) {
        snprintf(labels[c], sizeof(labels[c]), "v=%s", values[c]);
        cells[c] =
            (struct store_new_cell){.label = labels[c], .command = "true", .values = &values[c]};
    }
    struct store_new new = {.name = "n",
                            .question = "",
                            .spec_text = "x",
                            .spec_path = "x",
                            .selection = "",
                            .baseline = "v=a",
                            .headline = "m\n",
                            .git_commit = "",
                            .environment = "{}",
                            .machine = "{}",
                            .factors = factors,
                            .factor_count = 1,
                            .cells = cells,
                            .cell_count = 3};
    struct made made = {0};
    struct error err = {0};
    int64_t ids[3], metric;
    struct rng rng;
    rng_seed(&rng, 4);
    snprintf(made.path, sizeof(made.path), "/tmp/assay-nodes-%d.db", (int)getpid());
    unlink(made.path);
    if (store_open(&made.store, made.path, STORE_CREATE, &err) < 0 ||
        store_begin(made.store, &new, &made.id, ids, &err) < 0 ||
        store_metric_id(made.store, "m", "B", (struct metric_facts){.better = METRIC_LOWER},
                        "metric", &metric, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
    for (size_t r = 0; r < rounds; r++)
        for (size_t c = 0; c < 3; c++) {
            size_t node = (r + (c == 2)) % nodes;
            char layout[32];
            snprintf(layout, sizeof(layout), "node=n%zu", node);
            double b = node == 2 ? other : 1.1;
            struct store_value value = {.metric = metric,
                                        .value = 100 * (c == 1 ? b : 1) * (node == 2 ? slow : 1) *
                                                 noise(&rng)};
            struct store_new_run run = {.cell = ids[c],
                                        .round = r,
                                        .started_at_ns = 1 + r * 10 + c,
                                        .layout = layout,
                                        .values = &value,
                                        .value_count = 1};
            CHECK_INT(store_add_run(made.store, made.id, &run, &err), 0);
        }
    for (size_t n = 0; n < nodes; n++) {
        char kind[32], text[120];
        snprintf(kind, sizeof(kind), "node:n%zu", n);
        snprintf(text, sizeof(text), "{\"node\":\"n%zu\",\"cpu\":\"%s\",\"kernel\":\"6.1\"}", n,
                 n == 2 ? "Slow" : "Fast");
        CHECK_INT(store_add_document(made.store, made.id, kind, text, &err), 0);
    }
    return made;
}

static void end(struct made *made)
{
    store_close(made->store);
    unlink(made->path);
}

static void load(struct made *made, struct dataset *d)
{
    struct error err = {0};
    if (dataset_load(d, made->store, made->id, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
}

TEST(only_runs_of_the_same_node_are_paired)
{
    struct made made = make(12, 4, 2, 1.1);
    struct dataset d;
    load(&made, &d);
    CHECK_INT(d.node_count, 4);
    double first[12], second[12];
    struct dataset_column a = dataset_column(&d, 0, 0), b = dataset_column(&d, 0, 1),
                          stray = dataset_column(&d, 0, 2);
    CHECK_INT(judge_pair_rounds(&a, &b, first, second), 12);
    CHECK_INT(judge_pair_rounds(&a, &stray, first, second), 0);
    struct comparison c;
    CHECK(judge_cells(&d, 0, 0, 1, &c));
    CHECK_NEAR(c.estimate, 1.1, 0.02); /* the slow node does not matter */
    CHECK(c.high - c.low < 0.05);
    CHECK_STR(d.nodes[0].name, "n0");
    CLEANUP(memory_freep) char *cpu = nodes_property(&d, 2, "cpu");
    CHECK_STR(cpu, "Slow");
    dataset_done(&d);
    end(&made);
}

TEST(a_slow_node_is_named)
{
    struct made made = make(32, 4, 1.3, 1.1);
    struct dataset d;
    load(&made, &d);
    struct nodes_view v;
    nodes_of_metric(&d, 0, &v);
    CHECK_INT(v.outlier_count, 1);
    CHECK(v.shares[2].is_outlier);
    CHECK_NEAR(v.shares[2].ratio, 1.3, 0.05);
    CHECK_NEAR(v.shares[0].ratio, 1, 0.02);
    nodes_view_done(&v);
    struct judge_sides sides = {.base = &d, .new = &d, .new_cell = 1};
    nodes_of_difference(&sides, &v);
    CHECK_INT(v.outlier_count, 0); /* there everything is slow alike */
    CHECK_NEAR(v.shares[2].change, 1.1, 0.03);
    nodes_view_done(&v);
    CLEANUP(strbuf_done) struct strbuf out = {0};
    report_nodes_text(&out, &d);
    CHECK(strstr(strbuf_text(&out), "node n2 is an outlier: its m is 1.3"));
    dataset_done(&d);
    end(&made);
}

TEST(a_node_with_another_difference_is_named)
{
    struct made made = make(48, 4, 1, 0.9);
    struct dataset d;
    struct compare c;
    struct error err = {0};
    load(&made, &d);
    CHECK_INT(compare_levels(&c, &d, "v=a", "v=b", &err), 0);
    CLEANUP(strbuf_done) struct strbuf out = {0};
    report_compare_nodes_text(&out, &c);
    CHECK(strstr(strbuf_text(&out), "node n2 is an outlier: new / base is 0.9"));
    CHECK(strstr(strbuf_text(&out), "by cpu: Fast 1."));
    CHECK(!strstr(strbuf_text(&out), "by kernel"));
    compare_done(&c);
    dataset_done(&d);
    end(&made);
}

TEST(alike_nodes_are_not_named)
{
    struct made made = make(48, 6, 1, 1.1);
    struct dataset d;
    struct nodes_view v;
    load(&made, &d);
    nodes_of_metric(&d, 0, &v);
    CHECK_INT(v.outlier_count, 0);
    nodes_view_done(&v);
    dataset_done(&d);
    end(&made);
}

TEST(of_two_nodes_neither_is_the_outlier)
{
    struct made made = make(32, 2, 1, 1.1);
    struct dataset d;
    struct nodes_view v;
    load(&made, &d);
    nodes_of_metric(&d, 0, &v);
    CHECK_INT(v.outlier_count, 0);
    nodes_view_done(&v);
    dataset_done(&d);
    end(&made);
}
