/* SPDX-License-Identifier: MIT */
/* More pairs of programs that differ in one known way: see pair.c. */
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef NEW
#define PICK(base, new) (new)
#else
#define PICK(base, new) (base)
#endif
#define NOINLINE __attribute__((noinline, noclone))
#define INLINE static inline __attribute__((always_inline))
#define MS 240000L /* turns of the loop: about a millisecond */

#define NESTED 1
#define ALLOCATES 2
#define HOLDS 3
#define OPENS 4
#define SPAWNS 5
#define CHAINS 6
#define RECURSES 7
#define CONDITIONS 8
#define PIPES 9
#define MAPS 10
#define MANY 11
#define TWINS 12
#define IDLE 13
#define SAME_BUSY 14
#define POLLS 15
#define LEAVES 16
#define FORMATS 17
#define POINTS 18
#define SCATTERS 19
#define BESIDE 20
#define SAME_BESIDE 21
#define REPLACED 22
#define DIVIDED 23
#define FORGETS 24

static volatile uint64_t sink;
static double took_ms;

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

/* Inlined into what is inlined into each of four. */
INLINE uint64_t middle(long turns)
{
    return spin(turns) + spin(turns / 2) * 3;
}

#define DOES(name, mark)                  \
    NOINLINE static void name(long turns) \
    {                                     \
        sink += middle(turns) + (mark);   \
    }
DOES(parse_input, 'p')
DOES(check_input, 'c')
DOES(render_page, 'r')
DOES(write_page, 'w')

static void rest(long turns)
{
    parse_input(turns);
    check_input(turns);
    write_page(turns);
}

/* Many small functions that stay as they are: none of them may be named. */
#define SMALL(name)                       \
    NOINLINE static void name(long turns) \
    {                                     \
        sink += spin(turns) + __LINE__;   \
    }
SMALL(small_1)
SMALL(small_2)
SMALL(small_3)
SMALL(small_4)
SMALL(small_5)
SMALL(small_6)
SMALL(small_7)
SMALL(small_8)

static void all_small(void)
{
    for (int i = 0; i < 4; i++) {
        small_1(1 * MS);
        small_2(2 * MS);
        small_3(1 * MS);
        small_4(2 * MS);
        small_5(3 * MS);
        small_6(1 * MS);
        small_7(2 * MS);
        small_8(1 * MS);
    }
}

NOINLINE static void make_nodes(int count)
{
    for (int i = 0; i < count; i++) {
        void **kept[64];
        for (int k = 0; k < 64; k++)
            kept[k] = malloc((size_t)(16 + k * 24));
        for (int k = 0; k < 64; k++)
            free(kept[k]);
    }
}

/* The work is the C library's, some calls below the function that wants more of it. */
NOINLINE static void print_lines(int count)
{
    char text[64];
    for (int i = 0; i < count; i++)
        sink += (uint64_t)snprintf(text, sizeof(text), "%d and %s", i * 7, "some text");
}

NOINLINE static void print_headings(int count)
{
    char text[64];
    for (int i = 0; i < count; i++)
        sink += (uint64_t)snprintf(text, sizeof(text), "%d of %s", i * 9, "other text");
}

/* Work that is nearly all in the C library, a little in each of many functions. */
NOINLINE static void load_rows(int count)
{
    for (int i = 0; i < count; i++) {
        char text[64];
        snprintf(text, sizeof(text), "%d,%f", i, i * 1.5);
        char *row = strdup(text);
        sink += (uint64_t)strtol(row, NULL, 10);
        sink += (uint64_t)strtod(strchr(row, ',') + 1, NULL);
        free(row);
    }
}

NOINLINE static void check_rows(int count)
{
    for (int i = 0; i < count; i++) {
        char text[64];
        snprintf(text, sizeof(text), "%d,%d", i, i * 3);
        sink += (uint64_t)strtol(text, NULL, 10);
    }
}

/* A function that is called through a pointer, and others that end with a jump to it. */
NOINLINE static void draw_points(long turns)
{
    sink += spin(turns);
}

NOINLINE static void draw_more(long turns)
{
    sink += 1;
    draw_points(turns);
}

NOINLINE static void draw_less(long turns)
{
    sink -= 1;
    draw_points(turns / 2);
}

static void (*volatile const draws[])(long) = {draw_points, draw_more, draw_less};

