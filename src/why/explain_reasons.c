/* SPDX-License-Identifier: MIT */
/* From parts and counts to reasons, the largest first, each with its evidence. */
#include "base/memory.h"
#include "why/explain_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Of a unit of work: fewer cannot be felt. */
#define SIMULATED_LEAST 0.01
#define SAME_WORK 0.005
/* What one costs at most, about (the model has no second level: what misses the first one may be in
 * a third that many processors share); and how much of a change they must come to. */
#define MISPREDICTED_NS 8
#define FIRST_LEVEL_NS 20
#define LAST_LEVEL_NS 120
#define EXPLAINED_LEAST 0.2
#define TELLING_LEAST 0.03
#define AT_ONCE_TIMES 10
#define NAMELESS_LEAST 0.01
#define MEMORY_MOST 0.6

/* Adds up the weights of the parts of some kinds, run by run. */
struct sums {
    double *weights[SIDE_COUNT], *samples[SIDE_COUNT], *work[SIDE_COUNT];
};

static void sums_init(struct sums *sums, const struct parts *p, const struct profile_loads *loads,
                      bool (*counts)(const struct part *))
{
    for (unsigned s = 0; s < SIDE_COUNT; s++) {
        size_t runs = p->run_counts[s];
        sums->weights[s] = memory_zalloc(runs + 1, sizeof(double));
        sums->samples[s] = memory_zalloc(runs + 1, sizeof(double));
        sums->work[s] = memory_zalloc(runs + 1, sizeof(double));
        for (size_t run = 0; run < runs; run++) {
            sums->work[s][run] = loads->runs[s][run].work;
            for (size_t i = 0; i < p->count; i++)
                if (counts(&p->items[i])) {
                    sums->weights[s][run] += p->items[i].weights[s][run];
                    sums->samples[s][run] += p->items[i].samples[s][run];
                }
        }
    }
}

static void sums_done(struct sums *sums)
{
    for (unsigned s = 0; s < SIDE_COUNT; s++) {
        free(sums->weights[s]);
        free(sums->samples[s]);
        free(sums->work[s]);
    }
}

static bool is_cpu(const struct part *p)
{
    return !p->is_wait;
}

/* Parts too small to be told of are no part of the family that is judged. */
#define FAMILY_LEAST 0.01

static size_t family_of(const struct parts *p, bool (*counts)(const struct part *))
{
    CLEANUP(memory_freep) double *weights = memory_zalloc(p->count + 1, sizeof(*weights));
    double all = 0;
    size_t family = 0;
    for (size_t i = 0; i < p->count; i++)
        for (unsigned s = 0; s < SIDE_COUNT && counts(&p->items[i]); s++)
            for (size_t run = 0; run < p->run_counts[s]; run++) {
                weights[i] += p->items[i].weights[s][run];
                all += p->items[i].weights[s][run];
            }
    for (size_t i = 0; i < p->count; i++)
        family += weights[i] > FAMILY_LEAST * all;
    return family;
}

/* Waits are all there, not sampled, and were never measured without. */
static void wait_attribution(struct attribution *a, const struct parts *p, const struct sums *sums,
                             bool (*counts)(const struct part *))
{
    struct attribution_options o = {
        .every_one = true, .in_rounds = true, .family = family_of(p, counts)};
    for (unsigned s = 0; s < SIDE_COUNT; s++)
        o.sides[s] = (struct attribution_side){.run_count = p->run_counts[s],
                                               .weights = sums->weights[s],
                                               .samples = sums->samples[s],
                                               .work = sums->work[s]};
    attribution_init(a, &o);
}

static struct attributed sum_up(const struct parts *p, const struct profile_loads *loads,
                                bool (*counts)(const struct part *))
{
    struct sums sums;
    struct attribution a;
    sums_init(&sums, p, loads, counts);
    wait_attribution(&a, p, &sums, counts);
    struct attributed whole = a.whole;
    attribution_done(&a);
    sums_done(&sums);
    return whole;
}

static char *reason_name(const struct part *p, const struct attribution *a)
{
    const char *via = part_caller(p, a);
    switch (p->kind) {
    case PART_SYSCALL:
        return memory_printf("system call %s", p->name);
    case PART_ENTRY:
        return memory_strdup("entering and leaving the kernel");
    case PART_LOCK:
        return via ? memory_printf("waiting for a lock (%s) in %s", p->name, via)
                   : memory_printf("waiting for a lock (%s)", p->name);
    case PART_SLEEP:
        return via ? memory_printf("sleeping (%s) in %s", p->name, via)
                   : memory_printf("sleeping (%s)", p->name);
    case PART_STORAGE:
        return memory_printf("waiting for storage (%s)", p->name);
    case PART_WAIT:
        return via ? memory_printf("waiting (%s) in %s", p->name, via)
                   : memory_printf("waiting in %s", p->name);
    default:
        return memory_strdup(p->name);
    }
}

