/* SPDX-License-Identifier: MIT */
/* Samples sorted into causes by what their stacks say (explain_stacks.h). */
#include "base/memory.h"
#include "why/explain_stacks.h"

#include <stdlib.h>

enum { CALLERS_DEPTH = 12, WRAPPER_BYTES_MOST = 256 };

bool part_is_own_wait(const struct part *p)
{
    return p->is_wait && p->kind != PART_PEERS && p->kind != PART_OTHERS && p->kind != PART_IDLE;
}

bool part_is_peers(const struct part *p)
{
    return p->kind == PART_PEERS;
}

bool part_is_others(const struct part *p)
{
    return p->kind == PART_OTHERS;
}

bool part_is_idle(const struct part *p)
{
    return p->kind == PART_IDLE;
}

struct part *parts_find(struct parts *p, enum part_kind kind, const char *name, bool is_wait)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->items[i].kind == kind && p->items[i].is_wait == is_wait &&
            str_eq(p->items[i].name, name))
            return &p->items[i];
    struct part part = {.kind = kind, .name = memory_strdup(name), .is_wait = is_wait};
    for (unsigned s = 0; s < SIDE_COUNT; s++) {
        part.weights[s] = memory_zalloc(p->run_counts[s] + 1, sizeof(double));
        part.samples[s] = memory_zalloc(p->run_counts[s] + 1, sizeof(double));
    }
    callers_init(&part.callers, p->run_counts);
    callers_init(&part.sites, p->run_counts);
    ARRAY_PUSH(p->items, p->count, p->capacity) = part;
    return &p->items[p->count - 1];
}

struct place {
    struct parts *parts;
    unsigned side;
    size_t run;
    bool has_peers; /* the command has several threads or processes */
    bool is_static; /* and no C library beside itself */
    const struct waiter {
        const char *name;
        bool is_timed;
    } * waiters;
    size_t waiter_count;
};

static struct part *cpu_part(const struct place *at, const struct reading *r)
{
    const char *name, *call;
    if (!r->in_kernel) {
        name = explain_name(&at->parts->names, at->side, at->run, r->user_leaf);
        return name ? parts_find(at->parts, PART_FUNCTION, name, false) : NULL;
    }
    if (r->fault)
        return parts_find(at->parts, PART_FAULTS, "page faults", false);
    if (r->interrupt)
        return parts_find(at->parts, PART_INTERRUPTS, "interrupts", false);
    if (r->syscall)
        return parts_find(at->parts, PART_SYSCALL, r->syscall, false);
    call = explain_wrapped_call(explain_name(&at->parts->names, at->side, at->run, r->user_leaf));
    if (r->entry && call)
        return parts_find(at->parts, PART_SYSCALL, call, false);
    if (r->entry)
        return parts_find(at->parts, PART_ENTRY, "entry", false);
    return parts_find(at->parts, PART_KERNEL, "other work of the kernel", false);
}

static struct part *wait_part(const struct place *at, const struct reading *r)
{
    const char *syscall = r->syscall ? r->syscall : r->fault ? "page fault" : "kernel";
    bool futex = r->syscall && strstr(syscall, "futex");
    if (r->worker && !r->storage) /* it has nothing to do; nobody waits */
        return NULL;
    if (r->storage)
        return parts_find(at->parts, PART_STORAGE, syscall, true);
    if (futex && r->lock)
        return parts_find(at->parts, PART_LOCK, syscall, true);
    if (at->has_peers && (r->join || r->peer))
        return parts_find(at->parts, PART_PEERS, syscall, true);
    if (futex) /* no name of the library says for what: a program's own lock */
        return parts_find(at->parts, PART_LOCK, syscall, true);
    if (r->sleep)
        return parts_find(at->parts, PART_SLEEP, syscall, true);
    return parts_find(at->parts, PART_WAIT, syscall, true);
}

/* The line where a caller calls, as "main at prog.c:12"; the text lives as long as the parts. */
static void add_site(const struct place *at, struct part *part, const struct reading *r,
                     const struct profile_frame *frame, double weight, double samples)
{
    const struct profile_srcline *line = &r->calls->srclines[frame->srcline];
    if (!line->file || !line->line)
        return;
    const char *slash = strrchr(line->file, '/');
    CLEANUP(memory_freep)
    char *text = memory_printf("%s:%u", slash ? slash + 1 : line->file, line->line);
    const char *kept = arena_strdup(&at->parts->arena, text);
    uint32_t node = callers_find(&part->sites, 0, kept, false);
    callers_add(&part->sites, 0, at->side, at->run, weight, samples);
    if (node != CALLERS_NONE)
        callers_add(&part->sites, node, at->side, at->run, weight, samples);
}

