/* SPDX-License-Identifier: MIT */
/*
 * The threads of one run over time, as SVG: what each did, in the colours of the bill's parts, and
 * under it where the critical path ran.  A run has up to millions of pieces and a picture a
 * thousand columns, so a column shows what took most of its time.
 */
#include "base/memory.h"
#include "report/bill/bill.h"
#include "report/draw/svg.h"

#include <string.h>

enum { COLUMNS = 840, LEFT = 160, TOP = 22, ROW = 24, BAND = 13, STRIPE = 4, THREADS_MOST = 40 };
enum { OWN = BILL_PARTS, KINDS, NOTHING = KINDS }; /* the bill's parts, and one more */

struct lane {
    uint32_t thread;
    double on_path_ns, here_ns;
    uint8_t kinds[COLUMNS]; /* enum bill_part, OWN or NOTHING */
    bool on_path[COLUMNS];
};

struct picture {
    const struct bill *b;
    const struct bill_run *run;
    double column_ns;
    struct lane *rows;
    size_t count;
    bool is_used[KINDS];
};

/* Adds a span of time to the columns that it covers. */
static void spread(const struct picture *p, double *columns, size_t step, uint64_t start_ns,
                   uint64_t end_ns)
{
    uint64_t first_ns = p->run->timeline.start_ns;
    double from = start_ns > first_ns ? (double)(start_ns - first_ns) / p->column_ns : 0;
    double to = end_ns > first_ns ? (double)(end_ns - first_ns) / p->column_ns : 0;
    to = to < COLUMNS ? to : COLUMNS;
    for (size_t c = (size_t)from; c < COLUMNS && (double)c < to; c++) {
        double low = from > (double)c ? from : (double)c;
        double high = to < (double)(c + 1) ? to : (double)(c + 1);
        columns[c * step] += high - low;
    }
}

/* On the path a wait for the command's own threads has no place: there it is what they do. */
static unsigned kind_of(const struct picture *p, uint32_t thread, size_t piece)
{
    const struct timeline_piece *t = &p->run->timeline.threads[thread].pieces[piece];
    return t->state == TIMELINE_WAITS && t->waker_kind == WAKER_THREAD
               ? OWN
               : p->b->items[p->run->items[thread][piece]].part;
}

static const char *title_of(unsigned kind)
{
    return kind == OWN ? "waiting for its own threads and processes" : bill_part_title(kind);
}

static void fill_kinds(struct picture *p, struct lane *row)
{
    const struct timeline_thread *t = &p->run->timeline.threads[row->thread];
    CLEANUP(memory_freep)
    double *times = memory_zalloc((size_t)COLUMNS * KINDS, sizeof(*times));
    for (size_t i = 0; i < t->piece_count; i++) {
        unsigned kind = kind_of(p, row->thread, i);
        spread(p, times + kind, KINDS, t->pieces[i].start_ns, t->pieces[i].end_ns);
        row->here_ns += (double)(t->pieces[i].end_ns - t->pieces[i].start_ns);
    }
    for (size_t c = 0; c < COLUMNS; c++) {
        const double *shares = times + c * KINDS;
        double most = 0, sum = 0;
        row->kinds[c] = NOTHING;
        for (unsigned kind = 0; kind < KINDS; kind++) {
            sum += shares[kind];
            if (shares[kind] > most) {
                most = shares[kind];
                row->kinds[c] = (uint8_t)kind;
            }
        }
        if (sum < 0.5)
            row->kinds[c] = NOTHING;
        else
            p->is_used[row->kinds[c]] = true;
    }
}

static void fill_path(const struct picture *p, struct lane *row)
{
    double covered[COLUMNS] = {0};
    for (size_t i = 0; i < p->run->path.count; i++) {
        const struct path_step *s = &p->run->path.steps[i];
        if (s->thread != row->thread)
            continue;
        spread(p, covered, 1, s->start_ns, s->end_ns);
        row->on_path_ns += (double)(s->end_ns - s->start_ns);
    }
    for (size_t c = 0; c < COLUMNS; c++)
        row->on_path[c] = covered[c] >= 0.5;
}

static int by_importance(const void *a, const void *b)
{
    const struct lane *x = a, *y = b;
    if (x->on_path_ns != y->on_path_ns)
        return x->on_path_ns < y->on_path_ns ? 1 : -1;
    return x->here_ns < y->here_ns ? 1 : x->here_ns > y->here_ns ? -1 : 0;
}

static int by_number(const void *a, const void *b)
{
    const struct lane *x = a, *y = b;
    return x->thread < y->thread ? -1 : x->thread > y->thread;
}

/* How long each thread is on the path decides which are shown; they stand in the order in which
 * they were made. */
static size_t choose(struct picture *p)
{
    size_t count = p->run->timeline.thread_count;
    p->rows = memory_zalloc(count + 1, sizeof(*p->rows));
    for (size_t i = 0; i < count; i++) {
        p->rows[i].thread = (uint32_t)i;
        for (size_t k = 0; k < p->run->timeline.threads[i].piece_count; k++) {
            const struct timeline_piece *piece = &p->run->timeline.threads[i].pieces[k];
            p->rows[i].here_ns += (double)(piece->end_ns - piece->start_ns);
        }
    }
    for (size_t i = 0; i < p->run->path.count; i++) {
        const struct path_step *s = &p->run->path.steps[i];
        p->rows[s->thread].on_path_ns += (double)(s->end_ns - s->start_ns);
    }
    qsort(p->rows, count, sizeof(*p->rows), by_importance);
    p->count = count < THREADS_MOST ? count : THREADS_MOST;
    qsort(p->rows, p->count, sizeof(*p->rows), by_number);
    for (size_t i = 0; i < p->count; i++) {
        p->rows[i].on_path_ns = p->rows[i].here_ns = 0;
        fill_kinds(p, &p->rows[i]);
        fill_path(p, &p->rows[i]);
    }
    return count - p->count;
}

