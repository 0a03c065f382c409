/* SPDX-License-Identifier: MIT */
/* Cells of the store, run again to be explained: see explain_cells.h. */
#include "why/explain_cells.h"
#include "analysis/cellpairs.h"
#include "base/memory.h"
#include "session/session_internal.h"

#include <errno.h>
#include <stdio.h>

/* An experiment whose cells are run again. */
struct visited {
    struct session *session;
    struct session_options options;
    char *spec_text, *id, *cells;
    bool has_begun;
};

struct visits {
    const struct explain_cells *how;
    const struct cell_pairs *pairs;
    struct visited items[SIDE_COUNT];
    struct visited *of[SIDE_COUNT]; /* the same for two cells of one experiment */
    size_t pair;                    /* that is explained */
    uint64_t round;
};

static int visit_open(struct visited *v, struct store *store, const struct dataset *d,
                      const struct explain_cells *how, struct error *err)
{
    const struct store_experiment *x = &d->experiment;
    int r = store_document(store, x->id, "spec", &v->spec_text, err);
    if (r < 0)
        return r;
    v->id = memory_printf("%lld", (long long)x->id);
    const char *cells = strstr(x->selection, " cells=");
    v->cells = cells ? memory_strdup(cells + strlen(" cells=")) : NULL;
    v->options = (struct session_options){.spec_path = x->spec_path,
                                          .spec_text = v->spec_text,
                                          .db = how->db,
                                          .cells = v->cells,
                                          .quick = str_has_prefix(x->selection, "quick"),
                                          .visit = v->id,
                                          .output = how->output,
                                          .timeout_ns = how->timeout_ns};
    r = session_open(&v->session, &v->options, err);
    if (r < 0)
        return error_wrap(err, r, "running cells of experiment %s again", v->id);
    /* What explain runs has counters of its own. */
    if (v->session->runner_open)
        runner_done(&v->session->runner);
    v->session->runner_open = false;
    struct hole_values values = {.spec = &v->session->spec};
    v->has_begun = true;
    return steps_before(&v->session->steps, &values, true, err);
}

static void visit_close(struct visited *v)
{
    struct error ignored;
    if (v->has_begun) {
        struct hole_values values = {.spec = &v->session->spec};
        steps_after(&v->session->steps, &values, true, &ignored);
    }
    session_close(v->session);
    free(v->spec_text);
    free(v->id);
    free(v->cells);
}

/* What was measured is gone: explaining another program in its place would be a lie. */
static int refuse_stale(const struct session *s, size_t cell, struct error *err)
{
    return error_set(err, -ESTALE,
                     "experiment %lld, cell %s: %s: the program has changed since it was measured, "
                     "or is gone. Keep each version at its own path and make the path a factor of "
                     "the spec, or let the spec build them; if both versions still exist, explain "
                     "the commands themselves: assay explain 'OLD ...' 'NEW ...'",
                     (long long)s->experiment, s->matrix.cells[cell].label, s->cells[cell].argv[0]);
}

static int run_cell(void *context, unsigned side, struct runner *runner, char *const *before,
                    struct run_result *result, struct error *err)
{
    struct visits *v = context;
    struct session *s = v->of[side]->session;
    const struct dataset *d = v->pairs->d[side];
    const char *label = d->cells[v->pairs->items[v->pair].cells[side]].label;
    for (size_t c = 0; c < s->matrix.count; c++)
        if (s->kept[c] && str_eq(s->matrix.cells[c].label, label))
            return s->cells[c].is_stale
                       ? refuse_stale(s, c, err)
                       : session_run_again(s, c, v->round++, runner,
                                           &(struct session_again){.before = before}, result, err);
    return error_set(err, -ENOENT, "the spec has no cell %s", label);
}

static void show_progress(void *context, enum explain_phase phase, uint64_t round, uint64_t count)
{
    struct visits *v = context;
    v->how->progress(v->how->progress_context, phase, round, count);
}

