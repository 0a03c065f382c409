/* SPDX-License-Identifier: MIT */
/* See ab_table.h. */
#include "report/text/ab_table.h"
#include "base/memory.h"

#define VERDICT_COLUMNS 28 /* words of this width still belong into the row … */
#define COLUMNS_USUAL 100  /* … unless the terminal is narrower than this */

struct ab_row *ab_table_add(struct ab_table *t)
{
    struct ab_row *row = &ARRAY_PUSH(t->rows, t->count, t->capacity);
    *row = (struct ab_row){.colour = ""};
    return row;
}

void ab_table_done(struct ab_table *t)
{
    for (size_t i = 0; i < t->count; i++) {
        for (size_t j = 0; j < AB_COLUMNS_MAX; j++)
            strbuf_done(&t->rows[i].cells[j]);
        strbuf_done(&t->rows[i].verdict);
    }
    free(t->rows);
}

static void put_padded(struct strbuf *out, const char *text, size_t width, bool right)
{
    size_t columns = str_columns(text), pad = width > columns ? width - columns : 0;
    strbuf_pad(out, ' ', right ? pad : 0);
    strbuf_puts(out, text);
    strbuf_pad(out, ' ', right ? 0 : pad);
}

static void strip(struct strbuf *out)
{
    while (out->length && out->data[out->length - 1] == ' ')
        out->data[--out->length] = '\0';
}

static void put_row(struct strbuf *out, const struct ab_row *row, const size_t *widths,
                    size_t columns, size_t left, bool is_head)
{
    size_t start = out->length;
    strbuf_puts(out, is_head ? " " : "   ");
    put_padded(out, strbuf_text(&row->cells[0]), widths[0] + (is_head ? 2 : 0), false);
    for (size_t i = 1; i < AB_COLUMNS_MAX; i++) {
        if (!widths[i])
            continue;
        strbuf_puts(out, "  ");
        put_padded(out, strbuf_text(&row->cells[i]), widths[i], i != left);
    }
    if (!row->verdict.length)
        strip(out);
    size_t used = str_columns(out->data + start);
    size_t verdict = str_columns(strbuf_text(&row->verdict));
    if (verdict && used + 2 + verdict > columns &&
        (verdict > VERDICT_COLUMNS || columns < COLUMNS_USUAL)) {
        strip(out);
        strbuf_puts(out, "\n     ");
    } else if (verdict) {
        strbuf_puts(out, "  ");
    }
    if (verdict)
        strbuf_printf(out, "%s%s%s", row->colour, strbuf_text(&row->verdict),
                      *row->colour ? "\033[0m" : "");
    strbuf_putc(out, '\n');
}

/* A row whose cells stand below each other. */
static void put_stacked(struct strbuf *out, const struct ab_table *t, const struct ab_row *row)
{
    size_t widest = 0;
    for (size_t i = 1; i < AB_COLUMNS_MAX; i++) {
        size_t width = str_columns(strbuf_text(&t->rows[0].cells[i]));
        widest = row->cells[i].length && width > widest ? width : widest;
    }
    strbuf_printf(out, "   %s\n", strbuf_text(&row->cells[0]));
    for (size_t i = 1; i < AB_COLUMNS_MAX; i++) {
        if (!row->cells[i].length)
            continue;
        strbuf_puts(out, "     ");
        put_padded(out, strbuf_text(&t->rows[0].cells[i]), widest, false);
        strbuf_printf(out, "  %s\n", strbuf_text(&row->cells[i]));
    }
    if (row->verdict.length)
        strbuf_printf(out, "     %s%s%s\n", row->colour, strbuf_text(&row->verdict),
                      *row->colour ? "\033[0m" : "");
}

/* Of rows without their words. */
static size_t row_columns(const size_t *widths)
{
    size_t all = 3 + widths[0];
    for (size_t i = 1; i < AB_COLUMNS_MAX; i++)
        all += widths[i] ? 2 + widths[i] : 0;
    return all;
}

void ab_table_put(struct strbuf *out, const struct ab_table *t, size_t columns)
{
    size_t widths[AB_COLUMNS_MAX] = {0};
    for (size_t i = 0; i < t->count; i++)
        for (size_t j = 0; j < AB_COLUMNS_MAX; j++) {
            size_t width = str_columns(strbuf_text(&t->rows[i].cells[j]));
            widths[j] = width > widths[j] ? width : widths[j];
        }
    bool narrow = columns < COLUMNS_USUAL;
    if (narrow && row_columns(widths) > columns)
        widths[t->optional] = t->optional ? 0 : widths[0];
    if (narrow && row_columns(widths) > columns) {
        for (size_t i = 1; i < t->count; i++)
            put_stacked(out, t, &t->rows[i]);
        return;
    }
    for (size_t i = 0; i < t->count; i++)
        put_row(out, &t->rows[i], widths, columns, t->left, i == 0);
}
