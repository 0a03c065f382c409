/* SPDX-License-Identifier: MIT */
#include "explore.h"
#include "linear.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SIDES = EXPLORE_THREADS + 1, /* the threads, and the one that drains */
    /* A view: each side's clock, its count of operations, and then the places in memory. */
    CLOCKS = 0,
    FINISHED = SIDES,
    FIRST = 16,
    LOCATIONS = 240,
    VIEW = LOCATIONS,
    STORES = 100, /* of one location */
    LOG = 4096,
    STACK_BYTES = 16384,
    ARENA_BYTES = 32768,
    DEPTH = 4096,
    TABLE_BITS = 23,
    TABLE_BITS_SMALL = 20, /* quickly cleared: for searches that end soon */
    STATES_SMALL = 300000,
    RANDOM_STEPS = 2000,
    DRAIN_STEPS = 5000,
};
_Static_assert(VIEW % 16 == 0, "views are compared by whole words");

typedef uint8_t view[VIEW];

struct message {
    uint64_t value, hash;
    uint16_t location;
    view view;
};

enum pending {
    PENDING_START,
    PENDING_READ,
    PENDING_OTHER,
    PENDING_SLEEP,
    PENDING_STAGE,
    PENDING_DONE,
};

struct side {
    void *sp;
    enum pending pending;
    uint16_t location;         /* of a read, or what a sleeper looks at */
    uint64_t compare, history; /* a sleeper was woken, or the stage; what was read so far */
    bool yielded;              /* it waits for somebody: going on elsewhere is no interruption */
    bool may_reorder;          /* passed a light fence that was weakened */
    unsigned operation_count, call_count;
    view current, to_acquire, to_release;
};

/* Everything that is saved and gone back to, but for arena, stacks and log. */
struct state {
    struct side sides[SIDES];
    view common;                       /* of sequentially consistent fences */
    uint8_t read_at[LOCATIONS][SIDES]; /* each side's clock when it last read a location */
    uint8_t heap_block[LOCATIONS];
    bool freed[64];
    unsigned block_count;
    struct linear_operation operations[EXPLORE_OPERATIONS];
    unsigned operation_count, open_operation[SIDES];
    size_t arena_used;
    unsigned last, preemptions, stale_reads, stage;
    size_t log_length;
};

struct location {
    const void *address;
    uint64_t initial;
    uint16_t stores[STORES]; /* indexes in the log; before the first it is `initial` */
    unsigned count;
};

struct saved {
    struct state state;
    char *bytes;
    size_t bytes_used, bytes_size;
    size_t stack_used[SIDES];
};

static struct state now;
static struct location locations[LOCATIONS];
static unsigned location_count = FIRST, view_used;
static struct message messages[LOG];
static char stacks[SIDES][STACK_BYTES] __attribute__((aligned(64)));
static char arena[ARENA_BYTES] __attribute__((aligned(4096)));
static struct {
    const char *start, *end;
} blocks[64];
static struct saved saves[DEPTH];
static uint64_t *table;
static unsigned table_bits;
static const struct explore_scenario *scenario;
static struct explore_limits limits;
static struct explore_report *report;
static unsigned running; /* the side whose code runs; SIDES: setup */
static unsigned choice;  /* how many stores before the last one the pending read returns */
static void *scheduler_sp;
static struct explore_site *sites;
static uint64_t private_hash;

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = ((h ^ v) + 0x632be59bd9b4e019ull) * 0x9e3779b97f4a7c15ull;
    return h ^ h >> 32;
}

static uint64_t mix_bytes(uint64_t h, const void *bytes, size_t count)
{
    const char *p = bytes;
    for (; count >= 8; count -= 8, p += 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        h = mix(h, v);
    }
    for (; count; count--, p++)
        h = mix(h, (uint64_t)(unsigned char)*p);
    return h;
}

void explore_fail(const char *format, ...)
{
    if (report->failed)
        return;
    report->failed = true;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report->failure, sizeof(report->failure), format, arguments);
    va_end(arguments);
}

static void join(uint8_t *a, const uint8_t *b)
{
    for (unsigned at = 0; at < view_used; at += 16)
        for (unsigned i = at; i < at + 16; i++)
            a[i] = a[i] > b[i] ? a[i] : b[i];
}

