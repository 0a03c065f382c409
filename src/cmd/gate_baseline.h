/* SPDX-License-Identifier: MIT */
#pragma once
/*
 * The stored result that `assay gate --baseline` compares with: an HTML report, the JSON of ab or
 * gate, or an experiment of a store.
 */
#include "report/page/embedded.h"

struct gate_baseline {
    struct dataset *set; /* the result; NULL before it is loaded */
    /* One of these holds it: */
    struct embedded file;
    struct dataset kept;
    bool is_kept;
};

/* name is a file, or else an experiment of the store db (NULL for the usual one). */
int gate_baseline_load(struct gate_baseline *baseline, const char *name, const char *db,
                       struct error *err);
void gate_baseline_done(struct gate_baseline *baseline);
