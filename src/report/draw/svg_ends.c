/* SPDX-License-Identifier: MIT */
/* Names at the ends of the lines, and the margins that they and the words of marks need. */
#include "base/memory.h"
#include "report/draw/svg_frame.h"

#include <math.h>

void svg_put_word(struct strbuf *out, const char *word, size_t fits)
{
    size_t most = fits < 4 ? 4 : fits;
    if (str_columns(word) <= most) {
        strbuf_puts(out, word);
        return;
    }
    size_t tail = most / 2, from = 0;
    strbuf_append(out, word, str_column_bytes(word, most - 1 - tail));
    strbuf_puts(out, "…");
    while (str_columns(word + from) > tail)
        do
            from++;
        while ((word[from] & 0xc0) == 0x80); /* within a character */
    strbuf_puts(out, word + from);
}

struct end_label {
    double y, wanted;
    const char *name;
    size_t look;
    bool is_mark;
};

bool svg_has_end(const struct plot_series *s)
{
    return s->name && s->count && s->style & PLOT_LINE && !(s->style & PLOT_GUIDE);
}

/* Names at the right are for lines that reach it; a picture of many has a legend.  A line alone is
 * named there where the line it is compared with is. */
bool svg_names_ends(const struct plot *p)
{
    size_t count = 0, named = 0;
    for (size_t i = 0; i < p->series_count; i++)
        count += svg_has_end(&p->series[i]);
    for (size_t i = 0; i < p->mark_count; i++)
        named += !p->marks[i].vertical && p->marks[i].label;
    return count + (count && named) >= 2 && count <= 8;
}

static size_t collect_ends(const struct frame *f, struct end_label labels[static LABELS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < f->p->series_count && svg_names_ends(f->p) && count < LABELS_MAX; i++) {
        const struct plot_series *s = &f->p->series[i];
        if (svg_has_end(s))
            labels[count++] =
                (struct end_label){.wanted = svg_frame_y(f, s->points[s->count - 1].y),
                                   .name = s->name,
                                   .look = s->look};
    }
    for (size_t i = 0; i < f->p->mark_count && count < LABELS_MAX; i++)
        if (!f->p->marks[i].vertical && f->p->marks[i].label)
            labels[count++] = (struct end_label){.wanted = svg_frame_y(f, f->p->marks[i].at),
                                                 .name = f->p->marks[i].label,
                                                 .is_mark = true};
    for (size_t i = 1; i < count; i++)
        for (size_t k = i; k > 0 && labels[k - 1].wanted > labels[k].wanted; k--) {
            struct end_label swap = labels[k];
            labels[k] = labels[k - 1];
            labels[k - 1] = swap;
        }
    return count;
}

/* As near to the ends as they do not cover each other. */
void svg_frame_ends(struct frame *f)
{
    struct end_label labels[LABELS_MAX];
    size_t count = collect_ends(f, labels);
    double last = f->top - 4, bottom = f->top + f->plot_height + 2;
    for (size_t i = 0; i < count; i++)
        last = labels[i].y = fmax(labels[i].wanted, last + LABEL_GAP);
    for (size_t i = count; i-- > 0; bottom -= LABEL_GAP)
        bottom = labels[i].y = fmin(labels[i].y, bottom);
    for (size_t i = 0; i < count; i++) {
        CLEANUP(strbuf_done) struct strbuf name = {0};
        svg_put_word(&name, labels[i].name, f->label_columns);
        if (labels[i].is_mark)
            strbuf_puts(f->out, "<g class=\"soft\">");
        else
            strbuf_printf(f->out, "<g class=\"t s%zu\">", labels[i].look);
        if (!str_eq(strbuf_text(&name), labels[i].name)) {
            strbuf_puts(f->out, "<title>");
            strbuf_put_markup(f->out, labels[i].name);
            strbuf_puts(f->out, "</title>");
        }
        svg_frame_label(f, f->width - f->right + 8, labels[i].y + 4, "", strbuf_text(&name));
        strbuf_puts(f->out, "</g>");
    }
}

/* How wide the name is as it is drawn: as much of it as has room. */
static double drawn_width(const struct frame *f, const char *name)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    svg_put_word(&text, name, f->label_columns);
    return svg_text_width(strbuf_text(&text));
}

void svg_frame_margins(struct frame *f)
{
    double width = 0;
    size_t named = 0;
    f->top = TOP_LEAST;
    f->right = RIGHT_LEAST;
    for (size_t i = 0; i < f->p->series_count && svg_names_ends(f->p); i++)
        if (svg_has_end(&f->p->series[i]))
            width = fmax(width, drawn_width(f, f->p->series[i].name));
    for (size_t i = 0; i < f->p->mark_count; i++) {
        const struct plot_mark *m = &f->p->marks[i];
        named += m->vertical && m->label;
        if (!m->vertical && m->label)
            width = fmax(width, drawn_width(f, m->label));
    }
    if (width > 0)
        f->right = 14 + (int)width;
    f->top += LABEL_GAP * (int)(named < MARKS_NAMED ? named : MARKS_NAMED);
}
