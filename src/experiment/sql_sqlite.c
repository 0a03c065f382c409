/* SPDX-License-Identifier: MIT */
/*
 * SQLite: one file with a write-ahead log, so that readers never wait and a process that is killed
 * loses at most the transaction it was in.  synchronous=FULL, because a run that took minutes is
 * worth an fsync, and a machine under test is one that may crash.
 */
#include "base/memory.h"
#include "base/strings.h"
#include "experiment/sql.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <unistd.h>

/* How long a writer waits for another before it gives up. */
#define BUSY_TIMEOUT_MS 60000

enum { STATEMENTS_MAX = 96 };

struct sql_rows {
    struct sql *db;
    sqlite3_stmt *statement;
    const char *text;
    bool busy;
};

struct sql {
    sqlite3 *handle;
    char *place;
    bool is_export;
    struct sql_rows statements[STATEMENTS_MAX];
    size_t statement_count;
};

static int explain(const struct sql *db, int code, struct error *err)
{
    int extended = sqlite3_extended_errcode(db->handle);
    const char *words = sqlite3_errmsg(db->handle);
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return error_set(err, -EBUSY, "%s: another process has been writing it for a minute",
                         db->place);
    case SQLITE_FULL:
        return error_set(err, -ENOSPC, "%s: the disk is full; free some space and go on",
                         db->place);
    case SQLITE_READONLY:
        return error_set(err, -EROFS, "%s: cannot be written (its folder must be writable too)",
                         db->place);
    case SQLITE_NOTADB:
        return error_set(err, -EINVAL, "%s: this is not an assay store (no SQLite file)",
                         db->place);
    case SQLITE_CORRUPT:
        return error_set(err, -EIO, "%s: the file is damaged: %s", db->place, words);
    case SQLITE_CANTOPEN:
        return error_set(
            err, -ENOENT, "%s: cannot be opened: %s", db->place,
            sqlite3_system_errno(db->handle) ? strerror(sqlite3_system_errno(db->handle)) : words);
    case SQLITE_IOERR:
        return error_set(err, -EIO, "%s: %s (%d)", db->place, words, extended);
    default:
        return error_set(err, -EIO, "%s: %s", db->place, words);
    }
}

int sql_script(struct sql *db, const char *text, struct error *err)
{
    int code = sqlite3_exec(db->handle, text, NULL, NULL, NULL);
    return code == SQLITE_OK ? 0 : explain(db, code, err);
}

