/* SPDX-License-Identifier: MIT */
/*
 * A gate against a stored result.  The two did not run in the same rounds, so they are compared as
 * two samples, and whatever changed between the two days counts as a difference.
 */
#include "base/memory.h"
#include "bisect/gate.h"

#include <errno.h>

/* Whether a stored cell may be the one that was measured now: the factors that both have agree, of
 * its sides it is the new one. */
static bool fits(const struct dataset *stored, size_t cell, const struct dataset *d, size_t like)
{
    for (size_t f = 0; f < stored->factor_count; f++) {
        const char *level = stored->cells[cell].levels[f];
        size_t same = dataset_factor(d, stored->factors[f]);
        bool is_side = str_eq(stored->factors[f], "side");
        if (is_side ? !str_eq(level, "new")
                    : same != DATASET_NONE && !str_eq(level, d->cells[like].levels[same]))
            return false;
    }
    return true;
}

static int none_fits(const struct dataset *stored, const struct dataset *d, size_t like,
                     size_t count, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf names = {0};
    for (size_t c = 0; c < stored->cell_count; c++)
        if (!count || fits(stored, c, d, like))
            strbuf_printf(&names, "%s'%s'", names.length ? ", " : "",
                          stored->cells[c].command && *stored->cells[c].command
                              ? stored->cells[c].command
                              : stored->cells[c].label);
    return error_set(err, -ENOENT,
                     count
                         ? "the baseline has %zu results that could be meant by '%s': %s; measure "
                           "the same command as one of them"
                         : "the baseline has %zu results for '%s'; it has: %s",
                     count, d->cells[like].label, strbuf_text(&names));
}

/* The stored cell for one that was measured now: the only one that fits, or the only one of these
 * with the same command. */
static int find_cell(const struct dataset *stored, const struct dataset *d, size_t like,
                     size_t *ret_cell, struct error *err)
{
    size_t count = 0, same_count = 0, found = DATASET_NONE, same = DATASET_NONE;
    const char *command = d->cells[like].command;
    for (size_t c = 0; c < stored->cell_count; c++) {
        if (!fits(stored, c, d, like))
            continue;
        found = c;
        count++;
        if (command && stored->cells[c].command && str_eq(stored->cells[c].command, command)) {
            same = c;
            same_count++;
        }
    }
    if (count != 1 && same_count != 1)
        return none_fits(stored, d, like, count, err);
    *ret_cell = same_count == 1 ? same : found;
    return 0;
}

/* Against a result of another command a pass says little: who reads it has to know. */
static void note_commands(struct gate_result_set *set, const struct judge_sides *sides)
{
    const char *was = sides->base->cells[sides->base_cell].command;
    const char *is = sides->new->cells[sides->new_cell].command;
    if (set->stored_command || !was || !is || !*was || !*is || str_eq(was, is))
        return;
    set->stored_command = memory_strdup(was);
    set->new_command = memory_strdup(is);
}

int gate_judge_stored(struct gate_result_set *set, const struct dataset *stored,
                      const struct dataset *d, struct error *err)
{
    size_t position = 0, metric;
    set->started_at_ns = d->experiment.started_at_ns;
    while ((metric = dataset_headline(d, &position)) != DATASET_NONE) {
        const struct store_metric *m = &d->metrics[metric];
        size_t other = dataset_metric(stored, m->name);
        if (gate_better(set, m) == METRIC_NEITHER)
            continue;
        if (other == DATASET_NONE)
            return error_set(err, -ENOENT, "the baseline has no metric '%s'", m->name);
        for (size_t c = 0; c < d->cell_count; c++) {
            struct judge_sides sides = {stored, d, other, metric, DATASET_NONE, c};
            int r = find_cell(stored, d, c, &sides.base_cell, err);
            if (r < 0)
                return r;
            note_commands(set, &sides);
            gate_add_row(set, &sides, DATASET_NONE);
        }
    }
    gate_judge_rows(set);
    return set->count ? 0
                      : error_set(err, -ENODATA,
                                  "nothing can be judged: no headline metric says which way is "
                                  "better (--better does), or there are no values");
}
