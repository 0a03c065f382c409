/* SPDX-License-Identifier: MIT */
/* Probes as tracepoints of our own: see dynamic.h.  The syntax is that of the kernel's
 * Documentation/trace/uprobetracer.rst and kprobetrace.rst. */
#include "counters/dynamic.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"
#include "machine/tracefs.h"

#include <errno.h>
#include <fcntl.h>

/* Writes one line to the file that holds the definitions. */
static int write_definition(int events_fd, bool in_kernel, const char *line, struct error *err)
{
    const char *file = in_kernel ? "../kprobe_events" : "../uprobe_events";
    CLEANUP(fd_closep) int fd = openat(events_fd, file, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, -errno, "tracefs: %s", file + strlen("../"));
    int r = fd_write_all(fd, line, strlen(line));
    return r < 0 ? error_errno(err, r, "tracefs: %s: '%s'", file + strlen("../"), line) : 0;
}

/* What stands for the file in a definition, where blanks separate words and # starts a comment:
 * a name with such characters is given by a descriptor that must stay open meanwhile. */
static int put_file(struct strbuf *out, const char *path, int *ret_fd, struct error *err)
{
    if (!path[strcspn(path, " \t\n\r\v\f#\\")]) {
        strbuf_puts(out, path);
        return 0;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, -errno, "%s", path);
    *ret_fd = fd;
    strbuf_printf(out, "/proc/self/fd/%d", fd);
    return 0;
}

static int define(struct dynamic_event *d, int events_fd, const struct event *e, uint64_t *ret_id,
                  struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf line = {0};
    CLEANUP(fd_closep) int file_fd = -1;
    int r = 0;
    strbuf_printf(&line, "%c:" DYNAMIC_SYSTEM "/%s ", e->attr.config & 1 ? 'r' : 'p', d->name);
    if (d->in_kernel)
        strbuf_puts(&line, e->probe_target);
    else
        r = put_file(&line, e->probe_target, &file_fd, err);
    if (r == 0 && !d->in_kernel)
        strbuf_printf(&line, ":0x%llx", (unsigned long long)e->attr.config2);
    if (r == 0)
        r = write_definition(events_fd, d->in_kernel, strbuf_text(&line), err);
    return r < 0 ? r : tracefs_event_id(events_fd, DYNAMIC_SYSTEM, d->name, ret_id, err);
}

int dynamic_define(struct dynamic_event *d, const struct event *e, struct perf_event_attr *attr,
                   struct error *err)
{
    uint64_t id = 0;
    CLEANUP(fd_closep) int events_fd = tracefs_open_events(err);
    if (events_fd == -EACCES)
        return error_set(err, events_fd,
                         "probes need root, or CAP_PERFMON and permission to read tracefs");
    if (events_fd < 0)
        return events_fd;
    /* The clock keeps apart the events of one process, and of one that was killed before. */
    *d = (struct dynamic_event){
        .name = memory_printf("p%d_%llu", (int)getpid(), (unsigned long long)clock_now_ns()),
        .in_kernel = str_has_prefix(e->name, "k")};
    int r = define(d, events_fd, e, &id, err);
    if (r < 0) {
        dynamic_done(d);
        return r;
    }
    attr->type = PERF_TYPE_TRACEPOINT;
    attr->config = id;
    attr->config1 = attr->config2 = 0;
    return 0;
}

void dynamic_done(struct dynamic_event *d)
{
    if (!d->name)
        return;
    CLEANUP(fd_closep) int events_fd = tracefs_open_events(NULL);
    CLEANUP(memory_freep) char *line = memory_printf("-:" DYNAMIC_SYSTEM "/%s", d->name);
    /* What was never defined cannot be removed, and there is nobody to tell. */
    if (events_fd >= 0)
        write_definition(events_fd, d->in_kernel, line, NULL);
    free(d->name);
    *d = (struct dynamic_event){0};
}
