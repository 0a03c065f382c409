/* SPDX-License-Identifier: MIT */
/* Fills a page from the store and from recordings. */
#include "base/clock.h"
#include "base/memory.h"
#include "profile/annotate.h"
#include "report/page/page.h"
#include "report/profile/profile_report.h"
#include "stats/summary.h"
#include "store/store_rows.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

enum {
    MONITORS_SHOWN = 6,
    TRACES_MAX = 4,
    READINGS_MAX = 1000,
    HISTORY_MAX = 200,
    HISTORIES_MAX = 4,
    PROFILES_MAX = 8
};

static char *document(struct store *store, int64_t id, const char *kind)
{
    char *text = NULL;
    return store_document(store, id, kind, &text, NULL) == 0 ? text : memory_strdup("");
}

void page_add_profiles(struct page *page, struct store *store, int64_t id)
{
    const struct dataset *d = &page->data.sets[page->data.set_count - 1];
    size_t added = 0;
    for (size_t c = 0; c < d->cell_count && added < PROFILES_MAX; c++) {
        struct profile_set set = {0};
        struct error err = {0};
        if (profile_document_read(store, id, d->cells[c].label, &set, &err) == 0 && set.count) {
            if (page_add_recording(page, set.paths[0], d->cells[c].label, &err) < 0)
                strbuf_printf(&page->notes, "The profile of %s is not shown: %s\n",
                              d->cells[c].label, err.message);
            else
                added++;
        }
        struct profile_pair pair = {.sides = {set}};
        profile_pair_done(&pair);
    }
}

int page_add_experiment(struct page *page, struct store *store, int64_t id, struct error *err)
{
    struct embedded *e = &page->data;
    struct dataset d;
    int r = dataset_load(&d, store, id, err);
    if (r < 0)
        return r;
    ARRAY_PUSH(e->documents, e->set_count, e->document_capacity) = (struct embedded_documents){
        document(store, id, "machine"), document(store, id, "environment"),
        document(store, id, "spec")};
    e->sets = memory_grow(e->sets, &e->set_capacity, e->set_count, sizeof(*e->sets));
    e->sets[e->set_count - 1] = d;
    return 0;
}

int page_add_flame_of(struct page *page, const struct profile *profile, uint32_t event,
                      const char *label, struct error *err)
{
    struct embedded *e = &page->data;
    struct flame flame = {0};
    if (event < profile->event_count) {
        flame_from_profile(&flame, profile, event, label);
        struct notes notes = {0};
        CLEANUP(strbuf_done) struct strbuf text = {0};
        profile_file_notes(profile, false, &notes);
        profile_event_notes(profile, event, &notes);
        for (size_t i = 0; i < notes.count; i++)
            strbuf_printf(&text, "%s%s", i ? "\n" : "", notes.items[i]);
        flame.notes = memory_strdup(strbuf_text(&text));
        notes_done(&notes);
    }
    if (!flame.samples) {
        flame_done(&flame);
        return error_set(err, -ENODATA, "%s contains no samples", profile->path);
    }
    ARRAY_PUSH(e->flames, e->flame_count, e->flame_capacity) = flame;
    return 0;
}

int page_add_flame(struct page *page, const struct profile *profile, const char *label,
                   struct error *err)
{
    return page_add_flame_of(page, profile, annotate_main_event(profile), label, err);
}

int page_add_recording(struct page *page, const char *path, const char *label, struct error *err)
{
    struct profile_options options = {.with_samples = true, .want = SYMBOLS_INLINES};
    struct profile *profile;
    int r = profile_load(&profile, path, &options, err);
    if (r < 0)
        return r;
    profile_symbolize(profile);
    r = page_add_flame(page, profile, label, err);
    profile_free(profile);
    return r;
}

/* ---- monitors ---- */

/* How much a series moves, as a share of its mean: what stands still is not worth a picture. */
static double liveliness(const double *values, size_t count)
{
    struct running r = {0};
    for (size_t i = 0; i < count; i++)
        if (isfinite(values[i]))
            running_add(&r, values[i]);
    return r.count > 2 && r.mean != 0 ? fabs(running_stddev(&r) / r.mean) : 0;
}

static struct embedded_monitor *monitor_named(struct embedded *e, const char *name,
                                              const char *unit)
{
    for (size_t i = 0; i < e->monitor_count; i++)
        if (str_eq(e->monitors[i].name, name))
            return &e->monitors[i];
    if (e->monitor_count >= MONITORS_SHOWN)
        return NULL;
    struct embedded_monitor *m = &ARRAY_PUSH(e->monitors, e->monitor_count, e->monitor_capacity);
    *m = (struct embedded_monitor){.name = memory_strdup(name), .unit = memory_strdup(unit)};
    return m;
}

/* One run's readings, with times in seconds. */
struct readings {
    double *seconds, *values;
    size_t count;
};

static struct readings read_points(const struct store_series_row *row)
{
    size_t count = row->tick_count < row->point_count ? row->tick_count : row->point_count;
    struct readings r = {.seconds = memory_zalloc(count + 1, sizeof(double)),
                         .values = memory_zalloc(count + 1, sizeof(double)),
                         .count = count};
    if (count)
        memcpy(r.values, row->points, count * sizeof(double));
    for (size_t i = 0; i < count; i++) {
        uint64_t ns;
        memcpy(&ns, (const char *)row->ticks + sizeof(ns) * i, sizeof(ns));
        r.seconds[i] = (double)ns / NS_PER_S;
    }
    return r;
}

/* A count is shown by how fast it grew between readings. */
static void make_rates(struct readings *r)
{
    for (size_t i = 0; i + 1 < r->count; i++) {
        double seconds = r->seconds[i + 1] - r->seconds[i];
        r->values[i] = seconds > 0 ? (r->values[i + 1] - r->values[i]) / seconds : NAN;
        r->seconds[i] = r->seconds[i + 1];
    }
    r->count--;
}

