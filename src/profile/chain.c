/* SPDX-License-Identifier: MIT */
/*
 * From a sample to its node in the tree of stacks.
 *
 * A sample brings its instruction pointer and, leaf first, the return addresses that the kernel
 * found (frame pointers), the branches that the processor remembered (LBR), or the registers and
 * a copy of the stack to be unwound here.  In a long recording most rows of callers were seen
 * before, or differ in the innermost few only.
 *
 * Samples are taken in batches: what a batch needs of the memory is asked for before it is used,
 * and a batch of plain chains can be made on one processor while another looks the one before it up
 * (feed.h).
 */
#include "base/memory.h"
#include "profile/load.h"

#include <string.h>

#define ADDRESSES_SIZE (1u << CHAIN_ADDRESSES_LOG2)
#define CALLERS_SIZE (1u << CHAIN_CALLERS_LOG2)
#define WHOLE_SIZE (1u << CHAIN_WHOLE_LOG2)

void chain_init(struct chain_builder *b, struct profile *profile, struct processes *processes,
                const char *arch)
{
    *b = (struct chain_builder){.profile = profile, .processes = processes, .can_unwind = true};
    b->generation_count = b->kernel_generation = 1;
    idtable_init(&b->space_table, 6);
    b->addresses = memory_zalloc(ADDRESSES_SIZE, sizeof(*b->addresses));
    b->callers = memory_zalloc(CALLERS_SIZE, sizeof(*b->callers));
    b->whole = memory_zalloc(WHOLE_SIZE, sizeof(*b->whole));
#ifdef __aarch64__
    const char *native = "aarch64";
#else
    const char *native = "x86_64";
#endif
    if (!arch)
        arch = native;
    if (strcmp(arch, "aarch64") == 0)
        b->arch = UNWIND_AARCH64;
    else
        b->can_unwind = strcmp(arch, "x86_64") == 0;
}

void chain_done(struct chain_builder *b)
{
    free(b->spaces);
    idtable_done(&b->space_table);
    free(b->addresses);
    free(b->callers);
    free(b->whole);
    free(b->entries);
    free(b->unwound);
    free(b->unwound_addresses);
    *b = (struct chain_builder){0};
}

static uint64_t space_hash(const void *items, uint32_t id)
{
    return hash_mix(((const struct space_state *)items)[id].pid, 3);
}

static struct space_state *find_space(struct chain_builder *b, uint32_t pid)
{
    if (b->space_count && b->spaces[b->last_space].pid == pid)
        return &b->spaces[b->last_space];
    uint32_t slot, id;
    IDTABLE_EACH(&b->space_table, hash_mix(pid, 3), slot, id)
    if (b->spaces[id].pid == pid) {
        b->last_space = id;
        return &b->spaces[id];
    }
    id = (uint32_t)b->space_count;
    ARRAY_PUSH(b->spaces, b->space_count, b->space_capacity) =
        (struct space_state){.pid = pid, .generation = ++b->generation_count};
    idtable_put(&b->space_table, slot, id);
    if (idtable_is_crowded(&b->space_table))
        idtable_grow(&b->space_table, space_hash, b->spaces);
    b->last_space = id;
    return &b->spaces[id];
}

void chain_space_changed(struct chain_builder *b, uint32_t pid, bool has_jit)
{
    struct space_state *space = find_space(b, pid);
    space->generation = ++b->generation_count;
    space->has_jit |= has_jit;
}

void chain_kernel_changed(struct chain_builder *b)
{
    b->kernel_generation = ++b->generation_count;
}

static uint64_t current_generation(struct chain_builder *b, uint32_t pid)
{
    struct space_state *space = find_space(b, pid);
    return space->has_jit ? ++b->generation_count : space->generation;
}

static bool is_marker(uint64_t ip)
{
    return ip >= (uint64_t)-4095;
}

