/* SPDX-License-Identifier: MIT */
/*
 * A profile as text, in the look that people know from perf report --stdio: a head, a table with
 * the heaviest rows first, and below each row its call tree, where
 *
 *     |--25.44%--do_syscall_64
 *     |          entry_SYSCALL_64_after_hwframe
 *
 * means that 25.44 % of all came through both: functions that always follow one another stand
 * under one percentage.
 */
#include "base/memory.h"
#include "report/profile/profile_report.h"

#include <string.h>

#define MARGIN 12    /* of the trees */
#define LAST_RULE 60 /* dots under the last title: names may be far longer */
#define DEPTH_MAX 500
#define NAME_COLUMNS 36 /* that a line of a tree needs at least, behind its indentation */

struct column {
    enum row_key key;
    const char *title;
    size_t width;
};

static const char *const titles[ROW_KEY_COUNT] = {
    "Command", "Pid", "Tid", "Shared Object", "Symbol", "Source:Line", "CPU", "Event",
};

struct text {
    const struct profile_table *table;
    struct strbuf *out;
    struct strbuf prefix; /* of the tree's lines */
    struct column columns[ROW_KEY_COUNT];
    size_t column_count;
};

static double share_of(uint64_t weight, uint64_t total)
{
    return total ? 100.0 * (double)weight / (double)total : 0;
}

static void put_number_line(struct strbuf *out, const struct profile_event *e)
{
    strbuf_printf(out, "# Samples: %llu of event '", (unsigned long long)e->samples);
    strbuf_put_safe(out, e->name, strlen(e->name), 200);
    strbuf_printf(out, "'\n# Event count (approx.): %llu", (unsigned long long)e->weight);
    char duration[32];
    if (e->is_time)
        strbuf_printf(out, " (%s%s)",
                      format_duration((double)e->weight, duration, sizeof(duration)),
                      e->is_off_cpu ? " off the CPU" : "");
    strbuf_putc(out, '\n');
}

/* Wraps a note to the width of the terminal, each line behind "# ". */
static void put_note(struct strbuf *out, const char *note, size_t columns)
{
    size_t width = columns > 40 ? columns - 3 : 97;
    while (*note) {
        size_t length = strlen(note);
        if (length > width) {
            length = width;
            while (length > 0 && note[length] != ' ')
                length--;
            if (!length)
                length = strcspn(note, " ");
        }
        strbuf_puts(out, "# ");
        strbuf_put_safe(out, note, length, length);
        strbuf_putc(out, '\n');
        note += length;
        note += strspn(note, " ");
    }
}

static void put_notes(struct strbuf *out, struct notes *notes, size_t columns)
{
    for (size_t i = 0; i < notes->count; i++)
        put_note(out, notes->items[i], columns);
    if (notes->count)
        strbuf_puts(out, "#\n");
    notes_done(notes);
}

static void put_file_head(const struct profile *p, const struct profile_view *view,
                          struct strbuf *out)
{
    struct notes notes = {0};
    unsigned long long lost = perfdata_lost(&p->losses);
    strbuf_printf(out, "# Total Lost Samples: %llu\n#\n", lost);
    profile_file_notes(p, view->verbose, &notes);
    put_notes(out, &notes, view->columns);
}

static void put_table_head(const struct profile_table *table, struct strbuf *out)
{
    const struct profile *p = table->profile;
    struct notes notes = {0};
    for (uint32_t i = 0; i < p->event_count; i++) {
        if (!p->events[i].samples || (table->event != i && table->event != ROWS_ALL_EVENTS))
            continue;
        put_number_line(out, &p->events[i]);
        strbuf_puts(out, "#\n");
        profile_event_notes(p, i, &notes);
    }
    put_notes(out, &notes, table->view->columns);
}

static size_t percent_columns(const struct profile_table *table)
{
    return table->view->rows.children ? 20 : 10;
}

/* Each column as wide as its widest cell; on a terminal the widest ones give way. */
static void measure(struct text *t, size_t shown)
{
    const struct profile_view *view = t->table->view;
    CLEANUP(strbuf_done) struct strbuf cell = {0};
    size_t total = percent_columns(t->table);
    for (size_t c = 0; c < view->rows.key_count; c++) {
        struct column *column = &t->columns[t->column_count++];
        *column = (struct column){view->rows.keys[c], titles[view->rows.keys[c]], 0};
        column->width = strlen(column->title);
        for (size_t i = 0; i < shown; i++) {
            strbuf_clear(&cell);
            row_put_value(t->table, &t->table->rows.items[i], column->key, 0, &cell);
            size_t width = str_columns(strbuf_text(&cell));
            if (width > column->width)
                column->width = width;
        }
        total += 2 + column->width;
    }
    while (view->columns && total > view->columns) {
        struct column *widest = &t->columns[0];
        for (size_t c = 1; c < t->column_count; c++)
            if (t->columns[c].width > widest->width)
                widest = &t->columns[c];
        if (widest->width <= 16)
            break;
        size_t excess = total - view->columns, room = widest->width - 16;
        size_t less = excess < room ? excess : room;
        if (less > 8 && t->column_count > 1)
            less = 8; /* in steps, so that two wide columns share the loss */
        widest->width -= less;
        total -= less;
    }
}

