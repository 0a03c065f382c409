/* SPDX-License-Identifier: MIT */
/* Round trips: the process that asks, the one that sends back, and their times.  See ping.h. */
#include "ping.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/strings.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long answers are waited for after the last question. */
#define PING_GRACE_NS (1 * NS_PER_S)

/* A message's head; the rest is whatever was there. */
struct head {
    uint64_t number, check;
};

static uint64_t check_of(uint64_t number)
{
    return number * 0x9e3779b97f4a7c15ULL ^ 0x50494e47;
}

int ping_how_parse(const char *words, struct ping_how *ret, struct error *err)
{
    *ret = (struct ping_how){0};
    CLEANUP(memory_freep) char *copy = memory_strdup(words);
    char *rest = copy, *word;
    while ((word = strsep(&rest, ","))) {
        if (str_eq(word, "spin"))
            ret->spin = true;
        else if (str_eq(word, "busypoll"))
            ret->busy_poll = true;
        else if (str_eq(word, "nagle"))
            ret->nagle = true;
        else if (str_eq(word, "quickack"))
            ret->quickack = true;
        else if (*word)
            return error_set(err, -EINVAL,
                             "--ping=%s: unknown word '%s'; use spin, busypoll, nagle or quickack",
                             words, word);
    }
    return 0;
}

static size_t bucket_of(uint64_t ns)
{
    if (ns < 64)
        return ns;
    unsigned power = 63 - (unsigned)__builtin_clzll(ns);
    return (size_t)(power - 5) * 64 + (ns >> (power - 6)) % 64;
}

double ping_bucket_ns(size_t b)
{
    return b < 64 ? (double)b : ldexp(64 + (double)(b % 64), (int)(b / 64) - 1);
}

void ping_times_add(struct ping_times *t, uint64_t ns)
{
    t->buckets[bucket_of(ns)]++;
    t->count++;
    t->sum_ns += ns;
    t->max_ns = ns > t->max_ns ? ns : t->max_ns;
}

double ping_times_quantile(const struct ping_times *t, double share)
{
    uint64_t wanted = (uint64_t)ceil(share * (double)t->count), before = 0;
    for (size_t b = 0; b < PING_BUCKETS && t->count; b++) {
        before += t->buckets[b];
        if (before >= wanted && before)
            return fmin((ping_bucket_ns(b) + ping_bucket_ns(b + 1)) / 2, (double)t->max_ns);
    }
    return NAN;
}

static void pin_to(const int *cpus)
{
    cpu_set_t set;
    if (!cpus)
        return;
    CPU_ZERO(&set);
    CPU_SET(cpus[0], &set);
    sched_setaffinity(0, sizeof(set), &set);
}

/* Sends every message back until the other end is gone, or where that cannot be seen, until told.
 */
static int echo(struct ping_end *e, const atomic_bool *stop)
{
    CLEANUP(memory_freep) char *message = memory_zalloc(1, e->message_bytes);
    for (;;) {
        int r;
        while ((r = ping_get(e, message)) == 0) {
            if (atomic_load_explicit(stop, memory_order_relaxed))
                return 0;
            if (!e->may_block || e->transport == TRANSPORT_SHM)
                ping_wait(e, false, UINT64_MAX);
        }
        while (r > 0 && (r = ping_put(e, message)) == 0) {
            if (atomic_load_explicit(stop, memory_order_relaxed))
                return 0;
            if (!e->may_block || e->transport == TRANSPORT_SHM)
                ping_wait(e, true, UINT64_MAX);
            r = 1;
        }
        if (r < 0)
            return r == -EPIPE || r == -ECONNRESET ? 0 : r;
    }
}

/* What the asking side knows. */
struct client {
    const struct settings *settings;
    struct ping_end *end;
    struct ping_result *result;
    char *message;
    uint64_t interval_ns, start_ns, measured_from_ns, end_ns;
    uint64_t sent, answered; /* in all, warm-up included */
    uint64_t next;           /* the number that must come back next, but for UDP */
};

static uint64_t due_ns(const struct client *c, uint64_t number)
{
    return c->start_ns + number * c->interval_ns;
}

/* An answer: is it the one that is due, and how long was it on its way? */
static int take(struct client *c, uint64_t asked_ns, struct error *err)
{
    struct head head;
    uint64_t now_ns = clock_now_ns();
    memcpy(&head, c->message, sizeof(head));
    bool is_known = head.check == check_of(head.number) && head.number < c->sent;
    if (!is_known || (c->end->transport != TRANSPORT_UDP && head.number != c->next))
        return error_set(err, -EBADMSG, "an answer has the wrong number: %llu, not %llu",
                         (unsigned long long)head.number, (unsigned long long)c->next);
    c->next = head.number + 1;
    c->answered++;
    uint64_t due = c->interval_ns ? due_ns(c, head.number) : asked_ns;
    if (due >= c->measured_from_ns)
        ping_times_add(&c->result->times, now_ns - due);
    return 0;
}

static void make(struct client *c)
{
    struct head head = {c->sent, check_of(c->sent)};
    memcpy(c->message, &head, sizeof(head));
}

static int await_answer(struct client *c, uint64_t limit_ns)
{
    int r;
    while ((r = ping_get(c->end, c->message)) == 0 && clock_now_ns() < limit_ns)
        if (!c->end->may_block || c->end->transport == TRANSPORT_SHM)
            ping_wait(c->end, false, limit_ns);
    return r;
}

