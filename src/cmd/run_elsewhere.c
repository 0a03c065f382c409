/* SPDX-License-Identifier: MIT */
/* See run_elsewhere.h. */
#include "cmd/run_elsewhere.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/term.h"
#include "cluster/cluster.h"
#include "cmd/cmd.h"
#include "run/command.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- the process that owns the experiment ---- */

/* A line for every tenth that is done, and at least one in each minute. */
#define LINE_EVERY_NS (60 * NS_PER_S)
#define LINE_AFTER_NS (2 * NS_PER_S)

/* On a terminal one line that is written over; else lines now and then, for a log. */
struct teller {
    struct progress progress;
    bool plain, quiet;
    uint64_t told_ns;
    size_t told_tenths;
};

static void put_progress(const struct cluster *c, struct strbuf *out)
{
    char eta[32];
    strbuf_printf(out, "%srun %zu of %zu; tasks: %zu finished, %zu running, %zu waiting%s%s",
                  session_progress(c->s).phase == SESSION_EXTRA ? "extra rounds: " : "",
                  c->ledger.runs_done, c->ledger.runs_wanted, c->tasks_over, c->tasks_running,
                  c->tasks_waiting, c->lost_count ? ", some were lost" : "",
                  c->out_of_reach ? ", the store cannot be reached" : "");
    if (c->eta_ns)
        strbuf_printf(out, ", about %s left", format_duration((double)c->eta_ns, eta, sizeof(eta)));
}

static bool is_time_for_a_line(struct teller *t, const struct cluster *c)
{
    uint64_t now = clock_now_ns();
    size_t tenths = c->ledger.runs_wanted ? c->ledger.runs_done * 10 / c->ledger.runs_wanted : 0;
    bool is_due = now > t->told_ns + (tenths > t->told_tenths ? LINE_AFTER_NS : LINE_EVERY_NS);
    if (is_due) {
        t->told_ns = now;
        t->told_tenths = tenths;
    }
    return is_due;
}

static void show_progress(const struct cluster *c, void *context)
{
    struct teller *t = context;
    if (session_has_notes(c->s)) { /* what happens is told when it happens */
        progress_end(&t->progress);
        run_show_notes(c->s, stderr);
    }
    if (t->quiet || (t->plain && !is_time_for_a_line(t, c)))
        return;
    CLEANUP(strbuf_done) struct strbuf line = {0};
    put_progress(c, &line);
    if (t->plain)
        fprintf(stderr, "assay run: %s\n", strbuf_text(&line));
    else
        progress_show(&t->progress, "%s", strbuf_text(&line));
}

struct words {
    char **items;
    size_t count, capacity;
};

static void words_done(struct words *w)
{
    ARRAY_PUSH(w->items, w->count, w->capacity) = NULL;
    command_free_words(w->items);
}

static void add(struct words *w, const char *text)
{
    ARRAY_PUSH(w->items, w->count, w->capacity) = memory_strdup(text);
}

static void add_pair(struct words *w, const char *option, const char *value)
{
    add(w, option);
    add(w, value);
}

/* How a task is run on a node: this very assay, with what changes a run. */
static int task_command(const struct session_options *o, uint64_t seed, struct words *w,
                        struct error *err)
{
    char own[PATH_MAX], spec[PATH_MAX], number[32];
    ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);
    if (length < 0)
        return error_errno(err, -errno, "/proc/self/exe");
    own[length] = '\0';
    if (!realpath(o->spec_path, spec))
        return error_errno(err, -errno, "%s", o->spec_path);
    add(w, own);
    add(w, "run");
    add(w, "--quiet");
    if (o->quick)
        add(w, "--quick");
    if (o->cpus)
        add_pair(w, "--cpus", o->cpus);
    if (o->output)
        add_pair(w, "--output", o->output);
    if (o->has_nice) {
        snprintf(number, sizeof(number), "%d", o->nice);
        add_pair(w, "--nice", number);
    }
    if (o->timeout_ns) {
        snprintf(number, sizeof(number), "%lluns", (unsigned long long)o->timeout_ns);
        add_pair(w, "--timeout", number);
    }
    for (size_t i = 0; i < o->monitor_count; i++)
        add_pair(w, "--monitor", o->monitors[i]);
    snprintf(number, sizeof(number), "%llu", (unsigned long long)seed);
    add_pair(w, "--seed", number);
    add(w, spec);
    ARRAY_PUSH(w->items, w->count, w->capacity) = NULL;
    w->count--;
    return 0;
}

static void show_plan(const struct cluster *c)
{
    const struct ledger *l = &c->ledger;
    fprintf(stderr,
            "assay run: %zu %s of cells that stay on one node, %zu %s to measure; files in %s\n",
            l->block_count, plural(l->block_count, "block", "blocks"), l->missing,
            plural(l->missing, "round", "rounds"), c->folder);
}

static int tell_end(struct cluster *c, int r, bool quiet, struct error *err)
{
    struct session *s = c->s;
    struct session_facts facts = session_facts(s);
    run_show_notes(s, stderr);
    if (r == -ENOTCONN)
        return cmd_fail(&verb_run, err, EXIT_TROUBLE);
    bool out_of_reach = run_tell_of_spool(s);
    if (r < 0) {
        cmd_fail(&verb_run, err, 0);
        fprintf(
            stderr,
            "What was measured is kept in experiment %lld; run the same command again to resume.\n",
            (long long)facts.experiment);
        return EXIT_TROUBLE;
    }
    if (facts.end == SESSION_STOPPED) {
        fprintf(stderr, "assay run: stopped; %zu %s kept; run the same command again to resume\n",
                c->ledger.runs_done, plural(c->ledger.runs_done, "run is", "runs are"));
        return 128 + c->signal;
    }
    if (!quiet && !out_of_reach && run_show_result(s, err) < 0)
        return cmd_fail(&verb_run, err, EXIT_TROUBLE);
    return EXIT_DONE;
}

