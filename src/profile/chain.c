/* SPDX-License-Identifier: MIT */
/*
 * From a sample to its node in the tree of stacks.
 *
 * A sample brings its instruction pointer and, leaf first, the return addresses that the kernel
 * found (frame pointers), the branches that the processor remembered (LBR), or the registers and
 * a copy of the stack to be unwound here.  In a long recording most rows of callers were seen
 * before, or differ in the innermost few only.
 */
#include "base/memory.h"
#include "profile/load.h"

#include <string.h>

#define ADDRESSES_SIZE (1u << CHAIN_ADDRESSES_LOG2)
#define CALLERS_SIZE (1u << CHAIN_CALLERS_LOG2)

void chain_init(struct chain_builder *b, struct profile *profile, struct processes *processes,
                const char *arch)
{
    *b = (struct chain_builder){.profile = profile, .processes = processes, .can_unwind = true};
    b->generation_count = b->kernel_generation = 1;
    idtable_init(&b->space_table, 6);
    b->addresses = memory_zalloc(ADDRESSES_SIZE, sizeof(*b->addresses));
    b->callers = memory_zalloc(CALLERS_SIZE, sizeof(*b->callers));
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
    free(b->entries);
    free(b->unwound);
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

static uint32_t locate(struct chain_builder *b, const struct perfdata_record *r,
                       uint64_t generation, uint64_t address, uint32_t flags)
{
    if (flags & STACK_KERNEL) /* the same for all processes */
        generation = b->kernel_generation;
    uint64_t hash = hash_mix(address + flags, generation);
    struct address_cache_entry *entry = &b->addresses[hash & (ADDRESSES_SIZE - 1)];
    if (entry->generation == generation && entry->address == address && entry->flags == flags)
        return entry->location;
    struct location found = {NULL, address};
    if (!(flags & STACK_GUEST) && !processes_find(b->processes, (pid_t)r->pid, flags & STACK_KERNEL,
                                                  address, r->time_ns, &found))
        found = (struct location){NULL, address};
    uint32_t location = stacks_location(&b->profile->stacks, found.module, found.address, flags);
    *entry = (struct address_cache_entry){generation, address, flags, location};
    return location;
}

/* Takes the addresses behind the sampled one apart, leaf first. */
static void collect(struct chain_builder *b, const uint64_t *ips, uint64_t count, uint32_t mode,
                    bool is_return)
{
    b->entry_count = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t ip = ips[i];
        if (is_marker(ip)) {
            mode = mode_of_marker(ip);
            is_return = false; /* where the mode changes stands the very next instruction */
            continue;
        }
        bool caller = is_return && ip;
        ARRAY_PUSH(b->entries, b->entry_count, b->entry_capacity) =
            (struct chain_entry){ip - caller, mode | (caller ? STACK_CALLER : 0), 0};
        is_return = true;
    }
}

static struct callers_cache_entry *cached_callers(struct chain_builder *b, uint64_t hash)
{
    return &b->callers[hash * 0x9e3779b97f4a7c15ULL >> (64 - CHAIN_CALLERS_LOG2)];
}

/*
 * The node of the collected entries below `node`, which is that of an unwound user part or the
 * empty one.  The longest row of callers that is remembered is taken as it is; only what is further
 * in is looked up frame by frame.
 */
static uint32_t push_entries(struct chain_builder *b, const struct perfdata_record *r,
                             uint64_t generation, uint32_t node)
{
    struct chain_entry *entries = b->entries;
    size_t count = b->entry_count;
    uint64_t hash = hash_mix(generation ^ b->kernel_generation << 32, node);
    for (size_t i = count; i-- > 0;) {
        hash = (hash ^ (entries[i].address + entries[i].flags)) * 0xd6e8feb86659fd93ULL;
        hash ^= hash >> 32;
        entries[i].hash = hash;
    }
    size_t rest = 0;
    for (; rest < count; rest++) {
        const struct callers_cache_entry *entry = cached_callers(b, entries[rest].hash);
        if (entry->hash == entries[rest].hash && entry->node) {
            node = entry->node;
            break;
        }
    }
    while (rest-- > 0) {
        uint32_t location = locate(b, r, generation, entries[rest].address, entries[rest].flags);
        node = stacks_push(&b->profile->stacks, node, location);
        *cached_callers(b, entries[rest].hash) =
            (struct callers_cache_entry){entries[rest].hash, node};
    }
    return node;
}

/* With LBR call stacks the user part of the chain comes from the branches: the address that the
 * kernel found first, then where each call still open came from. */
static uint32_t push_branches(struct chain_builder *b, const struct perfdata_record *r,
                              uint64_t generation, uint64_t user_ip)
{
    const struct perfdata_sample *s = &r->sample;
    b->entry_count = 0;
    if (user_ip)
        ARRAY_PUSH(b->entries, b->entry_count, b->entry_capacity) =
            (struct chain_entry){user_ip, 0, 0};
    for (uint64_t i = 0; i < s->branch_count; i++)
        ARRAY_PUSH(b->entries, b->entry_count, b->entry_capacity) =
            (struct chain_entry){s->branches[i].from, STACK_CALLER, 0};
    return push_entries(b, r, generation, STACK_EMPTY);
}

/* Unwinds the copied stack.  The frame that was sampled itself is left to the caller when the
 * sample was taken in user space.  False when there is nothing to unwind. */
static bool push_unwound(struct chain_builder *b, const struct perfdata_record *r, uint32_t mode,
                         uint32_t *ret_node)
{
    const struct perfdata_sample *s = &r->sample;
    struct unwind_registers registers;
    if (!b->can_unwind || !s->user_regs || !s->user_stack_size ||
        !unwind_registers_from_perf(&registers, b->arch, s->user_regs_abi, s->user_regs_mask,
                                    s->user_regs, (size_t)__builtin_popcountll(s->user_regs_mask)))
        return false;
    const struct addrspace *space = processes_space(b->processes, (pid_t)r->pid, r->time_ns);
    if (!space)
        return false;
    if (!b->unwound)
        b->unwound = memory_zalloc(CHAIN_UNWIND_MAX, sizeof(*b->unwound));
    enum unwind_end end = UNWIND_BROKEN;
    size_t count = unwind_user(space, &registers, s->user_stack, s->user_stack_size, b->unwound,
                               CHAIN_UNWIND_MAX, &end);
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

uint32_t chain_callers(struct chain_builder *b, const struct perfdata_record *r,
                       uint32_t *ret_location)
{
    const struct perfdata_sample *s = &r->sample;
    uint32_t mode = mode_of_misc(r->misc);
    uint64_t generation = current_generation(b, r->pid);
    uint32_t node = STACK_EMPTY;
    if (!b->profile->options.no_callers) {
        const uint64_t *ips = s->callchain;
        uint64_t count = s->callchain_count, user_ip;
        bool is_return = false;
        if (s->user_stack_size && push_unwound(b, r, mode, &node)) {
            count = kernel_part(s, &user_ip);
        } else if (has_branch_chain(r)) {
            count = kernel_part(s, &user_ip);
            node = push_branches(b, r, generation, mode == 0 ? 0 : user_ip);
        }
        /* The chain begins with the sampled address itself, in the mode of the sample. */
        if (count >= 2 && is_marker(ips[0]) && mode_of_marker(ips[0]) == mode &&
            !is_marker(ips[1])) {
            ips += 2;
            count -= 2;
            is_return = true;
        }
        collect(b, ips, count, mode, is_return);
        node = push_entries(b, r, generation, node);
    }
    *ret_location = locate(b, r, generation, s->ip, mode);
    return node;
}
