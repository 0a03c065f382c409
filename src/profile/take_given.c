/* SPDX-License-Identifier: MIT */
/*
 * A profile that another tool wrote (given/given.h) as a profile like that of a recording.  Its
 * frames have names already: what stands in the place of an address is a location's number.
 */
#include "base/fd.h"
#include "base/memory.h"
#include "profile/given/given.h"
#include "profile/load.h"

#include <errno.h>

static bool pid_passes(const uint32_t *list, size_t count, uint32_t number)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == number)
            return true;
    return count == 0;
}

/* Stacks that were added up have neither times nor processors. */
static int check_filter(const struct profile_filter *f, struct error *err)
{
    if (f->has_time)
        return error_set(err, -EINVAL, "--time: the samples of this profile have no times");
    if (f->cpu_count)
        return error_set(err, -EINVAL, "--cpu: the samples of this profile have no processors");
    return 0;
}

static void add_events(struct profile *p, const struct given *g)
{
    for (size_t i = 0; i < g->event_count; i++)
        ARRAY_PUSH(p->events, p->event_count, p->event_capacity) =
            (struct profile_event){.name = arena_strdup(&p->arena, g->events[i].name),
                                   .is_time = g->events[i].is_time,
                                   .has_callers = true,
                                   .is_fixed_period = true};
}

static void add_samples(struct profile *p, const struct given *g)
{
    const struct profile_filter *f = &p->options.filter;
    const char *slash = strrchr(p->path, '/');
    const uint64_t *values = g->values;
    for (size_t i = 0; i < g->sample_count; i++, values += g->event_count) {
        const struct given_sample *s = &g->samples[i];
        uint32_t node = STACK_EMPTY;
        if (!pid_passes(f->pids, f->pid_count, s->pid) ||
            !pid_passes(f->tids, f->tid_count, s->tid))
            continue;
        for (size_t k = s->location_count; k > 0; k--)
            if (k == 1 || !p->options.no_callers)
                node = stacks_push(
                    &p->stacks, node,
                    stacks_location(&p->stacks, NULL, g->chain[s->first_location + k - 1], 0));
        tasks_name(&p->tasks, s->pid, s->tid, *s->comm ? s->comm : slash ? slash + 1 : p->path);
        uint32_t task = tasks_current(&p->tasks, s->pid, s->tid);
        for (uint32_t e = 0; e < g->event_count; e++) {
            struct profile_event *event = &p->events[e];
            if (!values[e] || !name_filter_match(&f->events, event->name))
                continue;
            uint64_t count = s->samples ? s->samples : 1;
            stacks_add_merged(&p->stacks, node, task, e, count, values[e]);
            event->samples += count;
            event->weight += values[e];
            event->weight_squares += (double)values[e] * (double)values[e] / (double)count;
        }
    }
    stacks_finish(&p->stacks);
}

int profile_take_given(struct profile *p, enum given_kind kind, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf bytes = {0};
    struct given *g = memory_zalloc(1, sizeof(*g));
    int r = file_read(p->path, &bytes, err);
    if (r < 0) {
        free(g);
        return r;
    }
    r = check_filter(&p->options.filter, err);
    if (r == 0)
        r = given_read(g, kind, bytes.data, bytes.length, err);
    if (r < 0) {
        free(g);
        return error_wrap(err, r, "%s", p->path);
    }
    p->given = g;
    p->symbols = symbols_new(&p->options.symbols);
    if (g->comment)
        p->command_line = arena_strdup(&p->arena, g->comment);
    add_events(p, g);
    add_samples(p, g);
    return 0;
}

/* ---- names ---- */

struct known {
    const char *name, *binary;
    bool is_kernel;
};

struct naming {
    struct profile *p;
    struct known *known; /* by number of symbol */
    size_t count, capacity;
    struct idtable table;
};

static uint64_t key_of(const struct known *k)
{
    return hash_mix(hash_string(k->name) + k->is_kernel, hash_string(k->binary));
}

static uint64_t known_hash(const void *items, uint32_t id)
{
    return key_of((const struct known *)items + id);
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static uint32_t symbol_of(struct naming *n, const char *name, const char *binary, bool is_kernel,
                          uint64_t address)
{
    struct calls *calls = &n->p->calls;
    CLEANUP(strbuf_done) struct strbuf place = {0};
    if (!*name)
        strbuf_printf(&place, "0x%llx", (unsigned long long)address);
    struct known wanted = {*name ? name : strbuf_text(&place), base_of(binary), is_kernel};
    uint32_t slot, id;
    IDTABLE_EACH(&n->table, key_of(&wanted), slot, id)
    if (str_eq(n->known[id].name, wanted.name) && str_eq(n->known[id].binary, wanted.binary) &&
        n->known[id].is_kernel == is_kernel)
        return id;
    id = (uint32_t)n->count;
    wanted.name = arena_strdup(&calls->arena, wanted.name);
    ARRAY_PUSH(n->known, n->count, n->capacity) = wanted;
    idtable_put(&n->table, slot, id);
    if (idtable_is_crowded(&n->table))
        idtable_grow(&n->table, known_hash, n->known);
    const char *dso = is_kernel && !*wanted.binary ? "[kernel]"
                      : *wanted.binary             ? wanted.binary
                                                   : "[unknown]";
    ARRAY_PUSH(calls->symbols, calls->symbol_count, calls->symbol_capacity) =
        (struct profile_symbol){.name = *name ? wanted.name : NULL,
                                .address = address,
                                .dso = names_add(&calls->dsos, &calls->arena, dso),
                                .is_kernel = is_kernel};
    return id;
}

static uint32_t frame_of(struct naming *n, const struct given_frame *f)
{
    struct calls *calls = &n->p->calls;
    bool has_line = n->p->options.with_lines && *f->file;
    bool is_kernel = f->is_kernel || str_has_prefix(f->binary, "[kernel");
    uint32_t symbol = symbol_of(n, f->name, f->binary, is_kernel, 0);
    return calls_frame(calls, symbol, has_line ? calls_srcline(calls, f->file, f->line) : 0,
                       f->inlined);
}

void profile_name_given(struct profile *p)
{
    const struct given *g = p->given;
    struct naming n = {.p = p};
    size_t count = p->stacks.location_count, total = 0;
    uint32_t at = 0;
    idtable_init(&n.table, 10);
    for (size_t i = 0; i < count; i++)
        total += g->locations[p->stacks.locations[i].address].frame_count + 1;
    p->location_lists = memory_zalloc(count + 1, sizeof(*p->location_lists));
    p->location_frames = memory_zalloc(total + 1, sizeof(*p->location_frames));
    for (size_t i = 0; i < count; i++) {
        const struct given_location *l = &g->locations[p->stacks.locations[i].address];
        for (uint32_t k = 0; k < l->frame_count; k++)
            p->location_frames[at++] = frame_of(&n, &g->frames[l->first_frame + k]);
        if (!l->frame_count)
            p->location_frames[at++] =
                calls_frame(&p->calls, symbol_of(&n, "", l->binary, false, l->address), 0, false);
        p->location_lists[i + 1] = at;
    }
    free(n.known);
    idtable_done(&n.table);
    p->call_nodes = memory_zalloc(p->stacks.node_count, sizeof(*p->call_nodes));
    profile_make_calls(p, NULL, NULL);
}

void profile_given_free(struct given *g)
{
    if (g)
        given_done(g);
    free(g);
}
