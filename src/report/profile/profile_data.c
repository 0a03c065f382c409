/* SPDX-License-Identifier: MIT */
/* A profile for programs: CSV with one line for each row, and JSON with everything. */
#include "base/memory.h"
#include "report/profile/profile_report.h"

#include <stdio.h>
#include <string.h>

static double share_of(uint64_t weight, uint64_t total)
{
    return total ? (double)weight / (double)total : 0;
}

/* The whole name, made safe for the format only: no marks, nothing shortened. */
static const char *value_text(const struct profile_table *table, const struct row *row,
                              enum row_key key, char *buffer, size_t size)
{
    const struct profile *p = table->profile;
    uint32_t value = row->values[key];
    switch (key) {
    case ROW_COMM:
        return p->tasks.comms.items[value];
    case ROW_DSO:
        return p->calls.dsos.items[value];
    case ROW_EVENT:
        return p->events[value].name;
    case ROW_SYMBOL:
        if (p->calls.symbols[value].name)
            return p->calls.symbols[value].name;
        snprintf(buffer, size, "0x%llx", (unsigned long long)p->calls.symbols[value].address);
        return buffer;
    case ROW_SRCLINE:
        if (!p->calls.srclines[value].file)
            return "";
        snprintf(buffer, size, "%s:%u", p->calls.srclines[value].file,
                 p->calls.srclines[value].line);
        return buffer;
    default:
        if (value == UINT32_MAX)
            return "";
        snprintf(buffer, size, "%u", value);
        return buffer;
    }
}

static uint32_t event_of(const struct profile_table *table, const struct row *row)
{
    return table->event == ROWS_ALL_EVENTS ? row->values[ROW_EVENT] : table->event;
}

static bool row_is_shown(const struct profile_table *table, const struct row *row)
{
    return 100 * share_of(row->total_weight, profile_table_total(table, row)) >=
           table->view->row_limit;
}

/* Control characters do not belong into a table either, wherever it is shown. */
static void put_csv_text(struct strbuf *out, const char *text)
{
    CLEANUP(strbuf_done) struct strbuf safe = {0};
    strbuf_put_safe(&safe, text, strlen(text), SYMBOLS_NAME_MAX);
    strbuf_put_csv(out, strbuf_text(&safe));
}

static void put_csv_row(const struct profile_table *table, const struct row *row,
                        struct strbuf *out)
{
    char buffer[4200];
    uint64_t total = profile_table_total(table, row);
    put_csv_text(out, table->profile->events[event_of(table, row)].name);
    if (table->view->rows.children)
        strbuf_printf(out, ",%.4f", 100 * share_of(row->total_weight, total));
    strbuf_printf(out, ",%.4f,%llu,%llu", 100 * share_of(row->self_weight, total),
                  (unsigned long long)row->self_samples, (unsigned long long)row->self_weight);
    for (size_t c = 0; c < table->view->rows.key_count; c++) {
        enum row_key key = table->view->rows.keys[c];
        if (key == ROW_EVENT)
            continue;
        strbuf_putc(out, ',');
        put_csv_text(out, value_text(table, row, key, buffer, sizeof(buffer)));
    }
    strbuf_putc(out, '\n');
}

void profile_put_csv(const struct profile *profile, const struct profile_view *view,
                     struct strbuf *out)
{
    strbuf_puts(out, view->rows.children ? "event,children_percent,self_percent,samples,weight"
                                         : "event,overhead_percent,samples,weight");
    for (size_t c = 0; c < view->rows.key_count; c++)
        if (view->rows.keys[c] != ROW_EVENT)
            strbuf_printf(out, ",%s", row_key_name(view->rows.keys[c]));
    strbuf_putc(out, '\n');
    for (size_t i = 0; i < profile_table_count(profile, view); i++) {
        struct profile_table table;
        profile_table_init(&table, profile, view, i);
        for (size_t k = 0; k < table.rows.count; k++)
            if (row_is_shown(&table, &table.rows.items[k]))
                put_csv_row(&table, &table.rows.items[k], out);
        profile_table_done(&table);
    }
}

static void put_json_notes(struct json *j, struct notes *notes)
{
    json_array(j, "notes");
    for (size_t i = 0; i < notes->count; i++)
        json_string(j, NULL, notes->items[i]);
    json_end(j);
    notes_done(notes);
}

static void put_json_call(struct json *j, const struct profile_table *table,
                          const struct calltree_node *n, unsigned depth, uint64_t total)
{
    const struct profile_symbol *s = &table->profile->calls.symbols[n->symbol];
    char address[32];
    snprintf(address, sizeof(address), "0x%llx", (unsigned long long)s->address);
    json_object(j, NULL);
    json_u64(j, "depth", depth);
    json_string(j, "symbol", s->name ? s->name : address);
    if (n->inlined)
        json_bool(j, "inlined", true);
    json_double(j, "share", share_of(n->weight, total));
    json_u64(j, "samples", n->samples);
    json_end(j);
}

/* The tree as a list in the order of printing: a node stands below the nearest one before it that
 * is less deep. */
