/* SPDX-License-Identifier: MIT */
/*
 * Waits that tell nothing: a process that waits for its own child or thread to end spends there
 * what those spend, and a thread of a pool that has nothing to do waits for work, not for anybody.
 * In a table of time off the CPU they hide all others, so that they are left out unless asked for.
 */
#ifndef ASSAY_PROFILE_IDLE_H
#define ASSAY_PROFILE_IDLE_H

#include "profile/profile.h"

/* Takes these waits out of the profile's calls and events, and says in profile->idle how much that
 * was.  After profile_symbolize. */
void profile_leave_out_idle(struct profile *profile);

#endif
