/* SPDX-License-Identifier: MIT */
/* See openmetrics.h. */
#include "report/metrics/openmetrics.h"
#include "base/memory.h"

#include <ctype.h>
#include <math.h>

/* Units of assay and of other tools in the base units that the format asks for. */
static const struct base_unit {
    const char *unit, *base;
    double factor;
} base_units[] = {
    {"ns", "seconds", 1e-9},    {"us", "seconds", 1e-6},   {"µs", "seconds", 1e-6},
    {"ms", "seconds", 1e-3},    {"s", "seconds", 1},       {"ns/op", "seconds", 1e-9},
    {"bytes", "bytes", 1},      {"B", "bytes", 1},         {"KB", "bytes", 1e3},
    {"KiB", "bytes", 1024},     {"MiB", "bytes", 1048576}, {"%", "ratio", 0.01},
    {"percent", "ratio", 0.01}, {"J", "joules", 1},
};

static const struct base_unit *base_of(const char *unit)
{
    for (size_t i = 0; i < ARRAY_COUNT(base_units); i++)
        if (str_eq(base_units[i].unit, unit))
            return &base_units[i];
    return NULL;
}

/* Letters, digits and underscores; runs of others become one underscore. */
static void put_name(struct strbuf *out, const char *text)
{
    bool gap = false;
    for (; *text; text++) {
        if (isalnum((unsigned char)*text)) {
            if (gap)
                strbuf_putc(out, '_');
            strbuf_putc(out, *text);
        }
        gap = !isalnum((unsigned char)*text);
    }
}

/* The name of a metric's family; the caller frees it. */
static char *family_of(const struct store_metric *m)
{
    CLEANUP(strbuf_done) struct strbuf name = {0};
    const struct base_unit *base = base_of(m->unit);
    strbuf_puts(&name, "assay_");
    put_name(&name, m->name);
    if (base) {
        CLEANUP(memory_freep) char *suffix = memory_printf("_%s", base->base);
        if (!str_has_suffix(strbuf_text(&name), suffix))
            strbuf_puts(&name, suffix);
    }
    return memory_strdup(strbuf_text(&name));
}

/* In a label's value: backslash, quote and line end are escaped, and bytes are valid UTF-8. */
static void put_value(struct strbuf *out, const char *text)
{
    CLEANUP(strbuf_done) struct strbuf safe = {0};
    strbuf_put_safe(&safe, text, strlen(text), 1000);
    for (const char *at = strbuf_text(&safe); *at; at++) {
        if (*at == '\\' || *at == '"')
            strbuf_putc(out, '\\');
        strbuf_putc(out, *at == '\n' ? ' ' : *at);
    }
}

static void put_label(struct strbuf *out, const char *name, const char *value)
{
    strbuf_printf(out, "%s%s=\"", out->data[out->length - 1] == '{' ? "" : ",", name);
    put_value(out, value);
    strbuf_putc(out, '"');
}

static void put_labels(struct strbuf *out, const struct dataset *d, size_t cell,
                       const struct store_metric *m, const char *stat)
{
    strbuf_putc(out, '{');
    put_label(out, "experiment", d->experiment.name);
    put_label(out, "cell", d->cells[cell].label);
    for (size_t f = 0; f < d->factor_count; f++) {
        CLEANUP(strbuf_done) struct strbuf name = {0};
        bool is_double = false;
        strbuf_puts(&name, "factor_");
        put_name(&name, d->factors[f]);
        for (size_t k = 0; k < f; k++) {
            CLEANUP(strbuf_done) struct strbuf other = {0};
            strbuf_puts(&other, "factor_");
            put_name(&other, d->factors[k]);
            is_double |= str_eq(strbuf_text(&name), strbuf_text(&other));
        }
        if (!is_double)
            put_label(out, strbuf_text(&name), d->cells[cell].levels[f]);
    }
    if (*d->experiment.git_commit)
        put_label(out, "commit", d->experiment.git_commit);
    if (m) {
        put_label(out, "metric", m->name);
        if (*m->unit && !base_of(m->unit))
            put_label(out, "unit", m->unit);
    }
    if (stat)
        put_label(out, "stat", stat);
    strbuf_puts(out, "} ");
}

static void put_number(struct strbuf *out, double value)
{
    if (isnan(value))
        strbuf_puts(out, "NaN\n");
    else if (isinf(value))
        strbuf_puts(out, value > 0 ? "+Inf\n" : "-Inf\n");
    else
        strbuf_printf(out, "%.17g\n", value);
}

static void put_head(struct strbuf *out, const char *family, const char *unit, const char *help)
{
    strbuf_printf(out, "# TYPE %s gauge\n", family);
    if (unit)
        strbuf_printf(out, "# UNIT %s %s\n", family, unit);
    strbuf_printf(out, "# HELP %s %s\n", family, help);
}

static void put_cells(struct strbuf *out, const struct dataset *d, size_t metric)
{
    const struct store_metric *m = &d->metrics[metric];
    const struct base_unit *base = base_of(m->unit);
    double factor = base ? base->factor : 1;
    for (size_t c = 0; c < d->cell_count; c++) {
        struct summary s;
        struct median_interval interval;
        if (!dataset_figures(d, metric, c, &s, &interval))
            continue;
        const struct {
            const char *name;
            double value;
        } stats[] = {{"median", s.median}, {"low", interval.low}, {"high", interval.high},
                     {"q1", s.q1},         {"q3", s.q3},          {"mean", s.mean}};
        for (size_t i = 0; i < ARRAY_COUNT(stats); i++) {
            CLEANUP(memory_freep) char *family = family_of(m);
            strbuf_puts(out, family);
            put_labels(out, d, c, m, stats[i].name);
            put_number(out, stats[i].value * factor);
        }
    }
}

/* Names that differ only in what a family's name cannot have are one family, whose samples must
 * stand together. */
static void put_family(struct strbuf *out, const struct dataset *d, size_t first, bool *done)
{
    const struct base_unit *base = base_of(d->metrics[first].unit);
    CLEANUP(memory_freep) char *family = family_of(&d->metrics[first]);
    put_head(out, family, base ? base->base : NULL,
             "Figures of the runs of a cell; low and high bound the median's 95 % interval.");
    for (size_t m = first; m < d->metric_count; m++) {
        CLEANUP(memory_freep) char *other = family_of(&d->metrics[m]);
        if (done[m] || !str_eq(family, other))
            continue;
        done[m] = true;
        put_cells(out, d, m);
    }
}

void report_openmetrics(struct strbuf *out, const struct dataset *d)
{
    CLEANUP(memory_freep) bool *done = memory_zalloc(d->metric_count + 1, sizeof(*done));
    put_head(out, "assay_experiment_timestamp_seconds", "seconds",
             "When the experiment was started.");
    strbuf_puts(out, "assay_experiment_timestamp_seconds{");
    put_label(out, "experiment", d->experiment.name);
    strbuf_puts(out, "} ");
    put_number(out, (double)d->experiment.started_at_ns / 1e9);
    put_head(out, "assay_experiment_runs", NULL, "Runs of a cell.");
    for (size_t c = 0; c < d->cell_count; c++) {
        strbuf_puts(out, "assay_experiment_runs");
        put_labels(out, d, c, NULL, NULL);
        put_number(out, (double)d->cells[c].run_count);
    }
    for (size_t m = 0; m < d->metric_count; m++)
        if (!done[m])
            put_family(out, d, m, done);
    strbuf_puts(out, "# EOF\n");
}