static void put_titles(const struct text *t)
{
    struct strbuf *out = t->out;
    strbuf_puts(out, t->table->view->rows.children ? "# Children      Self" : "# Overhead");
    for (size_t c = 0; c < t->column_count; c++) {
        strbuf_printf(out, "  %s", t->columns[c].title);
        if (c + 1 < t->column_count)
            strbuf_pad(out, ' ', t->columns[c].width - strlen(t->columns[c].title));
    }
    strbuf_puts(out, t->table->view->rows.children ? "\n# ........  ........" : "\n# ........");
    for (size_t c = 0; c < t->column_count; c++) {
        bool cut = c + 1 == t->column_count && t->columns[c].width > LAST_RULE;
        strbuf_puts(out, "  ");
        strbuf_pad(out, '.', cut ? LAST_RULE : t->columns[c].width);
    }
    strbuf_puts(out, "\n#\n");
}

/* As perf colours shares: what is 5 % or more stands out. */
static void put_percent(const struct text *t, double share)
{
    bool colour = t->table->view->colour && share >= 0.5;
    if (colour)
        strbuf_puts(t->out, share >= 5 ? "\033[31m" : "\033[32m");
    strbuf_printf(t->out, "%9.2f%%", share);
    if (colour)
        strbuf_puts(t->out, "\033[m");
}

static void put_row(const struct text *t, const struct row *row)
{
    uint64_t total = profile_table_total(t->table, row);
    struct strbuf *out = t->out;
    if (t->table->view->rows.children)
        put_percent(t, share_of(row->total_weight, total));
    put_percent(t, share_of(row->self_weight, total));
    CLEANUP(strbuf_done) struct strbuf cell = {0};
    for (size_t c = 0; c < t->column_count; c++) {
        const struct column *column = &t->columns[c];
        strbuf_clear(&cell);
        row_put_value(t->table, row, column->key, t->table->view->columns ? column->width : 0,
                      &cell);
        strbuf_printf(out, "  %s", strbuf_text(&cell));
        size_t width = str_columns(strbuf_text(&cell));
        if (c + 1 < t->column_count && width < column->width)
            strbuf_pad(out, ' ', column->width - width);
    }
    strbuf_putc(out, '\n');
}

struct tree_walk {
    struct text *text;
    const struct calltree *tree;
    uint64_t total;
    double limit;
};

static void put_tree_name(const struct tree_walk *w, uint32_t id)
{
    const struct calltree_node *n = &w->tree->nodes[id];
    size_t columns = w->text->table->view->columns, used = w->text->prefix.length + 11;
    if (columns)
        columns = columns > used + 12 ? columns - used : 12;
    symbol_put_name(&w->text->table->profile->calls, n->symbol, n->inlined, columns, w->text->out);
    strbuf_putc(w->text->out, '\n');
}

static bool is_shown(const struct tree_walk *w, uint32_t id)
{
    return share_of(w->tree->nodes[id].weight, w->total) >= w->limit;
}

/* The only child when all of the node's weight goes on to it. */
static uint32_t sole_child(const struct calltree *tree, uint32_t id)
{
    uint32_t child = tree->nodes[id].first_child;
    if (child == IDTABLE_NONE || tree->nodes[child].next != IDTABLE_NONE ||
        tree->nodes[child].weight != tree->nodes[id].weight)
        return IDTABLE_NONE;
    return child;
}

static void put_prefix(const struct tree_walk *w)
{
    strbuf_append(w->text->out, strbuf_text(&w->text->prefix), w->text->prefix.length);
}

/* The nodes that follow without a branch, below their first; returns the last of them. */
static uint32_t put_followers(const struct tree_walk *w, uint32_t id)
{
    for (uint32_t next; (next = sole_child(w->tree, id)) != IDTABLE_NONE; id = next) {
        put_prefix(w);
        put_tree_name(w, next);
    }
    return id;
}

static void shorten_prefix(struct text *t, size_t length)
{
    t->prefix.length = length;
    t->prefix.data[length] = '\0';
}

