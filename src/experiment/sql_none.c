/* SPDX-License-Identifier: MIT */
/* An assay that was built without a database: opening a store says so, and nothing else is ever
 * called. */
#include "experiment/sql.h"

#include <errno.h>
#include <math.h>

int sql_open(struct sql **ret_db, const char *place, enum sql_mode mode, struct error *err)
{
    (void)ret_db, (void)mode;
    return error_set(err, -ENOTSUP,
                     "%s: this assay was built without SQLite; install libsqlite3-dev and build "
                     "it again",
                     place);
}

void sql_close(struct sql *db)
{
    (void)db;
}

int sql_script(struct sql *db, const char *text, struct error *err)
{
    (void)db, (void)text;
    return error_set(err, -ENOTSUP, "built without SQLite");
}

int sql_run(struct sql *db, struct error *err, const char *text, const char *types, ...)
{
    (void)db, (void)text, (void)types;
    return error_set(err, -ENOTSUP, "built without SQLite");
}

int sql_insert(struct sql *db, int64_t *ret_id, struct error *err, const char *text,
               const char *types, ...)
{
    (void)db, (void)text, (void)types, (void)ret_id;
    return error_set(err, -ENOTSUP, "built without SQLite");
}

int64_t sql_changed(const struct sql *db)
{
    (void)db;
    return 0;
}

int sql_query(struct sql *db, struct sql_rows **ret_rows, struct error *err, const char *text,
              const char *types, ...)
{
    (void)db, (void)ret_rows, (void)text, (void)types;
    return error_set(err, -ENOTSUP, "built without SQLite");
}

int sql_has_table(struct sql *db, const char *name, bool *ret_there, struct error *err)
{
    (void)db, (void)name, (void)ret_there;
    return error_set(err, -ENOTSUP, "built without SQLite");
}

int sql_next(struct sql_rows *rows, struct error *err)
{
    (void)rows;
    return error_set(err, -ENOTSUP, "built without SQLite");
}

void sql_rows_done(struct sql_rows *rows)
{
    (void)rows;
}

int64_t sql_i64(const struct sql_rows *rows, int column)
{
    (void)rows, (void)column;
    return 0;
}

double sql_double(const struct sql_rows *rows, int column)
{
    (void)rows, (void)column;
    return NAN;
}

const char *sql_text(const struct sql_rows *rows, int column)
{
    (void)rows, (void)column;
    return "";
}

bool sql_is_null(const struct sql_rows *rows, int column)
{
    (void)rows, (void)column;
    return true;
}

const void *sql_bytes(const struct sql_rows *rows, int column, size_t *ret_size)
{
    (void)rows, (void)column;
    *ret_size = 0;
    return NULL;
}

int sql_begin(struct sql *db, struct error *err)
{
    (void)db;
    return error_set(err, -ENOTSUP, "built without SQLite");
}

int sql_commit(struct sql *db, struct error *err)
{
    (void)db;
    return error_set(err, -ENOTSUP, "built without SQLite");
}

void sql_rollback(struct sql *db)
{
    (void)db;
}
