/* SPDX-License-Identifier: MIT */
/* Files: whole reads, whole writes, and results that are either written whole or not at all.
 * Every descriptor opened here is close-on-exec. */
#ifndef ASSAY_BASE_FD_H
#define ASSAY_BASE_FD_H

#include "base/error.h"
#include "base/strings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

static inline void fd_closep(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Reads a whole (small) file, /proc and /sys included.  More than 64 MiB is refused. */
int file_read(const char *path, struct strbuf *out, struct error *err);
/* The same below a folder's descriptor. */
int file_read_at(int dir_fd, const char *path, struct strbuf *out, struct error *err);
/* The first line without its end; false when it cannot be read. */
bool file_read_line(const char *path, char *line, size_t size);
/* A whole number in a file of /proc or /sys; false when there is none. */
bool file_read_i64(const char *path, int64_t *ret_value);

/* A mount that no path leads to: a descriptor of its root, or a negative errno. */
int mount_privately(const char *kind);
/* The events of tracefs, mounted or not: a descriptor, or a negative errno (-EACCES: no
 * permission).
 */
int open_trace_events(void);
/* The id of a tracepoint, such as "raw_syscalls/sys_enter"; false when it is not to be seen. */
bool read_trace_event_id(const char *event, uint64_t *ret_id);

/* Where temporary files go: TMPDIR, or /tmp where that is not set or nothing can be written there.
 */
const char *temporary_folder(void);

int fd_write_all(int fd, const void *bytes, size_t length);

/* Removes a directory with all that is in it, as far as it may; links are not followed. */
void file_remove_tree(const char *path);

/*
 * A result file.  A regular file appears under its name only when outfile_commit succeeded: until
 * then the bytes are in a temporary file beside it, which outfile_done removes.  A device, a pipe
 * or "-" (standard output) is written directly, and so is a file that is assay's standard output or
 * error, has other names, belongs to someone else, or stands in a folder that is closed.
 */
struct outfile {
    int fd;
    char *path;           /* what the user named */
    char *temporary_path; /* NULL when written directly */
    bool in_place;        /* an old content is still to be removed */
};

int outfile_open(struct outfile *o, const char *path, struct error *err);
int outfile_write(struct outfile *o, const void *bytes, size_t length, struct error *err);
int outfile_commit(struct outfile *o, struct error *err);
void outfile_done(struct outfile *o);

/* Opens, writes and commits in one. */
int file_write(const char *path, const void *bytes, size_t length, struct error *err);

#endif
