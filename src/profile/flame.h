/* SPDX-License-Identifier: MIT */
/*
 * A profile as one tree of frames from the commands inwards: what a flame graph shows and what a
 * report keeps of a recording.  Nodes stand in preorder, so that depths alone give the shape.
 */
#ifndef ASSAY_PROFILE_FLAME_H
#define ASSAY_PROFILE_FLAME_H

#include "profile/diff.h"

enum flame_flags {
    FLAME_KERNEL = 1,
    FLAME_INLINED = 2,
    FLAME_COMM = 4, /* a command, no function */
    /* Of two that are compared: what the function and all it calls cost changed for certain. */
    FLAME_MORE = 8,
    FLAME_LESS = 16,
};

struct flame_name {
    char *text;
    char *dso;      /* "" for none */
    char *known_as; /* the other side's name for it; NULL: the same */
    uint32_t flags;
    uint32_t symbol; /* of the profile it was made from (calls.symbols); FLAME_NO_SYMBOL: none */
};

#define FLAME_NO_SYMBOL UINT32_MAX
/* A frame that changed by more than this share of its larger side has the stronger colour. */
#define FLAME_STRONG_CHANGE 0.4

/* By which two profiles' functions are known as one. */
static inline const char *flame_known_as(const struct flame_name *name)
{
    return name->known_as ? name->known_as : name->text;
}

struct flame_node {
    uint32_t depth; /* 0 for the commands */
    uint32_t name;
    uint64_t self_samples, self_weight;
    uint64_t samples, weight; /* with everything below */
};

struct flame_thread {
    char *name;
    uint32_t tid;
};

/* When a sample was taken, since the first one. */
struct flame_moment {
    uint64_t at_ns;
    uint32_t node, thread; /* numbers in nodes and threads */
};

/* A time that a thread was off the CPU, where that was recorded. */
struct flame_wait {
    uint64_t from_ns, length_ns;
    uint32_t thread, name; /* the function that waited, in names */
};

/* More samples than these are thinned out in the order of time; of waits the longest are kept. */
enum {
    FLAME_ORDER_MAX = 1000,
    FLAME_MOMENTS_MAX = 12000,
    FLAME_WAITS_MAX = 3000,
    FLAME_THREADS_MAX = 64,
    FLAME_DEPTH_MAX = 1024
};

struct flame {
    char *label; /* of what: "variant=send size=64", or a file */
    char *event;
    bool is_time; /* weights are nanoseconds */
    uint64_t samples, weight, lost;
    double cost; /* of a unit of work, where two are compared; 0: the weight */
    struct flame_name *names;
    size_t name_count, name_capacity;
    struct flame_node *nodes;
    size_t node_count, node_capacity;
    uint32_t *order; /* the innermost nodes of samples, by thread and time */
    size_t order_count;
    uint64_t order_every; /* one of so many samples is in it */
    struct flame_thread *threads;
    size_t thread_count, thread_capacity;
    struct flame_moment *moments; /* ascending */
    size_t moment_count, moment_capacity;
    uint64_t moment_every;
    struct flame_wait *waits; /* ascending */
    size_t wait_count, wait_capacity, waits_left_out;
    char *path;    /* of the recording; NULL where it came out of a page */
    char *sources; /* JSON: code of functions, with their samples (assay html --source); or NULL */
    char *notes;   /* what is doubtful about the recording, one sentence a line */
};

/* The event of the profile, which is symbolized.  With samples, the order of time comes along. */
void flame_from_profile(struct flame *flame, const struct profile *profile, uint32_t event,
                        const char *label);
/* Sums up the nodes' totals from their own samples, after reading. */
void flame_sum(struct flame *flame);
void flame_done(struct flame *flame);

/* Two trees laid over each other: every path of either is there. */
struct flame_pair_node {
    uint32_t depth;
    uint32_t name; /* in the pair's names */
    uint64_t samples[2], weight[2], self_samples[2], self_weight[2];
};

struct flame_pair {
    const struct flame *sides[2];
    struct flame_name *names; /* their texts are the sides' */
    size_t name_count, name_capacity;
    struct flame_pair_node *nodes; /* preorder */
    size_t node_count, node_capacity;
};

void flame_pair_init(struct flame_pair *pair, const struct flame *base, const struct flame *new);
void flame_pair_done(struct flame_pair *pair);
/* What a side as a whole costs: what its nodes' weights are shares of. */
double flame_cost(const struct flame *flame);
/* What the functions cost, by the number of their names; the caller frees it.  A recursion counts
 * once in the totals. */
struct flame_function {
    uint32_t name, first_node;
    uint64_t self, total, total_samples;
};
struct flame_function *flame_functions(const struct flame *flame);
/* Where each side has one command that the other has not, they are known as one. */
void flame_align_commands(const struct flame *base, struct flame *new);
/* Sets FLAME_MORE, FLAME_LESS and known_as of one side's functions by their rows; the flame graph
 * was made from that side's first profile in the difference. */
void flame_mark(struct flame *flame, const struct diff *d, unsigned side);
/* The same where there is nothing but one recording of each side: changes above the resolution of
 * sampling. */
void flame_judge(struct flame *base, struct flame *new);

#endif
