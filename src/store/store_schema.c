/* SPDX-License-Identifier: MIT */
/*
 * The tables.  Each entry of `versions` brings a store from one version to the next; an entry that
 * was released is never changed, only followed by another.
 *
 * Texts that repeat (specs, machine records) are kept once, by their hash, apart from the small
 * rows that `assay list` reads.  Counts that a list shows are kept with the experiment, so that a
 * list never looks at runs.
 */
#include "base/strings.h"
#include "store/store_internal.h"

#include <errno.h>

static const char version_1[] =
    "CREATE TABLE document ("
    "  hash TEXT PRIMARY KEY, text TEXT NOT NULL);"
    "CREATE TABLE experiment ("
    "  id INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  uuid TEXT NOT NULL UNIQUE,"
    "  name TEXT NOT NULL,"
    "  question TEXT NOT NULL,"
    "  state TEXT NOT NULL,"
    "  selection TEXT NOT NULL,"
    "  baseline TEXT NOT NULL,"
    "  headline TEXT NOT NULL,"
    "  spec_path TEXT NOT NULL,"
    "  spec_hash TEXT NOT NULL,"
    "  git_commit TEXT NOT NULL,"
    "  seed INTEGER NOT NULL,"
    "  started_at_ns INTEGER NOT NULL,"
    "  updated_at_ns INTEGER NOT NULL,"
    "  ended_at_ns INTEGER,"
    "  owner TEXT NOT NULL,"
    "  cell_count INTEGER NOT NULL,"
    "  run_count INTEGER NOT NULL,"
    "  failed_count INTEGER NOT NULL,"
    "  disturbed_count INTEGER NOT NULL);"
    "CREATE INDEX experiment_by_name ON experiment (name);"
    "CREATE INDEX experiment_by_spec ON experiment (spec_hash);"
    "CREATE INDEX experiment_by_commit ON experiment (git_commit);"
    "CREATE TABLE attachment ("
    "  experiment INTEGER NOT NULL REFERENCES experiment ON DELETE CASCADE,"
    "  kind TEXT NOT NULL,"
    "  hash TEXT NOT NULL REFERENCES document,"
    "  PRIMARY KEY (experiment, kind)) WITHOUT ROWID;"
    "CREATE INDEX attachment_by_hash ON attachment (hash);"
    "CREATE TABLE factor ("
    "  experiment INTEGER NOT NULL REFERENCES experiment ON DELETE CASCADE,"
    "  ordinal INTEGER NOT NULL,"
    "  name TEXT NOT NULL,"
    "  PRIMARY KEY (experiment, ordinal)) WITHOUT ROWID;"
    "CREATE TABLE cell ("
    "  id INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  experiment INTEGER NOT NULL REFERENCES experiment ON DELETE CASCADE,"
    "  ordinal INTEGER NOT NULL,"
    "  label TEXT NOT NULL,"
    "  command TEXT NOT NULL,"
    "  build_id TEXT,"
    "  UNIQUE (experiment, ordinal));"
    "CREATE TABLE level ("
    "  cell INTEGER NOT NULL REFERENCES cell ON DELETE CASCADE,"
    "  ordinal INTEGER NOT NULL,"
    "  value TEXT NOT NULL,"
    "  PRIMARY KEY (cell, ordinal)) WITHOUT ROWID;"
    "CREATE TABLE metric ("
    "  id INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  name TEXT NOT NULL,"
    "  unit TEXT NOT NULL,"
    "  better INTEGER NOT NULL,"
    "  kind TEXT NOT NULL,"
    "  UNIQUE (name, unit, better, kind));"
    "CREATE TABLE run ("
    "  id INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  experiment INTEGER NOT NULL REFERENCES experiment ON DELETE CASCADE,"
    "  cell INTEGER NOT NULL REFERENCES cell ON DELETE CASCADE,"
    "  round INTEGER NOT NULL,"
    "  attempt INTEGER NOT NULL,"
    "  position INTEGER NOT NULL,"
    "  started_at_ns INTEGER NOT NULL,"
    "  wall_ns INTEGER NOT NULL,"
    "  status INTEGER NOT NULL,"
    "  disturbed INTEGER NOT NULL,"
    "  layout TEXT NOT NULL,"
    "  output TEXT,"
    "  ticks BLOB,"
    "  UNIQUE (cell, round, attempt));"
    "CREATE INDEX run_by_experiment ON run (experiment);"
    "CREATE TABLE value ("
    "  run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,"
    "  metric INTEGER NOT NULL REFERENCES metric,"
    "  value REAL,"
    "  enabled_ns INTEGER,"
    "  running_ns INTEGER,"
    "  PRIMARY KEY (run, metric)) WITHOUT ROWID;"
    "CREATE TABLE series ("
    "  run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,"
    "  metric INTEGER NOT NULL REFERENCES metric,"
    "  points BLOB NOT NULL,"
    "  PRIMARY KEY (run, metric)) WITHOUT ROWID;"
    "CREATE TABLE disturbance ("
    "  run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,"
    "  kind TEXT NOT NULL,"
    "  amount REAL,"
    "  words TEXT NOT NULL,"
    "  PRIMARY KEY (run, kind)) WITHOUT ROWID;";

