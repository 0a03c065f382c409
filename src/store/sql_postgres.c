/* SPDX-License-Identifier: MIT */
/*
 * PostgreSQL through libpq: one connection, prepared statements, everything in the binary format.
 *
 * What a transaction writes is sent in libpq's pipeline mode and answered in one go: a run with
 * twenty values costs two round trips, not twenty-two, which is what counts across a network.  An
 * error is therefore told later than its statement: by the next statement with rows, or by the
 * commit.
 *
 * Statements are written once for both databases.  What differs is translated here, by the word:
 * `?` and `?1` become $1, and a schema's types become PostgreSQL's.  Texts have the collation "C",
 * so that they are ordered by their bytes, as in SQLite.
 *
 * A server can also hang without closing the connection: its machine is gone, its process stopped,
 * something between is silent.  Nothing blocks for ever, therefore: what is sent is buffered, and
 * answers are waited for by poll().  One who writes gives up after a while without a byte, and what
 * was to be written goes to the spool.  One who reads waits: a large query may take long, and there
 * is somebody who can end it.
 *
 * Credentials come from libpq's own means (service file, .pgpass, environment).  An address with a
 * password is refused, and what is refused is not repeated.
 */
#include "base/memory.h"
#include "base/strings.h"
#include "store/libpq.h"
#include "store/sql_engine.h"
#include "store/sql_postgres_words.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

enum { STATEMENTS_MAX = 128, ROWS_MAX = 8, PENDING_MAX = 256 };

struct pg_rows {
    struct sql_rows base;
    PGresult *result;
    int row;
    bool busy;
};

struct pg {
    struct sql base;
    PGconn *connection;
    char *place;
    enum store_mode mode;
    const char *statements[STATEMENTS_MAX]; /* the texts; number i is prepared as "s<i>" */
    size_t statement_count;
    struct pg_rows rows[ROWS_MAX];
    bool in_transaction;
    int answer_ms;      /* how long an answer may take; -1: as long as it takes */
    bool hung;          /* it took longer */
    size_t pending;     /* answers that the pipeline owes */
    PGresult *last;     /* of the last statement without rows */
    struct error first; /* what went wrong in the pipeline; code 0 for nothing */
};

static struct pg *of(struct sql *db)
{
    return (struct pg *)db;
}

static int lost(struct pg *db, struct error *err)
{
    char words[512];
    if (db->hung)
        return error_set(err, -ENOTCONN, "%s: the server has not answered for %d s", db->place,
                         db->answer_ms / 1000);
    pg_put_words(words, sizeof(words), PQerrorMessage(db->connection));
    return error_set(err, -ENOTCONN, "%s: the connection is lost: %s", db->place, words);
}

/* The code for a result's SQLSTATE, with words. */
static int explain(struct pg *db, const PGresult *result, struct error *err)
{
    if (PQstatus(db->connection) == CONNECTION_BAD)
        return lost(db, err);
    const char *state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    const char *primary = result ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    char words[512];
    pg_put_words(words, sizeof(words), primary ? primary : PQerrorMessage(db->connection));
    return pg_explain(db->place, state ? state : "", words, err);
}

/* ---- connecting ---- */

/* An option of the address, NULL when it has none. */
static const char *given(const PQconninfoOption *options, const char *name)
{
    for (; options && options->keyword; options++)
        if (str_eq(options->keyword, name))
            return options->val;
    return NULL;
}

/* What is refused may hold a password: no word of it is repeated. */
static int check_address(const char *place, PQconninfoOption **ret_options, struct error *err)
{
    char *words = NULL;
    PQconninfoOption *options = PQconninfoParse(place, &words);
    PQfreemem(words);
    if (!options)
        return error_set(err, -EINVAL,
                         "cannot parse the store's address; it should look like "
                         "postgresql://USER@HOST:PORT/DATABASE");
    if (given(options, "password") || given(options, "sslpassword")) {
        PQconninfoFree(options);
        return error_set(err, -EINVAL,
                         "the store's address contains a password, which other users of this "
                         "machine can see and which would be saved with results; move it to "
                         "~/.pgpass or a service file (~/.pg_service.conf)");
    }
    *ret_options = options;
    return 0;
}