/* Saves where it stands in *save and goes on where `load` stood. */
__attribute__((naked, noinline)) static void switch_stack(void **save, void *load)
{
    __asm__("push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
            "mov %rsp, (%rdi)\n"
            "mov %rsi, %rsp\n"
            "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
            "ret\n");
}

static uint64_t initial_value(const void *address)
{
    uint64_t value;
    /* Words of 4 bytes come with a neighbour that is cut off by their users. */
    memcpy(&value, address, 8);
    return value;
}

static unsigned location_of(const void *address)
{
    if ((const char *)address < arena || (const char *)address >= arena + now.arena_used) {
        explore_fail("a wild pointer was followed");
        address = arena + ARENA_BYTES - 64;
    }
    for (unsigned i = FIRST; i < location_count; i++)
        if (locations[i].address == address)
            return i;
    if (location_count == LOCATIONS) {
        fprintf(stderr, "explore: too many locations\n");
        abort();
    }
    locations[location_count] =
        (struct location){.address = address, .initial = initial_value(address)};
    view_used = (location_count + 1 + 15) / 16 * 16;
    return location_count++;
}

static uint64_t value_at(unsigned location, unsigned index)
{
    const struct location *l = &locations[location];
    return index ? messages[l->stores[index - 1]].value : l->initial;
}

/* Hands over to the scheduler until this step may be made. */
static void await_turn(enum pending pending, unsigned location)
{
    struct side *side = &now.sides[running];
    side->pending = pending;
    side->location = (uint16_t)location;
    switch_stack(&now.sides[running].sp, scheduler_sp);
}

static void note_site(struct explore_site *site)
{
    site->used = true;
    if (site->known)
        return;
    site->known = true;
    site->next = sites;
    sites = site;
}

static unsigned order_of(const struct explore_site *site)
{
    return site->order & ~site->weakened;
}

static void learn(uint64_t value)
{
    now.sides[running].history = mix(now.sides[running].history, value);
}

/* In a strong memory every step sees all that came before. */
static void strong_before(void)
{
    if (!limits.weak)
        join(now.sides[running].current, now.common);
}

static void strong_after(void)
{
    if (!limits.weak)
        join(now.common, now.sides[running].current);
}

/* Notes the access, so that a free or a plain write that is not ordered behind it is found. */
static void note_read(unsigned location)
{
    struct side *side = &now.sides[running];
    if (now.read_at[location][running] == side->current[CLOCKS + running] &&
        side->current[CLOCKS + running])
        return;
    now.read_at[location][running] = ++side->current[CLOCKS + running];
    if (now.read_at[location][running] == 255)
        explore_fail("explorer: too many reads");
}

static void check_alive(const void *address, unsigned location)
{
    if (!now.heap_block[location])
        for (unsigned b = 0; b < now.block_count; b++)
            if ((const char *)address >= blocks[b].start && (const char *)address < blocks[b].end)
                now.heap_block[location] = (uint8_t)(b + 1);
    unsigned block = now.heap_block[location];
    if (block && now.freed[block - 1])
        explore_fail("use after free");
    if (block)
        note_read(location);
}

static void append(unsigned location, uint64_t value, unsigned order, const uint8_t *continued)
{
    struct side *side = &now.sides[running];
    struct location *l = &locations[location];
    if (l->count == STORES || now.log_length == LOG) {
        explore_fail("explorer: too many stores");
        return;
    }
    struct message *m = &messages[now.log_length];
    m->value = value;
    m->location = (uint16_t)location;
    l->stores[l->count++] = (uint16_t)now.log_length++;
    side->current[location] = (uint8_t)l->count;
    memcpy(m->view, order & EXPLORE_release ? side->current : side->to_release, VIEW);
    m->view[location] = (uint8_t)l->count;
    if (continued)
        join(m->view, continued);
    m->hash = mix_bytes(mix(value, location), m->view, view_used);
}

/* The side has read that store. */
static void acquire_from(unsigned location, unsigned index, unsigned order)
{
    struct side *side = &now.sides[running];
    if (side->current[location] < index)
        side->current[location] = (uint8_t)index;
    if (!index)
        return;
    const struct message *m = &messages[locations[location].stores[index - 1]];
    join(order & EXPLORE_acquire ? side->current : side->to_acquire, m->view);
}

