/* SPDX-License-Identifier: MIT */
/* A new experiment, or one that was not finished: which of the two, and what it has already. */
#include "base/memory.h"
#include "session/session_internal.h"
#include "store/store_rows.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

static char *baseline_text(const struct spec *s)
{
    struct strbuf text = {0};
    strbuf_puts(&text, "");
    for (size_t i = 0; i < s->baseline.count; i++)
        strbuf_printf(&text, "%s%s=%s", i ? " " : "", s->baseline.items[i].name,
                      s->baseline.items[i].value);
    return text.data ? text.data : memory_strdup("");
}

/* The headline metrics in the spec's order; wall time where it names none. */
static char *headline_text(const struct spec *s, const char *given)
{
    struct strbuf text = {0};
    if (given)
        return memory_printf("%s\n", given);
    for (size_t i = 0; i < s->metric_count; i++)
        if (s->metrics[i].headline)
            strbuf_printf(&text, "%s\n", s->metrics[i].name);
    if (!text.length)
        strbuf_printf(&text, "%s\n", session_default_headline(s));
    return text.data;
}

static int begin_new(struct session *s, struct error *err)
{
    const struct spec *spec = &s->spec;
    size_t count = 0;
    const char *factors[SPEC_FACTORS_MAX];
    for (size_t f = 0; f < spec->factor_count; f++)
        factors[f] = spec->factors[f].name;
    struct store_new_cell *cells = memory_zalloc(s->kept_count, sizeof(*cells));
    const char **values = memory_zalloc(s->kept_count * spec->factor_count + 1, sizeof(*values));
    int64_t *ids = memory_zalloc(s->kept_count, sizeof(*ids));
    for (size_t c = 0; c < s->matrix.count; c++) {
        if (!s->kept[c])
            continue;
        const char **own = values + count * spec->factor_count;
        for (size_t f = 0; f < spec->factor_count; f++)
            own[f] = s->matrix.cells[c].levels[f]->name;
        cells[count++] = (struct store_new_cell){.label = s->matrix.cells[c].label,
                                                 .command = s->cells[c].command,
                                                 .build_id = s->cells[c].build_id,
                                                 .values = own};
    }
    CLEANUP(memory_freep) char *baseline = baseline_text(spec);
    CLEANUP(memory_freep) char *headline = headline_text(spec, s->options->headline);
    CLEANUP(memory_freep) char *environment = session_environment_json(s);
    CLEANUP(memory_freep) char *class = NULL;
    CLEANUP(memory_freep) char *machine = session_machine_json(&class);
    CLEANUP(memory_freep) char *branch = session_git_branch(spec->folder);
    CLEANUP(memory_freep)
    char *commit =
        s->options->commit ? memory_strdup(s->options->commit) : session_git_commit(spec->folder);
    CLEANUP(memory_freep) char *subject = session_git_subject(spec->folder, commit);
    struct store_new new = {.name = spec->name,
                            .question = spec->question,
                            .spec_text = spec->text,
                            .spec_path = spec->file,
                            .selection = s->selection,
                            .baseline = baseline,
                            .headline = headline,
                            .git_commit = commit,
                            .subject = subject,
                            .environment = environment,
                            .machine = machine,
                            .branch = branch,
                            .machine_class = class,
                            .seed = s->seed,
                            .adaptive = session_wants_extra(s),
                            .factors = factors,
                            .factor_count = spec->factor_count,
                            .cells = cells,
                            .cell_count = count};
    int r = store_begin(s->store, &new, &s->experiment, ids, err);
    count = 0;
    for (size_t c = 0; r == 0 && c < s->matrix.count; c++)
        if (s->kept[c])
            s->cells[c].id = ids[count++];
    free(cells);
    free(values);
    free(ids);
    return r;
}

/* Every cell that is to run is in the dataset, made of the same program. */
static bool cells_match(struct session *s, const struct dataset *d, const char **ret_why)
{
    *ret_why = "its cells are different";
    if (d->cell_count != s->kept_count)
        return false;
    for (size_t c = 0; c < s->matrix.count; c++) {
        if (!s->kept[c])
            continue;
        size_t found = dataset_cell(d, s->matrix.cells[c].label);
        if (found == DATASET_NONE)
            return false;
        const char *id = s->cells[c].build_id ? s->cells[c].build_id : "";
        if (!str_eq(d->cells[found].build_id, id)) {
            *ret_why = "the program has changed since then";
            return false;
        }
        s->cells[c].id = d->cells[found].id;
    }
    return true;
}

/* The place of each of the dataset's cells in the matrix. */
static size_t *places_of_cells(const struct session *s, const struct dataset *d)
{
    size_t *places = memory_zalloc(d->cell_count + 1, sizeof(*places));
    for (size_t c = 0; c < s->matrix.count; c++) {
        size_t found = s->kept[c] ? dataset_cell(d, s->matrix.cells[c].label) : DATASET_NONE;
        if (found != DATASET_NONE)
            places[found] = c;
    }
    return places;
}

