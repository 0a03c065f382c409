/* SPDX-License-Identifier: MIT */
/* The bill of one command: see bill.h. */
#include "bill/bill.h"
#include "base/memory.h"
#include "base/strings.h"
#include "numbers/distributions.h"
#include "stats/summary.h"

#include <math.h>

#define RECORD_COST_MOST_NS 2500 /* with a call chain, on a slow machine */

static const struct {
    const char *name, *title;
    bool is_cpu;
} parts[BILL_PARTS] = {
    [BILL_USER] = {"user-code", "running its own code", true},
    [BILL_CALL] = {"system-calls", "running in system calls", true},
    [BILL_FAULT] = {"page-faults", "running page faults", true},
    [BILL_INTERRUPT] = {"interrupts", "running interrupts of the machine", true},
    [BILL_STORAGE] = {"storage", "waiting for storage", false},
    [BILL_LOCK] = {"locks", "waiting for locks", false},
    [BILL_NETWORK] = {"network", "waiting for the network", false},
    [BILL_OUTSIDE] = {"other-programs", "waiting for other programs", false},
    [BILL_SLEEP] = {"sleep", "sleeping on purpose", false},
    [BILL_READY] = {"ready", "ready, without a CPU", false},
    [BILL_START] = {"start", "starting programs", true},
    [BILL_END] = {"exit", "ending programs", true},
    [BILL_UNKNOWN] = {"unattributed", "unattributed", false},
};

const char *bill_part_name(enum bill_part part)
{
    return parts[part].name;
}

const char *bill_part_title(enum bill_part part)
{
    return parts[part].title;
}

bool bill_part_is_cpu(enum bill_part part)
{
    return parts[part].is_cpu;
}

void bill_init(struct bill *b)
{
    *b = (struct bill){0};
    idtable_init(&b->table, 8);
}

static void run_done(struct bill_run *r)
{
    for (size_t i = 0; r->items && i < r->timeline.thread_count; i++)
        free(r->items[i]);
    free(r->items);
    free(r->step_items);
    path_done(&r->path);
    timeline_done(&r->timeline);
    profile_free(r->profile);
}

void bill_done(struct bill *b)
{
    for (size_t i = 0; i < b->item_count; i++) {
        free(b->items[i].ns);
        free(b->items[i].records);
    }
    for (size_t i = 0; i < b->line_count; i++)
        free(b->lines[i].ns);
    for (size_t i = 0; i < b->run_count; i++)
        run_done(&b->runs[i]);
    free(b->items);
    free(b->lines);
    free(b->runs);
    free(b->walls);
    idtable_done(&b->table);
    arena_done(&b->arena);
    *b = (struct bill){0};
}

static uint64_t hash_words(enum bill_part part, const char *who, const char *what,
                           const char *detail)
{
    uint64_t hash = hash_mix(hash_string(who), part);
    hash = hash_mix(hash, hash_string(what));
    return detail ? hash_mix(hash, hash_string(detail)) : hash;
}

static uint64_t hash_item(const void *items, uint32_t id)
{
    const struct bill_item *i = &((const struct bill_item *)items)[id];
    return hash_words(i->part, i->who, i->what, i->detail);
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? str_eq(a, b) : a == b;
}

uint32_t bill_item(struct bill *b, enum bill_part part, const char *who, const char *what,
                   const char *detail)
{
    uint32_t slot, id;
    IDTABLE_EACH(&b->table, hash_words(part, who, what, detail), slot, id)
    {
        const struct bill_item *i = &b->items[id];
        if (i->part == part && str_eq(i->who, who) && str_eq(i->what, what) &&
            same_text(i->detail, detail))
            return id;
    }
    id = (uint32_t)b->item_count;
    ARRAY_PUSH(b->items, b->item_count, b->item_capacity) = (struct bill_item){
        .part = part,
        .who = arena_strdup(&b->arena, who),
        .what = arena_strdup(&b->arena, what),
        .detail = detail ? arena_strdup(&b->arena, detail) : NULL,
        .ns = memory_zalloc(b->run_capacity + 1, sizeof(double)),
        .records = memory_zalloc(b->run_capacity + 1, sizeof(double)),
    };
    idtable_put(&b->table, slot, id);
    if (idtable_is_crowded(&b->table))
        idtable_grow(&b->table, hash_item, b->items);
    return id;
}

