/* SPDX-License-Identifier: MIT */
/* Reasons for people: what moved, then why, the largest reason first. */
#include "base/memory.h"
#include "report/profile/cost.h"
#include "report/text/explain.h"

#include <math.h>

/* Reasons that carry less of the change than this are added up in one line. */
#define SMALL_SHARE 0.02
#define REASONS_MOST 10
#define SURE_TIMES 1.5
#define PROGRAM_SHARE 0.1
#define PROGRAMS_MOST 6
#define OWNERS_MOST 4
/* From so many on, it is the noise that keeps a difference from being told. */
#define FEW_ROUNDS 8
#define ELSEWHERE_LEAST 0.5

static void choose_unit(const struct explain *e, struct cost_unit *unit)
{
    cost_unit_choose(unit, fmax(fabs(e->whole.a), fabs(e->whole.b)), true, e->unit);
}

/* The first, and those that are certain; many are looked at, so that each has to be surer than one
 * alone would. */
static bool matters(const struct explain_view *v, size_t index)
{
    const struct attributed *cost = &v->e->reasons[index].cost;
    bool is_sure = attributed_is_told(cost) &&
                   (!(fabs(cost->change) < SURE_TIMES * cost->half_width) || cost->share > 0.3);
    return v->all || index == 0 ||
           (index < REASONS_MOST && fabs(cost->share) >= SMALL_SHARE && is_sure);
}

void report_reason_line(struct strbuf *out, const struct explain *e, const struct reason *reason)
{
    struct cost_unit unit;
    choose_unit(e, &unit);
    strbuf_put_safe(out, reason->name, strlen(reason->name), 160);
    strbuf_putc(out, ' ');
    strbuf_put_attributed(out, &unit, &reason->cost);
    if (reason->where[0]) {
        strbuf_puts(out, ", ");
        strbuf_put_safe(out, reason->where, strlen(reason->where), 160);
    }
    if (isfinite(reason->cost.share)) {
        strbuf_puts(out, ", ");
        strbuf_put_share(out, reason->cost.share);
        strbuf_puts(out, " of the ");
        strbuf_put_cost_change(out, &unit, e->whole.change);
        strbuf_printf(out, " %s", unit.text);
    }
    if (reason->cost.below_resolution)
        strbuf_puts(out, "  ~ below the resolution of sampling");
    else if (isfinite(reason->cost.half_width) && !reason->cost.significant)
        strbuf_puts(out, "  ~ could be chance");
}

void report_explain_whole(struct strbuf *out, const struct explain *e)
{
    struct cost_unit unit;
    choose_unit(e, &unit);
    strbuf_printf(out, "CPU time and own waits per %s: ", e->unit ? e->unit : "run");
    strbuf_put_cost(out, &unit, e->whole.a);
    strbuf_puts(out, " → ");
    strbuf_put_cost(out, &unit, e->whole.b);
    strbuf_puts(out, ", ");
    strbuf_put_attributed(out, &unit, &e->whole);
}

void report_explain_rest(struct strbuf *out, const struct explain *e)
{
    struct cost_unit unit;
    choose_unit(e, &unit);
    strbuf_put_cost_change(out, &unit, e->unattributed.change);
    strbuf_printf(out, " %s, ", unit.text);
    strbuf_put_share(out, e->unattributed.share);
    if (e->unattributed_where && e->unattributed_where[0]) {
        strbuf_puts(out, ": ");
        strbuf_put_safe(out, e->unattributed_where, strlen(e->unattributed_where), 200);
    }
}

static void put_lines(struct strbuf *out, const char *indent, const char *text)
{
    while (*text) {
        size_t length = strcspn(text, "\n");
        strbuf_puts(out, indent);
        strbuf_put_safe(out, text, length, 400);
        strbuf_putc(out, '\n');
        text += length + (text[length] == '\n');
    }
}

