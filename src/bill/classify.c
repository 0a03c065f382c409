/* SPDX-License-Identifier: MIT */
/*
 * To which item of the bill each piece of each thread belongs, and each step of the path.
 *
 * A piece says by itself what it is: a thread runs in a system call, in its own code at a sampled
 * place, or it waits somewhere in the kernel.  On the path a running piece can have a second
 * meaning: it keeps another thread waiting for a lock.  Then the time is the lock's.
 */
#include "base/memory.h"
#include "base/strings.h"
#include "bill/bill.h"
#include "monitors/syscall_names.h"

#include <linux/futex.h>
#include <stdio.h>
#include <sys/syscall.h>

/* An item as this run's numbers tell it; kept so that no text is made twice. */
struct known_item {
    uint32_t part, name, a, b;
    const char *file; /* that is waited for; NULL for none */
    uint32_t item;
};

struct classifier {
    struct bill *b;
    struct bill_run *run;
    size_t run_number;
    const struct files *files;
    struct place *places; /* by call node; those that were looked up */
    bool *place_is_known;
    struct known_item *known;
    size_t known_count, known_capacity;
    struct idtable table;
};

static uint64_t hash_known(const void *items, uint32_t id)
{
    const struct known_item *k = &((const struct known_item *)items)[id];
    return hash_mix(hash_mix(k->part, k->name), hash_mix(k->a, k->b));
}

/* The item of these numbers, if it was met before; else its slot. */
static uint32_t find_known(struct classifier *c, struct known_item key, uint32_t *ret_slot)
{
    uint32_t slot, id;
    IDTABLE_EACH(&c->table, hash_known(&key, 0), slot, id)
    {
        const struct known_item *k = &c->known[id];
        if (k->part == key.part && k->name == key.name && k->a == key.a && k->b == key.b &&
            k->file == key.file)
            return k->item;
    }
    *ret_slot = slot;
    return TIMELINE_NONE;
}

static uint32_t keep_known(struct classifier *c, struct known_item key, uint32_t slot)
{
    uint32_t id = (uint32_t)c->known_count;
    ARRAY_PUSH(c->known, c->known_count, c->known_capacity) = key;
    idtable_put(&c->table, slot, id);
    if (idtable_is_crowded(&c->table))
        idtable_grow(&c->table, hash_known, c->known);
    return key.item;
}

static const char *name_of(const struct classifier *c, uint32_t name)
{
    const struct names *names = &c->run->timeline.names;
    return name < names->count ? names->items[name] : "?";
}

static const struct place *place_of(struct classifier *c, uint32_t stack)
{
    static const struct place nowhere = {0};
    if (!c->run->profile || stack >= c->run->profile->calls.node_count)
        return &nowhere;
    if (!c->place_is_known[stack])
        place_find(&c->places[stack], c->run->profile, stack);
    c->place_is_known[stack] = true;
    return &c->places[stack];
}

static const char *call_name(int64_t number, char *buffer, size_t size)
{
    if (number >= 0 && (size_t)number < ARRAY_COUNT(syscall_names) && syscall_names[number])
        return syscall_names[number];
    snprintf(buffer, size, "system call %lld", (long long)number);
    return buffer;
}

static const struct timeline_call *call_of(const struct classifier *c,
                                           const struct timeline_piece *p)
{
    return p->call < c->run->timeline.call_count ? &c->run->timeline.calls[p->call] : NULL;
}

static bool is_exec(int64_t number)
{
    return number == SYS_execve || number == SYS_execveat;
}

static bool is_exit(int64_t number)
{
    return number == SYS_exit_group || number == SYS_exit;
}

/* By the call, where the kernel's functions are not known. */
static enum wait_kind kind_of_call(int64_t number, bool uninterrupted)
{
    switch (number) {
    case SYS_futex:
        return WAIT_LOCK;
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
        return WAIT_SLEEP;
    case SYS_wait4:
    case SYS_waitid:
        return WAIT_CHILD;
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_sync:
    case SYS_syncfs:
    case SYS_msync:
        return WAIT_STORAGE;
    case SYS_ppoll:
    case SYS_pselect6:
    case SYS_epoll_pwait:
#ifdef SYS_poll
    case SYS_poll:
    case SYS_select:
    case SYS_epoll_wait:
#endif
        return WAIT_POLL;
    case SYS_accept:
    case SYS_accept4:
    case SYS_connect:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_sendto:
    case SYS_sendmsg:
        return WAIT_NETWORK;
    default:
        return uninterrupted ? WAIT_STORAGE : WAIT_UNKNOWN;
    }
}

static enum wait_kind kind_of_wait(struct classifier *c, const struct timeline_piece *p)
{
    const struct timeline_call *call = call_of(c, p);
    enum wait_kind kind = place_of(c, p->stack)->wait;
    return kind ? kind : kind_of_call(call ? call->number : -1, p->uninterrupted);
}

