/* SPDX-License-Identifier: MIT */
/*
 * One record taken apart.  A cursor walks over the record's body and turns false for good when
 * something would reach over its end, so that each step needs no check of its own.
 */
#include "base/memory.h"
#include "sampler/perfdata_internal.h"

#include <sys/mman.h>

struct cursor {
    const unsigned char *at, *end;
    bool ok;
};

static const void *take(struct cursor *c, uint64_t size)
{
    if (!c->ok || size > (uint64_t)(c->end - c->at)) {
        c->ok = false;
        return NULL;
    }
    const void *bytes = c->at;
    c->at += size;
    return bytes;
}

static uint64_t take_u64(struct cursor *c)
{
    uint64_t value = 0;
    const void *bytes = take(c, sizeof(value));
    if (bytes)
        memcpy(&value, bytes, sizeof(value));
    return value;
}

static uint32_t take_u32(struct cursor *c)
{
    uint32_t value = 0;
    const void *bytes = take(c, sizeof(value));
    if (bytes)
        memcpy(&value, bytes, sizeof(value));
    return value;
}

static uint16_t take_u16(struct cursor *c)
{
    uint16_t value = 0;
    const void *bytes = take(c, sizeof(value));
    if (bytes)
        memcpy(&value, bytes, sizeof(value));
    return value;
}

/* An array of `count` elements whose size is a multiple of eight. */
static const void *take_array(struct cursor *c, uint64_t count, size_t element_size)
{
    if (count > (uint64_t)(c->end - c->at) / element_size || ((uintptr_t)c->at & 7))
        c->ok = false;
    return take(c, c->ok ? count * element_size : 0);
}

/* A string that ends within the record; what pads it is passed over with it. */
static const char *take_string(struct cursor *c)
{
    const char *text = (const char *)c->at;
    if (!c->ok || !memchr(text, '\0', (size_t)(c->end - c->at))) {
        c->ok = false;
        return "";
    }
    c->at = c->end;
    return text;
}

static void take_read(struct cursor *c, uint64_t format, struct perfdata_read *ret)
{
    size_t extra = !!(format & PERF_FORMAT_ID) + !!(format & PERF_FORMAT_LOST);
    bool is_group = format & PERF_FORMAT_GROUP;
    ret->format = format;
    ret->count = 1;
    if (is_group)
        ret->count = take_u64(c);
    else
        ret->values = take_array(c, 1, 8);
    if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
        ret->time_enabled_ns = take_u64(c);
    if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
        ret->time_running_ns = take_u64(c);
    if (is_group)
        ret->values = take_array(c, ret->count, 8 * (1 + extra));
    else
        take_array(c, extra, 8); /* behind the value: perfdata_read_value finds them there */
}

struct perfdata_read_value perfdata_read_value(const struct perfdata_read *r, uint64_t index)
{
    bool has_id = r->format & PERF_FORMAT_ID, has_lost = r->format & PERF_FORMAT_LOST;
    const uint64_t *at = r->values;
    struct perfdata_read_value value = {0};
    if (r->format & PERF_FORMAT_GROUP) {
        at += index * (1u + has_id + has_lost);
        value.value = *at++;
    } else {
        value.value = *at++;
        at += !!(r->format & PERF_FORMAT_TOTAL_TIME_ENABLED);
        at += !!(r->format & PERF_FORMAT_TOTAL_TIME_RUNNING);
    }
    if (has_id)
        value.id = *at++;
    if (has_lost)
        value.lost = *at;
    return value;
}

static void take_registers(struct cursor *c, uint64_t mask, uint64_t *ret_abi, uint64_t *ret_mask,
                           const uint64_t **ret_registers)
{
    *ret_abi = take_u64(c);
    if (*ret_abi == PERF_SAMPLE_REGS_ABI_NONE)
        return;
    *ret_mask = mask;
    *ret_registers = take_array(c, (uint64_t)__builtin_popcountll(mask), 8);
}

