/* SPDX-License-Identifier: MIT */
/* See cluster.h: opening, and the loop. */
#include "cluster/cluster.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "cluster/cluster_internal.h"
#include "session/session_internal.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define STEP_NS (NS_PER_S / 4)
/* How long the last results wait for a store that is out of reach. */
#define STORE_WAIT_NS (60 * NS_PER_S)
#define ROUNDS_CEILING 10000

static uint32_t needs_of(void *context, size_t cell)
{
    const struct cluster *c = context;
    return needs_of_cell(&c->needs, &c->s->matrix, cell);
}

static int read_together(const struct cluster *c, bool *together, struct error *err)
{
    const struct spec *spec = &c->s->spec;
    const char *list = c->options->together;
    if (!list)
        return 0;
    CLEANUP(memory_freep) char *copy = memory_strdup(list);
    char *save = NULL;
    for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        bool all = str_eq(word, "all"), found = all;
        for (size_t f = 0; f < spec->factor_count; f++)
            if (all || str_eq(spec->factors[f].name, word))
                together[f] = found = true;
        if (!found)
            return error_set(err, -EINVAL, "--together: there is no factor '%s'", word);
    }
    return 0;
}

/* All rounds of all blocks; those that the store has are done. */
static void want_rounds(struct cluster *c, uint64_t rounds)
{
    struct ledger *l = &c->ledger;
    for (uint64_t round = 0; round < rounds; round++)
        for (uint32_t b = 0; b < l->block_count; b++) {
            ledger_want(l, b, round);
            bool done = true;
            for (size_t i = l->starts[b]; done && i < l->starts[b + 1]; i++)
                done = session_has_round(&c->s->cells[l->cells[i]], round);
            if (done)
                ledger_finish(l, (struct ledger_unit){.block = b, .round = (uint32_t)round});
        }
}

static int make_folder(struct cluster *c, struct error *err)
{
    char absolute[PATH_MAX];
    const struct spec *spec = &c->s->spec;
    CLEANUP(memory_freep)
    char *place = c->options->spool ? memory_strdup(c->options->spool)
                                    : memory_printf("%s/.assay/cluster", spec->folder);
    int r = cluster_make_folder(place, err);
    if (r < 0)
        return r;
    if (!realpath(place, absolute))
        return error_errno(err, -errno, "%s", place);
    c->spool = memory_strdup(absolute);
    c->folder = memory_printf("%s/%s", c->spool, store_uuid(c->s->store));
    r = cluster_make_folder(c->folder, err);
    CLEANUP(memory_freep) char *path = memory_printf("%s/spec.yaml", c->folder);
    CLEANUP(memory_freep) char *stop = memory_printf("%s/stop", c->folder);
    if (r == 0)
        r = file_write(path, spec->text, strlen(spec->text), err);
    unlink(stop);
    return r;
}

int cluster_open(struct cluster *c, struct session *s, const struct cluster_options *options,
                 struct error *err)
{
    *c = (struct cluster){.s = s, .options = options, .started_ns = clock_now_ns()};
    bool together[SPEC_FACTORS_MAX] = {false};
    struct machine machine;
    machine_probe(&machine, MACHINE_QUICK);
    int r = needs_read(&c->needs, &s->matrix, &machine, err);
    machine_done(&machine);
    if (r == 0)
        r = read_together(c, together, err);
    if (r == 0)
        r = make_folder(c, err);
    if (r < 0)
        return r;
    struct ledger_spec spec = {.matrix = &s->matrix,
                               .kept = s->kept,
                               .together = together,
                               .needs_of = needs_of,
                               .context = c};
    ledger_init(&c->ledger, &spec);
    want_rounds(c, s->spec.rounds);
    c->array_most = slurm_array_most();
    r = cluster_deliver_left(c, err);
    c->runs_before = c->ledger.runs_done;
    c->spent_before_ns = s->spent_ns;
    return r;
}

void cluster_close(struct cluster *c)
{
    for (size_t i = 0; i < c->array_count; i++) {
        free(c->arrays[i].units);
        free(c->arrays[i].tasks);
    }
    free(c->arrays);
    free(c->exclusions);
    free(c->spool);
    free(c->folder);
    ledger_done(&c->ledger);
    *c = (struct cluster){0};
}

static void guess_time(struct cluster *c)
{
    size_t done = c->ledger.runs_done - c->runs_before;
    size_t left = c->ledger.runs_wanted - c->ledger.runs_done;
    c->eta_ns = 0;
    if (done && left)
        c->eta_ns =
            (uint64_t)((double)(clock_now_ns() - c->started_ns) / (double)done * (double)left);
}

static void tell(struct cluster *c)
{
    guess_time(c);
    c->s->runs_done = c->ledger.runs_done - c->runs_before;
    c->s->runs_planned = c->ledger.runs_wanted - c->runs_before;
    if (c->options->on_progress)
        c->options->on_progress(c, c->options->context);
}

/* Waits a step, less when a signal comes. */
static void wait_step(void)
{
    process_poll_fds(NULL, 0, clock_now_ns() + STEP_NS, true);
}

static bool all_is_over(const struct cluster *c)
{
    return c->ledger.missing == 0 && c->ledger.queued == 0;
}

static int give_up_words(const struct cluster *c, struct error *err)
{
    if (!c->ledger.given_up)
        return 0;
    return error_set(err, -ECANCELED, "%s",
                     c->last_failure[0] ? c->last_failure : "some rounds could not be measured");
}

static bool over_budget(const struct cluster *c)
{
    return c->s->spec.budget_ns &&
           c->spent_before_ns + (clock_now_ns() - c->started_ns) >= c->s->spec.budget_ns;
}

