/* SPDX-License-Identifier: MIT */
/*
 * Other cuts through the same CPU time, beside the reasons and not among them.  By program: a
 * command that starts others, and how many processes of each there were.  By function of the
 * program: with what it calls in libraries and the kernel, where the reasons are many small ones.
 */
#include "base/memory.h"
#include "why/explain_internal.h"

#include <math.h>
#include <stdlib.h>

#define ITSELF "the command itself"
#define FORKED "processes that it forks"

#define OWNER_SHARE 0.1
#define OWNER_CERTAIN_TIMES 1.5
#define MOST_OF_IT 0.75

struct program {
    const char *name; /* a profile's, or one of the above */
    double *weights[SIDE_COUNT], *samples[SIDE_COUNT], *ended[SIDE_COUNT]; /* by run */
};

struct programs {
    const struct profile_loads *loads;
    struct program *items;
    size_t count, capacity;
};

static struct program *find_program(struct programs *p, const char *name)
{
    for (size_t i = 0; i < p->count; i++)
        if (str_eq(p->items[i].name, name))
            return &p->items[i];
    struct program program = {.name = name};
    for (unsigned s = 0; s < SIDE_COUNT; s++) {
        size_t runs = p->loads->counts[s] + 1;
        program.weights[s] = memory_zalloc(runs, sizeof(double));
        program.samples[s] = memory_zalloc(runs, sizeof(double));
        program.ended[s] = memory_zalloc(runs, sizeof(double));
    }
    ARRAY_PUSH(p->items, p->count, p->capacity) = program;
    return &p->items[p->count - 1];
}

static void programs_done(struct programs *p)
{
    for (size_t i = 0; i < p->count; i++)
        for (unsigned s = 0; s < SIDE_COUNT; s++) {
            free(p->items[i].weights[s]);
            free(p->items[i].samples[s]);
            free(p->items[i].ended[s]);
        }
    free(p->items);
}

/* The name of the process that a task belongs to: that of its first thread, whatever its other
 * threads are called. */
static const char *process_name(const struct tasks *t, uint32_t task)
{
    uint32_t pid = t->items[task].pid, root = t->items[0].pid;
    if (pid == root)
        return ITSELF;
    const char *name = tasks_comm(t, task);
    if (t->items[task].tid != pid)
        for (size_t i = 0; i < t->count; i++)
            if (t->items[i].pid == pid && t->items[i].tid == pid)
                name = tasks_comm(t, (uint32_t)i);
    for (size_t i = 0; i < t->count; i++)
        if (t->items[i].pid == root && t->items[i].tid == root &&
            str_eq(tasks_comm(t, (uint32_t)i), name))
            return FORKED;
    return name;
}

static void add_run(struct programs *p, unsigned side, size_t run)
{
    const struct diff_run *at = &p->loads->runs[side][run];
    const struct profile *profile = at->profile;
    const struct tasks *t = &profile->tasks;
    if (!t->count)
        return;
    find_program(p, ITSELF);
    for (size_t i = 0; i < profile->calls.cell_count; i++) {
        const struct call_cell *cell = &profile->calls.cells[i];
        if (cell->event != at->event)
            continue;
        struct program *program = find_program(p, process_name(t, cell->task));
        program->weights[side][run] += (double)cell->weight;
        program->samples[side][run] += (double)cell->samples;
    }
    for (uint32_t comm = 0; comm < t->comms.count; comm++) {
        double ended = (double)tasks_ended(t, comm);
        bool is_root = false;
        for (size_t i = 0; i < t->count; i++)
            is_root |= t->items[i].pid == t->items[0].pid && t->items[i].tid == t->items[0].pid &&
                       t->items[i].comm == comm;
        if (is_root && ended > 0)
            find_program(p, FORKED)->ended[side][run] += ended - 1;
        else if (ended > 0)
            find_program(p, t->comms.items[comm])->ended[side][run] += ended;
    }
}

