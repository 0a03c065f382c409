/* SPDX-License-Identifier: MIT */
/* The bill of one command as JSON. */
#include "report/bill/bill.h"

static void put_estimate(struct json *j, const char *key, const struct bill_estimate *e)
{
    json_object(j, key);
    json_double(j, "mean_ns", e->mean);
    json_double(j, "low_ns", e->low);
    json_double(j, "high_ns", e->high);
    json_end(j);
}

static void put_line(struct json *j, const struct bill_line *l, size_t run_count)
{
    json_object(j, NULL);
    json_string(j, "part", bill_part_name(l->part));
    json_string(j, "who", l->who);
    json_string(j, "what", l->what);
    json_string(j, "detail", l->detail);
    put_estimate(j, "time", &l->time);
    json_double(j, "share", l->share);
    json_array(j, "runs_ns");
    for (size_t r = 0; r < run_count; r++)
        json_double(j, NULL, l->ns[r]);
    json_end(j);
    json_end(j);
}

static void put_whatifs(struct json *j, const struct bill_view *v)
{
    json_array(j, "what_if");
    for (size_t i = 0; i < v->whatifs->count; i++) {
        const struct whatif *w = &v->whatifs->items[i];
        const struct bill_line *l = &v->b->lines[w->line];
        json_object(j, NULL);
        json_string(j, "part", bill_part_name(l->part));
        json_string(j, "who", l->who);
        json_string(j, "what", l->what);
        json_string(j, "detail", l->detail);
        put_estimate(j, "gain_removed", &w->removed);
        put_estimate(j, "gain_halved", &w->halved);
        json_end(j);
    }
    json_end(j);
    json_double(j, "replay_error", v->whatifs->replay_error);
}

void report_bill_json(struct json *j, const struct bill_view *v)
{
    const struct bill *b = v->b;
    json_string(j, "command", v->command);
    json_bool(j, "traced", !v->doubts->is_denied);
    put_estimate(j, "wall", &b->wall);
    if (v->doubts->is_denied) {
        put_estimate(j, "cpu_user", &v->doubts->user);
        put_estimate(j, "cpu_system", &v->doubts->system);
    }
    put_estimate(j, "sum", &b->sum);
    put_estimate(j, "traced_wall", &b->traced);
    json_u64(j, "runs", b->wall_count);
    json_u64(j, "traced_runs", b->run_count);
    json_double(j, "record_cost_ns", b->cost_ns);
    json_double(j, "running_scale", b->cpu_scale);
    json_double(j, "unseen_ns", b->unseen_ns);
    json_array(j, "parts");
    for (unsigned p = 0; p < BILL_PARTS; p++) {
        json_object(j, NULL);
        json_string(j, "part", bill_part_name(p));
        put_estimate(j, "time", &b->parts[p]);
        json_end(j);
    }
    json_end(j);
    json_array(j, "lines");
    for (size_t l = 0; l < b->line_count; l++)
        if (b->lines[l].time.mean > 0)
            put_line(j, &b->lines[l], b->run_count);
    json_end(j);
    put_whatifs(j, v);
    json_u64(j, "records", v->doubts->records);
    json_u64(j, "lost_records", v->doubts->lost);
    json_u64(j, "unseen_wakeups", v->doubts->unseen);
    json_u64(j, "strange_records", v->doubts->strange);
    json_string(j, "notes", strbuf_text(&v->doubts->notes));
}
