/* SPDX-License-Identifier: MIT */
/*
 * Histories as drawings.  Each column is one experiment, or the median of several where they are
 * more than the columns; a dot is where its median lies, a line the level between two changes.
 */
#include "report/text/history.h"
#include "base/json.h"
#include "base/memory.h"
#include "report/text/bisect.h"
#include "report/text/experiment.h"
#include "stats/summary.h"

#include <math.h>
#include <stdio.h>

enum { SCALE_COLUMNS = 12, HASH_DIGITS = 12 };

static const char bold[] = "\033[1m", red[] = "\033[31m", green[] = "\033[32m", plain[] = "\033[0m";

/* What a drawing has in each column. */
struct column {
    double value, level; /* of the points, and of the stretch they belong to */
    bool is_change;      /* a new level begins */
    const struct change_point *change;
};

struct drawing {
    const struct history *one;
    struct column *columns;
    size_t count;
    double low, high;
};

static double median_of(const struct history *one, size_t from, size_t to)
{
    size_t count = to - from;
    CLEANUP(memory_freep) double *values = memory_zalloc(2 * count + 1, sizeof(*values));
    for (size_t i = 0; i < count; i++)
        values[i] = one->points[from + i].median;
    return stats_median(values, count, values + count);
}

/* The first point that belongs to another level than point i. */
static size_t end_of_level(const struct history *one, size_t i)
{
    for (size_t k = 0; k < one->changes.count; k++)
        if (one->changes.points[k].index > i)
            return one->changes.points[k].index;
    return one->count;
}

static void draw(struct drawing *d, const struct history *one, size_t width)
{
    size_t count = one->count < width ? one->count : width;
    *d = (struct drawing){.one = one, .count = count, .low = INFINITY, .high = -INFINITY};
    d->columns = memory_zalloc(count + 1, sizeof(*d->columns));
    size_t level_start = 0;
    for (size_t c = 0; c < count; c++) {
        size_t from = c * one->count / count, to = (c + 1) * one->count / count;
        struct column *column = &d->columns[c];
        column->value = median_of(one, from, to);
        for (size_t k = 0; k < one->changes.count; k++)
            if (one->changes.points[k].index >= from && one->changes.points[k].index < to) {
                column->is_change = true;
                column->change = &one->changes.points[k];
                level_start = one->changes.points[k].index;
            }
        column->level = median_of(one, level_start, end_of_level(one, level_start));
        d->low = fmin(d->low, fmin(column->value, column->level));
        d->high = fmax(d->high, fmax(column->value, column->level));
    }
}

/* The width of the widest value, as the scale has them. */
static size_t scale_columns(const struct history *one)
{
    size_t widest = SCALE_COLUMNS;
    for (size_t i = 0; i < one->count; i++) {
        CLEANUP(strbuf_done) struct strbuf label = {0};
        strbuf_put_measured(&label, one->points[i].median, one->unit);
        size_t columns = str_columns(strbuf_text(&label));
        widest = columns > widest ? columns : widest;
    }
    return widest;
}

static size_t row_of(const struct drawing *d, double value, size_t rows)
{
    double share = d->high > d->low ? (value - d->low) / (d->high - d->low) : 0.5;
    return (size_t)lround(share * (double)(rows - 1));
}

/* What a change of level is called; one whose interval leaves room for none is called neither. */
const char *report_history_kind(const struct history *one, const struct change_point *change)
{
    const char *kind = verdict_change_name(&change->change, one->better);
    return str_eq(kind, "no change") ? "possible change" : kind;
}

static const char *colour_of(const struct history *one, const struct change_point *change)
{
    const char *kind = report_history_kind(one, change);
    return str_eq(kind, "regression") ? red : str_eq(kind, "improvement") ? green : bold;
}

static void put_marks(struct strbuf *out, const struct drawing *d, bool colour)
{
    for (size_t c = 0; c < d->count; c++) {
        const struct column *column = &d->columns[c];
        if (!column->is_change)
            strbuf_putc(out, ' ');
        else if (colour)
            strbuf_printf(out, "%s▲%s", colour_of(d->one, column->change), plain);
        else
            strbuf_puts(out, "▲");
    }
    while (out->length && out->data[out->length - 1] == ' ')
        out->data[--out->length] = '\0';
    strbuf_putc(out, '\n');
}

