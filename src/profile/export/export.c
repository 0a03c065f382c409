/* SPDX-License-Identifier: MIT */
/* What all exports share, and the simplest of them, folded stacks: see export.h. */
#include "profile/export/export.h"
#include "base/memory.h"

#include <errno.h>
#include <string.h>

#define SPILL_BYTES (256u << 10)

static const char *const format_names[] = {"folded",  "speedscope",  "pprof",
                                           "firefox", "perf-script", "portable"};

int export_format_parse(const char *word, enum export_format *ret_format, struct error *err)
{
    for (size_t i = 0; i < ARRAY_COUNT(format_names); i++)
        if (str_eq(word, format_names[i])) {
            *ret_format = (enum export_format)i;
            return 0;
        }
    if (str_eq(word, "openmetrics"))
        return error_set(err, -EINVAL,
                         "a recording cannot be exported as openmetrics; 'assay show "
                         "--openmetrics' prints the metrics of an experiment");
    return error_set(err, -EINVAL,
                     "unknown format '%s'; use folded, speedscope, pprof, firefox, perf-script or "
                     "portable",
                     word);
}

void export_format_needs(enum export_format format, bool merged, struct profile_options *options)
{
    options->with_samples = format == EXPORT_FIREFOX || format == EXPORT_PERF_SCRIPT ||
                            (format == EXPORT_SPEEDSCOPE && !merged);
    options->with_fields = format == EXPORT_PERF_SCRIPT;
    options->with_lines = format == EXPORT_FIREFOX || format == EXPORT_PPROF;
}

bool export_holds_events(enum export_format format)
{
    return format == EXPORT_PPROF || format == EXPORT_PERF_SCRIPT || format == EXPORT_SPEEDSCOPE;
}

static void write_out(struct export_out *out)
{
    if (out->code == 0 && out->text.length)
        out->code = outfile_write(out->file, out->text.data, out->text.length, out->err);
    strbuf_clear(&out->text);
}

void export_spill(struct export_out *out)
{
    if (out->text.length >= SPILL_BYTES)
        write_out(out);
}

uint64_t export_weight(const struct export_out *out, uint64_t samples, uint64_t weight)
{
    return out->options->count_samples ? samples : weight;
}

/* A name without the two characters that mean something in folded stacks. */
static void put_folded_name(struct strbuf *out, const char *name)
{
    for (; *name; name++)
        strbuf_putc(out, *name == ';' ? ':' : *name == '\n' ? ' ' : *name);
}

static void put_folded_path(struct export_out *out, uint32_t node, struct strbuf *name)
{
    const struct calls *calls = &out->profile->calls;
    uint32_t path[4096];
    size_t depth = 0;
    for (; node && depth < ARRAY_COUNT(path); node = calls->nodes[node].parent)
        path[depth++] = calls->nodes[node].frame;
    while (depth > 0) {
        strbuf_clear(name);
        calls_put_name(calls, calls->frames[path[--depth]].symbol, name);
        strbuf_putc(&out->text, ';');
        put_folded_name(&out->text, strbuf_text(name));
    }
}

/* Cells by command and stack: threads with the same name are one. */
struct folded_key {
    uint32_t comm, node;
    uint64_t weight;
};

