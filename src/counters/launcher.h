/* SPDX-License-Identifier: MIT */
/*
 * A small process that starts commands.
 *
 * The kernel counts the memory of the process that starts a command, up to its exec, as the
 * command's own: started by assay itself, a program of 2 MB shows assay's peak.  The launcher is a
 * copy of assay that has unmapped all it does not need, a few hundred KB.  It shares assay's
 * descriptors and working directory, and its commands become assay's children (CLONE_PARENT), so
 * that nothing else changes: counters are inherited through it, because it is made by the thread
 * that opened them, after that, and without an exec, which would switch them on.
 *
 * A launcher belongs to the thread that made it and dies with it.
 */
#ifndef ASSAY_COUNTERS_LAUNCHER_H
#define ASSAY_COUNTERS_LAUNCHER_H

#include "base/process.h"

struct launch; /* what both share */

struct launcher {
    pid_t pid; /* 0: there is none */
    struct launch *shared;
    uint64_t rss_bytes; /* what its commands start with */
    bool failed;        /* it cannot be made here: not tried again */
};

/* Makes sure that there is one; false where that is not possible. */
bool launcher_ready(struct launcher *l);
/* As process_spawn, of a program whose path is known.  -E2BIG when the words are too long: then
 * process_spawn is left.  *ret_start_ns is just before the start.  cpu_bytes 0: as the launcher. */
int launcher_spawn(struct launcher *l, const struct process_spec *spec, const void *cpus,
                   size_t cpu_bytes, pid_t *ret_pid, uint64_t *ret_start_ns);
void launcher_done(struct launcher *l);

/* The most memory that a process had so far, 0 when that is not known.  A command is started by
 * vfork, and at its exec the kernel takes over the peak of the memory it leaves: no command seems
 * to need less than the process that started it. */
uint64_t launcher_peak_bytes(pid_t pid);

#endif
