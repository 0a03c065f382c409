/* SPDX-License-Identifier: MIT */
/*
 * The formats of tracepoints, in the layout that trace-cmd and perf share: a magic, a version, the
 * byte order, then the files header_page and header_event of tracefs, the formats of ftrace's own
 * events (none here), those of the tracepoints by system, and three tables that may be empty
 * (symbols, printk strings, saved names).  See trace-cmd.dat(5).
 */
#include "sampler/tracing_data.h"
#include "base/fd.h"
#include "base/memory.h"
#include "machine/tracefs.h"
#include "sampler/perfdata_write.h"

#include <errno.h>
#include <stdio.h>

static const char magic[] = {23, 8, 68, 't', 'r', 'a', 'c', 'i', 'n', 'g'};

/* The parts of "system:name:modifiers". */
static bool split(const char *name, char *system, char *event, size_t size)
{
    size_t system_length = strcspn(name, ":");
    const char *rest = name + system_length + 1;
    if (!system_length || name[system_length] != ':' || strchr(name, '/'))
        return false;
    size_t event_length = strcspn(rest, ":");
    if (!event_length || system_length >= size || event_length >= size)
        return false;
    snprintf(system, size, "%.*s", (int)system_length, name);
    snprintf(event, size, "%.*s", (int)event_length, rest);
    return true;
}

static void put_file(struct strbuf *out, const struct strbuf *file)
{
    perfdata_put_u64(out, file->length);
    strbuf_append(out, strbuf_text(file), file->length);
}

static int put_header(struct strbuf *out, int events_fd, const char *name, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf file = {0};
    int r = file_read_at(events_fd, name, &file, err);
    if (r < 0)
        return error_wrap(err, r, "tracefs");
    strbuf_append(out, name, strlen(name) + 1);
    put_file(out, &file);
    return 0;
}

static bool is_first(const char *const *names, size_t index, const char *wanted_system)
{
    char system[128], event[128];
    for (size_t i = 0; i < index; i++)
        if (split(names[i], system, event, sizeof(system)) && str_eq(system, wanted_system))
            return false;
    return true;
}

static int put_system(struct strbuf *out, int events_fd, const char *wanted_system,
                      const char *const *names, size_t count, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf formats = {0};
    char system[128], event[128], path[300];
    uint32_t event_count = 0;
    for (size_t i = 0; i < count; i++) {
        CLEANUP(strbuf_done) struct strbuf file = {0};
        if (!split(names[i], system, event, sizeof(system)) || !str_eq(system, wanted_system))
            continue;
        snprintf(path, sizeof(path), "%s/%s/format", system, event);
        int r = file_read_at(events_fd, path, &file, err);
        if (r < 0)
            return error_wrap(err, r, "tracefs");
        put_file(&formats, &file);
        event_count++;
    }
    strbuf_append(out, wanted_system, strlen(wanted_system) + 1);
    perfdata_put_u32(out, event_count);
    strbuf_append(out, strbuf_text(&formats), formats.length);
    return 0;
}

static int put_systems(struct strbuf *out, int events_fd, const char *const *names, size_t count,
                       struct error *err)
{
    char system[128], event[128];
    uint32_t system_count = 0;
    for (size_t i = 0; i < count; i++)
        if (split(names[i], system, event, sizeof(system)))
            system_count += is_first(names, i, system);
    perfdata_put_u32(out, system_count);
    for (size_t i = 0; i < count; i++) {
        if (!split(names[i], system, event, sizeof(system)) || !is_first(names, i, system))
            continue;
        int r = put_system(out, events_fd, system, names, count, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int tracing_data_write(struct strbuf *out, const char *const *names, size_t count,
                       struct error *err)
{
    char system[128], event[128];
    bool any = false;
    for (size_t i = 0; i < count; i++)
        any |= split(names[i], system, event, sizeof(system));
    if (!any)
        return 0;
    CLEANUP(fd_closep) int events_fd = tracefs_open_events(err);
    if (events_fd < 0)
        return events_fd;
    strbuf_append(out, magic, sizeof(magic));
    strbuf_append(out, "0.6", 4);
    strbuf_putc(out, 0); /* little-endian */
    strbuf_putc(out, sizeof(long));
    perfdata_put_u32(out, (uint32_t)sysconf(_SC_PAGESIZE));
    int r = put_header(out, events_fd, "header_page", err);
    if (r == 0)
        r = put_header(out, events_fd, "header_event", err);
    if (r < 0)
        return r;
    perfdata_put_u32(out, 0); /* ftrace's own */
    r = put_systems(out, events_fd, names, count, err);
    perfdata_put_u32(out, 0); /* symbols */
    perfdata_put_u32(out, 0); /* printk strings */
    perfdata_put_u64(out, 0); /* saved names */
    return r;
}

/* What is left of a block. */
struct reader {
    const char *at;
    size_t left;
};

static bool take(struct reader *r, size_t size, const char **ret)
{
    if (size > r->left)
        return false;
    *ret = r->at;
    r->at += size;
    r->left -= size;
    return true;
}

static bool take_text(struct reader *r, const char **ret)
{
    const char *end = memchr(r->at, '\0', r->left);
    return end && take(r, (size_t)(end - r->at) + 1, ret);
}

static bool take_u32(struct reader *r, uint32_t *ret)
{
    const char *at;
    if (!take(r, sizeof(*ret), &at))
        return false;
    memcpy(ret, at, sizeof(*ret));
    return true;
}

/* A file: its length, then its bytes. */
static bool take_file(struct reader *r, const char **ret, size_t *ret_size)
{
    const char *at;
    uint64_t size;
    if (!take(r, sizeof(size), &at))
        return false;
    memcpy(&size, at, sizeof(size));
    *ret_size = size > r->left ? 0 : (size_t)size;
    return size <= r->left && take(r, *ret_size, ret);
}

/* Up to the formats of the tracepoints. */
static bool skip_head(struct reader *r)
{
    const char *unused;
    size_t size;
    uint32_t count;
    if (!take(r, sizeof(magic), &unused) || memcmp(unused, magic, sizeof(magic)) != 0 ||
        !take_text(r, &unused) || !take(r, 2 + sizeof(uint32_t), &unused))
        return false;
    for (size_t i = 0; i < 2; i++) /* header_page and header_event */
        if (!take_text(r, &unused) || !take_file(r, &unused, &size))
            return false;
    if (!take_u32(r, &count))
        return false;
    while (count--)
        if (!take_file(r, &unused, &size))
            return false;
    return true;
}

void tracing_data_each(const void *bytes, size_t size,
                       void (*each)(void *context, const char *system, const char *format,
                                    size_t length),
                       void *context)
{
    struct reader r = {bytes, size};
    uint32_t system_count, count;
    if (!skip_head(&r) || !take_u32(&r, &system_count))
        return;
    while (system_count--) {
        const char *system, *format;
        size_t length;
        if (!take_text(&r, &system) || !take_u32(&r, &count))
            return;
        while (count--) {
            if (!take_file(&r, &format, &length))
                return;
            each(context, system, format, length);
        }
    }
}
