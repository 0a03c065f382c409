/* SPDX-License-Identifier: MIT */
/* JSON of other tools: loading it, and members that may be missing or of another kind.  Without
 * jansson nothing can be loaded, and loading says so. */
#ifndef ASSAY_HARNESS_JSON_H
#define ASSAY_HARNESS_JSON_H

#include "base/error.h"
#include "config.h"

#include <stdbool.h>
#include <stddef.h>

struct json_t;

int harness_json_load(const char *text, size_t length, struct json_t **ret_document,
                      struct error *err);
void harness_json_freep(struct json_t **document);

/* NULL, false or 0 when the member is not there, is of another kind, or `object` is not an object.
 */
const struct json_t *harness_get(const struct json_t *object, const char *key);
const char *harness_text(const struct json_t *object, const char *key);
bool harness_number(const struct json_t *object, const char *key, double *ret_value);
/* How many items an array has, 0 for anything else. */
size_t harness_length(const struct json_t *array);
const struct json_t *harness_item(const struct json_t *array, size_t index);
/* A number itself, not a member; NAN for anything else. */
double harness_value(const struct json_t *number);
bool harness_is_object(const struct json_t *value);
bool harness_is_true(const struct json_t *object, const char *key);
/* A text as it stands, a number or truth value as JSON writes it; the caller frees it. */
char *harness_as_text(const struct json_t *value);

/* Calls `each` for every member in the order of the file, until it returns other than 0. */
int harness_each(const struct json_t *object,
                 int (*each)(void *context, const char *key, const struct json_t *value),
                 void *context);

#endif
