/* SPDX-License-Identifier: MIT */
/*
 * Plots as SVG, written by assay itself: they are there without any script, print as vectors and
 * take their colours from the page, light or dark.  Colour is never the only sign: every series has
 * its own mark and its own dashes.
 */
#ifndef ASSAY_REPORT_DRAW_SVG_H
#define ASSAY_REPORT_DRAW_SVG_H

#include "base/arena.h"
#include "base/strings.h"

#include <stdbool.h>
#include <stddef.h>

struct plot_point {
    double x, y;
    double low, high; /* of the interval, NAN for none */
};

enum plot_style {
    PLOT_LINE = 1,   /* points joined */
    PLOT_MARKS = 2,  /* a mark at each point */
    PLOT_BAND = 4,   /* the interval as a band */
    PLOT_BARS = 8,   /* the interval as a bar at each point */
    PLOT_STEPS = 16, /* joined by steps */
    PLOT_DOTS = 32,  /* small, without a line: raw runs */
    PLOT_GUIDE = 64, /* a thin grey line: no measurement */
};

struct plot_series {
    const char *name; /* NULL: not in the legend */
    unsigned style;
    size_t look; /* which colour, mark and dashes */
    struct plot_point *points;
    size_t count, capacity;
};

struct plot_axis {
    const char *label, *unit;
    bool log;
    bool from_zero;
    double low, high;         /* the scale has these, too; both 0 for none */
    bool at_values;           /* ticks where the points are */
    const char *const *words; /* category k stands at k, "" without a tick; NULL for numbers */
    const char *const *outer; /* what the categories from k on have in common, below their words; ""
                                 where that goes on; NULL for none */
    size_t word_count;
};

/* A line across the plot, with a band around it where low and high are there. */
struct plot_mark {
    bool vertical;
    double at, low, high;
    const char *label;
};

struct plot {
    struct arena arena; /* of all texts */
    const char *id;     /* for links, and for `assay plot` */
    const char *kind;   /* "curve", "ratio", … */
    const char *group;  /* of small ones side by side, its heading; NULL: it stands alone */
    const char *title, *description;
    const char *note; /* a sentence below, NULL for none */
    struct plot_axis x, y;
    struct plot_series *series;
    size_t series_count, series_capacity;
    struct plot_mark *marks;
    size_t mark_count, mark_capacity;
};

void plot_done(struct plot *p);
const char *plot_text(struct plot *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The name is copied. */
struct plot_series *plot_add_series(struct plot *p, const char *name, unsigned style, size_t look);
void plot_add_point(struct plot_series *s, double x, double y, double low, double high);
void plot_add_mark(struct plot *p, bool vertical, double at, double low, double high,
                   const char *label);

/* Something can be drawn. */
bool plot_has_points(const struct plot *p);
/* How large: about as wide as it is shown, so that its text is as large as that of the page. */
enum plot_size {
    PLOT_ALONE,  /* a whole file, with its own colours and title */
    PLOT_PAGE,   /* beside others in a page; one of a group is small */
    PLOT_WIDE,   /* the first picture of a page, beside its sentence */
    PLOT_NARROW, /* the same for a phone */
};
void plot_put_svg(const struct plot *p, enum plot_size size, struct strbuf *out);
/* Ratios to one base, a line for each, on a logarithmic axis with "same" in it. */
struct forest_row {
    const char *name, *words;
    const char *caveat, *note;  /* "" for none */
    const char *kind;           /* the class of the verdict: its colour, and its shape */
    double estimate, low, high; /* NAN where there is no ratio, or no interval */
};
struct forest {
    const char *id, *title, *base;
    const struct forest_row *rows;
    size_t count;
};
/* PLOT_WIDE, or PLOT_NARROW: the words stand below each line. */
void forest_put_svg(const struct forest *f, enum plot_size size, struct strbuf *out);

/* The style that a file of its own carries; the page has the same rules in its own style. */
void svg_put_alone_head(struct strbuf *out, int width, int height, const char *title);

/* The page's style shows either the wide or the narrow one. */
const char *svg_size_class(enum plot_size size);

/* For the drawing. */
struct svg_scale {
    double low, high; /* of the data */
    double from, to;  /* in the picture */
    bool log;
};
double svg_place(const struct svg_scale *s, double value);
enum { SVG_TICKS_MAX = 24 };
/* Round values within the scale; how many. */
size_t svg_ticks(const struct svg_scale *s, size_t most, double ticks[static SVG_TICKS_MAX]);
/* Widens the scale to round values. */
void svg_scale_round(struct svg_scale *s, bool from_zero);

/* As many characters as fit, of which none is cut; four at least.  The middle is left out:
 * commands and cells often begin alike, and end alike as often. */
void svg_put_word(struct strbuf *out, const char *word, size_t fits);

/* Text for SVG and HTML: markup and control characters become harmless. */
void strbuf_put_markup(struct strbuf *out, const char *text);
void strbuf_put_markup_n(struct strbuf *out, const char *text, size_t length);
/* The same for text between tags only, where quotes are harmless. */
void strbuf_put_content_n(struct strbuf *out, const char *text, size_t length);
/* About how wide a text of 12 pixels is drawn. */
double svg_text_width(const char *text);
/* A coordinate: at most one decimal. */
void svg_put_number(struct strbuf *out, double value);

#endif
