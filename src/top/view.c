/* SPDX-License-Identifier: MIT */
/* The rows of a view: see window.h. */
#include "base/memory.h"
#include "top/window.h"

#include <string.h>
#include <strings.h>

enum view_sort view_default_sort(enum view view)
{
    return view == VIEW_WAITS ? SORT_WAITING : SORT_CPU;
}

void view_rows_done(struct view_rows *rows)
{
    free(rows->items);
    *rows = (struct view_rows){0};
}

/* The interval that is `back` before the one being filled, from 1 on. */
static const struct recent_interval *interval_at(const struct recent *w, size_t back)
{
    size_t slots = w->interval_count + 1;
    return &w->intervals[(w->current + slots - back) % slots];
}

static bool thread_passes(const struct recent *w, const struct view_options *o, uint32_t thread)
{
    for (size_t i = 0; i < o->zoom_count; i++) {
        const struct view_zoom *z = &o->zooms[i];
        if ((z->kind == TOP_ZOOM_THREAD && z->value != thread) ||
            (z->kind == TOP_ZOOM_PROCESS && z->value != w->threads[thread].pid))
            return false;
    }
    return true;
}

static bool sample_passes(const struct recent *w, const struct view_options *o,
                          const struct recent_sample *s)
{
    for (size_t i = 0; i < o->zoom_count; i++) {
        const struct view_zoom *z = &o->zooms[i];
        if ((z->kind == TOP_ZOOM_SYMBOL && z->value != s->symbol) ||
            (z->kind == TOP_ZOOM_CALL && z->value != s->call))
            return false;
    }
    return thread_passes(w, o, s->thread);
}

/* Whoever looks at one function sees no waits: it ran. */
static bool state_passes(const struct recent *w, const struct view_options *o,
                         const struct recent_state *s)
{
    for (size_t i = 0; i < o->zoom_count; i++) {
        const struct view_zoom *z = &o->zooms[i];
        if (z->kind == TOP_ZOOM_SYMBOL ||
            (z->kind == TOP_ZOOM_CALL && z->value != w->places[s->place].call))
            return false;
    }
    return thread_passes(w, o, s->thread);
}

/* Rows that are found by their keys. */
struct table {
    struct view_rows rows;
    struct idtable ids;
};

struct builder {
    const struct recent *w;
    const struct view_options *o;
    struct table cells; /* of one thread each */
    uint64_t length_ns;
    uint64_t *slept_ns; /* of each thread, whole intervals */
};

static uint64_t row_hash(const void *items, uint32_t id)
{
    const struct view_row *r = (const struct view_row *)items + id;
    return hash_mix(hash_mix(r->symbol, r->thread), hash_mix(hash_mix(r->call, r->place), r->pid));
}

static struct view_row *find_row(struct table *t, const struct view_row *wanted)
{
    struct view_rows *rows = &t->rows;
    uint32_t slot, id;
    IDTABLE_EACH(&t->ids, row_hash(wanted, 0), slot, id)
    {
        struct view_row *r = &rows->items[id];
        if (r->symbol == wanted->symbol && r->thread == wanted->thread && r->call == wanted->call &&
            r->place == wanted->place && r->pid == wanted->pid)
            return r;
    }
    id = (uint32_t)rows->count;
    ARRAY_PUSH(rows->items, rows->count, rows->capacity) = *wanted;
    idtable_put(&t->ids, slot, id);
    if (idtable_is_crowded(&t->ids))
        idtable_grow(&t->ids, row_hash, rows->items);
    return &rows->items[id];
}

static struct view_row row_of_thread(const struct recent *w, uint32_t thread)
{
    return (struct view_row){.symbol = WINDOW_NONE,
                             .call = WINDOW_NONE,
                             .place = WINDOW_NONE,
                             .thread = thread,
                             .pid = w->threads[thread].pid};
}

static double share(const struct builder *b, uint64_t ns)
{
    return b->length_ns ? (double)ns / (double)b->length_ns : 0;
}

/* Whether the scheduler's own figures stand for what the thread ran, not its samples. */
static bool is_exact(const struct builder *b, uint32_t thread)
{
    for (size_t i = 0; i < b->o->zoom_count; i++)
        if (b->o->zooms[i].kind == TOP_ZOOM_SYMBOL || b->o->zooms[i].kind == TOP_ZOOM_CALL)
            return false;
    return b->o->view == VIEW_THREADS && b->w->threads[thread].is_exact;
}

