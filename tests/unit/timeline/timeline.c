/* SPDX-License-Identifier: MIT */
#include "base/memory.h"
#include "numbers/random.h"
#include "test.h"
#include "timeline/path.h"

#include <sys/syscall.h>

/* A story in microseconds: threads 10, 11, …; 99 is of another program. */
struct story {
    struct timeline t;
    struct path p;
};

static void begin(struct story *s)
{
    timeline_init(&s->t);
    timeline_begin(&s->t, 10, "main", 0);
}

static void end(struct story *s, uint64_t time_us)
{
    timeline_finish(&s->t, time_us * 1000);
    path_find(&s->p, &s->t);
}

static void done(struct story *s)
{
    path_done(&s->p);
    timeline_done(&s->t);
}

enum { RUNNABLE = 0, SLEEPS = 1, DISK = 2, DEAD = 0x10 };

static void change(struct story *s, uint64_t us, uint32_t cpu, uint32_t from, int64_t state,
                   uint32_t to)
{
    struct timeline_event e = {
        .kind = TIMELINE_SWITCH, .time_ns = us * 1000, .cpu = cpu, .tid = from};
    e.change.next = to;
    e.change.previous_state = state;
    e.change.previous_name = "before";
    e.change.next_name = "other";
    e.change.stack = TIMELINE_NONE;
    timeline_feed(&s->t, &e);
}

static void wake(struct story *s, uint64_t us, uint32_t by, uint32_t target, bool in_interrupt)
{
    struct timeline_event e = {.kind = TIMELINE_WAKING, .time_ns = us * 1000, .tid = by};
    e.waking.target = target;
    e.waking.flags = in_interrupt ? 0x08 : 0;
    timeline_feed(&s->t, &e);
}

static void spawn(struct story *s, uint64_t us, uint32_t by, uint32_t child)
{
    struct timeline_event e = {.kind = TIMELINE_FORK, .time_ns = us * 1000, .tid = by};
    e.fork.child_pid = 10;
    e.fork.child_tid = child;
    timeline_feed(&s->t, &e);
}

static void enter(struct story *s, uint64_t us, uint32_t tid, int64_t number)
{
    struct timeline_event e = {.kind = TIMELINE_ENTER, .time_ns = us * 1000, .tid = tid};
    e.enter.number = number;
    timeline_feed(&s->t, &e);
}

static void leave(struct story *s, uint64_t us, uint32_t tid)
{
    struct timeline_event e = {.kind = TIMELINE_LEAVE, .time_ns = us * 1000, .tid = tid};
    timeline_feed(&s->t, &e);
}

static void sample(struct story *s, uint64_t us, uint32_t tid, uint32_t stack)
{
    struct timeline_event e = {
        .kind = TIMELINE_SAMPLE, .time_ns = us * 1000, .tid = tid, .stack = stack};
    timeline_feed(&s->t, &e);
}

/* How much of the path a thread has in a state. */
static uint64_t on_path_us(const struct story *s, uint32_t thread, enum timeline_state state)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < s->p.count; i++) {
        const struct path_step *step = &s->p.steps[i];
        if (step->thread == thread && step->piece != TIMELINE_NONE &&
            s->t.threads[thread].pieces[step->piece].state == state)
            sum += step->end_ns - step->start_ns;
    }
    return sum / 1000;
}

/* The steps follow each other from the start to the end. */
static void check_whole(const struct story *s)
{
    uint64_t at = s->t.start_ns;
    for (size_t i = 0; i < s->p.count; i++) {
        CHECK(s->p.steps[i].start_ns == at);
        CHECK(s->p.steps[i].end_ns > s->p.steps[i].start_ns);
        at = s->p.steps[i].end_ns;
    }
    CHECK(at == s->t.end_ns);
}

static void start_main(struct story *s)
{
    begin(s);
    wake(s, 5, 99, 10, false);
    change(s, 10, 0, 99, SLEEPS, 10);
}

TEST(one_thread_runs_waits_and_is_kept_from_the_cpu)
{
    struct story s = {0};
    start_main(&s);
    change(&s, 100, 0, 10, SLEEPS, 0); /* sleeps 100 to 300 */
    wake(&s, 300, 0, 10, true);
    change(&s, 310, 0, 0, RUNNABLE, 10);
    change(&s, 400, 0, 10, RUNNABLE, 99); /* preempted 400 to 450 */
    change(&s, 450, 0, 99, RUNNABLE, 10);
    change(&s, 500, 0, 10, DEAD, 0);
    end(&s, 900);
    check_whole(&s);
    CHECK_INT(s.t.end_ns, 500000);
    CHECK_INT(on_path_us(&s, 0, TIMELINE_RUNS), 90 + 90 + 50);
    CHECK_INT(on_path_us(&s, 0, TIMELINE_WAITS), 5 + 200);
    CHECK_INT(on_path_us(&s, 0, TIMELINE_READY), 5 + 10 + 50);
    CHECK_INT(s.t.unseen, 0);
    done(&s);
}

