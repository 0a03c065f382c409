/* SPDX-License-Identifier: MIT */
/*
 * TCP's congestion control, by trial.
 *
 * An ordinary user may choose only what net.ipv4.tcp_allowed_congestion_control lists.  Variants
 * are compared fairly when all have the same one: `--cc fair` is cubic where this user may have it,
 * and the system's own where not.
 */
#ifndef ASSAY_MOVE_CC_H
#define ASSAY_MOVE_CC_H

#include "settings.h"

enum { CC_NAME_BYTES = 16 }; /* the kernel's TCP_CA_NAME_MAX */
#define CC_FAIR "cubic"

/* "system" and "fair" become what they mean here; other names stay and are tried with the run. */
void cc_resolve(struct settings *s);
/* The name that a connection with these settings has; "" where it cannot be told. */
const char *cc_in_force(const struct settings *s, char name[CC_NAME_BYTES]);

#endif