/* What is there already: rounds with a good run, and those whose failure was allowed. */
static void take_over_runs(struct session *s, const struct dataset *d)
{
    size_t metric = dataset_metric(d, s->headline);
    CLEANUP(memory_freep) size_t *places = places_of_cells(s, d);
    for (size_t found = 0; metric != DATASET_NONE && found < d->cell_count; found++) {
        struct dataset_column column = dataset_column(d, metric, found);
        for (size_t i = 0; i < column.count; i++)
            session_note_value(s, places[found], column.rounds[i], column.values[i]);
    }
    for (size_t i = 0; i < d->run_count; i++) {
        const struct dataset_run *run = &d->runs[i];
        struct session_cell *cell = &s->cells[places[run->cell]];
        if ((run->status == 0 || s->spec.allow_failures) && !session_has_round(cell, run->round))
            session_note_value(s, places[run->cell], (uint32_t)run->round, NAN);
        cell->run_count++;
        cell->wall_sum_ns += run->wall_ns;
        s->spent_ns += run->wall_ns;
    }
    s->run_count_before = d->run_count;
    s->seed = d->experiment.seed;
}

int session_take_over(struct session *s, struct error *err)
{
    struct dataset d;
    int r = dataset_load(&d, s->store, s->experiment, err);
    if (r < 0)
        return r;
    for (size_t c = 0; c < s->matrix.count; c++)
        s->cells[c].count = s->cells[c].run_count = s->cells[c].wall_sum_ns = 0;
    s->spent_ns = 0;
    take_over_runs(s, &d);
    dataset_done(&d);
    return 0;
}

static int resume(struct session *s, int64_t id, const char **ret_why, struct error *err)
{
    struct dataset d;
    int r = dataset_load(&d, s->store, id, err);
    if (r < 0)
        return r;
    if (!cells_match(s, &d, ret_why)) {
        dataset_done(&d);
        return 0;
    }
    r = store_claim(s->store, id, session_wants_extra(s), err);
    if (r == 0) {
        take_over_runs(s, &d);
        s->experiment = id;
        s->resumed = true;
    } else if (r == -EBUSY) {
        *ret_why = "it is still running in another process";
        r = 0;
    }
    dataset_done(&d);
    return r;
}

/* The newest experiment of the same spec and selection that has not been finished. */
static int find_unfinished(struct session *s, int64_t *ret_id, struct error *err)
{
    char hash[65];
    store_hash(s->spec.text, hash);
    struct store_filter filter = {.spec_hash = hash, .most = 20};
    CLEANUP(store_list_done) struct store_list list = {0};
    int r = store_list(s->store, &filter, &list, err);
    *ret_id = 0;
    for (size_t i = 0; r == 0 && i < list.count; i++) {
        const struct store_experiment *e = &list.items[i];
        if (!str_eq(e->selection, s->selection))
            continue;
        if (str_eq(e->state, "done"))
            break;
        if (e->alive)
            continue;
        *ret_id = e->id;
        break;
    }
    return r;
}

/* Nothing is written.  Cells whose program is not what was measured are told apart: whoever visits
 * may want others only. */
static int visit(struct session *s, struct error *err)
{
    struct dataset d;
    int r = store_find(s->store, s->options->visit, &s->experiment, err);
    if (r == 0)
        r = dataset_load(&d, s->store, s->experiment, err);
    if (r < 0)
        return r;
    for (size_t c = 0; c < s->matrix.count; c++) {
        size_t found = dataset_cell(&d, s->matrix.cells[c].label);
        if (!s->kept[c] || found == DATASET_NONE)
            continue;
        const char *id = s->cells[c].build_id ? s->cells[c].build_id : "";
        s->cells[c].is_stale = !str_eq(d.cells[found].build_id, id);
        s->cells[c].id = d.cells[found].id;
    }
    dataset_done(&d);
    return 0;
}

int session_enter(struct session *s, struct error *err)
{
    int64_t id = 0;
    const char *why = NULL;
    int r = 0;
    if (s->options->visit)
        return visit(s, err);
    if (s->options->resume)
        r = store_find(s->store, s->options->resume, &id, err);
    else if (!s->options->fresh)
        r = find_unfinished(s, &id, err);
    if (r == 0 && id)
        r = resume(s, id, &why, err);
    if (r < 0 || s->resumed)
        return r;
    if (s->options->resume)
        return error_set(err, -EINVAL, "experiment %lld cannot be resumed: %s", (long long)id, why);
    if (id)
        s->resume_note = memory_printf("experiment %lld is unfinished, but %s; starting a new one",
                                       (long long)id, why);
    return begin_new(s, err);
}

uint64_t session_guess_run_ns(struct session *s)
{
    struct error ignored;
    struct store *store;
    if (store_open(&store, store_place(s->options->db), STORE_READ, &ignored) < 0)
        return 0;
    uint64_t guess = 0;
    store_mean_run_ns(store, s->spec.name, &guess, &ignored);
    store_close(store);
    return guess;
}
