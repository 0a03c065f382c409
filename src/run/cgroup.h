/* SPDX-License-Identifier: MIT */
/*
 * Limits by control groups: assay makes a group in each hierarchy that a setting belongs to, enters
 * it with what it starts, and leaves and removes it in the end.  Settings are files by their names
 * ("cpu.max", "memory.max" in version 2, "cpu.cfs_quota_us" in version 1); a controller is looked
 * for in the hierarchies of version 1 first, because a controller that is bound there is not to be
 * had in version 2.
 */
#ifndef ASSAY_RUN_CGROUP_H
#define ASSAY_RUN_CGROUP_H

#include "base/error.h"
#include "base/strings.h"

enum { CGROUP_STAYS_MAX = 8 };

struct cgroup_stay {
    char *mount;  /* of the hierarchy */
    char *before; /* the group that assay came from */
    char *folder; /* the group that was made */
};

struct cgroup_stays {
    struct cgroup_stay items[CGROUP_STAYS_MAX];
    size_t count;
};

/* After a failure nothing is left behind. */
int cgroup_enter(struct cgroup_stays *stays, const struct text_pairs *settings, struct error *err);
void cgroup_leave(struct cgroup_stays *stays);

#endif