static int run_cluster(struct session *s, const struct session_options *so,
                       struct cluster_options *co, bool quiet, struct error *err)
{
    struct session_facts facts = session_facts(s);
    struct teller *teller = co->context;
    struct cluster c;
    CLEANUP(words_done) struct words command = {0};
    int r = task_command(so, facts.seed, &command, err);
    if (r < 0)
        return cmd_fail(&verb_run, err, EXIT_TROUBLE);
    co->command = command.items;
    co->slurm.host_count = session_spec(s)->host_count;
    if (!quiet)
        run_show_start(s);
    run_show_notes(s, NULL);
    r = cluster_open(&c, s, co, err);
    if (r < 0) {
        store_finish(facts.store, facts.experiment, "stopped", NULL);
        cluster_close(&c);
        return cmd_fail(&verb_run, err, EXIT_TROUBLE);
    }
    if (!quiet && c.ledger.missing)
        show_plan(&c);
    r = cluster_run(&c, err);
    progress_end(&teller->progress);
    int code = tell_end(&c, r, quiet, err);
    cluster_close(&c);
    return code;
}

int run_elsewhere(struct session_options *so, const struct elsewhere_options *o, bool quiet)
{
    struct error err = {0};
    struct teller teller = {
        .quiet = quiet, .plain = !isatty(STDERR_FILENO), .told_ns = clock_now_ns()};
    struct session *s = NULL;
    struct cluster_options co = {.slurm = {.partition = o->partition,
                                           .constraint = o->constraint,
                                           .args = o->slurm_args,
                                           .exclusive = o->exclusive,
                                           .throttle = o->throttle},
                                 .spool = o->spool,
                                 .together = o->together,
                                 .tries = o->tries,
                                 .on_progress = show_progress,
                                 .context = &teller};
    if (slurm_check(&co.slurm, &err) < 0) {
        cmd_fail(&verb_run, &err, 0);
        fputs("Nothing was started. Without --on it runs on this machine.\n", stderr);
        return EXIT_TROUBLE;
    }
    so->elsewhere = true;
    so->on_progress = NULL;
    progress_start(&teller.progress);
    process_signals_catch();
    int code = EXIT_TROUBLE, r = session_open(&s, so, &err);
    if (r < 0) {
        progress_end(&teller.progress);
        code =
            r == -EINTR ? 128 + process_signals_caught() : cmd_fail(&verb_run, &err, EXIT_TROUBLE);
    } else {
        code = run_cluster(s, so, &co, quiet, &err);
    }
    session_close(s);
    process_signals_restore();
    return code;
}

/* ---- a task ---- */

static int read_spec(const char *task, struct strbuf *text, struct error *err)
{
    CLEANUP(memory_freep) char *folder = memory_strdup(task);
    for (int i = 0; i < 2; i++) {
        char *end = strrchr(folder, '/');
        if (!end || end == folder)
            return error_set(err, -EINVAL, "--task %s: must be DIRECTORY/NUMBER/NUMBER", task);
        *end = '\0';
    }
    CLEANUP(memory_freep) char *spec = memory_printf("%s/spec.yaml", folder);
    return file_read(spec, text, err);
}

/* It tells how it ended in a file: the scheduler's word comes late, and says less. */
static int end_task(const struct session *s, const char *task, int r, const struct error *err)
{
    CLEANUP(memory_freep) char *path = memory_printf("%s.end", task);
    struct session_facts facts = session_facts(s);
    CLEANUP(memory_freep) char *node = facts.node ? memory_strdup(facts.node) : node_name();
    enum task_end end = r == -ENOTSUP && facts.uncounted                     ? TASK_UNCOUNTED
                        : r == -ENOTSUP && !session_progress(s).runs_planned ? TASK_UNFIT
                        : r == -EINTR                                        ? TASK_STOPPED
                        : r < 0                                              ? TASK_FAILED
                        : facts.end == SESSION_STOPPED                       ? TASK_STOPPED
                                                                             : TASK_DONE;
    struct error why = {0};
    if (task_end_write(path, end, node, r < 0 ? err->message : "", &why) < 0)
        return cmd_fail(&verb_run, &why, EXIT_TROUBLE);
    if (r < 0)
        return cmd_fail(&verb_run, err, EXIT_TROUBLE);
    return end == TASK_DONE ? EXIT_DONE : EXIT_TROUBLE;
}

int run_task(struct session_options *so, const char *task)
{
    struct error err = {0};
    struct session *s;
    CLEANUP(strbuf_done) struct strbuf spec = {0};
    int r = read_spec(task, &spec, &err);
    if (r < 0)
        return cmd_fail(&verb_run, &err, EXIT_TROUBLE);
    so->task = task;
    so->spec_text = strbuf_text(&spec);
    so->on_progress = NULL;
    process_signals_catch();
    r = session_open(&s, so, &err);
    if (r == 0)
        r = session_run(s, &err);
    int code = end_task(s, task, r, &err);
    session_close(s);
    process_signals_restore();
    return code;
}
