/* SPDX-License-Identifier: MIT */
/* What has become of the tasks: by their own files first, by the scheduler's word else. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "cluster/cluster_internal.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

/* The scheduler is asked this often, more rarely when there is much to tell. */
#define ASK_NS (NS_PER_S)
#define ASK_MORE_NS (5 * NS_PER_MS) /* for each task that is open */
#define ASK_LONGEST_NS (15 * NS_PER_S)
/* With so few tasks the files of those are looked at, too, that waited when it was last asked. */
#define LOOK_AT_ALL 256
/* A scheduler that does not answer for so long ends it; what runs goes on. */
#define SILENT_NS (600 * NS_PER_S)
/* How long the files of a task may take to be seen here: after a good end, after another one. */
#define SEEN_GOOD_NS (60 * NS_PER_S)
#define SEEN_BAD_NS (3 * NS_PER_S)
/* How often the accounting is asked about an array whose tasks vanished from the queue. */
#define HISTORY_NS (10 * NS_PER_S)
#define TOUCH_NS (60 * NS_PER_S)
/* How long the scheduler gets to say why it stopped a task. */
#define WHY_NS (30 * NS_PER_S)
/* How long cancelled tasks get to end by themselves. */
#define CANCEL_NS (10 * NS_PER_S)

static unsigned tries_most(const struct cluster *c)
{
    return c->options->tries ? (unsigned)c->options->tries : 3;
}

/* ---- the end of a task ---- */

/* Its units that are not in the store are missing again. */
static void give_back(struct cluster *c, struct cluster_array *a, struct cluster_task *t)
{
    for (size_t u = 0; u < t->units.count; u++)
        if (!ledger_give_back(&c->ledger, a->units[t->units.first + u], t->failed, tries_most(c)))
            c->failed = true;
    t->state = TASK_OVER;
    a->open_count--;
}

/* Brings in what it measured; when the store is out of reach, later. */
static int finish_task(struct cluster *c, struct cluster_array *a, size_t index, struct error *err)
{
    struct cluster_task *t = &a->tasks[index];
    CLEANUP(memory_freep) char *path = cluster_task_path(c, a, index, ".spool");
    int r = cluster_deliver(c, path, err);
    if (r == -ENOTCONN) {
        t->state = TASK_UNDELIVERED;
        return 0;
    }
    if (r == -EBADMSG) { /* a disk or a network file system failed: measured again */
        strbuf_printf(&c->s->notes, "%s\n", err->message);
        t->failed = true;
        r = 0;
    }
    if (r == 0)
        give_back(c, a, t);
    return r;
}

/* Whoever cancels a task wants it to stop, and all the others with it. */
static bool is_cancelled(const struct cluster_task *t)
{
    return t->end == SLURM_CANCELLED && str_eq(t->word, "CANCELLED");
}

static bool is_out_of_time(const struct cluster_task *t)
{
    return str_eq(t->word, "TIMEOUT");
}

/* Why the scheduler ended it. */
static void put_stop(const struct cluster_task *t, char *words, size_t size)
{
    bool known = t->limit[0] && !str_eq(t->limit, "UNLIMITED") && !str_eq(t->limit, "INVALID");
    if (is_out_of_time(t))
        snprintf(words, size,
                 "Slurm ended the task at its time limit%s%s; allow more with "
                 "--slurm-args=--time=HH:MM:SS",
                 known ? " of " : "", known ? t->limit : "");
    else if (t->word[0] && t->end != SLURM_COMPLETED)
        snprintf(words, size, "something else ended the task (Slurm says %s)", t->word);
    else
        snprintf(words, size, "something else ended the task");
}

static void note_cancelled(struct cluster *c, const struct cluster_array *a, size_t index)
{
    if (!c->cancelled)
        strbuf_printf(&c->s->notes,
                      "task %llu_%zu was cancelled (scancel); stopping the experiment\n",
                      (unsigned long long)a->job, index);
    c->cancelled = true;
}