/* Which part of the bill a wait is that no thread of the command ended. */
static enum bill_part part_of_wait(enum wait_kind kind, const struct timeline_piece *p,
                                   const struct timeline_call *call)
{
    bool by_nobody = p->waker_kind == WAKER_INTERRUPT || p->waker_kind == WAKER_UNSEEN;
    switch (kind) {
    case WAIT_STORAGE:
        return BILL_STORAGE;
    case WAIT_SLEEP:
        return BILL_SLEEP;
    case WAIT_KERNEL:
        return BILL_LOCK;
    case WAIT_LOCK:
        return by_nobody ? BILL_SLEEP : BILL_OUTSIDE;
    case WAIT_POLL:
        if (by_nobody && call && call->has_ended && call->result <= 0)
            return BILL_SLEEP; /* its time was up */
        return by_nobody ? BILL_NETWORK : BILL_OUTSIDE;
    case WAIT_NETWORK:
        return BILL_NETWORK;
    case WAIT_CHILD:
    case WAIT_PIPE:
    case WAIT_LOCAL:
    case WAIT_TERMINAL:
        return BILL_OUTSIDE;
    default:
        return p->waker_kind == WAKER_OUTSIDE ? BILL_OUTSIDE : BILL_UNKNOWN;
    }
}

/* The file that a thread waits for in a system call, as far as it was seen. */
static const char *file_of(const struct classifier *c, uint32_t thread,
                           const struct timeline_piece *p)
{
    const struct timeline_call *call = call_of(c, p);
    const struct timeline_thread *t = &c->run->timeline.threads[thread];
    if (!call || !files_has_descriptor(call->number) || call->args[0] > INT32_MAX)
        return NULL;
    return files_name(c->files, t->pid, t->tid, (uint32_t)call->args[0], p->start_ns, p->end_ns);
}

static uint32_t make_wait(struct classifier *c, enum bill_part part, const struct timeline_piece *p,
                          const char *file)
{
    char number[40], detail[400] = "", call_and_file[300];
    const struct timeline_call *call = call_of(c, p);
    const struct place *place = place_of(c, p->stack);
    const char *what = call              ? call_name(call->number, number, sizeof(number))
                       : place->call     ? place->call
                       : place->in_fault ? "page fault"
                                         : "kernel";
    if (file) {
        snprintf(call_and_file, sizeof(call_and_file), "%s of %s", what, file);
        what = call_and_file;
    }
    size_t length = 0;
    if (place->program_function)
        length = (size_t)snprintf(detail, sizeof(detail), "in %s", place->program_function);
    if (part == BILL_OUTSIDE && p->waker_kind == WAKER_OUTSIDE && p->waker != TIMELINE_NONE &&
        length < sizeof(detail))
        snprintf(detail + length, sizeof(detail) - length, "%sended by %s", length ? ", " : "",
                 name_of(c, p->waker));
    return bill_item(c->b, part, name_of(c, p->name), what, detail[0] ? detail : NULL);
}

static uint32_t item_of_wait(struct classifier *c, uint32_t thread, const struct timeline_piece *p)
{
    const struct timeline_call *call = call_of(c, p);
    enum bill_part part = part_of_wait(kind_of_wait(c, p), p, call);
    struct known_item key = {.part = part,
                             .name = p->name,
                             .a = call ? (uint32_t)call->number : TIMELINE_NONE,
                             .b = p->stack ^ (p->waker << 16),
                             .file = part == BILL_STORAGE ? file_of(c, thread, p) : NULL};
    uint32_t slot, item = find_known(c, key, &slot);
    if (item != TIMELINE_NONE)
        return item;
    key.item = make_wait(c, part, p, key.file);
    return keep_known(c, key, slot);
}

static uint32_t make_own(struct classifier *c, const struct timeline_piece *p)
{
    const struct place *place = place_of(c, p->stack);
    const char *who = name_of(c, p->name);
    char detail[400];
    if (p->stack == TIMELINE_NONE)
        return bill_item(c->b, BILL_USER, who, "code that was not sampled", NULL);
    if (place->in_exit)
        return bill_item(c->b, BILL_END, who, "exit", NULL);
    if (place->in_loader && c->run->timeline.without_calls)
        return bill_item(c->b, BILL_START, who, "exec and loader", NULL);
    if (place->call && !place->in_fault)
        return bill_item(c->b, BILL_CALL, who, place->call, NULL);
    if (place->in_kernel && !place->in_fault)
        return bill_item(c->b, BILL_INTERRUPT, who, "interrupts", NULL);
    const char *function = place->function ? place->function : "code without a name";
    snprintf(detail, sizeof(detail), "called by %s", place->caller ? place->caller : "");
    return bill_item(c->b, place->in_fault ? BILL_FAULT : BILL_USER, who, function,
                     place->caller && !place->in_fault ? detail : NULL);
}

