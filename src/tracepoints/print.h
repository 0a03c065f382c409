/* SPDX-License-Identifier: MIT */
/*
 * The print fmt of a tracepoint: a printf format and C expressions over the record's fields, with
 * helpers such as __print_flags().  It is parsed once (print_parse.c) into a tree, which is
 * evaluated for each record (print.c).  What has no meaning here makes tp_print_parse give NULL.
 */
#ifndef ASSAY_TRACEPOINTS_PRINT_H
#define ASSAY_TRACEPOINTS_PRINT_H

#include "tracepoints/format.h"

enum tp_node_kind {
    TP_NUMBER,
    TP_TEXT,
    TP_FIELD,  /* a number, a text, or the bytes of an array */
    TP_LENGTH, /* of a dynamic field, in bytes */
    TP_INDEX,  /* left[right] */
    TP_CAST,   /* to `size` bytes */
    TP_UNARY,
    TP_BINARY,
    TP_CHOICE,   /* left ? right : third */
    TP_FLAGS,    /* left, text between, pairs */
    TP_SYMBOLIC, /* left, pairs */
    TP_HEX,      /* left: bytes, right: how many */
    TP_ARRAY,    /* left: bytes, right: how many, third: size of each */
};

struct tp_pair {
    uint64_t value;
    const char *text;
};

struct tp_node {
    enum tp_node_kind kind;
    uint32_t operator; /* its characters, the first lowest */
    uint32_t size;
    bool is_signed, is_spaced;
    uint64_t number;
    const char *text;
    const struct tp_field *field;
    struct tp_node *left, *right, *third;
    struct tp_pair *pairs;
    size_t pair_count;
};

struct tp_print {
    const char *format;
    struct tp_node *arguments[64];
    size_t argument_count;
};

#define TP_OPERATOR(a, b) ((uint32_t)(a) | (uint32_t)(b) << 8)

/* Lives in the format's arena; NULL when it is not understood. */
struct tp_print *tp_print_parse(struct tp_format *f, const char *text);
void tp_print_put(const struct tp_print *p, struct tp_record record, struct strbuf *out);

/* An element of an array; 0 behind its end. */
int64_t tp_element(const struct tp_field *field, const unsigned char *bytes, size_t size,
                   uint64_t index);

#endif
