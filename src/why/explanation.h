/* SPDX-License-Identifier: MIT */
/*
 * What `assay explain` found, as it is kept: one object of assay-explain-1 (docs/FORMATS.md), in
 * the store with the experiment it is about, in a file, or within a report.  Read back it is words
 * for people; the numbers stay in the JSON.
 */
#ifndef ASSAY_WHY_EXPLANATION_H
#define ASSAY_WHY_EXPLANATION_H

#include "fits/attribution.h"
#include "store/store.h"

struct explanation_reason {
    char *kind;     /* "function", "system call", … */
    char *name;     /* "memcpy" */
    char *words;    /* "memcpy +3.1 ±0.8 ns/op, 72 % of the +4.3 ns/op" */
    char *evidence; /* lines; "" for none */
    bool is_sure;   /* neither chance nor below the resolution */
    double share;   /* of the whole change; NAN for none */
};

/* A count that changed, per unit of work. */
struct explanation_count {
    char *event;
    double values[SIDE_COUNT];
    bool is_simulated;
};

struct explanation {
    char *json; /* the object itself */
    char *names[SIDE_COUNT], *cell, *per;
    char *uuids[SIDE_COUNT], *cells[SIDE_COUNT]; /* in the store; "" for commands */
    size_t run_count;                            /* measured ones of the new side */
    bool has_moved, is_profiled;
    char *wall, *cpu;   /* what the measured runs say: "5.72× faster [4.48, 10.33]" */
    char *whole;        /* the change that is taken apart, in words */
    char *unattributed; /* "+0.1 ns/op, 2 %" */
    char *simulator;    /* "" for none */
    char *notes;        /* lines */
    struct explanation_reason *reasons; /* the largest first */
    size_t reason_count, reason_capacity;
    struct explanation_count *counts;
    size_t count_count, count_capacity;
};

struct explanations {
    struct explanation *items;
    size_t count, capacity;
};

void explanations_done(struct explanations *list);

/* Adds those of an assay-explain-1 document.  -EINVAL when it is something else. */
int explanations_read(struct explanations *list, const char *text, size_t length,
                      struct error *err);

/* Keeps one, replacing what was said of the same two cells before. */
int explanation_keep(struct store *store, int64_t experiment, const char *base_uuid,
                     const char *base_cell, const char *new_cell, const char *json,
                     struct error *err);
/* Adds those that the store keeps with the experiment, the new side's. */
int explanations_load(struct explanations *list, struct store *store, int64_t experiment,
                      struct error *err);
/* Drops the i-th. */
void explanations_drop(struct explanations *list, size_t i);

#endif
