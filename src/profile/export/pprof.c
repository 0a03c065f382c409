/* SPDX-License-Identifier: MIT */
/*
 * pprof's profile.proto, written by hand and compressed with gzip.  A location is an address, with
 * one line for each function that was inlined there; what google/pprof calls a mapping is a
 * module.  Field numbers: https://github.com/google/pprof/blob/main/proto/profile.proto
 */
#include "base/memory.h"
#include "config.h"
#include "profile/export/export.h"
#include "profile/given/given.h"

#include <errno.h>
#include <string.h>
#if HAVE_ZLIB
#include <zlib.h>
#endif

enum { /* fields of Profile */
       PROFILE_SAMPLE_TYPE = 1,
       PROFILE_SAMPLE = 2,
       PROFILE_MAPPING = 3,
       PROFILE_LOCATION = 4,
       PROFILE_FUNCTION = 5,
       PROFILE_STRING = 6,
       PROFILE_TIME_NANOS = 9,
       PROFILE_DURATION_NANOS = 10,
       PROFILE_PERIOD_TYPE = 11,
       PROFILE_PERIOD = 12,
       PROFILE_COMMENT = 13,
};

struct pprof {
    struct export_out *out;
    struct strbuf bytes, message, inner;
    struct names strings; /* number 0 is "" */
    struct arena arena;
    uint32_t *mappings; /* by module_index: number + 1, or 0 */
    size_t mapping_count;
};

static void put_varint(struct strbuf *b, uint64_t value)
{
    while (value >= 0x80) {
        strbuf_putc(b, (char)(value | 0x80));
        value >>= 7;
    }
    strbuf_putc(b, (char)value);
}

static void put_number(struct strbuf *b, unsigned field, uint64_t value)
{
    if (!value)
        return; /* the default */
    put_varint(b, field << 3);
    put_varint(b, value);
}

static void put_bytes(struct strbuf *b, unsigned field, const char *bytes, size_t length)
{
    put_varint(b, field << 3 | 2);
    put_varint(b, length);
    strbuf_append(b, bytes, length);
}

/* Ends a message that was built in `message`. */
static void put_message(struct pprof *w, unsigned field)
{
    put_bytes(&w->bytes, field, strbuf_text(&w->message), w->message.length);
    strbuf_clear(&w->message);
}

static uint64_t string_number(struct pprof *w, const char *text)
{
    return names_add(&w->strings, &w->arena, text);
}

static void put_value_type(struct pprof *w, unsigned field, const char *type, const char *unit)
{
    put_number(&w->message, 1, string_number(w, type));
    put_number(&w->message, 2, string_number(w, unit));
    put_message(w, field);
}

static bool event_is_there(const struct pprof *w, size_t event)
{
    return w->out->profile->events[event].samples > 0;
}

static const char *unit_of(const struct profile_event *e)
{
    return e->is_time ? "nanoseconds" : "count";
}

/* "samples" first, then each event: the last one is what pprof shows unless told otherwise. */
static void put_types(struct pprof *w)
{
    const struct profile *p = w->out->profile;
    put_value_type(w, PROFILE_SAMPLE_TYPE, "samples", "count");
    const struct profile_event *last = NULL;
    for (size_t i = 0; i < p->event_count; i++)
        if (event_is_there(w, i)) {
            last = &p->events[i];
            if (!w->out->options->count_samples)
                put_value_type(w, PROFILE_SAMPLE_TYPE, last->name, unit_of(last));
        }
    if (last) {
        put_value_type(w, PROFILE_PERIOD_TYPE, last->name, unit_of(last));
        put_number(&w->bytes, PROFILE_PERIOD, last->period);
    }
    put_number(&w->bytes, PROFILE_DURATION_NANOS, p->last_ns - p->first_ns);
    if (p->clock_wall_ns)
        put_number(&w->bytes, PROFILE_TIME_NANOS, p->clock_wall_ns - p->clock_ns + p->first_ns);
    if (p->command_line) {
        put_varint(&w->message, string_number(w, p->command_line));
        put_message(w, PROFILE_COMMENT);
    }
}

