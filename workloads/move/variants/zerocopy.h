/* SPDX-License-Identifier: MIT */
/* MSG_ZEROCOPY on any socket, for the variants that differ in the socket only. */
#ifndef ASSAY_MOVE_ZEROCOPY_H
#define ASSAY_MOVE_ZEROCOPY_H

#include "variant.h"

/* l->fd must be there; l->state is taken.  The layout says how a message lies in memory. */
int zerocopy_open(struct link *l, enum source_layout layout, struct error *err);
int zerocopy_run(struct link *l, struct error *err);
/* Waits until the kernel has let go of every buffer. */
int zerocopy_close(struct link *l, struct error *err);

/* How many slots of this size keep the pinned pages below the usual limit of locked memory. */
size_t zerocopy_slots(const struct link *l);

#endif
