/* SPDX-License-Identifier: MIT */
/*
 * The interactive report.  The model here knows what is shown, opened, searched and zoomed into,
 * and nothing of terminals, so that tests can drive it; browser_screen.c draws it with ncurses.
 */
#ifndef ASSAY_REPORT_BROWSER_BROWSER_H
#define ASSAY_REPORT_BROWSER_BROWSER_H

#include "report/profile/profile_report.h"

enum browser_zoom_kind {
    ZOOM_COMM,     /* only this command */
    ZOOM_DSO,      /* only this binary */
    ZOOM_FUNCTION, /* only samples with this function on the stack */
};

struct browser_zoom {
    enum browser_zoom_kind kind;
    const char *name; /* the profile's */
    size_t table_index;
    uint32_t row[ROW_KEY_COUNT]; /* the values of the row that it began at, to go back to */
};

#define BROWSER_ZOOMS_MAX 16

/* A row of the table: its tree is built when it is first opened. */
struct browser_row {
    bool is_open;
    struct calltree tree;
    bool *open_nodes; /* by node of the tree */
};

struct browser_line {
    uint32_t row;
    uint32_t node; /* of the row's tree; 0 for the row itself */
    uint32_t depth;
};

struct browser {
    struct profile *profile;
    struct profile_view view;
    struct browser_zoom zooms[BROWSER_ZOOMS_MAX];
    size_t zoom_count;
    struct rows_options base; /* the view's filters without zooms */
    const char *filters[3];   /* the newest zoom of each kind */
    size_t table_index, table_count;
    struct profile_table table;
    struct browser_row *rows;
    struct browser_line *lines;
    size_t line_count, line_capacity;
    size_t selected;
};

/* The profile must be symbolized and outlive the browser. */
void browser_init(struct browser *b, struct profile *profile, const struct profile_view *view);
void browser_done(struct browser *b);

void browser_move(struct browser *b, long by);
/* Opens or closes what is selected. */
void browser_toggle(struct browser *b);
void browser_open_all(struct browser *b, bool open); /* below the selected row */
/* False when there is nothing to zoom into, or too much was zoomed already. */
bool browser_zoom(struct browser *b, enum browser_zoom_kind kind);
bool browser_unzoom(struct browser *b);
void browser_next_table(struct browser *b);
void browser_set_order(struct browser *b, enum calltree_order order);
void browser_set_children(struct browser *b, bool children);
/* Selects the next line whose name holds the text, from behind the selected one on; false when
 * there is none. */
bool browser_search(struct browser *b, const char *text, bool backwards);

/* The symbol of a line, IDTABLE_NONE when symbols are no key. */
uint32_t browser_symbol(const struct browser *b, size_t line);
void browser_put_line(const struct browser *b, size_t line, size_t columns, struct strbuf *out);
/* Share of a line in percent, for its colour. */
double browser_share(const struct browser *b, size_t line);
/* What is shown: samples, event, zooms. */
void browser_put_title(const struct browser *b, struct strbuf *out);

/* Runs on the terminal until the user quits.  False, with words, when there is no terminal or no
 * ncurses. */
int browser_run(struct profile *profile, const struct profile_view *view, struct error *err);

#endif