NOINLINE static void draw_through(int which, long turns)
{
    draws[which](turns);
    sink += 1;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

NOINLINE static void compute_under_lock(long turns)
{
    pthread_mutex_lock(&lock);
    sink += spin(turns);
    pthread_mutex_unlock(&lock);
    usleep(200);
}

static void *holder(void *unused)
{
    for (int i = 0; i < 15; i++)
        compute_under_lock(PICK(MS / 10, 3 * MS));
    return unused;
}

NOINLINE static void want_lock(void)
{
    pthread_mutex_lock(&lock);
    sink += 1;
    pthread_mutex_unlock(&lock);
    usleep(100);
}

NOINLINE static void look_at_files(int count)
{
    struct stat st;
    for (int i = 0; i < count; i++)
        if (stat("/etc/passwd", &st) == 0)
            sink += (uint64_t)st.st_size;
}

NOINLINE static void run_children(int count)
{
    for (int i = 0; i < count; i++) {
        char *words[] = {"true", NULL}, *none[] = {NULL};
        pid_t pid;
        if (posix_spawn(&pid, "/bin/true", NULL, NULL, words, none) == 0)
            waitpid(pid, NULL, 0);
    }
}

struct item {
    struct item *next;
    uint64_t key;
};

NOINLINE static uint64_t look_up(struct item *const *table, uint64_t key)
{
    const struct item *i = table[PICK(key * 0x9e3779b97f4a7c15ull >> 52, key >> 8 & 4095)];
    while (i && i->key != key)
        i = i->next;
    return i ? i->key : 0;
}

static void use_table(void)
{
    static struct item *table[4096], items[4096];
    for (uint64_t i = 0; i < 4096; i++) {
        size_t at = PICK(i * 0x9e3779b97f4a7c15ull >> 52, i >> 8 & 4095);
        items[i] = (struct item){table[at], i};
        table[at] = &items[i];
    }
    for (int turn = 0; turn < 30; turn++)
        for (uint64_t i = 0; i < 4096; i++)
            sink += look_up(table, i);
}

NOINLINE static uint64_t count_ways(int depth)
{
    return depth < 2 ? sink + 1 : count_ways(depth - 1) + count_ways(depth - 2);
}

static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int ready;

static void *maker(void *unused)
{
    for (int i = 0; i < 10; i++) {
        render_page(PICK(1, 3) * MS);
        pthread_mutex_lock(&lock);
        ready++;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

NOINLINE static void wait_for_items(void)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 10; i++) {
        while (!ready)
            pthread_cond_wait(&changed, &lock);
        ready--;
    }
    pthread_mutex_unlock(&lock);
}

NOINLINE static void send_in_pieces(int fd, size_t piece)
{
    static char bytes[65536];
    for (size_t sent = 0; sent < (size_t)4 << 20; sent += piece)
        if (write(fd, bytes, piece) < 0)
            return;
}

NOINLINE static void use_memory(int populate)
{
    size_t size = (size_t)24 << 20;
    for (int i = 0; i < 2; i++) {
        char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | (populate ? MAP_POPULATE : 0), -1, 0);
        if (bytes == MAP_FAILED)
            return;
        madvise(bytes, size, MADV_NOHUGEPAGE);
        for (size_t k = 0; k < size; k += 4096 * (size_t)PICK(8, 1))
            bytes[k] = 1;
        munmap(bytes, size);
    }
}

/* Equal functions: compilers may keep one body for both. */
NOINLINE static void twin_left(long turns)
{
    sink += spin(turns);
}

NOINLINE static void twin_right(long turns)
{
    sink += spin(turns);
}

NOINLINE static void left_side(long turns)
{
    twin_left(turns);
    sink += PICK(1, 5); /* the callers change, too */
}

NOINLINE static void right_side(long turns)
{
    twin_right(turns);
    sink += PICK(2, 7);
}

NOINLINE static void wait_a_little(long us)
{
    struct timespec t = {0, us * 1000};
    nanosleep(&t, NULL);
}

NOINLINE static void leaf(long turns)
{
    uint64_t x = sink | 1;
    for (long i = 0; i < turns; i++)
        x = x * 6364136223846793005ull + 1442695040888963407ull;
    sink = x;
}

NOINLINE static void calls_leaf_a(long turns)
{
    leaf(turns);
    sink += 'a';
}

NOINLINE static void calls_leaf_b(long turns)
{
    leaf(turns);
    sink += 'b';
}

/* Another name and other code, called at the same place by a caller that is the same. */
#ifdef NEW
#define SECOND_STAGE second_stage_again
NOINLINE static void second_stage_again(void)
{
    leaf(5 * MS);
    leaf(MS);
    sink += 's';
}
#else
#define SECOND_STAGE second_stage
NOINLINE static void second_stage(void)
{
    leaf(2 * MS);
    sink += 's';
}
#endif

NOINLINE static void call_stages(void)
{
    calls_leaf_a(3 * MS);
    ON_CPU(SECOND_STAGE());
    calls_leaf_b(2 * MS);
}

/* One side has in two functions what the other has in one; what got slower is beside it. */
#ifdef NEW
NOINLINE static void read_head(void)
{
    sink += spin(2 * MS) + 'h';
}

NOINLINE static void read_body(void)
{
    sink += spin(3 * MS) + 'b';
}

NOINLINE static void read_all(void)
{
    read_head();
    read_body();
    sink += 'a';
}
#else
NOINLINE static void read_all(void)
{
    sink += spin(5 * MS) + 'a';
}
#endif

/* A condition whose signal is forgotten: the wait lasts until its time limit. */
static pthread_mutex_t result_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t result_is_there = PTHREAD_COND_INITIALIZER;
static int has_result;

NOINLINE static void wait_for_result(void)
{
    pthread_mutex_lock(&result_lock);
    while (!has_result) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 8000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&result_is_there, &result_lock, &until);
    }
    has_result = 0;
    pthread_mutex_unlock(&result_lock);
}

