/* SPDX-License-Identifier: MIT */
/*
 * Flat tables: samples added up by any choice of keys.
 *
 * Without children a sample counts for the function that was running.  With children it counts for
 * every function on its stack as well, once each, however often a recursion repeats it.
 */
#ifndef ASSAY_PROFILE_ROWS_H
#define ASSAY_PROFILE_ROWS_H

#include "base/error.h"
#include "profile/calls.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum row_key {
    ROW_COMM,
    ROW_PID,
    ROW_TID,
    ROW_DSO,
    ROW_SYMBOL,
    ROW_SRCLINE,
    ROW_CPU,
    ROW_EVENT,
    ROW_KEY_COUNT,
};

/* "comm,dso,symbol" -> keys, each once.  An unknown word is an error that lists the known ones. */
int row_keys_parse(const char *text, enum row_key *keys, size_t *ret_count, struct error *err);
const char *row_key_name(enum row_key key);

/* Matches when one of the patterns does; with none, always.  '*' and '?' stand for any text and
 * any character, unless the whole name equals the pattern. */
struct name_filter {
    const char *const *patterns;
    size_t count;
    bool exact; /* '*' and '?' are nothing special */
};
bool name_filter_match(const struct name_filter *filter, const char *name);

#define ROWS_ALL_EVENTS UINT32_MAX

struct rows_options {
    enum row_key keys[ROW_KEY_COUNT];
    size_t key_count;
    bool children;
    bool inline_rows;  /* a sample counts for the inlined function, not for the one it is in */
    uint32_t event;    /* its number, or ROWS_ALL_EVENTS where ROW_EVENT is a key */
    bool with_members; /* keep what calltree_build needs */
    struct name_filter comms, dsos, symbols;
    struct name_filter through; /* only samples with such a function somewhere on the stack */
};

struct row {
    uint32_t values[ROW_KEY_COUNT]; /* 0 for keys that are not used; comm, dso, symbol, srcline,
                                       event by their numbers */
    bool is_kernel;
    bool is_inlined; /* everywhere in this row */
    uint64_t self_samples, self_weight;
    uint64_t total_samples, total_weight; /* equal to self without children */
    uint32_t first_member, member_count;
};

/* Samples with equal stack and equal task-side keys. */
struct row_group {
    uint32_t node;
    uint32_t values[ROW_KEY_COUNT];
    uint64_t samples, weight;
};

/* One stack of a row: where the row's function stands on it, innermost and outermost. */
struct row_member {
    uint32_t row, group;
    uint32_t inner, outer; /* nodes */
};

struct rows {
    const struct calls *calls;
    const struct tasks *tasks;
    struct rows_options options;
    struct row *items; /* heaviest first once built */
    size_t count, capacity;
    struct row_group *groups;
    size_t group_count, group_capacity;
    struct row_member *members;
    size_t member_count, member_capacity;
    uint64_t matched_samples, matched_weight; /* that passed the filters */
    struct idtable row_table, group_table;
    struct row_last { /* while building: the last group that counted for a row */
        uint32_t group, member;
    } * last;
    size_t last_capacity;
};

/* calls and tasks must outlive the rows. */
void rows_build(struct rows *rows, const struct calls *calls, const struct tasks *tasks,
                const struct rows_options *options);
void rows_done(struct rows *rows);

#endif
