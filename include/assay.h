/* SPDX-License-Identifier: MIT */
/*
 * assay.h: benchmarks of functions, for `assay bench`.
 *
 *   #include <assay.h>
 *
 *   ASSAY_BENCH(parse_small)
 *   {
 *       char *text = load("small.json");
 *       ASSAY_LOOP { ASSAY_KEEP(parse(text)); }
 *       free(text);
 *   }
 *
 *   ASSAY_BENCH(sort_ints, ASSAY_RANGE(n, 64, 1 << 20, 4))
 *   {
 *       int *data = random_ints(n), *work = malloc(n * sizeof(int));
 *       ASSAY_LOOP_WITH(memcpy(work, data, n * sizeof(int))) { sort(work, n); }
 *       ASSAY_CHECK(is_sorted(work, n));
 *       ASSAY_ITEMS(n);
 *       free(data), free(work);
 *   }
 *
 *   ASSAY_MAIN
 *
 * Compile it as an executable, or without ASSAY_MAIN as a shared object, and run
 * `assay bench PROGRAM` or `assay bench OLD NEW`.  There is no library to link.  docs/BENCH.md is
 * the guide, also for other languages.
 *
 * How it works.  The program is a worker: `assay bench` starts it anew for every round and speaks
 * with it over two descriptors.  ASSAY_LOOP asks run->next() how many iterations to do: next()
 * takes the time of the batch that has ended, sends it to assay, and waits until assay wants
 * another.  So the set-up of a benchmark runs once for many samples, and two versions wait for each
 * other in the middle of their loops while assay lets them run in turn on one core.  All decisions
 * (how many iterations, how long to warm up, when it is enough) are assay's.
 *
 * C11 or C++17 with gcc or clang, on Linux.  The structures and the function pointers in them are
 * the binary interface: other languages fill in `struct assay_benchmark`, export the variable
 * `assay_registry`, and need nothing else from here.
 */
#ifndef ASSAY_H
#define ASSAY_H

#pragma GCC system_header /* strict programs need not be shown what a header does for them */

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the binary interface ---- */

#define ASSAY_ABI 1u
enum { ASSAY_VALUES_MAX = 32, ASSAY_PARAMETERS_MAX = 4, ASSAY_THREADS_MAX = 256 };

/* What a benchmark is given for one run.  Every thread of a run has its own. */
struct assay_run {
    /* How many iterations to do now; 0 when it is over.  The time from one call to the next is
     * what is measured. */
    uint64_t (*next)(struct assay_run *run);
    /* Leaves the time between the two out, within a batch. */
    void (*pause)(struct assay_run *run);
    void (*resume)(struct assay_run *run);
    /* A figure of this run: "items" and "bytes" are of one iteration, others as they are. */
    void (*report)(struct assay_run *run, const char *name, double value, const char *unit);
    /* Time is said to grow with n like "1", "log n", "n", "n log n", "n^2" or "n^3". */
    void (*grows)(struct assay_run *run, double n, const char *law);
    void (*fail)(struct assay_run *run, const char *reason);
    void (*skip)(struct assay_run *run, const char *reason);
    const int64_t *values; /* of the parameters, in the order of their declaration */
    uint32_t thread, thread_count;
};

enum assay_kind {
    ASSAY_KIND_LIST,   /* these values */
    ASSAY_KIND_RANGE,  /* low, high, factor: low, low × factor, … up to high */
    ASSAY_KIND_THREADS /* numbers of threads that all run the benchmark at once */
};

struct assay_parameter {
    const char *name;
    int32_t kind;
    uint32_t count;
    int64_t values[ASSAY_VALUES_MAX];
};

struct assay_benchmark {
    const char *name, *file;
    void (*run)(struct assay_run *run);
    uint32_t line, parameter_count;
    struct assay_parameter parameters[ASSAY_PARAMETERS_MAX];
};

/* All benchmarks of an executable or a shared object. */
struct assay_registry {
    uint32_t abi;  /* ASSAY_ABI */
    uint32_t size; /* of struct assay_benchmark */
    const struct assay_benchmark *const *first, *const *end;
};

/* ---- macros ---- */

/* The value of a parameter; an index into a pointer would be told to strict programs. */
static inline int64_t assay_value(const struct assay_run *run, uint32_t index)
{
    return run->values[index];
}

#define ASSAY_COUNT_(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, \
                     a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32,  \
                     count, ...)                                                                 \
    count
