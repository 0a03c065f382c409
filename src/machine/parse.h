/* SPDX-License-Identifier: MIT */
/* Inside src/machine: the texts of /proc and /sys.  Kernels differ and containers hide things, so
 * every parser takes any text and says false when what it wants is not there. */
#ifndef ASSAY_MACHINE_PARSE_H
#define ASSAY_MACHINE_PARSE_H

#include "base/strings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The value behind "key : value" or "key=value" at the start of a line, blanks around it and one
 * pair of quotes removed; cut to the buffer. */
bool proc_field(const char *text, const char *key, char *value, size_t size);
/* The same as a number; a unit behind it ("kB") is passed over. */
bool proc_field_u64(const char *text, const char *key, uint64_t *ret_value);
/* The same in hexadecimal digits without 0x. */
bool proc_field_hex(const char *text, const char *key, uint64_t *ret_value);

/* The chosen word of "always [madvise] never". */
bool proc_chosen(const char *text, char *word, size_t size);

/* The first line of /proc/stat, in clock ticks. */
struct proc_times {
    uint64_t user, nice, system, idle, iowait, irq, softirq, steal;
};
bool proc_stat_times(const char *text, struct proc_times *ret_times);

/* One line ("some" or "full") of a file of /proc/pressure. */
struct proc_pressure {
    double avg10, avg60, avg300; /* per cent */
    uint64_t total_us;
};
bool proc_pressure_line(const char *text, const char *kind, struct proc_pressure *ret_pressure);

/* One line of /proc/PID/cgroup, "4:memory:/a/b"; v2 has no controllers.  The parts stay the
 * line's. */
struct proc_cgroup {
    const char *controllers, *path;
    size_t controllers_length, path_length;
};
bool proc_cgroup_line(const char *line, struct proc_cgroup *ret_cgroup);

/* The part of a mapping that holds the address: its place in the file, and the file's name. */
struct proc_mapping {
    uint64_t start, end, file_offset;
    bool is_executable;
    const char *path; /* in the line, up to path_length; "" for none */
    size_t path_length;
};
bool proc_maps_line(const char *line, struct proc_mapping *ret_mapping);

/* "48K", "1024 KB", "32M" as the cache folder writes them. */
bool proc_cache_size(const char *text, uint64_t *ret_bytes);

/* The next line after this one, NULL when there is none. */
const char *proc_next_line(const char *line);

#endif