static int connect_now(struct pg *db, struct error *err)
{
    PQconninfoOption *options = NULL;
    int r = check_address(db->place, &options, err);
    if (r < 0)
        return r;
    /* The address comes last, so that what it says wins; an empty word would hide a default. */
    const char *names[] = {"fallback_application_name", "connect_timeout", "tcp_user_timeout",
                           "client_encoding",           "dbname",          NULL};
    const char *values[] = {"assay", PG_CONNECT_S, "15000", "UTF8", db->place, NULL};
    PQfinish(db->connection);
    db->connection = PQconnectdbParams(names, values, 1);
    PQconninfoFree(options);
    db->statement_count = 0;
    db->in_transaction = false;
    db->pending = 0;
    db->first.code = 0;
    db->hung = false;
    if (PQstatus(db->connection) != CONNECTION_OK) {
        char words[512];
        pg_put_words(words, sizeof(words), PQerrorMessage(db->connection));
        bool credentials = PQconnectionNeedsPassword(db->connection);
        return error_set(err, -ENOTCONN, "%s: cannot connect: %s%s", db->place, words,
                         credentials ? "; put the password into ~/.pgpass or a service file" : "");
    }
    if (PQserverVersion(db->connection) < 120000)
        return error_set(err, -ENOTSUP, "%s: needs PostgreSQL 12 or newer, this is %d", db->place,
                         PQserverVersion(db->connection) / 10000);
    return 0;
}

static void set_patience(struct pg *db)
{
    PQconninfoOption *options = PQconninfo(db->connection);
    db->answer_ms = db->mode == STORE_READ ? -1 : pg_patience_ms(given(options, "connect_timeout"));
    PQconninfoFree(options);
}

static void ignore_notice(void *context, const PGresult *result)
{
    (void)context, (void)result;
}

/* Until the next call of PQgetResult does not block: there is an answer, or no connection.  A
 * server that has not said a word in patience_ms is given up. */
static void await(struct pg *db, int patience_ms)
{
    while (PQstatus(db->connection) == CONNECTION_OK) {
        int unsent = PQflush(db->connection);
        if (unsent < 0 || (unsent == 0 && !PQisBusy(db->connection)))
            return;
        struct pollfd fd = {.fd = PQsocket(db->connection),
                            .events = (short)(POLLIN | (unsent ? POLLOUT : 0))};
        int ready = poll(&fd, 1, patience_ms);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <=
            0) { /* libpq finds the connection closed, and says so to all that is pending */
            db->hung = true;
            shutdown(fd.fd, SHUT_RDWR);
        }
        if (!PQconsumeInput(db->connection))
            return;
    }
}

static PGresult *next_result(struct pg *db, int patience_ms)
{
    await(db, patience_ms);
    return PQgetResult(db->connection);
}