static void put_json_tree(struct json *j, const struct profile_table *table,
                          const struct calltree *tree, uint64_t total)
{
    unsigned depth = 0;
    uint32_t id = tree->nodes[0].first_child;
    json_array(j, "calls");
    while (id != IDTABLE_NONE) {
        const struct calltree_node *n = &tree->nodes[id];
        bool shown = 100 * share_of(n->weight, total) >= table->view->tree_limit;
        if (shown)
            put_json_call(j, table, n, depth, total);
        if (shown && n->first_child != IDTABLE_NONE) {
            id = n->first_child;
            depth++;
            continue;
        }
        /* What is lighter than the limit is followed by lighter ones only. */
        uint32_t next = shown ? n->next : IDTABLE_NONE;
        while (next == IDTABLE_NONE && n->parent != IDTABLE_NONE && n->parent != 0) {
            n = &tree->nodes[n->parent];
            next = n->next;
            depth--;
        }
        id = next;
    }
    json_end(j);
}

static void put_json_row(struct json *j, const struct profile_table *table, const struct row *row,
                         struct calltree *tree)
{
    char buffer[4200];
    uint64_t total = profile_table_total(table, row);
    double share = share_of(row->self_weight, total), low, high;
    share_interval(share, profile_effective_samples(&table->profile->events[event_of(table, row)]),
                   &low, &high);
    json_object(j, NULL);
    json_double(j, "share", share);
    json_double(j, "share_low", low);
    json_double(j, "share_high", high);
    json_u64(j, "samples", row->self_samples);
    json_u64(j, "weight", row->self_weight);
    if (table->view->rows.children) {
        json_double(j, "children_share", share_of(row->total_weight, total));
        json_u64(j, "children_samples", row->total_samples);
        json_u64(j, "children_weight", row->total_weight);
    }
    for (size_t c = 0; c < table->view->rows.key_count; c++) {
        enum row_key key = table->view->rows.keys[c];
        const char *text = value_text(table, row, key, buffer, sizeof(buffer));
        if (key == ROW_PID || key == ROW_TID || key == ROW_CPU)
            json_i64(j, row_key_name(key),
                     row->values[key] == UINT32_MAX ? -1 : (int64_t)row->values[key]);
        else
            json_string(j, row_key_name(key), text);
        if (key == ROW_SYMBOL) {
            json_bool(j, "kernel", row->is_kernel);
            if (row->is_inlined)
                json_bool(j, "inlined", true);
        }
    }
    if (profile_table_has_trees(table)) {
        calltree_build(tree, &table->rows, row, table->view->order);
        put_json_tree(j, table, tree, total);
    }
    json_end(j);
}

static void put_json_event(struct json *j, const struct profile *p, uint32_t event)
{
    const struct profile_event *e = &p->events[event];
    struct notes notes = {0};
    json_object(j, NULL);
    json_string(j, "name", e->name);
    json_u64(j, "samples", e->samples);
    json_u64(j, "weight", e->weight);
    json_string(j, "unit", e->is_time ? "ns" : "events");
    json_double(j, "effective_samples", profile_effective_samples(e));
    profile_event_notes(p, event, &notes);
    put_json_notes(j, &notes);
    json_end(j);
}

static void put_json_losses(struct json *j, const struct profile *p)
{
    json_object(j, "losses");
    json_u64(j, "lost", perfdata_lost(&p->losses));
    json_u64(j, "throttled", p->losses.throttled);
    json_u64(j, "malformed", p->losses.malformed);
    json_u64(j, "unmatched", p->losses.unmatched);
    json_u64(j, "bytes_missing", p->losses.bytes_missing);
    json_end(j);
    json_object(j, "chains");
    json_u64(j, "samples", p->chains.samples);
    json_u64(j, "broken", p->chains.broken);
    json_u64(j, "ending_early", p->chains.ending);
    json_u64(j, "unwound", p->chains.unwound);
    json_u64(j, "stack_cut", p->chains.stack_cut);
    json_u64(j, "no_rules", p->chains.no_rules);
    json_end(j);
}

void profile_put_json(const struct profile *profile, const struct profile_view *view,
                      struct strbuf *out)
{
    struct json j = {.out = out};
    struct notes notes = {0};
    struct calltree tree = {0};
    json_object(&j, NULL);
    json_string(&j, "file", profile->path);
    json_string(&j, "command", profile->command_line);
    json_string(&j, "host", profile->hostname);
    json_string(&j, "kernel", profile->os_release);
    put_json_losses(&j, profile);
    profile_file_notes(profile, view->verbose, &notes);
    put_json_notes(&j, &notes);
    json_array(&j, "events");
    for (uint32_t i = 0; i < profile->event_count; i++)
        if (profile->events[i].samples)
            put_json_event(&j, profile, i);
    json_end(&j);
    json_array(&j, "rows");
    for (size_t i = 0; i < profile_table_count(profile, view); i++) {
        struct profile_table table;
        profile_table_init(&table, profile, view, i);
        for (size_t k = 0; k < table.rows.count; k++)
            if (row_is_shown(&table, &table.rows.items[k]))
                put_json_row(&j, &table, &table.rows.items[k], &tree);
        profile_table_done(&table);
    }
    json_end(&j);
    json_end(&j);
    strbuf_putc(out, '\n');
    calltree_done(&tree);
}
