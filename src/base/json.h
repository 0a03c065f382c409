/* SPDX-License-Identifier: MIT */
/*
 * A JSON writer.  Text from outside may hold any bytes: what is no valid UTF-8 is written as
 * U+FFFD, so that the output is always valid JSON.  Numbers that are not finite become null.
 *
 *   struct json j = {.out = &buffer};
 *   json_object(&j, NULL);
 *   json_u64(&j, "value", 7);
 *   json_end(&j);
 *
 * Inside an array the key is NULL.
 */
#ifndef ASSAY_BASE_JSON_H
#define ASSAY_BASE_JSON_H

#include "base/strings.h"

#include <stdbool.h>
#include <stdint.h>

#define JSON_DEPTH_MAX 32

struct json {
    struct strbuf *out;
    bool compact; /* all on one line */
    unsigned depth;
    bool filled[JSON_DEPTH_MAX];   /* something stands at this depth already */
    bool is_array[JSON_DEPTH_MAX]; /* what json_end closes */
};

/* Four have other names for the linker: jansson has functions of these names, and a static program
 * has both. */
void json_object(struct json *j, const char *key) __asm__("assay_json_object");
void json_array(struct json *j, const char *key) __asm__("assay_json_array");
void json_end(struct json *j);
/* NULL writes null. */
void json_string(struct json *j, const char *key, const char *value) __asm__("assay_json_string");
void json_string_n(struct json *j, const char *key, const char *value, size_t length);
void json_u64(struct json *j, const char *key, uint64_t value);
void json_i64(struct json *j, const char *key, int64_t value);
void json_double(struct json *j, const char *key, double value);
void json_bool(struct json *j, const char *key, bool value);
/* A value that is JSON already. */
void json_raw(struct json *j, const char *key, const char *text);
void json_null(struct json *j, const char *key) __asm__("assay_json_null");

/* Appends one JSON string with its quotes. */
void strbuf_put_json(struct strbuf *b, const char *text, size_t length);
/* Appends a CSV field, quoted where it must be. */
void strbuf_put_csv(struct strbuf *b, const char *text);

#endif
