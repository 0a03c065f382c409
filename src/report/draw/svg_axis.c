/* SPDX-License-Identifier: MIT */
/* Scales and their ticks, and text that is safe within markup. */
#include "base/memory.h"
#include "report/draw/svg.h"

#include <math.h>
#include <stdio.h>

const char *svg_size_class(enum plot_size size)
{
    return size == PLOT_WIDE ? " broad" : size == PLOT_NARROW ? " narrow" : "";
}

double svg_place(const struct svg_scale *s, double value)
{
    double low = s->low, high = s->high;
    if (s->log) {
        low = log(low);
        high = log(high);
        value = log(value);
    }
    double share = high > low ? (value - low) / (high - low) : 0.5;
    return s->from + share * (s->to - s->from);
}

/* 1, 2 or 5 times a power of ten that gives about so many steps. */
static double round_step(double range, size_t steps)
{
    double raw = range / (double)(steps ? steps : 1);
    double power = pow(10, floor(log10(raw)));
    double head = raw / power;
    return (head <= 1.0001 ? 1 : head <= 2.0001 ? 2 : head <= 5.0001 ? 5 : 10) * power;
}

void svg_scale_round(struct svg_scale *s, bool from_zero)
{
    if (s->log) {
        double factor = s->high > s->low ? pow(s->high / s->low, 0.04) : 1.2;
        s->low /= factor;
        s->high *= factor;
        return;
    }
    if (from_zero && s->low > 0)
        s->low = 0;
    if (from_zero && s->high < 0)
        s->high = 0;
    if (!(s->high > s->low)) {
        double half = s->low != 0 ? fabs(s->low) * 0.1 : 1;
        s->low -= from_zero && s->low == 0 ? 0 : half;
        s->high += half;
    }
    double step = round_step(s->high - s->low, 5);
    if (!isfinite(step) || step <= 0)
        return;
    s->low = floor(s->low / step + 1e-9) * step;
    s->high = ceil(s->high / step - 1e-9) * step;
}

static size_t log_ticks(const struct svg_scale *s, size_t most, double *ticks)
{
    static const double fine[] = {1, 2, 5}, middle[] = {1, 3}, coarse[] = {1};
    double decades = log10(s->high / s->low);
    const double *heads = decades < 2 ? fine : decades < 4 ? middle : coarse;
    size_t head_count = decades < 2 ? 3 : decades < 4 ? 2 : 1, count = 0;
    double stride = ceil(decades / (double)most);
    stride = stride < 1 ? 1 : stride;
    for (double power = floor(log10(s->low)); power <= log10(s->high) && count < SVG_TICKS_MAX;
         power += stride)
        for (size_t h = 0; h < head_count && count < SVG_TICKS_MAX; h++) {
            double value = heads[h] * pow(10, power);
            if (value >= s->low && value <= s->high)
                ticks[count++] = value;
        }
    return count;
}

size_t svg_ticks(const struct svg_scale *s, size_t most, double ticks[static SVG_TICKS_MAX])
{
    size_t count = 0;
    if (s->log) {
        count = log_ticks(s, most, ticks);
        if (count >= 2)
            return count;
        count = 0;
    }
    double step = round_step(s->high - s->low, most);
    if (!isfinite(step) || step <= 0)
        return 0;
    for (double k = ceil(s->low / step - 1e-6); count < SVG_TICKS_MAX; k++) {
        double value = k * step;
        if (value > s->high + step * 1e-6)
            break;
        ticks[count++] = fabs(value) < step * 1e-6 ? 0 : value; /* and not -0 */
    }
    return count;
}

double svg_text_width(const char *text)
{
    double width = 0;
    for (const char *c = text; *c; c++) {
        if ((*c & 0xc0) == 0x80)
            continue; /* within a character */
        width += (*c & 0x80)                        ? 8.5
                 : strchr("mW@%", *c)               ? 11.8
                 : strchr("<>=+~#wMGOQDHNUCR&", *c) ? 10.2
                 : strchr("ijl.,'|:;! ", *c)        ? 4.2
                                                    : 7.5;
    }
    return width;
}

void svg_put_number(struct strbuf *out, double value)
{
    char text[32];
    snprintf(text, sizeof(text), "%.1f", isfinite(value) ? value : 0);
    size_t length = strlen(text);
    if (length > 2 && text[length - 1] == '0' && text[length - 2] == '.')
        text[length - 2] = '\0';
    strbuf_puts(out, str_eq(text, "-0") ? "0" : text);
}

static void put_escaped(struct strbuf *out, const char *text, size_t length, bool quotes)
{
    CLEANUP(strbuf_done) struct strbuf safe = {0};
    strbuf_put_safe(&safe, text, length, SIZE_MAX);
    for (const char *c = strbuf_text(&safe); *c; c++)
        if (*c == '&')
            strbuf_puts(out, "&amp;");
        else if (*c == '<')
            strbuf_puts(out, "&lt;");
        else if (*c == '>')
            strbuf_puts(out, "&gt;");
        else if (*c == '"' && quotes)
            strbuf_puts(out, "&quot;");
        else if (*c == '\'' && quotes)
            strbuf_puts(out, "&#39;");
        else
            strbuf_putc(out, *c);
}

void strbuf_put_markup_n(struct strbuf *out, const char *text, size_t length)
{
    put_escaped(out, text, length, true);
}

void strbuf_put_content_n(struct strbuf *out, const char *text, size_t length)
{
    put_escaped(out, text, length, false);
}

void strbuf_put_markup(struct strbuf *out, const char *text)
{
    strbuf_put_markup_n(out, text, strlen(text));
}
