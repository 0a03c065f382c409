/* SPDX-License-Identifier: MIT */
/* Reasons for programs. */
#include "base/memory.h"
#include "report/profile/diff.h"
#include "report/text/explain.h"

#include <math.h>

static const char *reason_kind(enum reason_kind kind)
{
    static const char *const names[] = {"function", "system call", "faults", "kernel", "wait"};
    return names[kind];
}

static void put_comparison(struct json *j, const char *key, const struct comparison *c,
                           const struct verdict *verdict)
{
    json_object(j, key);
    json_double(j, "base_median", c->base_median);
    json_double(j, "new_median", c->new_median);
    json_string(j, "scale", c->scale == COMPARISON_RATIO ? "ratio" : "difference");
    json_double(j, "estimate", c->estimate);
    json_double(j, "low", c->low);
    json_double(j, "high", c->high);
    json_double(j, "p", c->p);
    json_string(j, "words", verdict->text);
    json_end(j);
}

static void put_values(struct json *j, const char *key, const double *values, size_t count)
{
    json_array(j, key);
    for (size_t i = 0; i < count; i++)
        json_double(j, NULL, values[i]);
    json_end(j);
}

static void put_measured(struct json *j, const struct explain_measured *m)
{
    json_object(j, "measured");
    json_bool(j, "moved", m->moved);
    json_bool(j, "paired", m->paired);
    if (m->wall[SIDE_A]) {
        put_comparison(j, "wall", &m->wall_comparison, &m->wall_verdict);
        put_values(j, "base_wall_ns", m->wall[SIDE_A], m->counts[SIDE_A]);
        put_values(j, "new_wall_ns", m->wall[SIDE_B], m->counts[SIDE_B]);
    }
    put_comparison(j, "cpu", &m->cpu_comparison, &m->cpu_verdict);
    put_values(j, "base_cpu_ns", m->cpu[SIDE_A], m->counts[SIDE_A]);
    put_values(j, "new_cpu_ns", m->cpu[SIDE_B], m->counts[SIDE_B]);
    json_end(j);
}

static void put_reason(struct json *j, const struct explain *e, const struct reason *r)
{
    CLEANUP(strbuf_done) struct strbuf line = {0};
    report_reason_line(&line, e, r);
    json_object(j, NULL);
    json_string(j, "kind", reason_kind(r->kind));
    json_string(j, "name", r->name);
    json_string(j, "where", r->where);
    report_attributed_json(j, "cost", &r->cost);
    json_string(j, "evidence", r->evidence);
    json_string(j, "words", strbuf_text(&line));
    json_end(j);
}

static void put_facts(struct json *j, const struct explain *e)
{
    json_array(j, "counts");
    for (size_t i = 0; i < e->fact_count; i++) {
        const struct explain_fact *f = &e->facts[i];
        json_object(j, NULL);
        json_string(j, "event", f->name);
        json_double(j, "base", f->values[SIDE_A]);
        json_double(j, "new", f->values[SIDE_B]);
        json_bool(j, "changed", f->changed);
        json_bool(j, "simulated", f->simulated);
        json_end(j);
    }
    json_end(j);
}

static void put_programs(struct json *j, const struct explain *e)
{
    json_array(j, "programs");
    for (size_t i = 0; i < e->program_count; i++) {
        const struct explain_program *p = &e->programs[i];
        json_object(j, NULL);
        json_string(j, "name", p->name);
        json_bool(j, "is_itself", p->is_itself);
        json_double(j, "base_processes", p->counts[SIDE_A]);
        json_double(j, "new_processes", p->counts[SIDE_B]);
        report_attributed_json(j, "cpu", &p->cost);
        json_end(j);
    }
    json_end(j);
}

static void put_owners(struct json *j, const struct explain *e)
{
    json_array(j, "owners");
    for (size_t i = 0; i < e->owner_count; i++) {
        json_object(j, NULL);
        json_string(j, "name", e->owners[i].name);
        json_bool(j, "is_scattered", e->owners[i].is_scattered);
        report_attributed_json(j, "cpu", &e->owners[i].cost);
        json_end(j);
    }
    json_end(j);
}

