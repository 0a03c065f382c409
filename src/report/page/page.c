/* SPDX-License-Identifier: MIT */
/* The page's data becomes what is shown: two experiments are joined, cells compared, rows made. */
#include "report/page/page.h"
#include "analysis/sparse.h"
#include "base/memory.h"
#include "report/text/experiment.h"
#include "spec/spec.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

void page_done(struct page *page)
{
    if (page->has_compare)
        compare_done(&page->compare);
    if (page->has_answers)
        answers_done(&page->answers);
    if (page->has_pair)
        flame_pair_done(&page->pair);
    for (size_t i = 0; i < page->plot_count; i++)
        plot_done(&page->plots[i]);
    for (size_t i = 0; i < page->why_count; i++)
        page_why_done(&page->whys[i]);
    page_first_done(&page->first);
    free(page->whys);
    free(page->plots);
    free(page->rows);
    free(page->view_baseline);
    free(page->title);
    strbuf_done(&page->notes);
    if (page->is_joint)
        dataset_done(&page->joint);
    embedded_done(&page->data);
    *page = (struct page){0};
}

/* ---- two experiments as one ---- */

static size_t joint_metric(struct dataset *to, const struct store_metric *m)
{
    size_t at = 0;
    while (at < to->metric_count && !str_eq(to->metrics[at].name, m->name))
        at++;
    if (at == to->metric_count)
        ARRAY_PUSH(to->metrics, to->metric_count, to->metric_capacity) =
            (struct store_metric){.id = (int64_t)at + 1,
                                  .name = memory_strdup(m->name),
                                  .unit = memory_strdup(m->unit),
                                  .facts = m->facts,
                                  .kind = memory_strdup(m->kind)};
    return at;
}

static void join_cell(struct dataset *to, const struct dataset *from, size_t cell, const char *side)
{
    const struct dataset_cell *c = &from->cells[cell];
    struct dataset_cell *into = &ARRAY_PUSH(to->cells, to->cell_count, to->cell_capacity);
    *into = *c;
    into->label = memory_printf("%s: %s", side, c->label);
    into->command = memory_strdup(c->command);
    into->build_id = memory_strdup(c->build_id);
    into->last_words = c->last_words ? memory_strdup(c->last_words) : NULL;
    into->levels = memory_zalloc(to->factor_count + 1, sizeof(char *));
    into->levels[0] = memory_strdup(side);
    for (size_t f = 1; f < to->factor_count; f++) {
        size_t same = dataset_factor(from, to->factors[f]);
        into->levels[f] = memory_strdup(same == DATASET_NONE ? "" : c->levels[same]);
    }
}

static void join(struct page *page)
{
    struct dataset *to = &page->joint;
    const struct dataset *sets = page->data.sets;
    size_t capacity = 0, count = 0, value_capacity = 0;
    struct dataset_value *values = NULL;
    page->is_joint = true;
    const struct store_experiment *e = &sets[1].experiment;
    to->experiment = (struct store_experiment){
        .uuid = memory_strdup(""),
        .name = memory_strdup(e->name),
        .question = memory_strdup(e->question),
        .state = memory_strdup(e->state),
        .git_commit = memory_strdup(""),
        .selection = memory_strdup(e->selection),
        .baseline = memory_strdup("side=base"),
        .headline = memory_strdup(e->headline),
        .spec_path = memory_strdup(""),
        .spec_hash = memory_strdup(""),
        .seed = e->seed,
    };
    ARRAY_PUSH(to->factors, to->factor_count, capacity) = memory_strdup("side");
    for (size_t f = 0; f < sets[0].factor_count; f++)
        ARRAY_PUSH(to->factors, to->factor_count, capacity) = memory_strdup(sets[0].factors[f]);
    for (size_t s = 0; s < 2; s++) {
        const struct dataset *d = &sets[s];
        size_t first = to->cell_count;
        for (size_t c = 0; c < d->cell_count; c++)
            join_cell(to, d, c, s ? "new" : "base");
        for (size_t m = 0; m < d->metric_count; m++) {
            size_t metric = joint_metric(to, &d->metrics[m]);
            for (size_t c = 0; c < d->cell_count; c++) {
                struct dataset_column column = dataset_column(d, m, c);
                for (size_t i = 0; i < column.count; i++)
                    ARRAY_PUSH(values, count, value_capacity) =
                        (struct dataset_value){.value = column.values[i],
                                               .metric = (uint32_t)metric,
                                               .cell = (uint32_t)(first + c),
                                               .round = column.rounds[i]};
            }
        }
    }
    dataset_deal(to, values, count);
    dataset_index(to);
    dataset_find_baselines(to);
    free(values);
    page->view = to;
}

/* ---- rows ---- */

