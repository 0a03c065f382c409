/* SPDX-License-Identifier: MIT */
/*
 * SQLite: one file with a write-ahead log, so that readers never wait and a process that is killed
 * loses at most the transaction it was in.  synchronous=FULL, because a run that took minutes is
 * worth an fsync, and a machine under test is one that may crash.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "base/strings.h"
#include "store/sql_engine.h"

#include <errno.h>
#include <sqlite3.h>
#include <unistd.h>

/* How long a writer waits for another before it gives up. */
#define BUSY_TIMEOUT_MS 60000

enum { STATEMENTS_MAX = 96 };

struct lite_rows {
    struct sql_rows base;
    sqlite3_stmt *statement;
    const char *text;
    bool busy;
};

struct lite {
    struct sql base;
    sqlite3 *handle;
    char *place;
    struct lite_rows statements[STATEMENTS_MAX];
    size_t statement_count;
};

/* SQLite tells the last of several errors: where nothing may be created in a directory, it has
 * looked for the file once more, and says that there is none. */
static int cannot_open(const struct lite *db, struct error *err)
{
    const char *slash = strrchr(db->place, '/');
    CLEANUP(memory_freep)
    char *parent =
        slash ? memory_strndup(db->place, (size_t)(slash - db->place) + 1) : memory_strdup(".");
    int code = sqlite3_system_errno(db->handle);
    if (access(db->place, F_OK) < 0 && access(parent, W_OK | X_OK) < 0)
        code = errno;
    return code ? error_errno(err, -code, "%s: cannot be opened", db->place)
                : error_set(err, -EIO, "%s: cannot be opened: %s", db->place,
                            sqlite3_errmsg(db->handle));
}

static int explain(const struct lite *db, int code, struct error *err)
{
    int extended = sqlite3_extended_errcode(db->handle);
    const char *words = sqlite3_errmsg(db->handle);
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return error_set(err, -EBUSY, "%s: another process has been writing to it for a minute",
                         db->place);
    case SQLITE_FULL:
        return error_set(err, -ENOSPC, "%s: the disk is full; free some space and try again",
                         db->place);
    case SQLITE_READONLY:
        return error_set(err, -EROFS, "%s: cannot be written (its directory must be writable, too)",
                         db->place);
    case SQLITE_NOTADB:
        return error_set(err, -EINVAL, "%s: not an assay store (not an SQLite file)", db->place);
    case SQLITE_CORRUPT:
        return error_set(err, -EIO, "%s: the file is damaged: %s", db->place, words);
    case SQLITE_CANTOPEN:
        return cannot_open(db, err);
    case SQLITE_IOERR:
        return error_set(err, -EIO, "%s: %s (%d)", db->place, words, extended);
    default:
        return error_set(err, -EIO, "%s: %s", db->place, words);
    }
}

static struct lite *of(struct sql *db)
{
    return (struct lite *)db;
}

static int script(struct sql *base, const char *text, struct error *err)
{
    struct lite *db = of(base);
    int code = sqlite3_exec(db->handle, text, NULL, NULL, NULL);
    return code == SQLITE_OK ? 0 : explain(db, code, err);
}

/* Several processes may make the file at once.  SQLite does not wait for its lock while it changes
 * the journal, where two that wait might wait for each other. */
