/* SPDX-License-Identifier: MIT */
/* Command lines from a table: see options.h. */
#include "base/options.h"
#include "base/clock.h"
#include "base/memory.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

static bool is_last(const struct option *o)
{
    return !o->letter && !o->name && o->kind != OPTION_HEADING;
}

static bool takes_value(const struct option *o)
{
    return o->kind != OPTION_FLAG && o->kind != OPTION_COUNT && o->kind != OPTION_OPTIONAL;
}

static void spelling(const struct option *o, char *text, size_t size)
{
    if (o->name)
        snprintf(text, size, "--%s", o->name);
    else
        snprintf(text, size, "-%c", o->letter);
}

static int store(const struct option *o, void *base, const char *value, struct error *err)
{
    int r = 0;
    void *target = (char *)base + o->offset;
    switch (o->kind) {
    case OPTION_FLAG:
        *(bool *)target = true;
        break;
    case OPTION_COUNT:
        *(unsigned *)target += 1;
        break;
    case OPTION_STRING:
    case OPTION_OPTIONAL:
        *(const char **)target = value ? value : "";
        break;
    case OPTION_LIST: {
        struct option_list *list = target;
        ARRAY_PUSH(list->items, list->count, list->capacity) = value;
        break;
    }
    case OPTION_U64:
        r = parse_u64(value, target, err);
        break;
    case OPTION_DOUBLE:
        r = parse_double(value, target, err);
        break;
    case OPTION_MS:
        r = parse_duration_ns(value, NS_PER_MS, target, err);
        break;
    case OPTION_SECONDS:
        r = parse_duration_ns(value, NS_PER_S, target, err);
        break;
    case OPTION_BYTES:
        r = parse_size_bytes(value, target, err);
        break;
    case OPTION_HEADING:
        break;
    }
    if (r < 0) {
        char name[64];
        spelling(o, name, sizeof(name));
        return error_wrap(err, r, "option %s", name);
    }
    return 0;
}

static int unknown_option(const struct option *table, const char *word, struct error *err)
{
    const char *names[128];
    size_t count = 0;
    for (const struct option *o = table; !is_last(o) && count < ARRAY_COUNT(names); o++)
        if (o->name)
            names[count++] = o->name;
    CLEANUP(strbuf_done) struct strbuf near = {0};
    size_t length = strcspn(word, "=");
    CLEANUP(memory_freep) char *bare = memory_strndup(word, length);
    const char *stem = bare + strspn(bare, "-");
    if (strlen(stem) > 1 && str_nearest(stem, names, count, 1, &near))
        return error_set(err, -EINVAL,
                         "unknown option %s; did you mean --%s? --help lists them all", bare,
                         strbuf_text(&near));
    return error_set(err, -EINVAL, "unknown option %s; --help lists them all", bare);
}

static const struct option *find_long(const struct option *table, const char *name, size_t length)
{
    for (const struct option *o = table; !is_last(o); o++)
        if (o->name && strlen(o->name) == length && strncmp(o->name, name, length) == 0)
            return o;
    return NULL;
}

static const struct option *find_letter(const struct option *table, char letter)
{
    for (const struct option *o = table; !is_last(o); o++)
        if (o->letter == letter && o->kind != OPTION_HEADING)
            return o;
    return NULL;
}

static int missing_value(const struct option *o, struct error *err)
{
    char name[64];
    spelling(o, name, sizeof(name));
    return error_set(err, -EINVAL, "option %s needs a value: %s", name, o->value);
}

/* How many words behind its first value a list of several takes. */
static int more_words(const struct option *o)
{
    int count = 0;
    for (const char *c = o->kind == OPTION_LIST ? o->value : ""; *c; c++)
        count += *c == ' ';
    return count;
}

/* Stores a value and the words that belong to it; *index moves over them. */
static int store_all(const struct option *o, void *target, const char *value, int argc, char **argv,
                     int *index, struct error *err)
{
    if (*index + more_words(o) >= argc)
        return missing_value(o, err);
    int r = store(o, target, value, err);
    for (int i = more_words(o); i > 0 && r == 0; i--)
        r = store(o, target, argv[++*index], err);
    return r;
}

/* Parses one "--name[=value]"; *index moves over a value in the next word. */
static int parse_long(const struct option *table, void *target, int argc, char **argv, int *index,
                      struct error *err)
{
    const char *word = argv[*index] + 2;
    size_t length = strcspn(word, "=");
    const struct option *o = find_long(table, word, length);
    if (!o)
        return unknown_option(table, argv[*index], err);
    const char *value = word[length] == '=' ? word + length + 1 : NULL;
    if (value && (o->kind == OPTION_FLAG || o->kind == OPTION_COUNT))
        return error_set(err, -EINVAL, "option --%s takes no value", o->name);
    if (!value && takes_value(o)) {
        if (*index + 1 >= argc)
            return missing_value(o, err);
        value = argv[++*index];
    }
    return store_all(o, target, value, argc, argv, index, err);
}

