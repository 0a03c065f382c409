/* SPDX-License-Identifier: MIT */
/* The bill of one command: parts, the largest first, with their lines below them. */
#include "base/memory.h"
#include "report/bill/bill.h"

#include <math.h>

#define SMALL_SHARE 0.01   /* lines with less are added up */
#define LINES_MOST 8       /* of one part */
#define SCALE_DIFFERS 0.01 /* of running: worth a word */
#define RATIO_MUCH 1.25    /* of traced runs to the others */
#define REPLAY_ERROR 0.05  /* worth a word */
#define NAME_WIDTH_MIN 30
#define FIGURES_WIDTH 30

void report_bill_name(struct strbuf *out, const struct bill_view *v, const struct bill_line *l)
{
    if (v->b->has_threads) {
        strbuf_put_safe(out, l->who, strlen(l->who), 16);
        strbuf_puts(out, ": ");
    }
    strbuf_put_safe(out, l->what, strlen(l->what), 120);
    if (l->detail) {
        strbuf_puts(out, ", ");
        strbuf_put_safe(out, l->detail, strlen(l->detail), 160);
    }
}

static double unit_of(double ns, const char **ret_name)
{
    *ret_name = ns >= 1e9 ? "s" : ns >= 1e6 ? "ms" : "us";
    return ns >= 1e9 ? 1e9 : ns >= 1e6 ? 1e6 : 1e3;
}

void report_bill_time(struct strbuf *out, const struct bill_estimate *e)
{
    const char *unit;
    double scale = unit_of(e->mean, &unit), half = (e->high - e->mean) / scale;
    double value = e->mean / scale;
    int digits = value >= 100 ? 1 : value >= 10 ? 2 : 3;
    strbuf_printf(out, "%.*f", digits, value);
    if (isfinite(half))
        strbuf_printf(out, " ±%.*f", half >= 100 ? 0 : half >= 10 ? 1 : digits > 1 ? 2 : 1, half);
    strbuf_printf(out, " %s", unit);
}

/* Columns, not bytes. */
static size_t width_of(const struct strbuf *text)
{
    size_t width = 0;
    for (size_t i = 0; i < text->length; i++)
        width += ((unsigned char)text->data[i] & 0xc0) != 0x80;
    return width;
}

static void put_row(struct strbuf *out, const struct bill_view *v, unsigned indent,
                    struct strbuf *name, const struct bill_estimate *time, double share)
{
    CLEANUP(strbuf_done) struct strbuf figure = {0};
    size_t room = v->columns > FIGURES_WIDTH + NAME_WIDTH_MIN + indent
                      ? v->columns - FIGURES_WIDTH - indent
                      : NAME_WIDTH_MIN;
    size_t width = width_of(name);
    strbuf_pad(out, ' ', indent);
    if (width > room) {
        size_t keep = room - 1;
        while (keep > 0 && ((unsigned char)name->data[keep] & 0xc0) == 0x80)
            keep--;
        strbuf_append(out, name->data, keep);
        strbuf_puts(out, "…");
        width = keep + 1;
    } else {
        strbuf_puts(out, strbuf_text(name));
    }
    report_bill_time(&figure, time);
    size_t column = FIGURES_WIDTH - 9, taken = width_of(&figure);
    strbuf_pad(out, ' ', (room > width ? room - width : 0) + (column > taken ? column - taken : 1));
    strbuf_puts(out, strbuf_text(&figure));
    strbuf_printf(out, " %6.1f %%\n", 100 * share);
}

static double share_of(const struct bill *b, double ns)
{
    return b->sum.mean > 0 ? ns / b->sum.mean : 0;
}

/* The lines of a part that are not shown, as one. */
static void put_others(struct strbuf *out, const struct bill_view *v, enum bill_part part,
                       size_t from)
{
    CLEANUP(memory_freep) double *sums = memory_zalloc(v->b->run_count + 1, sizeof(*sums));
    CLEANUP(strbuf_done) struct strbuf name = {0};
    size_t count = 0;
    for (size_t l = from; l < v->b->line_count; l++) {
        const struct bill_line *line = &v->b->lines[l];
        if (line->part != part || line->time.mean <= 0)
            continue;
        count++;
        for (size_t r = 0; r < v->b->run_count; r++)
            sums[r] += line->ns[r];
    }
    if (!count)
        return;
    struct bill_estimate time = bill_estimate(sums, v->b->run_count);
    strbuf_printf(&name, "%zu more", count);
    put_row(out, v, 4, &name, &time, share_of(v->b, time.mean));
}

static void put_part(struct strbuf *out, const struct bill_view *v, enum bill_part part)
{
    CLEANUP(strbuf_done) struct strbuf name = {0};
    size_t shown = 0;
    strbuf_puts(&name, bill_part_title(part));
    strbuf_puts(out, v->colour ? "\033[1m" : "");
    put_row(out, v, 2, &name, &v->b->parts[part], share_of(v->b, v->b->parts[part].mean));
    strbuf_puts(out, v->colour ? "\033[0m" : "");
    for (size_t l = 0; l < v->b->line_count; l++) {
        const struct bill_line *line = &v->b->lines[l];
        if (line->part != part || line->time.mean <= 0)
            continue;
        if (!v->all && (shown == LINES_MOST || (line->share < SMALL_SHARE && shown))) {
            put_others(out, v, part, l);
            return;
        }
        strbuf_clear(&name);
        report_bill_name(&name, v, line);
        put_row(out, v, 4, &name, &line->time, line->share);
        shown++;
    }
}

