/* SPDX-License-Identifier: MIT */
/* Flat tables: see rows.h. */
#include "profile/rows.h"
#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const key_names[ROW_KEY_COUNT] = {"comm",   "pid",     "tid", "dso",
                                                     "symbol", "srcline", "cpu", "event"};

const char *row_key_name(enum row_key key)
{
    return key_names[key];
}

static int find_key(const char *word, size_t length, enum row_key *ret_key)
{
    for (size_t i = 0; i < ROW_KEY_COUNT; i++)
        if (strlen(key_names[i]) == length && memcmp(key_names[i], word, length) == 0) {
            *ret_key = (enum row_key)i;
            return 0;
        }
    if (length == 3 && memcmp(word, "sym", 3) == 0) {
        *ret_key = ROW_SYMBOL;
        return 0;
    }
    return -EINVAL;
}

int row_keys_parse(const char *text, enum row_key *keys, size_t *ret_count, struct error *err)
{
    size_t count = 0;
    unsigned seen = 0;
    for (const char *word = text; word;) {
        const char *comma = strchr(word, ',');
        size_t length = comma ? (size_t)(comma - word) : strlen(word);
        enum row_key key;
        if (find_key(word, length, &key) < 0)
            return error_set(
                err, -EINVAL,
                "unknown sort key '%.*s'; use comm, pid, tid, dso, symbol, srcline, cpu or event",
                (int)(length < 40 ? length : 40), word);
        if (!(seen & 1u << key))
            keys[count++] = key;
        seen |= 1u << key;
        word = comma ? comma + 1 : NULL;
    }
    *ret_count = count;
    return 0;
}

