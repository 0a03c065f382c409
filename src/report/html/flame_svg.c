/* SPDX-License-Identifier: MIT */
/* Flame graphs as SVG, root on top.  Narrow frames are left out here; the scripts draw them from
 * the data when somebody zooms in. */
#include "base/memory.h"
#include "report/html/html.h"

#include <math.h>
#include <stdio.h>

enum {
    WIDTH = 1200,
    ROW = 17,
    DEPTH_MAX = 64,
    BOXES_MAX = 130,
    BOXES_BESIDE = 60,
    NAME_MAX_BYTES = 120
};
#define SHARE_MIN 0.003

struct box {
    uint32_t depth;
    double from, share; /* of the whole */
    const struct flame_name *name;
    const char *class;
    const char *sign; /* before the name: "▲ " */
    double shares[2]; /* of a pair */
    uint64_t samples;
};

struct boxes {
    struct box *items;
    size_t count, capacity;
    uint32_t deepest;
};

static const char *class_of(const struct flame_name *name)
{
    static const char *const warm[] = {"f0", "f1", "f2"};
    if (name->flags & FLAME_COMM)
        return "fn";
    if (name->flags & FLAME_KERNEL)
        return "fk";
    return warm[hash_string(name->text) % 3];
}

/* Places nodes side by side below their callers, as they come in preorder. */
struct cursor {
    double at[DEPTH_MAX + 2];
};

static bool place(struct cursor *c, uint32_t depth, double share, double *ret_from)
{
    if (depth > DEPTH_MAX)
        return false;
    *ret_from = c->at[depth];
    c->at[depth] += share;
    c->at[depth + 1] = *ret_from;
    return true;
}

static int by_share(const void *left, const void *right)
{
    const struct box *a = left, *b = right;
    return a->share < b->share ? 1 : a->share > b->share ? -1 : 0;
}

static int by_depth(const void *left, const void *right)
{
    const struct box *a = left, *b = right;
    if (a->depth != b->depth)
        return a->depth < b->depth ? -1 : 1;
    return a->from < b->from ? -1 : a->from > b->from;
}

/* The widest only, in the order of reading. */
static void choose(struct boxes *b, size_t most)
{
    if (b->count > most) {
        qsort(b->items, b->count, sizeof(*b->items), by_share);
        b->count = most;
    }
    if (b->count)
        qsort(b->items, b->count, sizeof(*b->items), by_depth);
    for (size_t i = 0; i < b->count; i++)
        b->deepest = b->items[i].depth > b->deepest ? b->items[i].depth : b->deepest;
}

static void put_title(struct strbuf *out, const struct box *box, bool pair, bool with_name)
{
    size_t length = strlen(box->name->text);
    strbuf_puts(out, "<title>");
    if (with_name) {
        strbuf_put_markup_n(out, box->name->text,
                            length < NAME_MAX_BYTES ? length : NAME_MAX_BYTES);
        strbuf_putc(out, ' ');
    }
    if (pair)
        strbuf_printf(out, "%.2f → %.2f %%", 100 * box->shares[0], 100 * box->shares[1]);
    else
        strbuf_printf(out, "%.2f %%", 100 * box->share);
    strbuf_puts(out, "</title>");
}

/* As many characters as fit, of which a UTF-8 character is not cut.  Whether that is all. */
static bool put_name(struct strbuf *out, const struct box *box, double width)
{
    size_t fits = (size_t)(width / 6.7);
    const char *text = box->name->text;
    size_t length = str_column_bytes(text, fits ? fits - 1 : 0);
    bool cut = text[length] != '\0';
    strbuf_puts(out, box->sign);
    strbuf_put_markup_n(out, text, length);
    strbuf_puts(out, cut ? "…" : "");
    return !cut;
}

/* In a file of its own every box says where it stands; in a page rows are groups, and the page's
 * style has what all boxes share. */
static void put_box(struct strbuf *out, const struct box *box, bool pair, bool alone)
{
    double x = box->from * WIDTH, width = box->share * WIDTH;
    int y = (int)box->depth * ROW;
    strbuf_puts(out, "<rect");
    if (alone || !str_eq(box->class, "fn"))
        strbuf_printf(out, " class=\"%s%s\"", alone ? "fr " : "", box->class);
    strbuf_puts(out, " x=\"");
    svg_put_number(out, x);
    if (alone)
        strbuf_printf(out, "\" y=\"%d\" height=\"16", y);
    strbuf_puts(out, "\" width=\"");
    svg_put_number(out, width);
    strbuf_puts(out, "\">");
    CLEANUP(strbuf_done) struct strbuf label = {0};
    bool whole = false;
    if (width > 34)
        whole = put_name(&label, box, width - 8 - 6.7 * (double)str_columns(box->sign));
    put_title(out, box, pair, !whole);
    strbuf_puts(out, "</rect>");
    if (!label.length)
        return;
    strbuf_puts(out, "<text x=\"");
    svg_put_number(out, alone ? x + 3 : x);
    if (alone)
        strbuf_printf(out, "\" y=\"%d", y + 12);
    strbuf_printf(out, "\">%s</text>", label.data);
}

