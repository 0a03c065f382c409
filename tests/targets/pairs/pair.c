/* SPDX-License-Identifier: MIT */
/*
 * Pairs of programs that differ in one known way, for `assay explain`: compiled with -DCASE=… once
 * without and once with -DNEW.  With an argument, the program prints how many milliseconds the
 * place took that differs: CPU time of the thread, or for waits time on the clock.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef NEW
#define IS_NEW 1
#define PICK(base, new) (new)
#else
#define IS_NEW 0
#define PICK(base, new) (base)
#endif
#define NOINLINE __attribute__((noinline, noclone))
#define INLINE static inline __attribute__((always_inline))
#define MS 240000L /* turns of the loop: about a millisecond */

#define INLINED 1
#define INLINED_LESS 2
#define FOLDED 3
#define SHARED 4
#define DEEP 5
#define REMOVED 6
#define RENAMED 7
#define RENAMED_ONLY 8
#define SLEEPS 9
#define LOCKS 10
#define FAULTS 11
#define CALLS 12
#define COPIES 13
#define SORTS 14
#define THREADS 15
#define CHILDREN 16
#define WAKES 17
#define FLUSHES 18
#define SAME 19
#define TWO 20
#define MOVED 21
#define READS 22
#define QUADRATIC 23
#define MISSES 24
#define CLONES 25
#define TAILS 26
#define EQUALS 27
#define OWN_NAMES 28

static volatile uint64_t sink;
static double took_ms; /* of the place that differs */

static double now_ms(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

#define TIMED(clock, statement)             \
    do {                                    \
        double from_ms = now_ms(clock);     \
        statement;                          \
        took_ms += now_ms(clock) - from_ms; \
    } while (0)
#define ON_CPU(statement) TIMED(CLOCK_THREAD_CPUTIME_ID, statement)
#define ON_CLOCK(statement) TIMED(CLOCK_MONOTONIC, statement)

INLINE uint64_t spin(long turns)
{
    uint64_t x = 88172645463325252ull + sink;
    for (long i = 0; i < turns; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    return x;
}

#if CASE == SHARED || CASE == DEEP || CASE == RENAMED_ONLY || CASE == MOVED
NOINLINE static uint64_t work(long turns)
{
    return spin(turns);
}
#else
INLINE uint64_t work(long turns)
{
    return spin(turns);
}
#endif

#if CASE == DEEP
NOINLINE static void step(long turns)
{
    sink += work(turns);
    sink += 101;
}
#else
INLINE void step(long turns)
{
    sink += work(turns);
}
#endif

#if CASE == FOLDED
#define PLACE static inline
#else
#define PLACE NOINLINE static
#endif

#if CASE == RENAMED || CASE == RENAMED_ONLY
#ifdef NEW
#define FUNC_B func_b_fresh
#else
#define FUNC_B func_b_old
#endif
#else
#define FUNC_B func_b
#endif

/* Each leaves a mark of its own: compilers make one function of equal ones. */
PLACE void func_a(long turns)
{
    step(turns);
    sink += 'a';
}

#if CASE == RENAMED || CASE == RENAMED_ONLY
/* A line more in one of them. */
#ifdef NEW
static uint64_t moves_the_lines_below(void)
{
    return 1;
}
#endif
#endif

PLACE void FUNC_B(long turns)
{
#if (CASE == RENAMED || CASE == RENAMED_ONLY) && defined(NEW)
    sink += moves_the_lines_below();
#endif
    step(turns);
    sink += 'b';
}

PLACE void func_c(long turns)
{
    step(turns);
    sink += 'c';
}

static void callers(void)
{
    long a = 30, b = 12, c = 8;
#if CASE == INLINED || CASE == SHARED || CASE == DEEP || CASE == FOLDED || CASE == RENAMED
    b = PICK(12, 30);
#elif CASE == INLINED_LESS
    b = PICK(24, 12);
#elif CASE == RENAMED_ONLY || CASE == MOVED
    c = PICK(8, 24);
#endif
    func_a(a * MS);
#if CASE == RENAMED_ONLY || CASE == MOVED
    FUNC_B(b * MS);
    ON_CPU(func_c(c * MS));
#else
    ON_CPU(FUNC_B(b * MS));
    func_c(c * MS);
#endif
}

NOINLINE static void extra_path(long turns)
{
    sink += work(turns);
    sink += 102;
}

static void removed(void)
{
    func_a(30 * MS);
    if (!IS_NEW)
        ON_CPU(extra_path(28 * MS));
    func_c(8 * MS);
}

NOINLINE static void pause_a_while(void)
{
    if (IS_NEW)
        nanosleep(&(struct timespec){.tv_nsec = 40000000}, NULL);
}

static void sleeps(void)
{
    func_a(10 * MS);
    ON_CLOCK(pause_a_while());
    func_c(10 * MS);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

NOINLINE static void hold_lock(long ns)
{
    pthread_mutex_lock(&lock);
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
    pthread_mutex_unlock(&lock);
}

static void *holder(void *context)
{
    (void)context;
    for (int i = 0; i < 15; i++) {
        hold_lock(PICK(100000, 3000000));
        usleep(200);
    }
    return NULL;
}

NOINLINE static void take_lock(void)
{
    pthread_mutex_lock(&lock);
    sink++;
    pthread_mutex_unlock(&lock);
}

static void locks(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, holder, NULL);
    for (int i = 0; i < 15; i++) {
        step(MS / 2);
        ON_CLOCK(take_lock());
    }
    pthread_join(thread, NULL);
}

NOINLINE static void touch_pages(size_t bytes)
{
    char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(p, bytes, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < bytes; i += 4096)
        p[i] = 1;
}

static void faults(void)
{
    func_a(20 * MS);
    ON_CPU(touch_pages(PICK(1u << 20, 48u << 20)));
}

NOINLINE static void ask_often(long count)
{
    for (long i = 0; i < count; i++)
        sink += (uint64_t)syscall(SYS_getppid);
}

static void calls(void)
{
    func_a(20 * MS);
    ON_CPU(ask_often(PICK(2000, 80000)));
}

NOINLINE static void copy_blocks(long count)
{
    static char from[1 << 16], to[1 << 16];
    for (long i = 0; i < count; i++) {
        from[i & 0xffff]++;
        memcpy(to, from, sizeof(to));
        sink += (uint64_t)to[i & 0xffff];
    }
}

NOINLINE static void copy_more(void)
{
    copy_blocks(PICK(2000, 12000));
    sink++;
}

NOINLINE static void copy_same(void)
{
    copy_blocks(4000);
    sink++;
}

static void copies(void)
{
    func_a(10 * MS);
    copy_same();
    ON_CPU(copy_more());
}

static int compare(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return x < y ? -1 : x > y;
}

NOINLINE static void sort_all(size_t count)
{
    static int values[1 << 18];
    uint32_t x = 1;
    for (size_t i = 0; i < count; i++)
        values[i] = (int)(x = x * 1664525 + 1013904223);
    qsort(values, count, sizeof(*values), compare);
    sink += (uint64_t)values[0];
}

static void sorts(void)
{
    func_a(20 * MS);
    ON_CPU(sort_all(PICK(1u << 16, 1u << 18)));
}

NOINLINE static void thread_job(long turns)
{
    sink += work(turns);
    sink += 103;
}

static void *worker(void *context)
{
    thread_job((long)context);
    return NULL;
}

static void threads(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, worker, (void *)(PICK(10, 30) * MS));
    func_a(10 * MS);
    ON_CLOCK(pthread_join(thread, NULL));
}

NOINLINE static void child_job(long turns)
{
    sink += work(turns);
    sink += 104;
}

static void children(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        child_job(PICK(10, 30) * MS);
        _exit(0);
    }
    func_a(10 * MS);
    waitpid(pid, NULL, 0);
}