/* 1 for a cost that rose, -1 for one that fell, 0 where that is not certain. */
static int direction_of(const struct verdict *verdict)
{
    return (verdict->kind == VERDICT_WORSE) - (verdict->kind == VERDICT_BETTER);
}

/* Ratios are taken within rounds.  Where runs vary more from round to round than the sides differ,
 * the medians of each side alone can go the other way. */
static bool medians_disagree(const struct comparison *c, const struct verdict *verdict)
{
    return direction_of(verdict) * (c->new_median - c->base_median) < 0;
}

static void put_time(struct strbuf *out, const struct explain *e, const char *what,
                     const struct comparison *c, const struct verdict *verdict)
{
    struct cost_unit unit;
    cost_unit_choose(&unit, fmax(c->base_median, c->new_median), true, e->unit);
    strbuf_printf(out, "%s per %s: ", what, e->unit ? e->unit : "run");
    if (medians_disagree(c, verdict)) {
        strbuf_printf(out, "%s, within rounds; the medians over all rounds (", verdict->text);
        strbuf_put_cost(out, &unit, c->base_median);
        strbuf_puts(out, " and ");
        strbuf_put_cost(out, &unit, c->new_median);
        strbuf_printf(out, " %s) do not show it: rounds vary more than that\n", unit.text);
        return;
    }
    strbuf_put_cost(out, &unit, c->base_median);
    strbuf_puts(out, " → ");
    strbuf_put_cost(out, &unit, c->new_median);
    strbuf_printf(out, " %s, %s\n", unit.text, verdict->text);
}

#define SEE_THE_BILLS                                                                            \
    "Threads or processes may wait for each other longer: 'assay explain COMMAND' of each side " \
    "alone bills its wall time.\n"

/* Whether most of the change of wall time is neither in CPU time and own waits nor in waiting for a
 * CPU. */
static bool is_elsewhere(const struct explain *e, const struct attributed *known)
{
    const struct explain_measured *m = &e->measured;
    double change = m->wall_comparison.new_median - m->wall_comparison.base_median;
    double way = change < 0 ? -1 : 1, ready = way * e->others.change;
    return m->wall[SIDE_A] && verdict_is_difference(&m->wall_verdict) &&
           way * known->change + (ready > 0 ? ready : 0) < ELSEWHERE_LEAST * fabs(change);
}

/* Where waits cannot be recorded, more runs would not help: a wait may be all that changed. */
static void put_unconfirmed(struct strbuf *out, const struct explain *e)
{
    struct cost_unit unit;
    bool cpu_moved = verdict_is_difference(&e->measured.cpu_verdict);
    bool is_blind = !e->has_waits && !cpu_moved;
    cost_unit_choose(&unit, fmax(fabs(e->profiled_change.a), fabs(e->profiled_change.b)), true,
                     e->unit);
    strbuf_puts(out, "The profiled runs do not confirm it: there, CPU time");
    strbuf_puts(out, cpu_moved || is_blind ? "" : " and own waits");
    strbuf_puts(out, " changed by ");
    strbuf_put_attributed(out, &unit, &e->profiled_change);
    strbuf_puts(out, is_blind ? ", and waits could not be seen" : "");
    strbuf_puts(out, e->profiled ? ". Explained because of --force.\n"
                     : is_blind  ? ". So nothing is explained.\n"
                                 : ". So nothing is explained; more --rounds and --profiles would "
                                   "settle it, --force explains the profiled runs.\n");
    if (!e->profiled && is_elsewhere(e, &e->profiled_change))
        strbuf_puts(out, SEE_THE_BILLS);
    if (is_blind && !e->profiled)
        put_lines(out, "  * ", strbuf_text(&e->notes));
}