static int make_journal(struct lite *db, struct error *err)
{
    uint64_t end_ns = clock_now_ns() + BUSY_TIMEOUT_MS * NS_PER_MS;
    int r;
    while ((r = script(&db->base, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL", err)) ==
               -EBUSY &&
           clock_now_ns() < end_ns)
        usleep(10000);
    return r;
}

static int set_up(struct lite *db, enum store_mode mode, struct error *err)
{
    sqlite3_busy_timeout(db->handle, BUSY_TIMEOUT_MS);
    sqlite3_extended_result_codes(db->handle, 1);
    int r = script(&db->base, "PRAGMA foreign_keys = ON; PRAGMA cache_size = -16384", err);
    if (r == 0 && mode == STORE_CREATE)
        r = make_journal(db, err);
    if (r == 0 && mode == STORE_WRITE)
        r = script(&db->base, "PRAGMA synchronous = FULL", err);
    return r;
}

static void close_file(struct sql *base)
{
    struct lite *db = of(base);
    for (size_t i = 0; i < db->statement_count; i++)
        sqlite3_finalize(db->statements[i].statement);
    sqlite3_close(db->handle);
    free(db->place);
    free(db);
}

static int open_file(struct sql **ret_db, const char *place, enum store_mode mode,
                     struct error *err)
{
    if ((mode == STORE_READ || mode == STORE_WRITE) && access(place, F_OK) < 0)
        return error_errno(err, -errno, "%s", place);
    struct lite *db = memory_zalloc(1, sizeof(*db));
    db->base.engine = &sql_sqlite;
    db->place = memory_strdup(place);
    int flags = mode == STORE_READ    ? SQLITE_OPEN_READONLY
                : mode == STORE_WRITE ? SQLITE_OPEN_READWRITE
                                      : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    /* Without SQLite's own locks, which a large result takes millions of times: a store is used by
     * one thread at a time. */
    int code = sqlite3_open_v2(place, &db->handle, flags | SQLITE_OPEN_NOMUTEX, NULL);
    int r = code == SQLITE_OK ? set_up(db, mode, err) : explain(db, code, err);
    if (r < 0) {
        close_file(&db->base);
        return r;
    }
    *ret_db = &db->base;
    return 0;
}

/* A file is never disconnected. */
static int reconnect(struct sql *db, struct error *err)
{
    (void)db, (void)err;
    return 0;
}

/* The prepared statement of that text, made at its first use. */
static int prepared(struct lite *db, const char *text, struct lite_rows **ret_rows,
                    struct error *err)
{
    for (size_t i = 0; i < db->statement_count; i++)
        if (db->statements[i].text == text && !db->statements[i].busy) {
            *ret_rows = &db->statements[i];
            return 0;
        }
    if (db->statement_count == STATEMENTS_MAX)
        return error_set(err, -E2BIG, "%s: too many different statements", db->place);
    struct lite_rows *rows = &db->statements[db->statement_count];
    int code =
        sqlite3_prepare_v3(db->handle, text, -1, SQLITE_PREPARE_PERSISTENT, &rows->statement, NULL);
    if (code != SQLITE_OK)
        return explain(db, code, err);
    rows->base.db = &db->base;
    rows->text = text;
    db->statement_count++;
    *ret_rows = rows;
    return 0;
}

static void bind(sqlite3_stmt *statement, const struct sql_value *values, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        const struct sql_value *v = &values[k];
        int i = (int)k + 1;
        if (v->is_null)
            sqlite3_bind_null(statement, i);
        else if (v->type == 'i')
            sqlite3_bind_int64(statement, i, v->number);
        else if (v->type == 'd')
            sqlite3_bind_double(statement, i, v->real);
        else if (v->type == 't')
            sqlite3_bind_text64(statement, i, v->bytes, v->size, SQLITE_TRANSIENT, SQLITE_UTF8);
        else
            sqlite3_bind_blob64(statement, i, v->bytes, v->size, SQLITE_TRANSIENT);
    }
}

static int query(struct sql *base, struct sql_rows **ret_rows, const char *text,
                 const struct sql_value *values, size_t count, struct error *err)
{
    struct lite_rows *rows = NULL;
    int r = prepared(of(base), text, &rows, err);
    if (r < 0)
        return r;
    bind(rows->statement, values, count);
    rows->busy = true;
    *ret_rows = &rows->base;
    return 0;
}

static sqlite3_stmt *statement_of(const struct sql_rows *rows)
{
    return ((const struct lite_rows *)rows)->statement;
}

static int next(struct sql_rows *rows, struct error *err)
{
    int code = sqlite3_step(statement_of(rows));
    if (code == SQLITE_ROW)
        return 1;
    return code == SQLITE_DONE ? 0 : explain(of(rows->db), code, err);
}

static void rows_done(struct sql_rows *base)
{
    struct lite_rows *rows = (struct lite_rows *)base;
    sqlite3_reset(rows->statement);
    sqlite3_clear_bindings(rows->statement);
    rows->busy = false;
}

static int run(struct sql *base, const char *text, const struct sql_value *values, size_t count,
               struct error *err)
{
    struct sql_rows *rows;
    int r = query(base, &rows, text, values, count, err);
    if (r < 0)
        return r;
    r = next(rows, err);
    rows_done(rows);
    return r < 0 ? r : 0;
}

static int changed(struct sql *db, int64_t *ret_count, struct error *err)
{
    (void)err;
    *ret_count = sqlite3_changes64(of(db)->handle);
    return 0;
}

static int has_table(struct sql *db, const char *name, bool *ret_there, struct error *err)
{
    struct sql_rows *rows;
    struct sql_value value = {.type = 't', .bytes = name, .size = strlen(name)};
    int r = query(db, &rows, "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?",
                  &value, 1, err);
    if (r < 0)
        return r;
    r = next(rows, err);
    rows_done(rows);
    if (r >= 0)
        *ret_there = r > 0;
    return r < 0 ? r : 0;
}

static int64_t column_i64(const struct sql_rows *rows, int column)
{
    return sqlite3_column_int64(statement_of(rows), column);
}

static double column_real(const struct sql_rows *rows, int column)
{
    return sqlite3_column_double(statement_of(rows), column);
}

static const char *column_text(const struct sql_rows *rows, int column)
{
    return (const char *)sqlite3_column_text(statement_of(rows), column);
}

static bool column_is_null(const struct sql_rows *rows, int column)
{
    return sqlite3_column_type(statement_of(rows), column) == SQLITE_NULL;
}

static const void *column_bytes(const struct sql_rows *rows, int column, size_t *ret_size)
{
    const void *bytes = sqlite3_column_blob(statement_of(rows), column);
    *ret_size = (size_t)sqlite3_column_bytes(statement_of(rows), column);
    return bytes;
}

static int begin(struct sql *db, enum sql_transaction kind, struct error *err)
{
    return script(db, kind == SQL_ONE_VIEW ? "BEGIN" : "BEGIN IMMEDIATE", err);
}

static void rollback(struct sql *db)
{
    if (!sqlite3_get_autocommit(of(db)->handle))
        sqlite3_exec(of(db)->handle, "ROLLBACK", NULL, NULL, NULL);
}

static int commit(struct sql *db, struct error *err)
{
    int r = script(db, "COMMIT", err);
    if (r < 0)
        rollback(db);
    return r;
}

const struct sql_engine sql_sqlite = {
    .open = open_file,
    .close = close_file,
    .reconnect = reconnect,
    .script = script,
    .has_table = has_table,
    .run = run,
    .changed = changed,
    .query = query,
    .next = next,
    .rows_done = rows_done,
    .i64 = column_i64,
    .real = column_real,
    .text = column_text,
    .is_null = column_is_null,
    .bytes = column_bytes,
    .begin = begin,
    .commit = commit,
    .rollback = rollback,
};
