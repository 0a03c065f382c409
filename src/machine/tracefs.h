/* SPDX-License-Identifier: MIT */
/* The kernel's tracing folder, where tracepoints have their numbers and formats. */
#ifndef ASSAY_MACHINE_TRACEFS_H
#define ASSAY_MACHINE_TRACEFS_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/*
 * A descriptor of the folder "events", which the caller closes.  Where tracefs is not mounted, it
 * is mounted privately, seen through this descriptor only, so that the machine stays as it was;
 * that needs root.
 */
int tracefs_open_events(struct error *err);

/* The command that opens the folder to the caller's group; mode=755, as often advised, does not:
 * the files in it are closed to others. */
const char *tracefs_open_command(void);

/* A file of debugfs, for reading; mounted privately as tracefs is. */
int debugfs_open(const char *path, struct error *err);

/* The number of the tracepoint SYSTEM:NAME, as perf_event_open wants it. */
int tracefs_event_id(int events_fd, const char *system, const char *name, uint64_t *ret_id,
                     struct error *err);

/* Where a field of a tracepoint's records stands, as its format file says. */
struct trace_field {
    size_t offset, size;
};

/* event: "sched:sched_switch", perhaps with modifiers behind another colon. */
int tracefs_field(const char *event, const char *name, struct trace_field *ret_field,
                  struct error *err);
/* The field of a record's raw bytes as a number; 0 when the record is too short for it. */
int64_t tracefs_number(const struct trace_field *field, const void *raw, size_t raw_size);

#endif