/* Why nothing is explained, or that it is all the same. */
static void put_outcome(struct strbuf *out, const struct explain *e)
{
    const struct explain_measured *m = &e->measured;
    bool cannot_tell = m->cpu_verdict.kind == VERDICT_CANNOT_TELL ||
                       (m->wall[SIDE_A] && m->wall_verdict.kind == VERDICT_CANNOT_TELL);
    if (e->outcome == EXPLAIN_EXPLAINED) {
        if (!m->moved && e->waits_moved)
            strbuf_puts(out, "The clocks cannot tell them apart, but what the program itself waits "
                             "for changed.\n");
        return;
    }
    if (e->outcome == EXPLAIN_UNCONFIRMED) {
        put_unconfirmed(out, e);
        return;
    }
    size_t rounds = m->counts[SIDE_B];
    if (cannot_tell && rounds < FEW_ROUNDS && !e->profiled) {
        strbuf_printf(out,
                      "%zu %s too few to tell a difference from noise, so nothing is explained; "
                      "use more --rounds, or --force to explain anyway.\n",
                      rounds, plural(rounds, "round is", "rounds are"));
        return;
    }
    strbuf_puts(out, cannot_tell ? "No difference can be told from noise"
                                 : "Nothing changed beyond noise");
    strbuf_puts(out, e->looked_at_waits ? ", nor in what the program waits for" : "");
    strbuf_puts(out, e->profiled ? "; explained because of --force.\n"
                     : cannot_tell
                         ? ", so nothing is explained; more --rounds would show smaller "
                           "differences, --force explains anyway.\n"
                         : ", so there is nothing to explain; --force explains anyway.\n");
}

static void put_head(struct strbuf *out, const struct explain_view *v)
{
    const struct explain *e = v->e;
    const char *bold = v->colour ? "\033[1m" : "", *plain = v->colour ? "\033[0m" : "";
    if (e->label[0])
        strbuf_printf(out, "%s%s%s\n", bold, e->label, plain);
    for (unsigned s = 0; s < SIDE_COUNT; s++) {
        strbuf_puts(out, s ? "new:  " : "base: ");
        strbuf_put_safe(out, e->names[s], strlen(e->names[s]), 200);
        strbuf_putc(out, '\n');
    }
    const struct explain_measured *m = &e->measured;
    strbuf_printf(out, "%zu %s each, measured without a profiler%s\n", m->counts[SIDE_B],
                  plural(m->counts[SIDE_B], "run", "runs"), m->paired ? ", interleaved" : "");
    if (m->wall[SIDE_A])
        put_time(out, e, "wall time", &m->wall_comparison, &m->wall_verdict);
    put_time(out, e, "CPU time", &m->cpu_comparison, &m->cpu_verdict);
    put_outcome(out, e);
}

void report_reasons_others(struct strbuf *out, const struct explain *e, size_t count, double change)
{
    struct cost_unit unit;
    choose_unit(e, &unit);
    strbuf_printf(out, "%zu %s, none of which stands out from sampling noise: together ", count,
                  count < e->reason_count ? "others" : "functions");
    strbuf_put_cost_change(out, &unit, change);
    strbuf_printf(out, " %s; unattributed ", unit.text);
    report_explain_rest(out, e);
}

static void put_reasons(struct strbuf *out, const struct explain_view *v,
                        const struct cost_unit *unit)
{
    const struct explain *e = v->e;
    double rest = 0;
    size_t rest_count = 0, number = 0;
    for (size_t i = 0; i < e->reason_count; i++) {
        const struct reason *r = &e->reasons[i];
        if (!matters(v, i)) {
            rest += r->cost.change;
            rest_count++;
            continue;
        }
        bool grey = v->colour && !attributed_is_told(&r->cost);
        strbuf_printf(out, "%s%3zu. ",
                      grey              ? "\033[90m"
                      : v->colour && !i ? "\033[1m"
                                        : "",
                      ++number);
        report_reason_line(out, e, r);
        strbuf_puts(out, v->colour && (grey || !i) ? "\033[0m\n" : "\n");
        put_lines(out, "       ", r->evidence);
    }
    if (rest_count) {
        strbuf_printf(out, "     %zu smaller %s, together ", rest_count,
                      plural(rest_count, "one", "ones"));
        strbuf_put_cost_change(out, unit, rest);
        strbuf_printf(out, " %s\n", unit->text);
    }
    strbuf_puts(out, "     unattributed ");
    report_explain_rest(out, e);
    strbuf_putc(out, '\n');
}