static enum reason_kind reason_kind_of(const struct part *p)
{
    switch (p->kind) {
    case PART_FUNCTION:
        return REASON_FUNCTION;
    case PART_SYSCALL:
    case PART_ENTRY:
        return REASON_SYSCALL;
    case PART_FAULTS:
        return REASON_FAULTS;
    case PART_INTERRUPTS:
    case PART_KERNEL:
        return REASON_KERNEL;
    default:
        return REASON_WAIT;
    }
}

static void put_count(struct strbuf *out, double value)
{
    strbuf_printf(out, value >= 100 || value == rint(value) ? "%.0f" : "%.3g", value);
}

static const char *unit_of(const struct explain *e)
{
    return e->unit ? e->unit : "run";
}

/* "calls per op: 0 → 5, 210 ns each" */
static void put_counted(struct strbuf *out, const struct explain *e, const char *what, double a,
                        double b, double cost_a, double cost_b)
{
    char each[32];
    if (!isfinite(a) || !isfinite(b))
        return;
    strbuf_printf(out, "%s per %s: ", what, unit_of(e));
    put_count(out, a);
    strbuf_puts(out, " → ");
    put_count(out, b);
    double count = fmax(a, b), cost = b >= a ? cost_b : cost_a;
    if (count > 0)
        strbuf_printf(out, ", %s each", format_duration(cost / count, each, sizeof(each)));
    strbuf_putc(out, '\n');
}

/* What a model counts is told where it could be a part of the reason: at so much time for each. */
static void put_simulated(struct strbuf *out, const struct explain *e, const char *what, double a,
                          double b, double each_ns, const struct attributed *cost)
{
    if (fabs(b - a) < SIMULATED_LEAST || fabs(b - a) < 0.02 * fmax(a, b) ||
        fabs(b - a) * each_ns < TELLING_LEAST * fabs(cost->change))
        return;
    strbuf_printf(out, "its %s per %s: ", what, unit_of(e));
    put_count(out, a);
    strbuf_puts(out, " → ");
    put_count(out, b);
    strbuf_puts(out, " (simulated)\n");
}

/* A function that executes what it did before, and takes another time for it. */
static void put_same_work(struct strbuf *out, const double *work,
                          const struct simulated_function *s, const struct attributed *cost)
{
    double a = s[SIDE_A].instructions / work[SIDE_A], b = s[SIDE_B].instructions / work[SIDE_B];
    double change = cost->b - cost->a;
    if (!(a > 0) || fabs(b - a) > SAME_WORK * a)
        return;
    strbuf_puts(out, "it executes the same number of instructions (simulated)");
    double modelled = 0;
    for (unsigned side = 0; side < SIDE_COUNT; side++)
        modelled += (side == SIDE_B ? 1 : -1) / work[side] *
                    (s[side].mispredicted * MISPREDICTED_NS + s[side].first_level * FIRST_LEVEL_NS +
                     s[side].last_level * LAST_LEVEL_NS);
    if (modelled * (change > 0 ? 1 : -1) < EXPLAINED_LEAST * fabs(change))
        strbuf_puts(out, ", and neither caches nor branches account for the change: its code may "
                         "only lie at another place (assay ab --layouts tells)");
    strbuf_putc(out, '\n');
}

/* "called by func_b"; nothing where no caller stands out. */
static void put_callers(struct strbuf *out, const char *how, const struct part *p,
                        const struct attribution *a)
{
    CLEANUP(strbuf_done) struct strbuf names = {0};
    const char *site = part_site(p, a);
    if (part_callers(p, a, &names))
        strbuf_printf(out, "%s %s%s%s\n", how, strbuf_text(&names), site ? ", at " : "",
                      site ? site : "");
}