static bool glob_match(const char *pattern, const char *name)
{
    const char *star = NULL, *retry = NULL;
    while (*name) {
        if (*pattern == '*') {
            star = pattern++;
            retry = name;
        } else if (*pattern == '?' || *pattern == *name) {
            pattern++;
            name++;
        } else if (star) {
            pattern = star + 1;
            name = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

bool name_filter_match(const struct name_filter *filter, const char *name)
{
    for (size_t i = 0; i < filter->count; i++)
        if (strcmp(filter->patterns[i], name) == 0 ||
            (!filter->exact && glob_match(filter->patterns[i], name)))
            return true;
    return filter->count == 0;
}

static uint64_t values_hash(const uint32_t *values)
{
    uint64_t h = 0;
    for (size_t i = 0; i < ROW_KEY_COUNT; i += 2)
        h = hash_mix(h, (uint64_t)values[i] << 32 | values[i + 1]);
    return h;
}
_Static_assert(ROW_KEY_COUNT % 2 == 0, "values are hashed in pairs");

static uint64_t row_hash(const void *items, uint32_t id)
{
    return values_hash(((const struct row *)items)[id].values);
}

static uint64_t group_hash(const void *items, uint32_t id)
{
    const struct row_group *g = (const struct row_group *)items + id;
    return hash_mix(values_hash(g->values), g->node);
}

static bool same_values(const uint32_t *a, const uint32_t *b)
{
    return memcmp(a, b, ROW_KEY_COUNT * sizeof(*a)) == 0;
}

/* The keys that belong to the sample, not to a frame. */
static void task_values(const struct rows *rows, const struct call_cell *cell, uint32_t *values)
{
    const struct profile_task *task = &rows->tasks->items[cell->task];
    for (size_t i = 0; i < rows->options.key_count; i++) {
        enum row_key key = rows->options.keys[i];
        if (key == ROW_COMM)
            values[key] = task->comm;
        else if (key == ROW_PID)
            values[key] = task->pid;
        else if (key == ROW_TID)
            values[key] = task->tid;
        else if (key == ROW_CPU)
            values[key] = cell->cpu;
        else if (key == ROW_EVENT)
            values[key] = cell->event;
    }
}

static void frame_values(const struct rows *rows, uint32_t frame, uint32_t srcline,
                         uint32_t *values)
{
    const struct profile_frame *f = &rows->calls->frames[frame];
    for (size_t i = 0; i < rows->options.key_count; i++) {
        enum row_key key = rows->options.keys[i];
        if (key == ROW_DSO)
            values[key] = rows->calls->symbols[f->symbol].dso;
        else if (key == ROW_SYMBOL)
            values[key] = f->symbol;
        else if (key == ROW_SRCLINE)
            values[key] = srcline;
    }
}

/* What each comm, dso and symbol is by the filters, asked once each. */
struct matches {
    bool *comms, *dsos, *symbols;
    bool *through; /* by node; NULL when not asked for */
};

static bool symbol_matches(const struct name_filter *filter, const struct profile_symbol *symbol)
{
    char address[32];
    if (!filter->count || symbol->name)
        return name_filter_match(filter, symbol->name);
    snprintf(address, sizeof(address), "0x%llx", (unsigned long long)symbol->address);
    return name_filter_match(filter, address);
}

static void matches_init(struct matches *m, const struct rows *rows)
{
    const struct calls *calls = rows->calls;
    const struct rows_options *o = &rows->options;
    m->comms = memory_zalloc(rows->tasks->comms.count + 1, sizeof(bool));
    for (size_t i = 0; i < rows->tasks->comms.count; i++)
        m->comms[i] = name_filter_match(&o->comms, rows->tasks->comms.items[i]);
    m->dsos = memory_zalloc(calls->dsos.count + 1, sizeof(bool));
    for (size_t i = 0; i < calls->dsos.count; i++)
        m->dsos[i] = name_filter_match(&o->dsos, calls->dsos.items[i]);
    m->symbols = memory_zalloc(calls->symbol_count + 1, sizeof(bool));
    for (size_t i = 0; i < calls->symbol_count; i++)
        m->symbols[i] =
            symbol_matches(&o->symbols, &calls->symbols[i]) && m->dsos[calls->symbols[i].dso];
    m->through = NULL;
    if (!o->through.count)
        return;
    m->through = memory_zalloc(calls->node_count, sizeof(bool));
    for (size_t i = 1; i < calls->node_count; i++) /* parents come first */
        m->through[i] = m->through[calls->nodes[i].parent] ||
                        symbol_matches(&o->through, calls_symbol(calls, calls->nodes[i].frame));
}

static void matches_done(struct matches *m)
{
    free(m->comms);
    free(m->dsos);
    free(m->symbols);
    free(m->through);
}

static void add_to_group(struct rows *rows, const struct call_cell *cell)
{
    uint32_t values[ROW_KEY_COUNT] = {0};
    task_values(rows, cell, values);
    uint32_t slot, id;
    IDTABLE_EACH(&rows->group_table, hash_mix(values_hash(values), cell->node), slot, id)
    {
        struct row_group *g = &rows->groups[id];
        if (g->node == cell->node && same_values(g->values, values)) {
            g->samples += cell->samples;
            g->weight += cell->weight;
            return;
        }
    }
    id = (uint32_t)rows->group_count;
    struct row_group *g = &ARRAY_PUSH(rows->groups, rows->group_count, rows->group_capacity);
    *g = (struct row_group){.node = cell->node, .samples = cell->samples, .weight = cell->weight};
    memcpy(g->values, values, sizeof(values));
    idtable_put(&rows->group_table, slot, id);
    if (idtable_is_crowded(&rows->group_table))
        idtable_grow(&rows->group_table, group_hash, rows->groups);
}

static uint32_t find_row(struct rows *rows, const uint32_t *values)
{
    uint32_t slot, id;
    IDTABLE_EACH(&rows->row_table, values_hash(values), slot, id)
    if (same_values(rows->items[id].values, values))
        return id;
    id = (uint32_t)rows->count;
    struct row *row = &ARRAY_PUSH(rows->items, rows->count, rows->capacity);
    *row = (struct row){.is_inlined = true};
    memcpy(row->values, values, sizeof(row->values));
    rows->last = memory_grow(rows->last, &rows->last_capacity, rows->count, sizeof(*rows->last));
    rows->last[id] = (struct row_last){IDTABLE_NONE, 0};
    idtable_put(&rows->row_table, slot, id);
    if (idtable_is_crowded(&rows->row_table))
        idtable_grow(&rows->row_table, row_hash, rows->items);
    return id;
}

/* Counts a group once for the row of one of its frames; is_self when that frame was running. */
static void count_frame(struct rows *rows, uint32_t group_index, uint32_t node, uint32_t frame,
                        bool is_self)
{
    const struct row_group *group = &rows->groups[group_index];
    uint32_t values[ROW_KEY_COUNT];
    memcpy(values, group->values, sizeof(values));
    bool is_inlined = false, is_kernel = false;
    if (frame != IDTABLE_NONE) {
        /* The line of the running code is that of the innermost frame, inlined or not. */
        uint32_t line_frame = is_self ? rows->calls->nodes[group->node].frame : frame;
        frame_values(rows, frame, rows->calls->frames[line_frame].srcline, values);
        is_inlined = rows->calls->frames[frame].inlined;
        is_kernel = calls_symbol(rows->calls, frame)->is_kernel;
    }
    uint32_t id = find_row(rows, values);
    struct row *row = &rows->items[id];
    row->is_inlined &= is_inlined;
    row->is_kernel = is_kernel;
    if (is_self) {
        row->self_samples += group->samples;
        row->self_weight += group->weight;
    }
    struct row_last *last = &rows->last[id];
    if (last->group == group_index) {
        if (rows->options.with_members)
            rows->members[last->member].outer = node;
        return;
    }
    *last = (struct row_last){group_index, (uint32_t)rows->member_count};
    row->total_samples += group->samples;
    row->total_weight += group->weight;
    row->member_count++;
    if (rows->options.with_members)
        ARRAY_PUSH(rows->members, rows->member_count, rows->member_capacity) =
            (struct row_member){id, group_index, node, node};
}

static uint32_t self_frame(const struct rows *rows, uint32_t node)
{
    return rows->options.inline_rows ? rows->calls->nodes[node].frame
                                     : calls_leaf_frame(rows->calls, node);
}

static void count_group(struct rows *rows, uint32_t group_index, const struct matches *m)
{
    uint32_t leaf = rows->groups[group_index].node;
    uint32_t self = self_frame(rows, leaf);
    if (!rows->options.children) {
        if (self == IDTABLE_NONE || m->symbols[rows->calls->frames[self].symbol])
            count_frame(rows, group_index, leaf, self, true);
        return;
    }
    bool self_is_due = true;
    for (uint32_t node = leaf; node; node = rows->calls->nodes[node].parent) {
        uint32_t frame = rows->calls->nodes[node].frame;
        bool is_self = self_is_due && frame == self;
        self_is_due &= !is_self;
        if (m->symbols[rows->calls->frames[frame].symbol])
            count_frame(rows, group_index, node, frame, is_self);
    }
    if (!leaf)
        count_frame(rows, group_index, leaf, IDTABLE_NONE, true);
}

static int compare_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "");
}

static int compare_key(const struct rows *rows, enum row_key key, uint32_t a, uint32_t b)
{
    const struct calls *calls = rows->calls;
    if (a == b)
        return 0;
    int order = 0;
    if (key == ROW_COMM)
        order = compare_text(rows->tasks->comms.items[a], rows->tasks->comms.items[b]);
    else if (key == ROW_DSO)
        order = compare_text(calls->dsos.items[a], calls->dsos.items[b]);
    else if (key == ROW_SYMBOL)
        order = compare_text(calls->symbols[a].name, calls->symbols[b].name);
    else if (key == ROW_SRCLINE)
        order = compare_text(calls->srclines[a].file, calls->srclines[b].file);
    return order ? order : a < b ? -1 : 1;
}

/* Heaviest first; equal ones by their keys, so that the order is the same every time. */
static int compare_rows(const void *left, const void *right, void *context)
{
    const struct row *a = left, *b = right;
    const struct rows *rows = context;
    if (a->total_weight != b->total_weight)
        return a->total_weight < b->total_weight ? 1 : -1;
    if (a->self_weight != b->self_weight)
        return a->self_weight < b->self_weight ? 1 : -1;
    for (size_t i = 0; i < rows->options.key_count; i++) {
        enum row_key key = rows->options.keys[i];
        int order = compare_key(rows, key, a->values[key], b->values[key]);
        if (order)
            return order;
    }
    return 0;
}

/* Orders the members by row, as a counting sort does, and tells each row where its own are. */
static void sort_members(struct rows *rows)
{
    uint32_t *starts = memory_zalloc(rows->count + 1, sizeof(*starts));
    for (size_t i = 0; i < rows->member_count; i++)
        starts[rows->members[i].row + 1]++;
    for (size_t i = 0; i < rows->count; i++) {
        starts[i + 1] += starts[i];
        rows->items[i].first_member = starts[i];
    }
    struct row_member *sorted = memory_zalloc(rows->member_count + 1, sizeof(*sorted));
    for (size_t i = 0; i < rows->member_count; i++)
        sorted[starts[rows->members[i].row]++] = rows->members[i];
    free(starts);
    free(rows->members);
    rows->members = sorted;
}

void rows_build(struct rows *rows, const struct calls *calls, const struct tasks *tasks,
                const struct rows_options *options)
{
    *rows = (struct rows){.calls = calls, .tasks = tasks, .options = *options};
    idtable_init(&rows->row_table, 8);
    idtable_init(&rows->group_table, 8);
    struct matches m;
    matches_init(&m, rows);
    for (size_t i = 0; i < calls->cell_count; i++) {
        const struct call_cell *cell = &calls->cells[i];
        if (options->event != ROWS_ALL_EVENTS && cell->event != options->event)
            continue;
        if (!m.comms[tasks->items[cell->task].comm] || (m.through && !m.through[cell->node]))
            continue;
        add_to_group(rows, cell);
    }
    for (size_t i = 0; i < rows->group_count; i++)
        count_group(rows, (uint32_t)i, &m);
    matches_done(&m);
    for (size_t i = 0; i < rows->count; i++) {
        rows->matched_samples += rows->items[i].self_samples;
        rows->matched_weight += rows->items[i].self_weight;
    }
    idtable_done(&rows->row_table);
    idtable_done(&rows->group_table);
    free(rows->last);
    rows->last = NULL;
    if (options->with_members)
        sort_members(rows);
    if (rows->count)
        qsort_r(rows->items, rows->count, sizeof(*rows->items), compare_rows, rows);
}

void rows_done(struct rows *rows)
{
    free(rows->items);
    free(rows->groups);
    free(rows->members);
    free(rows->last);
    idtable_done(&rows->row_table);
    idtable_done(&rows->group_table);
    *rows = (struct rows){0};
}
