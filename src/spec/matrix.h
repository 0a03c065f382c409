/* SPDX-License-Identifier: MIT */
/*
 * The cells of an experiment: every combination of the factors' values, less what is excluded, with
 * what is included.  The first factor changes slowest.
 */
#ifndef ASSAY_SPEC_MATRIX_H
#define ASSAY_SPEC_MATRIX_H

#include "spec/spec.h"

struct matrix_cell {
    const struct spec_level **levels; /* one per factor */
    char *label;                      /* "variant=send size=64"; "all" without factors */
    size_t baseline;                  /* the cell it is compared with; its own index for none */
};

struct matrix {
    const struct spec *spec;
    struct matrix_cell *cells;
    size_t count, capacity;
    /* The cell of each combination of the factors' own levels, counted with the last factor
     * fastest; MATRIX_NONE where it is excluded. */
    uint32_t *by_combination;
    size_t combination_count;
    size_t included; /* cells from here on were added by `include` */
    struct arena arena;
};

#define MATRIX_NONE UINT32_MAX

int matrix_make(struct matrix *m, const struct spec *spec, struct error *err);
void matrix_done(struct matrix *m);

/*
 * Keeps only some cells: "1,4-6" by their numbers (from 1, as --dry-run shows them), or
 * "variant=send,size=64": of one factor any of the values, of different factors all.  Fails when a
 * word means nothing or no cell is left.  ret_kept (one per cell) says which.
 */
int matrix_select(const struct matrix *m, const char *words, bool *ret_kept, struct error *err);

#endif
