/* SPDX-License-Identifier: MIT */
/* What the spec wants to be said when a figure is beyond a limit: "zero-copy was never granted". */
#include "analysis/answers_internal.h"
#include "base/strings.h"

#include <math.h>
#include <stdio.h>

static bool holds(const struct spec_metric *m, double value)
{
    return m->note_above ? value > m->note_limit : value < m->note_limit;
}

static void answer_note(struct question *q, const struct spec_metric *m)
{
    size_t there = 0, held = 0;
    double least = INFINITY, most = -INFINITY;
    for (size_t c = 0; c < q->d->cell_count; c++) {
        double median = dataset_median(q->d, q->metric, c);
        if (!isfinite(median))
            continue;
        there++;
        if (!holds(m, median))
            continue;
        held++;
        least = fmin(least, median);
        most = fmax(most, median);
    }
    if (!held)
        return;
    const char *low = value_text(q, least), *high = value_text(q, most);
    char cells[80] = "the one cell that reports it";
    if (there > 1)
        snprintf(cells, sizeof(cells), "%zu of the %zu cells that report it", held, there);
    struct answer *answer =
        answer_add(q, "note", "", true, "%s: %s%s%s in %s", m->note, low,
                   str_eq(low, high) ? "" : " to ", str_eq(low, high) ? "" : high, cells);
    answer_number(answer, "cells", (double)held);
    answer_number(answer, "of", (double)there);
    answer_number(answer, "least", least);
    answer_number(answer, "most", most);
}

void answer_notes(struct question *q, const struct spec *spec)
{
    for (size_t i = 0; i < spec->metric_count; i++) {
        const struct spec_metric *m = &spec->metrics[i];
        q->metric = m->note ? dataset_metric(q->d, m->name) : DATASET_NONE;
        if (q->metric != DATASET_NONE)
            answer_note(q, m);
    }
}