uint64_t explore_load(struct explore_site *site, const void *p)
{
    if (running == SIDES)
        return initial_value(p);
    note_site(site);
    unsigned location = location_of(p);
    await_turn(PENDING_READ, location);
    strong_before();
    check_alive(p, location);
    unsigned index = locations[location].count - choice;
    uint64_t value = value_at(location, index);
    acquire_from(location, index, order_of(site));
    strong_after();
    learn(value);
    return value;
}

void explore_store(struct explore_site *site, const void *p, uint64_t value)
{
    if (running == SIDES) {
        memcpy((void *)(uintptr_t)p, &value, 8);
        return;
    }
    note_site(site);
    unsigned location = location_of(p);
    await_turn(PENDING_OTHER, location);
    strong_before();
    check_alive(p, location);
    append(location, value, order_of(site), NULL);
    strong_after();
    learn(1);
}

uint64_t explore_rmw(struct explore_site *site, const void *p, enum explore_rmw kind,
                     uint64_t value, uint64_t mask)
{
    if (running == SIDES) {
        uint64_t setup_old = initial_value(p),
                 setup_new = kind == EXPLORE_ADD ? setup_old + value : value;
        memcpy((void *)(uintptr_t)p, &setup_new, 8);
        return setup_old;
    }
    note_site(site);
    unsigned location = location_of(p);
    await_turn(PENDING_OTHER, location);
    strong_before();
    check_alive(p, location);
    unsigned index = locations[location].count;
    uint64_t old = value_at(location, index);
    acquire_from(location, index, order_of(site));
    const uint8_t *continued = index ? messages[locations[location].stores[index - 1]].view : NULL;
    append(location, kind == EXPLORE_ADD ? (old + value) & mask : value, order_of(site), continued);
    strong_after();
    learn(old);
    return old;
}

bool explore_cas(struct explore_site *site, const void *p, uint64_t *expected, uint64_t value)
{
    if (running == SIDES) {
        uint64_t setup_old = initial_value(p);
        bool same = setup_old == *expected;
        if (same)
            memcpy((void *)(uintptr_t)p, &value, 8);
        *expected = setup_old;
        return same;
    }
    note_site(site);
    unsigned location = location_of(p);
    await_turn(PENDING_READ, location);
    strong_before();
    check_alive(p, location);
    unsigned index = locations[location].count - choice;
    uint64_t old = value_at(location, index);
    bool done = old == *expected && choice == 0;
    if (old == *expected && choice > 0) {
        /* An old value cannot be swapped; the last one is looked at instead. */
        index = locations[location].count;
        old = value_at(location, index);
        done = old == *expected;
    }
    acquire_from(location, index, done ? order_of(site) : EXPLORE_relaxed);
    const uint8_t *continued = index ? messages[locations[location].stores[index - 1]].view : NULL;
    if (done)
        append(location, value, order_of(site), continued);
    else
        *expected = old;
    strong_after();
    learn(mix(old, done));
    return done;
}

static void fence_now(struct side *side)
{
    join(side->current, side->to_acquire);
    join(side->current, now.common);
    memcpy(now.common, side->current, VIEW);
    memcpy(side->to_release, side->current, VIEW);
}

/*
 * A fence alone makes nothing happen before anything: who comes after it sees the stores that were
 * seen before an earlier one, but plain data that others have read is not ordered by that.  So the
 * clocks, by which reads are known, go with releases and acquires only.
 */
static void fence_without_clocks(struct side *side)
{
    uint8_t clocks[SIDES];
    join(side->current, side->to_acquire);
    memcpy(clocks, &side->current[CLOCKS], SIDES);
    join(side->current, now.common);
    memcpy(now.common, side->current, VIEW);
    memset(&now.common[CLOCKS], 0, SIDES);
    memcpy(&side->current[CLOCKS], clocks, SIDES);
    memcpy(side->to_release, side->current, VIEW);
}

void explore_fence(struct explore_site *site)
{
    if (running == SIDES)
        return;
    note_site(site);
    await_turn(PENDING_OTHER, 0);
    if (order_of(site) & EXPLORE_seq_cst) {
        if (limits.weak)
            fence_without_clocks(&now.sides[running]);
        else
            fence_now(&now.sides[running]);
    }
    learn(2);
}

/* The compiler's barrier alone does nothing here: what it forbids is that the heavy fence of
 * another falls between without being noticed. */