/* Those behind a sample, from its own function or from the first one of the program on. */
static void add_callers(const struct place *at, struct part *part, const struct reading *r,
                        double weight, double samples)
{
    const struct calls *calls = r->calls;
    bool is_own = part->kind == PART_FUNCTION, inlined = false;
    uint32_t first = is_own || !r->program ? r->user_node : r->program;
    uint32_t at_node = 0;
    const char *below = part->name;
    callers_add(&part->callers, 0, at->side, at->run, weight, samples);
    for (uint32_t node = first, depth = 0; node && depth < CALLERS_DEPTH;
         node = calls->nodes[node].parent) {
        const struct profile_frame *frame = &calls->frames[calls->nodes[node].frame];
        const char *name = explain_name(&at->parts->names, at->side, at->run, frame->symbol);
        if (!name)
            return;
        if (!(is_own && node == first) && !str_eq(name, below)) {
            at_node = callers_find(&part->callers, at_node, name, inlined);
            if (at_node == CALLERS_NONE)
                return;
            callers_add(&part->callers, at_node, at->side, at->run, weight, samples);
            part->callers.items[at_node].is_program |= node == r->program;
            if (!depth++)
                add_site(at, part, r, frame, weight, samples);
        }
        below = name;
        inlined = frame->inlined && (is_own || at_node);
    }
}

/* Whether the innermost function is the program's, whatever its name: not of a library, and not so
 * short that it can only be one that was linked in. */
static bool is_own_function(const struct reading *r)
{
    const struct profile_symbol *s = &r->calls->symbols[r->user_leaf];
    if (explain_is_system_library(r->calls->dsos.items[s->dso]) || str_has_suffix(s->name, "@plt"))
        return false;
    return !r->is_static ||
           (s->function && (s->function->declared_file || s->function->size > WRAPPER_BYTES_MOST));
}

static void add_owner(const struct place *at, const struct reading *r, double weight,
                      double samples)
{
    const char *name = explain_name(&at->parts->names, at->side, at->run, explain_owner_of(r));
    uint32_t owner = name ? callers_find(&at->parts->owners, 0, name, false) : CALLERS_NONE;
    if (owner != CALLERS_NONE)
        callers_add(&at->parts->owners, owner, at->side, at->run, weight, samples);
}

static void add_nameless(const struct place *at, const struct reading *r, double weight)
{
    struct parts *p = at->parts;
    const char *dso = r->user_leaf == IDTABLE_NONE
                          ? ""
                          : r->calls->dsos.items[r->calls->symbols[r->user_leaf].dso];
    size_t i = 0;
    while (i < p->nameless_count && !str_eq(p->nameless[i].dso, dso))
        i++;
    if (i == p->nameless_count)
        ARRAY_PUSH(p->nameless, p->nameless_count, p->nameless_capacity) =
            (struct part_nameless){.dso = memory_strdup(dso)};
    p->nameless[i].weights[at->side] += weight / (double)p->run_counts[at->side];
}

static const struct waiter *find_waiter(const struct place *at, const struct reading *r)
{
    const char *name = explain_name(&at->parts->names, at->side, at->run, explain_owner_of(r));
    for (size_t i = 0; i < at->waiter_count && name; i++)
        if (at->waiters[i].name == name)
            return &at->waiters[i];
    return NULL;
}

/* A wait of the program's own making in a thread that is not the first. */
static struct part *background_part(const struct place *at, const struct reading *r,
                                    struct part *part, double weight)
{
    struct parts *p = at->parts;
    const struct waiter *waiter = find_waiter(at, r);
    if (waiter && !waiter->is_timed)
        return parts_find(p, PART_IDLE, waiter->name, true);
    p->background[at->side] += weight / (double)p->run_counts[at->side];
    return part;
}

/* A wait for another thread that only its time limit ended. */
static struct part *timed_part(const struct place *at, const struct reading *r, struct part *part)
{
    const struct waiter *waiter = find_waiter(at, r);
    return waiter && waiter->is_timed && str_has_prefix(part->name, "futex")
               ? parts_find(at->parts, PART_WAIT, part->name, true)
               : part;
}

