/* SPDX-License-Identifier: MIT */
/*
 * What a tracepoint's record holds, as its format file in tracefs says:
 *
 *   name: sched_wakeup
 *   ID: 317
 *   format:
 *   	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
 *   	…
 *   	field:char comm[16];	offset:8;	size:16;	signed:0;
 *   print fmt: "comm=%s pid=%d", REC->comm, REC->pid
 *
 * The text may come from a recording, so nothing in it is trusted, and nor is a record's length.
 */
#ifndef ASSAY_TRACEPOINTS_FORMAT_H
#define ASSAY_TRACEPOINTS_FORMAT_H

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "base/strings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tp_field {
    const char *name;
    uint32_t offset, size;
    uint32_t element_size; /* of an array, else the size */
    bool is_signed;
    bool is_array;   /* of a fixed length */
    bool is_dynamic; /* its four bytes say where in the record it lies (__data_loc, __rel_loc) */
    bool is_relative;
    bool is_text;    /* chars */
    bool is_pointer; /* worth printing in hexadecimal */
    bool is_common;  /* of all events: common_type and its like */
};

struct tp_print;

struct tp_format {
    const char *system, *name;
    uint64_t id;
    struct tp_field *fields;
    size_t field_count;
    struct tp_print *print; /* NULL when the print fmt is not understood */
    struct arena arena;
};

/* The text of a format file. */
int tp_format_parse(struct tp_format *ret, const char *system, const char *text, size_t length,
                    struct error *err);
/* Reads it from tracefs. */
int tp_format_read(struct tp_format *ret, int events_fd, const char *system, const char *name,
                   struct error *err);
void tp_format_done(struct tp_format *f);

/* NULL when there is no such field. */
const struct tp_field *tp_format_field(const struct tp_format *f, const char *name);

/* A record as the kernel wrote it. */
struct tp_record {
    const unsigned char *bytes;
    size_t size;
};

/* 0 where the record is too short. */
int64_t tp_number(const struct tp_field *field, struct tp_record record);
/* Where the field's bytes lie, for texts up to their end; NULL where the record is too short. */
const unsigned char *tp_bytes(const struct tp_field *field, struct tp_record record,
                              size_t *ret_size);

/* "comm=bash pid=7": as the print fmt says, else each field with its name. */
void tp_put(const struct tp_format *f, struct tp_record record, struct strbuf *out);
/* Each field that is not common, by its name. */
void tp_put_json(const struct tp_format *f, struct tp_record record, struct json *j);

#endif
