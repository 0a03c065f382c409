/* SPDX-License-Identifier: MIT */
/* Statements, parameters and messages as PostgreSQL has them; nothing here talks to a server. */
#ifndef ASSAY_STORE_SQL_POSTGRES_WORDS_H
#define ASSAY_STORE_SQL_POSTGRES_WORDS_H

#include "store/sql_engine.h"

/* Of the types that are sent and read, from the server's pg_type. */
enum {
    PG_BOOL = 16,
    PG_BYTEA = 17,
    PG_INT8 = 20,
    PG_INT4 = 23,
    PG_TEXT = 25,
    PG_FLOAT8 = 701,
};

/* The same statement with $1 for `?` and `?1` outside of quotes; the caller frees it. */
char *pg_parameters(const char *text);
/* A schema of SQLite's with PostgreSQL's types; the caller frees it. */
char *pg_schema(const char *text);

/* libpq ends its messages with a line end and begins continued lines with blanks. */
void pg_put_words(char *to, size_t size, const char *words);

/* How many seconds connecting may take unless the address says it (connect_timeout). */
#define PG_CONNECT_S "5"
/* How long a server may take to answer one who writes: a few times as long as connecting; -1: as
 * long as it takes. */
int pg_patience_ms(const char *connect_s);

/* The code for an SQLSTATE, "" when there is none, with words. */
int pg_explain(const char *place, const char *state, const char *words, struct error *err);

/* A column's value in the server's binary format; NULL is NAN and 0. */
double pg_real(const char *bytes, unsigned type);
int64_t pg_i64(const char *bytes, unsigned type);

/* The type of each parameter. */
void pg_types(const struct sql_value *values, size_t count, unsigned *types);

/* Parameters in the server's binary format. */
struct pg_packed {
    const char *values[SQL_PARAMETERS_MAX];
    int lengths[SQL_PARAMETERS_MAX], formats[SQL_PARAMETERS_MAX];
    uint64_t numbers[SQL_PARAMETERS_MAX];
    char *texts[SQL_PARAMETERS_MAX]; /* mended, to be freed */
    size_t count;
};

void pg_pack(struct pg_packed *p, const struct sql_value *values, size_t count);
void pg_packed_done(struct pg_packed *p);

#endif
