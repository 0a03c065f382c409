/* SPDX-License-Identifier: MIT */
/*
 * The layout of the kernel test robot's mails, for people who read them: means, spreads above 2 %,
 * changes in percent or, for shares, in percentage points; rows sorted by how many of their monitor
 * changed, then by name.  Medians that differ by 1 % or less (5 % for what is no performance
 * metric) are left out, as there.  Whether a row changed at all is decided by assay's own test, not
 * by the robot's rule, whose rate of false alarms at 3 v 3 runs is 20 % a metric.
 */
#include "base/json_read.h"
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

/* An axis of the table: a factor in which both sides agree, or what the machines are. */
struct axis {
    const char *name;
    char *value;
};

struct axes {
    struct axis *items;
    size_t count, capacity;
};

static void add_axis(struct axes *a, const char *name, char *value)
{
    if (value && *value)
        ARRAY_PUSH(a->items, a->count, a->capacity) = (struct axis){name, value};
    else
        free(value);
}

static void axes_done(struct axes *a)
{
    for (size_t i = 0; i < a->count; i++)
        free(a->items[i].value);
    free(a->items);
}

static int compare_axes(const void *a, const void *b)
{
    return strcmp(((const struct axis *)a)->name, ((const struct axis *)b)->name);
}

/* The kernel's name for a cell, where kernels are compared: a value of the factor `kernel`. */
static const char *kernel_level(const struct dataset *d, size_t cell)
{
    size_t factor = dataset_factor(d, "kernel");
    return factor == DATASET_NONE || !d->emulated ? NULL : d->cells[cell].levels[factor];
}

char *compare_kernel_fact(const struct dataset *d, size_t cell, const char *key)
{
    const char *level = kernel_level(d, cell);
    CLEANUP(memory_freep)
    char *kernels = level && d->environment ? json_member_text(d->environment, "kernels") : NULL;
    CLEANUP(memory_freep) char *kernel = kernels ? json_member_text(kernels, level) : NULL;
    char *fact = kernel ? json_member_text(kernel, key) : NULL;
    if (fact && !*fact) {
        free(fact);
        fact = NULL;
    }
    return fact;
}

char *compare_vm_fact(const struct dataset *d, const char *key)
{
    CLEANUP(memory_freep)
    char *vm = d->environment ? json_member_text(d->environment, "vm") : NULL;
    return vm ? json_member_text(vm, key) : NULL;
}

/* Of both sides: "gcc-12", or "gcc-12 gcc-14" where they differ. */
static char *fact_of_both(const struct compare *c, size_t pair, const char *key)
{
    char *base = compare_kernel_fact(c->base, c->pairs[pair].base_cell, key);
    CLEANUP(memory_freep) char *new = compare_kernel_fact(c->new, c->pairs[pair].new_cell, key);
    if (!base || !new || str_eq(base, new))
        return base;
    char *both = memory_printf("%s %s", base, new);
    free(base);
    return both;
}

/* "qemu-aarch64-cortex-a57-1cpu-1024M" */
static char *name_machine(const struct dataset *d)
{
    CLEANUP(memory_freep) char *arch = compare_vm_fact(d, "arch");
    CLEANUP(memory_freep) char *cpu = compare_vm_fact(d, "cpu");
    CLEANUP(memory_freep) char *cpus = compare_vm_fact(d, "cpus");
    CLEANUP(memory_freep) char *memory = compare_vm_fact(d, "memory_bytes");
    if (!arch || !cpu || !cpus || !memory)
        return NULL;
    return memory_printf("qemu-%s-%s-%scpu-%lluM", arch, cpu, cpus,
                         strtoull(memory, NULL, 10) >> 20);
}

/* In the order of their names, "testcase" among them as the robot has it. */
static void find_axes(struct axes *a, const struct compare *c, size_t pair)
{
    const struct dataset *d = c->base;
    const char *const *base = (const char *const *)d->cells[c->pairs[pair].base_cell].levels;
    const char *const *new = (const char *const *)c->new->cells[c->pairs[pair].new_cell].levels;
    for (size_t f = 0; f < d->factor_count; f++)
        if (!c->within || str_eq(base[f], new[f]))
            add_axis(a, d->factors[f], memory_strdup(base[f]));
    add_axis(a, "testcase", memory_strdup(d->experiment.name));
    if (kernel_level(d, c->pairs[pair].base_cell)) {
        add_axis(a, "compiler", fact_of_both(c, pair, "compiler"));
        add_axis(a, "kconfig", fact_of_both(c, pair, "release"));
        add_axis(a, "rootfs", memory_strdup("assay-initramfs"));
        add_axis(a, "tbox_group", name_machine(d));
    }
    qsort(a->items, a->count, sizeof(*a->items), compare_axes);
}

