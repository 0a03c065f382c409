/* SPDX-License-Identifier: MIT */
/* What ticks are called, and the room they need. */
#include "base/memory.h"
#include "report/draw/svg_frame.h"
#include "report/text/experiment.h"

#include <math.h>
#include <stdio.h>

void svg_tick_text(const struct plot_axis *axis, double value, int digits, struct strbuf *out)
{
    char text[32];
    if (str_eq(axis->unit, "ns") || str_eq(axis->unit, "bytes"))
        strbuf_put_measured(out, value, axis->unit);
    else if (fabs(value) >= 9999.5) {
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
