/* SPDX-License-Identifier: MIT */
/* The list of findings and its record: see machine.h. */
#include "machine/machine.h"
#include "base/clock.h"
#include "base/memory.h"
#include "machine/probe.h"

#include <stdarg.h>
#include <stdio.h>

static const char *format_text(struct machine *m, const char *format, va_list args)
{
    char *text = NULL;
    int length = vasprintf(&text, format, args);
    if (length < 0)
        return "";
    const char *kept = arena_strndup(&m->arena, text, (size_t)length);
    free(text);
    return kept;
}

const char *machine_text(struct machine *m, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = format_text(m, format, args);
    va_end(args);
    return text;
}

struct finding *finding_add(struct machine *m, const char *id, const char *what,
                            enum finding_state state, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *detail = format_text(m, format, args);
    va_end(args);
    ARRAY_PUSH(m->findings, m->finding_count, m->finding_capacity) =
        (struct finding){.id = id, .what = what, .state = state, .detail = detail};
    return &m->findings[m->finding_count - 1];
}

void finding_remedy(struct machine *m, struct finding *f, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    f->remedy = format_text(m, format, args);
    va_end(args);
}

bool machine_may(const struct machine *m, unsigned capability)
{
    return m->capabilities >> capability & 1;
}

void finding_value(struct finding *f, int64_t value, const char *unit)
{
    f->has_value = true;
    f->value = value;
    f->unit = unit;
}

/* The order of the report. */
static const struct {
    const char *group;
    machine_probe_fn *probe;
} probes[] = {
    {"identity", probe_identity},
    {"counting and sampling", probe_pmu},
    {"counting and sampling", probe_software},
    {"tracing", probe_tracing},
    {"tracing", probe_bpf},
    {"input and output", probe_uring},
    {"symbols and stacks", probe_symbols},
    {"processor", probe_cpu},
    {"kernel", probe_kernel},
    {"limits of this process", probe_host},
    {"other programs", probe_tools},
};

void machine_probe(struct machine *m, enum machine_depth depth)
{
    *m = (struct machine){.kernel_release = "",
                          .arch = "",
                          .distribution = "",
                          .distribution_id = "",
                          .cpu_vendor = "",
                          .cpu_model = ""};
    uint64_t start_ns = clock_now_ns();
    for (size_t i = 0; i < ARRAY_COUNT(probes); i++) {
        size_t first = m->finding_count;
        probes[i].probe(m, depth);
        for (size_t at = first; at < m->finding_count; at++)
            m->findings[at].group = probes[i].group;
    }
    m->probe_ns = clock_now_ns() - start_ns;
}

void machine_done(struct machine *m)
{
    free(m->findings);
    arena_done(&m->arena);
    *m = (struct machine){0};
}

const struct finding *machine_find(const struct machine *m, const char *id)
{
    for (size_t i = 0; i < m->finding_count; i++)
        if (str_eq(m->findings[i].id, id))
            return &m->findings[i];
    return NULL;
}

const char *finding_state_name(enum finding_state state)
{
    switch (state) {
    case FINDING_YES:
        return "yes";
    case FINDING_NO:
        return "no";
    case FINDING_LIMITED:
        return "limited";
    case FINDING_UNKNOWN:
        break;
    }
    return "unknown";
}

/* A number that was not found out is null, not 0. */
static void write_known(struct json *j, const char *key, uint64_t value)
{
    if (value)
        json_u64(j, key, value);
    else
        json_null(j, key);
}

static void write_identity(const struct machine *m, struct json *j)
{
    json_string(j, "kernel_release", m->kernel_release);
    json_string(j, "arch", m->arch);
    json_string(j, "distribution", m->distribution);
    json_string(j, "cpu_vendor", m->cpu_vendor);
    json_string(j, "cpu_model", m->cpu_model);
    write_known(j, "cpu_count", m->cpu_count);
    write_known(j, "cpu_usable_count", m->cpu_usable_count);
    write_known(j, "core_count", m->core_count);
    write_known(j, "memory_bytes", m->memory_bytes);
    write_known(j, "page_bytes", m->page_bytes);
    write_known(j, "l1d_bytes", m->l1d_bytes);
    write_known(j, "l2_bytes", m->l2_bytes);
    write_known(j, "l3_bytes", m->l3_bytes);
    write_known(j, "cache_line_bytes", m->cache_line_bytes);
    json_bool(j, "root", m->is_root);
}

static void write_finding(const struct finding *f, struct json *j)
{
    /* A finding stands on one line, so that records can be read and compared by eye. */
    bool compact = j->compact;
    json_object(j, NULL);
    j->compact = true;
    json_string(j, "id", f->id);
    json_string(j, "state", finding_state_name(f->state));
    if (f->has_value) {
        json_i64(j, "value", f->value);
        json_string(j, "unit", f->unit);
    }
    if (f->is_assumed)
        json_bool(j, "assumed", true);
    json_string(j, "what", f->what);
    json_string(j, "detail", f->detail);
    if (f->remedy)
        json_string(j, "remedy", f->remedy);
    json_end(j);
    j->compact = compact;
}

void machine_write_json(const struct machine *m, struct json *j, const char *key)
{
    json_object(j, key);
    write_identity(m, j);
    json_array(j, "findings");
    for (size_t i = 0; i < m->finding_count; i++)
        write_finding(&m->findings[i], j);
    json_end(j);
    json_u64(j, "probe_ns", m->probe_ns);
    json_end(j);
}