static void put_plot(struct strbuf *out, const struct drawing *d, size_t rows, bool colour)
{
    size_t scale = scale_columns(d->one);
    for (size_t r = rows; r-- > 0;) {
        bool is_labelled = r == rows - 1 || r == 0 || r == rows / 2;
        double at = d->low + (d->high - d->low) * (double)r / (double)(rows - 1);
        CLEANUP(strbuf_done) struct strbuf label = {0};
        if (is_labelled)
            strbuf_put_measured(&label, at, d->one->unit);
        size_t used = str_columns(strbuf_text(&label));
        strbuf_pad(out, ' ', used < scale ? scale - used : 0);
        strbuf_printf(out, "%s %s", strbuf_text(&label), is_labelled ? "┤" : "│");
        for (size_t c = 0; c < d->count; c++) {
            bool is_value = row_of(d, d->columns[c].value, rows) == r;
            bool is_level = row_of(d, d->columns[c].level, rows) == r;
            strbuf_puts(out, is_value ? "•" : is_level ? "─" : " ");
        }
        strbuf_putc(out, '\n');
    }
    strbuf_pad(out, ' ', scale + 2);
    put_marks(out, d, colour);
}

static void put_spark(struct strbuf *out, const struct drawing *d, bool colour)
{
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    for (size_t c = 0; c < d->count; c++)
        strbuf_puts(out, bars[row_of(d, d->columns[c].value, ARRAY_COUNT(bars))]);
    strbuf_puts(out, "  ");
    strbuf_put_measured(out, d->one->points[d->one->count - 1].median, d->one->unit);
    strbuf_putc(out, '\n');
    if (d->one->changes.count)
        put_marks(out, d, colour);
}

static void put_point(struct strbuf *out, const struct history_point *p)
{
    char moment[32];
    strbuf_put_safe(out, *p->commit ? p->commit : "no commit",
                    strlen(*p->commit ? p->commit : "no commit"), HASH_DIGITS);
    if (*p->subject) {
        strbuf_puts(out, " (");
        strbuf_put_safe(out, p->subject, strlen(p->subject), 100);
        strbuf_puts(out, ")");
    }
    strbuf_printf(out, ", experiment %lld, %s", (long long)p->experiment,
                  format_moment(p->started_at_ns, moment, sizeof(moment)));
}

static void put_search(struct strbuf *out, const char *text)
{
    CLEANUP(history_search_done) struct history_search s;
    if (!history_search_read(&s, text))
        return;
    if (*s.commit) {
        strbuf_printf(out, "    caused by %.*s (", strchr(s.commit, '.') ? 26 : 12, s.commit);
        strbuf_put_safe(out, s.subject, strlen(s.subject), 100);
        strbuf_puts(out, ")\n");
    } else {
        strbuf_printf(out, "    searched: %s\n", s.verdict);
    }
    for (const char *at = s.reasons; *at;) {
        size_t length = strcspn(at, "\n");
        strbuf_puts(out, "      ");
        strbuf_put_safe(out, at, length, 300);
        strbuf_putc(out, '\n');
        at += length + (at[length] == '\n');
    }
}

static void put_changes(struct strbuf *out, const struct history *one, bool colour)
{
    const char *unit = one->unit;
    for (size_t i = 0; i < one->changes.count; i++) {
        const struct change_point *change = &one->changes.points[i];
        strbuf_printf(out, "  %s▲%s ", colour ? colour_of(one, change) : "", colour ? plain : "");
        strbuf_put_change(out, &change->change, unit);
        strbuf_printf(out, " %s at ", report_history_kind(one, change));
        put_point(out, &one->points[change->index]);
        strbuf_printf(out, ", p = %.2g\n", change->p);
        if (one->remarks[i].note) {
            strbuf_puts(out, "    accepted: ");
            strbuf_put_safe(out, one->remarks[i].note, strlen(one->remarks[i].note), 400);
            strbuf_putc(out, '\n');
        }
        put_search(out, one->remarks[i].search);
    }
    if (one->changes.count)
        return;
    if (one->count < 2 * CHANGE_POINT_SEGMENT_MIN)
        strbuf_printf(out, "  At least %d experiments are needed to detect a change.\n",
                      2 * CHANGE_POINT_SEGMENT_MIN);
    else
        strbuf_puts(out, "  No significant change of level.\n");
}

static void put_title(struct strbuf *out, const struct history *one, bool colour)
{
    static const char *const ways[] = {", lower is better", ", higher is better", ""};
    strbuf_printf(out, "%s", colour ? bold : "");
    strbuf_put_safe(out, one->name, strlen(one->name), 100);
    strbuf_printf(out, "%s%s ", one->quick ? " (quick)" : "", *one->cell ? ":" : "");
    strbuf_put_safe(out, one->cell, strlen(one->cell), 200);
    strbuf_printf(out, "%s%s", *one->cell ? ", " : "", colour ? plain : "");
    strbuf_put_safe(out, one->metric, strlen(one->metric), 100);
    strbuf_printf(out, "%s: %zu %s", ways[one->better], one->count,
                  plural(one->count, "experiment", "experiments"));
    if (*one->machine) {
        strbuf_puts(out, " on ");
        strbuf_put_safe(out, one->machine, strlen(one->machine), 100);
    }
    if (*one->branch) {
        strbuf_puts(out, ", branch ");
        strbuf_put_safe(out, one->branch, strlen(one->branch), 100);
    }
    strbuf_putc(out, '\n');
}

