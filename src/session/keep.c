/* SPDX-License-Identifier: MIT */
/* See keep.h. */
#include "session/keep.h"
#include "base/memory.h"
#include "session/session_internal.h"

/* What stands in the place of a spec: the same commands give the same text. */
static void put_text(struct strbuf *out, const struct dataset *d, const char *name)
{
    strbuf_printf(out, "# assay ab\nname: %s\n", name);
    for (size_t c = 0; c < d->cell_count; c++)
        strbuf_printf(out, "# %s: %s\n", d->cells[c].label, d->cells[c].command);
}

static int begin(struct store *store, const struct dataset *d, const char *name, int64_t *ret_id,
                 int64_t *cell_ids, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    CLEANUP(memory_freep) char *class = NULL;
    CLEANUP(memory_freep) char *machine = session_machine_json(&class);
    CLEANUP(memory_freep) char *branch = session_git_branch(".");
    CLEANUP(memory_freep) char *commit = session_git_commit(".");
    CLEANUP(memory_freep) char *subject = session_git_subject(".", commit);
    CLEANUP(memory_freep)
    struct store_new_cell *cells = memory_zalloc(d->cell_count + 1, sizeof(*cells));
    put_text(&text, d, name);
    for (size_t c = 0; c < d->cell_count; c++)
        cells[c] = (struct store_new_cell){.label = d->cells[c].label,
                                           .command = d->cells[c].command,
                                           .values = (const char *const *)d->cells[c].levels};
    struct store_new new = {.name = name,
                            .question = d->experiment.question,
                            .spec_text = strbuf_text(&text),
                            .spec_path = "assay ab",
                            .selection = "",
                            .baseline = d->experiment.baseline,
                            .headline = d->experiment.headline,
                            .git_commit = commit,
                            .subject = subject,
                            .environment = "{}",
                            .machine = machine,
                            .branch = branch,
                            .machine_class = class,
                            .seed = d->experiment.seed,
                            .adaptive = d->experiment.adaptive,
                            .factors = (const char *const *)d->factors,
                            .factor_count = d->factor_count,
                            .cells = cells,
                            .cell_count = d->cell_count};
    return store_begin(store, &new, ret_id, cell_ids, err);
}

/* The run's values of all metrics. */
static int add_run(struct store *store, const struct dataset *d, const struct dataset_run *run,
                   int64_t experiment, int64_t cell, struct error *err)
{
    CLEANUP(memory_freep)
    struct store_value *values = memory_zalloc(d->metric_count + 1, sizeof(*values));
    size_t count = 0;
    for (size_t m = 0; m < d->metric_count; m++) {
        const struct store_metric *metric = &d->metrics[m];
        struct dataset_column column = dataset_column(d, m, run->cell);
        /* The store knows no bounds: a peak that is not known is left out. */
        for (size_t i = 0; i < column.count && !dataset_is_bound(d, m, run->cell); i++) {
            if (column.rounds[i] != run->round)
                continue;
            int r = store_metric_id(store, metric->name, metric->unit, metric->facts, metric->kind,
                                    &values[count].metric, err);
            if (r < 0)
                return r;
            values[count++].value = column.values[i];
            break;
        }
    }
    const struct store_disturbance disturbed = {
        .kind = "disturbed", .amount = 1, .words = "the machine did something else meanwhile"};
    struct store_new_run new = {.cell = cell,
                                .round = run->round,
                                .position = run->position,
                                .started_at_ns = run->started_at_ns,
                                .wall_ns = run->wall_ns,
                                .status = run->status,
                                .layout = "",
                                .output = run->status ? "" : NULL,
                                .values = values,
                                .value_count = count,
                                .disturbances = &disturbed,
                                .disturbance_count = run->disturbed};
    return store_add_run(store, experiment, &new, err);
}

int keep_dataset(const struct dataset *d, const char *place, const char *name, int64_t *ret_id,
                 struct error *err)
{
    CLEANUP(store_closep) struct store *store = NULL;
    CLEANUP(memory_freep) int64_t *cells = memory_zalloc(d->cell_count + 1, sizeof(*cells));
    int r = store_open(&store, store_place(place), STORE_CREATE, err);
    if (r == 0)
        r = begin(store, d, name, ret_id, cells, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < d->run_count && r == 0; i++)
        r = add_run(store, d, &d->runs[i], *ret_id, cells[d->runs[i].cell], err);
    struct error ignored;
    int finished = store_finish(store, *ret_id, r < 0 ? "failed" : "done", r < 0 ? &ignored : err);
    return r < 0 ? r : finished;
}