static void put_axes(struct strbuf *out, const struct compare *c, size_t pair)
{
    CLEANUP(axes_done) struct axes axes = {0};
    find_axes(&axes, c, pair);
    strbuf_pad(out, '=', RULE_COLUMNS);
    strbuf_putc(out, '\n');
    for (size_t i = 0; i < axes.count; i++)
        strbuf_printf(out, "%s%s", i ? "/" : "", axes.items[i].name);
    strbuf_puts(out, ":\n  ");
    for (size_t i = 0; i < axes.count; i++)
        strbuf_printf(out, "%s%s", i ? "/" : "", axes.items[i].value);
    strbuf_puts(out, "\n\n");
}

void compare_side_done(struct compare_side *s)
{
    free(s->name);
    free(s->subject);
    *s = (struct compare_side){0};
}

/* What stands for a commit: a kernel's where kernels are compared, else its release and package;
 * the experiment's where two of them are; else the level. */
void compare_side_find(struct compare_side *s, const struct compare *c, size_t pair, bool is_new)
{
    const struct dataset *d = is_new ? c->new : c->base;
    const char *level = is_new ? c->new_name : c->base_name;
    size_t cell = is_new ? c->pairs[pair].new_cell : c->pairs[pair].base_cell;
    CLEANUP(memory_freep) char *release = compare_kernel_fact(d, cell, "release");
    CLEANUP(memory_freep) char *version = compare_kernel_fact(d, cell, "version");
    CLEANUP(memory_freep) char *subject = compare_kernel_fact(d, cell, "git_subject");
    bool has_commit = !c->within && d->experiment.git_commit[0];
    s->name = c->within ? compare_kernel_fact(d, cell, "git_commit") : NULL;
    if (s->name) {
        s->subject = memory_strdup(subject ? subject : level);
    } else if (c->within && release) {
        s->name = memory_strdup(release);
        s->subject = memory_printf("Linux %s%s%s, %s", release, version ? ", Debian " : "",
                                   version ? version : "", level);
    } else {
        s->name =
            has_commit ? memory_printf("%.40s", d->experiment.git_commit) : memory_strdup(level);
        s->subject = memory_strdup(c->within || !d->subject ? level : d->subject);
    }
    s->is_commit = has_commit || subject;
}

static void put_side(struct strbuf *out, const struct compare_side *s)
{
    strbuf_printf(out, "  %.*s (\"", s->is_commit ? 10 : 60, s->name);
    strbuf_put_safe(out, s->subject, strlen(s->subject), 300);
    strbuf_puts(out, "\")\n");
}

static void put_sides(struct strbuf *out, const struct compare *c, size_t pair)
{
    CLEANUP(compare_side_done) struct compare_side base = {0}, new = {0};
    compare_side_find(&base, c, pair, false);
    compare_side_find(&new, c, pair, true);
    strbuf_puts(out, "commit: \n");
    put_side(out, &base);
    put_side(out, &new);
    strbuf_putc(out, '\n');
    strbuf_printf(out, "%-*.*s %-*.*s \n", BASE_COLUMNS, BASE_COLUMNS, base.name, NEW_COLUMNS,
                  NEW_COLUMNS, new.name);
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

/* 10.46 and 1335 ±230 %: runs of one side differ by more than the sides do. */
static bool is_noise(const struct compare_row *row)
{
    double change = fabs(row->judged.new.mean - row->judged.base.mean);
    return fmax(population_stddev(&row->judged.base), population_stddev(&row->judged.new)) > change;
}

static bool shows(const struct compare_view *v, const struct compare_row *row)
{
    if (v->all || v->only || row->judged.headline)
        return report_compare_shows(v, row);
    return row->judged.changed && !is_close(row) && !is_noise(row);
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
        put_sides(out, c, p);
        for (size_t i = 0; i < count; i++) {
            put_line(out, &lines[i]);
            free(lines[i].key);
        }
        strbuf_puts(out, "\n");
    }
    compare_put_layouts(out, c);
    if (report_compare_emulated(c))
        strbuf_printf(out, "%s\n", report_compare_emulated(c));
    free(lines);
}
