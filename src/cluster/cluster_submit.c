/* SPDX-License-Identifier: MIT */
/* Handing out what is missing: which nodes are left out, the files of each task, and sbatch. */
#include "base/fd.h"
#include "base/memory.h"
#include "cluster/cluster_internal.h"
#include "cluster/task_text.h"

#include <errno.h>
#include <stdio.h>

char *cluster_task_path(const struct cluster *c, const struct cluster_array *a, size_t task,
                        const char *suffix)
{
    return memory_printf("%s/%u/%zu%s", c->folder, a->number, task, suffix);
}

/* ---- nodes that are left out ---- */

void cluster_exclude(struct cluster *c, const struct cluster_exclusion *exclusion)
{
    if (!exclusion->node[0])
        return;
    for (size_t i = 0; i < c->exclusion_count; i++) {
        const struct cluster_exclusion *e = &c->exclusions[i];
        if (str_eq(e->node, exclusion->node) && e->failed == exclusion->failed &&
            e->needs == exclusion->needs && e->soft == exclusion->soft)
            return;
    }
    ARRAY_PUSH(c->exclusions, c->exclusion_count, c->exclusion_capacity) = *exclusion;
}

/* A node that could not measure what needs less cannot measure this either. */
static bool applies(const struct cluster *c, const struct cluster_exclusion *e, uint32_t needs)
{
    if (e->failed)
        return true;
    return e->soft ? !c->waived : (e->needs & needs) == e->needs;
}

static bool is_excluded(const struct cluster *c, const char *node, uint32_t needs,
                        bool even_when_failed)
{
    for (size_t i = 0; i < c->exclusion_count; i++)
        if (str_eq(c->exclusions[i].node, node) && applies(c, &c->exclusions[i], needs) &&
            (even_when_failed || !c->exclusions[i].failed))
            return true;
    return false;
}

static size_t count_left(const struct cluster *c, const struct slurm_nodes *nodes, uint32_t needs,
                         bool even_when_failed)
{
    size_t left = 0;
    for (size_t i = 0; i < nodes->count; i++)
        left += nodes->items[i].usable &&
                !is_excluded(c, nodes->items[i].name, needs, even_when_failed);
    return left;
}

static void forget_failures(struct cluster *c)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->exclusion_count; i++)
        if (!c->exclusions[i].failed)
            c->exclusions[kept++] = c->exclusions[i];
    c->exclusion_count = kept;
}

static bool has_soft(const struct cluster *c)
{
    for (size_t i = 0; i < c->exclusion_count; i++)
        if (c->exclusions[i].soft)
            return true;
    return false;
}

/* Whether some node may do the task.  When all have failed once, all get another chance, until the
 * tries are used up; when none has the counters, they are left out. */
static bool find_node_for(struct cluster *c, const struct slurm_nodes *nodes, uint32_t needs)
{
    size_t hosts = c->options->slurm.host_count ? c->options->slurm.host_count : 1;
    if (nodes->count == 0 || count_left(c, nodes, needs, true) >= hosts)
        return true;
    if (count_left(c, nodes, needs, false) >= hosts) {
        forget_failures(c);
        return true;
    }
    if (!c->waived && has_soft(c)) {
        c->waived = true;
        strbuf_puts(&c->s->notes, "no node has all of the spec's counters; running without them\n");
        return find_node_for(c, nodes, needs);
    }
    for (size_t i = 0; i < nodes->count; i++)
        if (!nodes->items[i].usable && !is_excluded(c, nodes->items[i].name, needs, false))
            return true; /* it may come back: the scheduler lets the task wait */
    return false;
}

static void put_excluded(const struct cluster *c, const struct slurm_nodes *nodes, uint32_t needs,
                         struct strbuf *out)
{
    for (size_t i = 0; i < nodes->count; i++)
        if (is_excluded(c, nodes->items[i].name, needs, true))
            strbuf_printf(out, "%s%s", out->length ? "," : "", nodes->items[i].name);
}

/* ---- one array ---- */

/* The task's number is the scheduler's, so one script does for all. */
static void put_script(const struct cluster *c, const struct cluster_array *a, struct strbuf *out)
{
    CLEANUP(memory_freep) char *folder = memory_printf("%s/%u/", c->folder, a->number);
    char *const words[] = {folder, NULL};
    strbuf_puts(out, "#!/bin/sh\n# Written by assay run --on slurm.\nexec ");
    strbuf_put_command(out, c->options->command);
    strbuf_puts(out, " --task ");
    strbuf_put_command(out, words);
    strbuf_puts(out, "\"$SLURM_ARRAY_TASK_ID\"\n");
}

static int write_tasks(struct cluster *c, const struct cluster_array *a, struct error *err)
{
    int r = 0;
    for (size_t t = 0; r == 0 && t < a->task_count; t++) {
        CLEANUP(memory_freep) char *path = cluster_task_path(c, a, t, ".task");
        CLEANUP(strbuf_done) struct strbuf text = {0};
        const struct ledger_task *units = &a->tasks[t].units;
        struct task_text what = {.ledger = &c->ledger,
                                 .units = a->units + units->first,
                                 .unit_count = units->count,
                                 .uuid = store_uuid(c->s->store),
                                 .mode = a->only     ? TASK_PROFILES
                                         : c->waived ? TASK_WAIVED
                                                     : TASK_ALL,
                                 .only = a->only};
        task_plan_write(&text, &what);
        r = file_write(path, text.data, text.length, err);
    }
    return r;
}