/* Orders that lists ask for: PostgreSQL's indexes do not end with the row's number by themselves,
 * and a search by a factor's name must not look at every experiment. */
static const char version_2[] = "DROP INDEX experiment_by_name;"
                                "CREATE INDEX experiment_by_name ON experiment (name, id);"
                                "DROP INDEX experiment_by_spec;"
                                "CREATE INDEX experiment_by_spec ON experiment (spec_hash, id);"
                                "DROP INDEX run_by_experiment;"
                                "CREATE INDEX run_by_experiment ON run (experiment, id);"
                                "CREATE INDEX factor_by_name ON factor (name, experiment);";

/* What a metric is, said once by whoever measures it (stats/metric.h): 1 a speed, 2 a count, 4 a
 * total.  For what version 0.1 measured, by the names it used.  And whether the number of rounds
 * depended on what they said. */
static const char version_3[] =
    "ALTER TABLE experiment ADD COLUMN adaptive INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE metric ADD COLUMN traits INTEGER NOT NULL DEFAULT 0;"
    "UPDATE metric SET traits = 1 WHERE (kind = 'time' AND name = 'wall')"
    " OR (kind = 'metric' AND (better = 1 OR (better = 0 AND unit = 'ns')));"
    "UPDATE metric SET traits = 2 WHERE unit = '' AND (kind = 'counter' OR kind = 'time');";

/* What a history is told apart by, and what people said of its changes: a change is "accepted" with
 * a note, was "told" to whoever wanted an alarm, or the commit was "searched".  It is found again
 * by the time of the first result of its new level and by its direction. */
static const char version_4[] =
    "ALTER TABLE experiment ADD COLUMN branch TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE experiment ADD COLUMN machine_class TEXT NOT NULL DEFAULT '';"
    "CREATE TABLE remark ("
    "  id INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  kind TEXT NOT NULL,"
    "  name TEXT NOT NULL,"
    "  cell TEXT NOT NULL,"
    "  metric TEXT NOT NULL,"
    "  unit TEXT NOT NULL,"
    "  branch TEXT NOT NULL,"
    "  machine_class TEXT NOT NULL,"
    "  at_ns INTEGER NOT NULL,"
    "  direction INTEGER NOT NULL,"
    "  note TEXT NOT NULL,"
    "  written_at_ns INTEGER NOT NULL,"
    "  UNIQUE (kind, name, cell, metric, unit, branch, machine_class, at_ns, direction));";

static const char *const versions[] = {version_1, version_2, version_3, version_4};
enum { VERSION_NEWEST = sizeof(versions) / sizeof(versions[0]) };

static int read_version(struct sql *sql, int64_t *ret_version, struct error *err)
{
    bool there;
    int r = sql_has_table(sql, "store", &there, err);
    if (r < 0 || !there) {
        *ret_version = 0;
        return r;
    }
    struct sql_rows *rows;
    r = sql_query(sql, &rows, err, "SELECT version FROM store", NULL);
    if (r < 0)
        return r;
    r = sql_next(rows, err);
    if (r > 0)
        *ret_version = sql_i64(rows, 0);
    else if (r == 0)
        r = error_set(err, -EINVAL, "the table 'store' is empty: this is not an assay store");
    sql_rows_done(rows);
    return r < 0 ? r : 0;
}

static int upgrade(struct sql *sql, struct error *err)
{
    int64_t version = 0;
    int r = read_version(sql, &version, err); /* again: another process may have been quicker */
    if (r == 0 && version == 0)
        r = sql_script(sql,
                       "CREATE TABLE store (version INTEGER NOT NULL, application TEXT NOT NULL);"
                       "INSERT INTO store VALUES (0, 'assay')",
                       err);
    for (; r == 0 && version < VERSION_NEWEST; version++)
        r = sql_script(sql, versions[version], err);
    if (r == 0)
        r = sql_run(sql, err, "UPDATE store SET version = ?", "i", (int64_t)VERSION_NEWEST);
    return r;
}

int store_migrate(struct sql *sql, bool may_write, struct error *err)
{
    int64_t version = 0;
    int r = read_version(sql, &version, err);
    if (r < 0)
        return r;
    if (version > VERSION_NEWEST)
        return error_set(err, -EPROTO,
                         "a newer version of assay wrote this store (schema %lld; this version "
                         "knows up to %d); update assay",
                         (long long)version, VERSION_NEWEST);
    if (version == VERSION_NEWEST)
        return 0;
    if (!may_write)
        return error_set(err, -EPROTO,
                         version ? "the store has an older schema; 'assay db upgrade' upgrades it"
                                 : "this database is not an assay store");
    r = sql_begin(sql, SQL_ALONE, err);
    if (r < 0)
        return r;
    r = upgrade(sql, err);
    if (r < 0) {
        sql_rollback(sql);
        return error_wrap(err, r, "upgrading the schema");
    }
    return sql_commit(sql, err);
}
