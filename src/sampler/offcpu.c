/* SPDX-License-Identifier: MIT */
/* Time off the CPU: see offcpu.h. */
#include "sampler/offcpu.h"
#include "base/memory.h"
#include "base/strings.h"

/* A thread and the sample of its last leaving, kept with all that it points to. */
struct thread {
    uint32_t tid;
    bool used, is_away, has_exited;
    bool is_new; /* forked and not yet seen on a CPU */
    struct perfdata_record record;
    unsigned char *bytes;
    size_t capacity;
};

struct offcpu {
    struct thread *threads; /* open addressing by tid; a power of two, at most half full */
    size_t slot_count, thread_count;
    size_t flush_index;
    uint64_t newest_ns;
    struct offcpu_losses losses;
};

struct offcpu *offcpu_new(void)
{
    struct offcpu *o = memory_zalloc(1, sizeof(*o));
    o->slot_count = 256;
    o->threads = memory_zalloc(o->slot_count, sizeof(*o->threads));
    return o;
}

void offcpu_free(struct offcpu *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < o->slot_count; i++)
        free(o->threads[i].bytes);
    free(o->threads);
    free(o);
}

static struct thread *find_slot(struct offcpu *o, uint32_t tid)
{
    size_t at = tid * 0x9e3779b1u;
    for (at &= o->slot_count - 1; o->threads[at].used; at = (at + 1) & (o->slot_count - 1))
        if (o->threads[at].tid == tid)
            break;
    return &o->threads[at];
}

static struct thread *find_thread(struct offcpu *o, uint32_t tid)
{
    if (o->thread_count * 2 >= o->slot_count) {
        struct thread *old = o->threads;
        size_t old_count = o->slot_count;
        o->slot_count *= 2;
        o->threads = memory_zalloc(o->slot_count, sizeof(*o->threads));
        for (size_t i = 0; i < old_count; i++)
            if (old[i].used)
                *find_slot(o, old[i].tid) = old[i];
        free(old);
    }
    struct thread *t = find_slot(o, tid);
    o->thread_count += !t->used;
    t->used = true;
    t->tid = tid;
    return t;
}

bool offcpu_is_event(const struct perfdata_event *event)
{
    return event && event->attr.type == PERF_TYPE_SOFTWARE &&
           event->attr.config == PERF_COUNT_SW_CONTEXT_SWITCHES && event->attr.context_switch &&
           str_eq(event->name, OFFCPU_EVENT_NAME);
}

/* Copies one part of a sample behind the others; the room was made before. */
static const void *keep(unsigned char **at, const void *bytes, size_t size)
{
    if (!bytes || !size)
        return NULL;
    void *copy = memcpy(*at, bytes, size);
    *at += (size + 7) & ~(size_t)7;
    return copy;
}

static void leave(struct thread *t, const struct perfdata_record *r)
{
    const struct perfdata_sample *s = &r->sample;
    size_t chain_size = (size_t)s->callchain_count * 8, stack_size = (size_t)s->user_stack_size;
    size_t regs_size = s->user_regs ? (size_t)__builtin_popcountll(s->user_regs_mask) * 8 : 0;
    t->bytes = memory_grow(t->bytes, &t->capacity, chain_size + stack_size + regs_size + 24, 1);
    t->record = *r;
    t->is_away = true;
    /* What is not kept must not point into the file's buffers. */
    t->record.bytes = NULL;
    struct perfdata_sample *kept = &t->record.sample;
    kept->branches = NULL;
    kept->branch_count = 0;
    kept->intr_regs = NULL;
    kept->raw = NULL;
    kept->raw_size = 0;
    kept->aux = NULL;
    kept->aux_size = 0;
    kept->read = (struct perfdata_read){0};
    unsigned char *at = t->bytes;
    kept->callchain = keep(&at, s->callchain, chain_size);
    kept->user_regs = keep(&at, s->user_regs, regs_size);
    kept->user_stack = keep(&at, s->user_stack, stack_size);
}

static void give(struct offcpu *o, struct thread *t, uint64_t end_ns,
                 struct perfdata_record *ret_wait)
{
    *ret_wait = t->record;
    ret_wait->sample.period = end_ns > t->record.time_ns ? end_ns - t->record.time_ns : 0;
    t->is_away = false;
    o->losses.waits++;
}

static enum offcpu_verdict feed_switch(struct offcpu *o, const struct perfdata_record *r,
                                       struct perfdata_record *ret_wait)
{
    if (r->tid == 0 || r->tid == UINT32_MAX)
        return OFFCPU_HELD; /* the idle task waits for nothing */
    struct thread *t = find_thread(o, r->tid);
    if (r->context_switch.is_out) {
        if (r->context_switch.is_preempted)
            t->record.misc |= PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
        return OFFCPU_HELD;
    }
    if (!t->is_away) {
        o->losses.without_start += !t->is_new;
        t->is_new = false;
        return OFFCPU_HELD;
    }
    give(o, t, r->time_ns, ret_wait);
    return OFFCPU_WAIT;
}

enum offcpu_verdict offcpu_feed(struct offcpu *o, const struct perfdata_record *r,
                                struct perfdata_record *ret_wait)
{
    if (r->time_ns > o->newest_ns)
        o->newest_ns = r->time_ns;
    switch (r->type) {
    case PERF_RECORD_SAMPLE: {
        if (!offcpu_is_event(r->event))
            return OFFCPU_PASS;
        struct thread *t = r->tid ? find_thread(o, r->tid) : NULL;
        if (t && !t->has_exited)
            leave(t, r);
        return OFFCPU_HELD;
    }
    case PERF_RECORD_SWITCH:
    case PERF_RECORD_SWITCH_CPU_WIDE:
        return offcpu_is_event(r->event) ? feed_switch(o, r, ret_wait) : OFFCPU_PASS;
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT: {
        struct thread *t = find_thread(o, r->task.tid);
        t->has_exited = r->type == PERF_RECORD_EXIT; /* its last leaving is no wait */
        t->is_new = !t->has_exited;
        t->is_away = false;
        return OFFCPU_PASS;
    }
    default:
        return OFFCPU_PASS;
    }
}

bool offcpu_wake(struct offcpu *o, uint32_t tid, uint64_t time_ns, struct perfdata_record *ret_wait)
{
    struct thread *t = tid ? find_slot(o, tid) : NULL;
    if (!t || !t->used || !t->is_away || t->record.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT)
        return false;
    give(o, t, time_ns, ret_wait);
    t->is_away = true;
    if (time_ns > t->record.time_ns)
        t->record.time_ns = time_ns;
    t->record.misc |= PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
    return true;
}

bool offcpu_flush(struct offcpu *o, struct perfdata_record *ret_wait)
{
    while (o->flush_index < o->slot_count) {
        struct thread *t = &o->threads[o->flush_index++];
        if (t->used && t->is_away) {
            give(o, t, o->newest_ns, ret_wait);
            o->losses.unended++;
            return true;
        }
    }
    return false;
}

const struct offcpu_losses *offcpu_losses(const struct offcpu *o)
{
    return &o->losses;
}
