/* SPDX-License-Identifier: MIT */
/* See json.h. */
#include "harness/json.h"
#include "base/memory.h"
#include "base/strings.h"

#include <errno.h>
#include <math.h>

#if HAVE_JANSSON
#include <jansson.h>

int harness_json_load(const char *text, size_t length, struct json_t **ret_document,
                      struct error *err)
{
    json_error_t where;
    *ret_document = json_loadb(text, length, 0, &where);
    if (*ret_document)
        return 0;
    CLEANUP(strbuf_done) struct strbuf words = {0};
    strbuf_put_safe(&words, where.text, strlen(where.text), 120);
    return error_set(err, -EINVAL, "line %d, column %d: not JSON: %s", where.line, where.column,
                     strbuf_text(&words));
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
