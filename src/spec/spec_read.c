/* SPDX-License-Identifier: MIT */
/* Values of a spec with their types, and the words for what is wrong with them. */
#include "spec/spec_read.h"
#include "base/memory.h"
#include "base/strings.h"
#include "run/command.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int spec_fail(struct spec_reader *reader, size_t line, const char *format, ...)
{
    char words[768];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof(words), format, arguments);
    va_end(arguments);
    return error_set(reader->err, -EINVAL, "%s:%zu: %s", reader->s->file, line, words);
}

int spec_fail_unknown(struct spec_reader *reader, const struct tree *key, const char *what,
                      const char *const *known, size_t known_count)
{
    CLEANUP(strbuf_done) struct strbuf near = {0}, safe = {0};
    strbuf_put_safe(&safe, key->text, strlen(key->text), 60);
    if (str_nearest(key->text, known, known_count, 3, &near))
        return spec_fail(reader, key->line, "unknown %s '%s'; did you mean %s?", what,
                         strbuf_text(&safe), strbuf_text(&near));
    strbuf_clear(&near);
    for (size_t i = 0; i < known_count; i++)
        strbuf_printf(&near, "%s%s", i ? ", " : "", known[i]);
    return spec_fail(reader, key->line, "unknown %s '%s'; expected one of %s", what,
                     strbuf_text(&safe), strbuf_text(&near));
}

void *spec_alloc(struct spec_reader *reader, size_t count, size_t size_bytes)
{
    void *memory = arena_alloc(&reader->s->arena, (count ? count : 1) * size_bytes);
    memset(memory, 0, (count ? count : 1) * size_bytes);
    return memory;
}

bool spec_is_name(const char *text, size_t length)
{
    if (length == 0 || length > 63 || !isalpha((unsigned char)text[0]))
        return false;
    for (size_t i = 1; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr("_-", text[i]))
            return false;
    return true;
}

int spec_want(struct spec_reader *reader, const struct tree *value, enum tree_kind kind,
              const char *key)
{
    if (value->kind == kind)
        return 0;
    return spec_fail(reader, value->line, "%s: must be %s, not %s", key, tree_kind_name(kind),
                     tree_kind_name(value->kind));
}

int spec_want_text(struct spec_reader *reader, const struct tree *value, const char *key,
                   const char **ret)
{
    int r = spec_want(reader, value, TREE_SCALAR, key);
    if (r == 0 && !value->text[0])
        r = spec_fail(reader, value->line, "%s: is empty", key);
    if (r == 0)
        *ret = value->text;
    return r;
}

int spec_want_bool(struct spec_reader *reader, const struct tree *value, const char *key, bool *ret)
{
    const char *text;
    int r = spec_want_text(reader, value, key, &text);
    if (r < 0)
        return r;
    if (str_eq(text, "true") || str_eq(text, "yes") || str_eq(text, "on"))
        *ret = true;
    else if (str_eq(text, "false") || str_eq(text, "no") || str_eq(text, "off"))
        *ret = false;
    else
        return spec_fail(reader, value->line, "%s: must be true or false, not '%s'", key, text);
    return 0;
}

int spec_want_u64(struct spec_reader *reader, const struct tree *value, const char *key,
                  uint64_t min, uint64_t max, uint64_t *ret)
{
    const char *text;
    uint64_t number;
    int r = spec_want_text(reader, value, key, &text);
    if (r < 0)
        return r;
    struct error err;
    if (parse_u64(text, &number, &err) < 0)
        return spec_fail(reader, value->line, "%s: %s", key, err.message);
    if (number < min || number > max)
        return spec_fail(reader, value->line, "%s: must be between %llu and %llu, not %s", key,
                         (unsigned long long)min, (unsigned long long)max, text);
    *ret = number;
    return 0;
}

int spec_want_duration(struct spec_reader *reader, const struct tree *value, const char *key,
                       uint64_t *ret_ns)
{
    const char *text;
    uint64_t ns;
    int r = spec_want_text(reader, value, key, &text);
    if (r < 0)
        return r;
    struct error err;
    if (parse_duration_ns(text, 1000000000ULL, &ns, &err) < 0)
        return spec_fail(reader, value->line, "%s: %s", key, err.message);
    if (ns == 0)
        return spec_fail(reader, value->line, "%s: must be longer than zero", key);
    *ret_ns = ns;
    return 0;
}

int spec_want_pairs(struct spec_reader *reader, const struct tree *value, const char *key,
                    struct text_pairs *ret)
{
    int r = spec_want(reader, value, TREE_MAP, key);
    if (r < 0)
        return r;
    ret->items = spec_alloc(reader, value->count, sizeof(*ret->items));
    ret->count = value->count;
    for (size_t i = 0; i < value->count; i++) {
        if (value->items[i].kind != TREE_SCALAR)
            return spec_fail(reader, value->items[i].line, "%s: %s must be a string, not %s", key,
                             value->keys[i].text, tree_kind_name(value->items[i].kind));
        ret->items[i] = (struct text_pair){.name = value->keys[i].text,
                                           .value = value->items[i].text,
                                           .line = value->items[i].line};
    }
    return 0;
}

int spec_want_texts(struct spec_reader *reader, const struct tree *value, const char *key,
                    const char ***ret_texts, size_t *ret_count)
{
    if (value->kind == TREE_MAP)
        return spec_fail(reader, value->line, "%s: must be a list or a string, not a mapping", key);
    bool is_list = value->kind == TREE_LIST;
    size_t count = is_list ? value->count : value->text[0] ? 1 : 0;
    const char **texts = spec_alloc(reader, count + 1, sizeof(*texts));
    for (size_t i = 0; i < count; i++) {
        int r = spec_want_text(reader, is_list ? &value->items[i] : value, key, &texts[i]);
        if (r < 0)
            return r;
    }
    *ret_texts = texts;
    *ret_count = count;
    return 0;
}

int spec_want_command(struct spec_reader *reader, const struct tree *value, const char *key,
                      struct spec_command *ret)
{
    ret->line = value->line;
    if (value->kind == TREE_LIST) {
        size_t count;
        int r = spec_want_texts(reader, value, key, &ret->words, &count);
        if (r == 0 && count == 0)
            r = spec_fail(reader, value->line, "%s: is an empty list", key);
        return r;
    }
    int r = spec_want_text(reader, value, key, &ret->text);
    if (r == 0 && ret->text[strspn(ret->text, " \t\n")] == '\0')
        r = spec_fail(reader, value->line, "%s: is empty", key);
    struct error err;
    if (r == 0 && command_needs_shell(ret->text, &ret->shell, &err) < 0)
        r = spec_fail(reader, value->line, "%s: %s", key, err.message);
    return r;
}