static uint32_t mode_of_marker(uint64_t marker)
{
    switch (marker) {
    case PERF_CONTEXT_KERNEL:
        return STACK_KERNEL;
    case PERF_CONTEXT_GUEST_KERNEL:
        return STACK_KERNEL | STACK_GUEST;
    case PERF_CONTEXT_GUEST:
    case PERF_CONTEXT_GUEST_USER:
        return STACK_GUEST;
    default:
        return 0;
    }
}

static uint32_t mode_of_misc(uint16_t misc)
{
    switch (misc & PERF_RECORD_MISC_CPUMODE_MASK) {
    case PERF_RECORD_MISC_KERNEL:
    case PERF_RECORD_MISC_HYPERVISOR:
        return STACK_KERNEL;
    case PERF_RECORD_MISC_GUEST_KERNEL:
        return STACK_KERNEL | STACK_GUEST;
    case PERF_RECORD_MISC_GUEST_USER:
        return STACK_GUEST;
    default:
        return 0;
    }
}

static struct address_cache_entry *cached_address(struct chain_builder *b, uint64_t generation,
                                                  uint64_t address, uint32_t flags)
{
    uint64_t hash = hash_mix(address + flags, generation);
    return &b->addresses[hash & (ADDRESSES_SIZE - 1)];
}

static uint64_t generation_for(const struct chain_builder *b, uint64_t generation, uint32_t flags)
{
    return flags & STACK_KERNEL ? b->kernel_generation : generation; /* one for all processes */
}

static uint32_t locate(struct chain_builder *b, const struct chain_sample *s, uint64_t address,
                       uint32_t flags)
{
    uint64_t generation = generation_for(b, s->generation, flags);
    struct address_cache_entry *entry = cached_address(b, generation, address, flags);
    if (entry->generation == generation && entry->address == address && entry->flags == flags)
        return entry->location;
    struct location found = {NULL, address};
    if (!(flags & STACK_GUEST) && !processes_find(b->processes, (pid_t)s->pid, flags & STACK_KERNEL,
                                                  address, s->time_ns, &found))
        found = (struct location){NULL, address};
    uint32_t location = stacks_location(&b->profile->stacks, found.module, found.address, flags);
    *entry = (struct address_cache_entry){generation, address, flags, location};
    return location;
}

/* Takes the addresses behind the sampled one apart, leaf first. */
static size_t collect(const uint64_t *ips, uint64_t count, uint32_t mode, bool is_return,
                      struct chain_entry *entries)
{
    size_t taken = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t ip = ips[i];
        if (is_marker(ip)) {
            mode = mode_of_marker(ip);
            is_return = false; /* where the mode changes stands the very next instruction */
            continue;
        }
        bool caller = is_return && ip;
        entries[taken++] = (struct chain_entry){ip - caller, 0, mode | (caller ? STACK_CALLER : 0)};
        is_return = true;
    }
    return taken;
}

/* Gives each entry the hash of itself and all further out. */
static void hash_entries(struct chain_entry *entries, size_t count)
{
    uint64_t hash = 0x9e3779b97f4a7c15ULL;
    for (size_t i = count; i-- > 0;) {
        hash = (hash ^ (entries[i].address + entries[i].flags)) * 0xd6e8feb86659fd93ULL;
        hash ^= hash >> 32;
        entries[i].hash = hash;
    }
}

/* The same for a state of the maps and what is below. */
static uint64_t row_key(const struct chain_builder *b, const struct chain_sample *s, uint64_t hash)
{
    return hash_mix(hash, s->generation ^ b->kernel_generation << 32 ^ (uint64_t)s->node << 16);
}

static struct callers_cache_entry *cached_callers(struct chain_builder *b, uint64_t key)
{
    return &b->callers[key * 0x9e3779b97f4a7c15ULL >> (64 - CHAIN_CALLERS_LOG2)];
}

