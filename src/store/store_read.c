/* SPDX-License-Identifier: MIT */
/* Finding experiments. */
#include "base/memory.h"
#include "base/strings.h"
#include "store/store_internal.h"

#include <errno.h>
#include <stdio.h>

static void read_experiment(const struct sql_rows *rows, struct store_experiment *e)
{
    *e = (struct store_experiment){
        .id = sql_i64(rows, 0),
        .uuid = memory_strdup(sql_text(rows, 1)),
        .name = memory_strdup(sql_text(rows, 2)),
        .question = memory_strdup(sql_text(rows, 3)),
        .state = memory_strdup(sql_text(rows, 4)),
        .git_commit = memory_strdup(sql_text(rows, 5)),
        .selection = memory_strdup(sql_text(rows, 6)),
        .baseline = memory_strdup(sql_text(rows, 7)),
        .headline = memory_strdup(sql_text(rows, 8)),
        .spec_path = memory_strdup(sql_text(rows, 9)),
        .spec_hash = memory_strdup(sql_text(rows, 10)),
        .seed = (uint64_t)sql_i64(rows, 11),
        .started_at_ns = (uint64_t)sql_i64(rows, 12),
        .ended_at_ns = (uint64_t)sql_i64(rows, 13),
        .cell_count = (uint64_t)sql_i64(rows, 14),
        .run_count = (uint64_t)sql_i64(rows, 15),
        .failed_count = (uint64_t)sql_i64(rows, 16),
        .disturbed_count = (uint64_t)sql_i64(rows, 17),
        .adaptive = sql_i64(rows, 20) != 0,
    };
    if (str_eq(e->state, "running"))
        e->alive = store_owner_alive(sql_text(rows, 18), (uint64_t)sql_i64(rows, 19));
}

void store_experiment_done(struct store_experiment *e)
{
    char *texts[] = {e->uuid,      e->name,     e->question, e->state,     e->git_commit,
                     e->selection, e->baseline, e->headline, e->spec_path, e->spec_hash};
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
        free(texts[i]);
    *e = (struct store_experiment){0};
}

void store_list_done(struct store_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        store_experiment_done(&list->items[i]);
    free(list->items);
    *list = (struct store_list){0};
}

/* What begins with the prefix stands, in the order of bytes, from the prefix up to this: an index
 * finds it in both databases, which LIKE does not promise. */
static char *prefix_end(const char *prefix)
{
    return memory_printf("%s\U0010ffff", prefix);
}

static int query_list(struct store *store, const struct store_filter *f, struct sql_rows **ret_rows,
                      struct error *err)
{
    int64_t most = f->most && f->most < INT64_MAX ? (int64_t)f->most : INT64_MAX;
    if (f->id)
        return sql_query(store->sql, ret_rows, err,
                         "SELECT " STORE_EXPERIMENT_COLUMNS " FROM experiment WHERE id = ?", "i",
                         f->id);
    if (f->spec_hash)
        return sql_query(store->sql, ret_rows, err,
                         "SELECT " STORE_EXPERIMENT_COLUMNS
                         " FROM experiment WHERE spec_hash = ? ORDER BY id DESC LIMIT ?",
                         "ti", f->spec_hash, most);
    if (f->name)
        return sql_query(store->sql, ret_rows, err,
                         "SELECT " STORE_EXPERIMENT_COLUMNS
                         " FROM experiment WHERE name = ? ORDER BY id DESC LIMIT ?",
                         "ti", f->name, most);
    if (f->git) {
        CLEANUP(memory_freep) char *end = prefix_end(f->git);
        return sql_query(store->sql, ret_rows, err,
                         "SELECT " STORE_EXPERIMENT_COLUMNS
                         " FROM experiment WHERE git_commit >= ? AND git_commit < ?"
                         " ORDER BY id DESC LIMIT ?",
                         "tti", f->git, end, most);
    }
    return sql_query(store->sql, ret_rows, err,
                     "SELECT " STORE_EXPERIMENT_COLUMNS " FROM experiment ORDER BY id DESC LIMIT ?",
                     "i", most);
}

int store_read_list(struct sql_rows *rows, struct store_list *ret_list, struct error *err)
{
    struct store_list list = {0};
    int r;
    while ((r = sql_next(rows, err)) > 0)
        read_experiment(rows, &ARRAY_PUSH(list.items, list.count, list.capacity));
    sql_rows_done(rows);
    if (r < 0)
        store_list_done(&list);
    else
        *ret_list = list;
    return r;
}

int store_list(struct store *store, const struct store_filter *filter, struct store_list *ret_list,
               struct error *err)
{
    struct sql_rows *rows;
    int r = query_list(store, filter, &rows, err);
    return r < 0 ? r : store_read_list(rows, ret_list, err);
}

int store_experiment(struct store *store, int64_t id, struct store_experiment *ret,
                     struct error *err)
{
    struct store_filter filter = {.id = id};
    struct store_list list = {0};
    int r = store_list(store, &filter, &list, err);
    if (r < 0)
        return r;
    if (list.count == 0)
        return error_set(err, -ENOENT, "there is no experiment %lld; 'assay list' shows them",
                         (long long)id);
    *ret = list.items[0];
    free(list.items);
    return 0;
}

static int newest(struct store *store, const struct store_filter *filter, int64_t *ret_id,
                  struct error *err)
{
    struct store_filter one = *filter;
    one.most = 1;
    CLEANUP(store_list_done) struct store_list list = {0};
    int r = store_list(store, &one, &list, err);
    if (r == 0 && list.count)
        *ret_id = list.items[0].id;
    return r < 0 ? r : list.count > 0;
}

static int find_by_uuid(struct store *store, const char *word, int64_t *ret_id, struct error *err)
{
    CLEANUP(memory_freep) char *end = prefix_end(word);
    struct sql_rows *rows;
    int r = sql_query(store->sql, &rows, err,
                      "SELECT id FROM experiment WHERE uuid >= ? AND uuid < ? LIMIT 2", "tt", word,
                      end);
    if (r < 0)
        return r;
    r = sql_next(rows, err);
    int64_t id = r > 0 ? sql_i64(rows, 0) : 0;
    if (r > 0 && sql_next(rows, NULL) > 0)
        r = error_set(err, -EINVAL,
                      "'%s' is ambiguous: the UUIDs of several experiments start with it", word);
    sql_rows_done(rows);
    if (r > 0)
        *ret_id = id;
    return r;
}

int store_find(struct store *store, const char *word, int64_t *ret_id, struct error *err)
{
    uint64_t number;
    int r;
    if (str_eq(word, "last")) {
        r = newest(store, &(struct store_filter){0}, ret_id, err);
        return r > 0 ? 0 : r < 0 ? r : error_set(err, -ENOENT, "the store is empty");
    }
    if (parse_u64(word, &number, NULL) == 0 && number > 0 && number <= INT64_MAX) {
        r = newest(store, &(struct store_filter){.id = (int64_t)number}, ret_id, err);
        if (r != 0)
            return r < 0 ? r : 0;
    }
    r = newest(store, &(struct store_filter){.name = word}, ret_id, err);
    if (r == 0 && strlen(word) >= 4)
        r = find_by_uuid(store, word, ret_id, err);
    if (r == 0 && strlen(word) >= 4)
        r = newest(store, &(struct store_filter){.git = word}, ret_id, err);
    if (r != 0)
        return r < 0 ? r : 0;
    return error_set(err, -ENOENT,
                     "no experiment matches '%s' (give its number, its name, 'last', or the start "
                     "of its UUID or commit; 'assay list' shows them)",
                     word);
}
