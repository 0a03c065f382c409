/* SPDX-License-Identifier: MIT */
/* What was seen in the last seconds: see window.h. */
#include "top/window.h"
#include "base/memory.h"

#include <string.h>

void recent_init(struct recent *w, size_t interval_count)
{
    *w = (struct recent){.interval_count = interval_count};
    names_init(&w->texts);
    names_init(&w->calls);
    idtable_init(&w->place_table, 8);
    idtable_init(&w->thread_table, 8);
}

void recent_done(struct recent *w)
{
    for (size_t i = 0; i < ARRAY_COUNT(w->intervals); i++) {
        free(w->intervals[i].samples);
        free(w->intervals[i].states);
        free(w->intervals[i].runs);
    }
    names_done(&w->texts);
    names_done(&w->calls);
    idtable_done(&w->place_table);
    idtable_done(&w->thread_table);
    free(w->symbols);
    free(w->places);
    free(w->threads);
    arena_done(&w->arena);
    *w = (struct recent){0};
}

static uint64_t thread_hash(const void *items, uint32_t id)
{
    const struct recent_thread *t = (const struct recent_thread *)items + id;
    return hash_mix(t->pid, t->tid);
}

uint32_t recent_thread(struct recent *w, uint32_t pid, uint32_t tid, const char *comm)
{
    uint32_t slot, id;
    IDTABLE_EACH(&w->thread_table, hash_mix(pid, tid), slot, id)
    if (w->threads[id].pid == pid && w->threads[id].tid == tid)
        return id;
    id = (uint32_t)w->thread_count;
    ARRAY_PUSH(w->threads, w->thread_count, w->thread_capacity) =
        (struct recent_thread){.pid = pid, .tid = tid, .comm = WINDOW_NONE};
    idtable_put(&w->thread_table, slot, id);
    if (idtable_is_crowded(&w->thread_table))
        idtable_grow(&w->thread_table, thread_hash, w->threads);
    if (comm)
        recent_name_thread(w, id, comm);
    return id;
}

void recent_name_thread(struct recent *w, uint32_t thread, const char *comm)
{
    struct recent_thread *t = &w->threads[thread];
    if (t->comm != WINDOW_NONE && str_eq(w->texts.items[t->comm], comm))
        return;
    t->comm = names_add(&w->texts, &w->arena, comm);
}

static uint64_t place_hash(const void *items, uint32_t id)
{
    const struct recent_place *p = (const struct recent_place *)items + id;
    return hash_mix(hash_mix(p->call, p->function), p->file);
}

uint32_t recent_place(struct recent *w, const char *call, const char *function, const char *file)
{
    struct recent_place wanted = {
        .call = call ? names_add(&w->calls, &w->arena, call) : WINDOW_NONE,
        .function = names_add(&w->texts, &w->arena, function),
        .file = file ? names_add(&w->texts, &w->arena, file) : WINDOW_NONE,
    };
    uint32_t slot, id;
    IDTABLE_EACH(&w->place_table, place_hash(&wanted, 0), slot, id)
    if (memcmp(&w->places[id], &wanted, sizeof(wanted)) == 0)
        return id;
    id = (uint32_t)w->place_count;
    ARRAY_PUSH(w->places, w->place_count, w->place_capacity) = wanted;
    idtable_put(&w->place_table, slot, id);
    if (idtable_is_crowded(&w->place_table))
        idtable_grow(&w->place_table, place_hash, w->places);
    return id;
}

uint32_t recent_add_symbol(struct recent *w, const char *name, const char *dso, bool is_kernel)
{
    const char *call = is_kernel ? place_call_name(name) : NULL;
    ARRAY_PUSH(w->symbols, w->symbol_count, w->symbol_capacity) = (struct recent_symbol){
        .name = arena_strdup(&w->arena, name),
        .dso = arena_strdup(&w->arena, dso),
        .is_kernel = is_kernel,
        .call = call ? names_add(&w->calls, &w->arena, call) : WINDOW_NONE,
    };
    return (uint32_t)w->symbol_count - 1;
}

void recent_add_sample(struct recent *w, uint32_t thread, uint32_t symbol, uint32_t call,
                       uint64_t ns)
{
    struct recent_interval *i = &w->intervals[w->current];
    ARRAY_PUSH(i->samples, i->sample_count, i->sample_capacity) =
        (struct recent_sample){thread, symbol, call, ns};
}

void recent_add_state(struct recent *w, uint32_t thread, uint32_t place, uint64_t ns, bool slept)
{
    struct recent_interval *i = &w->intervals[w->current];
    ARRAY_PUSH(i->states, i->state_count, i->state_capacity) =
        (struct recent_state){thread, place, ns, slept};
}

void recent_add_run(struct recent *w, uint32_t thread, uint64_t run_ns, uint64_t ready_ns)
{
    struct recent_interval *i = &w->intervals[w->current];
    w->threads[thread].is_exact = true;
    ARRAY_PUSH(i->runs, i->run_count, i->run_capacity) =
        (struct recent_run){thread, run_ns, ready_ns};
}

void recent_empty(struct recent *w)
{
    struct recent_interval *i = &w->intervals[w->current];
    i->sample_count = i->state_count = i->run_count = 0;
    i->lost = i->length_ns = 0;
}

void recent_turn(struct recent *w, uint64_t length_ns)
{
    /* One more than the window has is in use: the one that is being filled is not shown. */
    size_t slots = w->interval_count + 1;
    w->intervals[w->current].length_ns = length_ns;
    w->current = (w->current + 1) % slots;
    if (w->full < w->interval_count)
        w->full++;
    recent_empty(w);
}
