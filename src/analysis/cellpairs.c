/* SPDX-License-Identifier: MIT */
/* Pairs of cells that two words mean: see cellpairs.h. */
#include "analysis/cellpairs.h"
#include "base/memory.h"
#include "base/strings.h"
#include "spec/spec.h"
#include "store/store_rows.h"

#include <errno.h>
#include <math.h>

/* "12 variant=send,size=64": either part may be missing. */
struct cell_word {
    char *experiment, *levels; /* NULL for none */
};

static void cell_word_done(struct cell_word *w)
{
    free(w->experiment);
    free(w->levels);
}

static struct cell_word split_word(const char *text)
{
    size_t length = strcspn(text, " ");
    const char *rest = text + length + strspn(text + length, " ");
    if (memchr(text, '=', length))
        return (struct cell_word){.levels = memory_strdup(text)};
    return (struct cell_word){.experiment = memory_strndup(text, length),
                              .levels = *rest ? memory_strdup(rest) : NULL};
}

/* The newest experiment that has the first factor of "factor=value,…"; 0 for none. */
static int find_with_factor(struct store *store, const char *levels, int64_t *ret_id,
                            struct error *err)
{
    CLEANUP(memory_freep) char *factor = memory_strndup(levels, strcspn(levels, "="));
    return store_newest_with_factor(store, factor, ret_id, err);
}

bool cell_word_is_known(struct store *store, const char *word)
{
    CLEANUP(cell_word_done) struct cell_word w = split_word(word);
    struct error ignored;
    int64_t id = 0;
    if (w.experiment)
        return (!w.levels || strchr(w.levels, '=')) &&
               store_find(store, w.experiment, &id, &ignored) == 0;
    return find_with_factor(store, w.levels, &id, &ignored) == 0 && id;
}

static int find_experiment(struct store *store, const struct cell_word *w, const char *in,
                           int64_t *ret_id, struct error *err)
{
    if (w->experiment)
        return store_find(store, w->experiment, ret_id, err);
    if (in)
        return store_find(store, in, ret_id, err);
    int r = find_with_factor(store, w->levels, ret_id, err);
    if (r == 0 && !*ret_id)
        r = error_set(err, -ENOENT, "no experiment in the store has a factor '%.*s'",
                      (int)strcspn(w->levels, "="), w->levels);
    return r;
}

static bool has_levels(const struct dataset *d, size_t cell, const char *const *levels)
{
    for (size_t f = 0; f < d->factor_count; f++)
        if (levels[f] && !str_eq(d->cells[cell].levels[f], levels[f]))
            return false;
    return true;
}

/* Whether the two agree in every factor that neither word names. */
static bool is_pair(const struct cell_pairs *p, const char **const levels[2], size_t a, size_t b,
                    struct strbuf *label)
{
    const struct dataset *base = p->d[0], *new = p->d[1];
    strbuf_clear(label);
    for (size_t f = 0; f < base->factor_count; f++) {
        size_t other = dataset_factor(new, base->factors[f]);
        if (levels[0][f] || (other != DATASET_NONE && levels[1][other]))
            continue;
        if (other == DATASET_NONE || !str_eq(base->cells[a].levels[f], new->cells[b].levels[other]))
            return false;
        if (*base->cells[a].levels[f])
            strbuf_printf(label, "%s%s=%s", label->length ? " " : "", base->factors[f],
                          base->cells[a].levels[f]);
    }
    return true;
}

static void find_pairs(struct cell_pairs *p, const char **const levels[2])
{
    CLEANUP(strbuf_done) struct strbuf label = {0};
    for (size_t a = 0; a < p->d[0]->cell_count; a++)
        for (size_t b = 0; b < p->d[1]->cell_count; b++)
            if (has_levels(p->d[0], a, levels[0]) && has_levels(p->d[1], b, levels[1]) &&
                !(p->d[0] == p->d[1] && a == b) && is_pair(p, levels, a, b, &label))
                ARRAY_PUSH(p->items, p->count, p->capacity) = (struct cell_pair){
                    .cells = {a, b}, .label = memory_strdup(strbuf_text(&label))};
}

static char *work_of_spec(struct store *store, int64_t id)
{
    CLEANUP(memory_freep) char *text = NULL;
    struct spec s;
    if (store_document(store, id, "spec", &text, NULL) < 0 ||
        spec_parse(&s, "spec", text, strlen(text), false, NULL) < 0)
        return NULL;
    char *work = s.work ? memory_strdup(s.work) : NULL;
    spec_done(&s);
    return work;
}

char *work_unit(const char *metric, const char *unit)
{
    if (unit[0])
        return memory_strdup(unit);
    size_t length = strlen(metric);
    bool plural = length > 2 && metric[length - 1] == 's' && metric[length - 2] != 's';
    return memory_strndup(metric, length - plural);
}