static void put_parts(struct strbuf *out, const struct bill_view *v)
{
    bool is_shown[BILL_PARTS] = {false};
    for (;;) {
        unsigned next = BILL_PARTS;
        for (unsigned p = 0; p < BILL_PARTS; p++)
            if (!is_shown[p] && v->b->parts[p].mean > 0 &&
                (next == BILL_PARTS || v->b->parts[p].mean > v->b->parts[next].mean))
                next = p;
        if (next == BILL_PARTS)
            return;
        is_shown[next] = true;
        put_part(out, v, next);
    }
}

/* How the traced runs compare with the others, and what was done about it. */
static void put_cost(struct strbuf *out, const struct bill *b)
{
    double ratio = b->wall.mean > 0 ? b->traced.mean / b->wall.mean : 1;
    strbuf_printf(out, "%zu traced %s, %.2f times as long as %zu without tracing", b->run_count,
                  plural(b->run_count, "run", "runs"), ratio, b->wall_count);
    if (fabs(b->cpu_scale - 1) >= SCALE_DIFFERS)
        strbuf_printf(out, "; times of running are scaled by %.2f to their CPU time", b->cpu_scale);
    strbuf_putc(out, '\n');
    if (b->unseen_ns > 0)
        strbuf_puts(out, "the machine was busier in the runs without tracing: what they took "
                         "longer is unattributed\n");
    if (ratio > RATIO_MUCH)
        strbuf_puts(out, "the machine was busier in the traced runs, or tracing changes what the "
                         "command does: look at shares rather than times\n");
}

static void put_gain(struct strbuf *out, const char *what, const struct bill_estimate *gain)
{
    const char *unit;
    double scale = unit_of(fmax(fabs(gain->low), fabs(gain->high)), &unit);
    strbuf_printf(out, "  %s: %.3g to %.3g %s sooner", what, gain->low / scale, gain->high / scale,
                  unit);
}

static void put_whatifs(struct strbuf *out, const struct bill_view *v)
{
    CLEANUP(strbuf_done) struct strbuf name = {0};
    if (!v->whatifs->count)
        return;
    strbuf_puts(out,
                "\nwhat if (experimental: predicted by replaying the traced runs with that line "
                "changed; 'man assay-explain' says how far to trust it)\n");
    for (size_t i = 0; i < v->whatifs->count; i++) {
        const struct whatif *w = &v->whatifs->items[i];
        const struct bill_line *line = &v->b->lines[w->line];
        strbuf_clear(&name);
        report_bill_name(&name, v, line);
        strbuf_printf(out, "  %s: %s\n  ", bill_part_title(line->part), strbuf_text(&name));
        put_gain(out, "removed", &w->removed);
        strbuf_puts(out, ";");
        put_gain(out, "halved", &w->halved);
        strbuf_putc(out, '\n');
    }
    if (v->whatifs->replay_error > REPLAY_ERROR)
        strbuf_printf(out, "  the replay without a change is off by %.0f %%: do not trust it far\n",
                      100 * v->whatifs->replay_error);
}

void report_bill_notes(struct strbuf *out, const struct bill_view *v)
{
    const struct bill_doubts *d = v->doubts;
    put_cost(out, v->b);
    if (d->lost)
        strbuf_printf(out, "%llu of %llu records were lost: the lines are less certain\n",
                      (unsigned long long)d->lost, (unsigned long long)(d->lost + d->records));
    if (d->sampled_calls)
        strbuf_puts(out, "too many system calls to trace each: their times are by samples\n");
    if (d->is_full)
        strbuf_puts(out, "the runs are too long to keep every event: their ends are unattributed; "
                         "explain a shorter run\n");
    if (d->notes.length)
        strbuf_puts(out, strbuf_text(&d->notes));
}

/* What is known without permission to trace. */
static void put_denied(struct strbuf *out, const struct bill_view *v)
{
    const struct bill_doubts *d = v->doubts;
    const struct {
        const char *name;
        const struct bill_estimate *time;
    } rows[] = {{"CPU time of its own code, all threads", &d->user},
                {"CPU time in the kernel, all threads", &d->system}};
    CLEANUP(strbuf_done) struct strbuf name = {0};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        strbuf_clear(&name);
        strbuf_puts(&name, rows[i].name);
        put_row(out, v, 2, &name, rows[i].time,
                v->b->wall.mean > 0 ? rows[i].time->mean / v->b->wall.mean : 0);
    }
    double away = v->b->wall.mean - d->user.mean - d->system.mean;
    if (away > 0)
        strbuf_printf(out, "  no thread ran for at least %.3g ms\n", away / 1e6);
    strbuf_printf(out, "  each run: %.0f %s, %.0f %s preempted, %.0f page %s from storage\n",
                  d->switches_own, plural((uint64_t)llround(d->switches_own), "wait", "waits"),
                  d->switches_forced,
                  plural((uint64_t)llround(d->switches_forced), "time", "times"), d->major_faults,
                  plural((uint64_t)llround(d->major_faults), "fault", "faults"));
    strbuf_printf(out,
                  "\nno permission to trace, so there is no bill: what was waited for, by whom,\n"
                  "the critical path, functions and predictions are missing\n%s",
                  strbuf_text(&d->notes));
}

void report_bill_text(struct strbuf *out, const struct bill_view *v)
{
    CLEANUP(strbuf_done) struct strbuf name = {0};
    strbuf_puts(out, v->colour ? "\033[1m" : "");
    strbuf_put_safe(out, v->command, strlen(v->command), 400);
    strbuf_puts(out, v->colour ? "\033[0m\n" : "\n");
    strbuf_puts(&name, "wall time");
    put_row(out, v, 0, &name, v->doubts->is_denied ? &v->b->wall : &v->b->sum, 1);
    if (v->doubts->is_denied) {
        put_denied(out, v);
        return;
    }
    put_parts(out, v);
    put_whatifs(out, v);
    strbuf_putc(out, '\n');
    report_bill_notes(out, v);
}
