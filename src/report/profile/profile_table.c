/* SPDX-License-Identifier: MIT */
/* The tables of a report and the text of their cells: see profile_report.h. */
#include "base/memory.h"
#include "numbers/distributions.h"
#include "report/profile/profile_report.h"

#include <string.h>

static bool by_event(const struct profile_view *view)
{
    for (size_t i = 0; i < view->rows.key_count; i++)
        if (view->rows.keys[i] == ROW_EVENT)
            return true;
    return false;
}

size_t profile_table_count(const struct profile *profile, const struct profile_view *view)
{
    size_t count = 0;
    for (size_t i = 0; i < profile->event_count; i++)
        count += profile->events[i].samples > 0;
    return by_event(view) && count > 1 ? 1 : count;
}

void profile_table_init(struct profile_table *table, const struct profile *profile,
                        const struct profile_view *view, size_t index)
{
    *table = (struct profile_table){.profile = profile, .view = view, .event = ROWS_ALL_EVENTS};
    for (uint32_t i = 0; !by_event(view) && i < profile->event_count; i++)
        if (profile->events[i].samples > 0 && index-- == 0) {
            table->event = i;
            break;
        }
    struct rows_options options = view->rows;
    options.event = table->event;
    options.with_members = view->trees;
    rows_build(&table->rows, &profile->calls, &profile->tasks, &options);
}

void profile_table_done(struct profile_table *table)
{
    rows_done(&table->rows);
}

uint64_t profile_table_total(const struct profile_table *table, const struct row *row)
{
    uint32_t event = table->event == ROWS_ALL_EVENTS ? row->values[ROW_EVENT] : table->event;
    if (!table->view->relative)
        return table->profile->events[event].weight;
    if (table->event != ROWS_ALL_EVENTS)
        return table->rows.matched_weight;
    uint64_t total = 0;
    for (size_t i = 0; i < table->rows.count; i++)
        if (table->rows.items[i].values[ROW_EVENT] == event)
            total += table->rows.items[i].self_weight;
    return total;
}

bool profile_table_has_trees(const struct profile_table *table)
{
    if (!table->view->trees)
        return false;
    for (size_t i = 0; i < table->profile->event_count; i++)
        if (table->profile->events[i].has_callers &&
            (table->event == i || table->event == ROWS_ALL_EVENTS))
            return true;
    return false;
}

/* Clopper and Pearson's interval, for a number of samples that need not be whole. */
void share_interval(double share, double samples, double *ret_low, double *ret_high)
{
    double hits = share * samples, rest = samples - hits;
    *ret_low = hits > 1e-9 ? dist_beta_quantile(0.025, hits, rest + 1) : 0;
    *ret_high = rest > 1e-9 ? dist_beta_quantile(0.975, hits + 1, rest) : 1;
}

void symbol_put_name(const struct calls *calls, uint32_t symbol, bool inlined, size_t columns,
                     struct strbuf *out)
{
    static const char mark[] = " (inlined)";
    const struct profile_symbol *s = &calls->symbols[symbol];
    if (!s->name) {
        strbuf_printf(out, "0x%llx", (unsigned long long)s->address);
        return;
    }
    if (inlined && columns)
        columns = columns > sizeof(mark) + 2 ? columns - (sizeof(mark) - 1) : 2;
    strbuf_put_short(out, s->name, strlen(s->name), columns);
    if (inlined)
        strbuf_puts(out, mark);
}

void srcline_put(const struct profile_srcline *srcline, size_t columns, struct strbuf *out)
{
    if (!srcline->file) {
        strbuf_putc(out, '-');
        return;
    }
    const char *slash = strrchr(srcline->file, '/');
    const char *name = slash && slash[1] ? slash + 1 : srcline->file;
    strbuf_put_short(out, name, strlen(name), columns > 12 ? columns - 7 : 0);
    strbuf_printf(out, ":%u", srcline->line);
}

static void put_symbol_column(const struct profile_table *table, const struct row *row,
                              size_t columns, struct strbuf *out)
{
    const struct calls *calls = &table->profile->calls;
    const struct profile_symbol *s = &calls->symbols[row->values[ROW_SYMBOL]];
    strbuf_printf(out, "[%c] ", s->is_kernel ? 'k' : '.');
    if (s->name)
        symbol_put_name(calls, row->values[ROW_SYMBOL], row->is_inlined,
                        columns > 12 ? columns - 4
                        : columns    ? 8
                                     : 0,
                        out);
    else
        strbuf_printf(out, "0x%016llx", (unsigned long long)s->address);
}

void row_put_value(const struct profile_table *table, const struct row *row, enum row_key key,
                   size_t columns, struct strbuf *out)
{
    const struct profile *p = table->profile;
    uint32_t value = row->values[key];
    const char *text;
    switch (key) {
    case ROW_COMM:
        text = p->tasks.comms.items[value];
        break;
    case ROW_DSO:
        text = p->calls.dsos.items[value];
        break;
    case ROW_EVENT:
        text = p->events[value].name;
        break;
    case ROW_SYMBOL:
        put_symbol_column(table, row, columns, out);
        return;
    case ROW_SRCLINE:
        srcline_put(&p->calls.srclines[value], columns, out);
        return;
    default:
        if (value == UINT32_MAX)
            strbuf_putc(out, '-');
        else
            strbuf_printf(out, "%u", value);
        return;
    }
    strbuf_put_short(out, text, strlen(text), columns);
}
