/* SPDX-License-Identifier: MIT */
/* The model of the interactive report: see browser.h. */
#include "report/browser/browser.h"
#include "base/memory.h"

#include <string.h>

static void close_table(struct browser *b)
{
    for (size_t i = 0; b->rows && i < b->table.rows.count; i++) {
        calltree_done(&b->rows[i].tree);
        free(b->rows[i].open_nodes);
    }
    free(b->rows);
    b->rows = NULL;
    if (b->table_count)
        profile_table_done(&b->table);
}

static double share_of(uint64_t weight, uint64_t total)
{
    return total ? 100.0 * (double)weight / (double)total : 0;
}

static uint64_t total_of(const struct browser *b, uint32_t row)
{
    return profile_table_total(&b->table, &b->table.rows.items[row]);
}

static void add_line(struct browser *b, uint32_t row, uint32_t node, uint32_t depth)
{
    ARRAY_PUSH(b->lines, b->line_count, b->line_capacity) = (struct browser_line){row, node, depth};
}

static bool node_is_shown(const struct browser *b, uint32_t row, uint32_t node)
{
    const struct calltree *tree = &b->rows[row].tree;
    return share_of(tree->nodes[node].weight, total_of(b, row)) >= b->view.tree_limit;
}

static void add_tree_lines(struct browser *b, uint32_t row)
{
    const struct browser_row *r = &b->rows[row];
    const struct calltree_node *nodes = r->tree.nodes;
    uint32_t depth = 1, id = nodes[0].first_child;
    while (id != IDTABLE_NONE) {
        bool shown = node_is_shown(b, row, id);
        if (shown)
            add_line(b, row, id, depth);
        if (shown && r->open_nodes[id] && nodes[id].first_child != IDTABLE_NONE) {
            id = nodes[id].first_child;
            depth++;
            continue;
        }
        uint32_t next = shown ? nodes[id].next : IDTABLE_NONE; /* the rest is lighter */
        while (next == IDTABLE_NONE && nodes[id].parent) {
            id = nodes[id].parent;
            next = nodes[id].next;
            depth--;
        }
        id = next;
    }
}

static void list_lines(struct browser *b)
{
    b->line_count = 0;
    for (uint32_t i = 0; i < b->table.rows.count; i++) {
        const struct row *row = &b->table.rows.items[i];
        if (share_of(row->total_weight, total_of(b, i)) < b->view.row_limit)
            continue;
        add_line(b, i, 0, 0);
        if (b->rows[i].is_open)
            add_tree_lines(b, i);
    }
    if (b->selected >= b->line_count)
        b->selected = b->line_count ? b->line_count - 1 : 0;
}

/* The filters of the view are those it began with, or the newest zoom of each kind. */
static void set_filters(struct browser *b)
{
    struct rows_options *rows = &b->view.rows;
    struct name_filter *targets[] = {&rows->comms, &rows->dsos, &rows->through};
    rows->comms = b->base.comms;
    rows->dsos = b->base.dsos;
    rows->through = b->base.through;
    for (size_t i = 0; i < b->zoom_count; i++) {
        enum browser_zoom_kind kind = b->zooms[i].kind;
        b->filters[kind] = b->zooms[i].name;
        *targets[kind] =
            (struct name_filter){.patterns = &b->filters[kind], .count = 1, .exact = true};
    }
}

static void open_table(struct browser *b)
{
    set_filters(b);
    b->table_count = profile_table_count(b->profile, &b->view);
    b->table.rows.count = 0;
    if (b->table_count) {
        profile_table_init(&b->table, b->profile, &b->view, b->table_index);
        b->rows = memory_zalloc(b->table.rows.count + 1, sizeof(*b->rows));
    }
    b->selected = 0;
    list_lines(b);
}

void browser_init(struct browser *b, struct profile *profile, const struct profile_view *view)
{
    *b = (struct browser){.profile = profile, .view = *view, .base = view->rows};
    open_table(b);
}

void browser_done(struct browser *b)
{
    close_table(b);
    free(b->lines);
    *b = (struct browser){0};
}

void browser_move(struct browser *b, long by)
{
    long at = (long)b->selected + by, last = (long)b->line_count - 1;
    b->selected = (size_t)(at < 0 || last < 0 ? 0 : at > last ? last : at);
}

static void build_tree(struct browser *b, uint32_t row)
{
    struct browser_row *r = &b->rows[row];
    if (r->tree.count)
        return;
    calltree_build(&r->tree, &b->table.rows, &b->table.rows.items[row], b->view.order);
    r->open_nodes = memory_zalloc(r->tree.count, sizeof(*r->open_nodes));
}

/* The only child that is shown, IDTABLE_NONE when there are none or several. */
static uint32_t only_child(const struct browser *b, uint32_t row, uint32_t node)
{
    const struct calltree_node *nodes = b->rows[row].tree.nodes;
    uint32_t child = nodes[node].first_child;
    if (child == IDTABLE_NONE)
        return IDTABLE_NONE;
    uint32_t next = nodes[child].next;
    return next == IDTABLE_NONE || !node_is_shown(b, row, next) ? child : IDTABLE_NONE;
}

