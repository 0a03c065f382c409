/* SPDX-License-Identifier: MIT */
/*
 * How whole are the call chains?
 *
 * Code that was built without frame pointers uses that register for anything; the kernel follows
 * it all the same and finds "callers" that lie in no code, or misses all that should come.  A
 * chain with a caller outside every map is broken for certain.  One without any function in which a
 * thread begins has most likely lost its beginning.
 */
#include "base/memory.h"
#include "profile/load.h"

#include <string.h>

/* Functions in which a thread of a program begins, or from which no frame pointer leads further
 * though nothing is missing. */
static bool is_beginning(const char *name)
{
    static const char *const names[] = {
        "_start",         "__libc_start_main", "__libc_start_call_main",
        "main",           "start_thread",      "clone",
        "clone3",         "__clone",           "__clone3",
        "_dl_start_user", "thread_start",      "_dl_relocate_static_pie",
        "rt_sigreturn",   "__restore_rt",      "_dl_start",
        "ret_from_fork",
    };
    if (!name)
        return false;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return str_has_prefix(name, "__libc_start_main") || str_has_prefix(name, "__GI___clone") ||
           str_has_prefix(name, "__clone");
}

enum verdict {
    CHAIN_NONE, /* no user frame yet */
    CHAIN_WHOLE,
    CHAIN_ENDING,
    CHAIN_BROKEN,
};

static bool begins(const struct profile *p, uint32_t location)
{
    uint32_t last = p->location_lists[location + 1];
    return is_beginning(calls_symbol(&p->calls, p->location_frames[last - 1])->name);
}

/* The outermost location of a stack decides how it begins. */
static enum verdict judge_outermost(const struct profile *p, uint32_t location)
{
    const struct stack_location *l = &p->stacks.locations[location];
    if (l->flags & (STACK_KERNEL | STACK_GUEST))
        return CHAIN_NONE;
    if (!l->module)
        return l->flags & STACK_CALLER ? CHAIN_BROKEN : CHAIN_ENDING;
    enum module_kind kind = module_kind(l->module);
    if (kind == MODULE_PERFMAP || kind == MODULE_CODE || kind == MODULE_VDSO)
        return CHAIN_WHOLE; /* code made at run time has its own ways */
    return begins(p, location) ? CHAIN_WHOLE : CHAIN_ENDING;
}

static enum verdict judge_node(const struct profile *p, const uint8_t *verdicts, uint32_t node)
{
    const struct stack_node *n = &p->stacks.nodes[node];
    enum verdict above = verdicts[n->parent];
    if (n->parent == STACK_EMPTY)
        return judge_outermost(p, n->location);
    const struct stack_location *l = &p->stacks.locations[n->location];
    if ((l->flags & STACK_CALLER) && !(l->flags & (STACK_KERNEL | STACK_GUEST)) && !l->module)
        return CHAIN_BROKEN;
    /* Of a stripped program the entry has no name, but what it calls has. */
    return above == CHAIN_ENDING && l->module && begins(p, n->location) ? CHAIN_WHOLE : above;
}

void chain_judge(struct profile *p)
{
    struct profile_chains *c = &p->chains;
    c->samples = c->broken = c->ending = 0;
    if (p->options.no_callers)
        return;
    uint8_t *verdicts = memory_zalloc(p->stacks.node_count, sizeof(*verdicts));
    for (uint32_t i = 1; i < p->stacks.node_count; i++)
        verdicts[i] = (uint8_t)judge_node(p, verdicts, i);
    for (size_t i = 0; i < p->stacks.cell_count; i++) {
        const struct stack_cell *cell = &p->stacks.cells[i];
        enum verdict v = verdicts[cell->node];
        if (!p->events[cell->event].has_callers)
            continue;
        c->samples += v == CHAIN_NONE ? 0 : cell->samples;
        c->broken += v == CHAIN_BROKEN ? cell->samples : 0;
        c->ending += v == CHAIN_ENDING ? cell->samples : 0;
    }
    free(verdicts);
}
