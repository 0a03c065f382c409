/* SPDX-License-Identifier: MIT */
/* Connections, kept pages, and turns: see serve_store.h. */
#include "report/serve/serve_store.h"
#include "base/memory.h"
#include "store/store_rows.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

enum {
    IDLE_MAX = 8,              /* connections that wait for the next request */
    KEPT_MAX = 256,            /* pages */
    KEPT_BYTES_MAX = 32 << 20, /* of all of them */
    HEAVY_RUNNING = 2,         /* reports that are made at a time */
    HEAVY_WAITING = 200,       /* requests that wait for that; the next is sent away */
};

struct kept_page {
    char *key;
    struct serve_body *body;
    uint64_t used; /* the turn of its last use */
};

struct serve_store {
    char *place;
    pthread_mutex_t lock;   /* of everything below */
    pthread_cond_t is_free; /* a heavy page is done */
    unsigned heavy_running, heavy_waiting;
    struct store *idle[IDLE_MAX];
    size_t idle_count;
    struct store *watch; /* tells whether others have written */
    int64_t version;
    struct stat file; /* that the connections are to */
    struct serve_pages *pages;
    struct kept_page kept[KEPT_MAX];
    size_t kept_count, kept_bytes;
    uint64_t turn;
};

static void body_put(struct serve_body *body)
{
    if (--body->references)
        return;
    free(body->text);
    free(body);
}

void serve_body_release(struct serve_body *body)
{
    struct serve_store *s = body->owner;
    pthread_mutex_lock(&s->lock);
    body_put(body);
    pthread_mutex_unlock(&s->lock);
}

static struct serve_body *body_new(struct serve_store *s, int status, struct strbuf *text)
{
    struct serve_body *body = memory_zalloc(1, sizeof(*body));
    *body = (struct serve_body){.status = status,
                                .text = text->data ? text->data : memory_strdup(""),
                                .length = text->length,
                                .references = 1,
                                .owner = s};
    *text = (struct strbuf){0};
    return body;
}

static void drop_page(struct serve_store *s, size_t i)
{
    s->kept_bytes -= s->kept[i].body->length;
    body_put(s->kept[i].body);
    free(s->kept[i].key);
    s->kept[i] = s->kept[--s->kept_count];
}

static void drop_connections(struct serve_store *s)
{
    while (s->idle_count)
        store_close(s->idle[--s->idle_count]);
    store_close(s->watch);
    s->watch = NULL;
}

/* Forgets pages when the store was written to, and connections when it is another file. */
static void look_for_changes(struct serve_store *s)
{
    struct stat now = {0};
    struct error ignored;
    bool is_same =
        store_is_address(s->place) ||
        (stat(s->place, &now) == 0 && now.st_ino == s->file.st_ino && now.st_dev == s->file.st_dev);
    if (!is_same || !s->watch) {
        drop_connections(s);
        s->file = now;
        s->version = -1;
        if (store_open(&s->watch, s->place, STORE_READ, &ignored) < 0)
            s->watch = NULL;
    }
    int64_t version = s->watch ? store_version(s->watch) : -1; /* of a server: none kept */
    if (version >= 0 && version == s->version)
        return;
    s->version = version;
    while (s->kept_count)
        drop_page(s, s->kept_count - 1);
}

static struct serve_body *find_page(struct serve_store *s, const char *key)
{
    for (size_t i = 0; i < s->kept_count; i++)
        if (str_eq(s->kept[i].key, key)) {
            s->kept[i].used = ++s->turn;
            s->kept[i].body->references++;
            return s->kept[i].body;
        }
    return NULL;
}

static void keep_page(struct serve_store *s, const char *key, struct serve_body *body,
                      int64_t version)
{
    if (body->status != 200 || version < 0 || version != s->version ||
        body->length > KEPT_BYTES_MAX / 4)
        return;
    while (s->kept_count &&
           (s->kept_count == KEPT_MAX || s->kept_bytes + body->length > (size_t)KEPT_BYTES_MAX)) {
        size_t oldest = 0;
        for (size_t i = 1; i < s->kept_count; i++)
            if (s->kept[i].used < s->kept[oldest].used)
                oldest = i;
        drop_page(s, oldest);
    }
    s->kept[s->kept_count++] =
        (struct kept_page){.key = memory_strdup(key), .body = body, .used = ++s->turn};
    s->kept_bytes += body->length;
    body->references++;
}

