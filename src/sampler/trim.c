/* SPDX-License-Identifier: MIT */
/* Copies of stacks as short as they are: see trim.h. */
#include "sampler/trim.h"

/* Fields of eight bytes that come before the call chain. */
#define FIXED_FIELDS                                                                           \
    ((uint64_t)(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | \
                PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |  \
                PERF_SAMPLE_PERIOD))
/* Before the stack, and longer or shorter by what else the event's attributes say. */
#define UNKNOWN_FIELDS ((uint64_t)(PERF_SAMPLE_READ | PERF_SAMPLE_BRANCH_STACK))

static bool read_word(const unsigned char *record, size_t size, size_t at, uint64_t *ret)
{
    if (at > size || size - at < sizeof(*ret))
        return false;
    memcpy(ret, record + at, sizeof(*ret));
    return true;
}

/* The call chain and the raw data, which say how long they are. */
static bool pass_chain(struct stack_place *p, const unsigned char *record, size_t size,
                       uint64_t type)
{
    uint64_t count;
    p->chain = p->chain_end =
        sizeof(struct perf_event_header) + 8 * (size_t)__builtin_popcountll(type & FIXED_FIELDS);
    if (type & PERF_SAMPLE_CALLCHAIN) {
        if (!read_word(record, size, p->chain, &count) || count > size / 8)
            return false;
        p->chain_end += 8 + 8 * (size_t)count;
    }
    p->registers = p->chain_end;
    if (type & PERF_SAMPLE_RAW) {
        uint32_t raw_size;
        if (p->registers > size || size - p->registers < sizeof(raw_size))
            return false;
        memcpy(&raw_size, record + p->registers, sizeof(raw_size));
        p->registers += sizeof(raw_size) + raw_size;
    }
    return p->registers % 8 == 0;
}

bool stack_place_find(struct stack_place *ret, const void *record, uint64_t type,
                      uint64_t registers)
{
    struct stack_place p = {0};
    struct perf_event_header head;
    uint64_t word = 0;
    memcpy(&head, record, sizeof(head));
    if (!(type & PERF_SAMPLE_STACK_USER) || type & UNKNOWN_FIELDS ||
        !pass_chain(&p, record, head.size, type))
        return false;
    p.stack = p.registers;
    if (type & PERF_SAMPLE_REGS_USER) {
        if (!read_word(record, head.size, p.registers, &word))
            return false;
        p.stack += 8 + (word ? 8 * (size_t)__builtin_popcountll(registers) : 0);
    }
    if (!read_word(record, head.size, p.stack, &p.room) || p.room % 8 || p.room > head.size)
        return false;
    p.end = p.stack + 8;
    if (p.room) { /* a stack of no bytes has no dyn_size behind it */
        if (!read_word(record, head.size, p.end + (size_t)p.room, &p.used) || p.used > p.room)
            return false;
        p.end += (size_t)p.room + 8;
    }
    *ret = p;
    return true;
}

bool trim_sample(struct strbuf *out, const void *record, uint64_t type, uint64_t registers,
                 struct trim_totals *totals)
{
    struct perf_event_header head;
    struct stack_place p;
    memcpy(&head, record, sizeof(head));
    if (!stack_place_find(&p, record, type, registers) || !p.room)
        return false;
    totals->stacks += p.used > 0;
    totals->cut += p.used == p.room;
    if (p.used > totals->bytes_max)
        totals->bytes_max = p.used;
    uint64_t kept = (p.used + 7) & ~(uint64_t)7;
    if (kept == p.room)
        return false;
    const char *bytes = record;
    size_t tail = head.size - p.end;
    head.size = (uint16_t)(p.stack + 8 + kept + (kept ? 8 : 0) + tail);
    strbuf_append(out, (const char *)&head, sizeof(head));
    strbuf_append(out, bytes + sizeof(head), p.stack - sizeof(head));
    strbuf_append(out, (const char *)&kept, sizeof(kept));
    strbuf_append(out, bytes + p.stack + 8, (size_t)kept);
    if (kept)
        strbuf_append(out, (const char *)&p.used, sizeof(p.used));
    strbuf_append(out, bytes + p.end, tail);
    return true;
}