static void put_function_evidence(struct strbuf *out, const struct explain *e,
                                  const struct parts *parts, const struct part *p,
                                  const struct attribution *a, const struct attributed *cost,
                                  const struct explain_counts *c)
{
    if (!explain_put_jumps(out, e, parts, p, part_code_caller(p, a)))
        put_callers(out, "called by", p, a);
    for (size_t i = 0; i < c->simulated_count; i++) {
        const struct simulated_function *s = c->simulated[i].values;
        if (!str_eq(c->simulated[i].function, p->name))
            continue;
        put_same_work(out, c->work, s, cost);
        put_simulated(out, e, "mispredicted branches", s[SIDE_A].mispredicted / c->work[SIDE_A],
                      s[SIDE_B].mispredicted / c->work[SIDE_B], MISPREDICTED_NS, cost);
        put_simulated(out, e, "level 1 cache misses", s[SIDE_A].first_level / c->work[SIDE_A],
                      s[SIDE_B].first_level / c->work[SIDE_B], FIRST_LEVEL_NS, cost);
        put_simulated(out, e, "last-level cache misses", s[SIDE_A].last_level / c->work[SIDE_A],
                      s[SIDE_B].last_level / c->work[SIDE_B], LAST_LEVEL_NS, cost);
    }
}

static double mean_count(const struct parts *parts, const struct profile_loads *loads,
                         const struct part *p, unsigned side)
{
    double count = 0;
    for (size_t run = 0; run < parts->run_counts[side]; run++)
        count +=
            p->samples[side][run] / loads->runs[side][run].work / (double)parts->run_counts[side];
    return count;
}

/* How often such a call waited, whoever woke it. */
static double waited_count(const struct explain *e, const struct parts *parts, const char *call,
                           unsigned side)
{
    double count = 0;
    for (size_t i = 0; i < parts->count; i++)
        if (parts->items[i].is_wait && parts->items[i].kind != PART_OTHERS &&
            str_eq(parts->items[i].name, call))
            count += mean_count(parts, &e->loads, &parts->items[i], side);
    return count;
}

/*
 * A call that is there to wait for events, made far more often by one side, where it hardly ever
 * waits: something that it watches is ready all the time, because nobody reads or clears it.
 */
static void put_returns_at_once(struct strbuf *out, const struct explain *e,
                                const struct parts *parts, const struct part *p,
                                const struct explain_counts *c)
{
    static const char *const calls[] = {"epoll_wait", "epoll_pwait", "epoll_pwait2", "poll",
                                        "ppoll",      "select",      "pselect6"};
    CLEANUP(memory_freep) char *event = memory_printf("syscalls:sys_enter_%s", p->name);
    double made[SIDE_COUNT], waited[SIDE_COUNT];
    bool waits_for_events = false;
    for (size_t i = 0; i < ARRAY_COUNT(calls); i++)
        waits_for_events |= str_eq(p->name, calls[i]);
    for (unsigned s = 0; s < SIDE_COUNT; s++) {
        made[s] = explain_count(c, event, s);
        waited[s] = waited_count(e, parts, p->name, s);
    }
    unsigned often = made[SIDE_B] >= made[SIDE_A] ? SIDE_B : SIDE_A, rare = SIDE_B - often;
    if (!waits_for_events || !(made[often] > AT_ONCE_TIMES * made[rare]) ||
        waited[often] * AT_ONCE_TIMES > made[often])
        return;
    strbuf_printf(out, "%s returns at once%s: waits in ", p->name,
                  often == SIDE_B ? "" : " in the base");
    put_count(out, waited[often]);
    strbuf_puts(out, " of ");
    put_count(out, made[often]);
    strbuf_printf(out, " calls per %s, against ", unit_of(e));
    put_count(out, waited[rare]);
    strbuf_puts(out, " of ");
    put_count(out, made[rare]);
    strbuf_puts(out, "; a descriptor that it watches stays ready because nothing reads from it\n");
}

/* "of new memory": what most of the change is for. */
static void put_memory(struct strbuf *out, const struct part *p)
{
    static const char *const words[FAULT_KINDS] = {
        "of new anonymous memory", "of files mapped into memory",
        "that copy a page at the first write", "that read memory back from swap"};
    double all = 0, change, largest = 0;
    size_t kind = 0;
    for (size_t i = 0; i < FAULT_KINDS; i++) {
        change = fabs(p->faults[i][SIDE_B] - p->faults[i][SIDE_A]);
        all += change;
        kind = change > largest ? i : kind;
        largest = fmax(largest, change);
    }
    if (largest > MEMORY_MOST * all && all > 0)
        strbuf_printf(out, "mostly faults %s\n", words[kind]);
}

