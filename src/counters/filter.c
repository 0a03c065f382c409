/* SPDX-License-Identifier: MIT */
/* Filters of tracepoints: see filter.h. */
#include "counters/filter.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"
#include "machine/tracefs.h"

#include <errno.h>
#include <stdio.h>
#include <sys/ioctl.h>

int filter_assign(struct event_list *list, size_t first, size_t end, const char *filter,
                  struct error *err)
{
    for (size_t i = first; i < end && i < list->count; i++) {
        struct event *e = &list->items[i];
        if (e->attr.type != PERF_TYPE_TRACEPOINT)
            return error_set(err, -EINVAL, "--filter: %s is not a tracepoint and has no fields",
                             e->name);
        free(e->filter);
        e->filter = memory_strdup(filter);
    }
    return 0;
}

int filter_parse_events(struct event_list *list, const char *const *events, size_t event_count,
                        const char *const *filters, size_t filter_count, struct error *err)
{
    if (filter_count && !event_count)
        return error_set(err, -EINVAL, "--filter needs tracepoints to filter: give them with -e");
    if (filter_count > 1 && filter_count != event_count)
        return error_set(err, -EINVAL,
                         "%zu filters and %zu -e: give one filter for all of them, or one for each",
                         filter_count, event_count);
    for (size_t i = 0; i < event_count; i++) {
        size_t first = list->count;
        int r = event_list_parse(list, events[i], err);
        if (r == 0 && filter_count)
            r = filter_assign(list, first, list->count, filters[filter_count > 1 ? i : 0], err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* The names of the event's own fields, for a message. */
static void put_fields(const struct event *e, struct strbuf *out)
{
    char path[300];
    CLEANUP(strbuf_done) struct strbuf format = {0};
    CLEANUP(fd_closep) int events_fd = tracefs_open_events(NULL);
    size_t system = strcspn(e->name, ":"), name = 0;
    if (!e->name[system] || events_fd < 0)
        return;
    name = strcspn(e->name + system + 1, ":");
    snprintf(path, sizeof(path), "%.*s/%.*s/format", (int)system, e->name, (int)name,
             e->name + system + 1);
    if (file_read_at(events_fd, path, &format, NULL) < 0)
        return;
    for (const char *at = strbuf_text(&format); (at = strstr(at, "\tfield:")); at++) {
        size_t length = strcspn(at, ";[");
        const char *start = at + length;
        while (start > at && start[-1] != ' ' && start[-1] != '*')
            start--;
        if (str_has_prefix(start, "common_"))
            continue;
        strbuf_printf(out, "%s%.*s",
                      out->length ? ", " : "; its fields: ", (int)(at + length - start), start);
    }
}

int filter_apply(const struct event *e, int fd, struct error *err)
{
    if (!e || !e->filter || ioctl(fd, PERF_EVENT_IOC_SET_FILTER, e->filter) == 0)
        return 0;
    int code = -errno;
    CLEANUP(strbuf_done) struct strbuf fields = {0};
    if (code != -EINVAL)
        return error_errno(err, code, "%s: --filter '%s'", e->name, e->filter);
    put_fields(e, &fields);
    return error_set(err, code, "%s: the kernel does not understand the filter '%s'%s", e->name,
                     e->filter, strbuf_text(&fields));
}