NOINLINE static void *slow_server(void *context)
{
    int *fds = context;
    char byte = 0;
    for (int i = 0; i < 10; i++) {
        if (read(fds[0], &byte, 1) != 1)
            break;
        usleep(PICK(100, 3000));
        if (write(fds[3], &byte, 1) != 1)
            break;
    }
    return NULL;
}

static void wakes(void)
{
    int fds[4];
    char byte = 1;
    pthread_t thread;
    if (pipe(fds) < 0 || pipe(fds + 2) < 0)
        exit(1);
    pthread_create(&thread, NULL, slow_server, fds);
    for (int i = 0; i < 10; i++) {
        func_a(MS);
        if (write(fds[1], &byte, 1) != 1 || read(fds[2], &byte, 1) != 1)
            exit(1);
    }
    pthread_join(thread, NULL);
}

NOINLINE static void save_state(int fd, int count)
{
    static char block[4096];
    for (int i = 0; i < count; i++)
        if (pwrite(fd, block, sizeof(block), 0) < 0 || fsync(fd) < 0)
            exit(1);
}

static void flushes(void)
{
    char name[] = "/var/tmp/pair-XXXXXX";
    int fd = mkstemp(name);
    if (fd < 0)
        exit(1);
    unlink(name);
    func_a(10 * MS);
    ON_CLOCK(save_state(fd, PICK(1, 20)));
    close(fd);
}

static void same(void)
{
    func_a(20 * MS);
    func_c(20 * MS);
}

NOINLINE static void two_more(long turns)
{
    sink += work(turns);
    sink += 105;
}

static void two(void)
{
    func_a(PICK(30, 14) * MS); /* one faster, one slower: +12 in all */
    ON_CPU(two_more(PICK(4, 32) * MS));
}

NOINLINE static void read_in_pieces(size_t piece)
{
    static char buffer[1 << 16];
    int fd = open("/dev/zero", O_RDONLY);
    for (size_t left = 48u << 20; left; left -= piece)
        if (read(fd, buffer, piece) != (ssize_t)piece)
            exit(1);
    close(fd);
}