static void take_branches(struct cursor *c, uint64_t branch_type, struct perfdata_sample *s)
{
    uint64_t count = take_u64(c);
    s->branch_hw_index = UINT64_MAX;
    if (branch_type & PERF_SAMPLE_BRANCH_HW_INDEX)
        s->branch_hw_index = take_u64(c);
    s->branches = take_array(c, count, sizeof(*s->branches));
    s->branch_count = c->ok ? count : 0;
    if (branch_type & (1ULL << 19)) /* PERF_SAMPLE_BRANCH_COUNTERS: one word for each */
        take_array(c, count, 8);
}

static void take_raw(struct cursor *c, struct perfdata_sample *s)
{
    uint32_t size = take_u32(c);
    s->raw = take(c, size);
    s->raw_size = c->ok ? size : 0;
    if ((uintptr_t)c->at & 7)
        c->ok = false; /* the kernel pads it */
}

static void take_user_stack(struct cursor *c, struct perfdata_sample *s)
{
    uint64_t size = take_u64(c);
    if (!size)
        return;
    s->user_stack = take_array(c, size / 8, 8);
    s->user_stack_size = take_u64(c);
    if (size % 8 || s->user_stack_size > size)
        c->ok = false;
}

/* The fields that come first in a sample, each one word: where, when and how much. */
static void take_identity(struct cursor *c, uint64_t type, struct perfdata_record *r)
{
    struct perfdata_sample *s = &r->sample;
    if (type & PERF_SAMPLE_IDENTIFIER)
        r->id = take_u64(c);
    if (type & PERF_SAMPLE_IP)
        s->ip = take_u64(c);
    if (type & PERF_SAMPLE_TID) {
        r->pid = take_u32(c);
        r->tid = take_u32(c);
    }
    if (type & PERF_SAMPLE_TIME)
        r->time_ns = take_u64(c);
    if (type & PERF_SAMPLE_ADDR)
        s->addr = take_u64(c);
    if (type & PERF_SAMPLE_ID)
        r->id = take_u64(c);
    if (type & PERF_SAMPLE_STREAM_ID)
        r->stream_id = take_u64(c);
    if (type & PERF_SAMPLE_CPU)
        r->cpu = (uint32_t)take_u64(c);
    if (type & PERF_SAMPLE_PERIOD)
        s->period = take_u64(c);
}

/* What follows the stacks. */
static void take_memory(struct cursor *c, const struct perf_event_attr *attr,
                        struct perfdata_sample *s)
{
    uint64_t type = attr->sample_type;
    if (type & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT))
        s->weight = take_u64(c);
    if (type & PERF_SAMPLE_DATA_SRC)
        s->data_src = take_u64(c);
    if (type & PERF_SAMPLE_TRANSACTION)
        s->transaction = take_u64(c);
    if (type & PERF_SAMPLE_REGS_INTR)
        take_registers(c, attr->sample_regs_intr, &s->intr_regs_abi, &s->intr_regs_mask,
                       &s->intr_regs);
    if (type & PERF_SAMPLE_PHYS_ADDR)
        s->phys_addr = take_u64(c);
    if (type & PERF_SAMPLE_CGROUP)
        s->cgroup_id = take_u64(c);
    if (type & PERF_SAMPLE_DATA_PAGE_SIZE)
        s->data_page_size = take_u64(c);
    if (type & PERF_SAMPLE_CODE_PAGE_SIZE)
        s->code_page_size = take_u64(c);
    if (type & PERF_SAMPLE_AUX) {
        s->aux_size = take_u64(c);
        s->aux = take(c, s->aux_size);
    }
}