static void add_sample(struct builder *b, const struct recent_sample *s)
{
    struct view_row key = row_of_thread(b->w, s->thread);
    if (b->o->view == VIEW_FUNCTIONS)
        key.symbol = s->symbol;
    else if (b->o->view == VIEW_CALLS)
        key.call = s->call;
    if (b->o->view == VIEW_WAITS || (b->o->view == VIEW_CALLS && s->call == WINDOW_NONE) ||
        is_exact(b, s->thread))
        return;
    find_row(&b->cells, &key)->cpu += share(b, s->ns);
}

static void add_state(struct builder *b, const struct recent_state *s)
{
    struct view_row key = row_of_thread(b->w, s->thread);
    if (b->slept_ns[s->thread] >= b->length_ns && !b->o->with_sleepers)
        return;
    if (b->o->view == VIEW_CALLS)
        key.call = b->w->places[s->place].call;
    else if (b->o->view == VIEW_WAITS)
        key.place = s->place;
    if (b->o->view == VIEW_FUNCTIONS || (b->o->view == VIEW_CALLS && key.call == WINDOW_NONE))
        return;
    find_row(&b->cells, &key)->waiting += share(b, s->ns);
}

static void add_run(struct builder *b, const struct recent_run *run)
{
    if (!is_exact(b, run->thread) || !thread_passes(b->w, b->o, run->thread) ||
        !(run->run_ns || run->ready_ns))
        return;
    struct view_row key = row_of_thread(b->w, run->thread);
    struct view_row *r = find_row(&b->cells, &key);
    r->cpu += share(b, run->run_ns);
    r->ready += share(b, run->ready_ns);
}

/* How long the window is, and who slept through it. */
static void look_over(struct builder *b, struct view_rows *rows)
{
    for (size_t back = 1; back <= b->w->full; back++) {
        const struct recent_interval *in = interval_at(b->w, back);
        b->length_ns += in->length_ns;
        rows->lost += in->lost;
        for (size_t i = 0; i < in->state_count; i++)
            if (in->states[i].slept)
                b->slept_ns[in->states[i].thread] += in->length_ns;
    }
    rows->length_ns = b->length_ns;
    for (size_t i = 0; i < b->w->thread_count; i++) {
        bool passes = thread_passes(b->w, b->o, (uint32_t)i);
        rows->sleepers += passes && b->length_ns && b->slept_ns[i] >= b->length_ns;
        rows->shut += passes && b->w->threads[i].is_alive && b->w->threads[i].is_shut;
    }
}

static void fill_cells(struct builder *b, struct view_rows *rows)
{
    for (size_t back = 1; back <= b->w->full; back++) {
        const struct recent_interval *in = interval_at(b->w, back);
        for (size_t i = 0; i < in->sample_count; i++) {
            rows->samples++;
            rows->busy += share(b, in->samples[i].ns);
            if (sample_passes(b->w, b->o, &in->samples[i]))
                add_sample(b, &in->samples[i]);
        }
        for (size_t i = 0; i < in->state_count; i++)
            if (state_passes(b->w, b->o, &in->states[i]))
                add_state(b, &in->states[i]);
        for (size_t i = 0; i < in->run_count; i++)
            add_run(b, &in->runs[i]);
    }
}

static const char *row_name(const struct recent *w, const struct view_row *r)
{
    if (r->symbol != WINDOW_NONE)
        return w->symbols[r->symbol].name;
    if (r->call != WINDOW_NONE)
        return recent_call(w, r->call);
    if (r->place != WINDOW_NONE)
        return recent_call(w, w->places[r->place].call);
    return r->thread != WINDOW_NONE ? recent_text(w, w->threads[r->thread].comm) : "";
}

static bool has_text(const char *text, const char *part)
{
    return strcasestr(text, part) != NULL;
}

static bool row_matches(const struct recent *w, const struct view_row *r, const char *filter)
{
    if (!filter || !*filter || has_text(row_name(w, r), filter))
        return true;
    if (r->symbol != WINDOW_NONE)
        return has_text(w->symbols[r->symbol].dso, filter);
    if (r->place != WINDOW_NONE) {
        const struct recent_place *p = &w->places[r->place];
        if (has_text(recent_text(w, p->function), filter) ||
            has_text(recent_text(w, p->file), filter))
            return true;
    }
    return r->thread != WINDOW_NONE && has_text(recent_text(w, w->threads[r->thread].comm), filter);
}

struct order {
    const struct recent *w;
    enum view_sort sort;
};

static double row_value(const struct view_row *r, enum view_sort sort)
{
    return sort == SORT_CPU ? r->cpu : sort == SORT_READY ? r->ready : r->waiting;
}

