/* SPDX-License-Identifier: MIT */
/* What the parts of a plot's drawing share. */
#ifndef ASSAY_REPORT_DRAW_SVG_FRAME_H
#define ASSAY_REPORT_DRAW_SVG_FRAME_H

#include "report/draw/svg.h"

enum {
    WIDTH = 640,
    PAGE_WIDTH = 410,
    NARROW_WIDTH = 350,
    SMALL_WIDTH = 330,
    LEFT_LEAST = 44,
    RIGHT_LEAST = 14,
    TOP_LEAST = 10,
    LABEL_COLUMNS = 18, /* of a name at the end of its line */
    PAGE_COLUMNS = 12,
    SMALL_COLUMNS = 9,
    LABEL_GAP = 13,
    LABELS_MAX = 12,
    MARKS_NAMED = 4,
    PLOT_HEIGHT = 250,
    PAGE_HEIGHT = 200,
    SMALL_HEIGHT = 150,
    FOOT = 44,
    OUTER_LINE = 16, /* more, where categories have groups */
    LEGEND_LINE = 20,
    LOOKS = 8,
};

struct frame {
    const struct plot *p;
    struct svg_scale x, y;
    struct strbuf *out;
    struct strbuf grid; /* all its lines are one path */
    int width, height, plot_height, legend_rows;
    size_t label_columns; /* of names at the ends */
    /* Margins: room for the words of marks above, for names at the right, for ticks at the left. */
    int top, right, left;
    int foot; /* below the plot: ticks and the axis' name */
};

/* Where a value stands, within the plot. */
double svg_frame_y(const struct frame *f, double value);
void svg_frame_label(struct frame *f, double x, double y, const char *anchor, const char *text);

void svg_tick_text(const struct plot_axis *axis, double value, int digits, struct strbuf *out);
/* As many as it takes to tell neighbours apart. */
int svg_tick_digits(const double *ticks, size_t count);
/* Room for the widest tick of the vertical scale, and for the axis' name beside it. */
void svg_frame_left(struct frame *f);
/* A line and the text below it. */
void svg_frame_x_tick(struct frame *f, double x, const char *text);
/* Whether the words of categories need two lines. */
bool svg_frame_staggers(const struct frame *f);
/* Categories below the plot, and what groups of them have in common. */
void svg_frame_words(struct frame *f);
/* Room for the names at the right and the words above. */
void svg_frame_margins(struct frame *f);
/* As near to the ends as they do not cover each other. */
void svg_frame_ends(struct frame *f);
bool svg_has_end(const struct plot_series *s);
/* Names at the right are for lines that reach it; a picture of many has a legend. */
bool svg_names_ends(const struct plot *p);

#endif
