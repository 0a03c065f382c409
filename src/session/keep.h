/* SPDX-License-Identifier: MIT */
/* A table of values that was measured outside of a session, put into the store as an experiment of
 * its own: `assay ab --save`. */
#ifndef ASSAY_SESSION_KEEP_H
#define ASSAY_SESSION_KEEP_H

#include "analysis/dataset.h"

/* All runs of the table with their values, in the store that store_place gives; *ret_id is the new
 * experiment's number. */
int keep_dataset(const struct dataset *d, const char *place, const char *name, int64_t *ret_id,
                 struct error *err);

#endif