static const char *last_name(const struct picture *p, const struct lane *row)
{
    const struct timeline_thread *t = &p->run->timeline.threads[row->thread];
    return t->piece_count ? p->run->timeline.names.items[t->pieces[t->piece_count - 1].name] : "?";
}

static void put_lane(struct strbuf *out, const struct picture *p, const struct lane *row, size_t y)
{
    const struct timeline_thread *t = &p->run->timeline.threads[row->thread];
    strbuf_printf(out, "<text class=\"n\" x=\"%d\" y=\"%zu\">", LEFT - 8, y + BAND - 2);
    strbuf_put_markup(out, last_name(p, row));
    strbuf_printf(out, " %u</text>\n", t->tid);
    for (size_t from = 0, to; from < COLUMNS; from = to) {
        for (to = from + 1; to < COLUMNS && row->kinds[to] == row->kinds[from]; to++)
            ;
        if (row->kinds[from] != NOTHING)
            strbuf_printf(out,
                          "<rect class=\"w%u\" x=\"%zu\" y=\"%zu\" width=\"%zu\" height=\"%d\">"
                          "<title>%s, %.3g to %.3g ms</title></rect>",
                          row->kinds[from], LEFT + from, y, to - from, BAND,
                          title_of(row->kinds[from]), (double)from * p->column_ns / 1e6,
                          (double)to * p->column_ns / 1e6);
    }
    for (size_t from = 0, to; from < COLUMNS; from = to) {
        for (to = from + 1; to < COLUMNS && row->on_path[to] == row->on_path[from]; to++)
            ;
        if (row->on_path[from])
            strbuf_printf(out,
                          "<rect class=\"path\" x=\"%zu\" y=\"%zu\" width=\"%zu\" height=\"%d\"/>",
                          LEFT + from, y + BAND + 1, to - from, STRIPE);
    }
    strbuf_putc(out, '\n');
}

static void put_axis(struct strbuf *out, const struct picture *p, size_t height)
{
    enum { TICKS = 5 };
    for (unsigned i = 0; i <= TICKS; i++) {
        int x = LEFT + (int)(i * COLUMNS / TICKS);
        strbuf_printf(out,
                      "<path class=\"g\" d=\"M%d %dV%zu\"/><text class=\"t\" x=\"%d\" y=\"%d\" "
                      "text-anchor=\"%s\">%.4g ms</text>\n",
                      x, TOP - 4, height, x, TOP - 8, i == TICKS ? "end" : "middle",
                      (double)i / TICKS * COLUMNS * p->column_ns / 1e6);
    }
}

static void put_legend(struct strbuf *out, const struct picture *p)
{
    strbuf_puts(out, "<ul class=\"legend\">");
    for (unsigned kind = 0; kind < KINDS; kind++)
        if (p->is_used[kind])
            strbuf_printf(out,
                          "<li><svg class=\"swatch\" viewBox=\"0 0 12 12\" aria-hidden=\"true\">"
                          "<rect class=\"w%u\" width=\"12\" height=\"12\"/></svg>%s</li>",
                          kind, title_of(kind));
    strbuf_puts(out, "<li><svg class=\"swatch\" viewBox=\"0 0 12 12\" aria-hidden=\"true\"><rect "
                     "class=\"path\" y=\"4\" width=\"12\" height=\"4\"/></svg>critical path</li>"
                     "</ul>\n");
}

void report_bill_timeline(struct strbuf *out, const struct bill *b, const struct bill_run *run)
{
    struct picture p = {.b = b, .run = run};
    double wall_ns = (double)(run->timeline.end_ns - run->timeline.start_ns);
    if (wall_ns <= 0 || !run->timeline.thread_count)
        return;
    p.column_ns = wall_ns / COLUMNS;
    size_t left_out = choose(&p), height = TOP + p.count * ROW + 4;
    put_legend(out, &p);
    strbuf_printf(out,
                  "<div class=\"scroll wide\" tabindex=\"0\" role=\"region\" aria-label=\"Threads "
                  "over time\"><svg class=\"plot threads\" role=\"img\" viewBox=\"0 0 %d %zu\" "
                  "aria-label=\"What each thread did, and the critical path\">\n",
                  LEFT + COLUMNS, height);
    put_axis(out, &p, height);
    for (size_t i = 0; i < p.count; i++)
        put_lane(out, &p, &p.rows[i], TOP + i * ROW);
    strbuf_puts(out, "</svg></div>\n");
    if (left_out)
        strbuf_printf(out,
                      "<p class=\"note\">%zu more %s not shown: the %d with the longest parts of "
                      "the critical path are.</p>\n",
                      left_out, left_out == 1 ? "thread is" : "threads are", THREADS_MOST);
    free(p.rows);
}