static void note_failure(struct cluster *c, const struct cluster_task *t, const char *words)
{
    snprintf(c->last_failure, sizeof(c->last_failure), "on node %s: %s",
             t->node[0] ? t->node : "(none)", words);
    if (is_out_of_time(t)) /* the node has done nothing wrong */
        return;
    struct cluster_exclusion e = {.failed = true};
    snprintf(e.node, sizeof(e.node), "%s", t->node);
    cluster_exclude(c, &e);
}

/* It has told how it ended. */
static int take_end(struct cluster *c, struct cluster_array *a, size_t index, enum task_end end,
                    const char *words, struct error *err)
{
    struct cluster_task *t = &a->tasks[index];
    if (end == TASK_UNFIT || end == TASK_UNCOUNTED) {
        struct cluster_exclusion e = {.needs = t->units.needs, .soft = end == TASK_UNCOUNTED};
        snprintf(e.node, sizeof(e.node), "%s", t->node);
        cluster_exclude(c, &e);
        strbuf_printf(&c->s->notes, "node %s cannot be used for this: %s\n", t->node, words);
    } else if (end == TASK_STOPPED && is_cancelled(t)) {
        note_cancelled(c, a, index);
    } else if (end == TASK_FAILED || end == TASK_STOPPED) {
        char stop[192];
        put_stop(t, stop, sizeof(stop));
        t->failed = true;
        note_failure(c, t, end == TASK_FAILED ? words : stop);
    }
    return finish_task(c, a, index, err);
}

/* It is gone without a word. */
static int take_loss(struct cluster *c, struct cluster_array *a, size_t index, struct error *err)
{
    struct cluster_task *t = &a->tasks[index];
    if (is_cancelled(t)) {
        note_cancelled(c, a, index);
        return finish_task(c, a, index, err);
    }
    char words[288], stop[192];
    put_stop(t, stop, sizeof(stop));
    snprintf(words, sizeof(words), "task %llu_%zu was lost (%s)", (unsigned long long)a->job, index,
             is_out_of_time(t) ? stop
             : t->word[0]      ? t->word
                               : "the scheduler no longer knows it");
    t->failed = true;
    c->lost_count++;
    strbuf_printf(&c->s->notes, "node %s: %s; %s\n", t->node[0] ? t->node : "?", words,
                  a->only ? "its profiles are missing"
                          : "its rounds will be measured again on another node");
    note_failure(c, t, words);
    return finish_task(c, a, index, err);
}

/* ---- looking ---- */

static void take_queue(struct cluster *c, const struct slurm_tasks *tasks)
{
    for (size_t i = 0; i < tasks->count; i++) {
        const struct slurm_task *q = &tasks->items[i];
        for (size_t k = 0; k < c->array_count; k++) {
            struct cluster_array *a = &c->arrays[k];
            if (a->job != q->job || q->index >= a->task_count)
                continue;
            struct cluster_task *t = &a->tasks[q->index];
            if (t->state >= TASK_UNDELIVERED)
                continue;
            t->seen = true;
            if (q->node[0])
                snprintf(t->node, sizeof(t->node), "%s", q->node);
            if (q->limit[0])
                snprintf(t->limit, sizeof(t->limit), "%s", q->limit);
            if (q->state == SLURM_WAITS || q->state == SLURM_RUNS) {
                t->state = q->state == SLURM_WAITS ? TASK_WAITS : TASK_RUNS;
                continue;
            }
            t->gone_ns = t->state == TASK_GONE ? t->gone_ns : clock_now_ns();
            t->state = TASK_GONE;
            t->end = q->state;
            snprintf(t->word, sizeof(t->word), "%s", q->word);
        }
    }
}

/* One that the scheduler does not show any more is gone, too. */
static void note_unseen(struct cluster *c)
{
    for (size_t k = 0; k < c->array_count; k++)
        for (size_t i = 0; i < c->arrays[k].task_count; i++) {
            struct cluster_task *t = &c->arrays[k].tasks[i];
            if (t->seen || t->state > TASK_RUNS)
                continue;
            t->state = TASK_GONE;
            t->end = SLURM_COMPLETED; /* not known; the files get their time to be seen */
            t->gone_ns = clock_now_ns();
        }
}