void report_explain_json(struct json *j, const struct explain_view *v)
{
    const struct explain *e = v->e;
    json_object(j, NULL);
    json_string(j, "base", e->names[SIDE_A]);
    json_string(j, "new", e->names[SIDE_B]);
    json_string(j, "cell", e->label);
    if (e->experiments[SIDE_B]) {
        json_i64(j, "base_experiment", e->experiments[SIDE_A]);
        json_i64(j, "new_experiment", e->experiments[SIDE_B]);
        json_string(j, "base_uuid", e->uuids[SIDE_A]);
        json_string(j, "new_uuid", e->uuids[SIDE_B]);
        json_string(j, "base_cell", e->cells[SIDE_A]);
        json_string(j, "new_cell", e->cells[SIDE_B]);
    }
    json_string(j, "unit", "ns");
    json_string(j, "per", e->unit ? e->unit : "run");
    put_measured(j, &e->measured);
    static const char *const outcomes[] = {"no difference", "not confirmed", "explained"};
    json_string(j, "outcome", outcomes[e->outcome]);
    json_bool(j, "waits_moved", e->waits_moved);
    json_bool(j, "profiled", e->profiled);
    if (e->profiled) {
        CLEANUP(strbuf_done) struct strbuf whole = {0}, rest = {0};
        report_explain_whole(&whole, e);
        report_explain_rest(&rest, e);
        json_string(j, "words", strbuf_text(&whole));
        json_string(j, "unattributed_words", strbuf_text(&rest));
        report_attributed_json(j, "whole", &e->whole);
        report_attributed_json(j, "cpu", &e->cpu);
        report_attributed_json(j, "own_waits", &e->waits);
        report_attributed_json(j, "unattributed", &e->unattributed);
        report_attributed_json(j, "ready_while_others_ran", &e->others);
        report_attributed_json(j, "waits_for_own_threads_and_processes", &e->own_peers);
        report_attributed_json(j, "waits_that_nothing_waited_for", &e->idle);
        json_array(j, "reasons");
        for (size_t i = 0; i < e->reason_count; i++)
            put_reason(j, e, &e->reasons[i]);
        json_end(j);
        put_programs(j, e);
        put_owners(j, e);
        put_facts(j, e);
        json_string(j, "simulator", e->simulator[0] ? e->simulator : NULL);
        json_string(j, "notes", strbuf_text(&e->notes));
    }
    json_end(j);
}

void report_explain_csv_head(struct strbuf *out)
{
    strbuf_puts(out, "cell,rank,kind,reason,unit,base,new,change,half_width,share,"
                     "below_resolution,significant\n");
}

static void put_number(struct strbuf *out, double value)
{
    strbuf_putc(out, ',');
    if (isfinite(value))
        strbuf_printf(out, "%.9g", value);
}

static void put_csv_line(struct strbuf *out, const struct explain *e, size_t rank, const char *kind,
                         const char *name, const struct attributed *a)
{
    strbuf_put_csv(out, e->label);
    strbuf_printf(out, ",%zu,%s,", rank, kind);
    strbuf_put_csv(out, name);
    strbuf_puts(out, ",ns/");
    strbuf_put_csv(out, e->unit ? e->unit : "run");
    put_number(out, a->a);
    put_number(out, a->b);
    put_number(out, a->change);
    put_number(out, a->half_width);
    put_number(out, a->share);
    strbuf_printf(out, ",%d,%d\n", a->below_resolution, a->significant);
}

void report_explain_csv(struct strbuf *out, const struct explain_view *v)
{
    const struct explain *e = v->e;
    if (!e->profiled)
        return;
    for (size_t i = 0; i < e->reason_count; i++)
        put_csv_line(out, e, i + 1, reason_kind(e->reasons[i].kind), e->reasons[i].name,
                     &e->reasons[i].cost);
    put_csv_line(out, e, 0, "rest", "(unattributed)", &e->unattributed);
    put_csv_line(out, e, 0, "whole", "(whole)", &e->whole);
}
