/* SPDX-License-Identifier: MIT */
/*
 * What threads did in the last seconds: samples of the CPUs and of the states of threads, in
 * intervals, and the rows that a view makes of them.
 *
 * Nothing here reads /proc or the kernel's rings, so that tests can drive it.  Shares are of one
 * CPU or one thread: 1 is all of it, during the whole window.
 */
#ifndef ASSAY_TOP_WINDOW_H
#define ASSAY_TOP_WINDOW_H

#include "base/strings.h"
#include "bill/places.h"
#include "profile/tasks.h"

#define WINDOW_INTERVALS_MAX 60
#define WINDOW_NONE UINT32_MAX

/* A function, or a place in a binary without one. */
struct recent_symbol {
    const char *name, *dso;
    bool is_kernel;
    uint32_t call; /* the system call that it is the kernel's entry of, or WINDOW_NONE */
};

/* Where a thread waits. */
struct recent_place {
    uint32_t call;     /* number of its name in calls; WINDOW_NONE outside of system calls */
    uint32_t function; /* of the kernel, in texts */
    uint32_t file;     /* behind the call's descriptor, in texts; WINDOW_NONE for none */
};

struct recent_thread {
    uint32_t pid, tid;
    uint32_t comm; /* in texts */
    bool is_kernel;
    bool is_alive;
    bool is_exact; /* there are struct recent_run of it */
    bool is_shut;  /* no permission to see what it waits for */
};

/* What the scheduler says of a thread and an interval: on a CPU, and waiting for one. */
struct recent_run {
    uint32_t thread;
    uint64_t run_ns, ready_ns;
};

struct recent_sample {
    uint32_t thread, symbol, call; /* the call may be WINDOW_NONE */
    uint64_t ns;
};

struct recent_state {
    uint32_t thread, place;
    uint64_t ns;
    bool slept; /* it did not run at all in this interval */
};

struct recent_interval {
    uint64_t length_ns;
    struct recent_sample *samples;
    size_t sample_count, sample_capacity;
    struct recent_state *states;
    size_t state_count, state_capacity;
    struct recent_run *runs;
    size_t run_count, run_capacity;
    uint64_t lost;
};

struct recent {
    struct arena arena;
    struct names texts, calls;
    struct recent_symbol *symbols;
    size_t symbol_count, symbol_capacity;
    struct recent_place *places;
    size_t place_count, place_capacity;
    struct recent_thread *threads;
    size_t thread_count, thread_capacity;
    struct idtable place_table, thread_table;
    struct recent_interval intervals[WINDOW_INTERVALS_MAX + 1];
    size_t interval_count; /* that the window has */
    size_t current;        /* the one being filled */
    size_t full;           /* how many before it are full, up to interval_count */
};

void recent_init(struct recent *w, size_t interval_count);
void recent_done(struct recent *w);

/* The thread of these numbers; comm may be NULL while its name is not known. */
uint32_t recent_thread(struct recent *w, uint32_t pid, uint32_t tid, const char *comm);
void recent_name_thread(struct recent *w, uint32_t thread, const char *comm);
uint32_t recent_place(struct recent *w, const char *call, const char *function, const char *file);
uint32_t recent_add_symbol(struct recent *w, const char *name, const char *dso, bool is_kernel);
void recent_add_sample(struct recent *w, uint32_t thread, uint32_t symbol, uint32_t call,
                       uint64_t ns);
void recent_add_state(struct recent *w, uint32_t thread, uint32_t place, uint64_t ns, bool slept);
void recent_add_run(struct recent *w, uint32_t thread, uint64_t run_ns, uint64_t ready_ns);
/* The interval that is being filled took this long and is full: the next one is begun. */
void recent_turn(struct recent *w, uint64_t length_ns);

/* Forgets what the interval that is being filled has. */
void recent_empty(struct recent *w);

enum view { VIEW_FUNCTIONS, VIEW_THREADS, VIEW_CALLS, VIEW_WAITS, VIEW_COUNT };
enum view_sort { SORT_CPU, SORT_READY, SORT_WAITING, SORT_NAME, SORT_COUNT };
enum zoom_kind { TOP_ZOOM_SYMBOL, TOP_ZOOM_THREAD, TOP_ZOOM_PROCESS, TOP_ZOOM_CALL };

struct view_zoom {
    enum zoom_kind kind;
    uint32_t value; /* of a symbol, thread or call its number; of a process its pid */
};

#define VIEW_ZOOMS_MAX 8

struct view_options {
    enum view view;
    enum view_sort sort;
    bool with_sleepers; /* waits of threads that slept all the time */
    const char *filter; /* rows whose text has this; NULL for all */
    struct view_zoom zooms[VIEW_ZOOMS_MAX];
    size_t zoom_count;
};

struct view_row {
    uint32_t symbol, thread, call, place; /* those that the view has; else WINDOW_NONE */
    uint32_t pid;
    uint32_t thread_count;
    double cpu, ready, waiting; /* 1 is one CPU or one thread, all the time */
};

struct view_rows {
    struct view_row *items;
    size_t count, capacity;
    uint64_t length_ns, samples, lost;
    double busy;     /* CPUs, by the samples */
    size_t sleepers; /* threads that slept all the time, left out of the waits */
    size_t shut;     /* threads whose waits may not be seen */
};

/* The sort that a view begins with. */
enum view_sort view_default_sort(enum view view);
void view_build(struct view_rows *rows, const struct recent *w, const struct view_options *o);
void view_rows_done(struct view_rows *rows);
/* Where the thread spent most of its waits; WINDOW_NONE when none was seen. */
uint32_t view_main_place(const struct recent *w, uint32_t thread);
/* Only what belongs to the row from now on, in the view that tells most of it.  False when there
 * are too many zooms already. */
bool view_zoom(struct view_options *o, const struct view_row *row);

static inline const char *recent_text(const struct recent *w, uint32_t text)
{
    return text < w->texts.count ? w->texts.items[text] : "";
}

static inline const char *recent_call(const struct recent *w, uint32_t call)
{
    return call < w->calls.count ? w->calls.items[call] : "";
}

#endif
