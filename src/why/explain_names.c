/* SPDX-License-Identifier: MIT */
/* The names of functions in reasons: see explain_names.h. */
#include "why/explain_names.h"
#include "base/memory.h"

#include <stdlib.h>

enum { NEIGHBOURS_MOST = 32, SAMPLES_LEAST = 20 };

const char *explain_wrapped_call(const char *name)
{
    static const char *const calls[] = {"read",      "write",     "readv",
                                        "writev",    "pread64",   "pwrite64",
                                        "sendto",    "recvfrom",  "sendmsg",
                                        "recvmsg",   "sendmmsg",  "recvmmsg",
                                        "sendfile",  "splice",    "open",
                                        "openat",    "close",     "stat",
                                        "fstat",     "lseek",     "mmap",
                                        "munmap",    "mprotect",  "madvise",
                                        "brk",       "ioctl",     "fcntl",
                                        "poll",      "select",    "epoll_wait",
                                        "epoll_ctl", "nanosleep", "clock_nanosleep",
                                        "fsync",     "fdatasync", "getppid",
                                        "getpid",    "gettid",    "sched_yield",
                                        "kill",      "accept4",   "connect",
                                        "socket",    "shutdown",  "io_uring_enter",
                                        "ftruncate", "unlink",    "rename"};
    if (name && str_has_prefix(name, "__")) /* "__sched_yield" */
        name += 2;
    for (size_t i = 0; name && i < ARRAY_COUNT(calls); i++)
        if (str_eq(name, calls[i]))
            return calls[i];
    return NULL;
}

/* Functions that both sides have, next to one that only one side has. */
struct neighbours {
    uint64_t samples; /* with it in the stack */
    size_t runs;      /* in which it was seen */
    uint32_t callers[NEIGHBOURS_MOST], callees[NEIGHBOURS_MOST];
    size_t caller_count, callee_count;
};

static void note(uint32_t *list, size_t *count, uint32_t item)
{
    for (size_t i = 0; i < *count; i++)
        if (list[i] == item)
            return;
    if (*count < NEIGHBOURS_MOST)
        list[(*count)++] = item;
}

static bool is_alone(const struct matched *item)
{
    return !item->is_kernel && !explain_wrapped_call(item->name) &&
           (item->kind == MATCH_ONLY_A || item->kind == MATCH_ONLY_B);
}

static bool is_common(const struct matched *item)
{
    return !item->is_kernel && item->kind != MATCH_ONLY_A && item->kind != MATCH_ONLY_B;
}

static void find_neighbours(const struct match *m, const uint32_t *rows, const struct calls *calls,
                            struct neighbours *found)
{
    for (size_t node = 1; node < calls->node_count; node++) {
        uint32_t parent = calls->nodes[node].parent;
        if (!parent)
            continue;
        uint32_t callee = rows[calls->frames[calls->nodes[node].frame].symbol];
        uint32_t caller = rows[calls->frames[calls->nodes[parent].frame].symbol];
        if (callee == MATCH_NONE || caller == MATCH_NONE)
            continue;
        if (is_alone(&m->items[callee]) && is_common(&m->items[caller]))
            note(found[callee].callers, &found[callee].caller_count, caller);
        if (is_alone(&m->items[caller]) && is_common(&m->items[callee]))
            note(found[caller].callees, &found[caller].callee_count, callee);
    }
}

static void count_samples(const struct match *m, const uint32_t *rows, const struct calls *calls,
                          struct neighbours *found)
{
    CLEANUP(memory_freep) bool *seen = memory_zalloc(m->count + 1, sizeof(*seen));
    for (size_t i = 0; i < calls->cell_count; i++) {
        uint32_t node = calls->cells[i].node;
        for (; node; node = calls->nodes[node].parent) {
            uint32_t item = rows[calls->frames[calls->nodes[node].frame].symbol];
            if (item == MATCH_NONE || !is_alone(&m->items[item]))
                continue;
            found[item].samples += calls->cells[i].samples;
            found[item].runs += !seen[item];
            seen[item] = true;
        }
    }
}

