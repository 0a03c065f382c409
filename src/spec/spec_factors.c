/* SPDX-License-Identifier: MIT */
/* Factors, their levels, and which combinations are left out or added. */
#include "base/memory.h"
#include "base/strings.h"
#include "spec/spec_read.h"

#include <errno.h>

static const char *const reserved_names[] = {"build", "cell", "round", "seed", "name"};

static int read_level_map(struct spec_reader *reader, const struct tree *value,
                          struct spec_level *level)
{
    const struct tree *name = tree_get(value, "name"), *env = tree_get(value, "env"),
                      *folder = tree_get(value, "folder");
    if (!name)
        return spec_fail(reader, value->line, "factors: a value that is a mapping needs a name");
    int r = spec_want_text(reader, name, "name", &level->name);
    if (r == 0 && env)
        r = spec_want_pairs(reader, env, "env", &level->environment);
    if (r == 0 && folder)
        r = spec_want_text(reader, folder, "folder", &level->folder);
    if (r == 0 && folder && level->folder[0] != '/') {
        CLEANUP(memory_freep) char *path = memory_printf("%s/%s", reader->s->folder, level->folder);
        level->folder = arena_strdup(&reader->s->arena, path);
    }
    level->attributes.items = spec_alloc(reader, value->count, sizeof(struct text_pair));
    for (size_t i = 0; r == 0 && i < value->count; i++) {
        const char *key = value->keys[i].text;
        if (str_eq(key, "name") || str_eq(key, "env") || str_eq(key, "folder"))
            continue;
        if (!spec_is_name(key, strlen(key)))
            return spec_fail(reader, value->keys[i].line, "'%s' is not a valid name", key);
        r = spec_want(reader, &value->items[i], TREE_SCALAR, key);
        level->attributes.items[level->attributes.count++] = (struct text_pair){
            .name = key, .value = value->items[i].text, .line = value->items[i].line};
    }
    return r;
}

static int read_level(struct spec_reader *reader, const struct tree *value, const char *factor,
                      struct spec_level *level)
{
    level->line = value->line;
    if (value->kind == TREE_MAP)
        return read_level_map(reader, value, level);
    int r = spec_want(reader, value, TREE_SCALAR, factor);
    level->name = value->text;
    if (r == 0 && strpbrk(level->name, "\n\t"))
        r = spec_fail(reader, value->line, "%s: a value must not contain newlines or tabs", factor);
    return r;
}

static int read_levels(struct spec_reader *reader, const struct tree *list, struct spec_factor *f)
{
    bool single = list->kind == TREE_SCALAR;
    if (list->kind == TREE_MAP)
        return spec_fail(reader, list->line, "%s: must be a list of values", f->name);
    f->level_count = single ? 1 : list->count;
    if (f->level_count == 0 || (single && list->is_null))
        return spec_fail(reader, list->line, "%s: has no values", f->name);
    f->levels = spec_alloc(reader, f->level_count, sizeof(*f->levels));
    for (size_t i = 0; i < f->level_count; i++) {
        int r = read_level(reader, single ? list : &list->items[i], f->name, &f->levels[i]);
        if (r < 0)
            return r;
        for (size_t k = 0; k < i; k++)
            if (str_eq(f->levels[k].name, f->levels[i].name))
                return spec_fail(reader, f->levels[i].line, "%s: '%s' is listed twice", f->name,
                                 f->levels[i].name);
    }
    return 0;
}

static int check_factor_name(struct spec_reader *reader, const struct tree *key)
{
    if (!spec_is_name(key->text, strlen(key->text)))
        return spec_fail(
            reader, key->line,
            "factors: '%s' is not a valid name (letters, digits, _ and -, starting with a letter)",
            key->text);
    for (size_t i = 0; i < ARRAY_COUNT(reserved_names); i++)
        if (str_eq(key->text, reserved_names[i]))
            return spec_fail(reader, key->line, "factors: '%s' is a reserved name; choose another",
                             key->text);
    return 0;
}

static struct spec_factor *find_factor(const struct spec *s, const char *name)
{
    for (size_t i = 0; i < s->factor_count; i++)
        if (str_eq(s->factors[i].name, name))
            return &s->factors[i];
    return NULL;
}

/* In the quick section, only what is named there is replaced. */
int spec_read_factors(struct spec_reader *reader, const struct tree *value)
{
    struct spec *s = reader->s;
    bool replacing = reader->in_quick;
    int r = spec_want(reader, value, TREE_MAP, "factors");
    if (r < 0)
        return r;
    if (value->count > SPEC_FACTORS_MAX)
        return spec_fail(reader, value->line, "factors: at most %d are allowed", SPEC_FACTORS_MAX);
    if (!s->factors)
        s->factors = spec_alloc(reader, SPEC_FACTORS_MAX, sizeof(*s->factors));
    for (size_t i = 0; i < value->count; i++) {
        const struct tree *key = &value->keys[i];
        r = check_factor_name(reader, key);
        struct spec_factor *f = find_factor(s, key->text);
        if (r == 0 && replacing && !f)
            r = spec_fail(reader, key->line, "quick: there is no factor '%s' to replace",
                          key->text);
        if (r < 0)
            return r;
        if (!f)
            f = &s->factors[s->factor_count++];
        *f = (struct spec_factor){.name = key->text, .line = key->line};
        r = read_levels(reader, &value->items[i], f);
        if (r < 0)
            return r;
    }
    return 0;
}