/* The first mapping is taken for the main program: the executable with most weight. */
static size_t main_module(const struct profile *p, const uint64_t *weights, size_t count)
{
    size_t best = count;
    for (size_t i = 0; i < count; i++) {
        const struct module *m = symbols_module_at(p->symbols, i);
        bool is_program = module_kind(m) == MODULE_FILE && !strstr(module_name(m), ".so");
        if (is_program && weights[i] && (best == count || weights[i] > weights[best]))
            best = i;
    }
    for (size_t i = 0; i < count && best == count; i++)
        if (weights[i])
            best = i;
    return best;
}

static void put_mapping(struct pprof *w, size_t index)
{
    const struct module *m = symbols_module_at(w->out->profile->symbols, index);
    char id[BUILD_ID_TEXT];
    w->mappings[index] = (uint32_t)++w->mapping_count;
    put_number(&w->message, 1, w->mapping_count);
    put_number(&w->message, 3, UINT64_MAX >> 1); /* the limit: addresses are the file's own */
    put_number(&w->message, 5, string_number(w, module_path(m)));
    put_number(&w->message, 6, string_number(w, build_id_format(module_build_id(m), id)));
    for (unsigned field = 7; field <= 10; field++)
        put_number(&w->message, field, 1); /* has functions, file names, lines, inlines */
    put_message(w, PROFILE_MAPPING);
}

static void put_mappings(struct pprof *w)
{
    const struct profile *p = w->out->profile;
    size_t count = symbols_module_count(p->symbols);
    uint64_t *weights = memory_zalloc(count + 1, sizeof(*weights));
    w->mappings = memory_zalloc(count + 1, sizeof(*w->mappings));
    for (size_t i = 0; i < p->stacks.cell_count; i++) {
        const struct stack_cell *c = &p->stacks.cells[i];
        for (uint32_t n = c->node; n; n = p->stacks.nodes[n].parent) {
            const struct module *m = p->stacks.locations[p->stacks.nodes[n].location].module;
            if (m)
                weights[module_index(m)] += c->samples;
        }
    }
    size_t main_index = main_module(p, weights, count);
    if (main_index < count)
        put_mapping(w, main_index);
    for (size_t i = 0; i < count; i++)
        if (weights[i] && i != main_index)
            put_mapping(w, i);
    free(weights);
}

static void put_locations(struct pprof *w)
{
    const struct profile *p = w->out->profile;
    for (uint32_t i = 0; i < p->stacks.location_count; i++) {
        const struct stack_location *l = &p->stacks.locations[i];
        put_number(&w->message, 1, i + 1);
        if (l->module)
            put_number(&w->message, 2, w->mappings[module_index(l->module)]);
        put_number(&w->message, 3,
                   l->module  ? module_elf_address(l->module, l->address)
                   : p->given ? p->given->locations[l->address].address
                              : l->address);
        for (uint32_t k = p->location_lists[i]; k < p->location_lists[i + 1]; k++) {
            const struct profile_frame *f = &p->calls.frames[p->location_frames[k]];
            if (!p->calls.symbols[f->symbol].name)
                continue;
            strbuf_clear(&w->inner);
            put_number(&w->inner, 1, f->symbol + 1);
            put_number(&w->inner, 2, p->calls.srclines[f->srcline].line);
            put_bytes(&w->message, 4, strbuf_text(&w->inner), w->inner.length);
        }
        put_message(w, PROFILE_LOCATION);
    }
}

/* Where functions that were declared nowhere (assembler) have lines. */
static const char **files_of_lines(const struct calls *calls)
{
    const char **files = memory_zalloc(calls->symbol_count + 1, sizeof(*files));
    for (size_t i = 0; i < calls->frame_count; i++) {
        const struct profile_frame *f = &calls->frames[i];
        if (!files[f->symbol])
            files[f->symbol] = calls->srclines[f->srcline].file;
    }
    return files;
}

static void put_functions(struct pprof *w)
{
    const struct calls *calls = &w->out->profile->calls;
    CLEANUP(memory_freep) const char **files = files_of_lines(calls);
    CLEANUP(strbuf_done) struct strbuf name = {0};
    for (uint32_t i = 0; i < calls->symbol_count; i++) {
        const struct profile_symbol *s = &calls->symbols[i];
        if (!s->name)
            continue;
        strbuf_clear(&name);
        calls_put_name(calls, i, &name);
        put_number(&w->message, 1, i + 1);
        put_number(&w->message, 2, string_number(w, strbuf_text(&name)));
        if (s->function && s->function->linkage_name) {
            strbuf_clear(&name);
            strbuf_put_safe(&name, s->function->linkage_name, strlen(s->function->linkage_name),
                            SYMBOLS_NAME_MAX);
            put_number(&w->message, 3, string_number(w, strbuf_text(&name)));
        }
        if (s->function && s->function->declared_file) {
            put_number(&w->message, 4, string_number(w, s->function->declared_file));
            put_number(&w->message, 5, s->function->declared_line);
        } else if (files[i]) {
            put_number(&w->message, 4, string_number(w, files[i]));
        }
        put_message(w, PROFILE_FUNCTION);
    }
}