void explore_light(struct explore_site *site)
{
    if (running == SIDES)
        return;
    note_site(site);
    now.sides[running].may_reorder = !(order_of(site) & EXPLORE_seq_cst);
}

void explore_heavy(struct explore_site *site)
{
    if (running == SIDES)
        return;
    note_site(site);
    await_turn(PENDING_OTHER, 0);
    if (order_of(site) & EXPLORE_seq_cst) {
        for (unsigned round = 0; round < 2; round++)
            for (unsigned i = 0; i < SIDES; i++)
                if (!now.sides[i].may_reorder)
                    fence_now(&now.sides[i]);
    }
    learn(3);
}

uint64_t explore_read(const void *p)
{
    if (running == SIDES)
        return initial_value(p);
    unsigned location = location_of(p);
    strong_before();
    check_alive(p, location);
    if (now.sides[running].current[location] != locations[location].count)
        explore_fail("race: data is read that another thread wrote without order");
    note_read(location);
    uint64_t value = value_at(location, locations[location].count);
    strong_after();
    learn(value);
    return value;
}

static void check_written(unsigned location, const char *what)
{
    const struct side *side = &now.sides[running];
    if (side->current[location] != locations[location].count)
        explore_fail("race: %s while another thread writes", what);
    for (unsigned i = 0; i < SIDES; i++)
        if (i != running && now.read_at[location][i] > side->current[CLOCKS + i])
            explore_fail("race: %s while another thread reads", what);
}

void explore_write(const void *p, uint64_t value)
{
    if (running == SIDES) {
        memcpy((void *)(uintptr_t)p, &value, 8);
        return;
    }
    unsigned location = location_of(p);
    strong_before();
    check_alive(p, location);
    check_written(location, "data is written");
    append(location, value, EXPLORE_relaxed, NULL);
    strong_after();
}

void explore_pause(void)
{
    if (running == SIDES)
        return;
    now.sides[running].yielded = true;
    await_turn(PENDING_OTHER, 0);
    now.sides[running].yielded = false;
}

void explore_sleep(const uint32_t *p, uint32_t value)
{
    unsigned location = location_of(p);
    await_turn(PENDING_OTHER, location);
    strong_before();
    if ((uint32_t)value_at(location, locations[location].count) == value) {
        now.sides[running].compare = 0;
        await_turn(PENDING_SLEEP, location);
    }
    learn(4);
}

void explore_wake(const uint32_t *p, unsigned count)
{
    unsigned location = location_of(p);
    await_turn(PENDING_OTHER, location);
    for (unsigned i = 0; i < SIDES; i++) {
        struct side *s = &now.sides[i];
        if (count == 0 || s->pending != PENDING_SLEEP || s->location != location || s->compare)
            continue;
        s->compare = 1;
        count--;
    }
    learn(6);
}

void explore_reach(unsigned stage)
{
    now.stage = now.stage > stage ? now.stage : stage;
}

void explore_await(unsigned stage)
{
    now.sides[running].compare = stage;
    await_turn(PENDING_STAGE, 0);
    learn(5);
}

void explore_private(const void *memory, size_t bytes)
{
    private_hash = mix_bytes(private_hash, memory, bytes);
}

static uint64_t hash_privates(void)
{
    private_hash = 1;
    if (scenario->privates && running < EXPLORE_THREADS)
        scenario->privates(running);
    return private_hash;
}

uint64_t explore_enter(void)
{
    return running == SIDES ? 0 : now.sides[running].history;
}

void explore_again(uint64_t entry, uint64_t carried)
{
    if (running != SIDES)
        now.sides[running].history = mix(mix(entry, carried), hash_privates());
}

void *explore_alloc(size_t bytes)
{
    char *memory = arena + now.arena_used;
    now.arena_used += (bytes + 63) / 64 * 64;
    if (now.arena_used > ARENA_BYTES - 64) {
        fprintf(stderr, "explore: the arena is too small\n");
        abort();
    }
    return memory;
}

void *explore_alloc_heap(size_t bytes, bool zero)
{
    char *memory = explore_alloc(bytes);
    memset(memory, zero ? 0 : 0xa5, bytes);
    if (now.block_count == 64) {
        fprintf(stderr, "explore: too many blocks\n");
        abort();
    }
    /* The same block at the same place whichever way led here. */
    blocks[now.block_count].start = memory;
    blocks[now.block_count].end = memory + bytes;
    now.freed[now.block_count++] = false;
    return memory;
}

