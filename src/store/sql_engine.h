/* SPDX-License-Identifier: MIT */
/* What a database must be able to do for sql.c; sql.h has the contracts of the calls. */
#ifndef ASSAY_STORE_SQL_ENGINE_H
#define ASSAY_STORE_SQL_ENGINE_H

#include "store/sql.h"

#define SQL_PARAMETERS_MAX 224

/* One parameter of a statement, as its letter says. */
struct sql_value {
    char type;
    bool is_null;
    int64_t number;
    double real;
    const void *bytes; /* of a text, too, which ends with a zero */
    size_t size;
};

struct sql_engine {
    int (*open)(struct sql **ret_db, const char *place, enum store_mode mode, struct error *err);
    void (*close)(struct sql *db);
    int (*reconnect)(struct sql *db, struct error *err);
    int (*script)(struct sql *db, const char *text, struct error *err);
    int (*has_table)(struct sql *db, const char *name, bool *ret_there, struct error *err);
    int (*run)(struct sql *db, const char *text, const struct sql_value *values, size_t count,
               struct error *err);
    int (*changed)(struct sql *db, int64_t *ret_count, struct error *err);
    int (*query)(struct sql *db, struct sql_rows **ret_rows, const char *text,
                 const struct sql_value *values, size_t count, struct error *err);
    int (*next)(struct sql_rows *rows, struct error *err);
    void (*rows_done)(struct sql_rows *rows);
    int64_t (*i64)(const struct sql_rows *rows, int column);
    double (*real)(const struct sql_rows *rows, int column);
    const char *(*text)(const struct sql_rows *rows, int column); /* NULL for NULL */
    bool (*is_null)(const struct sql_rows *rows, int column);
    const void *(*bytes)(const struct sql_rows *rows, int column, size_t *ret_size);
    int (*begin)(struct sql *db, enum sql_transaction kind, struct error *err);
    int (*commit)(struct sql *db, struct error *err);
    void (*rollback)(struct sql *db);
};

/* Every engine's own structures begin with these. */
struct sql {
    const struct sql_engine *engine;
};

struct sql_rows {
    struct sql *db;
};

extern const struct sql_engine sql_sqlite, sql_postgres;

#endif