static int submit_array(struct cluster *c, struct cluster_array *a, const char *exclude,
                        struct error *err)
{
    CLEANUP(memory_freep) char *folder = memory_printf("%s/%u", c->folder, a->number);
    CLEANUP(memory_freep) char *script_path = memory_printf("%s/job.sh", folder);
    CLEANUP(memory_freep) char *job_path = memory_printf("%s/job", folder);
    CLEANUP(memory_freep) char *output = memory_printf("%s/%%a.out", folder);
    CLEANUP(memory_freep) char *name = memory_printf("assay-%s", c->s->spec.name);
    CLEANUP(strbuf_done) struct strbuf script = {0};
    int r = cluster_make_folder(folder, err);
    if (r == 0)
        r = write_tasks(c, a, err);
    put_script(c, a, &script);
    if (r == 0)
        r = file_write(script_path, script.data, script.length, err);
    struct slurm_job job = {.name = name,
                            .script = script_path,
                            .output = output,
                            .exclude = exclude,
                            .task_count = a->task_count};
    if (r == 0)
        r = slurm_submit(&c->options->slurm, &job, &a->job, err);
    char number[32];
    int length = snprintf(number, sizeof(number), "%llu\n", (unsigned long long)a->job);
    if (r == 0)
        r = file_write(job_path, number, (size_t)length, err);
    return r;
}

/* The tasks [first, end) of the batch, which need the same. */
static struct cluster_array *add_array(struct cluster *c, const struct ledger_batch *batch,
                                       size_t first, size_t end)
{
    struct cluster_array a = {.number = c->next_number++, .task_count = end - first};
    size_t unit = batch->tasks[first].first;
    size_t last = batch->tasks[end - 1].first + batch->tasks[end - 1].count;
    a.tasks = memory_zalloc(a.task_count, sizeof(*a.tasks));
    a.units = memory_zalloc(last - unit, sizeof(*a.units));
    memcpy(a.units, batch->units + unit, (last - unit) * sizeof(*a.units));
    for (size_t t = 0; t < a.task_count; t++) {
        a.tasks[t].units = batch->tasks[first + t];
        a.tasks[t].units.first -= unit;
    }
    a.open_count = a.task_count;
    ARRAY_PUSH(c->arrays, c->array_count, c->array_capacity) = a;
    return &c->arrays[c->array_count - 1];
}

static void give_up(struct cluster *c, const struct ledger_batch *batch,
                    const struct ledger_task *t)
{
    for (size_t u = 0; u < t->count; u++)
        ledger_give_up(&c->ledger, batch->units[t->first + u]);
}

static void drop_array(struct cluster *c)
{
    struct cluster_array *a = &c->arrays[--c->array_count];
    free(a->units);
    free(a->tasks);
}

/* Why no node will do; the last that a node said of it. */
static void tell_unfit(struct cluster *c, uint32_t needs)
{
    if (c->last_failure[0])
        return;
    CLEANUP(strbuf_done) struct strbuf names = {0};
    for (size_t i = 0; i < c->needs.count; i++)
        if (needs & 1u << i)
            strbuf_printf(&names, "%s%.*s", names.length ? ", " : "", (int)c->needs.lengths[i],
                          c->needs.names[i]);
    snprintf(c->last_failure, sizeof(c->last_failure),
             "no node has what some cells need (%s); the others were measured",
             strbuf_text(&names));
}

int cluster_submit_batch(struct cluster *c, const struct slurm_nodes *nodes,
                         const struct ledger_batch *batch, const bool *only, struct error *err)
{
    int r = 0;
    for (size_t first = 0, end; r == 0 && first < batch->task_count; first = end) {
        uint32_t needs = batch->tasks[first].needs;
        for (end = first; end < batch->task_count && batch->tasks[end].needs == needs &&
                          end - first < c->array_most;
             end++)
            ;
        if (!find_node_for(c, nodes, needs)) {
            for (size_t t = first; t < end; t++)
                give_up(c, batch, &batch->tasks[t]);
            tell_unfit(c, needs);
            continue;
        }
        CLEANUP(strbuf_done) struct strbuf exclude = {0};
        put_excluded(c, nodes, needs, &exclude);
        struct cluster_array *a = add_array(c, batch, first, end);
        a->only = only;
        r = submit_array(c, a, strbuf_text(&exclude), err);
        if (r < 0)
            drop_array(c);
    }
    return r;
}

/* Tasks then wait in the queue, perhaps for days: Slurm knows why. */
static void tell_of_unusable(struct cluster *c, const struct slurm_nodes *nodes)
{
    if (c->node_count || !nodes->count || c->told_unusable)
        return;
    c->told_unusable = true;
    strbuf_puts(&c->s->notes, "no node can run anything now; tasks wait until one can:\n");
    for (size_t i = 0; i < nodes->count; i++) {
        const struct slurm_node *n = &nodes->items[i];
        if (!n->usable)
            strbuf_printf(&c->s->notes, "  node %s: %s%s%s\n", n->name, n->state,
                          n->reason[0] ? ": " : "", n->reason);
    }
}

int cluster_submit(struct cluster *c, struct error *err)
{
    CLEANUP(slurm_nodes_done) struct slurm_nodes nodes = {0};
    int r = slurm_list_nodes(&c->options->slurm, &nodes, err);
    if (r < 0)
        return r;
    c->node_count = count_left(c, &nodes, 0, true);
    tell_of_unusable(c, &nodes);
    struct ledger_limits limits = {.node_count = c->node_count, .seed = c->s->seed};
    struct ledger_batch batch;
    ledger_take(&c->ledger, &limits, &batch);
    r = cluster_submit_batch(c, &nodes, &batch, NULL, err);
    ledger_batch_done(&batch);
    return r;
}