void explore_free_heap(void *memory)
{
    if (running == SIDES)
        return;
    for (unsigned b = 0; b < now.block_count; b++) {
        if (blocks[b].start != memory)
            continue;
        if (now.freed[b])
            explore_fail("freed twice");
        now.freed[b] = true;
        for (unsigned l = FIRST; l < location_count; l++)
            if ((const char *)locations[l].address >= blocks[b].start &&
                (const char *)locations[l].address < blocks[b].end)
                check_written(l, "memory is freed");
        return;
    }
    explore_fail("freed what was never allocated");
}

static void begin_operation(bool is_push, uint64_t value)
{
    struct side *side = &now.sides[running];
    if (now.operation_count == EXPLORE_OPERATIONS) {
        fprintf(stderr, "explore: too many operations\n");
        abort();
    }
    struct linear_operation *o = &now.operations[now.operation_count];
    now.open_operation[running] = now.operation_count++;
    *o = (struct linear_operation){
        .thread = running, .index = side->operation_count, .is_push = is_push, .value = value};
    memcpy(o->before, &side->current[FINISHED], SIDES);
    /* The number of calls, too: they may be for several operations, and for fewer than asked. */
    side->history = mix(mix(side->operation_count + 1, running), side->call_count);
    side->history = mix(side->history, hash_privates());
}

void explore_begin(bool is_push, uint64_t value)
{
    strong_before();
    now.sides[running].call_count++;
    begin_operation(is_push, value);
}

void explore_end(uint64_t result)
{
    struct side *side = &now.sides[running];
    struct linear_operation *o = &now.operations[now.open_operation[running]];
    o->failed = result == EXPLORE_EMPTY;
    if (!o->is_push)
        o->value = result;
    side->operation_count++;
    side->current[FINISHED + running]++;
    strong_after();
}

void explore_also(bool is_push, uint64_t value, uint64_t result)
{
    unsigned first = now.open_operation[running];
    begin_operation(is_push, value);
    memcpy(now.operations[now.open_operation[running]].before, now.operations[first].before, SIDES);
    explore_end(result);
}

struct explore_site *explore_sites(void)
{
    return sites;
}

void explore_forget_uses(void)
{
    for (struct explore_site *s = sites; s; s = s->next)
        s->used = false;
}

/* The search. */

static void side_main(void)
{
    await_turn(PENDING_START, 0);
    if (running == EXPLORE_THREADS)
        scenario->drain();
    else
        scenario->run(running);
    await_turn(PENDING_DONE, 0);
    abort();
}

static void resume(unsigned side)
{
    running = side;
    switch_stack(&scheduler_sp, now.sides[side].sp);
    running = SIDES;
}

static void start_side(unsigned side)
{
    void **top = (void **)(void *)(stacks[side] + STACK_BYTES - 64);
    *--top = NULL; /* keeps the stack aligned as after a call */
    *--top = (void *)(uintptr_t)side_main;
    top -= 6;
    memset(top, 0, 6 * sizeof(*top));
    now.sides[side].sp = top;
    resume(side);
}

static uint64_t hash_state(void)
{
    uint64_t h = mix(now.last, now.preemptions | now.stale_reads << 8 | now.stage << 16);
    for (unsigned i = 0; i < scenario->thread_count; i++) {
        const struct side *s = &now.sides[i];
        h = mix(mix(h, s->history ^ s->compare), (uint64_t)s->pending | s->location << 4 |
                                                     s->yielded << 16 |
                                                     (uint64_t)s->may_reorder << 17);
        h = mix_bytes(h, s->current, view_used);
        if (limits.weak) {
            h = mix_bytes(h, s->to_acquire, view_used);
            h = mix_bytes(h, s->to_release, view_used);
        }
    }
    for (unsigned l = FIRST; l < location_count; l++) {
        unsigned from = locations[l].count;
        for (unsigned i = 0; limits.weak && i < scenario->thread_count; i++)
            from = now.sides[i].current[l] < from ? now.sides[i].current[l] : from;
        h = mix(h, locations[l].count);
        for (unsigned i = from ? from : 1; i <= locations[l].count; i++)
            h = mix(h, limits.weak ? messages[locations[l].stores[i - 1]].hash
                                   : messages[locations[l].stores[i - 1]].value);
    }
    for (unsigned i = 0; i < now.operation_count; i++) {
        const struct linear_operation *o = &now.operations[i];
        /* The order in which operations were begun says nothing more; add up. */
        uint64_t one = mix(mix(o->thread * 64 + o->index, o->value), o->failed);
        h += mix_bytes(one, o->before, LINEAR_THREADS);
    }
    h = mix_bytes(h, now.freed, sizeof(now.freed));
    return h ? h : 1;
}

