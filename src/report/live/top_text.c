/* SPDX-License-Identifier: MIT */
/* Frames of `assay top` as text: see top_text.h. */
#include "report/live/top_text.h"
#include "base/clock.h"
#include "base/memory.h"

#include <inttypes.h>

static const char *const view_names[VIEW_COUNT] = {"functions", "threads", "calls", "waits"};
static const char *const sort_names[SORT_COUNT] = {"CPU", "ready", "waiting", "name"};

const char *top_view_name(enum view view)
{
    return view_names[view];
}

const char *top_sort_name(enum view_sort sort)
{
    return sort_names[sort];
}

static const char *kind_word(const char *function)
{
    static const char *const words[] = {
        [WAIT_UNKNOWN] = "other",      [WAIT_STORAGE] = "storage",   [WAIT_LOCK] = "lock",
        [WAIT_KERNEL] = "kernel lock", [WAIT_SLEEP] = "sleep",       [WAIT_CHILD] = "child",
        [WAIT_PIPE] = "pipe",          [WAIT_LOCAL] = "local",       [WAIT_NETWORK] = "network",
        [WAIT_POLL] = "poll",          [WAIT_TERMINAL] = "terminal",
    };
    return words[place_wait_kind(function)];
}

/* Text from outside in exactly so many columns; with 0, all of it. */
static void put_cell(struct strbuf *out, const char *text, size_t columns)
{
    CLEANUP(strbuf_done) struct strbuf safe = {0};
    strbuf_put_safe(&safe, text, strlen(text), SIZE_MAX);
    const char *shown = strbuf_text(&safe);
    size_t width = str_columns(shown);
    if (!columns || width <= columns) {
        strbuf_puts(out, shown);
        strbuf_pad(out, ' ', columns > width ? columns - width : 0);
        return;
    }
    strbuf_append(out, shown, str_column_bytes(shown, columns > 2 ? columns - 2 : 0));
    strbuf_puts(out, columns > 1 ? ".." : "");
}

/* Cuts the line that began at `from`. */
static void cut_line(struct strbuf *out, size_t from, size_t columns)
{
    size_t length = str_column_bytes(out->data + from, columns);
    out->length = from + length;
    out->data[out->length] = '\0';
    while (out->length > from && out->data[out->length - 1] == ' ')
        out->data[--out->length] = '\0';
}

void top_put_title(const struct top *t, const struct view_rows *rows, struct strbuf *out)
{
    strbuf_puts(out, "assay top: ");
    put_cell(out, top_target(t), 0);
    strbuf_printf(out,
                  ", %.2f of %zu %s busy, last %.0f s, %" PRIu64 " %s at %" PRIu64
                  " Hz, assay itself %.1f %%",
                  rows->busy, top_cpu_count(t), plural(top_cpu_count(t), "CPU", "CPUs"),
                  (double)rows->length_ns / 1e9, rows->samples,
                  plural(rows->samples, "sample", "samples"), top_frequency_hz(t),
                  100 * top_own_share(t));
}

void top_put_heading(enum view view, size_t columns, struct strbuf *out)
{
    size_t from = out->length;
    switch (view) {
    case VIEW_FUNCTIONS:
        strbuf_puts(out,
                    columns < 60 ? "  CPU %  function" : "  CPU %  binary              function");
        break;
    case VIEW_THREADS:
        strbuf_puts(out, columns < 60
                             ? "  CPU % ready %      TID  command"
                             : "  CPU % ready %      PID      TID  command          waits in");
        break;
    case VIEW_CALLS:
        strbuf_puts(out, "  CPU %  waits %  threads  system call");
        break;
    default:
        strbuf_puts(out, columns < 60
                             ? " waits %  kind         what"
                             : " waits %  threads  kind             PID  command          what");
        break;
    }
    cut_line(out, from, columns);
}

static void put_place(const struct recent *w, uint32_t number, struct strbuf *out)
{
    if (number == WINDOW_NONE)
        return;
    const struct recent_place *p = &w->places[number];
    put_cell(out, p->call == WINDOW_NONE ? "kernel" : recent_call(w, p->call), 0);
    if (p->file != WINDOW_NONE) {
        strbuf_putc(out, ' ');
        put_cell(out, recent_text(w, p->file), 0);
    }
    if (*recent_text(w, p->function)) {
        strbuf_puts(out, " (");
        put_cell(out, recent_text(w, p->function), 0);
        strbuf_putc(out, ')');
    }
}

static const char *thread_name(const struct recent *w, uint32_t thread)
{
    uint32_t comm = w->threads[thread].comm;
    return comm == WINDOW_NONE ? "?" : recent_text(w, comm);
}

/* The name of a process: that of its first thread, if it is known. */
static const char *process_name(const struct recent *w, uint32_t pid)
{
    const char *any = "?";
    for (size_t i = 0; i < w->thread_count; i++) {
        if (w->threads[i].pid != pid || w->threads[i].comm == WINDOW_NONE)
            continue;
        any = recent_text(w, w->threads[i].comm);
        if (w->threads[i].tid == pid)
            return any;
    }
    return any;
}