static char *find_evidence(const struct explain *e, const struct parts *parts, const struct part *p,
                           const struct attribution *a, const struct attributed *cost,
                           const struct explain_counts *c)
{
    struct strbuf out = {0};
    strbuf_puts(&out, "");
    if (p->kind == PART_SYSCALL) {
        CLEANUP(memory_freep) char *event = memory_printf("syscalls:sys_enter_%s", p->name);
        put_counted(&out, e, "calls", explain_count(c, event, SIDE_A),
                    explain_count(c, event, SIDE_B), cost->a, cost->b);
        put_returns_at_once(&out, e, parts, p, c);
        put_callers(&out, "made by", p, a);
    } else if (p->kind == PART_FAULTS) {
        put_counted(&out, e, "faults", explain_count(c, "page-faults", SIDE_A),
                    explain_count(c, "page-faults", SIDE_B), cost->a, cost->b);
        put_callers(&out, "in", p, a);
        put_memory(&out, p);
    } else if (p->is_wait) {
        put_counted(&out, e, "waits", mean_count(parts, &e->loads, p, SIDE_A),
                    mean_count(parts, &e->loads, p, SIDE_B), cost->a, cost->b);
    } else if (p->kind == PART_FUNCTION) {
        put_function_evidence(&out, e, parts, p, a, cost, c);
    }
    return out.data ? out.data : memory_strdup("");
}

static int compare_reasons(const void *left, const void *right)
{
    const struct reason *a = left, *b = right;
    if (attributed_is_told(&a->cost) != attributed_is_told(&b->cost))
        return attributed_is_told(&a->cost) ? -1 : 1; /* what could be chance comes last */
    double x = fabs(a->cost.change), y = fabs(b->cost.change);
    return x < y ? 1 : x > y ? -1 : strcmp(a->name, b->name);
}

static char *reason_where(const struct part *p, const struct attribution *a)
{
    struct strbuf out = {0};
    part_inlined_words(p, a, &out);
    if (p->with)
        strbuf_printf(&out, "%s%s", out.length ? ", " : "", p->with);
    return out.data ? out.data : memory_strdup("");
}

static void add_reasons(struct explain *e, const struct parts *p, const struct attribution *a,
                        bool waits, const struct explain_counts *c)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct part *part = &p->items[i];
        if (part->is_wait != waits || (waits && !part_is_own_wait(part)))
            continue;
        struct attributed cost =
            attribution_part(a, (const double *const[]){part->weights[0], part->weights[1]},
                             (const double *const[]){part->samples[0], part->samples[1]});
        if (cost.a == 0 && cost.b == 0)
            continue;
        const char *waiter = waits ? part_caller(part, a) : NULL;
        cost.share = e->whole.change != 0 ? cost.change / e->whole.change : NAN;
        ARRAY_PUSH(e->reasons, e->reason_count, e->reason_capacity) =
            (struct reason){.kind = reason_kind_of(part),
                            .name = reason_name(part, a),
                            .where = reason_where(part, a),
                            .cost = cost,
                            .evidence = find_evidence(e, p, part, a, &cost, c),
                            .waiter = waiter ? memory_strdup(waiter) : NULL};
    }
}

static void add_fact(struct explain *e, const struct explain_counts *c, size_t event)
{
    struct explain_fact fact = {.name = memory_strdup(c->events.items[event].name)};
    double low[SIDE_COUNT], high[SIDE_COUNT];
    for (unsigned s = 0; s < SIDE_COUNT; s++) {
        fact.values[s] = explain_count(c, fact.name, s);
        low[s] = INFINITY;
        high[s] = -INFINITY;
        for (size_t i = 0; i < c->rounds; i++) {
            low[s] = fmin(low[s], c->values[s][event * c->rounds + i]);
            high[s] = fmax(high[s], c->values[s][event * c->rounds + i]);
        }
    }
    /* Few runs: a change is one when no run of one side reaches the other's. */
    fact.changed = high[SIDE_A] < low[SIDE_B] || high[SIDE_B] < low[SIDE_A];
    if (!isfinite(fact.values[SIDE_A]) || !isfinite(fact.values[SIDE_B])) {
        free(fact.name);
        return;
    }
    ARRAY_PUSH(e->facts, e->fact_count, e->fact_capacity) = fact;
}

static struct attributed add_wholes(const struct attributed *a, const struct attributed *b)
{
    struct attributed sum = {.a = a->a + b->a, .b = a->b + b->b, .share = 1};
    sum.change = sum.b - sum.a;
    sum.half_width = hypot(a->half_width, b->half_width);
    sum.resolution = hypot(a->resolution, b->resolution);
    sum.below_resolution = fabs(sum.change) < sum.resolution;
    sum.significant = fabs(sum.change) > sum.half_width;
    return sum;
}