static void put_boxes(struct boxes *b, size_t most, const char *id, const char *title, bool pair,
                      bool alone, struct strbuf *out)
{
    choose(b, most);
    int height = (int)(b->deepest + 1) * ROW + 2;
    if (alone) {
        svg_put_alone_head(out, WIDTH, height, title);
    } else {
        strbuf_printf(out,
                      "<svg class=\"flame\" id=\"%s\" viewBox=\"0 0 %d %d\" role=\"img\" "
                      "aria-label=\"",
                      id, WIDTH, height);
        strbuf_put_markup(out, title);
        strbuf_puts(out, "\">");
    }
    for (size_t i = 0; i < b->count; i++) {
        bool is_first = i == 0 || b->items[i].depth != b->items[i - 1].depth;
        if (!alone && is_first)
            strbuf_printf(out, "%s<g transform=\"translate(0 %d)\">", i ? "</g>" : "",
                          (int)b->items[i].depth * ROW);
        put_box(out, &b->items[i], pair, alone);
    }
    strbuf_puts(out, !alone && b->count ? "</g></svg>\n" : "</svg>\n");
    free(b->items);
}

void flame_put_svg(const struct flame *flame, const char *id, bool alone, bool beside,
                   struct strbuf *out)
{
    struct boxes b = {0};
    struct cursor c = {{0}};
    double whole = flame->weight ? (double)flame->weight : 1;
    for (size_t i = 0; i < flame->node_count; i++) {
        const struct flame_node *n = &flame->nodes[i];
        double from, share = (double)n->weight / whole;
        if (place(&c, n->depth, share, &from) && share >= SHARE_MIN)
            ARRAY_PUSH(b.items, b.count, b.capacity) =
                (struct box){.depth = n->depth,
                             .from = from,
                             .share = share,
                             .name = &flame->names[n->name],
                             .class = class_of(&flame->names[n->name]),
                             .sign = flame->names[n->name].flags & FLAME_KERNEL ? "[k] " : "",
                             .samples = n->samples};
    }
    CLEANUP(memory_freep)
    char *title = memory_printf("Flame graph of %s: %llu %s of %s", flame->label,
                                (unsigned long long)flame->samples,
                                plural(flame->samples, "sample", "samples"), flame->event);
    put_boxes(&b, beside ? BOXES_BESIDE : BOXES_MAX, id, title, false, alone, out);
}

/* The colour of the function's row in the difference, where this path went the same way. */
static void colour_pair(struct box *box, const double costs[2])
{
    double base = box->shares[0] * costs[0], new = box->shares[1] * costs[1];
    double change = new - base;
    bool strong = fabs(change) > FLAME_STRONG_CHANGE * fmax(base, new);
    box->class = "fn";
    box->sign = "";
    if (box->name->flags & FLAME_MORE && change > 0) {
        box->class = strong ? "fu2" : "fu1";
        box->sign = "+ ";
    } else if (box->name->flags & FLAME_LESS && change < 0) {
        box->class = strong ? "fd2" : "fd1";
        box->sign = "− ";
    }
}

void flame_pair_put_svg(const struct flame_pair *pair, const char *id, bool alone,
                        struct strbuf *out)
{
    struct boxes b = {0};
    struct cursor c = {{0}};
    double whole[2], costs[2];
    for (size_t s = 0; s < 2; s++) {
        whole[s] = pair->sides[s]->weight ? (double)pair->sides[s]->weight : 1;
        costs[s] = flame_cost(pair->sides[s]);
    }
    double both = costs[0] + costs[1] > 0 ? costs[0] + costs[1] : 1;
    for (size_t i = 0; i < pair->node_count; i++) {
        const struct flame_pair_node *n = &pair->nodes[i];
        struct box box = {.depth = n->depth, .name = &pair->names[n->name]};
        box.shares[0] = (double)n->weight[0] / whole[0];
        box.shares[1] = (double)n->weight[1] / whole[1];
        box.share = (box.shares[0] * costs[0] + box.shares[1] * costs[1]) / both;
        colour_pair(&box, costs);
        if (place(&c, n->depth, box.share, &box.from) && box.share >= SHARE_MIN)
            ARRAY_PUSH(b.items, b.count, b.capacity) = box;
    }
    CLEANUP(memory_freep)
    char *title = memory_printf("Differential flame graph: %s against %s", pair->sides[1]->label,
                                pair->sides[0]->label);
    put_boxes(&b, BOXES_MAX, id, title, true, alone, out);
}
