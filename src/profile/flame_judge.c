/* SPDX-License-Identifier: MIT */
/*
 * Which frames of two flame graphs changed?  A frame has the colour of its function's row in the
 * difference: one test, that of fits/attribution.h, decides for the table and for the picture.
 */
#include "base/memory.h"
#include "profile/flame.h"
#include "profile/idtable.h"

double flame_cost(const struct flame *flame)
{
    return flame->cost > 0 ? flame->cost : (double)flame->weight;
}

struct flame_function *flame_functions(const struct flame *f)
{
    struct flame_function *all = memory_zalloc(f->name_count + 1, sizeof(*all));
    CLEANUP(memory_freep) uint32_t *open = memory_zalloc(f->name_count + 1, sizeof(*open));
    uint32_t path[FLAME_DEPTH_MAX + 2];
    size_t depth = 0;
    for (uint32_t n = 0; n < f->name_count; n++)
        all[n].name = n;
    for (size_t i = 0; i < f->node_count; i++) {
        const struct flame_node *n = &f->nodes[i];
        while (depth > n->depth)
            open[path[--depth]]--;
        if (!all[n->name].total)
            all[n->name].first_node = (uint32_t)i;
        if (!open[n->name]++) {
            all[n->name].total += n->weight;
            all[n->name].total_samples += n->samples;
        }
        path[depth++] = n->name;
        all[n->name].self += n->self_weight;
    }
    return all;
}

/* A command of the one that the other has not; NULL for none or several. */
static struct flame_name *only_here(const struct flame *here, const struct flame *there)
{
    struct flame_name *found = NULL;
    for (size_t i = 0; i < here->name_count; i++) {
        struct flame_name *name = &here->names[i];
        bool is_there = !(name->flags & FLAME_COMM);
        for (size_t k = 0; k < there->name_count && !is_there; k++)
            is_there = there->names[k].flags & FLAME_COMM &&
                       str_eq(flame_known_as(&there->names[k]), flame_known_as(name));
        if (!is_there && found)
            return NULL;
        found = is_there ? found : name;
    }
    return found;
}

void flame_align_commands(const struct flame *base, struct flame *new)
{
    const struct flame_name *old = only_here(base, new);
    struct flame_name *now = only_here(new, base);
    if (!old || !now)
        return;
    free(now->known_as);
    now->known_as = memory_strdup(old->text);
}

static uint32_t mark_of(const struct attributed *part)
{
    return !attributed_is_told(part) ? 0u : part->change > 0 ? FLAME_MORE : FLAME_LESS;
}

static void set_mark(struct flame_name *name, uint32_t mark)
{
    name->flags = (name->flags & ~(uint32_t)(FLAME_MORE | FLAME_LESS)) | mark;
}

/* ---- by rows ---- */

void flame_mark(struct flame *flame, const struct diff *d, unsigned side)
{
    for (size_t i = 0; i < flame->name_count; i++) {
        struct flame_name *name = &flame->names[i];
        uint32_t row =
            name->symbol == FLAME_NO_SYMBOL ? MATCH_NONE : diff_row_of(d, side, 0, name->symbol);
        set_mark(name, name->flags & FLAME_COMM ? mark_of(&d->whole)
                       : row != MATCH_NONE      ? mark_of(&d->rows[row].total)
                                                : 0);
        if (row != MATCH_NONE && !str_eq(d->rows[row].name, name->text)) {
            free(name->known_as);
            name->known_as = memory_strdup(d->rows[row].name);
        }
    }
    flame->cost = side ? d->whole.b : d->whole.a;
}

/* ---- by one recording of each side ---- */

/* What both sides know by one name. */
struct row_finder {
    struct idtable table;
    char **texts;
    uint32_t *rows;
    size_t count, capacity, row_capacity;
};

static uint64_t text_hash(const void *items, uint32_t id)
{
    return hash_string(((char *const *)items)[id]);
}

static uint32_t *find_row(struct row_finder *f, const char *text, bool add)
{
    uint32_t slot, id;
    IDTABLE_EACH(&f->table, hash_string(text), slot, id)
    if (str_eq(f->texts[id], text))
        return &f->rows[id];
    if (!add)
        return NULL;
    id = (uint32_t)f->count;
    size_t count = f->count;
    ARRAY_PUSH(f->rows, count, f->row_capacity) = MATCH_NONE;
    ARRAY_PUSH(f->texts, f->count, f->capacity) = memory_strdup(text);
    idtable_put(&f->table, slot, id);
    if (idtable_is_crowded(&f->table))
        idtable_grow(&f->table, text_hash, f->texts);
    return &f->rows[id];
}

static void finder_done(struct row_finder *f)
{
    for (size_t i = 0; i < f->count; i++)
        free(f->texts[i]);
    free(f->texts);
    free(f->rows);
    idtable_done(&f->table);
}

/* Adds up what is known by one name. */
static double *sums_of(struct row_finder *f, const struct flame *flame, double **ret_samples)
{
    double *weights = memory_zalloc(f->count + 1, sizeof(double));
    double *samples = memory_zalloc(f->count + 1, sizeof(double));
    CLEANUP(memory_freep) struct flame_function *all = flame_functions(flame);
    for (size_t i = 0; i < flame->name_count; i++) {
        const uint32_t *at = find_row(f, flame_known_as(&flame->names[i]), false);
        weights[*at] += (double)all[i].total;
        samples[*at] += (double)all[i].total_samples;
    }
    *ret_samples = samples;
    return weights;
}

void flame_judge(struct flame *base, struct flame *new)
{
    struct flame *sides[SIDE_COUNT] = {base, new};
    struct row_finder f = {0};
    double wholes[SIDE_COUNT][2], one = 1, *weights[SIDE_COUNT], *samples[SIDE_COUNT];
    struct attribution_options o = {0};
    idtable_init(&f.table, 10);
    for (unsigned s = 0; s < SIDE_COUNT; s++)
        for (size_t i = 0; i < sides[s]->name_count; i++) {
            uint32_t *row = find_row(&f, flame_known_as(&sides[s]->names[i]), true);
            *row = (uint32_t)(row - f.rows);
        }
    for (unsigned s = 0; s < SIDE_COUNT; s++) {
        wholes[s][0] = (double)sides[s]->weight;
        wholes[s][1] = (double)sides[s]->samples;
        weights[s] = sums_of(&f, sides[s], &samples[s]);
        o.sides[s] = (struct attribution_side){
            .run_count = 1, .weights = &wholes[s][0], .samples = &wholes[s][1], .work = &one};
    }
    struct attribution a;
    attribution_init(&a, &o);
    for (unsigned s = 0; s < SIDE_COUNT; s++)
        for (size_t i = 0; i < sides[s]->name_count; i++) {
            struct flame_name *name = &sides[s]->names[i];
            uint32_t at = *find_row(&f, flame_known_as(name), false);
            const double *w[SIDE_COUNT] = {&weights[0][at], &weights[1][at]};
            const double *n[SIDE_COUNT] = {&samples[0][at], &samples[1][at]};
            struct attributed part = attribution_part(&a, w, n);
            set_mark(name, mark_of(&part));
        }
    attribution_done(&a);
    for (unsigned s = 0; s < SIDE_COUNT; s++) {
        free(weights[s]);
        free(samples[s]);
    }
    finder_done(&f);
}