/* The way on is opened along with a node as long as there is only one. */
static void open_node(struct browser *b, uint32_t row, uint32_t node)
{
    for (; node != IDTABLE_NONE; node = only_child(b, row, node))
        b->rows[row].open_nodes[node] = true;
}

void browser_toggle(struct browser *b)
{
    if (!b->line_count || !profile_table_has_trees(&b->table))
        return;
    const struct browser_line line = b->lines[b->selected];
    struct browser_row *r = &b->rows[line.row];
    if (!line.node) {
        build_tree(b, line.row);
        r->is_open = !r->is_open;
        if (r->is_open)
            open_node(b, line.row, 0);
    } else if (r->open_nodes[line.node]) {
        r->open_nodes[line.node] = false;
    } else {
        open_node(b, line.row, line.node);
    }
    list_lines(b);
}

void browser_open_all(struct browser *b, bool open)
{
    if (!b->line_count || !profile_table_has_trees(&b->table))
        return;
    uint32_t row = b->lines[b->selected].row;
    struct browser_row *r = &b->rows[row];
    build_tree(b, row);
    r->is_open = open;
    memset(r->open_nodes, open, r->tree.count * sizeof(*r->open_nodes));
    list_lines(b);
    for (size_t i = 0; i < b->line_count && !open; i++)
        if (b->lines[i].row == row)
            b->selected = i;
}

uint32_t browser_symbol(const struct browser *b, size_t line)
{
    if (line >= b->line_count)
        return IDTABLE_NONE;
    const struct browser_line *l = &b->lines[line];
    if (l->node)
        return b->rows[l->row].tree.nodes[l->node].symbol;
    for (size_t i = 0; i < b->view.rows.key_count; i++)
        if (b->view.rows.keys[i] == ROW_SYMBOL)
            return b->table.rows.items[l->row].values[ROW_SYMBOL];
    return IDTABLE_NONE;
}

static bool has_key(const struct browser *b, enum row_key key)
{
    for (size_t i = 0; i < b->view.rows.key_count; i++)
        if (b->view.rows.keys[i] == key)
            return true;
    return false;
}

/* What a zoom of this kind would be into, NULL for nothing. */
static const char *zoom_name(const struct browser *b, enum browser_zoom_kind kind)
{
    if (!b->line_count)
        return NULL;
    const struct calls *calls = &b->profile->calls;
    const struct row *row = &b->table.rows.items[b->lines[b->selected].row];
    uint32_t symbol = browser_symbol(b, b->selected);
    switch (kind) {
    case ZOOM_COMM:
        return has_key(b, ROW_COMM) ? b->profile->tasks.comms.items[row->values[ROW_COMM]] : NULL;
    case ZOOM_DSO:
        if (symbol != IDTABLE_NONE)
            return calls->dsos.items[calls->symbols[symbol].dso];
        return has_key(b, ROW_DSO) ? calls->dsos.items[row->values[ROW_DSO]] : NULL;
    case ZOOM_FUNCTION:
        return symbol != IDTABLE_NONE ? calls->symbols[symbol].name : NULL;
    }
    return NULL;
}

/* Shows the table again after the view changed. */
static void reopen(struct browser *b)
{
    close_table(b);
    open_table(b);
}

bool browser_zoom(struct browser *b, enum browser_zoom_kind kind)
{
    const char *name = zoom_name(b, kind);
    if (!name || b->zoom_count == BROWSER_ZOOMS_MAX)
        return false;
    struct browser_zoom *zoom = &b->zooms[b->zoom_count++];
    *zoom = (struct browser_zoom){.kind = kind, .name = name, .table_index = b->table_index};
    memcpy(zoom->row, b->table.rows.items[b->lines[b->selected].row].values, sizeof(zoom->row));
    reopen(b);
    return true;
}

/* Goes to the row with these values, where there still is one. */
static void select_row(struct browser *b, const uint32_t *values)
{
    for (size_t i = 0; i < b->line_count; i++)
        if (memcmp(b->table.rows.items[b->lines[i].row].values, values, sizeof(b->zooms[0].row)) ==
            0) {
            b->selected = i;
            return;
        }
}

bool browser_unzoom(struct browser *b)
{
    if (!b->zoom_count)
        return false;
    const struct browser_zoom *zoom = &b->zooms[--b->zoom_count];
    reopen(b);
    if (zoom->table_index == b->table_index)
        select_row(b, zoom->row);
    return true;
}

void browser_next_table(struct browser *b)
{
    if (b->table_count < 2)
        return;
    b->table_index = (b->table_index + 1) % b->table_count;
    reopen(b);
}

void browser_set_order(struct browser *b, enum calltree_order order)
{
    b->view.order = order;
    reopen(b);
}

void browser_set_children(struct browser *b, bool children)
{
    b->view.rows.children = children;
    reopen(b);
}

double browser_share(const struct browser *b, size_t line)
{
    const struct browser_line *l = &b->lines[line];
    uint64_t weight = l->node ? b->rows[l->row].tree.nodes[l->node].weight
                              : b->table.rows.items[l->row].total_weight;
    return share_of(weight, total_of(b, l->row));
}

