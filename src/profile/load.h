/* SPDX-License-Identifier: MIT */
/* What load.c and chain.c share: the state while a recording is read. */
#ifndef ASSAY_PROFILE_LOAD_H
#define ASSAY_PROFILE_LOAD_H

#include "profile/given/given.h"
#include "profile/profile.h"
#include "symbols/addrspace.h"
#include "symbols/unwind.h"

/*
 * Two caches that answer for nearly every sample of a long recording.  They are of fixed size and
 * forget; nothing is wrong when they do.  Generations say when the maps of a process changed.
 */
struct address_cache_entry {
    uint64_t generation, address;
    uint32_t flags, location;
};

/* A row of callers, from the outermost one inwards, by a hash of its addresses and the state of
 * the maps.  64 bits: two of a million different rows are taken for one in 1 of 10^7 recordings. */
struct callers_cache_entry {
    uint64_t key;
    uint32_t node;
};

/* Which state of its maps a process is in: a number that was never used before. */
struct space_state {
    uint32_t pid;
    bool has_jit; /* code comes with time, without a record: nothing is remembered */
    uint64_t generation;
};

#define CHAIN_ADDRESSES_LOG2 15
#define CHAIN_CALLERS_LOG2 17
#define CHAIN_WHOLE_LOG2 17
#define CHAIN_UNWIND_MAX 1024

struct chain_entry {
    uint64_t address;
    uint64_t hash; /* of this one and all further out */
    uint32_t flags;
};

/* A sample whose chain has not been looked up. */
struct chain_sample {
    struct stack_sample sample;
    uint64_t address, time_ns, generation;
    uint64_t hash;   /* of its chain as it came, once it is looked up */
    size_t first_ip; /* of its chain in the batch, without the sampled address */
    uint32_t ip_count;
    bool is_return; /* the first one of them is a caller's */
    uint32_t pid, cpu, mode;
    uint32_t node; /* that the callers are below */
};

#define CHAIN_BATCH 512 /* samples */
#define CHAIN_AHEAD 32  /* of these, whose cache misses overlap */

struct chain_batch {
    struct chain_sample *samples; /* CHAIN_BATCH */
    size_t count;
    uint64_t *ips;
    size_t ip_count, ip_capacity;
};

struct chain_builder {
    struct profile *profile;
    struct processes *processes;
    enum unwind_arch arch;
    bool can_unwind;
    struct space_state *spaces;
    size_t space_count, space_capacity;
    struct idtable space_table; /* by pid */
    uint32_t last_space;
    uint64_t generation_count, kernel_generation;
    struct address_cache_entry *addresses;
    struct callers_cache_entry *callers;
    struct callers_cache_entry *whole; /* all callers of a sample, by the chain as it came */
    struct chain_entry *entries;       /* of the chain at hand */
    size_t entry_capacity;
    struct unwind_frame *unwound;
    uint64_t *unwound_addresses; /* the same as addresses, for chain_unwind */
};

void chain_init(struct chain_builder *b, struct profile *profile, struct processes *processes,
                const char *arch);
void chain_done(struct chain_builder *b);
/* The maps of a process changed: what was remembered about its addresses is void. */
void chain_space_changed(struct chain_builder *b, uint32_t pid, bool has_jit);
void chain_kernel_changed(struct chain_builder *b);
/* The sample brings its chain as addresses: adding it to a batch does not touch the builder. */
bool chain_is_plain(const struct perfdata_record *record);
/* Puts a sample into a batch that has room.  A stack that was copied is unwound on the way. */
void chain_batch_add(struct chain_batch *batch, struct chain_builder *b,
                     const struct perfdata_record *record, const struct stack_sample *sample);
/* The callers that the copied stack of a sample gives, as a call chain has them, the sampled
 * address first; valid until the next call.  NULL when there is nothing to unwind. */
const uint64_t *chain_unwind(struct chain_builder *b, const struct perfdata_record *record,
                             size_t *ret_count);
/* Counts the samples of a batch in their stacks, and empties it. */
void chain_batch_take(struct chain_builder *b, struct chain_batch *batch);

/* The same from a profile that another tool wrote, in the place of a recording: reading, naming and
 * what is to be freed. */
int profile_take_given(struct profile *profile, enum given_kind kind, struct error *err);
void profile_name_given(struct profile *profile);
void profile_given_free(struct given *given);

/* Counts what profile_chains says of merged stacks; after symbolizing. */
void chain_judge(struct profile *profile);

#endif