static struct callers_cache_entry *cached_whole(struct chain_builder *b, uint64_t key)
{
    return &b->whole[key * 0x9e3779b97f4a7c15ULL >> (64 - CHAIN_WHOLE_LOG2)];
}

/*
 * The node of the entries below the sample's, which is that of an unwound user part or the empty
 * one.  The longest row of callers that is remembered is taken as it is; only what is further in is
 * looked up frame by frame.
 */
static uint32_t push_entries(struct chain_builder *b, const struct chain_sample *s,
                             const struct chain_entry *entries, size_t count)
{
    uint32_t node = s->node;
    size_t rest = 0;
    for (; rest < count; rest++) {
        uint64_t key = row_key(b, s, entries[rest].hash);
        const struct callers_cache_entry *entry = cached_callers(b, key);
        if (entry->key == key && entry->node) {
            node = entry->node;
            break;
        }
    }
    while (rest-- > 0) {
        uint32_t location = locate(b, s, entries[rest].address, entries[rest].flags);
        uint64_t key = row_key(b, s, entries[rest].hash);
        node = stacks_push(&b->profile->stacks, node, location);
        *cached_callers(b, key) = (struct callers_cache_entry){key, node};
    }
    return node;
}

/* With LBR call stacks the user part of the chain comes from the branches: the address that the
 * kernel found first, then where each call still open came from. */
static uint32_t push_branches(struct chain_builder *b, const struct perfdata_record *r,
                              uint64_t user_ip)
{
    const struct perfdata_sample *s = &r->sample;
    struct chain_sample sample = {.pid = r->pid, .time_ns = r->time_ns};
    size_t count = 0;
    b->entries =
        memory_grow(b->entries, &b->entry_capacity, s->branch_count + 1, sizeof(*b->entries));
    if (user_ip)
        b->entries[count++] = (struct chain_entry){user_ip, 0, 0};
    for (uint64_t i = 0; i < s->branch_count; i++)
        b->entries[count++] = (struct chain_entry){s->branches[i].from, 0, STACK_CALLER};
    hash_entries(b->entries, count);
    sample.generation = current_generation(b, r->pid);
    return push_entries(b, &sample, b->entries, count);
}

/* Unwinds the copied stack into b->unwound; 0 when there is nothing to unwind. */
static size_t unwind(struct chain_builder *b, const struct perfdata_record *r,
                     enum unwind_end *ret_end)
{
    const struct perfdata_sample *s = &r->sample;
    struct unwind_registers registers;
    if (!b->can_unwind || !s->user_regs || !s->user_stack_size ||
        !unwind_registers_from_perf(&registers, b->arch, s->user_regs_abi, s->user_regs_mask,
                                    s->user_regs, (size_t)__builtin_popcountll(s->user_regs_mask)))
        return 0;
    const struct addrspace *space = processes_space(b->processes, (pid_t)r->pid, r->time_ns);
    if (!space)
        return 0;
    if (!b->unwound)
        b->unwound = memory_zalloc(CHAIN_UNWIND_MAX, sizeof(*b->unwound));
    return unwind_user(space, &registers, s->user_stack, s->user_stack_size, b->unwound,
                       CHAIN_UNWIND_MAX, ret_end);
}

const uint64_t *chain_unwind(struct chain_builder *b, const struct perfdata_record *r,
                             size_t *ret_count)
{
    enum unwind_end unused;
    *ret_count = unwind(b, r, &unused);
    if (!*ret_count)
        return NULL;
    if (!b->unwound_addresses)
        b->unwound_addresses = memory_zalloc(CHAIN_UNWIND_MAX, sizeof(*b->unwound_addresses));
    for (size_t i = 0; i < *ret_count; i++)
        b->unwound_addresses[i] = b->unwound[i].ip;
    return b->unwound_addresses;
}

/* Adds the unwound stack.  The frame that was sampled itself is left to the caller when the sample
 * was taken in user space.  False when there is nothing to unwind. */
