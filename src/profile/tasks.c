/* SPDX-License-Identifier: MIT */
/* Threads and their names: see tasks.h. */
#include "profile/tasks.h"

#include <stdio.h>
#include <string.h>

static uint64_t name_hash(const void *items, uint32_t id)
{
    return hash_string(((const char *const *)items)[id]);
}

static uint64_t task_hash(const void *items, uint32_t id)
{
    const struct profile_task *t = (const struct profile_task *)items + id;
    return hash_mix((uint64_t)t->pid << 32 | t->tid, t->comm);
}

static uint64_t thread_hash(const void *items, uint32_t id)
{
    return hash_mix(((const struct thread_state *)items)[id].tid, 1);
}

static uint64_t live_hash(const void *items, uint32_t id)
{
    return hash_mix(((const uint32_t *)items)[id], 2);
}

void names_init(struct names *n)
{
    *n = (struct names){0};
    idtable_init(&n->table, 6);
}

void names_done(struct names *n)
{
    free(n->items);
    idtable_done(&n->table);
}

uint32_t names_add(struct names *n, struct arena *arena, const char *text)
{
    uint32_t slot, id;
    IDTABLE_EACH(&n->table, hash_string(text), slot, id)
    if (strcmp(n->items[id], text) == 0)
        return id;
    id = (uint32_t)n->count;
    ARRAY_PUSH(n->items, n->count, n->capacity) = arena_strdup(arena, text);
    idtable_put(&n->table, slot, id);
    if (idtable_is_crowded(&n->table))
        idtable_grow(&n->table, name_hash, n->items);
    return id;
}

void tasks_init(struct tasks *t)
{
    *t = (struct tasks){0};
    names_init(&t->comms);
    idtable_init(&t->task_table, 6);
    idtable_init(&t->thread_table, 6);
    idtable_init(&t->live_table, 6);
    tasks_name(t, 0, 0, "swapper"); /* the idle thread of every processor */
}

void tasks_done(struct tasks *t)
{
    names_done(&t->comms);
    free(t->items);
    free(t->threads);
    free(t->live_counts);
    free(t->live_pids);
    free(t->ended);
    idtable_done(&t->task_table);
    idtable_done(&t->thread_table);
    idtable_done(&t->live_table);
    arena_done(&t->arena);
    *t = (struct tasks){0};
}

static uint32_t intern_task(struct tasks *t, uint32_t pid, uint32_t tid, uint32_t comm)
{
    uint32_t slot, id;
    IDTABLE_EACH(&t->task_table, hash_mix((uint64_t)pid << 32 | tid, comm), slot, id)
    {
        const struct profile_task *task = &t->items[id];
        if (task->pid == pid && task->tid == tid && task->comm == comm)
            return id;
    }
    id = (uint32_t)t->count;
    ARRAY_PUSH(t->items, t->count, t->capacity) = (struct profile_task){pid, tid, comm};
    idtable_put(&t->task_table, slot, id);
    if (idtable_is_crowded(&t->task_table))
        idtable_grow(&t->task_table, task_hash, t->items);
    return id;
}

static uint32_t *live_threads(struct tasks *t, uint32_t pid)
{
    uint32_t slot, id;
    IDTABLE_EACH(&t->live_table, hash_mix(pid, 2), slot, id)
    if (t->live_pids[id] == pid)
        return &t->live_counts[id];
    id = (uint32_t)t->live_count;
    t->live_pids =
        memory_grow(t->live_pids, &t->live_pid_capacity, t->live_count + 1, sizeof(*t->live_pids));
    t->live_pids[id] = pid;
    ARRAY_PUSH(t->live_counts, t->live_count, t->live_capacity) = 0;
    idtable_put(&t->live_table, slot, id);
    if (idtable_is_crowded(&t->live_table))
        idtable_grow(&t->live_table, live_hash, t->live_pids);
    return &t->live_counts[id];
}

