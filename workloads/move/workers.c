/* SPDX-License-Identifier: MIT */
/* The threads of one side: see workers.h. */
#include "workers.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "check.h"

#include <errno.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

int workers_init(struct workers *w, const struct settings *s, bool sender, struct error *err)
{
    *w = (struct workers){.settings = s,
                          .variant = sender ? s->send : s->receive,
                          .sender = sender,
                          .count = s->threads,
                          .lock = PTHREAD_MUTEX_INITIALIZER,
                          .changed = PTHREAD_COND_INITIALIZER};
    w->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->event_fd < 0)
        return error_errno(err, -errno, "eventfd");
    w->list = aligned_alloc(128, w->count * sizeof(*w->list));
    if (!w->list)
        return error_set(err, -ENOMEM, "no memory for %zu threads", w->count);
    memset(w->list, 0, w->count * sizeof(*w->list));
    for (size_t i = 0; i < w->count; i++) {
        struct worker *worker = &w->list[i];
        worker->all = w;
        worker->link = (struct link){.settings = s,
                                     .index = (unsigned)i,
                                     .transport = s->transport,
                                     .fd = -1,
                                     .message_bytes = s->size,
                                     .limit = UINT64_MAX,
                                     .stop = &w->stop,
                                     .counts = &worker->counts,
                                     .source = {.file_fd = -1},
                                     .fill = sender && s->verify};
        if (!sender && s->verify)
            worker->link.check = check_new(&worker->link, true);
    }
    return 0;
}

static void pin(const struct worker *worker)
{
    const struct settings *s = worker->all->settings;
    const int *cpus = worker->all->sender ? s->send_cpus : s->receive_cpus;
    if (!cpus)
        return;
    size_t count = 0;
    while (cpus[count] >= 0)
        count++;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpus[worker->link.index % count], &set);
    sched_setaffinity(0, sizeof(set), &set);
}

/*
 * Threads that share a table of descriptors take and drop a reference to the file in every call; a
 * thread with a table of its own need not, which is some 4 % of a small send.  The socket then
 * stays open in the other tables, so that its end must be told by shutdown().
 */
static bool has_own_descriptors(const struct worker *worker)
{
    return worker->all->variant->plain && (worker->link.transport & TRANSPORT_STREAM_SOCKETS) &&
           unshare(CLONE_FILES) == 0;
}

/* Tells the controller that the link is open, and waits for its word. */
static void await_go(struct workers *w)
{
    pthread_mutex_lock(&w->lock);
    atomic_fetch_add(&w->opened, 1);
    pthread_cond_broadcast(&w->changed);
    while (!w->go)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct workers *w = worker->all;
    struct link *l = &worker->link;
    const struct variant *v = w->variant;
    worker->tid = gettid();
    pin(worker);
    bool own = has_own_descriptors(worker);
    worker->code = v->open ? v->open(l, &worker->err) : 0;
    await_go(w);
    if (worker->code == 0)
        worker->code = v->run(l, &worker->err);
    struct error closing = {0};
    int code = v->close ? v->close(l, &closing) : 0;
    if (worker->code == 0 && code < 0) {
        worker->code = code;
        worker->err = closing;
    }
    if (worker->code == 0 && !atomic_load(&w->expected) && v->role == ROLE_RECEIVE)
        worker->code = error_set(&worker->err, -EPIPE,
                                 "connection %u: the sender closed it too early", l->index);
    if (w->sender && own)
        shutdown(l->fd, SHUT_WR); /* the receiver's end of file */
    else if (w->sender)
        fd_closep(&l->fd);
    atomic_fetch_add(&w->ended, 1);
    uint64_t one = 1;
    if (write(w->event_fd, &one, sizeof(one)) < 0)
        worker->joined = false; /* full: the controller wakes up anyway */
    return NULL;
}

int workers_open(struct workers *w, struct error *err)
{
    for (size_t i = 0; i < w->count; i++) {
        int code = pthread_create(&w->list[i].thread, NULL, work, &w->list[i]);
        if (code)
            return error_errno(err, -code, "starting thread %zu of %zu", i + 1, w->count);
        w->list[i].started = true;
    }
    pthread_mutex_lock(&w->lock);
    while (atomic_load(&w->opened) < w->count)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
    for (size_t i = 0; i < w->count; i++)
        if (w->list[i].code < 0) {
            *err = w->list[i].err;
            return w->list[i].code;
        }
    for (size_t i = 0; i < w->count; i++)
        w->tids[i] = w->list[i].tid;
    if (!w->settings->no_trace)
        trace_open(&w->trace, w->tids, w->count, !w->sender);
    return 0;
}

void workers_go(struct workers *w)
{
    pthread_mutex_lock(&w->lock);
    w->go = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

int workers_trouble(struct workers *w, struct error *err)
{
    for (size_t i = 0; atomic_load(&w->ended) && i < w->count; i++)
        if (w->list[i].code < 0) {
            *err = w->list[i].err;
            return w->list[i].code;
        }
    return 0;
}

int workers_join(struct workers *w, int timeout_ms, struct error *err)
{
    struct timespec until =
        timespec_from_ns(clock_read_ns(CLOCK_REALTIME) + (uint64_t)timeout_ms * NS_PER_MS);
    for (size_t i = 0; i < w->count; i++) {
        if (!w->list[i].started || w->list[i].joined)
            continue;
        if (pthread_timedjoin_np(w->list[i].thread, NULL, &until) != 0)
            return error_set(err, -ETIMEDOUT, "%s: connection %zu did not finish within %d s",
                             w->variant->name, i, timeout_ms / 1000);
        w->list[i].joined = true;
    }
    return workers_trouble(w, err);
}

void workers_snapshot(struct workers *w, struct snapshot *ret)
{
    struct rusage usage;
    struct trace_counts traced = trace_read(&w->trace);
    struct snapshot s = {.t_ns = clock_now_ns(), .cpu_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID)};
    for (size_t i = 0; i < w->count; i++) {
        const struct counts *c = &w->list[i].counts;
        uint64_t bytes = count_read(&c->bytes), messages = count_read(&c->messages);
        s.bytes += bytes;
        s.messages += messages || w->sender ? messages : bytes / w->settings->size;
        s.calls += count_read(&c->calls);
        s.granted += count_read(&c->granted);
        s.refused += count_read(&c->refused);
        s.waits += count_read(&c->waits);
        s.lost += count_read(&c->lost);
    }
    s.traced_calls = traced.calls;
    s.copied_bytes = traced.copied_bytes;
    s.copy_calls = traced.copy_calls;
    getrusage(RUSAGE_SELF, &usage);
    s.user_ns = timeval_ns(usage.ru_utime);
    s.system_ns = timeval_ns(usage.ru_stime);
    s.switches = (uint64_t)(usage.ru_nvcsw + usage.ru_nivcsw);
    s.switches_involuntary = (uint64_t)usage.ru_nivcsw;
    for (size_t i = 0; i < w->count; i++) {
        struct link_tcp tcp;
        if (atomic_load(&w->ended) == 0 && link_tcp_read(w->list[i].link.fd, &tcp)) {
            s.segments += tcp.segments;
            s.segment_bytes += tcp.segment_bytes;
            s.retransmits += tcp.retransmits;
        }
    }
    *ret = s;
}

void workers_done(struct workers *w)
{
    for (size_t i = 0; w->list && i < w->count; i++) {
        check_free(w->list[i].link.check);
        fd_closep(&w->list[i].link.fd);
    }
    trace_close(&w->trace);
    free(w->list);
    fd_closep(&w->event_fd);
}
