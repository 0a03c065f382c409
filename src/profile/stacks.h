/* SPDX-License-Identifier: MIT */
/*
 * Equal stacks merged, before anything has a name.
 *
 * A *location* is an address in a module; a *stack* is a path of locations from the outermost
 * caller to the sampled instruction, kept as one node of a tree, so that stacks with the same
 * callers share them.  A *cell* counts the samples with the same stack, task, event and processor.
 * What is kept grows with the number of different stacks, not with the number of samples.
 */
#ifndef ASSAY_PROFILE_STACKS_H
#define ASSAY_PROFILE_STACKS_H

#include "profile/idtable.h"

#include <stddef.h>
#include <stdint.h>

struct module;

enum stack_flags {
    STACK_KERNEL = 1, /* in the kernel */
    STACK_CALLER = 2, /* a return address, moved one byte back into the call */
    STACK_GUEST = 4,  /* of a virtual machine: no names */
};

struct stack_location {
    struct module *module; /* NULL: in no known map */
    uint64_t address;
    uint32_t flags;
};

/* Node 0 is the empty stack; every parent has a lower index than its children. */
#define STACK_EMPTY 0u

struct stack_node {
    uint32_t parent;
    uint32_t location;
};

#define STACK_ANY_CPU UINT32_MAX

struct stack_cell {
    uint32_t node, task, event, cpu;
    uint64_t samples, weight;
};

/*
 * A slot of the table of nodes.  These tables are far larger than the processor's caches, so a
 * look-up should miss them once: the key stands in the slot, and so does the node's first cell.
 * Most nodes have no other; further cells are found through cell_table.
 */
struct stack_slot {
    uint32_t parent, location;
    uint32_t node; /* 0 for free */
    uint32_t cell; /* IDTABLE_NONE for none */
};

/* Samples that wait: looked up together, their cache misses overlap. */
#define STACKS_WAITING_MAX 32

struct stack_sample {
    uint32_t parent, location; /* of the stack; the node is parent below location */
    uint32_t task, event, cpu;
    uint64_t weight;
    uint32_t node, cell; /* while they are added */
};

struct stacks {
    struct stack_location *locations;
    size_t location_count, location_capacity;
    struct stack_node *nodes;
    size_t node_count, node_capacity;
    struct stack_cell *cells;
    size_t cell_count, cell_capacity;
    struct stack_slot *slots;
    size_t slot_mask;
    struct idtable location_table, cell_table;
    struct stack_sample waiting[STACKS_WAITING_MAX];
    size_t waiting_count;
};

void stacks_init(struct stacks *s);
void stacks_done(struct stacks *s);

/* The number of this location, a new one if it was not there. */
uint32_t stacks_location(struct stacks *s, struct module *module, uint64_t address, uint32_t flags);
/* The stack that calls this location from the stack `parent`. */
uint32_t stacks_push(struct stacks *s, uint32_t parent, uint32_t location);
/* Counts one sample of that stack. */
void stacks_add(struct stacks *s, uint32_t node, uint32_t task, uint32_t event, uint32_t cpu,
                uint64_t weight);
/* Counts samples that were merged elsewhere, on any processor. */
void stacks_add_merged(struct stacks *s, uint32_t node, uint32_t task, uint32_t event,
                       uint64_t samples, uint64_t weight);
/* The same for the stack that calls `location` from `parent`, sooner or later. */
void stacks_add_later(struct stacks *s, const struct stack_sample *sample);
/* Counts what waits, and drops the tables that only building needs. */
void stacks_finish(struct stacks *s);

#endif
