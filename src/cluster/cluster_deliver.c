/* SPDX-License-Identifier: MIT */
/* From the tasks' files into the store, also from those that an earlier process left. */
#include "base/fd.h"
#include "base/memory.h"
#include "cluster/cluster_internal.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- units ---- */

static uint64_t unit_of(void *context, int64_t cell, uint64_t round)
{
    const struct cluster *c = context;
    const struct ledger *l = &c->ledger;
    if (cell < 1 || (uint64_t)cell > c->s->matrix.count || round > UINT32_MAX)
        return UINT64_MAX;
    struct ledger_unit unit = {.block = l->block_of[cell - 1], .round = (uint32_t)round};
    if (unit.block == LEDGER_NONE || ledger_state(l, unit) == UNIT_DONE)
        return UINT64_MAX; /* measured elsewhere as well */
    return round * l->block_count + unit.block;
}

static struct ledger_unit unit_at(const struct ledger *l, uint64_t number)
{
    return (struct ledger_unit){.block = (uint32_t)(number % l->block_count),
                                .round = (uint32_t)(number / l->block_count)};
}

static size_t size_of(void *context, uint64_t number)
{
    const struct ledger *l = &((const struct cluster *)context)->ledger;
    return ledger_block_size(l, unit_at(l, number).block);
}

static int64_t id_of(void *context, int64_t cell)
{
    return ((const struct cluster *)context)->s->cells[cell - 1].id;
}

static bool is_good(void *context, int status)
{
    return status == 0 || ((const struct cluster *)context)->s->spec.allow_failures;
}

static void on_delivered(void *context, uint64_t number)
{
    struct ledger *l = &((struct cluster *)context)->ledger;
    struct ledger_unit unit = unit_at(l, number);
    ledger_want(l, unit.block, unit.round); /* an extra round of an earlier process */
    ledger_finish(l, unit);
}

int cluster_deliver(struct cluster *c, const char *spool_path, struct error *err)
{
    const struct store_units units = {.unit_of = unit_of,
                                      .size_of = size_of,
                                      .id_of = id_of,
                                      .is_good = is_good,
                                      .on_delivered = on_delivered,
                                      .context = c};
    int r = c->out_of_reach ? store_reconnect(c->s->store, err) : 0;
    if (r == 0)
        r = store_deliver_task(c->s->store, c->s->experiment, spool_path, &units, err);
    c->out_of_reach = r == -ENOTCONN;
    return r;
}

/* ---- what was left ---- */

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return versionsort(a, b);
}

static int is_number(const struct dirent *entry)
{
    return entry->d_name[strspn(entry->d_name, "0123456789")] == '\0';
}

static int is_spool(const struct dirent *entry)
{
    return str_has_suffix(entry->d_name, ".spool");
}

/* What the array's tasks measured, and its job's number (0: it was never submitted). */
static int deliver_array(struct cluster *c, const char *folder, uint64_t *ret_job,
                         struct error *err)
{
    CLEANUP(memory_freep) char *job_path = memory_printf("%s/job", folder);
    char line[32];
    if (file_read_line(job_path, line, sizeof(line)) && parse_u64(line, ret_job, NULL) < 0)
        *ret_job = 0;
    struct dirent **files = NULL;
    int count = scandir(folder, &files, is_spool, by_name), r = 0;
    for (int i = 0; i < count; i++) {
        CLEANUP(memory_freep) char *path = memory_printf("%s/%s", folder, files[i]->d_name);
        if (r == 0)
            r = cluster_deliver(c, path, err);
        free(files[i]);
    }
    free(files);
    return r;
}

int cluster_deliver_left(struct cluster *c, struct error *err)
{
    struct dirent **folders = NULL;
    int count = scandir(c->folder, &folders, is_number, by_name), r = 0;
    uint64_t *jobs = NULL;
    size_t job_count = 0, job_capacity = 0;
    for (int i = 0; i < count; i++) {
        CLEANUP(memory_freep) char *path = memory_printf("%s/%s", c->folder, folders[i]->d_name);
        unsigned number = (unsigned)strtoul(folders[i]->d_name, NULL, 10);
        uint64_t job = 0;
        c->next_number = number >= c->next_number ? number + 1 : c->next_number;
        if (r == 0)
            r = deliver_array(c, path, &job, err);
        if (job)
            ARRAY_PUSH(jobs, job_count, job_capacity) = job;
        free(folders[i]);
    }
    free(folders);
    struct error ignored; /* they ended long ago, most likely */
    slurm_cancel(jobs, job_count, &ignored);
    free(jobs);
    return r;
}

/* ---- nodes ---- */

static int is_json(const struct dirent *entry)
{
    return str_has_suffix(entry->d_name, ".json") && entry->d_name[0] != '.';
}

int cluster_keep_nodes(struct cluster *c, struct error *err)
{
    CLEANUP(memory_freep) char *folder = memory_printf("%s/nodes", c->folder);
    struct dirent **files = NULL;
    int count = scandir(folder, &files, is_json, by_name), r = 0;
    for (int i = 0; i < count; i++) {
        CLEANUP(memory_freep) char *path = memory_printf("%s/%s", folder, files[i]->d_name);
        CLEANUP(memory_freep)
        char *kind = memory_printf("node:%.*s", (int)(strlen(files[i]->d_name) - strlen(".json")),
                                   files[i]->d_name);
        CLEANUP(strbuf_done) struct strbuf text = {0};
        if (r == 0)
            r = file_read(path, &text, err);
        if (r == 0)
            r = store_add_document(c->s->store, c->s->experiment, kind, strbuf_text(&text), err);
        free(files[i]);
    }
    free(files);
    return r;
}

static int is_no_build(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && !str_eq(entry->d_name, "builds");
}

void cluster_remove_folder(struct cluster *c)
{
    if (!c->has_profiles) {
        file_remove_tree(c->folder);
        return;
    }
    struct dirent **parts = NULL;
    int count = scandir(c->folder, &parts, is_no_build, NULL);
    for (int i = 0; i < count; i++) {
        CLEANUP(memory_freep) char *path = memory_printf("%s/%s", c->folder, parts[i]->d_name);
        file_remove_tree(path);
        free(parts[i]);
    }
    free(parts);
    rmdir(c->folder); /* unless it has builds */
}