TEST(path_follows_the_worker_that_the_rest_waits_for)
{
    struct story s = {0};
    start_main(&s);
    spawn(&s, 20, 10, 11);
    spawn(&s, 30, 10, 12);
    change(&s, 40, 1, 0, RUNNABLE, 11);
    change(&s, 50, 0, 10, SLEEPS, 12); /* main waits for the end of both */
    change(&s, 90, 0, 12, DEAD, 0);    /* the quick one: nobody waits for it */
    wake(&s, 500, 11, 10, false);      /* the straggler */
    change(&s, 501, 1, 11, DEAD, 10);
    change(&s, 520, 1, 10, DEAD, 0);
    end(&s, 600);
    check_whole(&s);
    CHECK_INT(on_path_us(&s, 1, TIMELINE_RUNS), 460);
    CHECK_INT(on_path_us(&s, 2, TIMELINE_RUNS), 0);
    CHECK_INT(on_path_us(&s, 0, TIMELINE_RUNS), 10 + 19); /* up to the fork; behind the wake-up */
    CHECK_INT(on_path_us(&s, 0, TIMELINE_WAITS), 5);      /* for its start only */
    done(&s);
}

TEST(path_says_whom_a_step_keeps_waiting)
{
    struct story s = {0};
    start_main(&s);
    spawn(&s, 20, 10, 11);
    change(&s, 30, 1, 0, RUNNABLE, 11);
    change(&s, 200, 0, 10, SLEEPS, 0); /* main wants the lock that 11 holds */
    wake(&s, 300, 11, 10, false);
    change(&s, 302, 0, 0, RUNNABLE, 10);
    change(&s, 400, 0, 10, DEAD, 0);
    end(&s, 400);
    check_whole(&s);
    uint64_t kept = 0, own = 0;
    for (size_t i = 0; i < s.p.count; i++)
        if (s.p.steps[i].thread == 1)
            *(s.p.steps[i].waiter == 0 ? &kept : &own) +=
                s.p.steps[i].end_ns - s.p.steps[i].start_ns;
    CHECK_INT(kept, 100000);
    CHECK_INT(own, 180000); /* before main waited: 20 to 200, ready first */
    done(&s);
}

/* A thread that looks every 50 us whether it is to stop: the path is that of the one that works. */
TEST(path_leaves_a_thread_that_only_sleeps_where_the_wait_for_it_began)
{
    struct story s = {0};
    start_main(&s);
    spawn(&s, 20, 10, 11);
    change(&s, 30, 1, 0, RUNNABLE, 11);
    for (unsigned us = 40; us < 400; us += 50) {
        enter(&s, us, 11, SYS_clock_nanosleep);
        change(&s, us, 1, 11, SLEEPS, 0);
        if (us == 340)
            change(&s, 370, 0, 10, SLEEPS, 0); /* main waits for its end */
        wake(&s, us + 48, 0, 11, true);
        change(&s, us + 48, 1, 0, RUNNABLE, 11);
        leave(&s, us + 49, 11);
    }
    wake(&s, 440, 11, 10, false);
    change(&s, 441, 1, 11, DEAD, 10);
    change(&s, 460, 1, 10, DEAD, 0);
    end(&s, 500);
    check_whole(&s);
    CHECK_INT(on_path_us(&s, 0, TIMELINE_RUNS), 360 + 19);
    CHECK_INT(on_path_us(&s, 1, TIMELINE_WAITS), 66);
    done(&s);
}

TEST(an_interrupt_in_a_thread_is_not_its_wake_up)
{
    struct story s = {0};
    start_main(&s);
    spawn(&s, 20, 10, 11);
    change(&s, 30, 1, 0, RUNNABLE, 11);
    change(&s, 100, 0, 10, SLEEPS, 0);
    wake(&s, 200, 11, 10, true); /* the timer fires while 11 runs */
    change(&s, 201, 0, 0, RUNNABLE, 10);
    change(&s, 250, 0, 10, DEAD, 0);
    end(&s, 300);
    check_whole(&s);
    CHECK_INT(on_path_us(&s, 1, TIMELINE_RUNS), 0);
    CHECK_INT(on_path_us(&s, 0, TIMELINE_WAITS), 5 + 100);
    done(&s);
}

