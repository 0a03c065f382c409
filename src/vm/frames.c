/* SPDX-License-Identifier: MIT */
/* See frames.h. */
#include "vm/frames.h"
#include "base/clock.h"
#include "base/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum { COUNTS_MAX = 256 };

bool vm_frame_parse(const char *line, struct vm_frame *ret)
{
    unsigned long long length;
    struct vm_frame f = {0};
    int fields = sscanf(line, "%15[a-z] %llu %li", f.kind, &length, &f.word);
    if (fields < 2 || length > VM_FRAME_MAX)
        return false;
    f.length = (size_t)length;
    *ret = f;
    return true;
}

void vm_frame_put(struct strbuf *out, const char *kind, const char *word, const void *bytes,
                  size_t length)
{
    strbuf_printf(out, "%s %zu%s%s\n", kind, length, *word ? " " : "", word);
    if (length)
        strbuf_append(out, bytes, length);
}

/* What was handed out goes when something new comes. */
void vm_frames_add(struct vm_frames *f, const void *bytes, size_t length)
{
    if (f->at == f->bytes.length) {
        strbuf_clear(&f->bytes);
        f->at = 0;
    } else if (f->at > (1 << 20)) {
        memmove(f->bytes.data, f->bytes.data + f->at, f->bytes.length - f->at);
        f->bytes.length -= f->at;
        f->at = 0;
    }
    strbuf_append(&f->bytes, bytes, length);
}

int vm_frames_next(struct vm_frames *f, struct vm_frame *ret, struct error *err)
{
    size_t left = f->bytes.length - f->at;
    const char *head = left ? f->bytes.data + f->at : NULL;
    const char *end = head ? memchr(head, '\n', left < VM_HEADER_MAX ? left : VM_HEADER_MAX) : NULL;
    if (!end && left < VM_HEADER_MAX)
        return 0;
    char line[VM_HEADER_MAX + 1] = "";
    size_t size = end ? (size_t)(end - head) : 0;
    memcpy(line, head, size);
    line[size] = '\0';
    if (!end || !vm_frame_parse(line, ret)) {
        CLEANUP(strbuf_done) struct strbuf safe = {0};
        strbuf_put_safe(&safe, head, left, 40);
        return error_set(err, -EPROTO, "the machine sent an invalid answer: %s",
                         strbuf_text(&safe));
    }
    if (left - size - 1 < ret->length)
        return 0;
    ret->payload = end + 1;
    f->at += size + 1 + ret->length;
    return 1;
}

void vm_frames_done(struct vm_frames *f)
{
    strbuf_done(&f->bytes);
    f->at = 0;
}

void vm_usage_put(struct strbuf *out, uint64_t wall_ns, const struct rusage *u)
{
    strbuf_printf(out, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %ld %ld %ld %ld %ld", wall_ns,
                  timeval_ns(u->ru_utime), timeval_ns(u->ru_stime), u->ru_maxrss, u->ru_minflt,
                  u->ru_majflt, u->ru_nvcsw, u->ru_nivcsw);
}

bool vm_usage_parse(const char *text, size_t length, struct vm_usage *ret)
{
    CLEANUP(memory_freep) char *line = memory_strndup(text, length);
    uint64_t n[8];
    int used = 0;
    for (size_t i = 0; i < ARRAY_COUNT(n); i++) {
        int more = 0;
        if (sscanf(line + used, "%" SCNu64 "%n", &n[i], &more) != 1)
            return false;
        used += more;
    }
    if (line[used])
        return false;
    *ret = (struct vm_usage){n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7]};
    return true;
}

void vm_counts_put(struct strbuf *out, const char *name, const char *why,
                   const struct counter_value *value)
{
    if (why)
        strbuf_printf(out, "-\t%s\t%s\n", name, why);
    else
        strbuf_printf(out, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %d\t%s\n", value->raw,
                      value->enabled_ns, value->running_ns, value->failed, name);
}

static bool parse_count(char *line, struct vm_count *ret)
{
    char *name = strchr(line, '\t'), *why = name ? strchr(name + 1, '\t') : NULL;
    if (!name)
        return false;
    *name++ = '\0';
    struct vm_count c = {0};
    if (str_eq(line, "-")) {
        if (!why)
            return false;
        *why++ = '\0';
        c.why = memory_strdup(why);
    } else {
        int failed;
        if (sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %d", &c.value.raw,
                   &c.value.enabled_ns, &c.value.running_ns, &failed) != 4)
            return false;
        c.value.failed = failed != 0;
    }
    c.name = memory_strdup(name);
    *ret = c;
    return true;
}

bool vm_counts_parse(const char *text, size_t length, struct vm_counts *counts)
{
    CLEANUP(memory_freep) char *copy = memory_strndup(text, length);
    char *save = NULL;
    for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        struct vm_count c;
        if (counts->count == COUNTS_MAX || !parse_count(line, &c))
            return false;
        ARRAY_PUSH(counts->items, counts->count, counts->capacity) = c;
    }
    return true;
}

const struct vm_count *vm_counts_find(const struct vm_counts *counts, const char *name)
{
    for (size_t i = 0; i < counts->count; i++)
        if (str_eq(counts->items[i].name, name))
            return &counts->items[i];
    return NULL;
}

void vm_counts_done(struct vm_counts *counts)
{
    for (size_t i = 0; i < counts->count; i++) {
        free(counts->items[i].name);
        free(counts->items[i].why);
    }
    free(counts->items);
    *counts = (struct vm_counts){0};
}

void vm_counts_move(struct vm_counts *to, struct vm_counts *from)
{
    vm_counts_done(to);
    *to = *from;
    *from = (struct vm_counts){0};
}

bool vm_exit_parse(const char *text, size_t length, int *ret_status)
{
    char line[32];
    int number;
    if (length >= sizeof(line))
        return false;
    memcpy(line, text, length);
    line[length] = '\0';
    char more;
    if (sscanf(line, "exit %d%c", &number, &more) == 1 && number >= 0 && number < 256)
        *ret_status = number << 8;
    else if (sscanf(line, "signal %d%c", &number, &more) == 1 && number > 0 && number < 127)
        *ret_status = number;
    else
        return false;
    return true;
}
