/* SPDX-License-Identifier: MIT */
/* Which database a place means, and the calls of sql.h, handed on to it. */
#include "store/sql.h"
#include "config.h"
#include "store/sql_engine.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

static const struct sql_engine *engine_of(const char *place)
{
#if HAVE_LIBPQ
    if (store_is_address(place))
        return &sql_postgres;
#endif
#if HAVE_SQLITE
    if (!store_is_address(place))
        return &sql_sqlite;
#endif
    (void)place;
    return NULL;
}

int sql_open(struct sql **ret_db, const char *place, enum store_mode mode, struct error *err)
{
    const struct sql_engine *engine = engine_of(place);
    if (engine)
        return engine->open(ret_db, place, mode, err);
    if (store_is_address(place)) /* which may hold a password: it is not shown */
        return error_set(err, -ENOTSUP,
                         "a store on PostgreSQL: assay was built without libpq; install libpq-dev "
                         "and rebuild it");
    return error_set(err, -ENOTSUP,
                     "%s: assay was built without SQLite; install libsqlite3-dev and rebuild it",
                     place);
}

void sql_close(struct sql *db)
{
    if (db)
        db->engine->close(db);
}

int sql_reconnect(struct sql *db, struct error *err)
{
    return db->engine->reconnect(db, err);
}

int sql_script(struct sql *db, const char *text, struct error *err)
{
    return db->engine->script(db, text, err);
}

int sql_has_table(struct sql *db, const char *name, bool *ret_there, struct error *err)
{
    return db->engine->has_table(db, name, ret_there, err);
}

/* Fills values as the letters say; returns how many there are. */
static size_t gather(struct sql_value *values, const char *types, va_list arguments)
{
    size_t count = 0;
    for (; types && *types; types++) {
        assert(count < SQL_PARAMETERS_MAX);
        struct sql_value *v = &values[count++];
        *v = (struct sql_value){.type = *types};
        switch (*types) {
        case 'i':
            v->number = va_arg(arguments, int64_t);
            break;
        case 'd':
            v->real = va_arg(arguments, double);
            v->is_null = !isfinite(v->real);
            break;
        case 't':
            v->bytes = va_arg(arguments, const char *);
            v->is_null = !v->bytes;
            v->size = v->bytes ? strlen(v->bytes) : 0;
            break;
        default:
            assert(*types == 'b');
            v->bytes = va_arg(arguments, const void *);
            v->size = va_arg(arguments, size_t);
            v->is_null = !v->bytes;
        }
    }
    return count;
}

int sql_run(struct sql *db, struct error *err, const char *text, const char *types, ...)
{
    struct sql_value values[SQL_PARAMETERS_MAX];
    va_list arguments;
    va_start(arguments, types);
    size_t count = gather(values, types, arguments);
    va_end(arguments);
    return db->engine->run(db, text, values, count, err);
}

int sql_insert(struct sql *db, int64_t *ret_id, struct error *err, const char *text,
               const char *types, ...)
{
    struct sql_value values[SQL_PARAMETERS_MAX];
    va_list arguments;
    va_start(arguments, types);
    size_t count = gather(values, types, arguments);
    va_end(arguments);
    struct sql_rows *rows;
    int r = db->engine->query(db, &rows, text, values, count, err);
    if (r < 0)
        return r;
    r = sql_next(rows, err);
    if (r > 0)
        *ret_id = sql_i64(rows, 0);
    sql_rows_done(rows);
    return r > 0 ? 0 : r < 0 ? r : error_set(err, -EIO, "an inserted row has no number");
}

int sql_changed(struct sql *db, int64_t *ret_count, struct error *err)
{
    return db->engine->changed(db, ret_count, err);
}

int sql_query(struct sql *db, struct sql_rows **ret_rows, struct error *err, const char *text,
              const char *types, ...)
{
    struct sql_value values[SQL_PARAMETERS_MAX];
    va_list arguments;
    va_start(arguments, types);
    size_t count = gather(values, types, arguments);
    va_end(arguments);
    return db->engine->query(db, ret_rows, text, values, count, err);
}

int sql_run_values(struct sql *db, const char *text, const struct sql_value *values, size_t count,
                   struct error *err)
{
    return db->engine->run(db, text, values, count, err);
}

int sql_query_values(struct sql *db, struct sql_rows **ret_rows, const char *text,
                     const struct sql_value *values, size_t count, struct error *err)
{
    return db->engine->query(db, ret_rows, text, values, count, err);
}

int sql_next(struct sql_rows *rows, struct error *err)
{
    return rows->db->engine->next(rows, err);
}

void sql_rows_done(struct sql_rows *rows)
{
    if (rows)
        rows->db->engine->rows_done(rows);
}

int64_t sql_i64(const struct sql_rows *rows, int column)
{
    return rows->db->engine->i64(rows, column);
}

double sql_double(const struct sql_rows *rows, int column)
{
    return sql_is_null(rows, column) ? NAN : rows->db->engine->real(rows, column);
}

const char *sql_text(const struct sql_rows *rows, int column)
{
    const char *text = rows->db->engine->text(rows, column);
    return text ? text : "";
}

bool sql_is_null(const struct sql_rows *rows, int column)
{
    return rows->db->engine->is_null(rows, column);
}

const void *sql_bytes(const struct sql_rows *rows, int column, size_t *ret_size)
{
    return rows->db->engine->bytes(rows, column, ret_size);
}

int sql_begin(struct sql *db, enum sql_transaction kind, struct error *err)
{
    return db->engine->begin(db, kind, err);
}

int sql_commit(struct sql *db, struct error *err)
{
    return db->engine->commit(db, err);
}

void sql_rollback(struct sql *db)
{
    db->engine->rollback(db);
}
