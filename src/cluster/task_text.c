/* SPDX-License-Identifier: MIT */
/* See task_text.h. */
#include "cluster/task_text.h"

static bool is_in(const bool *only, uint32_t cell)
{
    return !only || only[cell];
}

static void put_cells(struct strbuf *out, const uint32_t *cells, size_t count, const bool *only)
{
    const char *comma = "";
    for (size_t i = 0, end; i < count; i = end) {
        end = i + 1;
        if (!is_in(only, cells[i]))
            continue;
        while (end < count && cells[end] == cells[end - 1] + 1 && is_in(only, cells[end]))
            end++;
        strbuf_printf(out, "%s%u", comma, cells[i] + 1);
        if (end > i + 1)
            strbuf_printf(out, "-%u", cells[end - 1] + 1);
        comma = ",";
    }
}

void task_plan_write(struct strbuf *out, const struct task_text *text)
{
    const struct ledger *l = text->ledger;
    strbuf_printf(out, TASK_FIRST_LINE "%s %s\n", text->uuid, task_mode_words[text->mode]);
    for (size_t i = 0; i < text->unit_count; i++) {
        uint32_t block = text->units[i].block;
        strbuf_printf(out, "%u ", text->units[i].round);
        put_cells(out, l->cells + l->starts[block], ledger_block_size(l, block), text->only);
        strbuf_putc(out, '\n');
    }
}
