/* SPDX-License-Identifier: MIT */
/*
 * Profiles on the nodes, after all rounds: a task for each block of which the spec wants profiles,
 * so that what is compared is recorded on one node.  Tasks leave the recordings in the spool
 * folder; they are moved to where those of one machine are, and the store learns of them.
 */
#include "base/fd.h"
#include "base/memory.h"
#include "cluster/cluster_internal.h"
#include "session/session_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static bool is_wanted_block(const struct ledger *l, uint32_t block, const bool *wanted)
{
    for (size_t i = l->starts[block]; i < l->starts[block + 1]; i++)
        if (wanted[l->cells[i]])
            return true;
    return false;
}

/* Tasks of the same needs follow each other. */
static void make_batch(const struct ledger *l, const bool *wanted, struct ledger_batch *batch)
{
    *batch = (struct ledger_batch){0};
    for (size_t k = 0; k < l->kind_count; k++)
        for (uint32_t b = 0; b < l->block_count; b++) {
            if (l->needs[b] != l->kinds[k] || !is_wanted_block(l, b, wanted))
                continue;
            ARRAY_PUSH(batch->tasks, batch->task_count, batch->task_capacity) =
                (struct ledger_task){.first = batch->unit_count, .count = 1, .needs = l->needs[b]};
            ARRAY_PUSH(batch->units, batch->unit_count, batch->unit_capacity) =
                (struct ledger_unit){.block = b};
        }
}

/* A store that is out of reach is not waited for: nothing of theirs goes there. */
static bool is_over(const struct cluster *c)
{
    for (size_t k = 0; k < c->array_count; k++)
        for (size_t t = 0; c->arrays[k].only && t < c->arrays[k].task_count; t++)
            if (c->arrays[k].tasks[t].state < TASK_UNDELIVERED)
                return false;
    return true;
}

/* ---- what they left ---- */

/* Across file systems as well. */
static int move_file(const char *from, const char *to, struct error *err)
{
    if (rename(from, to) == 0)
        return 0;
    if (errno != EXDEV)
        return error_errno(err, -errno, "moving %s", from);
    CLEANUP(strbuf_done) struct strbuf bytes = {0};
    int r = file_read(from, &bytes, err);
    return r < 0 ? r : file_write(to, bytes.data, bytes.length, err);
}

/* "CELL WORK PATH" or "CELL - WORDS". */
static void take_line(struct cluster *c, char *line, struct strbuf *lists, size_t *counts)
{
    char *rest, *path;
    struct error err = {0};
    unsigned long cell = strtoul(line, &rest, 10);
    if (*rest++ != ' ' || cell < 1 || cell > c->s->matrix.count || !(path = strchr(rest, ' ')))
        return;
    *path++ = '\0';
    const char *label = c->s->matrix.cells[--cell].label;
    if (str_eq(rest, "-")) {
        strbuf_printf(&c->s->notes, "no profile of %s: %s\n", label, path);
        return;
    }
    CLEANUP(memory_freep) char *to = session_profile_path(c->s, cell, counts[cell]++);
    if (!to)
        error_errno(&err, -errno, "creating a directory for profiles");
    if (!to || move_file(path, to, &err) < 0)
        strbuf_printf(&c->s->notes, "no profile of %s: %s\n", label, err.message);
    else
        strbuf_printf(&lists[cell], "%s %s\n", rest, to);
}

static void take_profiles(struct cluster *c, const char *list_path, struct strbuf *lists,
                          size_t *counts)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    struct error ignored;
    if (file_read(list_path, &text, &ignored) < 0)
        return;
    char *save = NULL;
    for (char *line = strtok_r(text.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        take_line(c, line, lists, counts);
}

static void keep_all(struct cluster *c, const bool *wanted)
{
    size_t cell_count = c->s->matrix.count;
    struct strbuf *lists = memory_zalloc(cell_count + 1, sizeof(*lists));
    CLEANUP(memory_freep) size_t *counts = memory_zalloc(cell_count + 1, sizeof(*counts));
    for (size_t k = 0; k < c->array_count; k++)
        for (size_t t = 0; c->arrays[k].only == wanted && t < c->arrays[k].task_count; t++) {
            CLEANUP(memory_freep) char *path = cluster_task_path(c, &c->arrays[k], t, ".profiles");
            take_profiles(c, path, lists, counts);
        }
    for (size_t i = 0; i < cell_count; i++) {
        if (lists[i].length) {
            session_keep_profiles(c->s, i, &lists[i]);
            c->has_profiles = true;
        }
        strbuf_done(&lists[i]);
    }
    free(lists);
}

static int record(struct cluster *c, const bool *wanted, struct error *err)
{
    CLEANUP(slurm_nodes_done) struct slurm_nodes nodes = {0};
    struct ledger_batch batch;
    make_batch(&c->ledger, wanted, &batch);
    int r = batch.task_count ? slurm_list_nodes(&c->options->slurm, &nodes, err) : 0;
    if (r == 0)
        r = cluster_submit_batch(c, &nodes, &batch, wanted, err);
    ledger_batch_done(&batch);
    if (r == 0)
        r = cluster_watch(c, is_over, err);
    if (r != -EINTR)
        keep_all(c, wanted);
    return r;
}

int cluster_profile(struct cluster *c, struct error *err)
{
    struct session *s = c->s;
    if (s->spec.profile == PROFILE_NONE || c->ledger.given_up || c->out_of_reach)
        return 0;
    CLEANUP(memory_freep) bool *wanted = memory_zalloc(s->matrix.count + 1, sizeof(*wanted));
    int r = session_take_over(s, err);
    for (size_t i = 0; r == 0 && i < s->matrix.count; i++)
        wanted[i] = session_profile_wanted(s, i);
    if (r == 0)
        r = record(c, wanted, err);
    for (size_t k = 0; k < c->array_count; k++) /* they end with this function */
        if (c->arrays[k].only)
            c->arrays[k].only = NULL;
    if (r == 0 || r == -EINTR)
        return r;
    strbuf_printf(&s->notes, "no profiles: %s\n", err->message); /* the measurements stand */
    return 0;
}