static int factor_of_key(struct spec_reader *reader, const struct tree *key, size_t *ret_factor)
{
    const char *names[SPEC_FACTORS_MAX];
    for (size_t i = 0; i < reader->s->factor_count; i++) {
        names[i] = reader->s->factors[i].name;
        if (str_eq(names[i], key->text)) {
            *ret_factor = i;
            return 0;
        }
    }
    return spec_fail_unknown(reader, key, "factor", names, reader->s->factor_count);
}

static bool has_level(const struct spec_factor *f, const char *name)
{
    for (size_t i = 0; i < f->level_count; i++)
        if (str_eq(f->levels[i].name, name))
            return true;
    return false;
}

static int read_condition(struct spec_reader *reader, const struct tree *map,
                          struct spec_condition *c)
{
    int r = spec_want(reader, map, TREE_MAP, "exclude");
    if (r == 0 && map->count == 0)
        r = spec_fail(reader, map->line, "exclude: an empty mapping would exclude everything");
    if (r < 0)
        return r;
    c->line = map->line;
    c->factors = spec_alloc(reader, map->count, sizeof(*c->factors));
    c->values = spec_alloc(reader, map->count, sizeof(*c->values));
    for (size_t i = 0; i < map->count; i++, c->count++) {
        size_t count = 0;
        r = factor_of_key(reader, &map->keys[i], &c->factors[i]);
        if (r == 0)
            r = spec_want_texts(reader, &map->items[i], "exclude", &c->values[i], &count);
        const struct spec_factor *f = r == 0 ? &reader->s->factors[c->factors[i]] : NULL;
        for (size_t v = 0; r == 0 && v < count; v++)
            if (!has_level(f, c->values[i][v]))
                r = spec_fail(reader, map->items[i].line, "exclude: %s has no value '%s'", f->name,
                              c->values[i][v]);
        if (r < 0)
            return r;
    }
    return 0;
}

int spec_read_exclude(struct spec_reader *reader, const struct tree *value)
{
    int r = spec_want(reader, value, TREE_LIST, "exclude");
    if (r < 0)
        return r;
    reader->s->excludes = spec_alloc(reader, value->count, sizeof(*reader->s->excludes));
    reader->s->exclude_count = 0; /* that of quick replaces the other */
    for (size_t i = 0; r == 0 && i < value->count; i++)
        r = read_condition(reader, &value->items[i],
                           &reader->s->excludes[reader->s->exclude_count++]);
    return r;
}

static int read_included(struct spec_reader *reader, const struct tree *map, const char **values)
{
    int r = spec_want(reader, map, TREE_MAP, "include");
    for (size_t i = 0; r == 0 && i < map->count; i++) {
        size_t factor;
        r = factor_of_key(reader, &map->keys[i], &factor);
        if (r == 0)
            r = spec_want_text(reader, &map->items[i], "include", &values[factor]);
    }
    for (size_t f = 0; r == 0 && f < reader->s->factor_count; f++)
        if (!values[f])
            r = spec_fail(reader, map->line,
                          "include: a cell needs a value for each factor; %s is "
                          "missing",
                          reader->s->factors[f].name);
    return r;
}

int spec_read_include(struct spec_reader *reader, const struct tree *value)
{
    struct spec *s = reader->s;
    int r = spec_want(reader, value, TREE_LIST, "include");
    if (r < 0)
        return r;
    s->includes = spec_alloc(reader, value->count, sizeof(*s->includes));
    for (size_t i = 0; r == 0 && i < value->count; i++) {
        s->includes[i] = spec_alloc(reader, s->factor_count, sizeof(char *));
        s->include_count++;
        r = read_included(reader, &value->items[i], s->includes[i]);
    }
    return r;
}

const char *spec_folder(const struct spec *s, const struct spec_level *const *levels)
{
    for (size_t f = 0; levels && f < s->factor_count; f++)
        if (levels[f]->folder)
            return levels[f]->folder;
    return s->folder;
}

/* Every included cell once for each of the new factor's levels. */
static void spread_includes(struct spec_reader *reader, const struct spec_level *levels,
                            size_t count)
{
    struct spec *s = reader->s;
    size_t before = s->factor_count - 1;
    const char ***includes = spec_alloc(reader, s->include_count * count, sizeof(*includes));
    for (size_t i = 0; i < s->include_count * count; i++) {
        includes[i] = spec_alloc(reader, s->factor_count, sizeof(char *));
        memcpy(includes[i], s->includes[i / count], before * sizeof(char *));
        includes[i][before] = levels[i % count].name;
    }
    s->includes = includes;
    s->include_count *= count;
}

int spec_add_factor(struct spec *s, const char *name, const struct spec_level *levels, size_t count,
                    struct error *err)
{
    struct spec_reader reader = {.s = s, .err = err};
    if (s->factor_count == SPEC_FACTORS_MAX)
        return error_set(err, -E2BIG, "%s: there are too many factors", s->file);
    if (find_factor(s, name))
        return error_set(err, -EINVAL, "%s: a factor cannot be called '%s' here", s->file, name);
    if (!s->factors)
        s->factors = spec_alloc(&reader, SPEC_FACTORS_MAX, sizeof(*s->factors));
    struct spec_factor *f = &s->factors[s->factor_count++];
    *f = (struct spec_factor){.name = name, .level_count = count};
    f->levels = spec_alloc(&reader, count, sizeof(*f->levels));
    memcpy(f->levels, levels, count * sizeof(*levels));
    spread_includes(&reader, levels, count);
    s->baseline.items = spec_alloc(&reader, 1, sizeof(*s->baseline.items));
    s->baseline.items[0] = (struct text_pair){.name = name, .value = levels[0].name};
    s->baseline.count = 1;
    return 0;
}
