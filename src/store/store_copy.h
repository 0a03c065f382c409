/* SPDX-License-Identifier: MIT */
/* Experiments from one store to another: export, import and copy are all this. */
#ifndef ASSAY_STORE_STORE_COPY_H
#define ASSAY_STORE_STORE_COPY_H

#include "store/store.h"

enum copy_outcome { COPY_DONE, COPY_ALREADY_THERE, COPY_REPLACED };

/*
 * Copies one experiment with everything that belongs to it, in one transaction of the target, so
 * that a copy that was stopped is taken up again by starting it again.  What the target has
 * already (by its uuid) is left alone, unless the source has more runs of it: then it is replaced.
 * The copy may get another number.
 */
int store_copy(struct store *from, struct store *to, int64_t experiment, int64_t *ret_id,
               enum copy_outcome *ret_outcome, struct error *err);

#endif