static void add_cell(const struct place *at, const struct diff_run *run,
                     const struct call_cell *cell)
{
    const struct profile *p = run->profile;
    const struct profile_event *event = &p->events[cell->event];
    if (!event->is_off_cpu && cell->event != run->event)
        return;
    struct reading r = explain_read_stack(&p->calls, cell->node, at->is_static);
    double weight = (double)cell->weight, samples = (double)cell->samples;
    struct part *part;
    if (!event->is_off_cpu) {
        at->parts->cpu_weights[at->side][at->run] += weight;
        at->parts->cpu_samples[at->side][at->run] += samples;
        add_owner(at, &r, weight, samples);
        part = cpu_part(at, &r);
    } else if (strstr(event->name, ":preempted")) {
        part = parts_find(at->parts, PART_OTHERS, "others", true);
    } else {
        part = wait_part(at, &r);
        if (part && part_is_peers(part))
            part = timed_part(at, &r, part);
        if (part && part_is_own_wait(part) && at->has_peers &&
            p->tasks.items[cell->task].tid != p->tasks.items[0].tid)
            part = background_part(at, &r, part, weight);
    }
    if (!part && !event->is_off_cpu)
        add_nameless(at, &r, weight);
    if (!part)
        return;
    part->weights[at->side][at->run] += weight;
    part->samples[at->side][at->run] += samples;
    if (part->kind == PART_FUNCTION)
        part->is_own |= is_own_function(&r);
    for (size_t kind = 0; kind < FAULT_KINDS && part->kind == PART_FAULTS; kind++)
        if (r.memory[kind])
            part->faults[kind][at->side] += weight / (double)at->parts->run_counts[at->side];
    add_callers(at, part, &r, weight, samples);
}

static bool has_several_tasks(const struct profile *p)
{
    for (size_t i = 1; i < p->tasks.count; i++)
        if (p->tasks.items[i].tid != p->tasks.items[0].tid)
            return true;
    return false;
}

/* A library's function that does nothing but make the call is part of the call. */
static void fold_wrappers(struct parts *p)
{
    for (size_t f = 0; f < p->count; f++) {
        struct part *wrapper = &p->items[f];
        if (wrapper->kind != PART_FUNCTION || wrapper->is_own)
            continue;
        for (size_t i = 0; i < p->count; i++) {
            struct part *call = &p->items[i];
            size_t length = strlen(call->name);
            bool plain = str_eq(call->name, wrapper->name);
            bool newer =
                strncmp(call->name, "new", 3) == 0 && str_eq(call->name + 3, wrapper->name);
            bool wide = length > 2 && str_has_suffix(call->name, "64") &&
                        strlen(wrapper->name) == length - 2 &&
                        strncmp(call->name, wrapper->name, length - 2) == 0;
            if (call->kind != PART_SYSCALL || !(plain || newer || wide))
                continue;
            for (unsigned s = 0; s < SIDE_COUNT; s++)
                for (size_t run = 0; run < p->run_counts[s]; run++) {
                    call->weights[s][run] += wrapper->weights[s][run];
                    call->samples[s][run] += wrapper->samples[s][run];
                    wrapper->weights[s][run] = wrapper->samples[s][run] = 0;
                }
            callers_graft(&call->callers, 0, &wrapper->callers, 0);
        }
    }
}

/* What functions are called in reasons that have these names on one side. */
static size_t find_waiters(const struct parts *p, const struct profile_loads *loads,
                           const struct parts_waits *waits, struct waiter *ret)
{
    size_t count = 0;
    for (size_t f = 0; f < waits->count; f++) {
        const char *label = NULL;
        for (size_t run = 0; run < p->run_counts[waits->side] && !label; run++) {
            const struct calls *calls = &loads->profiles[waits->side][run]->calls;
            for (uint32_t i = 0; i < calls->symbol_count && !label; i++)
                if (calls->symbols[i].name && !calls->symbols[i].is_kernel &&
                    str_eq(calls->symbols[i].name, waits->items[f].function))
                    label = explain_name(&p->names, waits->side, run, i);
        }
        if (label)
            ret[count++] = (struct waiter){label, waits->items[f].is_timed};
    }
    return count;
}

