/* SPDX-License-Identifier: MIT */
#include "test.h"
#include "top/window.h"

#include <stdlib.h>

#define SECOND 1000000000ULL

/* Two threads of one process and one of another, over two intervals of a second. */
struct scene {
    struct recent w;
    uint32_t main, worker, other;
    uint32_t copy, entry;
    uint32_t reading, sleeping;
};

static void begin(struct scene *s)
{
    recent_init(&s->w, 2);
    s->main = recent_thread(&s->w, 10, 10, "server");
    s->worker = recent_thread(&s->w, 10, 11, "worker");
    s->other = recent_thread(&s->w, 20, 20, "other");
    s->copy = recent_add_symbol(&s->w, "copy", "server", false);
    s->entry = recent_add_symbol(&s->w, "__x64_sys_read", "[kernel]", true);
    s->reading = recent_place(&s->w, "read", "pipe_read", "/tmp/file");
    s->sleeping = recent_place(&s->w, "nanosleep", "hrtimer_nanosleep", NULL);
}

static void second(struct scene *s)
{
    uint32_t call = s->w.symbols[s->entry].call;
    recent_add_sample(&s->w, s->main, s->copy, WINDOW_NONE, SECOND / 2);
    recent_add_sample(&s->w, s->worker, s->copy, WINDOW_NONE, SECOND / 4);
    recent_add_sample(&s->w, s->worker, s->entry, call, SECOND / 8);
    recent_add_state(&s->w, s->worker, s->reading, SECOND / 2, false);
    recent_add_state(&s->w, s->other, s->sleeping, SECOND, true);
    recent_add_run(&s->w, s->main, SECOND / 2, SECOND / 10);
    recent_turn(&s->w, SECOND);
}

static struct view_rows build(struct scene *s, enum view view)
{
    struct view_options o = {.view = view, .sort = view_default_sort(view)};
    struct view_rows rows;
    view_build(&rows, &s->w, &o);
    return rows;
}

TEST(functions_are_added_over_threads)
{
    struct scene s;
    begin(&s);
    second(&s);
    second(&s);
    struct view_rows rows = build(&s, VIEW_FUNCTIONS);
    CHECK_INT(rows.count, 2);
    CHECK_INT(rows.items[0].symbol, s.copy);
    CHECK_NEAR(rows.items[0].cpu, 0.75, 1e-9);
    CHECK_INT(rows.items[0].thread_count, 2);
    CHECK_NEAR(rows.items[1].cpu, 0.125, 1e-9);
    CHECK_NEAR(rows.busy, 0.875, 1e-9);
    CHECK_INT(rows.samples, 6);
    CHECK_INT(rows.length_ns, 2 * SECOND);
    view_rows_done(&rows);
    recent_done(&s.w);
}

TEST(the_window_forgets_what_is_older)
{
    struct scene s;
    begin(&s);
    second(&s);
    recent_turn(&s.w, SECOND);
    recent_turn(&s.w, SECOND);
    struct view_rows rows = build(&s, VIEW_FUNCTIONS);
    CHECK_INT(rows.count, 0);
    CHECK_INT(rows.samples, 0);
    view_rows_done(&rows);
    recent_done(&s.w);
}

TEST(the_interval_that_is_being_filled_is_not_shown)
{
    struct scene s;
    begin(&s);
    recent_add_sample(&s.w, s.main, s.copy, WINDOW_NONE, SECOND);
    struct view_rows rows = build(&s, VIEW_FUNCTIONS);
    CHECK_INT(rows.count, 0);
    view_rows_done(&rows);
    recent_empty(&s.w);
    recent_turn(&s.w, SECOND);
    rows = build(&s, VIEW_FUNCTIONS);
    CHECK_INT(rows.count, 0);
    view_rows_done(&rows);
    recent_done(&s.w);
}