/* Largest first; then by what was spent at all, then by name, then by number. */
static int compare_rows(const void *left, const void *right, void *context)
{
    const struct order *o = context;
    const struct view_row *a = left, *b = right;
    if (o->sort != SORT_NAME) {
        double x = row_value(a, o->sort), y = row_value(b, o->sort);
        if (x == y) {
            x = a->cpu + a->waiting;
            y = b->cpu + b->waiting;
        }
        if (x != y)
            return x > y ? -1 : 1;
    }
    int order = strcmp(row_name(o->w, a), row_name(o->w, b));
    if (order)
        return order;
    uint32_t p = a->thread == WINDOW_NONE ? a->pid : a->thread;
    uint32_t q = b->thread == WINDOW_NONE ? b->pid : b->thread;
    return p < q ? -1 : p > q;
}

/* The cells of all threads together, unless each thread has a row. */
static void merge(struct builder *b, struct view_rows *rows)
{
    struct table merged = {0};
    idtable_init(&merged.ids, 8);
    for (size_t i = 0; i < b->cells.rows.count; i++) {
        const struct view_row *cell = &b->cells.rows.items[i];
        struct view_row key = *cell;
        key.cpu = key.ready = key.waiting = 0;
        if (b->o->view == VIEW_FUNCTIONS || b->o->view == VIEW_CALLS)
            key.pid = 0;
        if (b->o->view != VIEW_THREADS)
            key.thread = WINDOW_NONE;
        struct view_row *r = find_row(&merged, &key);
        r->cpu += cell->cpu;
        r->ready += cell->ready;
        r->waiting += cell->waiting;
        r->thread_count++;
    }
    idtable_done(&merged.ids);
    rows->items = merged.rows.items;
    rows->count = merged.rows.count;
    rows->capacity = merged.rows.capacity;
}

void view_build(struct view_rows *rows, const struct recent *w, const struct view_options *o)
{
    struct builder b = {.w = w, .o = o};
    *rows = (struct view_rows){0};
    b.slept_ns = memory_zalloc(w->thread_count + 1, sizeof(*b.slept_ns));
    idtable_init(&b.cells.ids, 8);
    look_over(&b, rows);
    fill_cells(&b, rows);
    merge(&b, rows);
    size_t kept = 0;
    for (size_t i = 0; i < rows->count; i++)
        if (row_matches(w, &rows->items[i], o->filter))
            rows->items[kept++] = rows->items[i];
    rows->count = kept;
    struct order order = {w, o->sort};
    if (kept)
        qsort_r(rows->items, kept, sizeof(*rows->items), compare_rows, &order);
    idtable_done(&b.cells.ids);
    free(b.cells.rows.items);
    free(b.slept_ns);
}

uint32_t view_main_place(const struct recent *w, uint32_t thread)
{
    struct {
        uint32_t place;
        uint64_t ns;
    } best[16];
    size_t count = 0, first = 0;
    for (size_t back = 1; back <= w->full; back++) {
        const struct recent_interval *in = interval_at(w, back);
        for (size_t i = 0; i < in->state_count; i++) {
            const struct recent_state *s = &in->states[i];
            if (s->thread != thread)
                continue;
            size_t k = 0;
            while (k < count && best[k].place != s->place)
                k++;
            if (k == count && count == ARRAY_COUNT(best))
                continue;
            if (k == count) {
                best[count].place = s->place;
                best[count++].ns = 0;
            }
            best[k].ns += s->ns;
            first = best[k].ns > best[first].ns ? k : first;
        }
    }
    return count ? best[first].place : WINDOW_NONE;
}

bool view_zoom(struct view_options *o, const struct view_row *row)
{
    if (o->zoom_count == VIEW_ZOOMS_MAX)
        return false;
    struct view_zoom *z = &o->zooms[o->zoom_count];
    enum view next = VIEW_THREADS;
    if (row->symbol != WINDOW_NONE) {
        *z = (struct view_zoom){TOP_ZOOM_SYMBOL, row->symbol};
    } else if (row->call != WINDOW_NONE) {
        *z = (struct view_zoom){TOP_ZOOM_CALL, row->call};
    } else if (row->thread != WINDOW_NONE) {
        *z = (struct view_zoom){TOP_ZOOM_THREAD, row->thread};
        next = VIEW_FUNCTIONS;
    } else {
        *z = (struct view_zoom){TOP_ZOOM_PROCESS, row->pid};
    }
    o->zoom_count++;
    o->view = next;
    o->sort = view_default_sort(next);
    return true;
}