void bill_add_run(struct bill *b, struct timeline *timeline, struct profile *profile,
                  const struct files *files, double cpu_ns)
{
    size_t before = b->run_capacity;
    struct bill_run *run = &ARRAY_PUSH(b->runs, b->run_count, b->run_capacity);
    *run = (struct bill_run){.timeline = *timeline, .profile = profile, .cpu_ns = cpu_ns};
    *timeline = (struct timeline){0};
    for (size_t i = 0; b->run_capacity != before && i < b->item_count; i++) {
        struct bill_item *item = &b->items[i];
        item->ns = memory_resize(item->ns, b->run_capacity + 1, sizeof(double));
        item->records = memory_resize(item->records, b->run_capacity + 1, sizeof(double));
        for (size_t k = before; k <= b->run_capacity; k++)
            item->ns[k] = item->records[k] = 0;
    }
    path_find(&run->path, &run->timeline);
    run->wall_ns = run->timeline.end_ns - run->timeline.start_ns;
    bill_classify(b, b->run_count - 1, files);
}

void bill_add_wall(struct bill *b, double wall_ns, double cpu_ns)
{
    ARRAY_PUSH(b->walls, b->wall_count, b->wall_capacity) = wall_ns;
    b->cpu_ns += cpu_ns;
}

struct bill_estimate bill_estimate(const double *values, size_t count)
{
    struct running r = {0};
    for (size_t i = 0; i < count; i++)
        running_add(&r, values[i]);
    double half = count > 1 ? dist_t_quantile(0.975, (double)count - 1) * running_stddev(&r) /
                                  sqrt((double)count)
                            : NAN;
    return (struct bill_estimate){r.mean, r.mean - half, r.mean + half};
}

static double total(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum;
}

/* Functions whose callers are worth a line of their own: see group. */
#define SPLIT_LINE_SHARE 0.04 /* of all time that the function must have */
#define SPLIT_PART_SHARE 0.15 /* of the function's time that at least two callers must have */

/* The items that differ from this one in their detail only. */
static bool is_sibling(const struct bill_item *a, const struct bill_item *b)
{
    return a->part == b->part && str_eq(a->who, b->who) && str_eq(a->what, b->what);
}

static uint32_t add_line(struct bill *b, const struct bill_item *i, const char *detail)
{
    ARRAY_PUSH(b->lines, b->line_count, b->line_capacity) =
        (struct bill_line){.part = i->part,
                           .who = i->who,
                           .what = i->what,
                           .detail = detail,
                           .ns = memory_zalloc(b->run_count + 1, sizeof(double))};
    return (uint32_t)b->line_count - 1;
}

/* What is said of items that share a line. */
static const char *rest_detail(struct bill *b, const struct bill_item *i, bool splits,
                               double most_share, const char *most)
{
    if (splits)
        return "others";
    if (i->part != BILL_READY || !most || most_share > 0.85)
        return most_share > 0.85 ? most : NULL;
    CLEANUP(memory_freep) char *text = memory_printf("mostly %s", most);
    return arena_strdup(&b->arena, text);
}

/*
 * Makes one line of a function, or several where at least two callers have much of its time; then
 * the small callers have one together.  Of waits, every detail is a line.
 */
static void group(struct bill *b, size_t first, double all)
{
    const struct bill_item *i = &b->items[first];
    size_t large = 0;
    double whole = 0, most = 0;
    const char *only = i->detail;
    for (size_t k = first; k < b->item_count; k++)
        if (is_sibling(i, &b->items[k])) {
            double part = total(b->items[k].ns, b->run_count);
            whole += part;
            if (part > most) {
                most = part;
                only = b->items[k].detail;
            }
        }
    for (size_t k = first; k < b->item_count; k++)
        large += is_sibling(i, &b->items[k]) &&
                 total(b->items[k].ns, b->run_count) > SPLIT_PART_SHARE * whole;
    bool splits = bill_part_is_cpu(i->part) ? large > 1 && whole > SPLIT_LINE_SHARE * all
                                            : i->part != BILL_READY;
    uint32_t rest = UINT32_MAX;
    for (size_t k = first; k < b->item_count; k++) {
        struct bill_item *item = &b->items[k];
        if (!is_sibling(&b->items[first], item))
            continue;
        bool own = splits && (!bill_part_is_cpu(item->part) ||
                              total(item->ns, b->run_count) > SPLIT_PART_SHARE * whole);
        if (own)
            item->line = add_line(b, item, item->detail);
        else if (rest == UINT32_MAX)
            item->line = rest = add_line(b, item, rest_detail(b, item, splits, most / whole, only));
        else
            item->line = rest;
    }
}

static void make_lines(struct bill *b)
{
    double all = 0;
    for (size_t i = 0; i < b->item_count; i++) {
        all += total(b->items[i].ns, b->run_count);
        b->items[i].line = UINT32_MAX;
    }
    for (size_t i = 0; i < b->item_count; i++)
        if (b->items[i].line == UINT32_MAX)
            group(b, i, all);
}

/*
 * What one record costs: the difference between traced and other runs of the same round, over the
 * records on the path.  Where chance alone could make the difference, nothing; where it is more
 * than records can cost, the machine was busy, and the rest stays in the lines.
 */
