/* SPDX-License-Identifier: MIT */
/*
 * A profile as text, CSV and JSON: what `assay report` prints.
 */
#ifndef ASSAY_REPORT_PROFILE_PROFILE_REPORT_H
#define ASSAY_REPORT_PROFILE_PROFILE_REPORT_H

#include "base/json.h"
#include "profile/calltree.h"
#include "profile/profile.h"

struct profile_view {
    struct rows_options rows; /* without the event, which each table sets itself */
    bool trees;               /* call trees below the rows, where there are call chains */
    enum calltree_order order;
    double row_limit, tree_limit; /* in percent: what is less is left out */
    bool relative;                /* shares of what passed the filters, not of the whole */
    size_t columns;               /* to shorten names to; 0 for whole names */
    bool colour;
    bool verbose; /* all that is wrong with symbols, not only what matters */
};

/* One table of a report: an event, or all events where `event` is a sort key. */
struct profile_table {
    const struct profile *profile;
    const struct profile_view *view;
    struct rows rows;
    uint32_t event; /* or ROWS_ALL_EVENTS */
};

/* The tables there are: those of events with samples. */
size_t profile_table_count(const struct profile *profile, const struct profile_view *view);
void profile_table_init(struct profile_table *table, const struct profile *profile,
                        const struct profile_view *view, size_t index);
void profile_table_done(struct profile_table *table);
/* What is 100 %: for a row, since with the sort key `event` each event has its own. */
uint64_t profile_table_total(const struct profile_table *table, const struct row *row);
bool profile_table_has_trees(const struct profile_table *table);

/* The 95 % interval of a share that was estimated from `samples` (effective) samples. */
void share_interval(double share, double samples, double *ret_low, double *ret_high);

void profile_put_text(const struct profile *profile, const struct profile_view *view,
                      struct strbuf *out);
void profile_put_csv(const struct profile *profile, const struct profile_view *view,
                     struct strbuf *out);
void profile_put_json(const struct profile *profile, const struct profile_view *view,
                      struct strbuf *out);

/* Who ended the waits, of a profile loaded with its samples and wakers; an error where the
 * recording does not tell. */
int profile_put_wakers(const struct profile *profile, struct strbuf *out, struct error *err);

/* What the profile cannot tell, and what went wrong: one sentence or two each. */
struct notes {
    char **items;
    size_t count, capacity;
};
void notes_done(struct notes *notes);
/* Of the whole file: cut short, lost, throttled, symbols that were not found. */
void profile_file_notes(const struct profile *profile, bool verbose, struct notes *notes);
/* Of one event: too few samples, broken call chains. */
void profile_event_notes(const struct profile *profile, uint32_t event, struct notes *notes);

/* A key of a row as text that is safe on a terminal, at most `columns` wide (0: whole). */
void row_put_value(const struct profile_table *table, const struct row *row, enum row_key key,
                   size_t columns, struct strbuf *out);
/* A symbol's name, or its address; " (inlined)" behind it where that is so. */
void symbol_put_name(const struct calls *calls, uint32_t symbol, bool inlined, size_t columns,
                     struct strbuf *out);
/* "main.c:12", or "-" where it is not known. */
void srcline_put(const struct profile_srcline *srcline, size_t columns, struct strbuf *out);

/* Shortens a name to so many columns: template arguments go first, then the middle. */
void strbuf_put_short(struct strbuf *out, const char *name, size_t length, size_t columns);

#endif