static void put_function(const struct recent *w, const struct view_row *r, size_t columns,
                         struct strbuf *out)
{
    const struct recent_symbol *s = &w->symbols[r->symbol];
    strbuf_printf(out, "%7.2f  ", 100 * r->cpu);
    if (columns >= 60) {
        put_cell(out, s->dso, 18);
        strbuf_puts(out, "  ");
    }
    put_cell(out, s->name, 0);
}

static void put_thread(const struct recent *w, const struct view_row *r, size_t columns,
                       struct strbuf *out)
{
    const struct recent_thread *t = &w->threads[r->thread];
    strbuf_printf(out, "%7.2f %7.2f ", 100 * r->cpu, 100 * r->ready);
    if (columns < 60) {
        strbuf_printf(out, "%8u  ", t->tid);
        put_cell(out, thread_name(w, r->thread), 0);
        return;
    }
    strbuf_printf(out, "%8u %8u  ", t->pid, t->tid);
    put_cell(out, thread_name(w, r->thread), 15);
    strbuf_puts(out, "  ");
    put_place(w, view_main_place(w, r->thread), out);
}

static void put_wait(const struct recent *w, const struct view_row *r, size_t columns,
                     struct strbuf *out)
{
    const struct recent_place *p = &w->places[r->place];
    strbuf_printf(out, "%8.2f  ", 100 * r->waiting);
    if (columns >= 60)
        strbuf_printf(out, "%7u  ", r->thread_count);
    put_cell(out, kind_word(recent_text(w, p->function)), 11);
    strbuf_puts(out, columns >= 60 ? " " : "  ");
    if (columns >= 60) {
        strbuf_printf(out, "%8u  ", r->pid);
        put_cell(out, process_name(w, r->pid), 15);
        strbuf_puts(out, "  ");
    }
    put_place(w, r->place, out);
}

void top_put_row(const struct recent *w, enum view view, const struct view_row *r, size_t columns,
                 struct strbuf *out)
{
    size_t from = out->length;
    switch (view) {
    case VIEW_FUNCTIONS:
        put_function(w, r, columns, out);
        break;
    case VIEW_THREADS:
        put_thread(w, r, columns, out);
        break;
    case VIEW_CALLS:
        strbuf_printf(out, "%7.2f %8.2f %8u  ", 100 * r->cpu, 100 * r->waiting, r->thread_count);
        put_cell(out, recent_call(w, r->call), 0);
        break;
    default:
        put_wait(w, r, columns, out);
        break;
    }
    cut_line(out, from, columns);
}

void top_put_zoom(const struct recent *w, const struct view_zoom *z, struct strbuf *out)
{
    switch (z->kind) {
    case TOP_ZOOM_SYMBOL:
        strbuf_puts(out, "function ");
        put_cell(out, w->symbols[z->value].name, 0);
        break;
    case TOP_ZOOM_CALL:
        strbuf_puts(out, "system call ");
        put_cell(out, recent_call(w, z->value), 0);
        break;
    case TOP_ZOOM_THREAD:
        strbuf_printf(out, "thread %u ", w->threads[z->value].tid);
        put_cell(out, thread_name(w, z->value), 0);
        break;
    case TOP_ZOOM_PROCESS:
        strbuf_printf(out, "process %u ", z->value);
        put_cell(out, process_name(w, z->value), 0);
        break;
    }
}

void top_put_rest(const struct view_rows *rows, const struct view_options *o, struct strbuf *out)
{
    bool has_waits = o->view == VIEW_WAITS || o->view == VIEW_CALLS;
    if (has_waits && rows->sleepers && !o->with_sleepers)
        strbuf_printf(out, "%zu %s slept all the time and %s left out. ", rows->sleepers,
                      plural(rows->sleepers, "thread", "threads"),
                      plural(rows->sleepers, "is", "are"));
    if (has_waits && rows->shut)
        strbuf_printf(out, "The waits of %zu %s may not be seen. ", rows->shut,
                      plural(rows->shut, "thread", "threads"));
    if (rows->lost)
        strbuf_printf(out, "%" PRIu64 " %s lost. ", rows->lost,
                      plural(rows->lost, "record was", "records were"));
}

/* Words in lines of at most so many columns. */
static void put_wrapped(struct strbuf *out, const char *text, size_t columns)
{
    size_t used = 0;
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        size_t length = strcspn(text, " ");
        if (used && used + 1 + length > columns) {
            strbuf_putc(out, '\n');
            used = 0;
        }
        if (used)
            strbuf_putc(out, ' ');
        strbuf_append(out, text, length);
        used += (used > 0) + length;
        text += length;
    }
    if (used)
        strbuf_putc(out, '\n');
}