static void take_judged(struct page_row *row, const struct compare_row *from)
{
    const struct judge_row *j = &from->judged;
    row->compared = true;
    row->base = j->base;
    row->new = j->new;
    row->comparison = j->comparison;
    row->verdict = j->verdict;
    row->p_adjusted = j->p_adjusted;
    row->changed = j->changed;
    row->is_noise = !row->headline && (!j->changed || from->folded_into != COMPARE_NONE ||
                                       from->is_detail || from->is_negligible);
}

/* Rows of one experiment: each cell beside its baseline. */
static void add_cell_rows(struct page *page, size_t metric, bool headline)
{
    const struct dataset *d = page->view;
    for (size_t c = 0; c < d->cell_count; c++) {
        struct page_row row = {.metric = metric,
                               .cell = c,
                               .base_cell = d->cells[c].baseline,
                               .label = d->cells[c].label,
                               .headline = headline,
                               .is_noise = !headline,
                               .p_adjusted = NAN};
        if (!dataset_figures(d, metric, c, &row.new, &row.interval))
            continue;
        const struct compare_row *from = compare_find(&page->compare, metric, c);
        if (from)
            take_judged(&row, from);
        ARRAY_PUSH(page->rows, page->row_count, page->row_capacity) = row;
    }
}

static void make_cell_rows(struct page *page)
{
    const struct dataset *d = page->view;
    CLEANUP(memory_freep) bool *is_headline = memory_zalloc(d->metric_count + 1, sizeof(bool));
    size_t position = 0, m;
    compare_baselines(&page->compare, d);
    page->has_compare = true;
    while ((m = dataset_headline(d, &position)) != DATASET_NONE) {
        if (!is_headline[m])
            add_cell_rows(page, m, true);
        is_headline[m] = true;
    }
    for (m = 0; m < d->metric_count; m++)
        if (!is_headline[m])
            add_cell_rows(page, m, false);
}

static size_t view_cell(const struct page *page, size_t set, size_t cell)
{
    return set && page->is_joint ? page->data.sets[0].cell_count + cell : cell;
}

static void make_compare_rows(struct page *page)
{
    const struct compare *c = &page->compare;
    for (size_t i = 0; i < c->row_count; i++) {
        const struct compare_row *from = &c->rows[i];
        const struct compare_pair *pair = &c->pairs[from->pair];
        struct page_row row = {.metric = dataset_metric(page->view, from->metric->name),
                               .cell = view_cell(page, 1, pair->new_cell),
                               .base_cell = pair->base_cell,
                               .label = pair->label[0] ? pair->label : "everything",
                               .headline = from->judged.headline};
        if (row.metric == DATASET_NONE ||
            !dataset_figures(page->view, row.metric, row.cell, &row.new, &row.interval))
            continue;
        take_judged(&row, from);
        ARRAY_PUSH(page->rows, page->row_count, page->row_capacity) = row;
    }
}

/* What moved comes first, the most on top; what is not compared (the baseline) last.  Metrics stay
 * together, in their order. */
static int by_movement(const void *left, const void *right)
{
    const struct page_row *a = left, *b = right;
    int ranks[2] = {a->compared ? !a->changed : 2, b->compared ? !b->changed : 2};
    if (a->place != b->place)
        return a->place < b->place ? -1 : 1;
    if (ranks[0] != ranks[1])
        return ranks[0] - ranks[1];
    double far[2] = {page_strength(a), page_strength(b)};
    if (ranks[0] == 0 && far[0] != far[1])
        return far[0] < far[1] ? 1 : -1;
    return a->cell < b->cell ? -1 : a->cell > b->cell;
}

double page_strength(const struct page_row *row)
{
    const struct comparison *c = &row->comparison;
    return c->scale == COMPARISON_RATIO && c->estimate > 0 ? fabs(log(c->estimate)) : 0;
}

static void sort_rows(struct page *page)
{
    size_t place = 0;
    for (size_t i = 0; i < page->row_count; i++) {
        const struct page_row *before = i ? &page->rows[i - 1] : NULL;
        place += before && (before->metric != page->rows[i].metric ||
                            before->headline != page->rows[i].headline);
        page->rows[i].place = place;
    }
    if (page->row_count)
        qsort(page->rows, page->row_count, sizeof(*page->rows), by_movement);
}

/* ---- all of it ---- */

static void choose_variant(struct page *page)
{
    const struct dataset *d = page->view;
    page->variant = DATASET_NONE;
    for (size_t f = 0; f < d->factor_count && page->variant == DATASET_NONE; f++) {
        for (size_t c = 0; c < d->cell_count; c++) {
            size_t base = d->cells[c].baseline;
            if (base != DATASET_NONE && !str_eq(d->cells[c].levels[f], d->cells[base].levels[f]))
                page->variant = f;
        }
    }
    for (size_t f = 0; f < d->factor_count && page->variant == DATASET_NONE; f++) {
        struct page_axis axis;
        page_axis_init(&axis, d, f);
        if (!axis.numbers && axis.count > 1 && dataset_has_rivals(d, f))
            page->variant = f;
        page_axis_done(&axis);
    }
}