static int set_up(struct sql *db, enum sql_mode mode, struct error *err)
{
    sqlite3_busy_timeout(db->handle, BUSY_TIMEOUT_MS);
    sqlite3_extended_result_codes(db->handle, 1);
    int r = sql_script(db, "PRAGMA foreign_keys = ON; PRAGMA cache_size = -16384", err);
    if (r == 0 && mode == SQL_CREATE)
        r = sql_script(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL", err);
    if (r == 0 && mode == SQL_WRITE)
        r = sql_script(db, "PRAGMA synchronous = FULL", err);
    return r;
}

int sql_open(struct sql **ret_db, const char *place, enum sql_mode mode, struct error *err)
{
    if ((mode == SQL_READ || mode == SQL_WRITE) && access(place, F_OK) < 0)
        return error_errno(err, -errno, "%s", place);
    struct sql *db = memory_zalloc(1, sizeof(*db));
    db->place = memory_strdup(place);
    db->is_export = mode == SQL_EXPORT;
    int flags = mode == SQL_READ    ? SQLITE_OPEN_READONLY
                : mode == SQL_WRITE ? SQLITE_OPEN_READWRITE
                                    : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    int code = sqlite3_open_v2(place, &db->handle, flags, NULL);
    int r = code == SQLITE_OK ? set_up(db, mode, err) : explain(db, code, err);
    if (r < 0) {
        sql_close(db);
        return r;
    }
    *ret_db = db;
    return 0;
}

void sql_close(struct sql *db)
{
    if (!db)
        return;
    for (size_t i = 0; i < db->statement_count; i++)
        sqlite3_finalize(db->statements[i].statement);
    sqlite3_close(db->handle);
    free(db->place);
    free(db);
}

/* The prepared statement of that text, made at its first use. */
static int prepared(struct sql *db, const char *text, struct sql_rows **ret_rows, struct error *err)
{
    for (size_t i = 0; i < db->statement_count; i++)
        if (db->statements[i].text == text && !db->statements[i].busy) {
            *ret_rows = &db->statements[i];
            return 0;
        }
    if (db->statement_count == STATEMENTS_MAX)
        return error_set(err, -E2BIG, "%s: too many different statements", db->place);
    struct sql_rows *rows = &db->statements[db->statement_count];
    int code =
        sqlite3_prepare_v3(db->handle, text, -1, SQLITE_PREPARE_PERSISTENT, &rows->statement, NULL);
    if (code != SQLITE_OK)
        return explain(db, code, err);
    rows->db = db;
    rows->text = text;
    db->statement_count++;
    *ret_rows = rows;
    return 0;
}

static void bind(sqlite3_stmt *statement, const char *types, va_list arguments)
{
    for (int i = 1; types && *types; i++, types++) {
        switch (*types) {
        case 'i':
            sqlite3_bind_int64(statement, i, va_arg(arguments, int64_t));
            break;
        case 'd': {
            double value = va_arg(arguments, double);
            if (isfinite(value))
                sqlite3_bind_double(statement, i, value);
            else
                sqlite3_bind_null(statement, i);
            break;
        }
        case 't':
            sqlite3_bind_text(statement, i, va_arg(arguments, const char *), -1, SQLITE_TRANSIENT);
            break;
        default: {
            const void *bytes = va_arg(arguments, const void *);
            sqlite3_bind_blob64(statement, i, bytes, va_arg(arguments, size_t), SQLITE_TRANSIENT);
        }
        }
    }
}

static int run(struct sql *db, struct error *err, const char *text, const char *types,
               va_list arguments)
{
    struct sql_rows *rows;
    int r = prepared(db, text, &rows, err);
    if (r < 0)
        return r;
    bind(rows->statement, types, arguments);
    int code = sqlite3_step(rows->statement);
    if (code != SQLITE_DONE && code != SQLITE_ROW)
        r = explain(db, code, err);
    sql_rows_done(rows);
    return r;
}

int sql_run(struct sql *db, struct error *err, const char *text, const char *types, ...)
{
    va_list arguments;
    va_start(arguments, types);
    int r = run(db, err, text, types, arguments);
    va_end(arguments);
    return r;
}

int sql_insert(struct sql *db, int64_t *ret_id, struct error *err, const char *text,
               const char *types, ...)
{
    va_list arguments;
    va_start(arguments, types);
    int r = run(db, err, text, types, arguments);
    va_end(arguments);
    if (r == 0 && ret_id)
        *ret_id = sqlite3_last_insert_rowid(db->handle);
    return r;
}

int64_t sql_changed(const struct sql *db)
{
    return sqlite3_changes64(db->handle);
}

int sql_query(struct sql *db, struct sql_rows **ret_rows, struct error *err, const char *text,
              const char *types, ...)
{
    struct sql_rows *rows;
    int r = prepared(db, text, &rows, err);
    if (r < 0)
        return r;
    va_list arguments;
    va_start(arguments, types);
    bind(rows->statement, types, arguments);
    va_end(arguments);
    rows->busy = true;
    *ret_rows = rows;
    return 0;
}

int sql_has_table(struct sql *db, const char *name, bool *ret_there, struct error *err)
{
    struct sql_rows *rows;
    int r = sql_query(db, &rows, err,
                      "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", "t", name);
    if (r < 0)
        return r;
    r = sql_next(rows, err);
    sql_rows_done(rows);
    if (r >= 0)
        *ret_there = r > 0;
    return r < 0 ? r : 0;
}

int sql_next(struct sql_rows *rows, struct error *err)
{
    int code = sqlite3_step(rows->statement);
    if (code == SQLITE_ROW)
        return 1;
    return code == SQLITE_DONE ? 0 : explain(rows->db, code, err);
}

void sql_rows_done(struct sql_rows *rows)
{
    if (!rows)
        return;
    sqlite3_reset(rows->statement);
    sqlite3_clear_bindings(rows->statement);
    rows->busy = false;
}

int64_t sql_i64(const struct sql_rows *rows, int column)
{
    return sqlite3_column_int64(rows->statement, column);
}

double sql_double(const struct sql_rows *rows, int column)
{
    return sql_is_null(rows, column) ? NAN : sqlite3_column_double(rows->statement, column);
}

const char *sql_text(const struct sql_rows *rows, int column)
{
    const unsigned char *text = sqlite3_column_text(rows->statement, column);
    return text ? (const char *)text : "";
}

bool sql_is_null(const struct sql_rows *rows, int column)
{
    return sqlite3_column_type(rows->statement, column) == SQLITE_NULL;
}

const void *sql_bytes(const struct sql_rows *rows, int column, size_t *ret_size)
{
    const void *bytes = sqlite3_column_blob(rows->statement, column);
    *ret_size = (size_t)sqlite3_column_bytes(rows->statement, column);
    return bytes;
}

int sql_begin(struct sql *db, struct error *err)
{
    return sql_script(db, "BEGIN IMMEDIATE", err);
}

int sql_commit(struct sql *db, struct error *err)
{
    int r = sql_script(db, "COMMIT", err);
    if (r < 0)
        sql_rollback(db);
    return r;
}

void sql_rollback(struct sql *db)
{
    if (!sqlite3_get_autocommit(db->handle))
        sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
}