/* A count changed if no run of one side reaches the other's. */
static bool take_counts(const struct programs *p, const struct program *program,
                        double means[SIDE_COUNT])
{
    double low[SIDE_COUNT] = {INFINITY, INFINITY}, high[SIDE_COUNT] = {0, 0};
    for (unsigned s = 0; s < SIDE_COUNT; s++) {
        size_t runs = p->loads->counts[s];
        means[s] = 0;
        for (size_t run = 0; run < runs; run++) {
            double count = program->ended[s][run] / p->loads->runs[s][run].work;
            means[s] += count / (double)runs;
            low[s] = fmin(low[s], count);
            high[s] = fmax(high[s], count);
        }
    }
    return high[SIDE_A] < low[SIDE_B] || high[SIDE_B] < low[SIDE_A];
}

static int compare_programs(const void *left, const void *right)
{
    const struct explain_program *a = left, *b = right;
    double x = fabs(a->cost.change), y = fabs(b->cost.change);
    return x < y ? 1 : x > y ? -1 : strcmp(a->name, b->name);
}

void explain_find_programs(struct explain *e, const struct attribution *cpu)
{
    struct programs p = {.loads = &e->loads};
    for (unsigned s = 0; s < SIDE_COUNT; s++)
        for (size_t run = 0; run < e->loads.counts[s]; run++)
            add_run(&p, s, run);
    for (size_t i = 0; i < p.count && p.count > 1; i++) {
        struct program *at = &p.items[i];
        struct explain_program program = {.is_itself = str_eq(at->name, ITSELF)};
        program.cost =
            attribution_part(cpu, (const double *const[]){at->weights[0], at->weights[1]},
                             (const double *const[]){at->samples[0], at->samples[1]});
        program.cost.share = e->whole.change != 0 ? program.cost.change / e->whole.change : NAN;
        program.count_changed = take_counts(&p, at, program.counts);
        if (!program.is_itself && program.counts[SIDE_A] + program.counts[SIDE_B] <= 0 &&
            program.cost.a + program.cost.b <= 0)
            continue;
        program.name = memory_strdup(at->name);
        ARRAY_PUSH(e->programs, e->program_count, e->program_capacity) = program;
    }
    if (e->program_count)
        qsort(e->programs, e->program_count, sizeof(*e->programs), compare_programs);
    programs_done(&p);
}

static int compare_owners(const void *left, const void *right)
{
    const struct explain_owner *a = left, *b = right;
    double x = fabs(a->cost.change), y = fabs(b->cost.change);
    return x < y ? 1 : x > y ? -1 : strcmp(a->name, b->name);
}

static bool is_scattered(const struct explain *e, double change)
{
    for (size_t i = 0; i < e->reason_count; i++) {
        const struct reason *reason = &e->reasons[i];
        if (reason->kind != REASON_WAIT && attributed_is_told(&reason->cost) &&
            reason->cost.change / change >= MOST_OF_IT)
            return false;
    }
    return true;
}

void explain_find_owners(struct explain *e, const struct parts *parts,
                         const struct attribution *cpu)
{
    for (uint32_t i = 1; i < parts->owners.count; i++) {
        const struct caller *at = &parts->owners.items[i];
        struct explain_owner owner = {
            .cost = attribution_part(cpu, (const double *const[]){at->weights[0], at->weights[1]},
                                     (const double *const[]){at->samples[0], at->samples[1]})};
        owner.cost.share = e->whole.change != 0 ? owner.cost.change / e->whole.change : NAN;
        if (!attributed_is_told(&owner.cost) || !(fabs(owner.cost.share) >= OWNER_SHARE) ||
            fabs(owner.cost.change) < OWNER_CERTAIN_TIMES * owner.cost.half_width)
            continue;
        owner.name = memory_strdup(at->name);
        owner.is_scattered = is_scattered(e, owner.cost.change);
        ARRAY_PUSH(e->owners, e->owner_count, e->owner_capacity) = owner;
    }
    if (e->owner_count)
        qsort(e->owners, e->owner_count, sizeof(*e->owners), compare_owners);
}