/* On a terminal a tree ends where its names would no longer fit. */
static bool is_too_deep(const struct tree_walk *w, unsigned depth)
{
    size_t columns = w->text->table->view->columns;
    return depth >= DEPTH_MAX || (columns && w->text->prefix.length + NAME_COLUMNS > columns);
}

static void put_children(const struct tree_walk *w, uint32_t parent, unsigned depth)
{
    struct text *t = w->text;
    size_t length = t->prefix.length;
    uint32_t first = w->tree->nodes[parent].first_child;
    if (is_too_deep(w, depth)) {
        if (first != IDTABLE_NONE && is_shown(w, first)) {
            put_prefix(w);
            strbuf_puts(t->out, "…\n");
        }
        return;
    }
    for (uint32_t id = first; id != IDTABLE_NONE;) {
        uint32_t next = w->tree->nodes[id].next;
        if (!is_shown(w, id))
            break; /* the rest is lighter still */
        bool last = next == IDTABLE_NONE || !is_shown(w, next);
        put_prefix(w);
        strbuf_puts(t->out, "|\n");
        put_prefix(w);
        strbuf_printf(t->out, "%s--%.2f%%--", last ? " " : "|",
                      share_of(w->tree->nodes[id].weight, w->total));
        put_tree_name(w, id);
        strbuf_puts(&t->prefix, last ? "           " : "|          ");
        uint32_t end = put_followers(w, id);
        put_children(w, end, depth + 1);
        shorten_prefix(t, length);
        id = last ? IDTABLE_NONE : next;
    }
}

/* Caller first with children, the tree of a function that calls nothing would be its name only:
 * then the way to it is shown instead, as perf does. */
static void build_tree(struct calltree *tree, const struct profile_table *table,
                       const struct row *row)
{
    const struct profile_view *view = table->view;
    calltree_build(tree, &table->rows, row, view->order);
    if (view->order != CALLTREE_CALLER || !view->rows.children || tree->count > 2)
        return;
    struct rows whole = table->rows; /* the same rows, walked from the outermost caller */
    whole.options.children = false;
    calltree_build(tree, &whole, row, CALLTREE_CALLER);
}

static void put_tree(struct text *t, struct calltree *tree, const struct row *row)
{
    struct tree_walk w = {t, tree, profile_table_total(t->table, row), t->table->view->tree_limit};
    if (share_of(row->total_weight, w.total) < w.limit) {
        strbuf_putc(t->out, '\n');
        return;
    }
    build_tree(tree, t->table, row);
    strbuf_clear(&t->prefix);
    strbuf_pad(&t->prefix, ' ', MARGIN);
    uint32_t only = sole_child(tree, 0);
    if (only != IDTABLE_NONE) {
        put_prefix(&w);
        strbuf_puts(t->out, "|\n");
        put_prefix(&w);
        strbuf_puts(t->out, "---");
        put_tree_name(&w, only);
        strbuf_puts(&t->prefix, "   ");
        only = put_followers(&w, only);
    } else {
        only = 0;
    }
    put_children(&w, only, 0);
    strbuf_putc(t->out, '\n');
}

static size_t shown_rows(const struct profile_table *table)
{
    for (size_t i = 0; i < table->rows.count; i++) {
        const struct row *row = &table->rows.items[i];
        if (table->event != ROWS_ALL_EVENTS &&
            share_of(row->total_weight, profile_table_total(table, row)) < table->view->row_limit)
            return i;
    }
    return table->rows.count;
}

static void put_table(const struct profile_table *table, struct strbuf *out)
{
    struct text t = {.table = table, .out = out};
    struct calltree tree = {0};
    size_t shown = shown_rows(table);
    bool trees = profile_table_has_trees(table);
    put_table_head(table, out);
    measure(&t, shown);
    put_titles(&t);
    for (size_t i = 0; i < shown; i++) {
        const struct row *row = &table->rows.items[i];
        if (table->event == ROWS_ALL_EVENTS &&
            share_of(row->total_weight, profile_table_total(table, row)) < table->view->row_limit)
            continue;
        put_row(&t, row);
        if (trees)
            put_tree(&t, &tree, row);
    }
    calltree_done(&tree);
    strbuf_done(&t.prefix);
}

void profile_put_text(const struct profile *profile, const struct profile_view *view,
                      struct strbuf *out)
{
    put_file_head(profile, view, out);
    size_t count = profile_table_count(profile, view);
    if (!count)
        strbuf_puts(out, "# No samples.\n");
    for (size_t i = 0; i < count; i++) {
        struct profile_table table;
        if (i > 0)
            strbuf_puts(out, "\n\n");
        profile_table_init(&table, profile, view, i);
        put_table(&table, out);
        profile_table_done(&table);
    }
}