/* A round of each block at least is measured, however long it takes, as on one machine. */
static bool has_a_round(const struct cluster *c)
{
    const struct ledger *l = &c->ledger;
    for (uint32_t b = 0; b < l->block_count; b++) {
        bool found = false;
        for (uint32_t r = 0; !found && r < l->round_count; r++)
            found = ledger_state(l, (struct ledger_unit){.block = b, .round = r}) == UNIT_DONE;
        if (!found)
            return false;
    }
    return true;
}

/* What is queued and what runs is cancelled; complete rounds are kept. */
static void end_by_budget(struct cluster *c)
{
    cluster_cancel(c);
    if (c->ledger.runs_done < c->ledger.runs_wanted)
        strbuf_printf(&c->s->notes, "the budget ended after %zu of %zu %s\n", c->ledger.runs_done,
                      c->ledger.runs_wanted, plural(c->ledger.runs_wanted, "run", "runs"));
}

/* As if the signal that the task got had been for all. */
static int stop_if_cancelled(struct cluster *c, struct error *err)
{
    if (!c->cancelled)
        return 0;
    c->signal = SIGTERM;
    return error_set(err, -EINTR, "cancelled");
}

int cluster_watch(struct cluster *c, bool (*is_over)(const struct cluster *), struct error *err)
{
    while (true) {
        c->signal = process_signals_caught();
        if (c->signal)
            return error_set(err, -EINTR, "interrupted");
        int r = cluster_look(c, err);
        if (r == 0)
            r = stop_if_cancelled(c, err);
        if (r < 0)
            return r;
        tell(c);
        if (is_over(c))
            return 0;
        wait_step();
    }
}

/* Until nothing is missing or queued, or the budget is used up.  -EINTR for a signal. */
static int run_all(struct cluster *c, struct error *err)
{
    uint64_t lost_ns = 0;
    while (true) {
        c->signal = process_signals_caught();
        if (c->signal)
            return error_set(err, -EINTR, "interrupted");
        if (c->failed)
            return give_up_words(c, err);
        int r = c->ledger.missing ? cluster_submit(c, err) : 0;
        if (r == 0)
            r = cluster_look(c, err);
        if (r == 0)
            r = stop_if_cancelled(c, err);
        if (r < 0)
            return r;
        tell(c);
        if (all_is_over(c) && !c->failed)
            return 0;
        if (!c->out_of_reach && over_budget(c) && has_a_round(c)) {
            end_by_budget(c);
            return 0;
        }
        bool only_store = c->out_of_reach && !c->tasks_waiting && !c->tasks_running;
        lost_ns = only_store ? lost_ns ? lost_ns : clock_now_ns() : 0;
        if (lost_ns && clock_now_ns() > lost_ns + STORE_WAIT_NS)
            return error_set(
                err, -ENOTCONN,
                "the store cannot be reached; nothing is lost: the measurements are in %s;\n"
                "run the same command again to deliver them",
                c->folder);
        wait_step();
    }
}

/* ---- more rounds ---- */

static uint64_t next_round(const struct cluster *c)
{
    uint64_t next = c->s->spec.rounds;
    for (size_t i = 0; i < c->s->matrix.count; i++) {
        const struct session_cell *cell = &c->s->cells[i];
        if (cell->count && cell->rounds[cell->count - 1] >= next)
            next = cell->rounds[cell->count - 1] + 1ULL;
    }
    return next;
}

/* As many rounds as there are nodes to share them: a round more costs no time then. */
static void want_extra(struct cluster *c, const size_t *cells, size_t count, uint64_t first,
                       uint64_t most)
{
    struct ledger *l = &c->ledger;
    uint64_t rounds = l->block_count < c->node_count ? c->node_count / l->block_count : 1;
    for (uint64_t r = first; r < first + rounds && r < most; r++)
        for (size_t i = 0; i < count; i++)
            ledger_want(l, l->block_of[cells[i]], r);
}

static int extra_rounds(struct cluster *c, struct error *err)
{
    struct session *s = c->s;
    if (!session_wants_extra(s))
        return 0;
    uint64_t most = s->spec.rounds_max ? s->spec.rounds_max : ROUNDS_CEILING;
    CLEANUP(memory_freep) size_t *cells = memory_zalloc(s->matrix.count + 1, sizeof(*cells));
    s->phase = SESSION_EXTRA;
    while (!over_budget(c)) {
        int r = session_take_over(s, err);
        if (r < 0)
            return r;
        size_t count = session_choose_extra(s, cells);
        uint64_t first = next_round(c);
        if (count == 0 || first >= most)
            return 0;
        want_extra(c, cells, count, first, most);
        r = run_all(c, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- the whole ---- */

int cluster_run(struct cluster *c, struct error *err)
{
    struct session *s = c->s;
    s->phase = SESSION_ROUNDS;
    int r = run_all(c, err);
    if (r == 0 && !c->ledger.given_up)
        r = extra_rounds(c, err);
    if (r == 0)
        r = cluster_profile(c, err);
    if (r < 0)
        cluster_cancel(c);
    if (r == 0)
        r = give_up_words(c, err);
    struct error nodes_err;
    int kept = cluster_keep_nodes(c, &nodes_err);
    s->runs_done = c->ledger.runs_done - c->runs_before;
    s->end = r == 0 ? SESSION_DONE : r == -EINTR ? SESSION_STOPPED : SESSION_FAILED;
    if (r == -ENOTCONN)
        return r;
    static const char *const states[] = {"done", "stopped", "failed"};
    struct error ignored;
    int finished = store_finish(s->store, s->experiment, states[s->end], r < 0 ? &ignored : err);
    if (s->end == SESSION_DONE && kept == 0 && finished == 0 && !store_waiting(s->store, NULL))
        cluster_remove_folder(c);
    if (r == -EINTR)
        r = 0;
    return r < 0 ? r : finished;
}