void report_history_text(struct strbuf *out, const struct history_view *v)
{
    for (size_t i = 0; i < v->h->count; i++) {
        const struct history *one = &v->h->items[i];
        size_t scale = v->spark ? 16 : scale_columns(one) + 2;
        size_t width = v->columns > scale + 10 ? v->columns - scale : 10;
        struct drawing d;
        strbuf_puts(out, i ? "\n" : "");
        put_title(out, one, v->colour);
        draw(&d, one, width);
        if (v->spark)
            put_spark(out, &d, v->colour);
        else
            put_plot(out, &d, v->rows > 2 ? v->rows : 2, v->colour);
        put_changes(out, one, v->colour);
        if (one->dropped)
            strbuf_printf(out, "  The oldest %zu are drawn but were not searched for changes.\n",
                          one->dropped);
        free(d.columns);
    }
}

/* null where none was made. */
static void put_json_search(struct json *j, const char *text)
{
    CLEANUP(history_search_done) struct history_search s;
    if (!history_search_read(&s, text)) {
        json_null(j, "search");
        return;
    }
    json_object(j, "search");
    json_string(j, "verdict", s.verdict);
    json_string(j, "commit", *s.commit ? s.commit : NULL);
    json_string(j, "subject", *s.commit ? s.subject : NULL);
    json_array(j, "reasons");
    for (const char *at = s.reasons; *at;) {
        size_t length = strcspn(at, "\n");
        json_string_n(j, NULL, at, length);
        at += length + (at[length] == '\n');
    }
    json_end(j);
    json_end(j);
}

/* One change as members of an object that is open. */
static void put_json_change(struct json *j, const struct history *one, size_t index)
{
    const struct change_point *change = &one->changes.points[index];
    const struct comparison *c = &change->change;
    const struct history_point *p = &one->points[change->index];
    json_u64(j, "index", change->index);
    json_i64(j, "experiment", p->experiment);
    json_string(j, "commit", p->commit);
    json_string(j, "kind", report_history_kind(one, change));
    json_string(j, "scale", c->scale == COMPARISON_RATIO ? "ratio" : "difference");
    json_double(j, "estimate", c->estimate);
    json_double(j, "low", c->low);
    json_double(j, "high", c->high);
    json_double(j, "p", change->p);
    json_string(j, "last_before", one->points[change->index - 1].commit);
    json_string(j, "accepted", one->remarks[index].note);
    put_json_search(j, one->remarks[index].search);
}

static void put_json_key(struct json *j, const struct history *one)
{
    json_string(j, "name", one->name);
    json_string(j, "cell", one->cell);
    json_bool(j, "quick", one->quick);
    json_string(j, "metric", one->metric);
    json_string(j, "unit", one->unit);
    json_string(j, "branch", one->branch);
    json_string(j, "machine", one->machine);
}

void report_history_alarm(struct strbuf *out, const struct history *one, size_t change)
{
    struct json j = {.out = out};
    json_object(&j, NULL);
    json_string(&j, "format", "assay-alarm-1");
    put_json_key(&j, one);
    put_json_change(&j, one, change);
    json_end(&j);
}

static void put_json_history(struct json *j, const struct history *one)
{
    static const char *const betters[] = {"lower", "higher", "neither"};
    json_object(j, NULL);
    put_json_key(j, one);
    json_string(j, "better", betters[one->better]);
    json_array(j, "points");
    for (size_t i = 0; i < one->count; i++) {
        const struct history_point *p = &one->points[i];
        json_object(j, NULL);
        json_i64(j, "experiment", p->experiment);
        json_string(j, "commit", p->commit);
        json_string(j, "subject", p->subject);
        json_u64(j, "started_at_ns", p->started_at_ns);
        json_double(j, "median", p->median);
        json_double(j, "q1", p->q1);
        json_double(j, "q3", p->q3);
        json_u64(j, "runs", p->run_count);
        json_end(j);
    }
    json_end(j);
    json_array(j, "changes");
    for (size_t i = 0; i < one->changes.count; i++) {
        json_object(j, NULL);
        put_json_change(j, one, i);
        json_end(j);
    }
    json_end(j);
    json_u64(j, "not_searched", one->dropped);
    json_end(j);
}

void report_history_json(struct strbuf *out, const struct histories *h)
{
    struct json j = {.out = out};
    json_object(&j, NULL);
    json_string(&j, "format", "assay-history-1");
    json_array(&j, "histories");
    for (size_t i = 0; i < h->count; i++)
        put_json_history(&j, &h->items[i]);
    json_end(&j);
    json_end(&j);
}