static void put_label(struct pprof *w, const char *key, const char *text, uint64_t number)
{
    strbuf_clear(&w->inner);
    put_number(&w->inner, 1, string_number(w, key));
    if (text)
        put_number(&w->inner, 2, string_number(w, text));
    else
        put_number(&w->inner, 3, number);
    put_bytes(&w->message, 3, strbuf_text(&w->inner), w->inner.length);
}

static void put_sample(struct pprof *w, const struct stack_cell *c)
{
    const struct profile *p = w->out->profile;
    strbuf_clear(&w->inner);
    for (uint32_t n = c->node; n; n = p->stacks.nodes[n].parent)
        put_varint(&w->inner, (uint64_t)p->stacks.nodes[n].location + 1);
    put_bytes(&w->message, 1, strbuf_text(&w->inner), w->inner.length);
    strbuf_clear(&w->inner);
    put_varint(&w->inner, c->samples);
    for (size_t i = 0; i < p->event_count && !w->out->options->count_samples; i++)
        if (event_is_there(w, i))
            put_varint(&w->inner, c->event == i ? c->weight : 0);
    put_bytes(&w->message, 2, strbuf_text(&w->inner), w->inner.length);
    put_label(w, "comm", tasks_comm(&p->tasks, c->task), 0);
    put_label(w, "pid", NULL, p->tasks.items[c->task].pid);
    put_label(w, "tid", NULL, p->tasks.items[c->task].tid);
    put_message(w, PROFILE_SAMPLE);
}

#if HAVE_ZLIB
static void write_packed(struct export_out *out, const char *bytes, size_t length)
{
    z_stream z = {0};
    if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK) {
        out->code = error_set(out->err, -ENOMEM, "starting the compression failed");
        return;
    }
    unsigned char chunk[64 << 10];
    int r;
    do {
        if (z.avail_in == 0 && length > 0) {
            z.avail_in = length < (1u << 30) ? (uInt)length : 1u << 30;
            z.next_in = (unsigned char *)(uintptr_t)bytes;
            bytes += z.avail_in;
            length -= z.avail_in;
        }
        z.next_out = chunk;
        z.avail_out = sizeof(chunk);
        r = deflate(&z, length ? Z_NO_FLUSH : Z_FINISH);
        strbuf_append(&out->text, (char *)chunk, sizeof(chunk) - z.avail_out);
        export_spill(out);
    } while (r == Z_OK || (r == Z_BUF_ERROR && z.avail_out == 0));
    deflateEnd(&z);
    if (r != Z_STREAM_END && out->code == 0)
        out->code = error_set(out->err, -EIO, "compressing the profile failed");
}
#else
/* pprof reads it without compression too. */
static void write_packed(struct export_out *out, const char *bytes, size_t length)
{
    strbuf_append(&out->text, bytes, length);
}
#endif

void export_pprof(struct export_out *out)
{
    const struct profile *p = out->profile;
    struct pprof w = {.out = out};
    names_init(&w.strings);
    string_number(&w, "");
    put_types(&w);
    for (size_t i = 0; i < p->stacks.cell_count; i++)
        put_sample(&w, &p->stacks.cells[i]);
    put_mappings(&w);
    put_locations(&w);
    put_functions(&w);
    for (size_t i = 0; i < w.strings.count; i++)
        put_bytes(&w.bytes, PROFILE_STRING, w.strings.items[i], strlen(w.strings.items[i]));
    write_packed(out, strbuf_text(&w.bytes), w.bytes.length);
    strbuf_done(&w.bytes);
    strbuf_done(&w.message);
    strbuf_done(&w.inner);
    names_done(&w.strings);
    arena_done(&w.arena);
    free(w.mappings);
}