TEST(the_schedulers_figures_win_over_samples)
{
    struct scene s;
    begin(&s);
    second(&s);
    struct view_rows rows = build(&s, VIEW_THREADS);
    CHECK_INT(rows.count, 2); /* the other one slept */
    CHECK_INT(rows.items[0].thread, s.main);
    CHECK_NEAR(rows.items[0].cpu, 0.5, 1e-9);
    CHECK_NEAR(rows.items[0].ready, 0.1, 1e-9);
    CHECK_NEAR(rows.items[1].cpu, 0.375, 1e-9); /* by its samples */
    CHECK_INT(view_main_place(&s.w, s.worker), s.reading);
    CHECK_INT(view_main_place(&s.w, s.main), WINDOW_NONE);
    view_rows_done(&rows);
    recent_done(&s.w);
}

TEST(calls_have_cpu_time_and_waits)
{
    struct scene s;
    begin(&s);
    second(&s);
    struct view_rows rows = build(&s, VIEW_CALLS);
    CHECK_INT(rows.count, 1);
    CHECK_STR(recent_call(&s.w, rows.items[0].call), "read");
    CHECK_NEAR(rows.items[0].cpu, 0.125, 1e-9);
    CHECK_NEAR(rows.items[0].waiting, 0.5, 1e-9);
    CHECK_INT(rows.items[0].thread_count, 1);
    view_rows_done(&rows);
    recent_done(&s.w);
}

TEST(sleepers_are_counted_and_left_out)
{
    struct scene s;
    begin(&s);
    second(&s);
    struct view_rows rows = build(&s, VIEW_WAITS);
    CHECK_INT(rows.count, 1);
    CHECK_INT(rows.items[0].place, s.reading);
    CHECK_INT(rows.items[0].pid, 10);
    CHECK_INT(rows.sleepers, 1);
    view_rows_done(&rows);
    struct view_options o = {.view = VIEW_WAITS, .sort = SORT_WAITING, .with_sleepers = true};
    view_build(&rows, &s.w, &o);
    CHECK_INT(rows.count, 2);
    CHECK_INT(rows.items[0].place, s.sleeping);
    CHECK_NEAR(rows.items[0].waiting, 1, 1e-9);
    view_rows_done(&rows);
    recent_done(&s.w);
}

TEST(who_ran_in_one_interval_did_not_sleep_through)
{
    struct scene s;
    begin(&s);
    second(&s);
    recent_add_state(&s.w, s.other, s.sleeping, SECOND / 2, false);
    recent_turn(&s.w, SECOND);
    struct view_rows rows = build(&s, VIEW_WAITS);
    CHECK_INT(rows.sleepers, 0);
    CHECK_INT(rows.count, 2);
    CHECK_NEAR(rows.items[0].waiting, 0.75, 1e-9);
    view_rows_done(&rows);
    recent_done(&s.w);
}

TEST(zooms_and_filters)
{
    struct scene s;
    begin(&s);
    second(&s);
    struct view_options o = {.view = VIEW_FUNCTIONS};
    struct view_rows rows = build(&s, VIEW_FUNCTIONS);
    CHECK(view_zoom(&o, &rows.items[0]));
    CHECK_INT(o.view, VIEW_THREADS);
    view_rows_done(&rows);
    /* The threads of copy, by their samples of it. */
    view_build(&rows, &s.w, &o);
    CHECK_INT(rows.count, 2);
    CHECK_NEAR(rows.items[0].cpu, 0.5, 1e-9);
    CHECK_NEAR(rows.items[1].cpu, 0.25, 1e-9);
    CHECK(view_zoom(&o, &rows.items[1]));
    CHECK_INT(o.view, VIEW_FUNCTIONS);
    view_rows_done(&rows);
    view_build(&rows, &s.w, &o);
    CHECK_INT(rows.count, 1);
    view_rows_done(&rows);
    struct view_options f = {.view = VIEW_FUNCTIONS, .filter = "SYS_re"};
    view_build(&rows, &s.w, &f);
    CHECK_INT(rows.count, 1);
    CHECK_INT(rows.items[0].symbol, s.entry);
    view_rows_done(&rows);
    o.zoom_count = VIEW_ZOOMS_MAX;
    struct view_row row = {0};
    CHECK(!view_zoom(&o, &row));
    recent_done(&s.w);
}
