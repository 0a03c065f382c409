/* SPDX-License-Identifier: MIT */
/*
 * The layout of the kernel test robot's mails, for people who read them: means, spreads above 2 %,
 * changes in percent or, for shares, in percentage points; rows sorted by how many of their monitor
 * changed, then by name.  Medians that differ by 1 % or less (5 % for what is no performance
 * metric) are left out, as there.  Whether a row changed at all is decided by assay's own test, not
 * by the robot's rule, whose rate of false alarms at 3 v 3 runs is 20 % a metric.
 */
#include "base/memory.h"
#include "report/text/compare.h"

#include <math.h>
#include <stdio.h>

enum { BASE_COLUMNS = 16, NEW_COLUMNS = 27, RULE_COLUMNS = 89 };

/* The robot's names for what every run is measured by. */
static const struct {
    const char *name, *robot;
    double scale;
} renamed[] = {
    {"wall", "time.elapsed_time", 1e-9},
    {"user", "time.user_time", 1e-9},
    {"sys", "time.system_time", 1e-9},
    {"peak-rss", "time.maximum_resident_set_size", 1.0 / 1024},
    {"minor-faults", "time.minor_page_faults", 1},
    {"major-faults", "time.major_page_faults", 1},
    {"voluntary-switches", "time.voluntary_context_switches", 1},
    {"involuntary-switches", "time.involuntary_context_switches", 1},
};

struct line {
    char *key;
    size_t group_size; /* how many lines have the same first part */
    double base_mean, new_mean, base_spread, new_spread; /* spreads as shares of the means */
};

static double population_stddev(const struct summary *s)
{
    return s->count > 1 ? s->stddev * sqrt((double)(s->count - 1) / (double)s->count) : 0;
}

static double spread_of(const struct summary *s)
{
    return s->mean != 0 ? fabs(population_stddev(s) / s->mean) : 0;
}

static void make_line(struct line *l, const struct compare *c, const struct compare_row *row)
{
    double scale = 1;
    l->key = NULL;
    for (size_t i = 0; i < ARRAY_COUNT(renamed) && str_eq(row->metric->kind, "time"); i++)
        if (str_eq(row->metric->name, renamed[i].name)) {
            l->key = memory_strdup(renamed[i].robot);
            scale = renamed[i].scale;
        }
    if (!l->key && str_eq(row->metric->kind, "metric"))
        l->key = memory_printf("%s.%s", c->base->experiment.name, row->metric->name);
    else if (!l->key && str_eq(row->metric->kind, "counter"))
        l->key = memory_printf("perf-stat.total.%s", row->metric->name);
    else if (!l->key)
        l->key = memory_strdup(row->metric->name);
    l->base_mean = row->judged.base.mean * scale;
    l->new_mean = row->judged.new.mean *scale;
    l->base_spread = spread_of(&row->judged.base);
    l->new_spread = spread_of(&row->judged.new);
}

static size_t group_length(const char *key)
{
    return strcspn(key, ".");
}

static int compare_lines(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    if (x->group_size != y->group_size)
        return x->group_size < y->group_size ? -1 : 1;
    return strcmp(x->key, y->key);
}

static void sort_lines(struct line *lines, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        lines[i].group_size = 0;
        for (size_t k = 0; k < count; k++)
            lines[i].group_size +=
                group_length(lines[i].key) == group_length(lines[k].key) &&
                strncmp(lines[i].key, lines[k].key, group_length(lines[i].key)) == 0;
    }
    if (count)
        qsort(lines, count, sizeof(*lines), compare_lines);
}

static void put_number(struct strbuf *out, double value)
{
    if (fabs(value) < 1000)
        strbuf_printf(out, "%10.2f", value);
    else if (fabs(value) >= 1e8)
        strbuf_printf(out, "%10.4g", value);
    else
        strbuf_printf(out, "%10.0f", value);
}

static void put_spread(struct strbuf *out, double spread)
{
    double percent = 100 * spread;
    if (percent > 2)
        strbuf_printf(out, " ±%3.0f%%", percent);
    else
        strbuf_puts(out, "      ");
}

static bool in_points(const char *key)
{
    return str_has_prefix(key, "perf-profile") || str_has_suffix(key, "%");
}

static void put_change(struct strbuf *out, const struct line *l)
{
    double difference = l->new_mean - l->base_mean, percent = 100 * difference / l->base_mean;
    if (in_points(l->key) || !isfinite(percent)) /* no percentage of nothing */
        strbuf_printf(out, fabs(difference) < 1e5 ? "%+10.1f  " : "%+10.1e  ", difference);
    else
        strbuf_printf(out, fabs(percent) < 99999.95 ? "%+10.1f%% " : "%+10.1e%% ", percent);
}