static int load_both(struct cell_pairs *p, struct store *store, const struct cell_word words[2],
                     const char *in, struct error *err)
{
    int64_t ids[2];
    int r = 0;
    for (size_t s = 0; s < 2 && r == 0; s++)
        r = find_experiment(store, &words[s], in, &ids[s], err);
    if (r == 0 && ids[0] == ids[1] && !words[0].levels && !words[1].levels)
        r = error_set(err, -EINVAL, "both are experiment %lld", (long long)ids[0]);
    if (r == 0)
        r = dataset_load(&p->own[0], store, ids[0], err);
    if (r < 0)
        return r;
    p->d[0] = p->d[1] = &p->own[0];
    p->work = work_of_spec(store, ids[0]);
    size_t metric = p->work ? dataset_metric(&p->own[0], p->work) : DATASET_NONE;
    if (metric != DATASET_NONE)
        p->unit = work_unit(p->work, p->own[0].metrics[metric].unit);
    if (ids[1] == ids[0])
        return 0;
    r = dataset_load(&p->own[1], store, ids[1], err);
    if (r == 0)
        p->d[1] = &p->own[1];
    return r;
}

int cell_pairs_find(struct cell_pairs *p, struct store *store, const char *a, const char *b,
                    const char *in, struct error *err)
{
    *p = (struct cell_pairs){.names = {memory_strdup(a), memory_strdup(b)}};
    struct cell_word words[2] = {split_word(a), split_word(b)};
    int r = load_both(p, store, words, in, err);
    const char **levels[2] = {0};
    for (size_t s = 0; s < 2 && r == 0; s++) {
        levels[s] = memory_zalloc(p->d[s]->factor_count + 1, sizeof(*levels[s]));
        if (words[s].levels)
            r = dataset_parse_levels(p->d[s], words[s].levels, levels[s], err);
    }
    if (r == 0) {
        find_pairs(p, levels);
        if (!p->count)
            r = error_set(err, -ENOENT, "no cell of '%s' has a partner in '%s'", a, b);
    }
    free(levels[0]);
    free(levels[1]);
    cell_word_done(&words[0]);
    cell_word_done(&words[1]);
    return r;
}

void cell_pairs_done(struct cell_pairs *p)
{
    for (size_t i = 0; i < p->count; i++)
        free(p->items[i].label);
    free(p->items);
    for (size_t s = 0; s < 2; s++) {
        if (p->d[s] == &p->own[s])
            dataset_done(&p->own[s]);
        free(p->names[s]);
    }
    free(p->work);
    free(p->unit);
    *p = (struct cell_pairs){0};
}

/* The value of a metric in a round of a cell; NAN where there is none. */
static double value_at(const struct dataset *d, const char *metric, size_t cell, uint32_t round)
{
    size_t index = dataset_metric(d, metric);
    if (index == DATASET_NONE)
        return NAN;
    struct dataset_column column = dataset_column(d, index, cell);
    for (size_t i = 0; i < column.count; i++)
        if (column.rounds[i] == round)
            return column.values[i];
    return NAN;
}

static double work_at(const struct dataset *d, const char *work, size_t cell, uint32_t round)
{
    double done = work ? value_at(d, work, cell, round) : 1;
    return done > 0 ? done : NAN;
}

static double cost_at(const struct dataset *d, const char *work, size_t cell, uint32_t round)
{
    double counted = value_at(d, "task-clock", cell, round);
    double used = value_at(d, "user", cell, round) + value_at(d, "sys", cell, round);
    return (isfinite(counted) ? counted : used) / work_at(d, work, cell, round);
}

void cell_costs_find(struct cell_costs *c, const struct cell_pairs *p, size_t pair)
{
    *c = (struct cell_costs){.paired = p->d[0] == p->d[1]};
    const size_t *cells = p->items[pair].cells;
    size_t wall[2];
    for (size_t s = 0; s < 2; s++) {
        wall[s] = dataset_metric(p->d[s], "wall");
        size_t most = p->d[s]->run_count + 1;
        c->values[s] = memory_zalloc(most, sizeof(*c->values[s]));
        c->wall[s] = memory_zalloc(most, sizeof(*c->wall[s]));
    }
    if (wall[0] == DATASET_NONE || wall[1] == DATASET_NONE)
        return;
    for (size_t s = 0; s < 2; s++) {
        struct dataset_column rounds = dataset_column(p->d[s], wall[s], cells[s]);
        for (size_t i = 0; i < rounds.count; i++) {
            double cost = cost_at(p->d[s], p->work, cells[s], rounds.rounds[i]);
            bool both = !c->paired ||
                        isfinite(cost_at(p->d[1 - s], p->work, cells[1 - s], rounds.rounds[i]));
            if (!isfinite(cost) || !both)
                continue;
            c->wall[s][c->counts[s]] =
                rounds.values[i] / work_at(p->d[s], p->work, cells[s], rounds.rounds[i]);
            c->values[s][c->counts[s]++] = cost;
        }
    }
}

void cell_costs_done(struct cell_costs *c)
{
    for (size_t s = 0; s < 2; s++) {
        free(c->values[s]);
        free(c->wall[s]);
    }
    *c = (struct cell_costs){0};
}