static void share_entries(struct parts *parts, const struct explain_counts *c)
{
    struct syscall_count *calls = memory_zalloc(parts->count + 2, sizeof(*calls));
    size_t count = 0;
    for (size_t i = 0; i < parts->count; i++) {
        if (parts->items[i].kind != PART_SYSCALL)
            continue;
        CLEANUP(memory_freep)
        char *event = memory_printf("syscalls:sys_enter_%s", parts->items[i].name);
        double a = explain_count(c, event, SIDE_A), b = explain_count(c, event, SIDE_B);
        if (isfinite(a) && isfinite(b))
            calls[count++] = (struct syscall_count){parts->items[i].name, {a, b}};
    }
    /* Very short calls are never seen in a stack: what is left of all calls is theirs. */
    double rest[SIDE_COUNT];
    for (unsigned s = 0; s < SIDE_COUNT; s++) {
        rest[s] = explain_count(c, "raw_syscalls:sys_enter", s);
        for (size_t k = 0; k < count; k++)
            rest[s] -= calls[k].values[s];
        rest[s] = rest[s] > 0 ? rest[s] : 0; /* NAN: not counted */
    }
    calls[count++] = (struct syscall_count){"", {rest[SIDE_A], rest[SIDE_B]}};
    parts_share_entries(parts, calls, count);
    free(calls);
}

/* The code that nothing names, where it is more than a trifle: whose, and what would help. */
static char *nameless_words(const struct parts *p)
{
    double all = 0, most = 0;
    const struct part_nameless *largest = NULL;
    for (unsigned s = 0; s < SIDE_COUNT; s++)
        for (size_t run = 0; run < p->run_counts[s]; run++)
            all += p->cpu_weights[s][run] / (double)p->run_counts[s];
    for (size_t i = 0; i < p->nameless_count; i++) {
        double weight = p->nameless[i].weights[SIDE_A] + p->nameless[i].weights[SIDE_B];
        if (weight > most) {
            most = weight;
            largest = &p->nameless[i];
        }
    }
    if (!largest || most < NAMELESS_LEAST * all)
        return memory_strdup("");
    const char *dso = largest->dso;
    bool is_made = !*dso || strchr("[/", dso[0]) || str_has_prefix(dso, "perf-");
    return is_made ? memory_strdup("code made at run time that no perf map or jitdump names")
                   : memory_printf("code of %s, which has no symbols; keep them, or install its "
                                   "debug package",
                                   dso);
}

void explain_conclude(struct explain *e, struct parts *parts, const struct explain_counts *counts)
{
    struct attribution cpu, waits;
    struct sums sums;
    share_entries(parts, counts);
    struct attribution_options o = {
        .paired = e->measured.paired, .in_rounds = true, .family = family_of(parts, is_cpu)};
    sums_init(&sums, parts, &e->loads, part_is_own_wait);
    for (unsigned s = 0; s < SIDE_COUNT; s++)
        o.sides[s] = (struct attribution_side){.run_count = parts->run_counts[s],
                                               .weights = parts->cpu_weights[s],
                                               .samples = parts->cpu_samples[s],
                                               .work = sums.work[s],
                                               .measured = e->measured.cpu[s],
                                               .measured_count = e->measured.counts[s],
                                               .is_partial = e->diff.user_only};
    attribution_init(&cpu, &o);
    wait_attribution(&waits, parts, &sums, part_is_own_wait);
    e->cpu = cpu.whole;
    e->waits = waits.whole;
    e->whole = add_wholes(&e->cpu, &e->waits);
    e->own_peers = sum_up(parts, &e->loads, part_is_peers);
    e->others = sum_up(parts, &e->loads, part_is_others);
    e->idle = sum_up(parts, &e->loads, part_is_idle);
    parts_place(parts, &cpu);
    parts_join_splits(parts, &cpu);
    add_reasons(e, parts, &cpu, false, counts);
    add_reasons(e, parts, &waits, true, counts);
    if (e->reason_count)
        qsort(e->reasons, e->reason_count, sizeof(*e->reasons), compare_reasons);
    e->unattributed = e->whole;
    for (size_t i = 0; i < e->reason_count; i++) {
        e->unattributed.a -= e->reasons[i].cost.a;
        e->unattributed.b -= e->reasons[i].cost.b;
    }
    e->unattributed.change = e->unattributed.b - e->unattributed.a;
    e->unattributed.share = e->whole.change != 0 ? e->unattributed.change / e->whole.change : NAN;
    e->unattributed.half_width = NAN;
    e->unattributed.significant = false;
    e->unattributed_where = nameless_words(parts);
    for (size_t i = 0; i < counts->events.count; i++)
        if (!str_has_prefix(counts->events.items[i].name, "syscalls:"))
            add_fact(e, counts, i);
    explain_find_programs(e, &cpu);
    explain_find_owners(e, parts, &cpu);
    attribution_done(&cpu);
    attribution_done(&waits);
    sums_done(&sums);
}