static char mark_of(const struct browser *b, const struct browser_line *l)
{
    if (!profile_table_has_trees(&b->table))
        return ' ';
    const struct browser_row *r = &b->rows[l->row];
    if (!l->node)
        return r->is_open ? '-' : '+';
    if (r->tree.nodes[l->node].first_child == IDTABLE_NONE)
        return ' ';
    return r->open_nodes[l->node] ? '-' : '+';
}

/* The width of a column of a row; 0 for one that gives way to the last, which has the names. */
static size_t column_width(const struct browser *b, size_t column, size_t columns, size_t used)
{
    const size_t least = 20;
    if (column + 1 == b->view.rows.key_count)
        return columns > used + 2 ? columns - used - 2 : 8;
    enum row_key key = b->view.rows.keys[column];
    size_t width = key == ROW_SYMBOL ? 40 : key == ROW_DSO ? 22 : 16;
    size_t rest = least; /* that the columns behind it want */
    for (size_t c = column + 1; c + 1 < b->view.rows.key_count; c++)
        rest += b->view.rows.keys[c] == ROW_SYMBOL ? 20 : 0;
    if (used + width + 4 + rest <= columns)
        return width;
    return key == ROW_SYMBOL ? 20 : 0;
}

static void put_row_line(const struct browser *b, const struct browser_line *l, size_t columns,
                         struct strbuf *out)
{
    const struct row *row = &b->table.rows.items[l->row];
    uint64_t total = total_of(b, l->row);
    size_t start = str_columns(strbuf_text(out));
    if (b->view.rows.children)
        strbuf_printf(out, "%8.2f%%", share_of(row->total_weight, total));
    strbuf_printf(out, "%8.2f%%", share_of(row->self_weight, total));
    CLEANUP(strbuf_done) struct strbuf cell = {0};
    for (size_t c = 0; c < b->view.rows.key_count; c++) {
        bool last = c + 1 == b->view.rows.key_count;
        size_t used = str_columns(strbuf_text(out)) - start;
        size_t width = column_width(b, c, columns, used);
        if (!width)
            continue;
        strbuf_clear(&cell);
        row_put_value(&b->table, row, b->view.rows.keys[c], width, &cell);
        strbuf_printf(out, "  %s", strbuf_text(&cell));
        size_t have = str_columns(strbuf_text(&cell));
        if (!last && have < width)
            strbuf_pad(out, ' ', width - have);
    }
}

void browser_put_line(const struct browser *b, size_t line, size_t columns, struct strbuf *out)
{
    const struct browser_line *l = &b->lines[line];
    if (!l->node) {
        strbuf_printf(out, "%c", mark_of(b, l));
        put_row_line(b, l, columns > 1 ? columns - 1 : 1, out);
        return;
    }
    const struct calltree_node *n = &b->rows[l->row].tree.nodes[l->node];
    size_t indent = 6 + 2 * (size_t)(l->depth < 40 ? l->depth : 40);
    strbuf_pad(out, ' ', indent);
    strbuf_printf(out, "%c %6.2f%% ", mark_of(b, l), browser_share(b, line));
    size_t used = indent + 10;
    symbol_put_name(&b->profile->calls, n->symbol, n->inlined,
                    columns > used + 8 ? columns - used : 8, out);
}

void browser_put_title(const struct browser *b, struct strbuf *out)
{
    static const char *const words[] = {"command", "binary", "through"};
    if (!b->table_count) {
        strbuf_puts(out, "No samples");
        return;
    }
    uint32_t event = b->table.event;
    for (uint32_t i = 0; i < b->profile->event_count; i++) {
        const struct profile_event *e = &b->profile->events[i];
        if (!e->samples || (event != i && event != ROWS_ALL_EVENTS))
            continue;
        strbuf_printf(out, "Samples: %llu of event '", (unsigned long long)e->samples);
        strbuf_put_safe(out, e->name, strlen(e->name), 80);
        strbuf_printf(out, "', Event count (approx.): %llu", (unsigned long long)e->weight);
        break;
    }
    if (b->table_count > 1)
        strbuf_printf(out, "  [%zu of %zu]", b->table_index + 1, b->table_count);
    for (size_t i = 0; i < b->zoom_count; i++) {
        strbuf_printf(out, "  %s ", words[b->zooms[i].kind]);
        strbuf_put_short(out, b->zooms[i].name, strlen(b->zooms[i].name), 30);
    }
}

static bool line_holds(const struct browser *b, size_t line, const char *text)
{
    CLEANUP(strbuf_done) struct strbuf shown = {0};
    browser_put_line(b, line, 100000, &shown);
    return strcasestr(strbuf_text(&shown), text) != NULL;
}

bool browser_search(struct browser *b, const char *text, bool backwards)
{
    for (size_t k = 1; k <= b->line_count && text[0]; k++) {
        size_t line = backwards ? (b->selected + b->line_count - k) % b->line_count
                                : (b->selected + k) % b->line_count;
        if (line_holds(b, line, text)) {
            b->selected = line;
            return true;
        }
    }
    return false;
}
