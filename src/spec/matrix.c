/* SPDX-License-Identifier: MIT */
/* Combinations, exclusions, inclusions, baselines and selections. */
#include "spec/matrix.h"
#include "base/memory.h"
#include "base/strings.h"

#include <ctype.h>
#include <errno.h>

static bool one_of(const char *name, const char *const *values)
{
    for (; *values; values++)
        if (str_eq(name, *values))
            return true;
    return false;
}

static bool is_excluded(const struct spec *s, const struct spec_level *const *levels)
{
    for (size_t e = 0; e < s->exclude_count; e++) {
        const struct spec_condition *c = &s->excludes[e];
        size_t k = 0;
        while (k < c->count && one_of(levels[c->factors[k]]->name, c->values[k]))
            k++;
        if (k == c->count)
            return true;
    }
    return false;
}

/* The factor's own level of that name; its count when there is none. */
static size_t level_index(const struct spec_factor *f, const char *name)
{
    size_t l = 0;
    while (l < f->level_count && !str_eq(f->levels[l].name, name))
        l++;
    return l;
}

/* Where the combination of levels stands; combination_count when one is not the factor's own. */
static size_t combination_of(const struct matrix *m, const size_t *levels)
{
    size_t place = 0;
    for (size_t f = 0; f < m->spec->factor_count; f++) {
        if (levels[f] >= m->spec->factors[f].level_count)
            return m->combination_count;
        place = place * m->spec->factors[f].level_count + levels[f];
    }
    return place;
}

/* Which of the factor's own levels it is; the factor's level count for one that was only included.
 */
static size_t place_of_level(const struct spec_factor *f, const struct spec_level *level)
{
    return level >= f->levels && level < f->levels + f->level_count ? (size_t)(level - f->levels)
                                                                    : f->level_count;
}

static bool same_names(const struct matrix *m, size_t cell, const char *const *names)
{
    size_t f = 0;
    while (f < m->spec->factor_count && str_eq(m->cells[cell].levels[f]->name, names[f]))
        f++;
    return f == m->spec->factor_count;
}

/* The cell with those values, MATRIX_NONE when there is none.  places[f]: which of the factor's own
 * levels names[f] is, or its level count. */
static size_t find_cell(const struct matrix *m, const size_t *places, const char *const *names)
{
    size_t combination = combination_of(m, places);
    if (combination < m->combination_count && m->by_combination[combination] != MATRIX_NONE)
        return m->by_combination[combination];
    for (size_t c = m->included; c < m->count; c++)
        if (same_names(m, c, names))
            return c;
    return MATRIX_NONE;
}

static void add_cell(struct matrix *m, const struct spec_level *const *levels)
{
    const struct spec *s = m->spec;
    CLEANUP(strbuf_done) struct strbuf label = {0};
    for (size_t f = 0; f < s->factor_count; f++)
        strbuf_printf(&label, "%s%s=%s", f ? " " : "", s->factors[f].name, levels[f]->name);
    struct matrix_cell *cell = &ARRAY_PUSH(m->cells, m->count, m->capacity);
    *cell = (struct matrix_cell){
        .levels = arena_alloc(&m->arena, (s->factor_count + 1) * sizeof(*cell->levels)),
        .label = arena_strdup(&m->arena, s->factor_count ? strbuf_text(&label) : "all"),
    };
    memcpy(cell->levels, levels, s->factor_count * sizeof(*levels));
}

static int add_combinations(struct matrix *m, struct error *err)
{
    const struct spec *s = m->spec;
    double total = 1;
    for (size_t f = 0; f < s->factor_count; f++)
        total *= (double)s->factors[f].level_count;
    if (total > SPEC_CELLS_MAX)
        return error_set(err, -E2BIG, "%s: %.0f cells; at most %d are allowed", s->file, total,
                         SPEC_CELLS_MAX);
    size_t place[SPEC_FACTORS_MAX] = {0};
    m->combination_count = (size_t)total;
    m->by_combination = memory_zalloc(m->combination_count, sizeof(*m->by_combination));
    for (size_t i = 0; i < (size_t)total; i++) {
        const struct spec_level *levels[SPEC_FACTORS_MAX];
        for (size_t f = 0; f < s->factor_count; f++)
            levels[f] = &s->factors[f].levels[place[f]];
        bool excluded = is_excluded(s, levels);
        m->by_combination[i] = excluded ? MATRIX_NONE : (uint32_t)m->count;
        if (!excluded)
            add_cell(m, levels);
        for (size_t f = s->factor_count; f-- > 0;) {
            if (++place[f] < s->factors[f].level_count)
                break;
            place[f] = 0;
        }
    }
    m->included = m->count;
    return 0;
}

/* The factor's own level of that name, or a plain one. */
static const struct spec_level *level_of(struct matrix *m, size_t factor, const char *name)
{
    const struct spec_factor *f = &m->spec->factors[factor];
    size_t own = level_index(f, name);
    if (own < f->level_count)
        return &f->levels[own];
    struct spec_level *level = arena_alloc(&m->arena, sizeof(*level));
    *level = (struct spec_level){.name = name};
    return level;
}

static void add_inclusions(struct matrix *m)
{
    const struct spec *s = m->spec;
    for (size_t i = 0; i < s->include_count; i++) {
        const struct spec_level *levels[SPEC_FACTORS_MAX];
        size_t places[SPEC_FACTORS_MAX];
        for (size_t f = 0; f < s->factor_count; f++) {
            levels[f] = level_of(m, f, s->includes[i][f]);
            places[f] = place_of_level(&s->factors[f], levels[f]);
        }
        if (find_cell(m, places, s->includes[i]) == MATRIX_NONE)
            add_cell(m, levels);
    }
}