/* Takes the readings over; of more than fit into a picture, some. */
static void add_trace(struct embedded_monitor *m, size_t cell, struct readings *r)
{
    if (r->count < 3 || !m || m->count >= TRACES_MAX)
        return;
    size_t every = (r->count + READINGS_MAX - 1) / READINGS_MAX, count = 0;
    for (size_t i = 0; i < r->count; i += every, count++) {
        r->seconds[count] = r->seconds[i];
        r->values[count] = r->values[i];
    }
    ARRAY_PUSH(m->traces, m->count, m->capacity) = (struct embedded_trace){
        .cell = cell, .seconds = r->seconds, .values = r->values, .count = count};
    *r = (struct readings){0};
}

/* The names that are worth showing: the liveliest of the first run that has any. */
static bool wanted_monitor(const char *name)
{
    static const char *const known[] = {"mpstat.cpu.all.usr%",  "mpstat.cpu.all.sys%",
                                        "mpstat.cpu.all.idle%", "vmstat.system.cs",
                                        "vmstat.system.in",     "meminfo.MemFree"};
    for (size_t i = 0; i < ARRAY_COUNT(known); i++)
        if (str_eq(known[i], name))
            return true;
    return false;
}

static int read_series(struct embedded *e, struct store *store, int64_t run, size_t cell,
                       bool only_known, struct error *err)
{
    CLEANUP(store_cursor_done) struct store_cursor rows = {0};
    struct store_series_row row;
    int r = store_series(store, run, &rows, err);
    if (r < 0)
        return r;
    while ((r = store_next_series(&rows, &row, err)) > 0) {
        if (!row.points || !row.ticks)
            continue;
        struct readings readings = read_points(&row);
        bool rate = row.is_total && readings.count > 1;
        if (rate)
            make_rates(&readings);
        if (only_known == wanted_monitor(row.metric) &&
            (only_known || liveliness(readings.values, readings.count) >= 0.05)) {
            CLEANUP(memory_freep) char *title = memory_printf("%s%s", row.metric, rate ? "/s" : "");
            add_trace(monitor_named(e, title, rate ? "/s" : row.unit), cell, &readings);
        }
        free(readings.seconds);
        free(readings.values);
    }
    return r;
}

int page_add_monitors(struct page *page, struct store *store, int64_t id, struct error *err)
{
    struct embedded *e = &page->data;
    const struct dataset *d = &e->sets[0];
    (void)id;
    for (int pass = 0; pass < 2 && e->monitor_count < MONITORS_SHOWN; pass++) {
        size_t seen = 0;
        for (size_t c = 0; c < d->cell_count && seen < TRACES_MAX; c++)
            for (size_t i = d->run_count; i-- > 0;)
                if (d->runs[i].cell == c && d->runs[i].status == 0) {
                    int r = read_series(e, store, d->runs[i].id, c, pass == 0, err);
                    if (r < 0)
                        return r;
                    seen++;
                    break;
                }
    }
    return 0;
}

/* ---- history ---- */

static void add_history_point(struct embedded_history *h, const struct dataset *d, size_t metric,
                              size_t cell)
{
    struct summary summary;
    struct median_interval m;
    if (!dataset_figures(d, metric, cell, &summary, &m))
        return;
    size_t at = h->count++;
    h->medians[at] = m.median;
    h->lows[at] = m.low;
    h->highs[at] = m.high;
    h->experiments[at] = d->experiment.id;
    h->commits[at] = memory_strdup(d->experiment.git_commit);
}

int page_add_history(struct page *page, struct store *store, int64_t id, struct error *err)
{
    struct embedded *e = &page->data;
    const struct dataset *newest = &e->sets[0];
    size_t position = 0, metric = dataset_headline(newest, &position);
    CLEANUP(store_list_done) struct store_list list = {0};
    struct store_filter filter = {.name = newest->experiment.name, .most = HISTORY_MAX};
    int r = store_list(store, &filter, &list, err);
    if (r < 0 || list.count < 3 || metric == DATASET_NONE)
        return r;
    const struct store_metric *m = &newest->metrics[metric];
    size_t cells = newest->cell_count < HISTORIES_MAX ? newest->cell_count : HISTORIES_MAX;
    for (size_t c = 0; c < cells; c++) {
        struct embedded_history *h =
            &ARRAY_PUSH(e->histories, e->history_count, e->history_capacity);
        *h = (struct embedded_history){.label = memory_strdup(newest->cells[c].label),
                                       .metric = memory_strdup(m->name),
                                       .unit = memory_strdup(m->unit),
                                       .medians = memory_zalloc(list.count, sizeof(double)),
                                       .lows = memory_zalloc(list.count, sizeof(double)),
                                       .highs = memory_zalloc(list.count, sizeof(double)),
                                       .experiments = memory_zalloc(list.count, sizeof(int64_t)),
                                       .commits = memory_zalloc(list.count, sizeof(char *))};
    }
    for (size_t i = list.count; i-- > 0 && r == 0;) {
        struct dataset d;
        if (list.items[i].id > id)
            continue;
        r = dataset_load(&d, store, list.items[i].id, err);
        if (r < 0)
            break;
        size_t same = dataset_metric(&d, m->name);
        for (size_t c = 0; c < cells && same != DATASET_NONE; c++) {
            size_t cell = dataset_cell(&d, newest->cells[c].label);
            if (cell != DATASET_NONE)
                add_history_point(&e->histories[c], &d, same, cell);
        }
        dataset_done(&d);
    }
    return r;
}