static int ask_scheduler(struct cluster *c, struct error *err)
{
    uint64_t now = clock_now_ns();
    uint64_t pause = ASK_NS + ASK_MORE_NS * (c->tasks_waiting + c->tasks_running);
    if (c->asked_ns && now < c->asked_ns + (pause < ASK_LONGEST_NS ? pause : ASK_LONGEST_NS))
        return 0;
    uint64_t *jobs = NULL;
    size_t count = 0, capacity = 0;
    for (size_t k = 0; k < c->array_count; k++) {
        for (size_t i = 0; i < c->arrays[k].task_count; i++)
            c->arrays[k].tasks[i].seen = false;
        if (c->arrays[k].open_count)
            ARRAY_PUSH(jobs, count, capacity) = c->arrays[k].job;
    }
    CLEANUP(slurm_tasks_done) struct slurm_tasks tasks = {0};
    int r = count ? slurm_queue(jobs, count, &tasks, err) : 0;
    free(jobs);
    c->asked_ns = clock_now_ns();
    if (r < 0) { /* a controller restarts or is busy now and then */
        c->queue_failed_ns = c->queue_failed_ns ? c->queue_failed_ns : c->asked_ns;
        return c->asked_ns > c->queue_failed_ns + SILENT_NS ? r : 0;
    }
    c->queue_failed_ns = 0;
    take_queue(c, &tasks);
    note_unseen(c);
    return 0;
}

/*
 * A task that the queue forgot and that left no word of its end: the accounting may know.  Then a
 * failed node need not be waited for as long as files of a good end that are not seen yet.
 */
static void ask_history(struct cluster *c, struct cluster_array *a, const struct cluster_task *t)
{
    uint64_t now = clock_now_ns();
    if (t->state != TASK_GONE || t->word[0] || now < t->gone_ns + SEEN_BAD_NS ||
        (a->history_ns && now < a->history_ns + HISTORY_NS) || c->queue_failed_ns)
        return;
    CLEANUP(slurm_tasks_done) struct slurm_tasks past = {0};
    slurm_history(&a->job, 1, &past);
    a->history_ns = clock_now_ns();
    for (size_t i = 0; i < past.count; i++) {
        const struct slurm_task *p = &past.items[i];
        if (p->job != a->job || p->index >= a->task_count || p->state == SLURM_WAITS ||
            p->state == SLURM_RUNS)
            continue;
        struct cluster_task *found = &a->tasks[p->index];
        if (found->state != TASK_GONE || found->word[0])
            continue;
        found->end = p->state;
        snprintf(found->word, sizeof(found->word), "%s", p->word);
        if (p->node[0])
            snprintf(found->node, sizeof(found->node), "%s", p->node);
        if (p->limit[0])
            snprintf(found->limit, sizeof(found->limit), "%s", p->limit);
    }
}

static bool is_lost(const struct cluster_task *t)
{
    uint64_t wait_ns = t->end == SLURM_COMPLETED ? SEEN_GOOD_NS : SEEN_BAD_NS;
    return t->state == TASK_GONE && clock_now_ns() > t->gone_ns + wait_ns;
}

/* A task that was stopped is asked about: by whom or by what, only the scheduler knows, and it says
 * so some seconds later. */
static bool waits_for_why(struct cluster_task *t)
{
    uint64_t now = clock_now_ns();
    t->ended_ns = t->ended_ns ? t->ended_ns : now;
    return !t->word[0] && now < t->ended_ns + WHY_NS;
}

static int look_at_task(struct cluster *c, struct cluster_array *a, size_t index, struct error *err)
{
    struct cluster_task *t = &a->tasks[index];
    if (t->state == TASK_UNDELIVERED)
        return finish_task(c, a, index, err);
    CLEANUP(memory_freep) char *path = cluster_task_path(c, a, index, ".end");
    enum task_end end;
    char words[TASK_WORDS_BYTES], node[TASK_NODE_BYTES];
    struct error ignored;
    bool told = task_end_read(path, &end, node, words, &ignored) == 0;
    if (told)
        snprintf(t->node, sizeof(t->node), "%s", node);
    if (told && !(end == TASK_STOPPED && waits_for_why(t)))
        return take_end(c, a, index, end, words, err);
    ask_history(c, a, t);
    if (told)
        return 0;
    return is_lost(t) ? take_loss(c, a, index, err) : 0;
}

