/* SPDX-License-Identifier: MIT */
/* What a page draws: along which factor, which cells, and what the axes and notes say. */
#include "base/memory.h"
#include "numbers/random.h"
#include "report/page/page.h"
#include "test.h"

#include <stdio.h>

static const struct metric_facts time_facts = {.better = METRIC_LOWER, .is_speed = true};
static const struct metric_facts rate_facts = {.better = METRIC_HIGHER};

static struct dataset *add_set(struct page *page, const char *baseline, const char *headline)
{
    struct embedded *e = &page->data;
    ARRAY_PUSH(e->documents, e->set_count, e->document_capacity) =
        (struct embedded_documents){memory_strdup(""), memory_strdup(""), memory_strdup("")};
    e->sets = memory_grow(e->sets, &e->set_capacity, e->set_count, sizeof(*e->sets));
    struct dataset *d = &e->sets[e->set_count - 1];
    dataset_start(d, "set");
    free(d->experiment.baseline);
    d->experiment.baseline = memory_strdup(baseline);
    free(d->experiment.headline);
    d->experiment.headline = memory_strdup(headline);
    return d;
}

static size_t add_cell(struct dataset *d, const char *a, const char *b)
{
    CLEANUP(memory_freep)
    char *label =
        memory_printf("%s=%s %s=%s", d->factors[0], a, d->factor_count > 1 ? d->factors[1] : "", b);
    const char *levels[] = {a, b};
    return dataset_add_cell(d, label, "x", levels);
}

static void put(struct dataset *d, size_t metric, size_t cell, double level, size_t rounds,
                struct rng *rng)
{
    for (uint32_t r = 0; r < rounds; r++)
        dataset_put(d, metric, cell, r, level * exp(0.003 * rng_normal(rng)));
}