static int open_visits(struct visits *v, struct store *store, struct error *err)
{
    if (v->of[SIDE_A])
        return 0;
    for (unsigned s = 0; s < SIDE_COUNT; s++) {
        bool same = s == SIDE_B && v->pairs->d[SIDE_A] == v->pairs->d[SIDE_B];
        v->of[s] = &v->items[same ? SIDE_A : s];
        int r = same ? 0 : visit_open(v->of[s], store, v->pairs->d[s], v->how, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* What the store says of the pair's measured runs. */
static int take_measured(struct explain *e, const struct cell_pairs *pairs, size_t pair,
                         struct error *err)
{
    struct cell_costs costs;
    cell_costs_find(&costs, pairs, pair);
    e->measured.paired = costs.paired;
    for (unsigned s = 0; s < SIDE_COUNT; s++) {
        e->measured.cpu[s] = costs.values[s];
        e->measured.wall[s] = costs.wall[s];
        e->measured.counts[s] = costs.counts[s];
        e->names[s] = memory_strdup(pairs->names[s]);
        e->experiments[s] = pairs->d[s]->experiment.id;
        e->uuids[s] = memory_strdup(pairs->d[s]->experiment.uuid);
        e->cells[s] = memory_strdup(pairs->d[s]->cells[pairs->items[pair].cells[s]].label);
    }
    e->label = memory_strdup(pairs->items[pair].label);
    e->work = pairs->work ? memory_strdup(pairs->work) : NULL;
    e->unit = pairs->unit ? memory_strdup(pairs->unit) : NULL;
    if (!costs.counts[SIDE_A] || !costs.counts[SIDE_B])
        return error_set(err, -ENODATA, "the store has no finished runs of %s and %s to compare",
                         pairs->names[SIDE_A], pairs->names[SIDE_B]);
    return explain_judge(&e->measured, err);
}

static int explain_pair(struct visits *v, struct store *store, struct error *err)
{
    struct explain e = {0};
    struct explain_settings settings = *v->how->settings;
    struct explain_runs runs = {.run = run_cell, .progress = show_progress, .context = v};
    int r = take_measured(&e, v->pairs, v->pair, err);
    if (r == 0 && (e.measured.moved || settings.force)) {
        r = open_visits(v, store, err);
        if (r == 0)
            r = explain_run(&e, &settings, &runs, err);
    }
    if (r == 0)
        v->how->found(v->how->found_context, &e);
    explain_done(&e);
    return r;
}

int explain_cells_are_emulated(const struct explain_cells *c, bool *ret, struct error *err)
{
    CLEANUP(store_closep) struct store *store = NULL;
    struct cell_pairs pairs = {0};
    *ret = false;
    int r = store_open(&store, store_place(c->db), STORE_READ, err);
    if (r == 0)
        r = cell_pairs_find(&pairs, store, c->words[SIDE_A], c->words[SIDE_B], c->in, err);
    if (r == 0)
        *ret = pairs.d[SIDE_A]->emulated || pairs.d[SIDE_B]->emulated;
    cell_pairs_done(&pairs);
    return r;
}

int explain_cells_run(const struct explain_cells *c, struct error *err)
{
    CLEANUP(store_closep) struct store *store = NULL;
    struct cell_pairs pairs = {0};
    struct visits v = {.how = c, .pairs = &pairs};
    int r = store_open(&store, store_place(c->db), STORE_READ, err);
    if (r == 0)
        r = cell_pairs_find(&pairs, store, c->words[SIDE_A], c->words[SIDE_B], c->in, err);
    for (v.pair = 0; r == 0 && v.pair < pairs.count; v.pair++)
        r = explain_pair(&v, store, err);
    for (unsigned s = 0; s < SIDE_COUNT; s++)
        visit_close(&v.items[s]);
    cell_pairs_done(&pairs);
    return r;
}