/* True when the state is new. */
static bool note_state(void)
{
    uint64_t h = hash_state(), slot = h >> (64 - table_bits);
    for (unsigned probe = 0; probe < 64; probe++) {
        uint64_t *entry = &table[(slot + probe) & ((1ULL << table_bits) - 1)];
        if (*entry == h)
            return false;
        if (!*entry) {
            *entry = h;
            report->states++;
            return true;
        }
    }
    report->states++;
    return true; /* the table is crowded: explored again, which costs time only */
}

static void save(struct saved *s)
{
    s->state = now;
    size_t needed = now.arena_used;
    for (unsigned i = 0; i < SIDES; i++) {
        s->stack_used[i] = (size_t)(stacks[i] + STACK_BYTES - (char *)now.sides[i].sp);
        needed += s->stack_used[i];
    }
    if (s->bytes_size < needed)
        s->bytes = realloc(s->bytes, s->bytes_size = needed + 4096);
    char *to = s->bytes;
    memcpy(to, arena, now.arena_used);
    to += now.arena_used;
    for (unsigned i = 0; i < SIDES; to += s->stack_used[i++])
        memcpy(to, now.sides[i].sp, s->stack_used[i]);
}

static void restore(const struct saved *s)
{
    while (now.log_length > s->state.log_length)
        locations[messages[--now.log_length].location].count--;
    size_t used_since = now.arena_used;
    now = s->state;
    const char *from = s->bytes;
    memcpy(arena, from, now.arena_used);
    if (used_since > now.arena_used)
        memset(arena + now.arena_used, 0, used_since - now.arena_used);
    from += now.arena_used;
    for (unsigned i = 0; i < SIDES; from += s->stack_used[i++])
        memcpy(now.sides[i].sp, from, s->stack_used[i]);
}

static bool enabled(unsigned side)
{
    const struct side *s = &now.sides[side];
    if (s->pending == PENDING_SLEEP)
        return s->compare > 0;
    if (s->pending == PENDING_STAGE)
        return now.stage >= s->compare;
    return s->pending != PENDING_DONE;
}

/*
 * In a strong memory the whole history must be that of a queue.  In a weak one, as on real machines
 * with their store buffers, a pop may find nothing while a push at the same time finds no room, and
 * no order explains both; so there each failed operation must fit by itself.
 */
static void check_history(void)
{
    bool good = limits.weak
                    ? linear_check_apart(now.operations, now.operation_count, scenario->capacity)
                    : linear_check(now.operations, now.operation_count, scenario->capacity);
    char text[400];
    if (!good)
        explore_fail("not the history of a queue:%s",
                     linear_describe(now.operations, now.operation_count, text, sizeof(text)));
}

/* All threads have ended: the rest is popped, and the history must be one of a queue. */
static void finish_execution(void)
{
    report->executions++;
    for (unsigned i = 0; i < scenario->thread_count; i++)
        if (now.sides[i].pending != PENDING_DONE) {
            explore_fail("a thread sleeps for ever");
            return;
        }
    if (scenario->drain) {
        unsigned d = EXPLORE_THREADS;
        for (unsigned i = 0; i < scenario->thread_count; i++)
            join(now.sides[d].current, now.sides[i].current);
        unsigned steps = 0;
        for (choice = 0; now.sides[d].pending != PENDING_DONE && !report->failed; steps++) {
            resume(d);
            if (steps > DRAIN_STEPS)
                explore_fail("a pop that runs alone does not end");
        }
    }
    if (!report->failed && now.operation_count)
        check_history();
}

/* The execution is longer than the explorer can note down, which says nothing of the code. */
static bool is_own_limit(void)
{
    if (strncmp(report->failure, "explorer:", 9) != 0)
        return false;
    report->failed = false;
    report->failure[0] = 0;
    return true;
}

static void search(unsigned depth);