static void parse_sample(struct cursor *c, const struct perf_event_attr *attr,
                         struct perfdata_record *r)
{
    struct perfdata_sample *s = &r->sample;
    uint64_t type = attr->sample_type;
    s->sample_type = type;
    s->period = attr->freq ? 1 : attr->sample_period;
    take_identity(c, type, r);
    if (type & PERF_SAMPLE_READ)
        take_read(c, attr->read_format, &s->read);
    if (type & PERF_SAMPLE_CALLCHAIN) {
        s->callchain_count = take_u64(c);
        s->callchain = take_array(c, s->callchain_count, 8);
    }
    if (type & PERF_SAMPLE_RAW)
        take_raw(c, s);
    if (type & PERF_SAMPLE_BRANCH_STACK)
        take_branches(c, attr->branch_sample_type, s);
    if (type & PERF_SAMPLE_REGS_USER)
        take_registers(c, attr->sample_regs_user, &s->user_regs_abi, &s->user_regs_mask,
                       &s->user_regs);
    if (type & PERF_SAMPLE_STACK_USER)
        take_user_stack(c, s);
    take_memory(c, attr, s);
}

/* Whether the 24 bytes of a mapping's file are a build ID.  Linux sets the flag in another
 * program's records, too, when a recording with build IDs runs at the same time; those have a
 * device there. */
static bool is_build_id(const unsigned char *file, const struct perf_event_attr *attr,
                        const struct perfdata_record *r)
{
    return r->misc & PERF_RECORD_MISC_MMAP_BUILD_ID && file[0] <= PERFDATA_BUILD_ID_BYTES &&
           !file[1] && !file[2] && !file[3] && ((attr && attr->build_id) || file[0] >= 16);
}

static void parse_mmap(struct cursor *c, const struct perf_event_attr *attr,
                       struct perfdata_record *r)
{
    struct perfdata_mmap *m = &r->mmap;
    m->pid = take_u32(c);
    m->tid = take_u32(c);
    m->start = take_u64(c);
    m->size = take_u64(c);
    m->page_offset = take_u64(c);
    if (r->type == PERF_RECORD_MMAP) {
        m->prot = r->misc & PERF_RECORD_MISC_MMAP_DATA ? PROT_READ : PROT_READ | PROT_EXEC;
    } else {
        const unsigned char *file = take(c, 24);
        if (file && is_build_id(file, attr, r)) {
            m->build_id_size = file[0];
            memcpy(m->build_id, file + 4, m->build_id_size);
        } else if (file) {
            memcpy(&m->major, file, 4);
            memcpy(&m->minor, file + 4, 4);
            memcpy(&m->inode, file + 8, 8);
            memcpy(&m->inode_generation, file + 16, 8);
        }
        m->prot = take_u32(c);
        m->flags = take_u32(c);
    }
    m->filename = take_string(c);
}

static void parse_task(struct cursor *c, struct perfdata_task *t)
{
    t->pid = take_u32(c);
    t->ppid = take_u32(c);
    t->tid = take_u32(c);
    t->ptid = take_u32(c);
    t->time_ns = take_u64(c);
}

static void parse_switch(struct cursor *c, struct perfdata_record *r)
{
    struct perfdata_switch *s = &r->context_switch;
    s->is_out = r->misc & PERF_RECORD_MISC_SWITCH_OUT;
    s->is_preempted = s->is_out && r->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
    s->other_pid = s->other_tid = UINT32_MAX;
    if (r->type == PERF_RECORD_SWITCH_CPU_WIDE) {
        s->other_pid = take_u32(c);
        s->other_tid = take_u32(c);
    }
}

static void parse_ksymbol(struct cursor *c, struct perfdata_ksymbol *k)
{
    k->addr = take_u64(c);
    k->size = take_u32(c);
    k->type = take_u16(c);
    k->flags = take_u16(c);
    k->name = take_string(c);
}

static void parse_bpf(struct cursor *c, struct perfdata_bpf *b)
{
    b->type = take_u16(c);
    b->flags = take_u16(c);
    b->id = take_u32(c);
    const void *tag = take(c, sizeof(b->tag));
    if (tag)
        memcpy(b->tag, tag, sizeof(b->tag));
}

