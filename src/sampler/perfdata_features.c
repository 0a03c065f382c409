/* SPDX-License-Identifier: MIT */
/* What a perf.data file says about its recording: the sections behind the data that the header's
 * feature bits announce, or HEADER_FEATURE records in a pipe. */
#include "base/memory.h"
#include "sampler/perfdata_internal.h"

#include <errno.h>
#include <inttypes.h>

#define FEATURE_BYTES_MAX ((uint64_t)256 << 20)

/* A walk over a section; false for good when it would reach over the end. */
struct reader {
    const unsigned char *at, *end;
    bool ok;
};

static const void *read_bytes(struct reader *r, uint64_t size)
{
    if (!r->ok || size > (uint64_t)(r->end - r->at)) {
        r->ok = false;
        return NULL;
    }
    const void *bytes = r->at;
    r->at += size;
    return bytes;
}

static uint32_t read_u32(struct reader *r)
{
    uint32_t value = 0;
    const void *bytes = read_bytes(r, sizeof(value));
    if (bytes)
        memcpy(&value, bytes, sizeof(value));
    return value;
}

static uint64_t read_u64(struct reader *r)
{
    uint64_t value = 0;
    const void *bytes = read_bytes(r, sizeof(value));
    if (bytes)
        memcpy(&value, bytes, sizeof(value));
    return value;
}

/* A length and that many bytes, zeros at their end. */
static const char *read_string(struct reader *r, size_t *ret_length)
{
    uint32_t size = read_u32(r);
    const char *text = read_bytes(r, size);
    *ret_length = text ? strnlen(text, size) : 0;
    return text;
}

static void keep_string(struct perfdata *p, struct reader *r, const char **ret_text)
{
    size_t length;
    const char *text = read_string(r, &length);
    if (text)
        *ret_text = arena_strndup(&p->arena, text, length);
}

static void take_command_line(struct perfdata *p, struct reader *r)
{
    uint32_t count = read_u32(r);
    if (count > (uint64_t)(r->end - r->at) / 4)
        count = 0; /* each word takes at least its length */
    const char **words = arena_alloc(&p->arena, (count + (size_t)1) * sizeof(*words));
    size_t taken = 0;
    for (uint32_t i = 0; i < count; i++) {
        const char *word = NULL;
        keep_string(p, r, &word);
        if (word)
            words[taken++] = word;
    }
    words[taken] = NULL;
    p->info.command_line = words;
    p->info.command_line_count = taken;
}

/* The events once more, with their names; in the order of the attributes. */
static void take_event_desc(struct perfdata *p, struct reader *r)
{
    uint32_t count = read_u32(r), attr_size = read_u32(r);
    for (uint32_t i = 0; i < count && r->ok; i++) {
        size_t length;
        read_bytes(r, attr_size);
        uint32_t id_count = read_u32(r);
        const char *name = read_string(r, &length);
        read_bytes(r, (uint64_t)id_count * 8);
        if (r->ok && name && i < p->events.count)
            events_set_name(p->events.entries[i], name, length);
    }
}

void features_take_build_id(struct perfdata *p, const struct perf_event_header *record)
{
    struct perfdata_build_id_record head;
    if (record->size < sizeof(head) + 1)
        return;
    memcpy(&head, record, sizeof(head));
    const char *filename = (const char *)record + sizeof(head);
    size_t length = strnlen(filename, record->size - sizeof(head));
    struct perfdata_build_id b = {
        .pid = head.pid,
        .misc = head.header.misc & PERF_RECORD_MISC_CPUMODE_MASK,
        .size = sizeof(b.id),
        .filename = arena_strndup(&p->arena, filename, length),
    };
    if (head.header.misc & PERFDATA_MISC_BUILD_ID_SIZE && head.size < sizeof(b.id))
        b.size = head.size;
    memcpy(b.id, head.build_id, b.size);
    ARRAY_PUSH(p->build_ids, p->build_id_count, p->build_id_capacity) = b;
}

static void take_build_ids(struct perfdata *p, struct reader *r)
{
    for (;;) {
        struct perf_event_header header;
        if ((size_t)(r->end - r->at) < sizeof(header))
            return;
        memcpy(&header, r->at, sizeof(header));
        if (header.size < sizeof(header))
            return;
        const struct perf_event_header *record = read_bytes(r, header.size);
        if (!record)
            return;
        features_take_build_id(p, record);
    }
}

static void take_clock_data(struct perfdata *p, struct reader *r)
{
    if (read_u32(r) != 1) /* its version */
        return;
    uint32_t clock_id = read_u32(r);
    uint64_t wall_ns = read_u64(r), clock_ns = read_u64(r);
    if (!r->ok)
        return;
    p->info.has_clock_data = true;
    p->info.clock_id = clock_id;
    p->info.clock_wall_ns = wall_ns;
    p->info.clock_ns = clock_ns;
}

/* Where a feature that is one text goes; NULL for others. */
static const char **text_of_feature(struct perfdata_info *info, uint64_t bit)
{
    switch (bit) {
    case PERFDATA_FEATURE_HOSTNAME:
        return &info->hostname;
    case PERFDATA_FEATURE_OSRELEASE:
        return &info->os_release;
    case PERFDATA_FEATURE_VERSION:
        return &info->version;
    case PERFDATA_FEATURE_ARCH:
        return &info->arch;
    case PERFDATA_FEATURE_CPUDESC:
        return &info->cpu_description;
    case PERFDATA_FEATURE_CPUID:
        return &info->cpu_id;
    case PERFDATA_FEATURE_ASSAY:
        return &info->assay_json;
    default:
        return NULL;
    }
}