static double record_cost(const struct bill *b)
{
    size_t rounds = b->run_count < b->wall_count ? b->run_count : b->wall_count;
    CLEANUP(memory_freep) double *costs = memory_zalloc(rounds + 1, sizeof(*costs));
    double records = 0;
    for (size_t r = 0; r < rounds; r++) {
        costs[r] = (double)b->runs[r].wall_ns - b->walls[r];
        records += b->runs[r].records / (double)rounds;
    }
    struct bill_estimate cost = bill_estimate(costs, rounds);
    if (rounds < 2 || records < 1 || !(cost.low > 0))
        return 0;
    return fmin(cost.mean / records, RECORD_COST_MOST_NS);
}

/* Adds the items of a run up in their lines, the cost of tracing left out.  What a line has not,
 * cannot be taken from it: the others pay for it, by what they have. */
static void fill_run(struct bill *b, size_t run)
{
    double after = 0;
    double wanted = (double)b->runs[run].wall_ns - b->cost_ns * b->runs[run].records;
    for (size_t i = 0; i < b->item_count; i++) {
        const struct bill_item *item = &b->items[i];
        double ns = fmax(item->ns[run] - b->cost_ns * item->records[run], 0);
        b->lines[item->line].ns[run] += ns;
        after += ns;
    }
    double factor = after > 0 && wanted > 0 ? wanted / after : 1;
    for (size_t l = 0; l < b->line_count; l++)
        b->lines[l].ns[run] *= factor;
}

double bill_line_scale(const struct bill *b, uint32_t line)
{
    double raw = 0;
    for (size_t i = 0; i < b->item_count; i++)
        if (b->items[i].line == line)
            raw += total(b->items[i].ns, b->run_count);
    return raw > 0 ? total(b->lines[line].ns, b->run_count) / raw : 1;
}

static int compare_lines(const void *a, const void *b)
{
    const struct bill_line *x = a, *y = b;
    return x->time.mean > y->time.mean ? -1 : x->time.mean < y->time.mean;
}

/* Sorts the lines, and tells the items where theirs are now. */
static void sort_lines(struct bill *b)
{
    CLEANUP(memory_freep) double **marks = memory_zalloc(b->line_count + 1, sizeof(*marks));
    for (size_t l = 0; l < b->line_count; l++)
        marks[l] = b->lines[l].ns;
    if (b->line_count)
        qsort(b->lines, b->line_count, sizeof(*b->lines), compare_lines);
    for (size_t i = 0; i < b->item_count; i++) {
        const double *mark = marks[b->items[i].line];
        for (uint32_t l = 0; l < b->line_count; l++)
            if (b->lines[l].ns == mark) {
                b->items[i].line = l;
                break;
            }
    }
}

static void estimate_walls(struct bill *b)
{
    CLEANUP(memory_freep) double *walls = memory_zalloc(b->run_count + 1, sizeof(*walls));
    for (size_t r = 0; r < b->run_count; r++)
        walls[r] = (double)b->runs[r].wall_ns;
    b->traced = bill_estimate(walls, b->run_count);
    b->wall = b->wall_count ? bill_estimate(b->walls, b->wall_count) : b->traced;
}

void bill_sum(struct bill *b)
{
    CLEANUP(memory_freep) double *sums = memory_zalloc(b->run_count + 1, sizeof(*sums));
    estimate_walls(b);
    b->cost_ns = record_cost(b);
    make_lines(b);
    for (size_t r = 0; r < b->run_count; r++)
        fill_run(b, r);
    bill_calibrate(b);
    double all = 0;
    for (size_t r = 0; r < b->run_count; r++)
        sums[r] = 0;
    for (size_t l = 0; l < b->line_count; l++) {
        b->lines[l].time = bill_estimate(b->lines[l].ns, b->run_count);
        all += b->lines[l].time.mean;
        for (size_t r = 0; r < b->run_count; r++)
            sums[r] += b->lines[l].ns[r];
    }
    b->sum = bill_estimate(sums, b->run_count);
    for (size_t l = 0; l < b->line_count; l++)
        b->lines[l].share = all > 0 ? b->lines[l].time.mean / all : 0;
    for (unsigned p = 0; p < BILL_PARTS; p++) {
        for (size_t r = 0; r < b->run_count; r++) {
            sums[r] = 0;
            for (size_t l = 0; l < b->line_count; l++)
                sums[r] += b->lines[l].part == p ? b->lines[l].ns[r] : 0;
        }
        b->parts[p] = bill_estimate(sums, b->run_count);
    }
    sort_lines(b);
    for (size_t l = 1; l < b->line_count; l++)
        b->has_threads |= !str_eq(b->lines[l].who, b->lines[0].who) && b->lines[l].share > 0;
}