static void reads(void)
{
    func_a(20 * MS);
    ON_CPU(read_in_pieces(PICK(1u << 16, 512)));
}

/* Whether each value was seen before: by a table, or by looking at all that were. */
NOINLINE static void find_all(unsigned count)
{
    static uint32_t values[1 << 13];
    static uint8_t seen[1 << 16];
    uint32_t x = 1;
    for (unsigned i = 0; i < count; i++) {
        values[i] = (x = x * 1664525 + 1013904223) >> 16;
#ifdef NEW
        for (unsigned k = 0; k < i; k++)
            sink += values[k] == values[i];
#else
        sink += seen[values[i]]++;
#endif
    }
    sink += seen[0];
}

static void quadratic(void)
{
    func_a(20 * MS);
    ON_CPU(find_all(6000));
    func_c(5 * MS);
}

/* The same number of steps through a list, from neighbour to neighbour or all over the memory. */
NOINLINE static void walk_list(const uint32_t *next, long steps)
{
    uint32_t at = 0;
    for (long i = 0; i < steps; i++)
        at = next[at];
    sink += at;
}

static void misses(void)
{
    enum { COUNT = 1 << 22 };
    uint32_t *next = malloc(COUNT * sizeof(*next));
    for (uint32_t i = 0; next && i < COUNT; i++)
        next[i] = (i * PICK(1u, 2654435761u) + 12345) & (COUNT - 1);
    func_a(10 * MS);
    if (next)
        ON_CPU(walk_list(next, PICK(2000000, 400000)));
    free(next);
}

/* Cut into pieces and copied for constants: .constprop.0, .part.0, .isra.0, .cold. */
__attribute__((noinline)) static void cloned(long turns, int mode, const long *scale)
{
    if (__builtin_expect(mode < 0, 0)) {
        fprintf(stderr, "%ld\n", turns);
        abort();
    }
    sink += spin(turns * *scale) + (uint64_t)mode;
}

static void clones(void)
{
    static const long scale = MS;
    func_a(20 * MS);
    ON_CPU(cloned(PICK(6, 26), 3, &scale));
    cloned(4, 3, &scale);
}

/* Called last, so that a jump does and the caller leaves no frame. */
NOINLINE static void last_work(long turns, int mark)
{
    sink += spin(turns);
    sink += (uint64_t)mark;
}

NOINLINE static void tail_a(long turns)
{
    last_work(turns, 'a');
}

NOINLINE static void tail_b(long turns)
{
    last_work(turns, 'b');
}

NOINLINE static void tail_c(long turns)
{
    last_work(turns, 'c');
}

static void tails(void)
{
    tail_a(30 * MS);
    ON_CPU(tail_b(PICK(12, 30) * MS));
    tail_c(8 * MS);
}

/* One of them becomes equal to another, so that the compiler keeps the code of one. */
INLINE uint64_t turn(long turns)
{
    uint64_t x = 88172645463325252ull + sink;
    for (long i = 0; i < turns; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    return x;
}

#define EQUAL(function, count)                    \
    __attribute__((noinline)) void function(void) \
    {                                             \
        for (int i = 0; i < (count); i++)         \
            sink += turn(MS);                     \
    }

EQUAL(equal_a, 30)
EQUAL(equal_b, PICK(12, 30))
EQUAL(equal_c, 8)

static void equals(void)
{
    equal_a();
    ON_CPU(equal_b());
    equal_c();
}

/* Functions of the program that are called like the library's. */
NOINLINE static void poll_and_sleep(void)
{
    if (IS_NEW)
        usleep(20000);
}

NOINLINE static void mmap_clone(long turns)
{
    sink += spin(turns);
    sink += 106;
}

static void own_names(void)
{
    func_a(10 * MS);
    poll_and_sleep();
    ON_CPU(mmap_clone(PICK(5, 20) * MS));
}

int main(int argc, char **argv)
{
    (void)argv;
    if (CASE == REMOVED)
        removed();
    else if (CASE == SLEEPS)
        sleeps();
    else if (CASE == LOCKS)
        locks();
    else if (CASE == FAULTS)
        faults();
    else if (CASE == CALLS)
        calls();
    else if (CASE == COPIES)
        copies();
    else if (CASE == SORTS)
        sorts();
    else if (CASE == THREADS)
        threads();
    else if (CASE == CHILDREN)
        children();
    else if (CASE == WAKES)
        wakes();
    else if (CASE == FLUSHES)
        flushes();
    else if (CASE == SAME)
        same();
    else if (CASE == TWO)
        two();
    else if (CASE == READS)
        reads();
    else if (CASE == QUADRATIC)
        quadratic();
    else if (CASE == MISSES)
        misses();
    else if (CASE == CLONES)
        clones();
    else if (CASE == TAILS)
        tails();
    else if (CASE == EQUALS)
        equals();
    else if (CASE == OWN_NAMES)
        own_names();
    else
        callers();
    if (argc > 1)
        printf("%.3f\n", took_ms);
    return 0;
}
