/* SPDX-License-Identifier: MIT */
/* The samples of profiled runs sorted into what caused them: see explain.h. */
#ifndef ASSAY_WHY_EXPLAIN_PARTS_H
#define ASSAY_WHY_EXPLAIN_PARTS_H

#include "base/arena.h"
#include "why/explain.h"
#include "why/explain_callers.h"
#include "why/explain_names.h"

enum part_kind {
    PART_FUNCTION, /* user code */
    PART_SYSCALL,
    PART_ENTRY, /* on the way into or out of some system call */
    PART_FAULTS,
    PART_INTERRUPTS,
    PART_KERNEL,
    PART_LOCK, /* waits: for a lock */
    PART_SLEEP,
    PART_STORAGE,
    PART_WAIT,   /* of another kind, in a system call */
    PART_PEERS,  /* for other threads or processes of the same command */
    PART_OTHERS, /* runnable while others had the CPU */
    PART_IDLE,   /* of a thread that nothing waits for meanwhile */
};

/* What memory a page fault was for, by what the kernel does. */
enum fault_kind { FAULT_ANONYMOUS, FAULT_FILE, FAULT_COPY, FAULT_SWAP, FAULT_KINDS };

struct part {
    enum part_kind kind;
    char *name;
    bool is_wait;
    bool is_own; /* a function of the program, not of the C library */
    double *weights[SIDE_COUNT], *samples[SIDE_COUNT]; /* one per run */
    struct callers
        callers; /* who is behind it: of the program, where it is the kernel or a library */
    struct callers sites; /* the lines where its nearest caller calls it, behind one node each */
    /* Of a function into which others are inlined whose change sits here: theirs. */
    struct part_inlined {
        char *name;
        double *weights[SIDE_COUNT], *samples[SIDE_COUNT];
    } * inlined;
    size_t inlined_count, inlined_capacity;
    char *with; /* "with g, which only the new one has": functions that count as part; or NULL */
    double faults[FAULT_KINDS][SIDE_COUNT]; /* weights of page faults, of all runs per run */
};

struct parts {
    struct part *items;
    size_t count, capacity;
    size_t run_counts[SIDE_COUNT];
    double *cpu_weights[SIDE_COUNT], *cpu_samples[SIDE_COUNT]; /* totals of each run */
    /* Samples in user code without a name, by binary: per run of their side. */
    struct part_nameless {
        char *dso;
        double weights[SIDE_COUNT];
    } * nameless;
    size_t nameless_count, nameless_capacity;
    /* CPU time by the program's function that wanted it, with all that it calls in libraries and
     * the kernel: a second cut through the same time. */
    struct callers owners;
    /* Waits of the program's own making in threads other than its first, per run. */
    double background[SIDE_COUNT];
    struct explain_names names;
    struct arena arena;
};

/* Functions of which a traced run tells what the profiles do not know of their waits, by their
 * names on one side. */
struct parts_waits {
    unsigned side;
    struct parts_waiter {
        char *function;
        bool is_timed; /* a timer ends them; else nothing waits for these threads meanwhile */
    } * items;
    size_t count, capacity;
};

/* The diff tells which functions are one; waits may be NULL. */
void parts_build(struct parts *p, const struct profile_loads *loads, const struct diff *diff,
                 const struct parts_waits *waits);
void parts_done(struct parts *p);
/* The part of a kind and name, made when it is not there; moves the parts. */
struct part *parts_find(struct parts *p, enum part_kind kind, const char *name, bool is_wait);

/* Waits: of the program's own making, for other threads or processes of the command, and time in
 * which others had the CPU. */
bool part_is_own_wait(const struct part *p);
bool part_is_peers(const struct part *p);
bool part_is_others(const struct part *p);
bool part_is_idle(const struct part *p);

/* The function of the program that waits, or runs, with this stack, with what is inlined into it;
 * NULL where it is not known. */
const char *part_function_of(const struct calls *calls, uint32_t node);

/*
 * Code that is inlined in several places is told where it changed: where the change of a function
 * sits in one of those into which it is inlined, it becomes that one's part.
 */
void parts_place(struct parts *p, const struct attribution *cpu);
/* Functions of one side only become part of the one that they were divided from. */
void parts_join_splits(struct parts *p, const struct attribution *cpu);
/* Who made a part change, in words: "func_b", "step, from func_b", "func_b (+7.0 ms) and func_c
 * (+3.1 ms)"; false when no caller stands out.  a is the attribution of the part's kind. */
bool part_callers(const struct part *part, const struct attribution *a, struct strbuf *out);
/* The one of several lines of a caller at which the part's change sits; NULL for none. */
const char *part_site(const struct part *part, const struct attribution *a);
/* The nearest caller that a part's change sits in; NULL for none. */
const char *part_caller(const struct part *part, const struct attribution *a);
/* The same, but the function that has the code of the call, whatever was inlined into it. */
const char *part_code_caller(const struct part *part, const struct attribution *a);
/* "in work inlined there"; false when nothing was inlined. */
bool part_inlined_words(const struct part *part, const struct attribution *a, struct strbuf *out);

/* The way into the kernel is shared out to the system calls by how often each was made ("": those
 * that no stack names, which keep it): counts per
 * side, by name; where none is known, by their time. */
struct syscall_count {
    char *name;
    double values[SIDE_COUNT]; /* per run */
};
void parts_share_entries(struct parts *p, const struct syscall_count *counts, size_t count);

/* The kernel's function of a system call as its name: "__x64_sys_pread64" -> "pread64"; else NULL.
 */
const char *part_syscall_name(const char *kernel_function);

#endif