static bool push_unwound(struct chain_builder *b, const struct perfdata_record *r, uint32_t mode,
                         uint32_t *ret_node)
{
    enum unwind_end end = UNWIND_BROKEN;
    size_t count = unwind(b, r, &end);
    if (!count)
        return false;
    struct profile_chains *chains = &b->profile->chains;
    chains->unwound++;
    chains->stack_bytes = r->event->attr.sample_stack_user;
    chains->stack_cut += end == UNWIND_STACK_CUT;
    chains->no_rules += end == UNWIND_NO_RULES || end == UNWIND_NO_MAP || end == UNWIND_BROKEN;
    uint32_t node = STACK_EMPTY;
    struct stacks *stacks = &b->profile->stacks;
    for (size_t i = count; i-- > (mode == 0 ? 1u : 0u);) {
        const struct unwind_frame *f = &b->unwound[i];
        bool caller = i > 0;
        node = stacks_push(stacks, node,
                           stacks_location(stacks, f->location.module, f->location.address,
                                           caller ? STACK_CALLER : 0));
    }
    *ret_node = node;
    return true;
}

/* How many entries come before the change to user space, and the first address behind it. */
static uint64_t kernel_part(const struct perfdata_sample *s, uint64_t *ret_user_ip)
{
    *ret_user_ip = 0;
    for (uint64_t i = 0; i < s->callchain_count; i++)
        if (s->callchain[i] == PERF_CONTEXT_USER) {
            if (i + 1 < s->callchain_count && !is_marker(s->callchain[i + 1]))
                *ret_user_ip = s->callchain[i + 1];
            return i;
        }
    return s->callchain_count;
}

static bool has_branch_chain(const struct perfdata_record *r)
{
    return r->sample.branch_count > 0 && r->event &&
           (r->event->attr.branch_sample_type & PERF_SAMPLE_BRANCH_CALL_STACK);
}

bool chain_is_plain(const struct perfdata_record *r)
{
    return !r->sample.user_stack_size && !has_branch_chain(r);
}

/* Of a chain as it came: in four lanes, since each step of one waits for the step before. */
static uint64_t hash_chain(const uint64_t *ips, size_t count)
{
    const uint64_t prime = 0x9e3779b97f4a7c15ULL;
    uint64_t lanes[4] = {1, 2, 3, count};
    for (; count >= 4; count -= 4, ips += 4)
        for (size_t i = 0; i < 4; i++) {
            lanes[i] = (lanes[i] ^ ips[i]) * prime;
            lanes[i] ^= lanes[i] >> 32;
        }
    for (size_t i = 0; i < count; i++) {
        lanes[i] = (lanes[i] ^ ips[i]) * prime;
        lanes[i] ^= lanes[i] >> 32;
    }
    return hash_mix(hash_mix(lanes[0], lanes[1]), hash_mix(lanes[2], lanes[3]));
}

static void keep_chain(struct chain_batch *batch, struct chain_sample *sample, const uint64_t *ips,
                       uint64_t count)
{
    /* The chain begins with the sampled address itself, in the mode of the sample. */
    if (count >= 2 && is_marker(ips[0]) && mode_of_marker(ips[0]) == sample->mode &&
        !is_marker(ips[1])) {
        ips += 2;
        count -= 2;
        sample->is_return = true;
    }
    if (!count)
        return;
    batch->ips =
        memory_grow(batch->ips, &batch->ip_capacity, batch->ip_count + count, sizeof(*batch->ips));
    memcpy(batch->ips + batch->ip_count, ips, count * sizeof(*ips));
    sample->ip_count = (uint32_t)count;
    batch->ip_count += count;
}