static uint32_t item_of_running(struct classifier *c, const struct timeline_piece *p)
{
    const struct timeline_call *call = call_of(c, p);
    enum bill_part part = p->is_start || (call && is_exec(call->number)) ? BILL_START
                          : call && is_exit(call->number)                ? BILL_END
                          : call                                         ? BILL_CALL
                                                                         : BILL_USER;
    struct known_item key = {.part = part,
                             .name = p->name,
                             .a = call ? (uint32_t)call->number : TIMELINE_NONE,
                             .b = part == BILL_USER ? p->stack : 0};
    uint32_t slot, item = find_known(c, key, &slot);
    if (item != TIMELINE_NONE)
        return item;
    char number[40];
    const char *who = name_of(c, p->name);
    if (part == BILL_USER)
        key.item = make_own(c, p);
    else if (part == BILL_START)
        key.item = bill_item(c->b, part, who, "exec and loader", NULL);
    else if (part == BILL_END)
        key.item = bill_item(c->b, part, who, "exit", NULL);
    else
        key.item =
            bill_item(c->b, part, who, call_name(call->number, number, sizeof(number)), NULL);
    return keep_known(c, key, slot);
}

/* Who had the CPU instead. */
static uint32_t item_of_turn(struct classifier *c, const struct timeline_piece *p,
                             const struct timeline_turn *turn)
{
    struct known_item key = {
        .part = BILL_READY, .name = p->name, .a = TIMELINE_NONE, .b = TIMELINE_NONE};
    if (turn) {
        key.a = turn->thread != TIMELINE_NONE ? 0 : 1;
        key.b = turn->thread != TIMELINE_NONE ? 0 : turn->name;
    }
    uint32_t slot, item = find_known(c, key, &slot);
    if (item != TIMELINE_NONE)
        return item;
    const char *what = !turn                           ? "CPU not known"
                       : turn->thread != TIMELINE_NONE ? "own threads had the CPU"
                       : turn->name == TIMELINE_NONE   ? "waking up an idle CPU"
                                                       : "other programs had the CPU";
    const char *detail = turn && turn->thread == TIMELINE_NONE && turn->name != TIMELINE_NONE
                             ? name_of(c, turn->name)
                             : NULL;
    key.item = bill_item(c->b, BILL_READY, name_of(c, p->name), what, detail);
    return keep_known(c, key, slot);
}

/* The step's part of the time until the CPU's turn changes; the item of that part. */
static uint32_t item_of_ready(struct classifier *c, const struct timeline_piece *p, uint64_t at_ns,
                              uint64_t *ret_until_ns)
{
    const struct timeline *t = &c->run->timeline;
    *ret_until_ns = UINT64_MAX;
    if (p->cpu >= t->cpu_count)
        return item_of_turn(c, p, NULL);
    const struct timeline_cpu *cpu = &t->cpus[p->cpu];
    size_t turn = timeline_turn_at(cpu, at_ns);
    if (turn == cpu->turn_count)
        return item_of_turn(c, p, NULL);
    if (turn + 1 < cpu->turn_count)
        *ret_until_ns = cpu->turns[turn + 1].start_ns;
    return item_of_turn(c, p, &cpu->turns[turn]);
}

static bool is_lock(struct classifier *c, const struct timeline_piece *p);

/* A wait for a lock that a thread of the command held: the path never stays here, but what would be
 * without it can be asked. */
static uint32_t item_of_wanted(struct classifier *c, const struct timeline_piece *p)
{
    const struct place *wanted = place_of(c, p->stack);
    char what[300];
    snprintf(what, sizeof(what), "lock wanted in %s",
             wanted->program_function ? wanted->program_function : name_of(c, p->name));
    return bill_item(c->b, BILL_LOCK, name_of(c, p->name), what, NULL);
}

static uint32_t item_of(struct classifier *c, uint32_t thread, const struct timeline_piece *p,
                        bool is_first)
{
    uint64_t until_ns;
    if (p->state == TIMELINE_RUNS)
        return item_of_running(c, p);
    if (is_first || p->is_start)
        return bill_item(c->b, BILL_START, name_of(c, p->name), "exec and loader", NULL);
    if (p->state == TIMELINE_WAITS && p->waker_kind == WAKER_THREAD && is_lock(c, p))
        return item_of_wanted(c, p);
    return p->state == TIMELINE_WAITS ? item_of_wait(c, thread, p)
                                      : item_of_ready(c, p, p->start_ns, &until_ns);
}

/* Whether the wait is for a lock, as far as its arguments tell: the C library's and Rust's locks
 * wait while the word is 2, which says that somebody waits. */