static void prepare(struct page *page)
{
    struct error err = {0};
    for (size_t i = 0; i < page->data.set_count; i++) {
        dataset_settle(&page->data.sets[i]);
        dataset_index(&page->data.sets[i]);
        dataset_find_baselines(&page->data.sets[i]);
    }
    if (page_prepare(page, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
    page_plot(page);
}

static const struct plot *plot(const struct page *page, const char *id)
{
    for (size_t i = 0; i < page->plot_count; i++)
        if (str_eq(page->plots[i].id, id))
            return &page->plots[i];
    return NULL;
}

static const struct plot_series *series(const struct plot *p, const char *name)
{
    for (size_t i = 0; p && i < p->series_count; i++)
        if (p->series[i].name && str_eq(p->series[i].name, name))
            return &p->series[i];
    return NULL;
}

/* Variants a and b at three sizes; b is twice as fast at the largest. */
static void make_sizes(struct page *page, const char *metric, struct metric_facts facts)
{
    struct dataset *d = add_set(page, "variant=a", metric);
    struct rng rng;
    rng_seed(&rng, 4);
    dataset_add_factor(d, "variant");
    dataset_add_factor(d, "size");
    size_t m = dataset_add_metric(d, metric, "ns", "metric", facts);
    static const char *const sizes[] = {"64", "1k", "16k"};
    for (size_t v = 0; v < 2; v++)
        for (size_t s = 0; s < 3; s++)
            put(d, m, add_cell(d, v ? "b" : "a", sizes[s]),
                100.0 * (double)(s + 1) * (v ? (s == 2 ? 0.5 : 1.5) : 1), 12, &rng);
}

TEST(axes_are_sorted_by_number_where_all_are_numbers)
{
    CLEANUP(dataset_done) struct dataset d;
    dataset_start(&d, "x");
    dataset_add_factor(&d, "f");
    dataset_add_factor(&d, "g");
    static const char *const numbers[] = {"1k", "64", "1.5", "64"};
    static const char *const words[] = {"50%", "9%", "100%", "9%"};
    for (size_t i = 0; i < 4; i++)
        add_cell(&d, numbers[i], words[i]);
    struct page_axis f, g;
    page_axis_init(&f, &d, 0);
    CHECK_INT(f.count, 3); /* each once */
    CHECK(f.numbers != NULL);
    CHECK_STR(f.levels[0], "1.5");
    CHECK_NEAR(f.numbers[2], 1024, 0);
    page_axis_init(&g, &d, 1);
    CHECK(g.numbers != NULL); /* shares are numbers, as in answers */
    CHECK_STR(g.levels[0], "9%");
    CHECK_STR(g.levels[2], "100%");
    page_axis_done(&f);
    page_axis_done(&g);
    add_cell(&d, "many", "1%");
    page_axis_init(&f, &d, 0);
    CHECK(f.numbers == NULL);
    CHECK_STR(f.levels[0], "1k"); /* in the order of the cells */
    page_axis_done(&f);
}

TEST(level_numbers)
{
    double n = 0;
    CHECK(dataset_level_number("64k", &n) && n == 65536);
    CHECK(dataset_level_number("12.5%", &n) && n == 12.5);
    CHECK(!dataset_level_number("%", &n));
    CHECK(!dataset_level_number("nan", &n));
    CHECK(!dataset_level_number("inf%", &n));
    CHECK(!dataset_level_number("", &n));
    CHECK(!dataset_level_number("fast", &n));
}

TEST(where_names_only_what_varies)
{
    CLEANUP(page_done) struct page page = {0};
    make_sizes(&page, "wall", time_facts);
    const struct dataset *d = &page.data.sets[0];
    CLEANUP(memory_freep) char *all = page_where(d, 1, DATASET_NONE, DATASET_NONE);
    CHECK_STR(all, "variant=a size=1k");
    CLEANUP(memory_freep) char *one = page_where(d, 1, 0, 0);
    CHECK_STR(one, "size=1k");
    CHECK(page_is_first(d, 0, 1, DATASET_NONE));
    CHECK(!page_is_first(d, 1, 1, DATASET_NONE)); /* the same but for the size */
    CHECK(page_is_first(d, 3, 1, DATASET_NONE));
    CHECK_INT(dataset_cell_with(d, 1, 0, "b"), 4);
    CHECK(dataset_cell_with(d, 1, 0, "c") == DATASET_NONE);
}

TEST(a_curve_for_each_variant_and_the_ratio_with_its_crossing)
{
    CLEANUP(page_done) struct page page = {0};
    make_sizes(&page, "wall", time_facts);
    prepare(&page);
    const struct plot *curve = plot(&page, "curve"), *ratio = plot(&page, "ratio");
    CHECK(curve && series(curve, "a") && series(curve, "b"));
    CHECK(ratio && series(ratio, "b") && !series(ratio, "a"));
    if (!curve || !ratio || !series(curve, "b") || !series(ratio, "b"))
        return;
    CHECK_INT(series(curve, "b")->count, 3);
    CHECK_NEAR(series(curve, "b")->points[1].x, 1024, 0);
    CHECK_NEAR(series(curve, "b")->points[1].y, 300, 5);
    CHECK_STR(curve->x.unit, "");
    CHECK_NEAR(series(ratio, "b")->points[2].y, 0.5, 0.02);
    CHECK_STR(ratio->note, "Below 1 is better.");
    CHECK_CONTAINS(ratio->title, "ratio to a: wall v size");
    bool crosses = false;
    for (size_t i = 0; i < ratio->mark_count; i++)
        crosses |= strncmp(ratio->marks[i].label, "b crosses at ", 13) == 0;
    CHECK(crosses);
}

TEST(the_rows_and_the_ratio_plot_agree)
{
    CLEANUP(page_done) struct page page = {0};
    make_sizes(&page, "wall", time_facts);
    prepare(&page);
    const struct plot_series *s = series(plot(&page, "ratio"), "b");
    for (size_t k = 0; s && k < s->count; k++) {
        bool found = false;
        for (size_t i = 0; i < page.row_count; i++)
            found |= page.rows[i].compared && page.rows[i].comparison.estimate == s->points[k].y &&
                     page.rows[i].comparison.low == s->points[k].low;
        CHECK(found);
    }
    CHECK(s && s->count == 3);
}

TEST(workers_get_the_curve_of_scaling)
{
    CLEANUP(page_done) struct page page = {0};
    struct dataset *d = add_set(&page, "", "rate");
    struct rng rng;
    rng_seed(&rng, 6);
    dataset_add_factor(d, "threads");
    size_t m = dataset_add_metric(d, "rate", "op/s", "metric", rate_facts);
    for (int i = 0; i < 6; i++) {
        char threads[8];
        double n = 1 << i;
        snprintf(threads, sizeof(threads), "%d", 1 << i);
        put(d, m, add_cell(d, threads, ""), 100 * n / (1 + 0.1 * (n - 1)), 10, &rng);
    }
    prepare(&page);
    const struct plot *p = plot(&page, "scaling");
    CHECK(p && !plot(&page, "curve"));
    const struct plot_series *ideal = series(p, "ideal: twice the workers, twice the throughput");
    CHECK(ideal && ideal->count == 6);
    if (ideal)
        CHECK_NEAR(ideal->points[5].y / ideal->points[0].y, 32, 1e-9);
    CHECK_CONTAINS(p ? p->note : "", "rate: contention ");
    CHECK(series(p, "rate: fitted law") != NULL);
    CHECK(!plot(&page, "ratio")); /* there are no rivals */
}

TEST(percentiles_of_one_family_are_one_plot_in_their_order)
{
    CLEANUP(page_done) struct page page = {0};
    struct dataset *d = add_set(&page, "", "wall");
    struct rng rng;
    rng_seed(&rng, 8);
    dataset_add_factor(d, "variant");
    static const char *const names[] = {"wall",        "lat_p999", "lat_p50",   "lat_p99",
                                        "p99.9_other", "pages",    "lat_p50_x", "up5"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        dataset_add_metric(d, names[i], "ns", "metric", time_facts);
    for (size_t c = 0; c < 2; c++) {
        size_t cell = add_cell(d, c ? "b" : "a", "");
        for (size_t i = 0; i < ARRAY_COUNT(names); i++)
            put(d, i, cell, 100.0 * (double)(i + 1), 10, &rng);
    }
    prepare(&page);
    const struct plot *p = plot(&page, "percentiles");
    CHECK(p && !plot(&page, "percentiles-2"));
    if (!p)
        return;
    CHECK_STR(p->title, "percentiles: lat");
    CHECK_INT(p->x.word_count, 3);
    CHECK_STR(p->x.words[0], "p50");
    CHECK_STR(p->x.words[2], "p99.9");
    CHECK_NEAR(series(p, "a")->points[2].y, 200, 3); /* lat_p999 */
}

TEST(every_run_is_a_dot_and_the_distribution_ends_at_one)
{
    CLEANUP(page_done) struct page page = {0};
    make_sizes(&page, "wall", time_facts);
    prepare(&page);
    const struct plot *strip = plot(&page, "strip"), *ecdf = plot(&page, "ecdf");
    size_t dots = 0;
    for (size_t i = 0; strip && i < strip->series_count; i++)
        dots += strip->series[i].style & PLOT_DOTS ? strip->series[i].count : 0;
    CHECK_INT(dots, 6 * 12);
    const struct plot_series *s = series(ecdf, "a");
    CHECK(s != NULL);
    if (!s)
        return;
    CHECK_NEAR(s->points[0].y, 0, 0);
    CHECK_NEAR(s->points[s->count - 1].y, 1, 0);
    for (size_t k = 1; k < s->count; k++)
        CHECK(s->points[k].x >= s->points[k - 1].x && s->points[k].y >= s->points[k - 1].y);
}

TEST(two_experiments_are_one_view_with_sides)
{
    CLEANUP(page_done) struct page page = {0};
    make_sizes(&page, "wall", time_facts);
    make_sizes(&page, "wall", time_facts);
    prepare(&page);
    CHECK(page.is_joint && page.is_compared);
    CHECK_INT(page.view->cell_count, 12);
    CHECK_STR(page.view->cells[0].levels[0], "base");
    CHECK_STR(page.view->cells[11].levels[0], "new");
    CHECK(plot(&page, "pairs") != NULL);
    struct comparison c;
    CHECK(page_compare(&page, 0, 0, 6, &c));
    CHECK(!c.paired); /* rounds of two experiments are not the same rounds */
    CHECK_NEAR(c.estimate, 1, 0.01);
}

TEST(histories_name_commits_and_say_when_they_are_too_short)
{
    CLEANUP(page_done) struct page page = {0};
    struct embedded *e = &page.data;
    enum { COUNT = 3 };
    struct embedded_history *h = &ARRAY_PUSH(e->histories, e->history_count, e->history_capacity);
    *h = (struct embedded_history){.label = memory_strdup(""),
                                   .metric = memory_strdup("wall"),
                                   .unit = memory_strdup("ns"),
                                   .medians = memory_zalloc(COUNT, sizeof(double)),
                                   .lows = memory_zalloc(COUNT, sizeof(double)),
                                   .highs = memory_zalloc(COUNT, sizeof(double)),
                                   .experiments = memory_zalloc(COUNT, sizeof(int64_t)),
                                   .commits = memory_zalloc(COUNT, sizeof(char *)),
                                   .count = COUNT};
    for (size_t i = 0; i < COUNT; i++) {
        h->medians[i] = i == 1 ? (double)NAN : 100;
        h->experiments[i] = (int64_t)i + 5;
        h->commits[i] = memory_strdup(i ? "" : "0123456789abcdef");
    }
    page_plot_time(&page);
    const struct plot *p = plot(&page, "history");
    CHECK(p != NULL);
    if (!p)
        return;
    CHECK_STR(p->title, "history: wall");
    CHECK_STR(p->x.words[0], "5 0123456");
    CHECK_STR(p->x.words[1], "6");
    CHECK_INT(p->series[0].count, 2); /* what is not known is not drawn */
    CHECK_CONTAINS(p->note, "needs eight experiments");
    CHECK_INT(p->mark_count, 0);
}

TEST(a_level_that_changed_is_marked)
{
    CLEANUP(page_done) struct page page = {0};
    struct embedded *e = &page.data;
    enum { COUNT = 40 };
    struct rng rng;
    rng_seed(&rng, 2);
    struct embedded_history *h = &ARRAY_PUSH(e->histories, e->history_count, e->history_capacity);
    *h = (struct embedded_history){.label = memory_strdup("size=1"),
                                   .metric = memory_strdup("wall"),
                                   .unit = memory_strdup("ns"),
                                   .medians = memory_zalloc(COUNT, sizeof(double)),
                                   .lows = memory_zalloc(COUNT, sizeof(double)),
                                   .highs = memory_zalloc(COUNT, sizeof(double)),
                                   .experiments = memory_zalloc(COUNT, sizeof(int64_t)),
                                   .commits = memory_zalloc(COUNT, sizeof(char *)),
                                   .count = COUNT};
    for (size_t i = 0; i < COUNT; i++) {
        h->medians[i] = (i < 20 ? 100 : 130) * exp(0.01 * rng_normal(&rng));
        h->commits[i] = memory_strdup("");
    }
    page_plot_time(&page);
    const struct plot *p = plot(&page, "history");
    CHECK(p && p->mark_count == 1);
    if (!p || p->mark_count != 1)
        return;
    CHECK_NEAR(p->marks[0].at, 19.5, 0);
    CHECK_STR(p->marks[0].label, "changed: ×1.3");
    CHECK_CONTAINS(p->note, "The level changed once");
    CHECK_STR(p->title, "history: wall, size=1");
}

TEST(an_empty_page_is_nothing)
{
    CLEANUP(page_done) struct page page = {0};
    prepare(&page);
    CHECK_INT(page.plot_count, 0);
    CHECK_STR(page.title, "nothing");
}

TEST(plots_of_one_kind_have_ids_of_their_own)
{
    CLEANUP(page_done) struct page page = {0};
    CHECK_STR(page_add_plot(&page, "curve", "%s", "a")->id, "curve");
    CHECK_STR(page_add_plot(&page, "curve", "%s", "b")->id, "curve-2");
    CHECK_STR(page_add_plot(&page, "strip", "%s", "c")->id, "strip");
    CHECK_STR(page.plots[1].title, "b");
}

TEST(plots_side_by_side_have_one_scale_with_room_for_every_interval)
{
    CLEANUP(page_done) struct page page = {0};
    struct dataset *d = add_set(&page, "", "wall");
    struct rng rng;
    rng_seed(&rng, 7);
    dataset_add_factor(d, "depth");
    dataset_add_factor(d, "size_bytes");
    size_t m = dataset_add_metric(d, "wall", "ns", "metric", time_facts);
    static const char *const modes[] = {"1", "2", "3", "4"}, *const sizes[] = {"64", "1024"};
    for (size_t k = 0; k < ARRAY_COUNT(modes); k++)
        for (size_t s = 0; s < ARRAY_COUNT(sizes); s++) {
            size_t cell = add_cell(d, modes[k], sizes[s]);
            for (uint32_t r = 0; r < 12; r++) /* one of them is noisy */
                dataset_put(d, m, cell, r, 100 * exp((k == 2 ? 0.5 : 0.001) * rng_normal(&rng)));
        }
    prepare(&page);
    const struct plot *first = NULL;
    double low = INFINITY, high = -INFINITY;
    size_t count = 0;
    for (size_t i = 0; i < page.plot_count; i++) {
        const struct plot *p = &page.plots[i];
        if (!str_eq(p->kind, "curve") || !p->group)
            continue;
        first = first ? first : p;
        count++;
        CHECK_NEAR(p->y.low, first->y.low, 0);
        CHECK_NEAR(p->y.high, first->y.high, 0);
        CHECK_STR(p->x.unit, "bytes");
        for (size_t n = 0; n < p->series[0].count; n++) {
            low = fmin(low, p->series[0].points[n].low);
            high = fmax(high, p->series[0].points[n].high);
        }
    }
    CHECK_INT(count, 4);
    if (!first)
        return;
    CHECK(high > 1.2 * low); /* the intervals of the noisy one */
    CHECK_NEAR(first->y.low, low, 1e-9);
    CHECK_NEAR(first->y.high, high, 1e-9);
}

TEST(only_bytes_are_bytes)
{
    static const struct {
        const char *factor, *unit;
    } names[] = {{"bytes", "bytes"}, {"block_bytes", "bytes"}, {"Bytes per call", "bytes"},
                 {"size", ""},       {"kilobytes", ""},        {"bytesize", ""}};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        CLEANUP(page_done) struct page page = {0};
        struct dataset *d = add_set(&page, "", "wall");
        struct rng rng;
        rng_seed(&rng, 1);
        dataset_add_factor(d, names[i].factor);
        size_t m = dataset_add_metric(d, "wall", "ns", "metric", time_facts);
        for (size_t s = 0; s < 3; s++)
            put(d, m, add_cell(d, (const char *const[]){"1", "2", "4"}[s], ""), 100, 8, &rng);
        prepare(&page);
        const struct plot *curve = page.first.curve;
        CHECK(curve);
        if (curve)
            CHECK_STR(curve->x.unit, names[i].unit);
    }
}
