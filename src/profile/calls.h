/* SPDX-License-Identifier: MIT */
/*
 * Stacks of functions: what the stacks of addresses become once addresses have names.
 *
 * Many addresses are one function, so this tree is far smaller than that of struct stacks, and
 * everything that people look at (tables, call trees, exports) is made from it.  An address where
 * functions were inlined becomes several frames, the inlined ones nearer to the leaf.
 */
#ifndef ASSAY_PROFILE_CALLS_H
#define ASSAY_PROFILE_CALLS_H

#include "base/strings.h"
#include "profile/stacks.h"
#include "profile/tasks.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct function;

/* A function, or an address that no function covers. */
struct profile_symbol {
    const char *name;                /* NULL: none covers the address */
    const struct function *function; /* NULL when there is no name, or in tests */
    uint64_t address;                /* the function's start, or the address itself */
    uint32_t dso;                    /* number in calls.dsos */
    bool is_kernel;
};

struct profile_frame {
    uint32_t symbol;
    uint32_t srcline; /* number in calls.srclines, 0 when not known */
    bool inlined;     /* into the function of the frame before it in the path from the root */
};

struct profile_srcline {
    const char *file; /* NULL for number 0 */
    uint32_t line;
};

/* Node 0 is the empty stack; every parent has a lower index than its children. */
struct call_node {
    uint32_t parent;
    uint32_t frame;
};

struct call_cell {
    uint32_t node, task, event, cpu;
    uint64_t samples, weight;
};

struct calls {
    struct arena arena;
    struct profile_symbol *symbols;
    size_t symbol_count, symbol_capacity;
    struct profile_frame *frames;
    size_t frame_count, frame_capacity;
    struct profile_srcline *srclines;
    size_t srcline_count, srcline_capacity;
    struct names dsos;
    struct call_node *nodes;
    size_t node_count, node_capacity;
    struct call_cell *cells;
    size_t cell_count, cell_capacity;
    struct idtable frame_table, srcline_table, node_table, cell_table;
};

void calls_init(struct calls *c);
void calls_done(struct calls *c);

uint32_t calls_srcline(struct calls *c, const char *file, uint32_t line);
uint32_t calls_frame(struct calls *c, uint32_t symbol, uint32_t srcline, bool inlined);
uint32_t calls_push(struct calls *c, uint32_t parent, uint32_t frame);
void calls_add(struct calls *c, uint32_t node, uint32_t task, uint32_t event, uint32_t cpu,
               uint64_t samples, uint64_t weight);

/* What is known of the instruction at each location that calls; each may be NULL. */
struct calls_known {
    /* The frame of the function that it calls, IDTABLE_NONE for none.  Where another one is next on
     * the stack, it was called and gave its place to that one (a tail call): it is put between. */
    const uint32_t *called;
    /* The frame of the function that it calls in the source, where the compiler made one of several
     * equal functions, and the symbol that stands there for it. */
    const uint32_t *meant, *instead;
};

/*
 * Makes the stacks of functions from stacks of addresses, anew if there are some.  frame_lists[l]
 * .. frame_lists[l + 1] are the frames of location l in frame_items, the innermost first; an empty
 * list leaves the location out, and so is a caller in user space that lies in no module. ret_nodes,
 * unless NULL, gets for each stack node the node here; it has room for them all.
 */
void calls_from_stacks(struct calls *c, const struct stacks *stacks, const uint32_t *frame_lists,
                       const uint32_t *frame_items, const struct calls_known *known,
                       uint32_t *ret_nodes);

/* The frame of the function that has the code of the leaf: inlined ones are passed over.
 * IDTABLE_NONE for the empty stack. */
uint32_t calls_leaf_frame(const struct calls *c, uint32_t node);

static inline const struct profile_symbol *calls_symbol(const struct calls *c, uint32_t frame)
{
    return &c->symbols[c->frames[frame].symbol];
}

static inline const char *calls_dso(const struct calls *c, uint32_t frame)
{
    return c->dsos.items[calls_symbol(c, frame)->dso];
}

/* A symbol's name for graphs: addresses without a name are called by their binary. */
void calls_put_name(const struct calls *calls, uint32_t symbol, struct strbuf *out);

#endif