static void put_number(struct strbuf *out, double value)
{
    strbuf_printf(out, fabs(value) >= 1000 ? "%.0f" : "%.3g", value);
}

/* Whether a reason above has the time that a count stands for. */
static bool is_among_reasons(const struct explain_view *v, const char *event)
{
    for (size_t i = 0; i < v->e->reason_count; i++) {
        enum reason_kind kind = v->e->reasons[i].kind;
        if (matters(v, i) && ((kind == REASON_FAULTS && str_eq(event, "page-faults")) ||
                              (kind == REASON_SYSCALL && str_eq(event, "raw_syscalls:sys_enter"))))
            return true;
    }
    return false;
}

static void put_facts(struct strbuf *out, const struct explain_view *v)
{
    const struct explain *e = v->e;
    bool any = false;
    for (size_t i = 0; i < e->fact_count; i++) {
        const struct explain_fact *f = &e->facts[i];
        double larger = fmax(fabs(f->values[0]), fabs(f->values[1]));
        if (!f->changed || fabs(f->values[1] - f->values[0]) < 0.01 * larger)
            continue;
        if (!any)
            strbuf_printf(out, "\nAlso changed, per %s:\n", e->unit ? e->unit : "run");
        any = true;
        strbuf_printf(out, "     %-26s ", f->name);
        put_number(out, f->values[SIDE_A]);
        strbuf_puts(out, " → ");
        put_number(out, f->values[SIDE_B]);
        strbuf_puts(out,
                    is_among_reasons(v, f->name) ? "  (their time is in the reasons above)" : "");
        strbuf_puts(out, f->simulated ? "  (simulated)\n" : "\n");
    }
}

/* Programs whose processes became more or fewer, or cost certainly more or less. */
static bool program_matters(const struct explain_program *p)
{
    return p->count_changed ||
           (attributed_is_told(&p->cost) && fabs(p->cost.share) >= PROGRAM_SHARE);
}

/* Whether another program than the command itself is one to tell of. */
static bool has_programs(const struct explain *e)
{
    for (size_t i = 0; i < e->program_count; i++)
        if (!e->programs[i].is_itself && program_matters(&e->programs[i]))
            return true;
    return false;
}

static void put_programs(struct strbuf *out, const struct explain *e, const struct cost_unit *unit)
{
    size_t shown = 0;
    for (size_t i = 0; i < e->program_count && has_programs(e); i++) {
        const struct explain_program *p = &e->programs[i];
        if ((!p->is_itself && !program_matters(p)) || shown == PROGRAMS_MOST)
            continue;
        if (!shown++)
            strbuf_printf(out, "By program, CPU time per %s:\n\n", e->unit ? e->unit : "run");
        strbuf_puts(out, "     ");
        strbuf_put_safe(out, p->name, strlen(p->name), 80);
        strbuf_putc(out, ' ');
        strbuf_put_attributed(out, unit, &p->cost);
        if (!p->is_itself) {
            strbuf_puts(out, ", processes: ");
            put_number(out, p->counts[SIDE_A]);
            strbuf_puts(out, " → ");
            put_number(out, p->counts[SIDE_B]);
        }
        strbuf_putc(out, '\n');
    }
    strbuf_puts(out, shown ? "\nWhy:\n\n" : "");
}

