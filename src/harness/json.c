/* SPDX-License-Identifier: MIT */
/* See json.h. */
#include "harness/json.h"
#include "base/memory.h"
#include "base/strings.h"

#include <errno.h>
#include <math.h>

#if HAVE_JANSSON
#include <jansson.h>

/* The word at `at` that stands for no number: NaN, Infinity and their like; its length or 0. */
static size_t no_number(const char *at, const char *end)
{
    static const char *const words[] = {"NaN", "nan", "Infinity", "inf"};
    size_t sign = at < end && *at == '-';
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        size_t length = strlen(words[i]);
        if ((size_t)(end - at) >= sign + length && memcmp(at + sign, words[i], length) == 0)
            return sign + length;
    }
    return 0;
}

/* An integer that does not fit into 64 bits, as fio writes where it means none. */
static size_t long_integer(const char *at, const char *end)
{
    const char *digit = at;
    while (digit < end && *digit >= '0' && *digit <= '9')
        digit++;
    bool is_real = digit < end && strchr(".eE", *digit);
    return digit - at >= 19 && !is_real ? (size_t)(digit - at) : 0;
}

/* What JSON does not have and tools write nevertheless: null for NaN, a real for a long integer.
 * Whether there was any of it. */
static bool mend(struct strbuf *out, const char *text, size_t length)
{
    const char *end = text + length;
    bool in_text = false, after_digit = false, any = false;
    for (const char *at = text; at < end;) {
        size_t none = in_text || after_digit ? 0 : no_number(at, end);
        size_t whole = in_text || after_digit ? 0 : long_integer(at, end);
        if (none) {
            strbuf_puts(out, "null");
        } else if (whole) {
            strbuf_append(out, at, whole);
            strbuf_puts(out, "e0");
        } else {
            bool is_escape = in_text && *at == '\\' && at + 1 < end;
            in_text ^= *at == '"';
            after_digit = (*at >= '0' && *at <= '9') || *at == '.';
            strbuf_append(out, at, 1 + is_escape);
            at += 1 + is_escape;
        }
        at += none + whole;
        any |= none || whole;
    }
    return any;
}

/* What to do about it, where jansson's words tell. */
static const char *remedy(const char *words)
{
    if (strstr(words, "end of file expected"))
        return "; something follows the end of the document: give one document a file";
    if (strstr(words, "near end of file") || strstr(words, "premature end"))
        return "; the file ends too early: let the tool write it again";
    return "";
}

int harness_json_load(const char *text, size_t length, struct json_t **ret_document,
                      struct error *err)
{
    json_error_t where;
    *ret_document = json_loadb(text, length, 0, &where);
    size_t blank = strspn(text, " \t\r\n");
    if (!*ret_document && (text[blank] == '{' || text[blank] == '[')) {
        CLEANUP(strbuf_done) struct strbuf mended = {0};
        if (mend(&mended, text, length)) /* what is wrong then is not what was mended */
            *ret_document = json_loadb(strbuf_text(&mended), mended.length, 0, &where);
    }
    if (*ret_document)
        return 0;
    CLEANUP(strbuf_done) struct strbuf words = {0};
    strbuf_put_safe(&words, where.text, strlen(where.text), 120);
    return error_set(err, -EINVAL, "line %d, column %d: not JSON: %s%s", where.line, where.column,
                     strbuf_text(&words), remedy(where.text));
}

void harness_json_freep(struct json_t **document)
{
    json_decref(*document);
}

const struct json_t *harness_get(const struct json_t *object, const char *key)
{
    return json_object_get(object, key);
}

const char *harness_text(const struct json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

double harness_value(const struct json_t *number)
{
    return json_is_number(number) ? json_number_value(number) : NAN;
}

bool harness_number(const struct json_t *object, const char *key, double *ret_value)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value))
        return false;
    *ret_value = json_number_value(value);
    return true;
}

size_t harness_length(const struct json_t *array)
{
    return json_array_size(array);
}

const struct json_t *harness_item(const struct json_t *array, size_t index)
{
    return json_array_get(array, index);
}

bool harness_is_object(const struct json_t *value)
{
    return json_is_object(value);
}

bool harness_is_true(const struct json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

char *harness_as_text(const struct json_t *value)
{
    if (json_is_string(value))
        return memory_strdup(json_string_value(value));
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15));
    return text ? text : memory_strdup("");
}

int harness_each(const struct json_t *object,
                 int (*each)(void *context, const char *key, const struct json_t *value),
                 void *context)
{
    int r = 0;
    json_t *mutable = (json_t *)object;
    for (void *at = json_object_iter(mutable); at && r == 0;
         at = json_object_iter_next(mutable, at))
        r = each(context, json_object_iter_key(at), json_object_iter_value(at));
    return r;
}

#else

int harness_json_load(const char *text, size_t length, struct json_t **ret_document,
                      struct error *err)
{
    (void)text;
    (void)length;
    *ret_document = NULL;
    return error_set(err, -ENOTSUP,
                     "assay was built without jansson and cannot read JSON; install libjansson-dev "
                     "and rebuild it");
}

void harness_json_freep(struct json_t **document)
{
    *document = NULL;
}

const struct json_t *harness_get(const struct json_t *object, const char *key)
{
    (void)object;
    (void)key;
    return NULL;
}

const char *harness_text(const struct json_t *object, const char *key)
{
    (void)object;
    (void)key;
    return NULL;
}

double harness_value(const struct json_t *number)
{
    (void)number;
    return NAN;
}

bool harness_number(const struct json_t *object, const char *key, double *ret_value)
{
    (void)object;
    (void)key;
    (void)ret_value;
    return false;
}

size_t harness_length(const struct json_t *array)
{
    (void)array;
    return 0;
}

const struct json_t *harness_item(const struct json_t *array, size_t index)
{
    (void)array;
    (void)index;
    return NULL;
}

bool harness_is_object(const struct json_t *value)
{
    (void)value;
    return false;
}

bool harness_is_true(const struct json_t *object, const char *key)
{
    (void)object;
    (void)key;
    return false;
}

char *harness_as_text(const struct json_t *value)
{
    (void)value;
    return memory_strdup("");
}

int harness_each(const struct json_t *object,
                 int (*each)(void *context, const char *key, const struct json_t *value),
                 void *context)
{
    (void)object;
    (void)each;
    (void)context;
    return 0;
}

#endif