static void put_line(struct strbuf *out, const struct line *l)
{
    put_number(out, l->base_mean);
    put_spread(out, l->base_spread);
    put_change(out, l);
    put_number(out, l->new_mean);
    put_spread(out, l->new_spread);
    strbuf_puts(out, "  ");
    strbuf_put_safe(out, l->key, strlen(l->key), 4000);
    strbuf_putc(out, '\n');
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names of the axes in order, "testcase" among them as the robot has it, and their values. */
static void put_axes(struct strbuf *out, const struct compare *c, size_t pair)
{
    const struct dataset *d = c->base;
    size_t count = d->factor_count + 1;
    CLEANUP(memory_freep) const char **names = memory_zalloc(count, sizeof(*names));
    for (size_t f = 0; f < d->factor_count; f++)
        names[f] = d->factors[f];
    names[d->factor_count] = "testcase";
    qsort(names, count, sizeof(*names), compare_texts);
    strbuf_pad(out, '=', RULE_COLUMNS);
    strbuf_putc(out, '\n');
    for (size_t i = 0; i < count; i++)
        strbuf_printf(out, "%s%s", i ? "/" : "", names[i]);
    strbuf_puts(out, ":\n  ");
    for (size_t i = 0; i < count; i++) {
        size_t factor = dataset_factor(d, names[i]);
        strbuf_printf(out, "%s%s", i ? "/" : "",
                      factor == DATASET_NONE ? d->experiment.name
                                             : d->cells[c->pairs[pair].base_cell].levels[factor]);
    }
    strbuf_puts(out, "\n\n");
}

/* What stands for a commit: the commit where two experiments are compared, else the level. */
static void name_side(const struct dataset *d, const char *name, bool within, char *ret,
                      size_t size)
{
    if (within || !d->experiment.git_commit[0])
        snprintf(ret, size, "%s", name);
    else
        snprintf(ret, size, "%.40s", d->experiment.git_commit);
}

static void put_side(struct strbuf *out, const char *name, const char *subject, bool within)
{
    strbuf_printf(out, "  %.*s (\"", within ? 60 : 10, name);
    strbuf_put_safe(out, subject, strlen(subject), 300);
    strbuf_puts(out, "\")\n");
}

static void put_sides(struct strbuf *out, const struct compare *c)
{
    char base[64], new[64];
    name_side(c->base, c->base_name, c->within, base, sizeof(base));
    name_side(c->new, c->new_name, c->within, new, sizeof(new));
    const char *base_subject = c->within || !c->base->subject ? c->base_name : c->base->subject;
    const char *new_subject = c->within || !c->new->subject ? c->new_name : c->new->subject;
    strbuf_puts(out, "commit: \n");
    put_side(out, base, base_subject, c->within);
    put_side(out, new, new_subject, c->within);
    strbuf_putc(out, '\n');
    strbuf_printf(out, "%-*.*s %-*.*s \n", BASE_COLUMNS, BASE_COLUMNS, base, NEW_COLUMNS,
                  NEW_COLUMNS, new);
    strbuf_pad(out, '-', BASE_COLUMNS);
    strbuf_putc(out, ' ');
    strbuf_pad(out, '-', NEW_COLUMNS);
    strbuf_puts(out, " \n"
                     "         %stddev     %change         %stddev\n"
                     "             \\          |                \\  \n");
}

/* The robot shows no row whose medians are so close. */
static bool is_close(const struct compare_row *row)
{
    bool is_performance = str_eq(row->metric->kind, "metric") || str_eq(row->metric->kind, "time");
    double low = fmin(row->judged.base.median, row->judged.new.median);
    double high = fmax(row->judged.base.median, row->judged.new.median);
    return low > 0 ? high / low <= (is_performance ? 1.01 : 1.05) : low == high;
}

static bool shows(const struct compare_view *v, const struct compare_row *row)
{
    if (v->all || v->only || row->judged.headline)
        return report_compare_shows(v, row);
    return row->judged.changed && !is_close(row);
}

void report_compare_lkp(struct strbuf *out, const struct compare_view *v)
{
    const struct compare *c = v->c;
    struct line *lines = memory_zalloc(c->row_count + 1, sizeof(*lines));
    for (size_t p = 0; p < c->pair_count; p++) {
        size_t count = 0;
        for (size_t i = 0; i < c->row_count; i++) {
            const struct compare_row *row = &c->rows[i];
            if (row->pair == p && shows(v, row))
                make_line(&lines[count++], c, row);
        }
        sort_lines(lines, count);
        put_axes(out, c, p);
        put_sides(out, c);
        for (size_t i = 0; i < count; i++) {
            put_line(out, &lines[i]);
            free(lines[i].key);
        }
        strbuf_puts(out, "\n");
    }
    if (report_compare_emulated(c))
        strbuf_printf(out, "%s\n", report_compare_emulated(c));
    free(lines);
}