static int compare_keys(const void *left, const void *right)
{
    const struct folded_key *a = left, *b = right;
    if (a->comm != b->comm)
        return a->comm < b->comm ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

void export_folded(struct export_out *out)
{
    const struct profile *p = out->profile;
    CLEANUP(strbuf_done) struct strbuf name = {0};
    struct folded_key *keys = memory_zalloc(p->calls.cell_count + 1, sizeof(*keys));
    size_t count = 0;
    for (size_t i = 0; i < p->calls.cell_count; i++) {
        const struct call_cell *c = &p->calls.cells[i];
        if (c->event == out->options->event)
            keys[count++] = (struct folded_key){p->tasks.items[c->task].comm, c->node,
                                                export_weight(out, c->samples, c->weight)};
    }
    qsort(keys, count, sizeof(*keys), compare_keys);
    for (size_t i = 0; i < count; i++) {
        if (i + 1 < count && compare_keys(&keys[i], &keys[i + 1]) == 0) {
            keys[i + 1].weight += keys[i].weight;
            continue;
        }
        const char *comm = p->tasks.comms.items[keys[i].comm];
        strbuf_clear(&name);
        strbuf_put_safe(&name, comm, strlen(comm), 256);
        put_folded_name(&out->text, strbuf_text(&name));
        put_folded_path(out, keys[i].node, &name);
        strbuf_printf(&out->text, " %llu\n", (unsigned long long)keys[i].weight);
        export_spill(out);
    }
    free(keys);
}

struct thread_build {
    const struct profile *profile;
    struct export_threads *threads;
    struct idtable table;
    uint64_t *task_samples;
    size_t capacity;
};

static uint64_t thread_hash(const void *items, uint32_t id)
{
    const struct thread_build *b = items;
    const struct profile_task *t = &b->profile->tasks.items[b->threads->items[id].task];
    return hash_mix(t->pid, t->tid);
}

static uint32_t thread_of(struct thread_build *b, uint32_t task)
{
    const struct profile_task *t = &b->profile->tasks.items[task];
    uint32_t slot, id;
    IDTABLE_EACH(&b->table, hash_mix(t->pid, t->tid), slot, id)
    {
        struct export_thread *thread = &b->threads->items[id];
        const struct profile_task *other = &b->profile->tasks.items[thread->task];
        if (other->pid != t->pid || other->tid != t->tid)
            continue;
        if (b->task_samples[task] > b->task_samples[thread->task])
            thread->task = task;
        return id;
    }
    id = (uint32_t)b->threads->count;
    ARRAY_PUSH(b->threads->items, b->threads->count, b->capacity) =
        (struct export_thread){.task = task};
    idtable_put(&b->table, slot, id);
    if (idtable_is_crowded(&b->table))
        idtable_grow(&b->table, thread_hash, b);
    return id;
}

void export_threads_init(struct export_threads *threads, const struct profile *p, uint32_t event)
{
    *threads = (struct export_threads){0};
    struct thread_build b = {.profile = p, .threads = threads};
    idtable_init(&b.table, 6);
    b.task_samples = memory_zalloc(p->tasks.count + 1, sizeof(*b.task_samples));
    uint32_t *numbers = memory_zalloc(p->sample_count + 1, sizeof(*numbers));
    size_t total = 0;
    for (size_t i = 0; i < p->sample_count; i++) {
        if (p->samples[i].event != event)
            continue;
        b.task_samples[p->samples[i].task]++;
        numbers[i] = thread_of(&b, p->samples[i].task);
        threads->items[numbers[i]].count++;
        total++;
    }
    threads->order = memory_zalloc(total + 1, sizeof(*threads->order));
    uint32_t at = 0;
    for (size_t t = 0; t < threads->count; t++) {
        threads->items[t].first = at;
        at += threads->items[t].count;
        threads->items[t].count = 0;
    }
    for (uint32_t i = 0; i < p->sample_count; i++)
        if (p->samples[i].event == event) {
            struct export_thread *t = &threads->items[numbers[i]];
            threads->order[t->first + t->count++] = i;
        }
    free(numbers);
    free(b.task_samples);
    idtable_done(&b.table);
}

void export_threads_done(struct export_threads *threads)
{
    free(threads->items);
    free(threads->order);
    *threads = (struct export_threads){0};
}

int profile_export(const struct profile *profile, const struct export_options *options,
                   struct outfile *file, struct error *err)
{
    static void (*const writers[])(struct export_out *) = {
        export_folded, export_speedscope, export_pprof, export_firefox, export_perf_script};
    struct export_out out = {.profile = profile, .options = options, .file = file, .err = err};
    writers[options->format](&out);
    write_out(&out);
    strbuf_done(&out.text);
    return out.code;
}
