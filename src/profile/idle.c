/* SPDX-License-Identifier: MIT */
/* Waits that tell nothing: see idle.h. */
#include "profile/idle.h"
#include "base/memory.h"

/* A thread that waits for work for less of its time than this is busy enough to be looked at. */
#define IDLE_SHARE 0.8

enum wait_class { WAIT_OTHER, WAIT_CHILD, WAIT_WORK };

/* Functions that a stack passes through, by what one waits for there. */
static const struct {
    const char *name;
    enum wait_class class;
} passed[] = {
    {"do_wait", WAIT_CHILD},
    {"kernel_wait4", WAIT_CHILD},
    {"pthread_join", WAIT_CHILD},
    {"__pthread_clockjoin_ex", WAIT_CHILD},
    {"std::thread::join", WAIT_CHILD},
    {"pthread_cond_wait", WAIT_WORK},
    {"pthread_cond_timedwait", WAIT_WORK},
    {"pthread_cond_clockwait", WAIT_WORK},
    {"___pthread_cond_wait", WAIT_WORK},
    {"__pthread_cond_wait_common", WAIT_WORK},
    {"sem_wait", WAIT_WORK},
    {"sem_timedwait", WAIT_WORK},
    {"do_epoll_wait", WAIT_WORK},
    {"do_sys_poll", WAIT_WORK},
    {"do_select", WAIT_WORK},
    {"inet_csk_accept", WAIT_WORK},
    {"unix_accept", WAIT_WORK},
    {"do_sigtimedwait", WAIT_WORK},
    {"io_cqring_wait", WAIT_WORK},
};

static enum wait_class class_of_name(const char *name)
{
    for (size_t i = 0; name && i < ARRAY_COUNT(passed); i++) {
        size_t length = strlen(passed[i].name);
        /* "pthread_cond_wait@@GLIBC_2.3.2", "std::thread::join()" */
        if (strncmp(name, passed[i].name, length) == 0 &&
            (!name[length] || name[length] == '@' || name[length] == '(' || name[length] == '.'))
            return passed[i].class;
    }
    return WAIT_OTHER;
}

/* The class of each node: that of the first function from its leaf that has one. */
static unsigned char *classify_nodes(const struct calls *calls)
{
    unsigned char *symbols = memory_zalloc(calls->symbol_count + 1, 1);
    unsigned char *nodes = memory_zalloc(calls->node_count + 1, 1);
    for (size_t i = 0; i < calls->symbol_count; i++)
        symbols[i] = (unsigned char)class_of_name(calls->symbols[i].name);
    for (size_t i = 1; i < calls->node_count; i++) { /* parents come first */
        unsigned char own = symbols[calls->frames[calls->nodes[i].frame].symbol];
        nodes[i] = own ? own : nodes[calls->nodes[i].parent];
    }
    free(symbols);
    return nodes;
}

/* Time of each task on and off the CPU, and of that waiting for work. */
struct task_time {
    double all, work;
};

static void add_times(const struct profile *p, const unsigned char *classes,
                      struct task_time *times)
{
    for (size_t i = 0; i < p->calls.cell_count; i++) {
        const struct call_cell *c = &p->calls.cells[i];
        const struct profile_event *e = &p->events[c->event];
        if (!e->is_time)
            continue;
        times[c->task].all += (double)c->weight;
        if (e->is_off_cpu && classes[c->node] == WAIT_WORK)
            times[c->task].work += (double)c->weight;
    }
}

static bool is_idle(const struct profile *p, const struct call_cell *c, unsigned char class,
                    const struct task_time *time)
{
    const struct profile_task *task = &p->tasks.items[c->task];
    bool is_worker = task->tid != task->pid;
    return class == WAIT_WORK && is_worker && time->work >= IDLE_SHARE * time->all;
}

void profile_leave_out_idle(struct profile *p)
{
    bool any = false;
    for (size_t i = 0; i < p->event_count; i++)
        any |= p->events[i].is_off_cpu && p->events[i].samples && p->events[i].has_callers;
    if (!any)
        return;
    unsigned char *classes = classify_nodes(&p->calls);
    struct task_time *times = memory_zalloc(p->tasks.count + 1, sizeof(*times));
    add_times(p, classes, times);
    size_t kept = 0;
    for (size_t i = 0; i < p->calls.cell_count; i++) {
        struct call_cell *c = &p->calls.cells[i];
        struct profile_event *e = &p->events[c->event];
        bool is_child = classes[c->node] == WAIT_CHILD;
        if (!e->is_off_cpu || (!is_child && !is_idle(p, c, classes[c->node], &times[c->task]))) {
            p->calls.cells[kept++] = *c;
            continue;
        }
        struct profile_idle *idle = is_child ? &p->idle.children : &p->idle.workers;
        idle->waits += c->samples;
        idle->ns += c->weight;
        e->samples -= c->samples;
        e->weight -= c->weight;
    }
    p->calls.cell_count = kept;
    free(times);
    free(classes);
}
