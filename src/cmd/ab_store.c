/* SPDX-License-Identifier: MIT */
/* What `assay ab` found, kept in the store and compared with another day: see ab.h. */
#include "analysis/dataset.h"
#include "analysis/outcome.h"
#include "analysis/sparse.h"
#include "base/memory.h"
#include "cmd/ab.h"
#include "report/text/compare.h"
#include "session/keep.h"
#include "store/store.h"

#include <errno.h>
#include <stdio.h>

/* Refuses what could not be compared in the end. */
static int check_partners(const struct dataset *before, const struct ab_plan *plan,
                          struct error *err)
{
    CLEANUP(dataset_done) struct dataset now = {0};
    outcome_start(&now, plan->participants, plan->count);
    if (before->cell_count == 1 && now.cell_count == 1)
        return 0;
    CLEANUP(strbuf_done) struct strbuf names = {0};
    for (size_t i = 0; i < before->cell_count; i++) {
        if (dataset_cell(&now, before->cells[i].label) != DATASET_NONE)
            return 0;
        strbuf_printf(&names, "%s'%s'", i ? ", " : "", before->cells[i].label);
    }
    return error_set(err, -ENOENT,
                     "no command of these names was measured then; there are %.200s; -n gives "
                     "a command the name that it had",
                     strbuf_text(&names));
}

int ab_against_load(const struct ab_options *o, const struct ab_plan *plan,
                    struct dataset *ret_before, struct error *err)
{
    CLEANUP(store_closep) struct store *store = NULL;
    int64_t id;
    int r = store_open(&store, store_place(o->db), STORE_READ, err);
    if (r == 0)
        r = store_find(store, o->against, &id, err);
    if (r == 0)
        r = dataset_load(ret_before, store, id, err);
    if (r == 0 && (r = check_partners(ret_before, plan, err)) < 0)
        dataset_done(ret_before);
    return r < 0 ? error_wrap(err, r, "--against %s", o->against) : 0;
}

int ab_against_print(const struct ab_options *o, struct dataset *before, struct dataset *now,
                     struct error *err)
{
    char moment[40];
    CLEANUP(strbuf_done) struct strbuf out = {0};
    struct compare c;
    sparse_join(before, now);
    int r = compare_experiments(&c, before, now, err);
    if (r == 0) {
        free(c.new_name);
        c.new_name = memory_strdup("these rounds");
        report_compare_text(&out, &(struct compare_view){.c = &c, .colour = ab_has_colour(o)});
        printf("%s'%s' was measured on %s. Run both in one 'assay ab' to be certain.\n\n",
               strbuf_text(&out), o->against,
               format_moment(before->experiment.started_at_ns, moment, sizeof(moment)));
    }
    compare_done(&c);
    return r;
}

bool ab_saves(const struct ab_options *o)
{
    return o->save || (o->db && !o->against);
}

int ab_save_check(const struct ab_options *o, struct error *err)
{
    int r = ab_saves(o) ? store_check_place(store_place(o->db), err) : 0;
    return r < 0 ? error_wrap(err, r, "the result could not be stored") : 0;
}

int ab_save(const struct ab_options *o, const struct dataset *d, struct error *err)
{
    int64_t id;
    const char *name = o->save ? o->save : "ab";
    int r = keep_dataset(d, o->db, name, &id, err);
    if (r < 0)
        return error_wrap(err, r, "the result could not be stored");
    fprintf(stderr, "assay ab: kept as experiment %lld (%s) in %s\n", (long long)id, name,
            store_place(o->db));
    return 0;
}