#define ASSAY_COUNT(...)                                                                          \
    ASSAY_COUNT_(__VA_ARGS__, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, \
                 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define ASSAY_JOIN_(a, b) a##b
#define ASSAY_JOIN(a, b) ASSAY_JOIN_(a, b)
#define ASSAY_TEXT_(a) #a
#define ASSAY_TEXT(a) ASSAY_TEXT_(a)

#define ASSAY_LIST(name, ...) (name, #name, ASSAY_KIND_LIST, __VA_ARGS__)
#define ASSAY_RANGE(name, low, high, factor) (name, #name, ASSAY_KIND_RANGE, low, high, factor)
#define ASSAY_THREADS(...) \
    (__attribute__((unused)) assay_threads, "threads", ASSAY_KIND_THREADS, __VA_ARGS__)

#define ASSAY_ARGUMENT_(name, ...) , int64_t name
#define ASSAY_PARAMETER_(name, text, kind, ...) \
    {                                           \
        text, kind, ASSAY_COUNT(__VA_ARGS__),   \
        {                                       \
            __VA_ARGS__                         \
        }                                       \
    }
#define ASSAY_ARGUMENT(spec) ASSAY_ARGUMENT_ spec
#define ASSAY_PARAMETER(spec) ASSAY_PARAMETER_ spec
#define ASSAY_NOTHING_            \
    {                             \
        NULL, ASSAY_KIND_LIST, 0, \
        {                         \
            0                     \
        }                         \
    }

#if defined(__has_attribute)
#if __has_attribute(retain)
#define ASSAY_SECTION_ __attribute__((section("assay_benchmarks"), used, retain))
#endif
#endif
/* Never timed: the compiler need not spend its time on it, which would be half of all it takes. */
#if defined(__clang__)
#define ASSAY_COLD_ __attribute__((cold))
#else
#define ASSAY_COLD_ __attribute__((cold, optimize("O0")))
#endif
/* What a worker keeps; assay itself has several in one process and makes it each thread's own. */
#ifndef ASSAY_STATE_
#define ASSAY_STATE_ static
#endif
#ifndef ASSAY_SECTION_
#define ASSAY_SECTION_ __attribute__((section("assay_benchmarks"), used))
#endif

#if defined(__cplusplus) && (defined(__cpp_exceptions) || defined(__EXCEPTIONS))
#define ASSAY_GUARDED_(call)                                   \
    try {                                                      \
        call;                                                  \
    } catch (...) {                                            \
        assay->fail(assay, "an exception left the benchmark"); \
    }
#else
#define ASSAY_GUARDED_(call) call;
#endif

#define ASSAY_DEFINE_(name, arguments, given, count, ...)                              \
    static void assay_body_##name arguments;                                           \
    static void assay_call_##name(struct assay_run *assay)                             \
    {                                                                                  \
        ASSAY_GUARDED_(assay_body_##name given)                                        \
    }                                                                                  \
    static const struct assay_benchmark assay_benchmark_##name = {                     \
        #name, __FILE__, assay_call_##name, (uint32_t)__LINE__, count, {__VA_ARGS__}}; \
    ASSAY_SECTION_ static const struct assay_benchmark *const assay_entry_##name =     \
        &assay_benchmark_##name;                                                       \
    static void assay_body_##name arguments

/* No argument is empty: strict compilers have a warning for that. */
#define ASSAY_BENCH_1(name) \
    ASSAY_DEFINE_(name, (struct assay_run * assay), (assay), 0, ASSAY_NOTHING_)
#define ASSAY_BENCH_2(name, p)                                        \
    ASSAY_DEFINE_(name, (struct assay_run * assay ASSAY_ARGUMENT(p)), \
                  (assay, assay_value(assay, 0)), 1, ASSAY_PARAMETER(p))
#define ASSAY_BENCH_3(name, p, q)                                                               \
    ASSAY_DEFINE_(name, (struct assay_run * assay ASSAY_ARGUMENT(p) ASSAY_ARGUMENT(q)),         \
                  (assay, assay_value(assay, 0), assay_value(assay, 1)), 2, ASSAY_PARAMETER(p), \
                  ASSAY_PARAMETER(q))
#define ASSAY_BENCH_4(name, p, q, r)                                                            \
    ASSAY_DEFINE_(                                                                              \
        name, (struct assay_run * assay ASSAY_ARGUMENT(p) ASSAY_ARGUMENT(q) ASSAY_ARGUMENT(r)), \
        (assay, assay_value(assay, 0), assay_value(assay, 1), assay_value(assay, 2)), 3,        \
        ASSAY_PARAMETER(p), ASSAY_PARAMETER(q), ASSAY_PARAMETER(r))
#define ASSAY_BENCH_5(name, p, q, r, s)                                                           \
    ASSAY_DEFINE_(name,                                                                           \
                  (struct assay_run * assay ASSAY_ARGUMENT(p) ASSAY_ARGUMENT(q) ASSAY_ARGUMENT(r) \
                                          ASSAY_ARGUMENT(s)),                                     \
                  (assay, assay_value(assay, 0), assay_value(assay, 1), assay_value(assay, 2),    \
                   assay_value(assay, 3)),                                                        \
                  4, ASSAY_PARAMETER(p), ASSAY_PARAMETER(q), ASSAY_PARAMETER(r),                  \
                  ASSAY_PARAMETER(s))

/* A benchmark: its name, then up to four of ASSAY_RANGE, ASSAY_LIST and ASSAY_THREADS.  The body
 * sees each parameter as an int64_t of its name. */
#define ASSAY_BENCH(...) ASSAY_JOIN(ASSAY_BENCH_, ASSAY_COUNT(__VA_ARGS__))(__VA_ARGS__)

/* The timed part; what stands before and after it is not timed.  One in each benchmark; neither
 * break, return nor goto may leave it. */
#define ASSAY_LOOP                                                  \
    for (uint64_t assay_left = assay->next(assay); assay_left != 0; \
         (void)((assay_left = assay_hide(assay_left) - 1) != 0 ||   \
                (assay_left = assay->next(assay)) != 0))

/* The same with an expression that is evaluated before each iteration and not timed.  Iterations
 * are then timed one by one, so they should take 1 µs or more. */
#define ASSAY_LOOP_WITH(...)                                                  \
    for (uint64_t assay_left = 0;                                             \
         (assay_left != 0 || (assay_left = assay->next(assay)) != 0) &&       \
         (assay->pause(assay), (void)(__VA_ARGS__), assay->resume(assay), 1); \
         assay_left = assay_hide(assay_left - 1))

/* The value counts as used, and memory as read and written: the compiler cannot leave out what
 * leads to it. */
#ifdef __cplusplus
}
template <typename T> inline void assay_keep(const T &value)
{
    __asm__ volatile("" : : "m"(value) : "memory");
}
#define ASSAY_KEEP(...) assay_keep((__VA_ARGS__))
extern "C" {
#else
#define ASSAY_KEEP(...)                                                  \
    do {                                                                 \
        __typeof__(((void)0, (__VA_ARGS__))) assay_kept = (__VA_ARGS__); \
        __asm__ volatile("" : : "m"(assay_kept) : "memory");             \
    } while (0)
#endif
/* All memory counts as read and written. */
#define ASSAY_CLOBBER() __asm__ volatile("" : : : "memory")

/* What one iteration does: shown as a rate. */
#define ASSAY_ITEMS(count) assay->report(assay, "items", (double)(count), "")
#define ASSAY_BYTES(count) assay->report(assay, "bytes", (double)(count), "")
/* A figure of the benchmark's own. */
#define ASSAY_COUNTER(name, value) assay->report(assay, name, (double)(value), "")
#define ASSAY_COUNTER_UNIT(name, value, unit) assay->report(assay, name, (double)(value), unit)
/* The law by which time grows with n: "1", "log n", "n", "n log n", "n^2", "n^3". */
#define ASSAY_COMPLEXITY(n, law) assay->grows(assay, (double)(n), law)
/* Leaves the benchmark out, before its loop. */
#define ASSAY_SKIP(reason)          \
    do {                            \
        assay->skip(assay, reason); \
        return;                     \
    } while (0)
/* The benchmark fails unless the condition holds. */
#define ASSAY_CHECK(...)                                                                          \
    ((__VA_ARGS__) ? (void)0                                                                      \
                   : assay->fail(assay, "wrong result: " #__VA_ARGS__ " does not hold (" __FILE__ \
                                        ":" ASSAY_TEXT(__LINE__) ")"))
/* Which thread this is, and of how many. */
#define ASSAY_THREAD (assay->thread)
#define ASSAY_THREAD_COUNT (assay->thread_count)

/* Once in an executable, at the end of one file. */
#define ASSAY_MAIN                     \
    int main(int argc, char **argv)    \
    {                                  \
        return assay_main(argc, argv); \
    }

/* The compiler cannot tell what became of the value. */
static inline uint64_t assay_hide(uint64_t value)
{
    __asm__ volatile("" : "+r"(value));
    return value;
}

/* ---- the registry of this executable or shared object ---- */

/* The linker makes these two. */
extern const struct assay_benchmark *const assay_first_[] __asm__("__start_assay_benchmarks")
    __attribute__((weak, visibility("hidden")));
extern const struct assay_benchmark *const assay_end_[] __asm__("__stop_assay_benchmarks")
    __attribute__((weak, visibility("hidden")));

extern struct assay_registry assay_registry;
__attribute__((weak, visibility("default"))) struct assay_registry assay_registry = {
    ASSAY_ABI, (uint32_t)sizeof(struct assay_benchmark), assay_first_, assay_end_};

/* ---- the worker: what follows speaks with assay, and is nothing to call ---- */

/* Functions of the C library under names of our own, so that they are there also under -std=c11 and
 * whatever was included before. */
struct assay_timespec {
    long s, ns;
};
struct assay_usage {
    long user_s, user_us, system_s, system_us, rss, shared, data, stack;
    long minor_faults, major_faults, swaps, in, out, sent, received, signals;
    long voluntary, involuntary;
};
extern int assay_c_clock(int clock, struct assay_timespec *ret) __asm__("clock_gettime");
extern int assay_c_usage(int who, struct assay_usage *ret) __asm__("getrusage");
extern int assay_c_cpu(void) __asm__("sched_getcpu");
extern int assay_c_yield(void) __asm__("sched_yield");
extern long assay_c_read(int fd, void *bytes, size_t size) __asm__("read");
extern long assay_c_write(int fd, const void *bytes, size_t size) __asm__("write");
extern int assay_c_exec(const char *file, char *const *argv) __asm__("execvp");
extern void *assay_c_symbol(void *handle, const char *name) __asm__("dlsym") __attribute__((weak));
extern int assay_c_create(void *thread, const void *attributes, void *(*run)(void *),
                          void *argument) __asm__("pthread_create") __attribute__((weak));
extern int assay_c_join(unsigned long thread, void **ret) __asm__("pthread_join")
    __attribute__((weak));
extern int assay_c_barrier(void *barrier, const void *attributes,
                           unsigned count) __asm__("pthread_barrier_init") __attribute__((weak));
extern int assay_c_wait(void *barrier) __asm__("pthread_barrier_wait") __attribute__((weak));

enum assay_phase { ASSAY_BEFORE, ASSAY_WARMING, ASSAY_TIMED, ASSAY_WAITING, ASSAY_OVER };
enum { ASSAY_LINE_MAX = 8192, ASSAY_COUNTERS_MAX = 4 };

struct assay_team; /* of threads */

/* One thread of a run. */
struct assay_member {
    struct assay_run run; /* first: next() and the others are given its address */
    struct assay_team *team;
    uint64_t batch, start_ns, end_ns, resumed_ns, kept_ns, pauses;
    unsigned long thread;
    int phase, stray; /* a call of next() after the end */
};

/* What was read of one sample besides its time. */
struct assay_reading {
    struct assay_usage usage;
    uint64_t cpu_ns, counters[ASSAY_COUNTERS_MAX];
    int cpu;
};

struct assay_team {
    const struct assay_benchmark *benchmark;
    struct assay_member *members;
    uint32_t count;
    int in, out, counter_count, counters[ASSAY_COUNTERS_MAX];
    uint64_t warm, timed, once; /* iterations; once: of a run without assay */
    uint64_t ready;             /* members that are about to start */
    int by_call, over, silent;
    int left; /* a member left its loop, or had none: it is over for all */
    struct assay_reading before;
    const uint64_t *allocated; /* calls and bytes, where they are counted; else NULL */
    uint64_t barrier[16];      /* room for a pthread_barrier_t */
    char line[ASSAY_LINE_MAX];
    size_t length, used;
};

static inline uint64_t assay_clock_ns(int clock)
{
    struct assay_timespec t;
    assay_c_clock(clock, &t);
    return (uint64_t)t.s * 1000000000u + (uint64_t)t.ns;
}

ASSAY_COLD_ static inline void assay_send(struct assay_team *t, const char *text)
{
    size_t length = strlen(text);
    while (length && !t->silent) {
        long sent = assay_c_write(t->out, text, length);
        if (sent < 0 && errno == EINTR) /* a timer of the benchmark's */
            continue;
        if (sent <= 0)
            exit(1); /* assay has gone */
        text += sent;
        length -= (size_t)sent;
    }
}

/* A word from the program: without line ends. */
ASSAY_COLD_ static inline void assay_send_text(struct assay_team *t, const char *kind,
                                               const char *text)
{
    char line[1024];
    (void)snprintf(line, sizeof(line), "%s %.900s\n", kind, text ? text : "");
    for (char *p = line; *p; p++)
        if ((*p == '\n' && p[1]) || *p == '\r')
            *p = ' ';
    assay_send(t, line);
}

/* The next line from assay, without its end.  The process ends when assay has gone. */
ASSAY_COLD_ static inline char *assay_receive(struct assay_team *t)
{
    memmove(t->line, t->line + t->used, t->length - t->used);
    t->length -= t->used;
    t->used = 0;
    for (;;) {
        char *end = (char *)memchr(t->line, '\n', t->length);
        if (end) {
            *end = '\0';
            t->used = (size_t)(end - t->line) + 1;
            return t->line;
        }
        long got = assay_c_read(t->in, t->line + t->length, sizeof(t->line) - t->length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            exit(got < 0 || t->length == sizeof(t->line));
        t->length += (size_t)got;
    }
}

ASSAY_COLD_ static inline void assay_look(const struct assay_team *t, struct assay_reading *ret)
{
    int many = t->count > 1;
    for (int i = 0; i < t->counter_count; i++)
        if (assay_c_read(t->counters[i], &ret->counters[i], sizeof(uint64_t)) != 8)
            ret->counters[i] = 0;
    for (int i = 0; i < 2 && t->allocated; i++)
        ret->counters[i] = t->allocated[i];
    assay_c_usage(many ? 0 : 1, &ret->usage);
    ret->cpu_ns = assay_clock_ns(many ? 2 : 3);
    ret->cpu = assay_c_cpu();
}

/* "s TIME CPU-TIME MINOR MAJOR VOLUNTARY INVOLUNTARY CPU CPU-BEFORE PAUSES COUNTERS…" */
ASSAY_COLD_ static inline void assay_send_sample(struct assay_team *t)
{
    struct assay_reading now;
    const struct assay_usage *a = &t->before.usage, *b = &now.usage;
    char line[512];
    uint64_t start = UINT64_MAX, end = 0;
    if (t->silent) /* a simulator would count more instructions for a time of more digits */
        return;
    assay_look(t, &now);
    for (uint32_t i = 0; i < t->count; i++) {
        start = t->members[i].start_ns < start ? t->members[i].start_ns : start;
        end = t->members[i].end_ns > end ? t->members[i].end_ns : end;
    }
    uint64_t ns = t->by_call ? t->members[0].kept_ns : end - start;
    int length =
        snprintf(line, sizeof(line), "s %llu %llu %ld %ld %ld %ld %d %d %llu",
                 (unsigned long long)ns, (unsigned long long)(now.cpu_ns - t->before.cpu_ns),
                 b->minor_faults - a->minor_faults, b->major_faults - a->major_faults,
                 b->voluntary - a->voluntary, b->involuntary - a->involuntary, now.cpu,
                 t->before.cpu, (unsigned long long)t->members[0].pauses);
    for (int i = 0; i < (t->allocated ? 2 : t->counter_count) && length > 0; i++)
        length += snprintf(line + length, sizeof(line) - (size_t)length, " %llu",
                           (unsigned long long)(now.counters[i] - t->before.counters[i]));
    assay_send(t, line);
    assay_send(t, "\n");
}

/* Waits for "g WARM TIMED" or "e". */
ASSAY_COLD_ static inline void assay_await(struct assay_team *t)
{
    char *line, *rest;
    t->warm = t->timed = 0;
    if (t->silent) {
        t->timed = t->once;
        t->once = 0;
        t->over = !t->timed;
        return;
    }
    line = assay_receive(t);
    if (line[0] == 'g') {
        t->warm = strtoull(line + 1, &rest, 10);
        t->timed = strtoull(rest, NULL, 10);
    }
    t->over = !t->timed;
}

static inline uint64_t assay_start(struct assay_member *m)
{
    struct assay_team *t = m->team;
    m->phase = ASSAY_TIMED;
    m->kept_ns = m->pauses = 0;
    if (m->run.thread == 0)
        assay_look(t, &t->before);
    if (t->count > 1) { /* all at once: those that are early wait for the last */
        __atomic_add_fetch(&t->ready, 1, __ATOMIC_ACQ_REL);
        while (__atomic_load_n(&t->ready, __ATOMIC_ACQUIRE) % t->count &&
               !__atomic_load_n(&t->left, __ATOMIC_ACQUIRE)) /* of assay_leave() */
            assay_c_yield();
    }
    m->start_ns = m->resumed_ns = assay_clock_ns(1);
    return m->batch = t->timed;
}

/* The first thread tells assay of the last batch and asks for the next; the others wait. */
ASSAY_COLD_ static inline void assay_confer(struct assay_member *m)
{
    struct assay_team *t = m->team;
    int was_timed = m->phase == ASSAY_TIMED;
    if (t->count > 1)
        assay_c_wait(t->barrier);
    if (m->run.thread == 0 && __atomic_load_n(&t->left, __ATOMIC_ACQUIRE)) {
        t->over = 1;
    } else if (m->run.thread == 0) {
        if (was_timed)
            assay_send_sample(t);
        else
            assay_send(t, "r\n");
        assay_await(t);
    }
    if (t->count > 1)
        assay_c_wait(t->barrier);
}

/* One of several threads returned before it was over (a skip, an exception, a break).  The others
 * come to the barriers of assay_confer() and find that it is over. */
ASSAY_COLD_ static inline void assay_leave(struct assay_member *m)
{
    struct assay_team *t = m->team;
    __atomic_store_n(&t->left, 1, __ATOMIC_RELEASE); /* for assay_start() and assay_confer() */
    assay_c_wait(t->barrier);
    if (m->run.thread == 0)
        t->over = 1;
    assay_c_wait(t->barrier);
}

static inline uint64_t assay_next(struct assay_run *run)
{
    struct assay_member *m = (struct assay_member *)(void *)run;
    uint64_t now = assay_clock_ns(1);
    if (m->phase == ASSAY_OVER) {
        m->stray = 1;
        return 0;
    }
    if (m->phase == ASSAY_WARMING)
        return assay_start(m);
    if (m->phase == ASSAY_TIMED) {
        m->end_ns = now;
        m->kept_ns += now - m->resumed_ns;
    }
    assay_confer(m);
    if (m->team->over) {
        m->phase = ASSAY_OVER;
        return 0;
    }
    if (!m->team->warm)
        return assay_start(m);
    m->phase = ASSAY_WARMING;
    return m->batch = m->team->warm;
}

static inline void assay_pause(struct assay_run *run)
{
    struct assay_member *m = (struct assay_member *)(void *)run;
    m->kept_ns += assay_clock_ns(1) - m->resumed_ns;
    m->pauses++;
    m->team->by_call = 1;
}

static inline void assay_resume(struct assay_run *run)
{
    struct assay_member *m = (struct assay_member *)(void *)run;
    m->resumed_ns = assay_clock_ns(1);
}

static inline struct assay_team *assay_first_of(struct assay_run *run)
{
    struct assay_member *m = (struct assay_member *)(void *)run;
    return run->thread ? NULL : m->team;
}

/* Whatever character a program's locale puts before a fraction, a full stop goes out. */
ASSAY_COLD_ static inline void assay_put_number(char *out, size_t size, double value)
{
    char *to = out;
    (void)snprintf(out, size, "%.17g", value);
    for (const char *at = out; *at; at++)
        if ((*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'z') || *at == '+' || *at == '-')
            *to++ = *at;
        else if (to == out || to[-1] != '.')
            *to++ = '.';
    *to = '\0';
}

ASSAY_COLD_ static inline void assay_report(struct assay_run *run, const char *name, double value,
                                            const char *unit)
{
    struct assay_team *t = assay_first_of(run);
    char line[512], number[64];
    assay_put_number(number, sizeof(number), value);
    (void)snprintf(line, sizeof(line), "%s %.220s\t%.100s", number, name, unit ? unit : "");
    if (t)
        assay_send_text(t, "v", line);
}

ASSAY_COLD_ static inline void assay_grows(struct assay_run *run, double n, const char *law)
{
    struct assay_team *t = assay_first_of(run);
    char line[256], number[64];
    assay_put_number(number, sizeof(number), n);
    (void)snprintf(line, sizeof(line), "%s %.100s", number, law ? law : "");
    if (t)
        assay_send_text(t, "c", line);
}

ASSAY_COLD_ static inline void assay_fail(struct assay_run *run, const char *reason)
{
    struct assay_member *m = (struct assay_member *)(void *)run;
    if (m->team->silent)
        (void)fprintf(stderr, "%s: %s\n", m->team->benchmark->name, reason);
    assay_send_text(m->team, "f", reason);
}

ASSAY_COLD_ static inline void assay_skip(struct assay_run *run, const char *reason)
{
    struct assay_member *m = (struct assay_member *)(void *)run;
    assay_send_text(m->team, "k", reason);
}

static inline void *assay_thread(void *argument)
{
    struct assay_member *m = (struct assay_member *)argument;
    m->team->benchmark->run(&m->run);
    if (m->team->count > 1 && m->phase != ASSAY_OVER)
        assay_leave(m);
    return NULL;
}

ASSAY_COLD_ static inline void assay_run_members(struct assay_team *t)
{
    assay_c_barrier(t->barrier, NULL, t->count);
    for (uint32_t i = 1; i < t->count; i++)
        if (assay_c_create(&t->members[i].thread, NULL, assay_thread, &t->members[i])) {
            assay_send_text(t, "x", "a thread could not be started");
            exit(1);
        }
    assay_thread(&t->members[0]);
    for (uint32_t i = 1; i < t->count; i++)
        assay_c_join(t->members[i].thread, NULL);
}

/* Deeper in the stack by as many bytes as told. */
ASSAY_COLD_ static inline void assay_run_deeper(struct assay_team *t, size_t stack_bytes)
{
    volatile char *room = (volatile char *)__builtin_alloca(stack_bytes + 16);
    room[0] = 1;
    if (t->count > 1)
        assay_run_members(t);
    else
        assay_thread(&t->members[0]);
    room[stack_bytes] = room[0];
}

/* "r BENCHMARK THREADS STACK HEAP VALUES…": calls the benchmark, which speaks from its loop. */
ASSAY_COLD_ static inline void assay_run_one(struct assay_team *t,
                                             const struct assay_registry *registry, char *words)
{
    ASSAY_STATE_ struct assay_member members[ASSAY_THREADS_MAX];
    int64_t values[ASSAY_PARAMETERS_MAX] = {0, 0, 0, 0};
    char end[16];
    int worst = 0;
    size_t known = registry->first ? (size_t)(registry->end - registry->first) : 0;
    size_t index = (size_t)strtoull(words, &words, 10);
    unsigned long long count = strtoull(words, &words, 10), stack = strtoull(words, &words, 10);
    unsigned long long heap = strtoull(words, &words, 10);
    const struct assay_run start = {assay_next,
                                    assay_pause,
                                    assay_resume,
                                    assay_report,
                                    assay_grows,
                                    assay_fail,
                                    assay_skip,
                                    values,
                                    0,
                                    1};
    for (size_t i = 0; i < ASSAY_PARAMETERS_MAX; i++)
        values[i] = strtoll(words, &words, 10);
    if (index >= known)
        exit(1);
    t->benchmark = registry->first[index];
    t->count = (uint32_t)(count < 1 ? 1 : count > ASSAY_THREADS_MAX ? ASSAY_THREADS_MAX : count);
    t->by_call = t->over = t->left = 0;
    t->ready = 0;
    t->members = members;
    memset(members, 0, sizeof(members));
    for (uint32_t i = 0; i < t->count; i++) {
        members[i].run = start;
        members[i].run.thread = i;
        members[i].run.thread_count = t->count;
        members[i].team = t;
    }
    if (t->count > 1 && (!assay_c_create || !assay_c_barrier)) {
        assay_send_text(t, "k", "it needs threads: link the program with -pthread");
        assay_send(t, "d 0\n");
        return;
    }
    void *volatile moved = malloc((size_t)heap + 1); /* never freed: what follows lies behind it */
    (void)moved;
    assay_run_deeper(t, (size_t)stack);
    for (uint32_t i = 0; i < t->count; i++) {
        int phase = members[i].phase;
        int how = members[i].stray ? 3 : phase == ASSAY_OVER ? 0 : phase == ASSAY_BEFORE ? 1 : 2;
        worst = how > worst ? how : worst;
    }
    (void)snprintf(end, sizeof(end), "d %d\n", worst);
    assay_send(t, end);
}

ASSAY_COLD_ static inline void assay_send_list(struct assay_team *t,
                                               const struct assay_registry *registry)
{
    size_t count = registry->first ? (size_t)(registry->end - registry->first) : 0;
    for (size_t i = 0; i < count; i++) {
        const struct assay_benchmark *b = registry->first[i];
        char line[512], number[48];
        (void)snprintf(line, sizeof(line), "%lu %.220s\t%.200s", (unsigned long)b->line,
                       b->name ? b->name : "", b->file ? b->file : "");
        assay_send_text(t, "b", line);
        for (uint32_t p = 0; p < b->parameter_count && p < ASSAY_PARAMETERS_MAX; p++) {
            const struct assay_parameter *a = &b->parameters[p];
            (void)snprintf(line, sizeof(line), "p %d %.220s\t", (int)a->kind,
                           a->name ? a->name : "");
            assay_send(t, line);
            for (uint32_t v = 0; v < a->count && v < ASSAY_VALUES_MAX; v++) {
                (void)snprintf(number, sizeof(number), v ? " %lld" : "%lld",
                               (long long)a->values[v]);
                assay_send(t, number);
            }
            assay_send(t, "\n");
        }
    }
    assay_send(t, ".\n");
}

static inline uint64_t assay_empty_next(struct assay_run *run)
{
    struct assay_member *m = (struct assay_member *)(void *)run;
    uint64_t now = assay_clock_ns(1);
    if (m->start_ns)
        m->end_ns = now;
    m->start_ns = m->start_ns ? m->start_ns : now;
    return m->end_ns ? 0 : m->batch;
}

/* In a function of its own, as in a benchmark: within another it is compiled with its code. */
__attribute__((noinline)) static void assay_empty(struct assay_run *assay)
{
    ASSAY_LOOP
    {
    }
}

/* "o LOOP CLOCK": what an empty iteration and a look at the clock cost, in picoseconds. */
static inline void assay_send_overhead(struct assay_team *t)
{
    ASSAY_STATE_ struct assay_member m;
    double loop = 1e9, clock = 1e9;
    char line[96];
    for (int i = 0; i < 5; i++) {
        memset(&m, 0, sizeof(m));
        m.run.next = assay_empty_next;
        m.batch = 100000;
        assay_empty(&m.run);
        double ns = (double)(m.end_ns - m.start_ns) / (double)m.batch;
        loop = ns < loop ? ns : loop;
        uint64_t start = assay_clock_ns(1);
        for (int k = 0; k < 1000; k++)
            assay_clock_ns(1);
        ns = (double)(assay_clock_ns(1) - start) / 1001;
        clock = ns < clock ? ns : clock;
    }
    (void)snprintf(line, sizeof(line), "o %.0f %.0f\n", loop * 1000, clock * 1000);
    assay_send(t, line);
}

/* Serves assay over two descriptors until they are closed: "l" list, "o" overhead, "r …" run. */
ASSAY_COLD_ static inline int assay_serve(const struct assay_registry *registry, int in, int out,
                                          const char *counters)
{
    ASSAY_STATE_ struct assay_team t;
    t.in = in;
    t.out = out;
    while (counters && *counters && t.counter_count < ASSAY_COUNTERS_MAX) {
        char *rest;
        t.counters[t.counter_count++] = (int)strtol(counters, &rest, 10);
        counters = *rest ? rest + 1 : rest;
    }
    if (getenv("ASSAY_ALLOCATIONS") && assay_c_symbol) {
        t.allocated = (const uint64_t *)assay_c_symbol(NULL, "assay_allocated");
        t.counter_count = 0;
    }
    assay_send(&t, "assay 1\n");
    for (;;) {
        char *line = assay_receive(&t);
        if (line[0] == 'l')
            assay_send_list(&t, registry);
        else if (line[0] == 'o')
            assay_send_overhead(&t);
        else if (line[0] == 'r')
            assay_run_one(&t, registry, line + 1);
    }
}

/* Runs one benchmark for a number of iterations and nothing else: "ITERATIONS BENCHMARK …". */
ASSAY_COLD_ static inline int assay_run_once(const struct assay_registry *registry,
                                             const char *text)
{
    static struct assay_team t;
    char *rest;
    t.silent = 1;
    t.once = strtoull(text, &rest, 10);
    assay_run_one(&t, registry, rest);
    return 0;
}

/* The main function of any registry. */
ASSAY_COLD_ static inline int assay_main_with(const struct assay_registry *registry, int argc,
                                              char **argv)
{
    const char *worker = getenv("ASSAY_WORKER"), *once = getenv("ASSAY_ONCE");
    if (worker && *worker) {
        char *rest;
        int in = (int)strtol(worker, &rest, 10);
        return assay_serve(registry, in, (int)strtol(rest + (*rest != 0), NULL, 10),
                           getenv("ASSAY_COUNTERS"));
    }
    if (once && *once)
        return assay_run_once(registry, once);
    char **words = (char **)calloc((size_t)argc + 3, sizeof(*words));
    static char name[] = "assay", verb[] = "bench";
    if (words) {
        words[0] = name;
        words[1] = verb;
        for (int i = 0; i < argc; i++)
            words[i + 2] = argv[i];
        assay_c_exec("assay", words);
    }
    (void)fprintf(stderr, "%s holds benchmarks: run 'assay bench %s'\n", argv[0], argv[0]);
    return 127;
}

/* For a main of your own: what ASSAY_MAIN does. */
ASSAY_COLD_ static inline int assay_main(int argc, char **argv)
{
    return assay_main_with(&assay_registry, argc, argv);
}

#ifdef __cplusplus
}
#endif

#endif