void parts_build(struct parts *p, const struct profile_loads *loads, const struct diff *diff,
                 const struct parts_waits *waits)
{
    *p = (struct parts){0};
    for (unsigned s = 0; s < SIDE_COUNT; s++) {
        p->run_counts[s] = loads->counts[s];
        p->cpu_weights[s] = memory_zalloc(loads->counts[s] + 1, sizeof(double));
        p->cpu_samples[s] = memory_zalloc(loads->counts[s] + 1, sizeof(double));
    }
    callers_init(&p->owners, p->run_counts);
    explain_names_init(&p->names, loads, diff);
    CLEANUP(memory_freep)
    struct waiter *waiters = memory_zalloc((waits ? waits->count : 0) + 1, sizeof(*waiters));
    size_t waiter_count = waits ? find_waiters(p, loads, waits, waiters) : 0;
    for (unsigned s = 0; s < SIDE_COUNT; s++)
        for (size_t run = 0; run < loads->counts[s]; run++) {
            const struct profile *profile = loads->profiles[s][run];
            struct place at = {.parts = p,
                               .side = s,
                               .run = run,
                               .has_peers = has_several_tasks(profile),
                               .is_static = explain_has_no_library(&profile->calls),
                               .waiters = waiters,
                               .waiter_count = waiter_count};
            for (size_t i = 0; i < profile->calls.cell_count; i++)
                add_cell(&at, &loads->runs[s][run], &profile->calls.cells[i]);
        }
    fold_wrappers(p);
}

static double sum_weights(const struct parts *p, const struct part *part, unsigned side)
{
    double sum = 0;
    for (size_t run = 0; run < p->run_counts[side]; run++)
        sum += part->weights[side][run];
    return sum;
}

/* How much of the entries belongs to each system call of a side; the sum is at most 1.  Calls that
 * no stack names keep their part of it. */
static double find_claims(const struct parts *p, unsigned side, const struct syscall_count *counts,
                          size_t count, double *claims)
{
    double all = 0, unnamed = 0;
    for (size_t k = 0; k < count; k++)
        if (!*counts[k].name)
            unnamed = counts[k].values[side];
    for (int by_time = 0; by_time < 2 && all <= 0; by_time++)
        for (size_t i = 0; i < p->count; i++) {
            claims[i] = 0;
            if (p->items[i].kind != PART_SYSCALL)
                continue;
            for (size_t k = 0; k < count && !by_time; k++)
                if (str_eq(counts[k].name, p->items[i].name))
                    claims[i] = counts[k].values[side];
            if (by_time)
                claims[i] = sum_weights(p, &p->items[i], side);
            all += claims[i];
        }
    for (size_t i = 0; i < p->count && all > 0; i++)
        claims[i] /= all + unnamed;
    return all > 0 ? all / (all + unnamed) : 0;
}

void parts_share_entries(struct parts *p, const struct syscall_count *counts, size_t count)
{
    CLEANUP(memory_freep) double *claims = memory_zalloc(p->count + 1, sizeof(*claims));
    for (size_t e = 0; e < p->count; e++) {
        struct part *entry = &p->items[e];
        if (entry->kind != PART_ENTRY)
            continue;
        for (unsigned s = 0; s < SIDE_COUNT; s++) {
            double claimed = find_claims(p, s, counts, count, claims);
            if (claimed <= 0)
                continue;
            for (size_t run = 0; run < p->run_counts[s]; run++) {
                for (size_t i = 0; i < p->count; i++) {
                    if (claims[i] <= 0 || p->items[i].kind != PART_SYSCALL)
                        continue;
                    p->items[i].weights[s][run] += claims[i] * entry->weights[s][run];
                    p->items[i].samples[s][run] += claims[i] * entry->samples[s][run];
                }
                entry->weights[s][run] *= 1 - claimed;
                entry->samples[s][run] *= 1 - claimed;
            }
        }
    }
}

void parts_done(struct parts *p)
{
    for (size_t i = 0; i < p->count; i++) {
        for (unsigned s = 0; s < SIDE_COUNT; s++) {
            free(p->items[i].weights[s]);
            free(p->items[i].samples[s]);
        }
        for (size_t k = 0; k < p->items[i].inlined_count; k++) {
            free(p->items[i].inlined[k].name);
            for (unsigned s = 0; s < SIDE_COUNT; s++) {
                free(p->items[i].inlined[k].weights[s]);
                free(p->items[i].inlined[k].samples[s]);
            }
        }
        free(p->items[i].inlined);
        free(p->items[i].with);
        free(p->items[i].name);
        callers_done(&p->items[i].callers);
        callers_done(&p->items[i].sites);
    }
    free(p->items);
    for (size_t i = 0; i < p->nameless_count; i++)
        free(p->nameless[i].dso);
    free(p->nameless);
    callers_done(&p->owners);
    arena_done(&p->arena);
    explain_names_done(&p->names);
    for (unsigned s = 0; s < SIDE_COUNT; s++) {
        free(p->cpu_weights[s]);
        free(p->cpu_samples[s]);
    }
    *p = (struct parts){0};
}
