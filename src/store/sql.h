/* SPDX-License-Identifier: MIT */
/*
 * Only for src/store: nothing outside says SQL; what others ask is in store.h and store_rows.h.
 *
 * The database behind the store, as small as the store needs it: statements with typed parameters,
 * rows read one by one, transactions.  There are two: SQLite (sql_sqlite.c) for a path, PostgreSQL
 * (sql_postgres.c) for an address that begins with postgresql://.  Everything that knows which of
 * them it is stands in that file; every statement is written once, in the SQL that both understand.
 *
 * Parameters are described by a string, one letter for each parameter of the statement, which are
 * `?` in their order or `?1`, `?2`, … (one that is used twice has one letter):
 *   i int64_t   d double (not finite: NULL)   t const char * (NULL: NULL)   b const void *, size_t
 * The statement's text must be a literal: prepared statements are kept by its address.
 *
 * Codes that a caller may act upon: -ENOTCONN, the connection is lost (sql_reconnect makes another;
 * of a commit it is not known whether it was done); -EAGAIN, a transaction was in another's way and
 * undone, and is worth another try.
 *
 * A connection belongs to one thread.
 */
#ifndef ASSAY_STORE_SQL_H
#define ASSAY_STORE_SQL_H

#include "base/error.h"
#include "store/store_place.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sql;
struct sql_rows;

int sql_open(struct sql **ret_db, const char *place, enum store_mode mode, struct error *err);
void sql_close(struct sql *db);
static inline void sql_closep(struct sql **db)
{
    sql_close(*db);
}

/* After -ENOTCONN.  Rows that are still open must not be read any more, only be done with. */
int sql_reconnect(struct sql *db, struct error *err);

/* Several statements without parameters or rows, for schemas.  Types are those of SQLite. */
int sql_script(struct sql *db, const char *text, struct error *err);

int sql_has_table(struct sql *db, const char *name, bool *ret_there, struct error *err);

/* One statement whose rows do not matter.  Within a transaction an error may come later, at the
 * latest from sql_commit: a server is not waited for after each statement. */
int sql_run(struct sql *db, struct error *err, const char *text, const char *types, ...);
/* An INSERT … RETURNING id; gives the new row's. */
int sql_insert(struct sql *db, int64_t *ret_id, struct error *err, const char *text,
               const char *types, ...);
/* How many rows the last sql_run changed. */
int sql_changed(struct sql *db, int64_t *ret_count, struct error *err);

/* Rows: sql_query, then sql_next until it returns 0 (no more) or a negative errno, then
 * sql_rows_done, which may come early.  One statement's rows at a time. */
int sql_query(struct sql *db, struct sql_rows **ret_rows, struct error *err, const char *text,
              const char *types, ...);
int sql_next(struct sql_rows *rows, struct error *err); /* 1: there is a row */
void sql_rows_done(struct sql_rows *rows);
static inline void sql_rows_donep(struct sql_rows **rows)
{
    sql_rows_done(*rows);
}

/* The same with the parameters in an array (sql_engine.h), for statements with many of them. */
struct sql_value;
int sql_run_values(struct sql *db, const char *text, const struct sql_value *values, size_t count,
                   struct error *err);
int sql_query_values(struct sql *db, struct sql_rows **ret_rows, const char *text,
                     const struct sql_value *values, size_t count, struct error *err);

/* Column of the row, counted from 0.  Texts and bytes last until the next sql_next. */
int64_t sql_i64(const struct sql_rows *rows, int column);
double sql_double(const struct sql_rows *rows, int column);    /* NAN for NULL */
const char *sql_text(const struct sql_rows *rows, int column); /* "" for NULL */
bool sql_is_null(const struct sql_rows *rows, int column);
const void *sql_bytes(const struct sql_rows *rows, int column, size_t *ret_size);

enum sql_transaction {
    SQL_WRITING,  /* SQLite: takes the right to write at once, waiting for other writers */
    SQL_ALONE,    /* also in PostgreSQL one at a time: for changes of the schema */
    SQL_ONE_VIEW, /* for reading: what others write meanwhile is not seen */
};

int sql_begin(struct sql *db, enum sql_transaction kind, struct error *err);
int sql_commit(struct sql *db, struct error *err);
void sql_rollback(struct sql *db);

#endif