/* Back to back: the next is due when the last is back. */
static int ask_and_await(struct client *c, struct error *err)
{
    struct ping_end *e = c->end;
    while (clock_now_ns() < c->end_ns) {
        int r;
        uint64_t asked_ns = clock_now_ns(), limit_ns = asked_ns + PING_GRACE_NS;
        make(c);
        while ((r = ping_put(e, c->message)) == 0)
            ping_wait(e, true, limit_ns);
        c->sent++;
        c->result->sent += asked_ns >= c->measured_from_ns;
        if (r > 0)
            r = await_answer(c, limit_ns);
        if (r < 0)
            return error_errno(err, r, "a round trip");
        if (r == 0 && e->transport != TRANSPORT_UDP)
            return error_set(err, -ETIMEDOUT, "no answer within %llu s", PING_GRACE_NS / NS_PER_S);
        if (r > 0 && take(c, asked_ns, err) < 0)
            return err->code;
    }
    return 0;
}

/* Sends what is due by now; false while a message is only partly through. */
static int send_due(struct client *c, uint64_t now_ns, bool *has_room)
{
    while (*has_room && due_ns(c, c->sent) <= now_ns && due_ns(c, c->sent) < c->end_ns) {
        uint64_t due = due_ns(c, c->sent);
        char *kept = c->message + c->settings->size; /* answers come in between */
        struct head head = {c->sent, check_of(c->sent)};
        memcpy(kept, &head, sizeof(head));
        int r = ping_put(c->end, kept);
        if (r <= 0) {
            *has_room = false;
            return r;
        }
        c->sent++;
        c->result->late += due >= c->measured_from_ns && now_ns - due > c->interval_ns;
    }
    return 0;
}

/* By the clock. */
static int ask_at_rate(struct client *c, struct error *err)
{
    uint64_t last_ns = c->end_ns + PING_GRACE_NS;
    for (;;) {
        uint64_t now_ns = clock_now_ns();
        bool all_sent = due_ns(c, c->sent) >= c->end_ns, has_room = true;
        if ((all_sent && c->answered == c->sent) || now_ns >= last_ns)
            return 0;
        int r = send_due(c, now_ns, &has_room), got = 0;
        while (r >= 0 && (r = ping_get(c->end, c->message)) > 0) {
            got++;
            if (take(c, 0, err) < 0)
                return err->code;
        }
        if (r < 0)
            return error_errno(err, r, "a round trip");
        uint64_t next_ns = all_sent ? last_ns : due_ns(c, c->sent);
        if (!got)
            ping_wait(c->end, !has_room, has_room ? next_ns : last_ns);
    }
}

static int ask(const struct settings *s, struct ping_end *e, struct ping_result *ret,
               struct error *err)
{
    /* One message that is received and one that is sent. */
    CLEANUP(memory_freep) char *memory = memory_zalloc(2, s->size);
    struct client c = {.settings = s, .end = e, .result = ret, .message = memory};
    struct rusage before, after;
    pin_to(s->send_cpus);
    getrusage(RUSAGE_SELF, &before);
    c.interval_ns = s->rate ? NS_PER_S / s->rate : 0;
    c.start_ns = clock_now_ns();
    c.measured_from_ns = c.start_ns + s->warmup_ns;
    c.end_ns = c.measured_from_ns + s->seconds_ns;
    int r = s->rate ? ask_at_rate(&c, err) : ask_and_await(&c, err);
    getrusage(RUSAGE_SELF, &after);
    ret->wall_ns = s->seconds_ns;
    if (s->rate) /* all that were due, those besides that could not even be sent */
        ret->sent = (c.end_ns - 1 - c.start_ns) / c.interval_ns -
                    (c.measured_from_ns + c.interval_ns - 1 - c.start_ns) / c.interval_ns + 1;
    ret->unanswered = ret->sent - ret->times.count;
    if (c.sent)
        ret->client_cpu_ns = (timeval_ns(after.ru_utime) + timeval_ns(after.ru_stime) -
                              timeval_ns(before.ru_utime) - timeval_ns(before.ru_stime)) /
                             c.sent;
    ret->echo_cpu_ns = c.sent; /* for ping_run to divide by */
    return r;
}

int ping_run(const struct settings *s, struct ping_result *ret, struct error *err)
{
    struct ping_how how;
    struct ping_pair pair;
    int r = ping_how_parse(s->ping, &how, err);
    r = r ? r : ping_pair_open(s, &how, &pair, err);
    if (r < 0)
        return r;
    *ret = (struct ping_result){0};
    atomic_bool *stop =
        mmap(NULL, sizeof(*stop), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t parent = getpid(), pid = stop == MAP_FAILED ? -1 : fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        ping_end_close(&pair.client);
        pin_to(s->receive_cpus);
        _exit(echo(&pair.echo, stop) < 0);
    }
    if (pid < 0) {
        r = error_errno(err, -errno, "starting a process");
    } else {
        struct rusage usage;
        int status;
        ping_end_close(&pair.echo);
        r = ask(s, &pair.client, ret, err);
        atomic_store(stop, true);
        ping_end_close(&pair.client);
        while (wait4(pid, &status, 0, &usage) < 0 && errno == EINTR)
            ;
        if (r == 0 && status != 0)
            r = error_set(err, -EPIPE, "the process that answers failed");
        if (ret->echo_cpu_ns)
            ret->echo_cpu_ns =
                (timeval_ns(usage.ru_utime) + timeval_ns(usage.ru_stime)) / ret->echo_cpu_ns;
    }
    if (stop != MAP_FAILED)
        munmap(stop, sizeof(*stop));
    ping_pair_close(&pair);
    return r;
}