/* Parses one word of letters, as -r5, -r 5 or -ddd. */
static int parse_letters(const struct option *table, void *target, int argc, char **argv,
                         int *index, struct error *err)
{
    for (const char *at = argv[*index] + 1; *at; at++) {
        const struct option *o = find_letter(table, *at);
        if (!o)
            return unknown_option(table, argv[*index], err);
        if (!takes_value(o)) {
            int r = store(o, target, NULL, err);
            if (r < 0)
                return r;
            continue;
        }
        const char *value = at[1] ? at + 1 : NULL;
        if (!value && *index + 1 >= argc)
            return missing_value(o, err);
        if (!value)
            value = argv[++*index];
        return store_all(o, target, value, argc, argv, index, err);
    }
    return 0;
}

static int parse_word(const struct option *table, void *target, int argc, char **argv, int *index,
                      struct error *err)
{
    const char *word = argv[*index];
    return word[1] == '-' ? parse_long(table, target, argc, argv, index, err)
                          : parse_letters(table, target, argc, argv, index, err);
}

static bool wants_help(const struct option *table, const char *word)
{
    return str_eq(word, "--help") || (str_eq(word, "-h") && !find_letter(table, 'h'));
}

int options_parse(const struct option *table, void *target, int argc, char **argv,
                  struct error *err)
{
    for (int index = 1; index < argc; index++) {
        const char *word = argv[index];
        if (str_eq(word, "--"))
            return index + 1;
        if (word[0] != '-' || !word[1])
            return index;
        if (wants_help(table, word))
            return OPTIONS_HELP;
        int r = parse_word(table, target, argc, argv, &index, err);
        if (r < 0)
            return r;
    }
    return argc;
}

int options_parse_mixed(const struct option *table, void *target, int argc, char **argv,
                        struct error *err)
{
    CLEANUP(memory_freep) char **rest = memory_zalloc((size_t)argc + 1, sizeof(*rest));
    int rest_count = 0, index = 1;
    for (; index < argc; index++) {
        char *word = argv[index];
        if (str_eq(word, "--")) {
            index++;
            break;
        }
        if (word[0] != '-' || !word[1]) {
            rest[rest_count++] = word;
            continue;
        }
        if (wants_help(table, word))
            return OPTIONS_HELP;
        int r = parse_word(table, target, argc, argv, &index, err);
        if (r < 0)
            return r;
    }
    for (; index < argc; index++)
        rest[rest_count++] = argv[index];
    int first = argc - rest_count;
    for (int i = 0; i < rest_count; i++)
        argv[first + i] = rest[i];
    return first ? first : 1;
}

void options_help(const struct verb *verb, struct strbuf *out)
{
    strbuf_printf(out, "usage: assay %s %s\n\n%c%s.\n", verb->name, verb->synopsis,
                  toupper(verb->summary[0]), verb->summary + 1);
    bool heading = false;
    for (const struct option *o = verb->options; o && !is_last(o); o++) {
        if (o->kind == OPTION_HEADING) {
            strbuf_printf(out, "\n%s:\n", o->help);
            heading = true;
            continue;
        }
        if (!heading)
            strbuf_puts(out, "\nOptions:\n");
        heading = true;
        size_t start = out->length;
        strbuf_printf(out, "  %c%c%s", o->letter ? '-' : ' ', o->letter ? o->letter : ' ',
                      o->letter && o->name ? ", " : "  ");
        if (o->name)
            strbuf_printf(out, "--%s", o->name);
        if (o->value)
            strbuf_printf(out, o->kind == OPTION_OPTIONAL ? "[=%s]" : " %s", o->value);
        size_t width = str_columns(out->data + start);
        if (width >= 28)
            strbuf_putc(out, '\n');
        strbuf_pad(out, ' ', width >= 28 ? 30 : 30 - width);
        strbuf_printf(out, "%s\n", o->help);
    }
    if (verb->examples)
        strbuf_printf(out, "\nExamples:\n%s", verb->examples);
    strbuf_printf(out, "\nThe manual: man assay-%s\n", verb->name);
}

int option_share(const char *name, const char *text, double most, double *ret_share,
                 struct error *err)
{
    int r = parse_share(text, most, ret_share, err);
    return r < 0 ? error_wrap(err, r, "option --%s", name) : 0;
}
