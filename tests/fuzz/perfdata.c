/* SPDX-License-Identifier: MIT */
/* Fuzzes the reader of perf.data: each byte that a record points to is read.  The files of its
 * corpus were written by perf 6.1.190 and, those named assay-…, by assay 0.1.0. */
#include "sampler/perfdata.h"
#include "base/fd.h"
#include "base/memory.h"
#include "sampler/offcpu.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile unsigned sum;
static const unsigned char *record_start, *record_end; /* of the record at hand, or NULL */

/* A pointer out of the record need not be one out of the memory, so that is watched here. */
static void touch(const void *bytes, uint64_t size)
{
    const unsigned char *at = bytes;
    if (at && size && record_start &&
        (at < record_start || at > record_end || size > (uint64_t)(record_end - at)))
        abort();
    for (uint64_t i = 0; bytes && i < size; i++)
        sum += ((const unsigned char *)bytes)[i];
}

static void touch_text(const char *text)
{
    if (text)
        touch(text, strlen(text));
}

static void touch_read(const struct perfdata_read *r)
{
    for (uint64_t i = 0; r->values && i < r->count; i++)
        sum += (unsigned)perfdata_read_value(r, i).value;
}

static void touch_sample(const struct perfdata_sample *s)
{
    touch(s->callchain, s->callchain_count * 8);
    touch(s->branches, s->branch_count * sizeof(*s->branches));
    touch(s->user_regs, (uint64_t)__builtin_popcountll(s->user_regs_mask) * 8);
    touch(s->intr_regs, (uint64_t)__builtin_popcountll(s->intr_regs_mask) * 8);
    touch(s->user_stack, s->user_stack_size);
    touch(s->raw, s->raw_size);
    touch(s->aux, s->aux_size);
    touch_read(&s->read);
}

static void touch_record(const struct perfdata_record *r)
{
    record_start = r->bytes;
    record_end = record_start ? record_start + r->size_bytes : NULL;
    switch (r->type) {
    case PERF_RECORD_SAMPLE:
        touch_sample(&r->sample);
        break;
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        touch_text(r->mmap.filename);
        break;
    case PERF_RECORD_COMM:
        touch_text(r->comm.comm);
        break;
    case PERF_RECORD_READ:
        touch_read(&r->read);
        break;
    case PERF_RECORD_NAMESPACES:
        touch(r->namespaces.items, r->namespaces.count * sizeof(*r->namespaces.items));
        break;
    case PERF_RECORD_KSYMBOL:
        touch_text(r->ksymbol.name);
        break;
    case PERF_RECORD_CGROUP:
        touch_text(r->cgroup.path);
        break;
    case PERF_RECORD_TEXT_POKE:
        touch(r->text_poke.bytes, (uint64_t)r->text_poke.old_size + r->text_poke.new_size);
        break;
    case PERFDATA_CALLCHAIN_DEFERRED:
        touch(r->deferred.callchain, r->deferred.callchain_count * 8);
        break;
    case PERFDATA_THREAD_MAP:
        touch(r->thread_map.items, r->thread_map.count * sizeof(*r->thread_map.items));
        break;
    default:
        break;
    }
}

static void touch_file(struct perfdata *p)
{
    record_start = NULL;
    size_t count, size;
    const struct perfdata_build_id *ids = perfdata_build_ids(p, &count);
    for (size_t i = 0; i < count; i++)
        touch_text(ids[i].filename);
    const struct perfdata_info *info = perfdata_info(p);
    touch_text(info->hostname);
    touch_text(info->assay_json);
    for (size_t i = 0; i < info->command_line_count; i++)
        touch_text(info->command_line[i]);
    for (size_t i = 0; i < perfdata_event_count(p); i++)
        touch_text(perfdata_event(p, i)->name);
    for (unsigned bit = 0; bit < PERFDATA_FEATURE_BITS; bit++) {
        const void *bytes = perfdata_feature(p, bit, &size);
        touch(bytes, bytes ? size : 0);
    }
    touch_text(perfdata_trouble(p));
}

static void read_all(int fd, bool unordered)
{
    struct error err;
    struct perfdata *p;
    struct perfdata_options options = {.unordered = unordered, .queue_bytes_max = 1};
    if (perfdata_open_fd(&p, fd, "input", &options, &err) < 0)
        return;
    struct offcpu *o = offcpu_new();
    struct perfdata_record r, wait;
    while (perfdata_next(p, &r, &err) > 0) {
        touch_record(&r);
        if (offcpu_feed(o, &r, &wait) == OFFCPU_WAIT)
            touch_record(&wait);
    }
    while (offcpu_flush(o, &wait))
        touch_record(&wait);
    touch_file(p);
    offcpu_free(o);
    perfdata_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(fd_closep) int fd = memfd_create("input", MFD_CLOEXEC);
    if (fd < 0 || fd_write_all(fd, data, size) < 0)
        return 0;
    read_all(fd, false);
    read_all(fd, true);
    return 0;
}