static void parse_text_poke(struct cursor *c, struct perfdata_text_poke *t)
{
    t->addr = take_u64(c);
    t->old_size = take_u16(c);
    t->new_size = take_u16(c);
    t->bytes = take(c, (uint64_t)t->old_size + t->new_size);
}

static void parse_namespaces(struct cursor *c, struct perfdata_namespaces *n)
{
    n->pid = take_u32(c);
    n->tid = take_u32(c);
    n->count = take_u64(c);
    n->items = take_array(c, n->count, sizeof(*n->items));
}

static void parse_throttle(struct cursor *c, struct perfdata_throttle *t)
{
    t->time_ns = take_u64(c);
    t->id = take_u64(c);
    t->stream_id = take_u64(c);
}

/* The sample_id at the end of a record that is no sample; the body shrinks by it. */
static void parse_sample_id(struct cursor *c, const struct perfdata_event_entry *entry,
                            struct perfdata_record *r)
{
    uint64_t type = entry->event.attr.sample_type;
    if (entry->sample_id_size > (size_t)(c->end - c->at))
        return; /* made by an older perf for a process that ran already: there is none */
    c->end -= entry->sample_id_size;
    struct cursor id = {.at = c->end, .end = c->end + entry->sample_id_size, .ok = true};
    if (type & PERF_SAMPLE_TID) {
        r->pid = take_u32(&id);
        r->tid = take_u32(&id);
    }
    if (type & PERF_SAMPLE_TIME)
        r->time_ns = take_u64(&id);
    if (type & PERF_SAMPLE_ID)
        r->id = take_u64(&id);
    if (type & PERF_SAMPLE_STREAM_ID)
        r->stream_id = take_u64(&id);
    if (type & PERF_SAMPLE_CPU)
        r->cpu = (uint32_t)take_u64(&id);
    if (type & PERF_SAMPLE_IDENTIFIER)
        r->id = take_u64(&id);
}

static void parse_comm(struct cursor *c, struct perfdata_record *r)
{
    r->comm.pid = take_u32(c);
    r->comm.tid = take_u32(c);
    r->comm.is_exec = r->misc & PERF_RECORD_MISC_COMM_EXEC;
    r->comm.comm = take_string(c);
}

static void parse_kernel_record(struct cursor *c, const struct perf_event_attr *attr,
                                struct perfdata_record *r)
{
    switch (r->type) {
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        parse_mmap(c, attr, r);
        break;
    case PERF_RECORD_COMM:
        parse_comm(c, r);
        break;
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
        parse_task(c, &r->task);
        break;
    case PERF_RECORD_LOST:
        r->lost.id = take_u64(c);
        r->lost.count = take_u64(c);
        break;
    case PERF_RECORD_LOST_SAMPLES:
        r->lost.count = take_u64(c);
        break;
    case PERF_RECORD_THROTTLE:
    case PERF_RECORD_UNTHROTTLE:
        parse_throttle(c, &r->throttle);
        break;
    case PERF_RECORD_READ:
        r->pid = take_u32(c);
        r->tid = take_u32(c);
        take_read(c, attr ? attr->read_format : 0, &r->read);
        break;
    case PERF_RECORD_SWITCH:
    case PERF_RECORD_SWITCH_CPU_WIDE:
        parse_switch(c, r);
        break;
    case PERF_RECORD_NAMESPACES:
        parse_namespaces(c, &r->namespaces);
        break;
    case PERF_RECORD_KSYMBOL:
        parse_ksymbol(c, &r->ksymbol);
        break;
    case PERF_RECORD_BPF_EVENT:
        parse_bpf(c, &r->bpf);
        break;
    case PERF_RECORD_CGROUP:
        r->cgroup.id = take_u64(c);
        r->cgroup.path = take_string(c);
        break;
    case PERF_RECORD_TEXT_POKE:
        parse_text_poke(c, &r->text_poke);
        break;
    case PERFDATA_CALLCHAIN_DEFERRED:
        r->deferred.cookie = take_u64(c);
        r->deferred.callchain_count = take_u64(c);
        r->deferred.callchain = take_array(c, r->deferred.callchain_count, 8);
        break;
    default:
        break;
    }
}

