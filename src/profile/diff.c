/* SPDX-License-Identifier: MIT */
/* Two sets of profiled runs, function by function: see diff.h. */
#include "profile/diff.h"
#include "base/memory.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* What the samples of one side's runs say of each function: [run × item count + item]. */
struct side_table {
    double *self_weights, *self_samples, *total_weights, *total_samples;
    bool *runs_own_code; /* [item]: some sample is in code that is not inlined */
    double *run_weights, *run_samples, *run_work; /* [run] */
};

struct builder {
    struct diff *diff;
    const struct diff_options *options;
    size_t item_count;
    struct side_table tables[SIDE_COUNT];
};

static void table_init(struct side_table *t, size_t run_count, size_t item_count)
{
    size_t cells = run_count * item_count + 1;
    t->self_weights = memory_zalloc(cells, sizeof(double));
    t->self_samples = memory_zalloc(cells, sizeof(double));
    t->total_weights = memory_zalloc(cells, sizeof(double));
    t->total_samples = memory_zalloc(cells, sizeof(double));
    t->runs_own_code = memory_zalloc(item_count + 1, sizeof(bool));
    t->run_weights = memory_zalloc(run_count + 1, sizeof(double));
    t->run_samples = memory_zalloc(run_count + 1, sizeof(double));
    t->run_work = memory_zalloc(run_count + 1, sizeof(double));
}

static void table_done(struct side_table *t)
{
    free(t->self_weights);
    free(t->self_samples);
    free(t->total_weights);
    free(t->total_samples);
    free(t->runs_own_code);
    free(t->run_weights);
    free(t->run_samples);
    free(t->run_work);
}

static void add_run(struct builder *b, unsigned side, size_t run, uint32_t *seen, uint32_t *stamp)
{
    const struct diff_run *from = &b->options->sides[side].runs[run];
    const struct calls *calls = &from->profile->calls;
    const uint32_t *items = b->diff->match.rows[side][run];
    struct side_table *t = &b->tables[side];
    t->run_work[run] = from->work;
    for (size_t i = 0; i < calls->cell_count; i++) {
        const struct call_cell *cell = &calls->cells[i];
        if (cell->event != from->event)
            continue;
        double weight = (double)cell->weight, samples = (double)cell->samples;
        t->run_weights[run] += weight;
        t->run_samples[run] += samples;
        ++*stamp;
        for (uint32_t node = cell->node; node; node = calls->nodes[node].parent) {
            const struct profile_frame *frame = &calls->frames[calls->nodes[node].frame];
            uint32_t item = items[frame->symbol];
            if (item == MATCH_NONE)
                continue;
            size_t at = item * b->options->sides[side].run_count + run;
            if (node == cell->node) {
                t->self_weights[at] += weight;
                t->self_samples[at] += samples;
                t->runs_own_code[item] |= !frame->inlined;
                const struct profile_symbol *s = &calls->symbols[frame->symbol];
                if (!s->is_kernel && s->function && s->function->declared_file)
                    b->diff->lacks_debug[side] = false;
            }
            if (seen[item] != *stamp) {
                t->total_weights[at] += weight;
                t->total_samples[at] += samples;
            }
            seen[item] = *stamp;
        }
    }
}

/* The heaviest of a function's symbols stands for it. */
static void show_heaviest(struct builder *b, unsigned side, size_t run, double *heaviest)
{
    const struct diff_run *from = &b->options->sides[side].runs[run];
    const struct calls *calls = &from->profile->calls;
    CLEANUP(memory_freep) double *weights = memory_zalloc(calls->symbol_count + 1, sizeof(double));
    for (size_t i = 0; i < calls->cell_count; i++)
        if (calls->cells[i].event == from->event && calls->cells[i].node)
            weights[calls->frames[calls->nodes[calls->cells[i].node].frame].symbol] +=
                (double)calls->cells[i].weight;
    for (uint32_t i = 0; i < calls->symbol_count; i++) {
        uint32_t item = b->diff->match.rows[side][run][i];
        if (item == MATCH_NONE || weights[i] <= heaviest[item])
            continue;
        heaviest[item] = weights[i];
        match_show(&b->diff->match, item, side, from->profile, i);
    }
}

static void add_side(struct builder *b, unsigned side)
{
    CLEANUP(memory_freep) double *heaviest = memory_zalloc(b->item_count + 1, sizeof(double));
    const struct diff_input *input = &b->options->sides[side];
    CLEANUP(memory_freep) uint32_t *seen = memory_zalloc(b->item_count + 1, sizeof(*seen));
    uint32_t stamp = 0;
    b->diff->lacks_debug[side] = true;
    table_init(&b->tables[side], input->run_count, b->item_count);
    for (size_t run = 0; run < input->run_count; run++) {
        add_run(b, side, run, seen, &stamp);
        show_heaviest(b, side, run, heaviest);
    }
}

static bool is_user_only(const struct diff_input *input)
{
    return input->runs[0].profile->events[input->runs[0].event].user_only;
}