void chain_batch_add(struct chain_batch *batch, struct chain_builder *b,
                     const struct perfdata_record *r, const struct stack_sample *sample)
{
    const struct perfdata_sample *s = &r->sample;
    struct chain_sample *new = &batch->samples[batch->count++];
    *new = (struct chain_sample){.sample = *sample,
                                 .address = s->ip,
                                 .time_ns = r->time_ns,
                                 .pid = r->pid,
                                 .cpu = r->cpu,
                                 .mode = mode_of_misc(r->misc),
                                 .first_ip = batch->ip_count,
                                 .node = STACK_EMPTY};
    if (b->profile->options.no_callers)
        return;
    uint64_t count = s->callchain_count, user_ip;
    if (s->user_stack_size && push_unwound(b, r, new->mode, &new->node)) {
        count = kernel_part(s, &user_ip);
    } else if (has_branch_chain(r)) {
        count = kernel_part(s, &user_ip);
        new->node = push_branches(b, r, new->mode == 0 ? 0 : user_ip);
    }
    keep_chain(batch, new, s->callchain, count);
}

/* Asks the memory for what looking these up will read. */
static void ask_ahead(struct chain_builder *b, const struct chain_batch *batch, size_t from,
                      size_t to)
{
    for (size_t i = from; i < to; i++) {
        struct chain_sample *s = &batch->samples[i];
        s->generation = current_generation(b, s->pid);
        uint64_t generation = generation_for(b, s->generation, s->mode);
        __builtin_prefetch(cached_address(b, generation, s->address, s->mode));
        if (!s->ip_count)
            continue;
        s->hash = hash_chain(batch->ips + s->first_ip, s->ip_count) + s->is_return +
                  2 * (uint64_t)s->mode;
        __builtin_prefetch(cached_whole(b, row_key(b, s, s->hash)));
    }
}

static void keep_sample(struct profile *p, const struct chain_sample *s)
{
    const struct stack_sample *k = &s->sample;
    uint32_t node = stacks_push(&p->stacks, k->parent, k->location);
    stacks_add(&p->stacks, node, k->task, k->event, k->cpu, k->weight);
    ARRAY_PUSH(p->samples, p->sample_count, p->sample_capacity) = (struct profile_sample){
        .time_ns = s->time_ns,
        .weight = k->weight,
        .node = node,
        .task = k->task,
        .event = k->event,
        .cpu = s->cpu,
    };
}

/* The node of all callers of a sample.  Most chains were seen before as they are. */
static uint32_t find_callers(struct chain_builder *b, const struct chain_batch *batch,
                             const struct chain_sample *s)
{
    if (!s->ip_count)
        return s->node;
    uint64_t key = row_key(b, s, s->hash);
    struct callers_cache_entry *whole = cached_whole(b, key);
    if (whole->key == key && whole->node)
        return whole->node;
    b->entries = memory_grow(b->entries, &b->entry_capacity, s->ip_count, sizeof(*b->entries));
    size_t count =
        collect(batch->ips + s->first_ip, s->ip_count, s->mode, s->is_return, b->entries);
    hash_entries(b->entries, count);
    uint32_t node = push_entries(b, s, b->entries, count);
    *whole = (struct callers_cache_entry){key, node};
    return node;
}

static void take(struct chain_builder *b, const struct chain_batch *batch, struct chain_sample *s)
{
    struct profile *p = b->profile;
    s->sample.parent = find_callers(b, batch, s);
    s->sample.location = locate(b, s, s->address, s->mode);
    if (p->options.with_samples)
        keep_sample(p, s);
    else
        stacks_add_later(&p->stacks, &s->sample);
}

void chain_batch_take(struct chain_builder *b, struct chain_batch *batch)
{
    for (size_t from = 0; from < batch->count; from += CHAIN_AHEAD) {
        size_t to = from + CHAIN_AHEAD < batch->count ? from + CHAIN_AHEAD : batch->count;
        ask_ahead(b, batch, from, to);
        for (size_t i = from; i < to; i++)
            take(b, batch, &batch->samples[i]);
    }
    batch->count = batch->ip_count = 0;
}