/* The baseline's value of each factor and which level that is; NULL where it names none. */
struct baseline {
    const char *names[SPEC_FACTORS_MAX];
    size_t places[SPEC_FACTORS_MAX];
};

static void read_baseline(const struct spec *s, struct baseline *b)
{
    for (size_t f = 0; f < s->factor_count; f++) {
        b->names[f] = NULL;
        for (size_t i = 0; i < s->baseline.count && !b->names[f]; i++)
            if (str_eq(s->baseline.items[i].name, s->factors[f].name))
                b->names[f] = s->baseline.items[i].value;
        if (b->names[f])
            b->places[f] = level_index(&s->factors[f], b->names[f]);
    }
}

/* The cell with the baseline's factors replaced; itself when there is none. */
static size_t find_baseline(const struct matrix *m, const struct baseline *b, size_t index)
{
    const struct spec *s = m->spec;
    if (!s->baseline.count)
        return index;
    const char *names[SPEC_FACTORS_MAX];
    size_t places[SPEC_FACTORS_MAX];
    for (size_t f = 0; f < s->factor_count; f++) {
        const struct spec_level *own = m->cells[index].levels[f];
        names[f] = b->names[f] ? b->names[f] : own->name;
        places[f] = b->names[f] ? b->places[f] : place_of_level(&s->factors[f], own);
    }
    size_t found = find_cell(m, places, names);
    return found == MATRIX_NONE ? index : found;
}

int matrix_make(struct matrix *m, const struct spec *spec, struct error *err)
{
    *m = (struct matrix){.spec = spec};
    int r = add_combinations(m, err);
    if (r == 0) {
        add_inclusions(m);
        if (m->count == 0)
            r = error_set(err, -EINVAL, "%s: every combination is excluded", spec->file);
    }
    if (r < 0) {
        matrix_done(m);
        return r;
    }
    struct baseline baseline;
    read_baseline(spec, &baseline);
    for (size_t c = 0; c < m->count; c++)
        m->cells[c].baseline = find_baseline(m, &baseline, c);
    return 0;
}

void matrix_done(struct matrix *m)
{
    free(m->cells);
    free(m->by_combination);
    arena_done(&m->arena);
    *m = (struct matrix){0};
}

/* What a selection says of each factor: no word yet, or the cells that some word allows. */
struct selection {
    const struct matrix *m;
    bool *by_number;                 /* per cell */
    bool *allowed[SPEC_FACTORS_MAX]; /* per cell; NULL when the factor was not named */
    bool any_number, any_factor;
};

static int select_numbers(struct selection *s, const char *word, struct error *err)
{
    CLEANUP(memory_freep) int *numbers = NULL;
    size_t count;
    int r = parse_cpu_list(word, &numbers, &count, err);
    if (r < 0)
        return error_set(err, -EINVAL, "--cells: '%s' is not a cell's number or factor=value",
                         word);
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] < 1 || (size_t)numbers[i] > s->m->count)
            return error_set(err, -EINVAL,
                             "--cells: there is no cell %d; cells are numbered 1 to %zu",
                             numbers[i], s->m->count);
        s->by_number[numbers[i] - 1] = true;
    }
    s->any_number = true;
    return 0;
}

static int select_level(struct selection *s, const char *name, const char *value, struct error *err)
{
    const struct spec *spec = s->m->spec;
    size_t f = 0;
    while (f < spec->factor_count && !str_eq(spec->factors[f].name, name))
        f++;
    if (f == spec->factor_count)
        return error_set(err, -EINVAL, "--cells: there is no factor '%s'", name);
    if (!s->allowed[f])
        s->allowed[f] = memory_zalloc(s->m->count, sizeof(bool));
    bool found = false;
    for (size_t c = 0; c < s->m->count; c++)
        if (str_eq(s->m->cells[c].levels[f]->name, value))
            s->allowed[f][c] = found = true;
    s->any_factor = true;
    return found ? 0 : error_set(err, -EINVAL, "--cells: no cell has %s=%s", name, value);
}

static int select_words(struct selection *s, const char *words, struct error *err)
{
    CLEANUP(memory_freep) char *copy = memory_strdup(words);
    char *save = NULL;
    int r = 0;
    for (char *word = strtok_r(copy, ",", &save); r == 0 && word;
         word = strtok_r(NULL, ",", &save)) {
        char *equals = strchr(word, '=');
        if (equals) {
            *equals = '\0';
            r = select_level(s, word, equals + 1, err);
        } else {
            r = select_numbers(s, word, err);
        }
    }
    return r;
}

int matrix_select(const struct matrix *m, const char *words, bool *ret_kept, struct error *err)
{
    struct selection s = {.m = m, .by_number = memory_zalloc(m->count, sizeof(bool))};
    int r = select_words(&s, words, err);
    size_t kept = 0;
    for (size_t c = 0; r == 0 && c < m->count; c++) {
        bool by_factor = s.any_factor;
        for (size_t f = 0; f < m->spec->factor_count; f++)
            by_factor &= !s.allowed[f] || s.allowed[f][c];
        ret_kept[c] = by_factor || s.by_number[c];
        kept += ret_kept[c];
    }
    if (r == 0 && kept == 0)
        r = error_set(err, -EINVAL, "--cells %s: no cell is left", words);
    for (size_t f = 0; f < SPEC_FACTORS_MAX; f++)
        free(s.allowed[f]);
    free(s.by_number);
    return r;
}