/* Not what a sample or two of the start of a program happened to hit. */
static bool is_solid(const struct neighbours *n, size_t runs)
{
    return n->runs == runs && n->samples >= SAMPLES_LEAST;
}

static bool share_one(const uint32_t *a, size_t a_count, const uint32_t *b, size_t b_count)
{
    for (size_t i = 0; i < a_count; i++)
        for (size_t k = 0; k < b_count; k++)
            if (a[i] == b[k])
                return true;
    return false;
}

static bool stand_alike(const struct neighbours *a, const struct neighbours *b)
{
    return share_one(a->callers, a->caller_count, b->callers, b->caller_count) &&
           ((!a->callee_count && !b->callee_count) ||
            share_one(a->callees, a->callee_count, b->callees, b->callee_count));
}

/* The only one of a kind that stands as the item does; MATCH_NONE for none or several. */
static uint32_t find_partner(const struct match *m, const struct neighbours *found, uint32_t item,
                             enum match_kind kind)
{
    uint32_t partner = MATCH_NONE;
    for (uint32_t i = 0; i < m->count; i++) {
        if (m->items[i].kind != kind || m->items[i].is_kernel ||
            !stand_alike(&found[item], &found[i]))
            continue;
        if (partner != MATCH_NONE)
            return MATCH_NONE;
        partner = i;
    }
    return partner;
}

static char *label_of(const struct matched *item)
{
    const struct profile_symbol *a = item->symbols[SIDE_A], *b = item->symbols[SIDE_B];
    if (item->kind == MATCH_RENAMED && a && b && a->name && b->name && !str_eq(a->name, b->name))
        return memory_printf("%s (%s in the base)", b->name, a->name);
    return memory_strdup(item->name);
}

void explain_names_init(struct explain_names *n, const struct profile_loads *loads,
                        const struct diff *diff)
{
    const struct match *m = &diff->match;
    *n = (struct explain_names){.diff = diff, .count = m->count};
    n->labels = memory_zalloc(m->count + 1, sizeof(*n->labels));
    n->places = memory_zalloc(m->count + 1, sizeof(*n->places));
    CLEANUP(memory_freep) struct neighbours *found = memory_zalloc(m->count + 1, sizeof(*found));
    for (unsigned s = 0; s < SIDE_COUNT; s++)
        for (size_t run = 0; run < loads->counts[s]; run++) {
            find_neighbours(m, m->rows[s][run], &loads->profiles[s][run]->calls, found);
            count_samples(m, m->rows[s][run], &loads->profiles[s][run]->calls, found);
        }
    for (uint32_t i = 0; i < m->count; i++) {
        n->places[i] = i;
        n->labels[i] = label_of(&m->items[i]);
    }
    for (uint32_t a = 0; a < m->count; a++) {
        if (m->items[a].kind != MATCH_ONLY_A || m->items[a].is_kernel)
            continue;
        uint32_t b = find_partner(m, found, a, MATCH_ONLY_B);
        if (b == MATCH_NONE || find_partner(m, found, b, MATCH_ONLY_A) != a ||
            !is_solid(&found[a], loads->counts[SIDE_A]) ||
            !is_solid(&found[b], loads->counts[SIDE_B]))
            continue;
        n->places[b] = a;
        free(n->labels[a]);
        n->labels[a] = memory_printf("%s in place of %s", m->items[b].name, m->items[a].name);
    }
}

void explain_names_done(struct explain_names *n)
{
    for (size_t i = 0; i < n->count; i++)
        free(n->labels[i]);
    free(n->labels);
    free(n->places);
    *n = (struct explain_names){0};
}

const char *explain_name(const struct explain_names *n, unsigned side, size_t run, uint32_t symbol)
{
    uint32_t item = symbol == IDTABLE_NONE ? MATCH_NONE : n->diff->match.rows[side][run][symbol];
    return item == MATCH_NONE ? NULL : n->labels[n->places[item]];
}