static void set_alive(struct tasks *t, struct thread_state *thread, uint32_t pid)
{
    if (thread->is_alive && thread->pid == pid)
        return;
    if (thread->is_alive)
        --*live_threads(t, thread->pid);
    thread->is_alive = true;
    thread->pid = pid;
    ++*live_threads(t, pid);
}

static struct thread_state *find_thread(struct tasks *t, uint32_t pid, uint32_t tid)
{
    /* Samples of one thread come in rows. */
    if (t->last_thread < t->thread_count && t->threads[t->last_thread].tid == tid)
        return &t->threads[t->last_thread];
    uint32_t slot, id;
    IDTABLE_EACH(&t->thread_table, hash_mix(tid, 1), slot, id)
    if (t->threads[id].tid == tid) {
        t->last_thread = id;
        return &t->threads[id];
    }
    id = (uint32_t)t->thread_count;
    ARRAY_PUSH(t->threads, t->thread_count, t->thread_capacity) =
        (struct thread_state){.tid = tid, .pid = pid, .task = IDTABLE_NONE, .comm = IDTABLE_NONE};
    idtable_put(&t->thread_table, slot, id);
    if (idtable_is_crowded(&t->thread_table))
        idtable_grow(&t->thread_table, thread_hash, t->threads);
    return &t->threads[id];
}

uint32_t tasks_current(struct tasks *t, uint32_t pid, uint32_t tid)
{
    struct thread_state *thread = find_thread(t, pid, tid);
    if (thread->task != IDTABLE_NONE && t->items[thread->task].pid == pid)
        return thread->task;
    set_alive(t, thread, pid);
    if (thread->comm != IDTABLE_NONE)
        return thread->task = intern_task(t, pid, tid, thread->comm);
    char name[16];
    snprintf(name, sizeof(name), ":%u", tid);
    return thread->task = intern_task(t, pid, tid, names_add(&t->comms, &t->arena, name));
}

static void set_comm(struct tasks *t, struct thread_state *thread, uint32_t comm)
{
    /* A task that was made under the name ":TID" is renamed where it stands.  Its place in the
     * table is then wrong, which only means that an equal task can be there twice. */
    if (thread->comm == IDTABLE_NONE && thread->task != IDTABLE_NONE)
        t->items[thread->task].comm = comm;
    else
        thread->task = IDTABLE_NONE;
    thread->comm = comm;
}

void tasks_name(struct tasks *t, uint32_t pid, uint32_t tid, const char *comm)
{
    struct thread_state *thread = find_thread(t, pid, tid);
    set_alive(t, thread, pid);
    set_comm(t, thread, names_add(&t->comms, &t->arena, comm));
}

void tasks_fork(struct tasks *t, uint32_t pid, uint32_t tid, uint32_t parent_tid)
{
    uint32_t comm = find_thread(t, pid, parent_tid)->comm;
    struct thread_state *thread = find_thread(t, pid, tid);
    if (tid == parent_tid)
        return;
    set_alive(t, thread, pid);
    thread->task = IDTABLE_NONE; /* the number may have been another thread's before */
    thread->comm = comm;
}

static void count_end(struct tasks *t, uint32_t comm)
{
    size_t before = t->ended_capacity;
    t->ended = memory_grow(t->ended, &t->ended_capacity, comm + 1, sizeof(*t->ended));
    if (t->ended_capacity > before)
        memset(t->ended + before, 0, (t->ended_capacity - before) * sizeof(*t->ended));
    ++t->ended[comm];
}

bool tasks_exit(struct tasks *t, uint32_t pid, uint32_t tid)
{
    struct thread_state *thread = find_thread(t, pid, tid);
    if (!thread->is_alive)
        return false;
    uint32_t *live = live_threads(t, thread->pid);
    thread->is_alive = false;
    if (--*live > 0)
        return false;
    const struct thread_state *main_thread = find_thread(t, pid, pid);
    if (main_thread->comm != IDTABLE_NONE)
        count_end(t, main_thread->comm);
    return true;
}

uint64_t tasks_ended(const struct tasks *t, uint32_t comm)
{
    return comm < t->ended_capacity ? t->ended[comm] : 0;
}