/* Where the reasons are many small ones: for which functions of the program that is. */
static void put_owners(struct strbuf *out, const struct explain *e, const struct cost_unit *unit)
{
    size_t shown = 0;
    for (size_t i = 0; i < e->owner_count && shown < OWNERS_MOST; i++) {
        const struct explain_owner *o = &e->owners[i];
        if (!o->is_scattered)
            continue;
        if (!shown++)
            strbuf_puts(out,
                        "\nBy function of the program, with what it calls in libraries and the "
                        "kernel:\n\n");
        strbuf_puts(out, "     ");
        strbuf_put_safe(out, o->name, strlen(o->name), 160);
        strbuf_putc(out, ' ');
        strbuf_put_attributed(out, unit, &o->cost);
        strbuf_puts(out, ", ");
        strbuf_put_share(out, o->cost.share);
        strbuf_puts(out, " of the ");
        strbuf_put_cost_change(out, unit, e->whole.change);
        strbuf_printf(out, " %s\n", unit->text);
    }
}

static void put_notes(struct strbuf *out, const struct explain *e, const struct cost_unit *unit)
{
    strbuf_putc(out, '\n');
    if (fabs(e->others.change) > 0.05 * fabs(e->whole.change) && e->has_waits) {
        strbuf_puts(out, "  * In addition, ready to run while others had the CPU: ");
        strbuf_put_attributed(out, unit, &e->others);
        strbuf_puts(out, ". That is the machine's doing and is not counted.\n");
    }
    if (fabs(e->own_peers.change) > 0.05 * fabs(e->whole.change) && e->has_waits) {
        strbuf_puts(out,
                    "  * In addition, waiting for other threads or processes of the command: ");
        strbuf_put_attributed(out, unit, &e->own_peers);
        strbuf_puts(out, ". Their own work is counted.\n");
    }
    if (fabs(e->idle.change) > 0.05 * fabs(e->whole.change) && e->has_waits) {
        strbuf_puts(out, "  * In addition, waits of threads for which nothing waited meanwhile: ");
        strbuf_put_attributed(out, unit, &e->idle);
        strbuf_puts(out, ". They make nothing slower and are not counted.\n");
    }
    if (is_elsewhere(e, &e->whole) && e->has_waits)
        strbuf_puts(out, "  * Most of the change of wall time is not in the above. " SEE_THE_BILLS);
    if (e->simulator[0])
        strbuf_printf(out,
                      "  * Caches and branches are simulated by %s: a model, not this machine.\n",
                      e->simulator);
    put_lines(out, "  * ", strbuf_text(&e->notes));
}

void report_explain_text(struct strbuf *out, const struct explain_view *v)
{
    const struct explain *e = v->e;
    struct cost_unit unit;
    put_head(out, v);
    if (!e->profiled)
        return;
    choose_unit(e, &unit);
    strbuf_putc(out, '\n');
    report_explain_whole(out, e);
    strbuf_puts(out, has_programs(e) ? ".\n\n" : ". Why:\n\n");
    put_programs(out, e, &unit);
    put_reasons(out, v, &unit);
    put_owners(out, e, &unit);
    put_facts(out, v);
    put_notes(out, e, &unit);
}

void report_explain_markdown(struct strbuf *out, const struct explain_view *v)
{
    const struct explain *e = v->e;
    if (e->label[0])
        strbuf_printf(out, "**%s**\n\n", e->label);
    put_outcome(out, e);
    if (!e->profiled)
        return;
    strbuf_puts(out, e->outcome == EXPLAIN_EXPLAINED ? "" : "\n");
    for (size_t i = 0, number = 0; i < e->reason_count; i++) {
        if (!matters(v, i))
            continue;
        CLEANUP(strbuf_done) struct strbuf line = {0};
        report_reason_line(&line, e, &e->reasons[i]);
        strbuf_printf(out, "%zu. ", ++number);
        for (const char *c = strbuf_text(&line); *c; c++) {
            if (strchr("|*_`<>[]\\", *c))
                strbuf_putc(out, '\\');
            strbuf_putc(out, *c);
        }
        strbuf_putc(out, '\n');
    }
    strbuf_puts(out, "\nUnattributed: ");
    strbuf_put_share(out, e->unattributed.share);
    strbuf_putc(out, '\n');
}
