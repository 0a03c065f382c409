/* SPDX-License-Identifier: MIT */
/* What a recording says about itself: see facts.h. */
#include "sampler/facts.h"
#include "base/json.h"
#include "base/memory.h"
#include "config.h"
#include "machine/machine.h"

#include <time.h>
#include <unistd.h>

static void put_text(struct perfdata_writer *w, enum perfdata_feature bit, const char *text)
{
    if (text && *text)
        perfdata_put_string(perfdata_writer_feature(w, bit), text);
}

static void put_machine(struct perfdata_writer *w, const struct machine *m)
{
    put_text(w, PERFDATA_FEATURE_OSRELEASE, m->kernel_release);
    put_text(w, PERFDATA_FEATURE_VERSION, "assay " ASSAY_VERSION);
    put_text(w, PERFDATA_FEATURE_ARCH, m->arch);
    put_text(w, PERFDATA_FEATURE_CPUDESC, m->cpu_model);
    struct strbuf *cpus = perfdata_writer_feature(w, PERFDATA_FEATURE_NRCPUS);
    long configured = sysconf(_SC_NPROCESSORS_CONF);
    perfdata_put_u32(cpus, configured > 0 ? (uint32_t)configured : (uint32_t)m->cpu_count);
    perfdata_put_u32(cpus, (uint32_t)m->cpu_count);
    perfdata_put_u64(perfdata_writer_feature(w, PERFDATA_FEATURE_TOTAL_MEM), m->memory_bytes >> 10);
    CLEANUP(strbuf_done) struct strbuf text = {0};
    struct json j = {.out = &text, .compact = true};
    json_object(&j, NULL);
    json_string(&j, "assay", ASSAY_VERSION);
    machine_write_json(m, &j, "machine");
    json_end(&j);
    while (text.length && text.data[text.length - 1] == '\n')
        text.data[--text.length] = '\0';
    put_text(w, PERFDATA_FEATURE_ASSAY, strbuf_text(&text));
}

static void put_command_line(struct perfdata_writer *w, char *const *words)
{
    uint32_t count = 0;
    while (words && words[count])
        count++;
    if (!count)
        return;
    struct strbuf *out = perfdata_writer_feature(w, PERFDATA_FEATURE_CMDLINE);
    perfdata_put_u32(out, count);
    for (uint32_t i = 0; i < count; i++)
        perfdata_put_string(out, words[i]);
}

static void put_clock(struct perfdata_writer *w, const struct facts *f)
{
    struct timespec resolution;
    clock_getres(CLOCK_MONOTONIC, &resolution);
    perfdata_put_u64(perfdata_writer_feature(w, PERFDATA_FEATURE_CLOCKID),
                     (uint64_t)resolution.tv_nsec);
    struct strbuf *data = perfdata_writer_feature(w, PERFDATA_FEATURE_CLOCK_DATA);
    perfdata_put_u32(data, 1); /* the layout's version */
    perfdata_put_u32(data, CLOCK_MONOTONIC);
    perfdata_put_u64(data, f->wall_clock_ns);
    perfdata_put_u64(data, f->record_clock_ns);
}

static void put_packing(struct perfdata_writer *w, const struct facts *f)
{
    struct strbuf *out = perfdata_writer_feature(w, PERFDATA_FEATURE_COMPRESSED);
    perfdata_put_u32(out, 0); /* the version, which perf never sets */
    perfdata_put_u32(out, 1); /* zstd */
    perfdata_put_u32(out, (uint32_t)f->pack_level);
    perfdata_put_u32(out, f->pack_ratio);
    perfdata_put_u32(out, (uint32_t)f->pack_chunk_max);
}

void facts_write(struct perfdata_writer *w, const struct facts *f)
{
    struct machine m;
    machine_probe(&m, MACHINE_QUICK);
    put_machine(w, &m);
    machine_done(&m);
    put_command_line(w, f->command_line);
    perfdata_put_event_desc(perfdata_writer_feature(w, PERFDATA_FEATURE_EVENT_DESC), f->events,
                            f->event_count);
    struct strbuf *times = perfdata_writer_feature(w, PERFDATA_FEATURE_SAMPLE_TIME);
    perfdata_put_u64(times, f->first_sample_ns);
    perfdata_put_u64(times, f->last_sample_ns);
    if (f->has_clock)
        put_clock(w, f);
    if (f->pack_level)
        put_packing(w, f);
    CLEANUP(strbuf_done) struct strbuf ids = {0};
    mapped_files_write(f->files, &ids);
    if (ids.length)
        strbuf_append(perfdata_writer_feature(w, PERFDATA_FEATURE_BUILD_ID), ids.data, ids.length);
}
