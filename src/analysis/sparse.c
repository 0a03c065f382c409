/* SPDX-License-Identifier: MIT */
/* See sparse.h. */
#include "analysis/sparse.h"
#include "base/memory.h"
#include "base/strings.h"

static const struct {
    const char *prefix, *marker;
} families[] = {
    {"perf-profile.calltrace.", "perf-profile.samples"},
    {"perf-profile.children.", "perf-profile.samples"},
    {"perf-profile.self.", "perf-profile.samples"},
    {"perf-sched.wait_and_delay.count.", "perf-sched.lost"},
    {"perf-sched.wait_and_delay.total.", "perf-sched.lost"},
    {"perf-sched.sch_delay.count.", "perf-sched.lost"},
    {"lock-contention.count.", "lock-contention.lost"},
    {"lock-contention.total.ms.", "lock-contention.lost"},
    {"syscalls.count.", "syscalls.lost"},
    {"syscalls.time.", "syscalls.lost"},
};

const char *sparse_marker(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(families); i++)
        if (str_has_prefix(name, families[i].prefix))
            return families[i].marker;
    return NULL;
}

static bool has_metric(const struct dataset *d, const struct store_metric *like)
{
    for (size_t m = 0; m < d->metric_count; m++)
        if (str_eq(d->metrics[m].name, like->name) && str_eq(d->metrics[m].unit, like->unit))
            return true;
    return false;
}

/* A metric that is zero wherever the marker has a value. */
static void add_zeros(struct dataset *d, const struct store_metric *like, size_t marker)
{
    size_t metric = d->metric_count, columns = (metric + 1) * d->cell_count;
    size_t from = d->starts[marker * d->cell_count], total = d->starts[metric * d->cell_count];
    size_t count = d->starts[(marker + 1) * d->cell_count] - from;
    ARRAY_PUSH(d->metrics, d->metric_count, d->metric_capacity) =
        (struct store_metric){.id = like->id,
                              .name = memory_strdup(like->name),
                              .unit = memory_strdup(like->unit),
                              .facts = like->facts,
                              .kind = memory_strdup(like->kind)};
    d->starts = memory_resize(d->starts, columns + 2, sizeof(*d->starts));
    d->values = memory_resize(d->values, total + count + 1, sizeof(*d->values));
    d->rounds = memory_resize(d->rounds, total + count + 1, sizeof(*d->rounds));
    for (size_t i = 0; i < count; i++) {
        d->values[total + i] = 0;
        d->rounds[total + i] = d->rounds[from + i];
    }
    for (size_t c = 0; c <= d->cell_count; c++)
        d->starts[metric * d->cell_count + c] =
            total + d->starts[marker * d->cell_count + c] - from;
    d->starts[columns + 1] = d->starts[columns];
}

static void take_from(struct dataset *d, const struct dataset *other, size_t other_count)
{
    for (size_t m = 0; m < other_count; m++) {
        const char *name = sparse_marker(other->metrics[m].name);
        size_t marker = name ? dataset_metric(d, name) : DATASET_NONE;
        if (marker != DATASET_NONE && !has_metric(d, &other->metrics[m]))
            add_zeros(d, &other->metrics[m], marker);
    }
}

void sparse_join(struct dataset *a, struct dataset *b)
{
    size_t a_count = a->metric_count;
    take_from(a, b, b->metric_count);
    take_from(b, a, a_count);
}
