/* SPDX-License-Identifier: MIT */
/* A difference of profiles for programs. */
#include "base/memory.h"
#include "report/profile/diff.h"

#include <math.h>

/* How the row's two functions were found to be one: "same", "variant", "alias", "renamed",
 * "only A", "only B". */
static const char *kind_name(enum match_kind kind)
{
    static const char *const names[] = {"same",  "variant", "alias", "renamed",
                                        "mixed", "only A",  "only B"};
    return names[kind];
}

void report_attributed_json(struct json *j, const char *key, const struct attributed *a)
{
    json_object(j, key);
    json_double(j, "a", a->a);
    json_double(j, "b", a->b);
    json_double(j, "change", a->change);
    json_double(j, "half_width", a->half_width);
    json_double(j, "resolution", a->resolution);
    json_double(j, "share", a->share);
    json_bool(j, "below_resolution", a->below_resolution);
    json_bool(j, "significant", a->significant);
    json_end(j);
}

static void put_row(struct json *j, const struct diff_row *row)
{
    json_object(j, NULL);
    json_string(j, "function", row->name);
    json_string(j, "match", kind_name(row->match.kind));
    json_bool(j, "kernel", row->match.is_kernel);
    for (unsigned s = 0; s < SIDE_COUNT; s++) {
        const struct profile_symbol *symbol = row->match.symbols[s];
        json_object(j, s == SIDE_A ? "in_a" : "in_b");
        json_string(j, "name", symbol ? symbol->name : NULL);
        json_string(j, "binary", row->match.dsos[s]);
        json_u64(j, "samples", row->samples[s]);
        json_bool(j, "inlined", row->is_inlined[s]);
        json_end(j);
    }
    report_attributed_json(j, "self", &row->self);
    report_attributed_json(j, "total", &row->total);
    json_end(j);
}

void report_diff_json(struct json *j, const struct diff_view *v)
{
    const struct diff *d = v->d;
    json_object(j, NULL);
    json_string(j, "a", v->names[SIDE_A]);
    json_string(j, "b", v->names[SIDE_B]);
    json_string(j, "cell", v->label);
    json_string(j, "emulated", v->emulated);
    json_string(j, "event", d->event);
    json_string(j, "unit", d->is_time ? "ns" : "events");
    json_string(j, "per", d->work ? d->work : "run");
    json_bool(j, "scaled_to_measured_runs", d->is_scaled);
    json_bool(j, "user_only", d->user_only);
    json_bool(j, "has_interval", d->has_interval);
    json_string(j, "why_no_interval", d->why_no_interval);
    for (unsigned s = 0; s < SIDE_COUNT; s++) {
        json_object(j, s == SIDE_A ? "side_a" : "side_b");
        json_u64(j, "profiled_runs", d->run_counts[s]);
        json_u64(j, "measured_runs", d->measured_counts[s]);
        json_u64(j, "samples", d->samples[s]);
        json_double(j, "sampled_cost", d->sampled[s]);
        json_bool(j, "lacks_debug", d->lacks_debug[s]);
        json_end(j);
    }
    report_attributed_json(j, "whole", &d->whole);
    report_attributed_json(j, "unattributed", &d->unattributed);
    json_array(j, "rows");
    for (size_t i = 0; i < d->row_count; i++)
        put_row(j, &d->rows[i]);
    json_end(j);
    json_end(j);
}

void report_diff_csv_head(struct strbuf *out)
{
    strbuf_puts(out, "cell,function,match,kernel,binary_a,binary_b,samples_a,samples_b,unit,"
                     "self_a,self_b,self_change,half_width,share,resolution,below_resolution,"
                     "significant,total_a,total_b,total_change\n");
}

static void put_number(struct strbuf *out, double value)
{
    strbuf_putc(out, ',');
    if (isfinite(value))
        strbuf_printf(out, "%.9g", value);
}

static void put_csv_line(struct strbuf *out, const struct diff_view *v, const char *name,
                         const struct diff_row *row, const struct attributed *self,
                         const struct attributed *total)
{
    strbuf_put_csv(out, v->label);
    strbuf_putc(out, ',');
    strbuf_put_csv(out, name);
    strbuf_printf(out, ",%s,%s,", row ? kind_name(row->match.kind) : "",
                  row ? row->match.is_kernel ? "1" : "0" : "");
    strbuf_put_csv(out, row && row->match.dsos[SIDE_A] ? row->match.dsos[SIDE_A] : "");
    strbuf_putc(out, ',');
    strbuf_put_csv(out, row && row->match.dsos[SIDE_B] ? row->match.dsos[SIDE_B] : "");
    if (row)
        strbuf_printf(out, ",%llu,%llu", (unsigned long long)row->samples[SIDE_A],
                      (unsigned long long)row->samples[SIDE_B]);
    else
        strbuf_puts(out, ",,");
    CLEANUP(strbuf_done) struct strbuf unit = {0};
    strbuf_printf(&unit, "%s/%s", v->d->is_time ? "ns" : "events", v->d->work ? v->d->work : "run");
    strbuf_putc(out, ',');
    strbuf_put_csv(out, strbuf_text(&unit));
    put_number(out, self->a);
    put_number(out, self->b);
    put_number(out, self->change);
    put_number(out, self->half_width);
    put_number(out, self->share);
    put_number(out, self->resolution);
    strbuf_printf(out, ",%d,%d", self->below_resolution, self->significant);
    put_number(out, total ? total->a : NAN);
    put_number(out, total ? total->b : NAN);
    put_number(out, total ? total->change : NAN);
    strbuf_putc(out, '\n');
}

void report_diff_csv(struct strbuf *out, const struct diff_view *v)
{
    const struct diff *d = v->d;
    for (size_t i = 0; i < d->row_count; i++)
        put_csv_line(out, v, d->rows[i].name, &d->rows[i], &d->rows[i].self, &d->rows[i].total);
    put_csv_line(out, v, "(unattributed)", NULL, &d->unattributed, NULL);
    put_csv_line(out, v, "(whole)", NULL, &d->whole, NULL);
}