static void init_attribution(const struct builder *b, struct attribution *a)
{
    struct attribution_options o = {.paired = b->options->paired};
    const struct diff_run *first = &b->options->sides[SIDE_A].runs[0];
    o.every_one = first->profile->events[first->event].is_off_cpu;
    for (unsigned s = 0; s < SIDE_COUNT; s++)
        o.sides[s] = (struct attribution_side){
            .run_count = b->options->sides[s].run_count,
            .weights = b->tables[s].run_weights,
            .samples = b->tables[s].run_samples,
            .work = b->tables[s].run_work,
            .measured = b->options->sides[s].measured,
            .measured_count = b->options->sides[s].measured_count,
            .is_partial = is_user_only(&b->options->sides[s]),
        };
    attribution_init(a, &o);
}

static double sum_of(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum;
}

static void add_row(struct builder *b, const struct attribution *a, size_t item)
{
    struct diff *d = b->diff;
    struct diff_row row = {.name = d->match.items[item].name, .match = d->match.items[item]};
    const double *self_weights[SIDE_COUNT], *self_samples[SIDE_COUNT];
    const double *total_weights[SIDE_COUNT], *total_samples[SIDE_COUNT];
    double any = 0;
    for (unsigned s = 0; s < SIDE_COUNT; s++) {
        size_t runs = b->options->sides[s].run_count, at = item * runs;
        self_weights[s] = b->tables[s].self_weights + at;
        self_samples[s] = b->tables[s].self_samples + at;
        total_weights[s] = b->tables[s].total_weights + at;
        total_samples[s] = b->tables[s].total_samples + at;
        row.samples[s] = (uint64_t)sum_of(self_samples[s], runs);
        row.is_inlined[s] = row.samples[s] && !b->tables[s].runs_own_code[item];
        any += sum_of(total_samples[s], runs);
    }
    d->row_of_item[item] = MATCH_NONE;
    if (any == 0)
        return;
    row.self = attribution_part(a, self_weights, self_samples);
    row.total = attribution_part(a, total_weights, total_samples);
    d->row_of_item[item] = (uint32_t)d->row_count;
    d->rows[d->row_count++] = row;
}

static int compare_rows(const void *left, const void *right)
{
    const struct diff_row *a = left, *b = right;
    double x = fabs(a->self.change), y = fabs(b->self.change);
    if (x != y)
        return x < y ? 1 : -1;
    x = fabs(a->total.change), y = fabs(b->total.change);
    if (x != y)
        return x < y ? 1 : -1;
    return strcmp(a->name, b->name);
}

/* Sorts the rows; row_of_item follows. */
static void sort_rows(struct diff *d)
{
    if (d->row_count)
        qsort(d->rows, d->row_count, sizeof(*d->rows), compare_rows);
    for (uint32_t i = 0; i < d->row_count; i++)
        d->row_of_item[d->rows[i].match.item] = i;
}

static void finish(struct builder *b, struct attribution *a)
{
    struct diff *d = b->diff;
    double sums[SIDE_COUNT] = {0};
    for (size_t i = 0; i < d->row_count; i++) {
        sums[SIDE_A] += d->rows[i].self.a;
        sums[SIDE_B] += d->rows[i].self.b;
    }
    d->whole = a->whole;
    d->unattributed = attribution_rest(a, sums[SIDE_A], sums[SIDE_B]);
    d->is_scaled = a->is_scaled;
    d->has_interval = a->has_interval;
    for (unsigned s = 0; s < SIDE_COUNT; s++) {
        d->sampled[s] = a->sampled[s];
        d->samples[s] = (uint64_t)a->run_samples[s];
        d->run_counts[s] = b->options->sides[s].run_count;
        d->measured_counts[s] = b->options->sides[s].measured_count;
    }
    if (!d->has_interval)
        d->why_no_interval = d->run_counts[SIDE_A] < 2 || d->run_counts[SIDE_B] < 2
                                 ? "one recording of a side does not show how much runs vary"
                                 : "one measured run of a side does not show how much runs vary";
}

static int check(const struct diff_options *o, struct error *err)
{
    for (unsigned s = 0; s < SIDE_COUNT; s++) {
        const struct diff_input *input = &o->sides[s];
        double samples = 0;
        if (!input->run_count)
            return error_set(err, -EINVAL, "side %c has no profile", 'A' + s);
        for (size_t i = 0; i < input->run_count; i++) {
            const struct diff_run *run = &input->runs[i];
            if (!(run->work > 0) || !isfinite(run->work))
                return error_set(err, -EINVAL,
                                 "%s: a run that did %g units of work cannot be compared",
                                 run->profile->path, run->work);
            samples += (double)run->profile->events[run->event].samples;
        }
        if (samples == 0)
            return error_set(err, -ENODATA, "%s: contains no samples of %s",
                             input->runs[0].profile->path,
                             input->runs[0].profile->events[input->runs[0].event].name);
    }
    return 0;
}