static void *make_results(void *unused)
{
    for (int i = 0, taken; i < 8; i++) {
        render_page(MS);
        pthread_mutex_lock(&result_lock);
        has_result = 1;
        if (PICK(1, 0))
            pthread_cond_signal(&result_is_there);
        pthread_mutex_unlock(&result_lock);
        do {
            wait_a_little(200);
            pthread_mutex_lock(&result_lock);
            taken = !has_result;
            pthread_mutex_unlock(&result_lock);
        } while (!taken);
    }
    return unused;
}

static void take_results(void)
{
    for (int i = 0; i < 8; i++)
        ON_CLOCK(wait_for_result());
}

/* Looks at something from time to time, beside the thread that works, until it is told to stop. */
static volatile int is_over;

static void *look_sometimes(void *unused)
{
    while (!is_over)
        wait_a_little(PICK(300, 4000));
    return unused;
}

static void work_beside(void)
{
    long turns = CASE == BESIDE ? PICK(12, 40) * MS : 30 * MS;
    rest(10 * MS);
    ON_CPU(render_page(turns));
    is_over = 1;
}

static void with_thread(void *(*f)(void *), void (*other)(void))
{
    pthread_t thread;
    pthread_create(&thread, NULL, f, NULL);
    other();
    pthread_join(thread, NULL);
}

static void want_often(void)
{
    for (int i = 0; i < 15; i++)
        want_lock();
}

static void *drain(void *fd)
{
    char bytes[65536];
    while (read((int)(intptr_t)fd, bytes, sizeof(bytes)) > 0)
        sink += 1;
    return NULL;
}

static void use_pipe(void)
{
    int ends[2];
    pthread_t thread;
    if (pipe(ends) < 0)
        return;
    pthread_create(&thread, NULL, drain, (void *)(intptr_t)ends[0]);
    send_in_pieces(ends[1], PICK(32768, 512));
    close(ends[1]);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    (void)argv;
    switch (CASE) {
    case NESTED:
        rest(8 * MS);
        ON_CPU(render_page(PICK(4, 12) * MS));
        break;
    case ALLOCATES:
        rest(8 * MS);
        ON_CPU(make_nodes(PICK(2000, 9000)));
        break;
    case FORMATS:
        rest(4 * MS);
        print_headings(50000);
        ON_CPU(print_lines(PICK(50000, 300000)));
        break;
    case SCATTERS:
        check_rows(50000);
        ON_CPU(load_rows(PICK(40000, 120000)));
        break;
    case POINTS:
        rest(4 * MS);
        draw_through(1, MS);
        draw_through(2, MS);
        ON_CPU(draw_through(0, PICK(4, 12) * MS));
        break;
    case HOLDS:
        ON_CLOCK(with_thread(holder, want_often));
        break;
    case OPENS:
        rest(8 * MS);
        ON_CPU(look_at_files(PICK(1000, 20000)));
        break;
    case SPAWNS:
        rest(8 * MS);
        ON_CLOCK(run_children(PICK(2, 25)));
        break;
    case CHAINS:
        rest(6 * MS);
        ON_CPU(use_table());
        break;
    case RECURSES:
        rest(8 * MS);
        ON_CPU(sink += count_ways(PICK(27, 30)));
        break;
    case CONDITIONS:
        ON_CLOCK(with_thread(maker, wait_for_items));
        break;
    case PIPES:
        rest(6 * MS);
        ON_CPU(use_pipe());
        break;
    case MAPS:
        rest(6 * MS);
        ON_CPU(use_memory(0));
        break;
    case MANY:
        all_small();
        ON_CPU(render_page(PICK(6, 12) * MS));
        break;
    case TWINS:
        left_side(10 * MS);
        ON_CPU(right_side(PICK(10, 30) * MS));
        break;
    case IDLE:
        rest(8 * MS);
        for (int i = 0; i < 10; i++)
            ON_CLOCK(wait_a_little(PICK(500, 3000)));
        break;
    case POLLS:
        rest(4 * MS);
        for (int i = 0; i < 10; i++) {
            render_page(MS);
            wait_a_little(1000);
        }
        break;
    case LEAVES:
        for (int i = 0; i < 10; i++) {
            calls_leaf_a(3 * MS);
            ON_CPU(calls_leaf_b(PICK(1, 4) * MS));
        }
        break;
    case BESIDE:
    case SAME_BESIDE:
        with_thread(look_sometimes, work_beside);
        break;
    case DIVIDED:
        for (int i = 0; i < 6; i++) {
            read_all();
            ON_CPU(render_page(PICK(2, 5) * MS));
        }
        break;
    case FORGETS:
        with_thread(make_results, take_results);
        break;
    case REPLACED:
        for (int i = 0; i < 10; i++)
            call_stages();
        break;
    default: /* SAME_BUSY */
        all_small();
        make_nodes(2000);
        look_at_files(2000);
        break;
    }
    if (argc > 1)
        printf("%.3f\n", took_ms);
    return 0;
}