static void try_step(unsigned side, unsigned depth, unsigned old_value)
{
    choice = old_value;
    now.stale_reads += old_value > 0;
    now.last = side;
    resume(side);
    if (report->failed && is_own_limit()) {
        report->complete = false;
        return;
    }
    if (!report->failed && note_state())
        search(depth + 1);
}

static void search(unsigned depth)
{
    if (depth == DEPTH || report->states > limits.states_max) {
        report->complete = false;
        return;
    }
    save(&saves[depth]);
    bool any = false, last_can = now.last < scenario->thread_count && enabled(now.last) &&
                                 !now.sides[now.last].yielded;
    for (unsigned k = 0; k < scenario->thread_count && !report->failed; k++) {
        /* The one that ran goes on first. */
        unsigned side = (k + (now.last < SIDES ? now.last : 0)) % scenario->thread_count;
        if (!enabled(side))
            continue;
        any = true;
        bool interrupts = last_can && side != now.last;
        if (interrupts && now.preemptions == limits.preemptions)
            continue;
        const struct side *s = &now.sides[side];
        unsigned reads = 1;
        if (limits.weak && s->pending == PENDING_READ && now.stale_reads < limits.stale_reads)
            reads = locations[s->location].count - s->current[s->location] + 1;
        for (unsigned old = 0; old < reads && !report->failed; old++) {
            now.preemptions += interrupts;
            try_step(side, depth, old);
            if (!report->failed)
                restore(&saves[depth]);
        }
    }
    if (!any) {
        finish_execution();
        if (report->failed && is_own_limit())
            report->complete = false;
        if (!report->failed)
            restore(&saves[depth]);
    }
}

static uint64_t random_below(uint64_t *seed, uint64_t bound)
{
    *seed = mix(*seed, 1);
    return (*seed >> 33) % bound;
}

/* One execution by chance: a side goes on `stay` times in a row or so, and one load in `fresh`
 * returns something old. */
static void random_execution(uint64_t *seed, unsigned stay, unsigned fresh)
{
    for (unsigned step = 0; step < RANDOM_STEPS && !report->failed; step++) {
        unsigned ready[SIDES], count = 0;
        for (unsigned i = 0; i < scenario->thread_count; i++)
            if (enabled(i))
                ready[count++] = i;
        if (count == 0) {
            finish_execution();
            return;
        }
        bool goes_on = now.last < scenario->thread_count && enabled(now.last) &&
                       !now.sides[now.last].yielded && random_below(seed, stay);
        unsigned side = goes_on ? now.last : ready[random_below(seed, count)];
        const struct side *s = &now.sides[side];
        unsigned olds = 0;
        if (limits.weak && s->pending == PENDING_READ && !random_below(seed, fresh))
            olds = locations[s->location].count - s->current[s->location];
        choice = olds ? (unsigned)random_below(seed, olds + 1) : 0;
        now.last = side;
        report->states++;
        resume(side);
    }
}

static void begin(const struct explore_scenario *s, const struct explore_limits *l,
                  struct explore_report *ret_report)
{
    memset(&now, 0, sizeof(now));
    memset(arena, 0, sizeof(arena));
    memset(locations, 0, sizeof(locations));
    location_count = FIRST;
    view_used = FIRST;
    *ret_report = (struct explore_report){.complete = true};
    report = ret_report;
    scenario = s;
    limits = *l;
    running = SIDES;
    now.last = SIDES;
    s->setup();
    for (unsigned i = 0; i < SIDES; i++)
        start_side(i);
}

void explore_run(const struct explore_scenario *s, const struct explore_limits *l,
                 struct explore_report *ret_report)
{
    if (!table)
        table = malloc(sizeof(*table) << TABLE_BITS);
    table_bits = l->states_max < STATES_SMALL ? TABLE_BITS_SMALL : TABLE_BITS;
    memset(table, 0, sizeof(*table) << table_bits);
    begin(s, l, ret_report);
    search(0);
}

void explore_random(const struct explore_scenario *s, const struct explore_limits *l,
                    unsigned executions, struct explore_report *ret_report)
{
    uint64_t seed = 1;
    begin(s, l, ret_report);
    save(&saves[0]);
    for (unsigned i = 0; i < executions && !report->failed; i++) {
        random_execution(&seed, 2u << i % 4, 1u << (i / 4) % 4);
        if (report->failed)
            is_own_limit();
        if (!report->failed)
            restore(&saves[0]);
    }
}