int diff_build(struct diff *d, const struct diff_options *options, struct error *err)
{
    *d = (struct diff){.work = options->work};
    int r = check(options, err);
    if (r < 0)
        return r;
    const struct profile **profiles[SIDE_COUNT];
    size_t counts[SIDE_COUNT];
    for (unsigned s = 0; s < SIDE_COUNT; s++) {
        counts[s] = options->sides[s].run_count;
        profiles[s] = memory_zalloc(counts[s], sizeof(*profiles[s]));
        for (size_t i = 0; i < counts[s]; i++)
            profiles[s][i] = options->sides[s].runs[i].profile;
    }
    match_build(&d->match, (const struct profile *const *const[]){profiles[0], profiles[1]},
                counts);
    struct builder b = {.diff = d, .options = options, .item_count = d->match.count};
    struct attribution a;
    for (unsigned s = 0; s < SIDE_COUNT; s++) {
        add_side(&b, s);
        free(profiles[s]);
    }
    init_attribution(&b, &a);
    const struct diff_run *first = &options->sides[SIDE_A].runs[0];
    const struct profile_event *event = &first->profile->events[first->event];
    d->event = event->name;
    d->user_only = is_user_only(&options->sides[SIDE_A]) || is_user_only(&options->sides[SIDE_B]);
    d->has_totals = event->has_callers;
    d->is_time = event->is_time || a.is_scaled;
    d->rows = memory_zalloc(b.item_count + 1, sizeof(*d->rows));
    d->row_of_item = memory_zalloc(b.item_count + 1, sizeof(*d->row_of_item));
    for (size_t i = 0; i < b.item_count; i++)
        add_row(&b, &a, i);
    sort_rows(d);
    finish(&b, &a);
    attribution_done(&a);
    for (unsigned s = 0; s < SIDE_COUNT; s++)
        table_done(&b.tables[s]);
    return 0;
}

void diff_done(struct diff *d)
{
    free(d->rows);
    free(d->row_of_item);
    match_done(&d->match);
    *d = (struct diff){0};
}

uint32_t diff_row_of(const struct diff *d, unsigned side, size_t run, uint32_t symbol)
{
    uint32_t item = d->match.rows[side][run][symbol];
    return item == MATCH_NONE ? MATCH_NONE : d->row_of_item[item];
}

/* The event of a profile that is the same as another profile's; UINT32_MAX when it has none. */
static uint32_t find_same(const struct profile *profile, const struct profile_event *wanted)
{
    uint32_t found = UINT32_MAX;
    for (uint32_t i = 0; i < profile->event_count; i++) {
        const struct profile_event *e = &profile->events[i];
        bool same_name = str_eq(e->name, wanted->name);
        bool both_clocks =
            e->is_time && wanted->is_time && !e->is_off_cpu && !wanted->is_off_cpu && e->samples;
        if (same_name)
            return i;
        if (both_clocks)
            found = i;
    }
    return found;
}

static bool all_have(struct diff_run *const runs[SIDE_COUNT], const size_t counts[SIDE_COUNT],
                     const struct profile_event *wanted)
{
    for (unsigned s = 0; s < SIDE_COUNT; s++)
        for (size_t i = 0; i < counts[s]; i++)
            if (find_same(runs[s][i].profile, wanted) == UINT32_MAX)
                return false;
    return true;
}

static int no_common_event(struct diff_run *const runs[SIDE_COUNT], struct error *err)
{
    struct strbuf lists[SIDE_COUNT] = {{0}};
    for (unsigned s = 0; s < SIDE_COUNT; s++) {
        const struct profile *p = runs[s][0].profile;
        for (uint32_t i = 0; i < p->event_count; i++)
            strbuf_printf(&lists[s], "%s%s", i ? ", " : "", p->events[i].name);
    }
    error_set(err, -ENOENT,
              "no event to compare: %s has samples of %s, and %s of %s; record the same event on "
              "both sides",
              runs[SIDE_A][0].profile->path, strbuf_text(&lists[SIDE_A]),
              runs[SIDE_B][0].profile->path, strbuf_text(&lists[SIDE_B]));
    strbuf_done(&lists[SIDE_A]);
    strbuf_done(&lists[SIDE_B]);
    return -ENOENT;
}

int diff_choose_events(struct diff_run *const runs[SIDE_COUNT], const size_t counts[SIDE_COUNT],
                       const char *name, struct error *err)
{
    if (!counts[SIDE_A] || !counts[SIDE_B])
        return 0; /* diff_build says so */
    const struct profile *first = runs[SIDE_A][0].profile;
    const struct profile_event *best = NULL;
    for (uint32_t i = 0; i < first->event_count; i++) {
        const struct profile_event *e = &first->events[i];
        if ((name ? !str_eq(e->name, name) : e->is_off_cpu) || !all_have(runs, counts, e))
            continue;
        if (!best || e->is_time > best->is_time ||
            (e->is_time == best->is_time && e->samples > best->samples))
            best = e;
    }
    if (!best && name)
        return error_set(err, -ENOENT, "%s or %s: contains no samples of %s", first->path,
                         runs[SIDE_B][0].profile->path, name);
    if (!best)
        return no_common_event(runs, err);
    for (unsigned s = 0; s < SIDE_COUNT; s++)
        for (size_t i = 0; i < counts[s]; i++)
            runs[s][i].event = find_same(runs[s][i].profile, best);
    return 0;
}
