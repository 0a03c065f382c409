/* SPDX-License-Identifier: MIT */
/*
 * The database behind the store, as small as the store needs it: statements with typed parameters,
 * rows read one by one, transactions.  Everything that knows which database it is stands in one
 * file per database (sql_sqlite.c), so that another one is one more file.
 *
 * Parameters are described by a string, one letter for each `?` of the statement:
 *   i int64_t   d double (not finite: NULL)   t const char * (NULL: NULL)   b const void *, size_t
 * The statement's text must be a literal: prepared statements are kept by its address.
 *
 * A connection belongs to one thread.
 */
#ifndef ASSAY_EXPERIMENT_SQL_H
#define ASSAY_EXPERIMENT_SQL_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sql;
struct sql_rows;

enum sql_mode {
    SQL_READ,   /* must exist; nothing is changed */
    SQL_WRITE,  /* must exist */
    SQL_CREATE, /* made when it is not there */
    SQL_EXPORT, /* as SQL_CREATE, but one single file when closed: no write-ahead log beside it */
};

int sql_open(struct sql **ret_db, const char *place, enum sql_mode mode, struct error *err);
void sql_close(struct sql *db);
static inline void sql_closep(struct sql **db)
{
    sql_close(*db);
}

/* Several statements without parameters or rows, for schemas. */
int sql_script(struct sql *db, const char *text, struct error *err);

int sql_has_table(struct sql *db, const char *name, bool *ret_there, struct error *err);

/* One statement whose rows do not matter. */
int sql_run(struct sql *db, struct error *err, const char *text, const char *types, ...);
/* The same for an INSERT into a table with an id; gives the new row's. */
int sql_insert(struct sql *db, int64_t *ret_id, struct error *err, const char *text,
               const char *types, ...);
/* How many rows the last sql_run changed. */
int64_t sql_changed(const struct sql *db);

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

/* Column of the row, counted from 0.  Texts and bytes last until the next sql_next. */
int64_t sql_i64(const struct sql_rows *rows, int column);
double sql_double(const struct sql_rows *rows, int column);    /* NAN for NULL */
const char *sql_text(const struct sql_rows *rows, int column); /* "" for NULL */
bool sql_is_null(const struct sql_rows *rows, int column);
const void *sql_bytes(const struct sql_rows *rows, int column, size_t *ret_size);

/* sql_begin takes the right to write at once, waiting for other writers. */
int sql_begin(struct sql *db, struct error *err);
int sql_commit(struct sql *db, struct error *err);
void sql_rollback(struct sql *db);

#endif