static void count_tasks(struct cluster *c)
{
    const char *last = "";
    c->tasks_waiting = c->tasks_running = c->tasks_over = c->nodes_running = 0;
    for (size_t k = 0; k < c->array_count; k++)
        for (size_t i = 0; i < c->arrays[k].task_count; i++) {
            const struct cluster_task *t = &c->arrays[k].tasks[i];
            c->tasks_waiting += t->state == TASK_WAITS;
            c->tasks_running += t->state == TASK_RUNS || t->state == TASK_GONE;
            c->tasks_over += t->state >= TASK_UNDELIVERED;
            if (t->state == TASK_RUNS && !str_eq(t->node, last))
                c->nodes_running++;
            last = t->state == TASK_RUNS ? t->node : last;
        }
}

/* A queue may be long, and who only waits looks dead from elsewhere. */
static void touch(struct cluster *c)
{
    struct error ignored;
    uint64_t now = clock_now_ns();
    if (now < c->touched_ns + TOUCH_NS || c->out_of_reach)
        return;
    c->touched_ns = now;
    if (store_touch(c->s->store, c->s->experiment, &ignored) == -ENOTCONN)
        c->out_of_reach = true;
}

static size_t count_open(const struct cluster *c)
{
    size_t open = 0;
    for (size_t k = 0; k < c->array_count; k++)
        open += c->arrays[k].open_count;
    return open;
}

int cluster_look(struct cluster *c, struct error *err)
{
    int r = ask_scheduler(c, err);
    enum task_state first = count_open(c) <= LOOK_AT_ALL ? TASK_WAITS : TASK_RUNS;
    for (size_t k = 0; r == 0 && k < c->array_count; k++) {
        struct cluster_array *a = &c->arrays[k];
        for (size_t i = 0; r == 0 && a->open_count && i < a->task_count; i++)
            if (a->tasks[i].state >= first && a->tasks[i].state < TASK_OVER)
                r = look_at_task(c, a, i, err);
    }
    count_tasks(c);
    touch(c);
    return r;
}

/* ---- the end of all ---- */

void cluster_cancel(struct cluster *c)
{
    CLEANUP(memory_freep) char *stop = memory_printf("%s/stop", c->folder);
    CLEANUP(memory_freep) uint64_t *jobs = memory_zalloc(c->array_count + 1, sizeof(*jobs));
    size_t count = 0;
    struct error ignored;
    for (size_t k = 0; k < c->array_count; k++)
        if (c->arrays[k].open_count)
            jobs[count++] = c->arrays[k].job;
    if (!count)
        return;
    file_write(stop, "", 0, &ignored);
    slurm_cancel(jobs, count, &ignored);
    process_signals_clear(); /* another one ends the wait */
    uint64_t end_ns = clock_now_ns() + CANCEL_NS;
    while (clock_now_ns() < end_ns && !process_signals_caught()) {
        CLEANUP(slurm_tasks_done) struct slurm_tasks tasks = {0};
        if (slurm_queue(jobs, count, &tasks, &ignored) < 0)
            break;
        size_t alive = 0;
        for (size_t i = 0; i < tasks.count; i++)
            alive += tasks.items[i].state == SLURM_RUNS || tasks.items[i].state == SLURM_WAITS;
        if (!alive)
            break;
        process_poll_fds(NULL, 0, clock_now_ns() + NS_PER_S / 2, true);
    }
    for (size_t k = 0; k < c->array_count; k++)
        for (size_t i = 0; count_open(c) && i < c->arrays[k].task_count; i++) {
            CLEANUP(memory_freep)
            char *path = cluster_task_path(c, &c->arrays[k], i, ".spool");
            if (c->arrays[k].tasks[i].state < TASK_OVER)
                cluster_deliver(c, path, &ignored);
        }
}
