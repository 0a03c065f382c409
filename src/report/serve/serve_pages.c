/* SPDX-License-Identifier: MIT */
/* Where the pages of an experiment's runs begin.  A database skips rows by reading them, which
 * takes half a second for the last of a million; so the first run of every page is kept.  Runs only
 * come at the end (and go with their experiment, which has another uuid then): what is kept stays
 * true. */
#include "base/memory.h"
#include "report/serve/serve_internal.h"
#include "store/store_rows.h"

#include <pthread.h>

enum { EXPERIMENTS_KEPT = 16 };

struct page_list {
    char *uuid;
    int64_t *starts; /* the first run of each page, as far as was looked */
    size_t count, capacity;
    uint64_t used;
};

struct serve_pages {
    pthread_mutex_t lock;
    struct page_list lists[EXPERIMENTS_KEPT];
    uint64_t turn;
};

struct serve_pages *serve_pages_new(void)
{
    struct serve_pages *p = memory_zalloc(1, sizeof(*p));
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

void serve_pages_free(struct serve_pages *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < EXPERIMENTS_KEPT; i++) {
        free(p->lists[i].uuid);
        free(p->lists[i].starts);
    }
    pthread_mutex_destroy(&p->lock);
    free(p);
}

/* The experiment's, in the place of the one that was used longest ago where it is new. */
static struct page_list *list_of(struct serve_pages *p, const char *uuid)
{
    struct page_list *oldest = &p->lists[0];
    for (size_t i = 0; i < EXPERIMENTS_KEPT; i++) {
        if (p->lists[i].uuid && str_eq(p->lists[i].uuid, uuid))
            return &p->lists[i];
        if (p->lists[i].used < oldest->used)
            oldest = &p->lists[i];
    }
    free(oldest->uuid);
    free(oldest->starts);
    *oldest = (struct page_list){.uuid = memory_strdup(uuid)};
    return oldest;
}

/* From the last page that is known on. */
static int look_further(struct page_list *list, struct store *store, int64_t experiment,
                        uint64_t page, struct error *err)
{
    CLEANUP(store_cursor_done) struct store_cursor rows = {0};
    int64_t id, from = list->count ? list->starts[list->count - 1] : 0;
    uint64_t seen = 0;
    int r = store_run_ids(store, experiment, from, &rows, err);
    while (r >= 0 && list->count < page && (r = store_next_id(&rows, &id, err)) > 0) {
        bool is_known = list->count && seen == 0;
        if (seen % SERVE_RUNS == 0 && !is_known)
            ARRAY_PUSH(list->starts, list->count, list->capacity) = id;
        seen++;
    }
    return r < 0 ? r : 0;
}

int serve_pages_find(struct serve_pages *p, struct store *store, const struct store_experiment *e,
                     uint64_t page, int64_t *ret_first, struct error *err)
{
    int r = 0;
    pthread_mutex_lock(&p->lock);
    struct page_list *list = list_of(p, e->uuid);
    list->used = ++p->turn;
    if (list->count < page)
        r = look_further(list, store, e->id, page, err);
    /* A page behind the last has no runs. */
    *ret_first = list->count >= page ? list->starts[page - 1] : INT64_MAX;
    pthread_mutex_unlock(&p->lock);
    return r;
}
