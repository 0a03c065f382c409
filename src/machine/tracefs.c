/* SPDX-License-Identifier: MIT */
/* The kernel's tracing folder: see tracefs.h. */
#include "machine/tracefs.h"
#include "base/fd.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

const char *tracefs_open_command(void)
{
    /* A mounted folder that is closed to us says so; one that is not there is not mounted. */
    bool is_mounted = access("/sys/kernel/tracing/events", F_OK) == 0 || errno == EACCES;
    return is_mounted ? "sudo mount -o remount,mode=750,gid=$(id -g) /sys/kernel/tracing"
                      : "sudo mount -t tracefs -o mode=750,gid=$(id -g) none /sys/kernel/tracing";
}

int tracefs_open_events(struct error *err)
{
    int fd = open_trace_events();
    if (fd == -EACCES)
        return error_set(err, fd,
                         "tracepoints: no permission to read tracefs; run as root, or run: %s",
                         tracefs_open_command());
    return fd >= 0 ? fd
                   : error_set(err, fd, "tracepoints: this kernel has no tracefs (CONFIG_TRACING)");
}

int tracefs_event_id(int events_fd, const char *system, const char *name, uint64_t *ret_id,
                     struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    char path[256];
    int length = snprintf(path, sizeof(path), "%s/%s/id", system, name);
    if (length < 0 || (size_t)length >= sizeof(path) || strstr(path, ".."))
        return error_set(err, -EINVAL, "'%s:%s' is not the name of a tracepoint", system, name);
    int r = file_read_at(events_fd, path, &text, NULL);
    if (r == -EACCES || r == -EPERM)
        return error_set(err, r, "tracepoint %s:%s: no permission; run as root", system, name);
    if (r < 0)
        return error_set(err, -ENOENT, "there is no tracepoint '%s:%s' on this machine", system,
                         name);
    text.data[strcspn(text.data, "\n")] = '\0';
    return parse_u64(strbuf_text(&text), ret_id, err);
}

/* "	field:pid_t prev_pid;	offset:24;	size:4;	signed:1;" */
static bool find_field(const char *format, const char *name, struct trace_field *field)
{
    size_t length = strlen(name);
    for (const char *at = format; (at = strstr(at, "\tfield:")); at++) {
        const char *end = strchr(at, ';');
        if (!end)
            return false;
        const char *bracket = memchr(at, '[', (size_t)(end - at)), *stop = bracket ? bracket : end;
        const char *start = stop - length;
        if (start <= at || memcmp(start, name, length) != 0 ||
            (start[-1] != ' ' && start[-1] != '*'))
            continue;
        return sscanf(end, ";\toffset:%zu;\tsize:%zu;", &field->offset, &field->size) == 2;
    }
    return false;
}

int tracefs_field(const char *event, const char *name, struct trace_field *ret_field,
                  struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf text = {0}, path = {0};
    CLEANUP(fd_closep) int events_fd = tracefs_open_events(err);
    if (events_fd < 0)
        return events_fd;
    size_t system = strcspn(event, ":"), whole = system + 1;
    if (event[system])
        whole += strcspn(event + whole, ":");
    strbuf_printf(&path, "%.*s/format", (int)(event[system] ? whole : system), event);
    path.data[strcspn(path.data, ":")] = '/';
    int r = file_read_at(events_fd, strbuf_text(&path), &text, err);
    if (r < 0)
        return r;
    if (!find_field(strbuf_text(&text), name, ret_field))
        return error_set(err, -ENOENT, "%s has no field '%s' in this kernel", event, name);
    return 0;
}

int64_t tracefs_number(const struct trace_field *f, const void *raw, size_t raw_size)
{
    if (f->offset > raw_size || f->size > raw_size - f->offset)
        return 0;
    const unsigned char *at = (const unsigned char *)raw + f->offset;
    if (f->size == 8) {
        int64_t value;
        memcpy(&value, at, sizeof(value));
        return value;
    }
    int32_t value = 0;
    memcpy(&value, at, f->size < 4 ? f->size : 4);
    return value;
}

int debugfs_open(const char *path, struct error *err)
{
    CLEANUP(memory_freep) char *place = memory_printf("/sys/kernel/debug/%s", path);
    int fd = open(place, O_RDONLY | O_CLOEXEC), code = fd < 0 ? -errno : 0;
    if (fd >= 0)
        return fd;
    CLEANUP(fd_closep) int root = code == -ENOENT ? mount_privately("debugfs") : code;
    if (root >= 0) {
        fd = openat(root, path, O_RDONLY | O_CLOEXEC);
        return fd >= 0 ? fd : error_errno(err, -errno, "%s", place);
    }
    if (code == -EACCES || root == -EPERM || root == -EACCES)
        return error_set(err, -EACCES, "no permission to read %s; run as root", place);
    return error_errno(err, code, "%s", place);
}
