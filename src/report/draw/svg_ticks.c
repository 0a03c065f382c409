/* SPDX-License-Identifier: MIT */
/* What ticks are called, and the room they need. */
#include "base/memory.h"
#include "report/draw/svg_frame.h"
#include "report/text/experiment.h"

#include <math.h>
#include <stdio.h>

/* "10 ms" of "10.00 ms": a tick is where it is, however it was measured. */
static void put_plain(struct strbuf *out, const char *text)
{
    size_t digits = strspn(text, "-0123456789.,"), kept = digits;
    while (memchr(text, '.', digits) && kept && text[kept - 1] == '0')
        kept--;
    kept -= kept && text[kept - 1] == '.';
    strbuf_append(out, text, kept);
    strbuf_puts(out, text + digits);
}

void svg_tick_text(const struct plot_axis *axis, double value, int digits, struct strbuf *out)
{
    char text[32];
    if (measured_scales(axis->unit)) {
        CLEANUP(strbuf_done) struct strbuf measured = {0};
        strbuf_put_measured(&measured, value, axis->unit);
        put_plain(out, strbuf_text(&measured));
    } else if (fabs(value) >= 9999.5) {
        const char *letters = "kMGTP";
        size_t k = 0;
        for (value /= 1000; fabs(value) >= 999.5 && letters[k + 1]; k++)
            value /= 1000;
        snprintf(text, sizeof(text), fabs(value) < 999.5 ? "%.3g%c" : "%.0f%c", value, letters[k]);
        strbuf_puts(out, text);
    } else {
        strbuf_printf(out, "%.*g", digits, value);
    }
}

/* As many as it takes to tell neighbours apart. */
int svg_tick_digits(const double *ticks, size_t count)
{
    int digits = 4;
    for (size_t i = 1; i < count; i++) {
        char a[40], b[40];
        do {
            snprintf(a, sizeof(a), "%.*g", digits, ticks[i - 1]);
            snprintf(b, sizeof(b), "%.*g", digits, ticks[i]);
        } while (str_eq(a, b) && ++digits < 9);
    }
    return digits;
}

/* Room for the widest tick of the scale, and for the axis' name beside it. */
void svg_frame_left(struct frame *f)
{
    double ticks[SVG_TICKS_MAX];
    size_t count = svg_ticks(&f->y, 5, ticks), columns = 0;
    int digits = svg_tick_digits(ticks, count);
    for (size_t k = 0; k < count; k++) {
        CLEANUP(strbuf_done) struct strbuf text = {0};
        svg_tick_text(&f->p->y, ticks[k], digits, &text);
        size_t wide = str_columns(strbuf_text(&text));
        columns = wide > columns ? wide : columns;
    }
    f->left = 30 + (int)(7.2 * (double)columns);
    f->left = f->left < LEFT_LEAST ? LEFT_LEAST : f->left;
}

/* Where the next word stands. */
static size_t next_word(const struct plot_axis *axis, const char *const *words, size_t k)
{
    do
        k++;
    while (k < axis->word_count && !*words[k]);
    return k;
}

static double room_of_each(const struct frame *f)
{
    return (f->width - f->left - f->right) / (double)(f->p->x.word_count + 1);
}

bool svg_frame_staggers(const struct frame *f)
{
    const struct plot_axis *axis = &f->p->x;
    if (!axis->words || axis->outer)
        return false;
    for (size_t k = 0; k < axis->word_count; k++)
        if (svg_text_width(axis->words[k]) >
            room_of_each(f) * (double)(next_word(axis, axis->words, k) - k))
            return true;
    return false;
}

/* One row of words: each has the room up to the next one.  Staggered, every other one stands a line
 * lower, and has twice that. */
static void put_words(struct frame *f, const char *const *words, bool is_outer)
{
    size_t count = f->p->x.word_count, row = 0;
    bool staggers = svg_frame_staggers(f);
    double each = room_of_each(f) * (staggers ? 2 : 1), ends[2] = {-1000, -1000};
    for (size_t k = 0; k < count; k++) {
        size_t next = next_word(&f->p->x, words, k);
        if (!*words[k])
            continue;
        CLEANUP(strbuf_done) struct strbuf text = {0};
        double room = each * (double)(next - k);
        svg_put_word(&text, words[k],
                     svg_text_width(words[k]) <= room ? SIZE_MAX : (size_t)(room / 7.2));
        double x = svg_place(&f->x, (double)k), half = svg_text_width(strbuf_text(&text)) / 2;
        if (is_outer) /* below the middle of its group */
            x = (x + svg_place(&f->x, (double)next - 1)) / 2;
        double at = fmin(x, f->width - half);
        if (at - half < ends[row] + 3)
            continue;
        if (is_outer || row)
            svg_frame_label(f, at, f->top + f->plot_height + 16 + OUTER_LINE, "",
                            strbuf_text(&text));
        if (!is_outer)
            svg_frame_x_tick(f, x, row ? "" : strbuf_text(&text));
        ends[row] = at + half;
        row = staggers ? 1 - row : 0;
    }
}

void svg_frame_words(struct frame *f)
{
    put_words(f, f->p->x.words, false);
    if (f->p->x.outer)
        put_words(f, f->p->x.outer, true);
}