TEST(samples_name_what_ran_since_the_one_before)
{
    struct story s = {0};
    start_main(&s);
    sample(&s, 40, 10, 7);
    enter(&s, 50, 10, SYS_read);
    sample(&s, 55, 10, 8); /* in the call: its time is known */
    leave(&s, 60, 10);
    change(&s, 70, 0, 10, RUNNABLE, 99);
    change(&s, 80, 0, 99, RUNNABLE, 10);
    sample(&s, 90, 10, 9);
    change(&s, 100, 0, 10, DEAD, 0);
    end(&s, 100);
    uint64_t by_stack[10] = {0}, in_call = 0;
    for (size_t i = 0; i < s.t.threads[0].piece_count; i++) {
        const struct timeline_piece *p = &s.t.threads[0].pieces[i];
        if (p->state != TIMELINE_RUNS)
            continue;
        if (p->call != TIMELINE_NONE)
            in_call += p->end_ns - p->start_ns;
        else
            by_stack[p->stack < 10 ? p->stack : 0] += p->end_ns - p->start_ns;
    }
    CHECK_INT(by_stack[7], 30000);
    CHECK_INT(by_stack[9], 10000 + 10000 + 10000 + 10000); /* 50 before the call, behind, the end */
    CHECK_INT(by_stack[8], 0);
    CHECK_INT(in_call, 10000);
    done(&s);
}

TEST(the_loader_ends_where_the_program_begins)
{
    static const int64_t calls[] = {SYS_brk,   SYS_openat,          SYS_mmap,
                                    SYS_close, SYS_set_tid_address, SYS_set_robust_list,
                                    SYS_rseq,  SYS_mprotect,        SYS_munmap};
    struct story s = {0};
    start_main(&s);
    struct timeline_event e = {.kind = TIMELINE_NAME, .time_ns = 20000, .tid = 10};
    e.name.name = "program";
    e.name.is_exec = true;
    timeline_feed(&s.t, &e);
    for (size_t i = 0; i < ARRAY_COUNT(calls); i++) {
        enter(&s, 30 + 10 * i, 10, calls[i]);
        leave(&s, 35 + 10 * i, 10);
    }
    enter(&s, 200, 10, SYS_openat); /* the program's own */
    leave(&s, 210, 10);
    change(&s, 300, 0, 10, DEAD, 0);
    end(&s, 300);
    uint64_t start = 0;
    for (size_t i = 0; i < s.t.threads[0].piece_count; i++)
        if (s.t.threads[0].pieces[i].is_start)
            start += s.t.threads[0].pieces[i].end_ns - s.t.threads[0].pieces[i].start_ns;
    CHECK_INT(start, 115000);
    done(&s);
}

TEST(whatever_comes_the_path_is_whole)
{
    struct rng rng;
    rng_seed(&rng, 20);
    for (unsigned round = 0; round < 300; round++) {
        struct story s = {0};
        begin(&s);
        uint64_t us = 1;
        for (unsigned i = 0; i < 200; i++) {
            uint32_t a = (uint32_t)(10 + rng_below(&rng, 5)),
                     b = (uint32_t)(10 + rng_below(&rng, 6));
            us += rng_below(&rng, 3);
            switch (rng_below(&rng, 7)) {
            case 0:
            case 1:
                change(&s, us, (uint32_t)rng_below(&rng, 2), a,
                       (int64_t[]){RUNNABLE, SLEEPS, DISK, DEAD}[rng_below(&rng, 4)], b);
                break;
            case 2:
                wake(&s, us, a, b, rng_below(&rng, 2));
                break;
            case 3:
                spawn(&s, us, a, b);
                break;
            case 4:
                enter(&s, us, a, (int64_t)rng_below(&rng, 300));
                break;
            case 5:
                leave(&s, us, a);
                break;
            default:
                sample(&s, us, a, (uint32_t)rng_below(&rng, 9));
                break;
            }
        }
        end(&s, us + 5);
        check_whole(&s);
        for (size_t k = 0; k < s.t.thread_count; k++)
            for (size_t i = 1; i < s.t.threads[k].piece_count; i++)
                CHECK(s.t.threads[k].pieces[i].start_ns >= s.t.threads[k].pieces[i - 1].end_ns);
        done(&s);
    }
}