static void understand(struct perfdata *p, uint64_t bit, const void *bytes, size_t size)
{
    struct perfdata_info *info = &p->info;
    const char **text = text_of_feature(info, bit);
    struct reader r = {.at = bytes, .end = (const unsigned char *)bytes + size, .ok = true};
    switch (bit) {
    case PERFDATA_FEATURE_BUILD_ID:
        take_build_ids(p, &r);
        break;
    case PERFDATA_FEATURE_NRCPUS:
        info->cpus_available = read_u32(&r);
        info->cpus_online = read_u32(&r);
        break;
    case PERFDATA_FEATURE_TOTAL_MEM:
        info->memory_kib = read_u64(&r);
        break;
    case PERFDATA_FEATURE_CMDLINE:
        take_command_line(p, &r);
        break;
    case PERFDATA_FEATURE_EVENT_DESC:
        take_event_desc(p, &r);
        break;
    case PERFDATA_FEATURE_SAMPLE_TIME:
        info->first_sample_ns = read_u64(&r);
        info->last_sample_ns = read_u64(&r);
        break;
    case PERFDATA_FEATURE_CLOCKID:
        info->clock_resolution_ns = read_u64(&r);
        break;
    case PERFDATA_FEATURE_CLOCK_DATA:
        take_clock_data(p, &r);
        break;
    case PERFDATA_FEATURE_COMPRESSED:
        info->is_compressed = true;
        break;
    default:
        if (!text)
            return;
        keep_string(p, &r, text);
        break;
    }
    if (!r.ok)
        perfdata_complain(p, "header feature %" PRIu64 " is truncated", bit);
}

/* Only the first of its kind counts. */
static struct feature *find_feature(const struct perfdata *p, uint64_t bit)
{
    for (size_t i = 0; i < p->feature_count; i++)
        if (p->features[i].bit == bit)
            return &p->features[i];
    return NULL;
}

void features_take(struct perfdata *p, uint64_t bit, const void *bytes, size_t size)
{
    if (bit >= PERFDATA_FEATURE_BITS || find_feature(p, bit))
        return;
    void *copy = memory_alloc(size ? size : 1);
    if (size)
        memcpy(copy, bytes, size);
    ARRAY_PUSH(p->features, p->feature_count, p->feature_capacity) =
        (struct feature){.bit = (enum perfdata_feature)bit, .size = size, .bytes = copy};
    understand(p, bit, copy, size);
}

static int load(const struct perfdata *p, int fd, struct feature *f)
{
    if (f->bytes)
        return 0;
    if (f->size > FEATURE_BYTES_MAX || f->offset > p->file_size ||
        f->size > p->file_size - f->offset)
        return -ENODATA;
    void *bytes = memory_alloc(f->size ? f->size : 1);
    int r = perfdata_pread(fd, bytes, f->size, f->offset);
    if (r < 0)
        free(bytes);
    else
        f->bytes = bytes;
    return r;
}

/* Large ones that only few readers want stay in the file until they ask. */
static bool is_lazy(uint64_t bit)
{
    return bit == PERFDATA_FEATURE_TRACING_DATA || bit == PERFDATA_FEATURE_AUXTRACE ||
           bit == PERFDATA_FEATURE_BPF_PROG_INFO || bit == PERFDATA_FEATURE_BPF_BTF;
}

int features_read_table(struct perfdata *p, int fd, const struct perfdata_file_header *header,
                        struct error *err)
{
    uint64_t at = header->data.offset + header->data.size;
    for (unsigned bit = 0; bit < PERFDATA_FEATURE_BITS; bit++) {
        if (!(header->features[bit / 64] >> bit % 64 & 1))
            continue;
        struct perfdata_section section;
        int r = perfdata_pread(fd, &section, sizeof(section), at);
        if (r == -ENODATA) {
            perfdata_complain(p, "the header's features are missing from the end of the file");
            return 0;
        }
        if (r < 0)
            return error_errno(err, r, "reading %s", p->name);
        at += sizeof(section);
        ARRAY_PUSH(p->features, p->feature_count, p->feature_capacity) = (struct feature){
            .bit = (enum perfdata_feature)bit, .offset = section.offset, .size = section.size};
    }
    for (size_t i = 0; i < p->feature_count; i++) {
        struct feature *f = &p->features[i];
        if (is_lazy(f->bit))
            continue;
        if (load(p, fd, f) < 0)
            perfdata_complain(p, "header feature %u is outside the file", f->bit);
        else
            understand(p, f->bit, f->bytes, f->size);
    }
    return 0;
}

const void *perfdata_feature(const struct perfdata *p, enum perfdata_feature bit, size_t *ret_size)
{
    struct feature *f = find_feature(p, bit);
    if (!f || load(p, p->sources[0].fd, f) < 0)
        return NULL;
    *ret_size = (size_t)f->size;
    return f->bytes;
}

void features_done(struct perfdata *p)
{
    for (size_t i = 0; i < p->feature_count; i++)
        free(p->features[i].bytes);
    free(p->features);
    free(p->build_ids);
}