static bool is_lock(struct classifier *c, const struct timeline_piece *p)
{
    enum wait_kind kind = kind_of_wait(c, p);
    const struct timeline_call *call = call_of(c, p);
    if (kind != WAIT_LOCK || !call || call->number != SYS_futex)
        return kind == WAIT_KERNEL || (kind == WAIT_LOCK && place_of(c, p->stack)->wants_lock);
    uint64_t operation = call->args[1] & FUTEX_CMD_MASK;
    return operation == FUTEX_LOCK_PI || (operation == FUTEX_WAIT && (uint32_t)call->args[2] == 2);
}

/* The item of a step that keeps a thread waiting for a lock. */
static uint32_t item_of_lock(struct classifier *c, const struct path_step *s, uint32_t own)
{
    const struct timeline *t = &c->run->timeline;
    const struct timeline_piece *wait = &t->threads[s->waiter].pieces[s->waiter_piece];
    const struct timeline_piece *p = &t->threads[s->thread].pieces[s->piece];
    const struct place *wanted = place_of(c, wait->stack);
    const struct bill_item *activity = &c->b->items[own];
    char what[300], detail[600];
    snprintf(what, sizeof(what), "lock wanted in %s",
             wanted->program_function ? wanted->program_function : name_of(c, wait->name));
    snprintf(detail, sizeof(detail), "held by %s, %s %s", name_of(c, p->name),
             activity->part == BILL_USER    ? "running"
             : activity->part == BILL_READY ? "ready:"
                                            : "in",
             activity->what);
    return bill_item(c->b, BILL_LOCK, name_of(c, wait->name), what, detail);
}

static void add(struct classifier *c, uint32_t item, uint64_t ns, double records)
{
    struct bill_item *i = &c->b->items[item];
    i->ns[c->run_number] += (double)ns;
    i->records[c->run_number] += records;
    c->run->records += records;
}

static uint32_t add_ready(struct classifier *c, const struct path_step *s,
                          const struct timeline_piece *p)
{
    uint32_t first = TIMELINE_NONE;
    for (uint64_t at = s->start_ns; at < s->end_ns;) {
        uint64_t until;
        uint32_t item = item_of_ready(c, p, at, &until);
        until = until > s->end_ns || until <= at ? s->end_ns : until;
        add(c, item, until - at, at == s->start_ns);
        first = first == TIMELINE_NONE ? item : first;
        at = until;
    }
    return first;
}

static uint32_t add_step(struct classifier *c, const struct path_step *s)
{
    const struct timeline_thread *thread = &c->run->timeline.threads[s->thread];
    uint64_t ns = s->end_ns - s->start_ns;
    if (s->piece == TIMELINE_NONE) {
        uint32_t item = bill_item(c->b, BILL_UNKNOWN, "?", "no record tells", NULL);
        add(c, item, ns, 0);
        return item;
    }
    const struct timeline_piece *p = &thread->pieces[s->piece];
    uint32_t item = c->run->items[s->thread][s->piece];
    bool keeps_lock = s->waiter != TIMELINE_NONE &&
                      is_lock(c, &c->run->timeline.threads[s->waiter].pieces[s->waiter_piece]);
    if (keeps_lock)
        item = item_of_lock(c, s, item);
    else if (p->state == TIMELINE_READY && c->b->items[item].part == BILL_READY)
        return add_ready(c, s, p);
    add(c, item, ns, 1);
    return item;
}

void bill_classify(struct bill *b, size_t run_number, const struct files *files)
{
    struct bill_run *run = &b->runs[run_number];
    size_t node_count = run->profile ? run->profile->calls.node_count : 0;
    struct classifier c = {.b = b,
                           .run = run,
                           .run_number = run_number,
                           .files = files,
                           .places = memory_zalloc(node_count + 1, sizeof(*c.places)),
                           .place_is_known = memory_zalloc(node_count + 1, 1)};
    idtable_init(&c.table, 10);
    run->items = memory_zalloc(run->timeline.thread_count + 1, sizeof(*run->items));
    for (size_t i = 0; i < run->timeline.thread_count; i++) {
        const struct timeline_thread *thread = &run->timeline.threads[i];
        run->items[i] = memory_zalloc(thread->piece_count + 1, sizeof(**run->items));
        for (size_t k = 0; k < thread->piece_count; k++)
            run->items[i][k] = item_of(&c, (uint32_t)i, &thread->pieces[k], i == 0 && k == 0);
    }
    run->step_items = memory_zalloc(run->path.count + 1, sizeof(*run->step_items));
    for (size_t i = 0; i < run->path.count; i++)
        run->step_items[i] = add_step(&c, &run->path.steps[i]);
    idtable_done(&c.table);
    free(c.known);
    free(c.places);
    free(c.place_is_known);
}
