/* SPDX-License-Identifier: MIT */
#include "vr/load/history.h"
#include "base/memory.h"
#include "base/strings.h"
#include "vr/core/service.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

struct operation {
    uint64_t client, begin_ns, value, expect, read;
    int64_t end_ns; /* -1: never */
    char name[16];
    uint32_t key, process;
    int status;
};

struct event {
    uint64_t time_ns;
    uint32_t operation;
    /* At one time: what begins may have overlapped what ends, but a process ends one operation
     * before it begins the next. */
    enum { BEGIN, END, BEGIN_BEHIND } kind;
};

struct history {
    struct operation *operations;
    uint32_t count, capacity;
    uint64_t last_ns;
};

int vr_history_form_parse(const char *text, enum vr_history_form *ret_form, struct error *err)
{
    static const char *const names[] = {"text", "edn", "porcupine"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        if (!text || str_eq(text, names[i])) {
            *ret_form = (enum vr_history_form)i;
            return 0;
        }
    return error_set(err, -EINVAL, "--history-format '%s': use text, edn or porcupine", text);
}

static int read_all(struct history *h, FILE *in, struct error *err)
{
    struct operation o = {0};
    int fields;
    while ((fields = fscanf(in,
                            "%" SCNx64 " %" SCNu64 " %" SCNi64 " %15s %u %" SCNu64 " %" SCNu64
                            " %d %" SCNu64,
                            &o.client, &o.begin_ns, &o.end_ns, o.name, &o.key, &o.value, &o.expect,
                            &o.status, &o.read)) == 9) {
        if (h->count == h->capacity) {
            h->capacity = h->capacity ? 2 * h->capacity : 1024;
            h->operations = memory_resize(h->operations, h->capacity, sizeof(o));
        }
        h->operations[h->count++] = o;
        uint64_t until = o.end_ns < 0 ? o.begin_ns : (uint64_t)o.end_ns;
        h->last_ns = until > h->last_ns ? until : h->last_ns;
    }
    return fields == EOF ? 0 : error_set(err, -EBADMSG, "the history cannot be read back");
}

static int by_client(const void *a, const void *b)
{
    const struct operation *x = a, *y = b;
    if (x->client != y->client)
        return x->client < y->client ? -1 : 1;
    return x->begin_ns < y->begin_ns ? -1 : x->begin_ns > y->begin_ns;
}

/* Clients by small numbers.  After an operation that was never answered a client is another one,
 * because it may still be under way. */
static void name_processes(struct history *h)
{
    uint32_t process = 0;
    qsort(h->operations, h->count, sizeof(*h->operations), by_client);
    for (uint32_t i = 0; i < h->count; i++) {
        const struct operation *before = i ? &h->operations[i - 1] : NULL;
        process += before && (before->client != h->operations[i].client || before->end_ns < 0);
        h->operations[i].process = process;
    }
}

static int by_time(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return (int)x->kind - (int)y->kind;
}

/* A value, or nil for none. */
static void put_value(FILE *out, uint64_t value, const char *none)
{
    if (value)
        fprintf(out, "%" PRIu64, value);
    else
        fputs(none, out);
}

static void put_edn(FILE *out, const struct operation *o, bool is_end, uint64_t time_ns,
                    uint32_t index)
{
    static const char *const functions[][2] = {
        {"get", "read"}, {"put", "write"}, {"cas", "cas"}, {"delete", "delete"}, {"null", "null"}};
    const char *function = o->name;
    for (size_t i = 0; i < ARRAY_COUNT(functions); i++)
        if (str_eq(o->name, functions[i][0]))
            function = functions[i][1];
    bool failed = str_eq(o->name, "cas") && o->status != VR_OK;
    const char *type = !is_end ? "invoke" : o->end_ns < 0 ? "info" : failed ? "fail" : "ok";
    fprintf(out, "{:index %u, :time %" PRIu64 ", :process %u, :type :%s, :f :%s, :value [%u ",
            index, time_ns, o->process, type, function, o->key);
    if (str_eq(o->name, "cas")) {
        fputc('[', out);
        put_value(out, o->expect, "nil");
        fputc(' ', out);
        put_value(out, o->value, "nil");
        fputc(']', out);
    } else {
        put_value(out, str_eq(o->name, "get") ? (is_end ? o->read : 0) : o->value, "nil");
    }
    fputs("]", out);
    if (is_end && o->end_ns >= 0 && o->status != VR_OK)
        fprintf(out, ", :error :%s",
                o->status == VR_NOT_FOUND  ? "not-found"
                : o->status == VR_CONFLICT ? "conflict"
                                           : "refused");
    fputs("}\n", out);
}

static void put_events(FILE *out, const struct history *h)
{
    struct event *events = memory_alloc((2 * (size_t)h->count + 1) * sizeof(*events));
    for (uint32_t i = 0; i < h->count; i++) {
        const struct operation *o = &h->operations[i];
        uint64_t end_ns = o->end_ns < 0 ? h->last_ns + 1 : (uint64_t)o->end_ns;
        bool behind = i && o[-1].process == o->process && o[-1].end_ns == (int64_t)o->begin_ns;
        events[2 * i] = (struct event){o->begin_ns, i, behind ? BEGIN_BEHIND : BEGIN};
        events[2 * i + 1] = (struct event){end_ns, i, END};
    }
    qsort(events, 2 * (size_t)h->count, sizeof(*events), by_time);
    for (uint32_t i = 0; i < 2 * h->count; i++)
        put_edn(out, &h->operations[events[i].operation], events[i].kind == END, events[i].time_ns,
                i);
    free(events);
}

/* An operation that was never answered may happen until the end: Return is behind everything. */
static void put_operations(FILE *out, const struct history *h)
{
    fputs("[", out);
    for (uint32_t i = 0; i < h->count; i++) {
        const struct operation *o = &h->operations[i];
        uint64_t end_ns = o->end_ns < 0 ? h->last_ns + 1 : (uint64_t)o->end_ns;
        fprintf(out,
                "%s\n{\"ClientId\":%u,\"Input\":{\"op\":\"%s\",\"key\":%u,\"value\":%" PRIu64
                ",\"expect\":%" PRIu64 "},\"Call\":%" PRIu64
                ",\"Output\":{\"status\":%d,\"value\":%" PRIu64 "},\"Return\":%" PRIu64 "}",
                i ? "," : "", o->process, o->name, o->key, o->value, o->expect, o->begin_ns,
                o->status, o->read, end_ns);
    }
    fputs("\n]\n", out);
}

int vr_history_convert(FILE *in, FILE *out, enum vr_history_form form, struct error *err)
{
    struct history h = {0};
    rewind(in);
    int result = read_all(&h, in, err);
    name_processes(&h);
    if (!result && form == VR_HISTORY_EDN)
        put_events(out, &h);
    else if (!result)
        put_operations(out, &h);
    free(h.operations);
    return result;
}
