/* SPDX-License-Identifier: MIT */
/*
 * What each thread of a command did at every moment: it ran, it could have run, or it waited, and
 * who ended the wait.
 *
 *   struct timeline t;
 *   timeline_init(&t);
 *   timeline_begin(&t, pid, "sh", start_ns);   the command's first thread, which waits for its
 * start for (each event, in the order of time) timeline_feed(&t, &event); timeline_finish(&t,
 * end_ns); … t.threads[i].pieces … timeline_done(&t);
 *
 * Events come from tracepoints (sched_switch and sched_waking of the whole machine, system calls of
 * the command) and from samples; timeline_read.h takes them out of a recording.  Nothing is known
 * here of files, kernels or names of functions, and no event is trusted: whatever comes, the pieces
 * of a thread follow each other without overlap.
 */
#ifndef ASSAY_TIMELINE_TIMELINE_H
#define ASSAY_TIMELINE_TIMELINE_H

#include "base/arena.h"
#include "profile/idtable.h"
#include "profile/tasks.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIMELINE_NONE UINT32_MAX

enum timeline_kind {
    TIMELINE_SWITCH, /* a CPU goes from one thread to another */
    TIMELINE_WAKING, /* somebody ends a thread's wait */
    TIMELINE_ENTER,  /* a thread of the command enters a system call */
    TIMELINE_LEAVE,  /* and goes back */
    TIMELINE_FORK,   /* a thread of the command made another */
    TIMELINE_NAME,   /* it has a new name, perhaps since it runs another program */
    TIMELINE_SAMPLE, /* it was seen at work */
    TIMELINE_STACK,  /* where it just left the CPU, for the wait that has begun */
};

#define TIMELINE_ARGS 6

struct timeline_event {
    enum timeline_kind kind;
    uint64_t time_ns;
    uint32_t cpu;
    uint32_t tid; /* that ran when it happened; 0 for the idle task */
    union {
        struct {
            uint32_t next;
            int64_t previous_state; /* as sched_switch has it */
            const char *previous_name, *next_name;
            uint32_t stack; /* where the previous one left, or TIMELINE_NONE */
        } change;
        struct {
            uint32_t target;
            uint64_t flags; /* common_flags: whether an interrupt did it, tracepoints/waking.h */
        } waking;
        struct {
            int64_t number;
            uint64_t args[TIMELINE_ARGS];
        } enter;
        struct {
            int64_t number, result;
        } leave;
        struct {
            uint32_t child_pid, child_tid;
        } fork;
        struct {
            const char *name;
            bool is_exec;
        } name;
        uint32_t stack; /* of TIMELINE_SAMPLE and TIMELINE_STACK */
    };
};

enum timeline_state { TIMELINE_RUNS, TIMELINE_READY, TIMELINE_WAITS };

/* Who ended a wait. */
enum timeline_waker {
    WAKER_THREAD,    /* a thread of the command */
    WAKER_OUTSIDE,   /* a thread of another program, or of the kernel */
    WAKER_INTERRUPT, /* a timer or a device */
    WAKER_UNSEEN,    /* it runs again, and no record tells why */
};

struct timeline_call {
    int64_t number, result;
    uint64_t args[TIMELINE_ARGS];
    uint64_t entered_ns;
    bool has_ended;
};

struct timeline_piece {
    uint64_t start_ns, end_ns;
    uint8_t state;      /* enum timeline_state */
    uint8_t waker_kind; /* of a wait: enum timeline_waker */
    bool was_preempted; /* READY: taken off the CPU, not woken */
    bool uninterrupted; /* WAITS: in the state D, as for disks */
    bool is_start;      /* a program is being started: see loading.c */
    uint32_t cpu;       /* RUNS: where; READY: where it runs next */
    uint32_t name;      /* of the program or thread then: in names */
    uint32_t call;      /* the system call that it is in, or TIMELINE_NONE: in calls */
    uint32_t stack;     /* RUNS outside of calls: of a sample; WAITS: where it left; or NONE */
    uint32_t waker;     /* WAITS: the thread (WAKER_THREAD), or the name (WAKER_OUTSIDE) */
};

struct timeline_thread {
    uint32_t pid, tid;
    uint32_t creator; /* the thread that made it; TIMELINE_NONE for the first */
    uint64_t made_ns; /* when it was made */
    struct timeline_piece *pieces;
    size_t piece_count, piece_capacity;

    /* While events come in: */
    bool is_here, has_ended;
    struct timeline_piece now; /* the piece that is not over yet */
    size_t unlabelled;         /* the first piece that waits for the next sample */
    uint32_t last_stack;       /* of the last sample under this name */
    uint8_t loading;           /* enum loading_phase of loading.c */
    uint64_t loaded_ns;        /* when the loader's last call so far ended */
};

/* Which thread a CPU ran, from a moment on. */
struct timeline_turn {
    uint64_t start_ns;
    uint32_t thread; /* of the command, or TIMELINE_NONE */
    uint32_t name;   /* of another; TIMELINE_NONE when the CPU was idle */
};

struct timeline_cpu {
    struct timeline_turn *turns;
    size_t turn_count, turn_capacity;
};

struct timeline {
    bool without_calls; /* no event tells of system calls: set by the caller, before the first */
    struct arena arena;
    struct names names;
    struct timeline_thread *threads;
    size_t thread_count, thread_capacity;
    struct idtable table; /* of threads by tid; the newest one of a tid counts */
    struct timeline_call *calls;
    size_t call_count, call_capacity;
    struct timeline_cpu *cpus;
    size_t cpu_count, cpu_capacity;
    uint64_t start_ns, end_ns; /* of the first thread */
    uint64_t piece_count;
    bool is_full;     /* more than TIMELINE_PIECES_MAX: what came later was left out */
    uint64_t unseen;  /* waits whose end no record tells */
    uint64_t strange; /* events that contradict what was known: records were lost */
};

#define TIMELINE_PIECES_MAX ((uint64_t)16 << 20)
#define TIMELINE_CPUS_MAX 4096

void timeline_init(struct timeline *t);
void timeline_done(struct timeline *t);
/* The first thread: it waits from start_ns on. */
void timeline_begin(struct timeline *t, uint32_t tid, const char *name, uint64_t start_ns);
void timeline_feed(struct timeline *t, const struct timeline_event *event);
/* Ends all pieces; the first thread's end is the end of all, or end_ns when it has none. */
void timeline_finish(struct timeline *t, uint64_t end_ns);

/* The thread has begun another program; then, each system call that it enters: they tell the
 * loader's work from the program's own.  For timeline.c. */
void timeline_begins_to_load(struct timeline_thread *thread);
void timeline_loads(struct timeline_thread *thread, int64_t call);

/* The piece of the thread that holds the moment just before time_ns: start < time <= end.
 * piece_count when there is none. */
size_t timeline_piece_before(const struct timeline_thread *thread, uint64_t time_ns);

/* Which turn of the CPU was under way at that time; turn_count for none. */
size_t timeline_turn_at(const struct timeline_cpu *cpu, uint64_t time_ns);

#endif