int serve_store_new(struct serve_store **ret_store, const char *place, struct error *err)
{
    struct serve_store *s = memory_zalloc(1, sizeof(*s));
    s->place = memory_strdup(place);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->is_free, NULL);
    s->pages = serve_pages_new();
    int r = store_open(&s->watch, place, STORE_READ, err);
    if (r < 0) {
        serve_store_free(s);
        return r;
    }
    stat(place, &s->file);
    s->version = store_version(s->watch);
    *ret_store = s;
    return 0;
}

void serve_store_free(struct serve_store *s)
{
    if (!s)
        return;
    while (s->kept_count)
        drop_page(s, s->kept_count - 1);
    drop_connections(s);
    serve_pages_free(s->pages);
    pthread_cond_destroy(&s->is_free);
    pthread_mutex_destroy(&s->lock);
    free(s->place);
    free(s);
}

static void put_key(struct strbuf *key, const struct serve_request *q)
{
    const char *parts[] = {q->path, q->query, q->page, q->base, q->new, q->name, q->metric};
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++)
        strbuf_printf(key, "%zu:%s;", parts[i] ? strlen(parts[i]) : 0, parts[i] ? parts[i] : "");
}

/* What reads all values of an experiment, or of many; lists are read a page at a time. */
static bool is_heavy(const struct serve_request *q)
{
    if (str_has_prefix(q->path, SERVE_API))
        return !str_has_suffix(q->path, "/experiments") && !str_has_suffix(q->path, "/runs") &&
               !str_has_suffix(q->path, "/running");
    return str_has_suffix(q->path, "/report") || str_eq(q->path, "/compare") ||
           str_eq(q->path, "/history") || str_eq(q->path, "/moved");
}

static struct serve_body *refuse(struct serve_store *s, const struct serve_request *q, int status,
                                 const char *words)
{
    struct strbuf text = {0};
    if (str_has_prefix(q->path, SERVE_API))
        strbuf_printf(&text, "{\"error\": \"%s\"}\n", words);
    else
        strbuf_printf(&text, "<!doctype html><title>%d</title><p>%s</p>\n", status, words);
    return body_new(s, status, &text);
}

/* With a connection of its own, without the lock. */
static struct serve_body *make_page(struct serve_store *s, const struct serve_request *request,
                                    struct store *store)
{
    struct error err = {0};
    struct strbuf text = {0};
    if (!store && store_open(&store, s->place, STORE_READ, &err) < 0)
        return refuse(s, request, 500, "The store can no longer be opened.");
    struct serve_request with_pages = *request;
    with_pages.pages = s->pages;
    int status = serve_page(store, &with_pages, &text);
    struct serve_body *body = body_new(s, status, &text);
    pthread_mutex_lock(&s->lock);
    if (s->idle_count < IDLE_MAX && s->watch && status != 500) { /* it may be broken */
        s->idle[s->idle_count++] = store;
        store = NULL;
    }
    pthread_mutex_unlock(&s->lock);
    store_close(store);
    return body;
}

struct serve_body *serve_store_page(struct serve_store *s, const struct serve_request *request)
{
    CLEANUP(strbuf_done) struct strbuf key = {0};
    bool heavy = is_heavy(request), waits = false;
    put_key(&key, request);
    pthread_mutex_lock(&s->lock);
    look_for_changes(s);
    struct serve_body *body = find_page(s, strbuf_text(&key));
    while (!body && heavy && s->heavy_running >= HEAVY_RUNNING) {
        if (!waits && s->heavy_waiting >= HEAVY_WAITING) {
            pthread_mutex_unlock(&s->lock);
            return refuse(s, request, 503, "Too many requests for reports; try again in a moment.");
        }
        waits = true;
        s->heavy_waiting++;
        pthread_cond_wait(&s->is_free, &s->lock);
        s->heavy_waiting--;
        body = find_page(s, strbuf_text(&key)); /* another may have made it meanwhile */
    }
    if (body) {
        pthread_mutex_unlock(&s->lock);
        return body;
    }
    s->heavy_running += heavy;
    int64_t version = s->version;
    struct store *store = s->idle_count ? s->idle[--s->idle_count] : NULL;
    pthread_mutex_unlock(&s->lock);
    body = make_page(s, request, store);
    pthread_mutex_lock(&s->lock);
    keep_page(s, strbuf_text(&key), body, version);
    if (heavy) {
        s->heavy_running--;
        pthread_cond_broadcast(&s->is_free);
    }
    pthread_mutex_unlock(&s->lock);
    return body;
}