static void find_answers(struct page *page, const char *spec_text)
{
    struct spec spec;
    bool has_spec =
        *spec_text && spec_parse(&spec, "spec", spec_text, strlen(spec_text), false, NULL) == 0;
    page->has_answers =
        answers_find(&page->answers, page->view, has_spec ? &spec : NULL, NULL, NULL, NULL) == 0;
    if (!page->has_answers)
        answers_done(&page->answers);
    if (has_spec)
        spec_done(&spec);
}

static int compare_sets(struct page *page, struct error *err)
{
    struct embedded *data = &page->data;
    if (data->set_count > 1) {
        sparse_join(&data->sets[0], &data->sets[1]);
        int r = compare_experiments(&page->compare, &data->sets[0], &data->sets[1], err);
        page->is_compared = page->has_compare = true; /* also after a failure */
        if (r < 0)
            return r;
        join(page);
        return 0;
    }
    if (!data->base)
        return 0;
    int r = compare_levels(&page->compare, &data->sets[0], data->base, data->new, err);
    page->is_compared = page->has_compare = true;
    if (r == 0) {
        free(data->sets[0].experiment.baseline);
        data->sets[0].experiment.baseline = memory_strdup(data->base);
        dataset_find_baselines(&data->sets[0]);
    }
    return r;
}

static void make_title(struct page *page)
{
    const struct embedded *data = &page->data;
    if (page->title)
        return;
    if (page->is_compared)
        page->title =
            memory_printf("%s against %s", page->compare.new_name, page->compare.base_name);
    else if (data->set_count)
        page->title = memory_strdup(data->sets[0].experiment.name);
    else if (data->flame_count)
        page->title =
            memory_printf(data->flame_count > 1 ? "%s against %s" : "%s",
                          data->flames[data->flame_count > 1].label, data->flames[0].label);
    else if (data->explanations.count)
        page->title = memory_printf("%s against %s", data->explanations.items[0].names[SIDE_B],
                                    data->explanations.items[0].names[SIDE_A]);
    else
        page->title = memory_strdup("nothing");
}

int page_prepare(struct page *page, struct error *err)
{
    struct embedded *data = &page->data;
    page->variant = DATASET_NONE;
    if (data->set_count > 2)
        return error_set(err, -EINVAL, "a report compares at most two experiments");
    if (data->set_count) {
        page->view = &data->sets[0];
        int r = compare_sets(page, err);
        if (r < 0)
            return r;
        choose_variant(page);
        if (page->is_compared)
            make_compare_rows(page);
        else
            make_cell_rows(page);
        sort_rows(page);
        /* Answers are about all variants: a page about two has those two only. */
        if (!page->is_compared && page->view->metric_count)
            find_answers(page, data->documents[0].spec);
    }
    if (data->flame_count == 2) {
        flame_align_commands(&data->flames[0], &data->flames[1]);
        if (!(data->flames[0].cost > 0 && data->flames[1].cost > 0))
            flame_judge(&data->flames[0], &data->flames[1]);
        flame_pair_init(&page->pair, &data->flames[0], &data->flames[1]);
        page->has_pair = true;
    }
    make_title(page);
    return 0;
}

struct plot *page_add_plot(struct page *page, const char *kind, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    size_t same = 1;
    for (size_t i = 0; i < page->plot_count; i++)
        same += str_eq(page->plots[i].kind, kind);
    struct plot *p = &ARRAY_PUSH(page->plots, page->plot_count, page->plot_capacity);
    *p = (struct plot){.kind = kind};
    p->id = plot_text(p, same > 1 ? "%s-%zu" : "%s", kind, same);
    p->title = arena_strdup(&p->arena, text);
    p->x.unit = p->y.unit = "";
    p->x.label = p->y.label = "";
    return p;
}

void page_plot(struct page *page)
{
    enum { HEADLINES_MAX = 3 };
    const struct dataset *d = page->view;
    size_t position = 0, metric, count = 0;
    while (d && count < HEADLINES_MAX &&
           (metric = dataset_headline(d, &position)) != DATASET_NONE) {
        page_plot_curves(page, metric);
        if (count == 0)
            page_plot_efficiency(page, metric);
        if (page->is_compared)
            page_plot_pairs(page, metric);
        page_plot_runs(page, metric);
        count++;
    }
    if (d)
        page_plot_percentiles(page);
    page_plot_time(page);
    page_find_first(page);
}