static bool is_good(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* What was sent outside of a pipeline: its result, or the first that failed; sent: whether it was.
 */
static int collect(struct pg *db, bool sent, int patience_ms, PGresult **ret_result,
                   struct error *err)
{
    PGresult *result = NULL, *more;
    while (sent && (more = next_result(db, patience_ms))) {
        PGresult *keep = result && !is_good(result) ? result : more;
        PQclear(keep == result ? more : result);
        result = keep;
    }
    if (!is_good(result)) {
        int r = explain(db, result, err);
        PQclear(result);
        return r;
    }
    *ret_result = result;
    return 0;
}

static int exec_plain(struct pg *db, const char *text, int patience_ms, struct error *err)
{
    PGresult *result = NULL;
    int r = collect(db, PQsendQuery(db->connection, text), patience_ms, &result, err);
    PQclear(result);
    return r;
}

static int reconnect(struct sql *base, struct error *err)
{
    struct pg *db = of(base);
    int r = connect_now(db, err);
    if (r < 0)
        return r;
    PQsetNoticeReceiver(db->connection, ignore_notice, NULL);
    PQsetnonblocking(db->connection, 1);
    set_patience(db);
    return db->mode == STORE_READ
               ? exec_plain(db, "SET default_transaction_read_only = on", -1, err)
               : 0;
}

static void close_connection(struct sql *base)
{
    struct pg *db = of(base);
    for (size_t i = 0; i < ROWS_MAX; i++)
        PQclear(db->rows[i].result);
    PQclear(db->last);
    PQfinish(db->connection);
    free(db->place);
    free(db);
}

static int open_connection(struct sql **ret_db, const char *place, enum store_mode mode,
                           struct error *err)
{
    int r = library_load(&pq_library, err);
    if (r < 0)
        return r;
    struct pg *db = memory_zalloc(1, sizeof(*db));
    db->base.engine = &sql_postgres;
    db->place = memory_strdup(place);
    db->mode = mode;
    r = reconnect(&db->base, err);
    if (r < 0) {
        close_connection(&db->base);
        return r;
    }
    *ret_db = &db->base;
    return 0;
}

/* ---- sending statements and reading their answers ---- */

/* Remembers the first failure of the pipeline. */
static void note_failure(struct pg *db, const PGresult *result)
{
    if (!db->first.code)
        db->first.code = explain(db, result, &db->first);
}

/* One statement's answer: its last result, NULL when the connection is gone. */
static PGresult *read_answer(struct pg *db)
{
    PGresult *result = NULL, *more;
    while ((more = next_result(db, db->answer_ms))) {
        PQclear(result);
        result = more;
        if (PQresultStatus(more) == PGRES_PIPELINE_SYNC)
            break; /* not followed by NULL */
    }
    if (!result || !is_good(result))
        if (!result || PQresultStatus(result) != PGRES_PIPELINE_SYNC)
            note_failure(db, result);
    return result;
}

/* Waits for all that was sent.  The last statement's result goes to ret_result. */
static int drain(struct pg *db, PGresult **ret_result, struct error *err)
{
    PGresult *result = NULL;
    if (db->pending && !PQpipelineSync(db->connection))
        note_failure(db, NULL);
    for (; db->pending && PQstatus(db->connection) == CONNECTION_OK; db->pending--) {
        PQclear(result);
        result = read_answer(db);
    }
    if (db->pending)
        note_failure(db, NULL);
    else if (result)
        PQclear(read_answer(db)); /* of the sync */
    db->pending = 0;
    if (db->first.code) {
        PQclear(result);
        if (err)
            *err = db->first;
        return db->first.code;
    }
    if (ret_result)
        *ret_result = result;
    else
        PQclear(result);
    return 0;
}

/* The name of the prepared statement; it is prepared at its first use. */
static int prepared(struct pg *db, const char *text, const struct sql_value *values, size_t count,
                    char name[static 16], struct error *err)
{
    size_t s = 0;
    while (s < db->statement_count && db->statements[s] != text)
        s++;
    snprintf(name, 16, "s%zu", s);
    if (s < db->statement_count)
        return 0;
    if (s == STATEMENTS_MAX)
        return error_set(err, -E2BIG, "%s: too many different statements", db->place);
    Oid types[SQL_PARAMETERS_MAX];
    pg_types(values, count, types);
    CLEANUP(memory_freep) char *translated = pg_parameters(text);
    int r = 0;
    if (db->in_transaction) {
        if (PQsendPrepare(db->connection, name, translated, (int)count, types))
            db->pending++;
        else
            r = explain(db, NULL, err);
    } else {
        PGresult *result = NULL;
        bool sent = PQsendPrepare(db->connection, name, translated, (int)count, types);
        r = collect(db, sent, db->answer_ms, &result, err);
        PQclear(result);
    }
    if (r == 0)
        db->statements[db->statement_count++] = text;
    return r;
}

/* Runs or, in a transaction, sends; ret_result NULL: the rows do not matter. */
static int execute(struct pg *db, const char *text, const struct sql_value *values, size_t count,
                   PGresult **ret_result, struct error *err)
{
    char name[16];
    if (db->first.code) { /* the transaction has failed already */
        if (err)
            *err = db->first;
        return db->first.code;
    }
    int r = prepared(db, text, values, count, name, err);
    if (r < 0)
        return r;
    CLEANUP(pg_packed_done) struct pg_packed p;
    pg_pack(&p, values, count);
    bool sent =
        PQsendQueryPrepared(db->connection, name, (int)count, p.values, p.lengths, p.formats, 1);
    if (!db->in_transaction)
        return collect(db, sent, db->answer_ms, ret_result, err);
    if (!sent)
        return explain(db, NULL, err);
    db->pending++;
    return ret_result ? drain(db, ret_result, err) : 0;
}

static int run(struct sql *base, const char *text, const struct sql_value *values, size_t count,
               struct error *err)
{
    struct pg *db = of(base);
    PQclear(db->last);
    db->last = NULL;
    int r = execute(db, text, values, count, db->in_transaction ? NULL : &db->last, err);
    if (r == 0 && db->pending >= PENDING_MAX)
        r = drain(db, &db->last, err);
    return r;
}

static int changed(struct sql *base, int64_t *ret_count, struct error *err)
{
    struct pg *db = of(base);
    if (db->pending) {
        PQclear(db->last);
        db->last = NULL;
        int r = drain(db, &db->last, err);
        if (r < 0)
            return r;
    }
    uint64_t count = 0;
    if (db->last)
        parse_u64(PQcmdTuples(db->last), &count, NULL);
    *ret_count = (int64_t)count;
    return 0;
}

static int query(struct sql *base, struct sql_rows **ret_rows, const char *text,
                 const struct sql_value *values, size_t count, struct error *err)
{
    struct pg *db = of(base);
    struct pg_rows *rows = db->rows;
    while (rows < db->rows + ROWS_MAX && rows->busy)
        rows++;
    assert(rows < db->rows + ROWS_MAX);
    PGresult *result = NULL;
    int r = execute(db, text, values, count, &result, err);
    if (r < 0)
        return r;
    *rows = (struct pg_rows){.base.db = base, .result = result, .row = -1, .busy = true};
    *ret_rows = &rows->base;
    return 0;
}

static const struct pg_rows *rows_of(const struct sql_rows *rows)
{
    return (const struct pg_rows *)rows;
}

static int next(struct sql_rows *base, struct error *err)
{
    struct pg_rows *rows = (struct pg_rows *)base;
    (void)err;
    return ++rows->row < PQntuples(rows->result);
}

static void rows_done(struct sql_rows *base)
{
    struct pg_rows *rows = (struct pg_rows *)base;
    PQclear(rows->result);
    *rows = (struct pg_rows){0};
}

/* ---- columns ---- */

static bool column_is_null(const struct sql_rows *base, int column)
{
    const struct pg_rows *rows = rows_of(base);
    return PQgetisnull(rows->result, rows->row, column);
}

static const char *column_text(const struct sql_rows *base, int column)
{
    const struct pg_rows *rows = rows_of(base);
    return column_is_null(base, column) ? NULL : PQgetvalue(rows->result, rows->row, column);
}

static const void *column_bytes(const struct sql_rows *base, int column, size_t *ret_size)
{
    const struct pg_rows *rows = rows_of(base);
    *ret_size = (size_t)PQgetlength(rows->result, rows->row, column);
    return column_text(base, column);
}

static double column_real(const struct sql_rows *base, int column)
{
    return pg_real(column_text(base, column), PQftype(rows_of(base)->result, column));
}

static int64_t column_i64(const struct sql_rows *base, int column)
{
    return pg_i64(column_text(base, column), PQftype(rows_of(base)->result, column));
}

/* ---- transactions ---- */

static int send_plain(struct pg *db, const char *text, struct error *err)
{
    if (!PQsendQueryParams(db->connection, text, 0, NULL, NULL, NULL, NULL, 1))
        return explain(db, NULL, err);
    db->pending++;
    return 0;
}

static int begin(struct sql *base, enum sql_transaction kind, struct error *err)
{
    struct pg *db = of(base);
    if (PQstatus(db->connection) != CONNECTION_OK || !PQenterPipelineMode(db->connection))
        return lost(db, err);
    db->in_transaction = true;
    db->first.code = 0;
    int r = send_plain(
        db, kind == SQL_ONE_VIEW ? "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" : "BEGIN",
        err);
    if (r == 0 && kind == SQL_ALONE) /* any number that no other program takes by accident */
        r = send_plain(db, "SELECT pg_advisory_xact_lock(7016996765293437281)", err);
    if (r < 0)
        base->engine->rollback(base);
    return r;
}

/* Outside of a transaction: statements that were sent in a failed one may not be prepared. */
static void leave(struct pg *db, bool failed)
{
    db->in_transaction = false;
    db->first.code = 0;
    if (PQstatus(db->connection) != CONNECTION_OK)
        return;
    PQexitPipelineMode(db->connection);
    if (failed) {
        exec_plain(db, "DEALLOCATE ALL", db->answer_ms, NULL);
        db->statement_count = 0;
    }
}

static void rollback(struct sql *base)
{
    struct pg *db = of(base);
    if (!db->in_transaction)
        return;
    bool failed = drain(db, NULL, NULL) < 0;
    db->first.code = 0;
    if (send_plain(db, "ROLLBACK", NULL) == 0)
        drain(db, NULL, NULL);
    leave(db, failed);
}

static int commit(struct sql *base, struct error *err)
{
    struct pg *db = of(base);
    PGresult *result = NULL;
    int r = db->first.code ? drain(db, NULL, err) : send_plain(db, "COMMIT", err);
    if (r == 0)
        r = drain(db, &result, err);
    if (r == 0 && !str_eq(PQcmdStatus(result), "COMMIT"))
        r = error_set(err, -EIO, "%s: the server rolled back a transaction", db->place);
    PQclear(result);
    if (r < 0)
        rollback(base);
    else
        leave(db, false);
    return r;
}

/* The simple protocol takes several statements at once, but not in a pipeline. */
static int script(struct sql *base, const char *text, struct error *err)
{
    struct pg *db = of(base);
    int r = drain(db, NULL, err);
    if (r < 0)
        return r;
    if (db->in_transaction)
        PQexitPipelineMode(db->connection);
    CLEANUP(memory_freep) char *translated = pg_schema(text);
    r = exec_plain(db, translated, -1, err); /* an index of a large store takes its time */
    if (db->in_transaction && !PQenterPipelineMode(db->connection) && r == 0)
        r = lost(db, err);
    if (r < 0 && db->in_transaction)
        db->first = (struct error){.code = r};
    return r;
}

/* Not by to_regclass, which may answer from a cache that does not know yet what was committed while
 * an advisory lock was waited for. */
static int has_table(struct sql *db, const char *name, bool *ret_there, struct error *err)
{
    struct sql_rows *rows;
    struct sql_value value = {.type = 't', .bytes = name, .size = strlen(name)};
    int r = query(db, &rows,
                  "SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n"
                  " ON n.oid = c.relnamespace WHERE c.relname = ? AND c.relkind = 'r'"
                  " AND n.nspname = ANY (current_schemas(false))",
                  &value, 1, err);
    if (r < 0)
        return r;
    *ret_there = next(rows, err) > 0;
    rows_done(rows);
    return 0;
}

const struct sql_engine sql_postgres = {
    .open = open_connection,
    .close = close_connection,
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
