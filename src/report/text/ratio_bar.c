/* SPDX-License-Identifier: MIT */
#include "report/text/ratio_bar.h"

#include <math.h>

static void reach_for(struct ratio_scale *s, double ratio)
{
    if (ratio > 0 && isfinite(ratio))
        s->reach = fmax(s->reach, fabs(log(ratio)));
}

void ratio_scale_take(struct ratio_scale *s, const struct comparison *c)
{
    if (c->scale != COMPARISON_RATIO)
        return;
    reach_for(s, c->estimate);
    if (comparison_has_interval(c)) {
        reach_for(s, c->low);
        reach_for(s, c->high);
    }
}

static size_t place(const struct ratio_scale *s, double ratio)
{
    const double half = RATIO_BAR_HALF;
    return (size_t)fmin(fmax(rint(half + half * log(ratio) / s->reach), 0), RATIO_BAR - 1);
}

void strbuf_put_ratio_bar(struct strbuf *out, const struct ratio_scale *s,
                          const struct comparison *c)
{
    const char *signs[RATIO_BAR];
    for (size_t i = 0; i < RATIO_BAR; i++)
        signs[i] = i == RATIO_BAR_HALF ? "┊" : " ";
    if (c && c->scale == COMPARISON_RATIO && c->estimate > 0 && s->reach > 0) {
        bool has_interval = comparison_has_interval(c) && c->low > 0;
        for (size_t i = 0; i < RATIO_BAR && has_interval; i++)
            if (i >= place(s, c->low) && i <= place(s, c->high))
                signs[i] = "─";
        bool is_beyond = fabs(log(c->estimate)) > s->reach * (1 + 1e-9);
        signs[place(s, c->estimate)] = !is_beyond ? "●" : c->estimate > 1 ? "»" : "«";
    }
    for (size_t i = 0; i < RATIO_BAR; i++)
        strbuf_puts(out, signs[i]);
}