void top_put_frame(struct top *t, const struct view_options *o, size_t columns, size_t row_limit,
                   struct strbuf *out)
{
    const struct recent *w = top_window(t);
    struct view_rows rows;
    CLEANUP(strbuf_done) struct strbuf rest = {0};
    view_build(&rows, w, o);
    size_t from = out->length;
    top_put_title(t, &rows, out);
    cut_line(out, from, columns);
    strbuf_putc(out, '\n');
    top_put_heading(o->view, columns, out);
    strbuf_putc(out, '\n');
    for (size_t i = 0; i < rows.count && i < row_limit; i++) {
        top_put_row(w, o->view, &rows.items[i], columns, out);
        strbuf_putc(out, '\n');
    }
    if (rows.count > row_limit)
        strbuf_printf(out, "... %zu more %s\n", rows.count - row_limit,
                      plural(rows.count - row_limit, "row", "rows"));
    top_put_rest(&rows, o, &rest);
    put_wrapped(out, strbuf_text(&rest), columns);
    view_rows_done(&rows);
}

static void put_json_row(struct json *j, const struct recent *w, enum view view,
                         const struct view_row *r)
{
    json_object(j, NULL);
    if (view != VIEW_WAITS)
        json_double(j, "cpu_percent", 100 * r->cpu);
    if (view == VIEW_THREADS)
        json_double(j, "ready_percent", 100 * r->ready);
    if (view == VIEW_CALLS || view == VIEW_WAITS)
        json_double(j, "waiting_percent", 100 * r->waiting);
    if (view != VIEW_THREADS)
        json_u64(j, "threads", r->thread_count);
    if (view == VIEW_FUNCTIONS) {
        json_string(j, "function", w->symbols[r->symbol].name);
        json_string(j, "binary", w->symbols[r->symbol].dso);
        json_bool(j, "kernel", w->symbols[r->symbol].is_kernel);
    }
    if (view == VIEW_THREADS || view == VIEW_WAITS)
        json_u64(j, "pid", r->pid);
    if (view == VIEW_THREADS)
        json_u64(j, "tid", w->threads[r->thread].tid);
    if (view == VIEW_THREADS || view == VIEW_WAITS)
        json_string(j, "command",
                    view == VIEW_THREADS ? thread_name(w, r->thread) : process_name(w, r->pid));
    uint32_t place = view == VIEW_WAITS     ? r->place
                     : view == VIEW_THREADS ? view_main_place(w, r->thread)
                                            : WINDOW_NONE;
    if (view == VIEW_CALLS)
        json_string(j, "call", recent_call(w, r->call));
    if (place != WINDOW_NONE) {
        const struct recent_place *p = &w->places[place];
        json_string(j, "kind", kind_word(recent_text(w, p->function)));
        json_string(j, "call", p->call == WINDOW_NONE ? NULL : recent_call(w, p->call));
        json_string(j, "file", p->file == WINDOW_NONE ? NULL : recent_text(w, p->file));
        json_string(j, "kernel_function", recent_text(w, p->function));
    }
    json_end(j);
}

static void put_json_notes(struct json *j, const char *lines)
{
    json_array(j, "notes");
    while (*lines) {
        size_t length = strcspn(lines, "\n");
        json_string_n(j, NULL, lines, length);
        lines += length + (lines[length] == '\n');
    }
    json_end(j);
}

void top_put_json(struct top *t, const struct view_options *o, size_t row_limit, struct strbuf *out)
{
    const struct recent *w = top_window(t);
    struct json j = {.out = out, .compact = true};
    json_object(&j, NULL);
    json_string(&j, "format", "assay-top-1");
    json_double(&j, "time", (double)clock_read_ns(CLOCK_REALTIME) / 1e9);
    json_string(&j, "target", top_target(t));
    json_u64(&j, "cpus", top_cpu_count(t));
    json_u64(&j, "frequency_hz", top_frequency_hz(t));
    json_double(&j, "own_cpu_percent", 100 * top_own_share(t));
    for (enum view view = 0; view < VIEW_COUNT; view++) {
        struct view_options each = *o;
        struct view_rows rows;
        each.view = view;
        each.sort = view_default_sort(view);
        view_build(&rows, w, &each);
        if (view == 0) {
            json_double(&j, "window_s", (double)rows.length_ns / 1e9);
            json_u64(&j, "samples", rows.samples);
            json_u64(&j, "lost", rows.lost);
            json_double(&j, "busy_percent", 100 * rows.busy);
            json_u64(&j, "threads_asleep", rows.sleepers);
            json_u64(&j, "threads_not_visible", rows.shut);
        }
        json_array(&j, top_view_name(view));
        for (size_t i = 0; i < rows.count && i < row_limit; i++)
            put_json_row(&j, w, view, &rows.items[i]);
        json_end(&j);
        view_rows_done(&rows);
    }
    put_json_notes(&j, top_notes(t));
    json_end(&j);
}