static void parse_user_record(struct cursor *c, struct perfdata_record *r)
{
    if (r->type == PERFDATA_TIME_CONV) {
        r->time_conv.shift = take_u64(c);
        r->time_conv.mult = take_u64(c);
        r->time_conv.zero = take_u64(c);
    } else if (r->type == PERFDATA_THREAD_MAP) {
        r->thread_map.count = take_u64(c);
        r->thread_map.items = take_array(c, r->thread_map.count, sizeof(*r->thread_map.items));
    }
}

bool perfdata_parse(struct perfdata *p, const struct perf_event_header *record,
                    struct perfdata_record *r)
{
    const unsigned char *bytes = (const unsigned char *)record;
    struct cursor c = {.at = bytes + sizeof(*record), .end = bytes + record->size, .ok = true};
    memset(r, 0, sizeof(*r));
    r->type = record->type;
    r->misc = record->misc;
    r->size_bytes = record->size;
    r->bytes = record;
    r->pid = r->tid = r->cpu = UINT32_MAX;
    if (record->type >= PERFDATA_HEADER_ATTR) {
        parse_user_record(&c, r);
        return c.ok;
    }
    const struct perfdata_event_entry *entry = events_of_record(&p->events, record);
    r->event = entry ? &entry->event : NULL;
    if (record->type == PERF_RECORD_SAMPLE) {
        if (entry)
            parse_sample(&c, &entry->event.attr, r);
        return c.ok;
    }
    if (entry)
        parse_sample_id(&c, entry, r);
    parse_kernel_record(&c, entry ? &entry->event.attr : NULL, r);
    if (r->time_ns == UINT64_MAX)
        r->time_ns = 0;
    return c.ok;
}

const char *perfdata_type_name(uint32_t type)
{
    static const char *const kernel[] = {
        [PERF_RECORD_MMAP] = "MMAP",
        [PERF_RECORD_LOST] = "LOST",
        [PERF_RECORD_COMM] = "COMM",
        [PERF_RECORD_EXIT] = "EXIT",
        [PERF_RECORD_THROTTLE] = "THROTTLE",
        [PERF_RECORD_UNTHROTTLE] = "UNTHROTTLE",
        [PERF_RECORD_FORK] = "FORK",
        [PERF_RECORD_READ] = "READ",
        [PERF_RECORD_SAMPLE] = "SAMPLE",
        [PERF_RECORD_MMAP2] = "MMAP2",
        [PERF_RECORD_AUX] = "AUX",
        [PERF_RECORD_ITRACE_START] = "ITRACE_START",
        [PERF_RECORD_LOST_SAMPLES] = "LOST_SAMPLES",
        [PERF_RECORD_SWITCH] = "SWITCH",
        [PERF_RECORD_SWITCH_CPU_WIDE] = "SWITCH_CPU_WIDE",
        [PERF_RECORD_NAMESPACES] = "NAMESPACES",
        [PERF_RECORD_KSYMBOL] = "KSYMBOL",
        [PERF_RECORD_BPF_EVENT] = "BPF_EVENT",
        [PERF_RECORD_CGROUP] = "CGROUP",
        [PERF_RECORD_TEXT_POKE] = "TEXT_POKE",
        [PERF_RECORD_AUX_OUTPUT_HW_ID] = "AUX_OUTPUT_HW_ID",
        [PERFDATA_CALLCHAIN_DEFERRED] = "CALLCHAIN_DEFERRED",
        [PERFDATA_TIME_CONV] = "TIME_CONV",
        [PERFDATA_THREAD_MAP] = "THREAD_MAP",
    };
    return type < ARRAY_COUNT(kernel) ? kernel[type] : NULL;
}
