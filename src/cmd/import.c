/* SPDX-License-Identifier: MIT */
/* `assay import FILE …`: results of other benchmark tools, put into the store. */
#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "cmd/cmd.h"
#include "profile/given/given.h"
#include "session/keep_harness.h"

#include <errno.h>
#include <stddef.h>

struct import_options {
    const char *db, *format, *name, *commit, *branch, *machine, *date;
    const char *json;
    bool list, dry;
};

#define O(field) offsetof(struct import_options, field)

static const struct option options[] = {
    {0, "db", OPTION_STRING, O(db), "PATH", CMD_DB_HELP, "file"},
    {'f', "format", OPTION_STRING, O(format), "FORMAT",
     "the file's format, if assay does not recognise it", "!assay completion --list formats"},
    {0, "list", OPTION_FLAG, O(list), NULL, "list the formats", NULL},
    {0, "name", OPTION_STRING, O(name), "NAME",
     "name of the experiment (default: the program that the file names, or the format)", NULL},
    {0, "commit", OPTION_STRING, O(commit), "COMMIT", "the commit that was measured", NULL},
    {0, "branch", OPTION_STRING, O(branch), "BRANCH", "the branch that it was on", NULL},
    {0, "machine", OPTION_STRING, O(machine), "CLASS",
     "the class of machines it was measured on (default: what the file says)", NULL},
    {0, "date", OPTION_STRING, O(date), "TIME",
     "when it was measured, e.g. 2026-11-17T19:51:22+01:00 (default: what the file says, or now)",
     NULL},
    {'n', "dry-run", OPTION_FLAG, O(dry), NULL, "read the files and keep nothing", NULL},
    {'j', "json", OPTION_OPTIONAL, O(json), "FILE", CMD_JSON_HELP, "file"},
    {0},
};

static int list_formats(void)
{
    for (const struct harness_format *f = harness_formats; f->name; f++)
        printf("%-17s %s\n", f->name, f->title);
    return EXIT_DONE;
}

/* What was read, where nothing is to be kept. */
static void count_values(const struct harness_results *r, struct keep_harness_tally *tally)
{
    *tally = (struct keep_harness_tally){.cells = r->count};
    snprintf(tally->name, sizeof(tally->name), "%s", *r->suite ? r->suite : r->format->name);
    for (size_t b = 0; b < r->count; b++) {
        size_t most = r->benchmarks[b].failure != NULL;
        for (size_t m = 0; m < r->benchmarks[b].metric_count; m++) {
            tally->values += r->benchmarks[b].metrics[m].count;
            most =
                r->benchmarks[b].metrics[m].count > most ? r->benchmarks[b].metrics[m].count : most;
        }
        tally->runs += most;
        tally->failed += r->benchmarks[b].failure != NULL;
        tally->failed_runs += r->benchmarks[b].failed_runs;
    }
}

/* Adds a line to the result in JSON, if one is wanted, and prints the one for people. */
static void print_tally(const struct import_options *o, const char *path,
                        const struct harness_results *r, const struct keep_harness_tally *tally,
                        struct strbuf *json)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    if (o->json) {
        struct json j = {.out = json, .compact = true};
        json_object(&j, NULL);
        json_string(&j, "format", "assay-import-1");
        json_string(&j, "file", path);
        json_string(&j, "tool", r->format->name);
        json_string(&j, "version", r->version);
        if (o->dry)
            json_null(&j, "experiment");
        else
            json_i64(&j, "experiment", tally->id);
        json_string(&j, "name", o->name ? o->name : tally->name);
        json_u64(&j, "benchmarks", tally->cells);
        json_u64(&j, "failed", tally->failed);
        json_u64(&j, "runs", tally->runs);
        json_u64(&j, "failed_runs", tally->failed_runs);
        json_u64(&j, "values", tally->values);
        json_end(&j);
        strbuf_putc(json, '\n');
    }
    if (cmd_wants_text(o->json)) {
        if (o->dry)
            strbuf_printf(&out, "%s: ", path);
        else
            strbuf_printf(&out, "%s: experiment %lld (%s): ", path, (long long)tally->id,
                          tally->name);
        strbuf_printf(&out, "%zu %s, %zu %s, %zu %s from %s", tally->cells,
                      plural(tally->cells, "benchmark", "benchmarks"), tally->runs,
                      plural(tally->runs, "run", "runs"), tally->values,
                      plural(tally->values, "value", "values"), r->format->title);
        if (tally->failed)
            strbuf_printf(&out, "; %zu %s failed", tally->failed,
                          plural(tally->failed, "benchmark", "benchmarks"));
        if (tally->failed_runs)
            strbuf_printf(&out, "; %zu %s ended with an error and %s counted", tally->failed_runs,
                          plural(tally->failed_runs, "run", "runs"),
                          plural(tally->failed_runs, "is", "are"));
        strbuf_putc(&out, '\n');
    }
    fwrite(strbuf_text(&out), 1, out.length, stdout);
}

/* The store is opened, and created, when a file was read: a wrong name leaves no empty store. */
static int import_file(const struct import_options *o, struct store **store, uint64_t at_ns,
                       const char *path, struct strbuf *json, struct error *err)
{
    CLEANUP(harness_results_done) struct harness_results results = {0};
    struct keep_harness_tally tally;
    struct keep_harness_options ko = {.name = o->name,
                                      .commit = o->commit,
                                      .branch = o->branch,
                                      .machine = o->machine,
                                      .measured_at_ns = at_ns,
                                      .path = path};
    int r = harness_read(&results, path, o->format, err);
    if (r == -ENOMSG && !o->format && given_kind_of(path) != GIVEN_NONE)
        error_set(err, r,
                  "%s: this is a profile, or compressed: 'assay report', 'assay diff' "
                  "and 'assay html' read a profile as it is; unpack results first",
                  path);
    if (r == 0 && o->dry)
        count_values(&results, &tally);
    else if (r == 0 && !*store)
        r = store_open(store, store_place(o->db), STORE_CREATE, err);
    if (r == 0 && !o->dry)
        r = keep_harness(*store, &results, &ko, &tally, err);
    if (r == 0)
        print_tally(o, path, &results, &tally, json);
    return r;
}

/* Every file is tried; the code is that of the worst. */
static int import_all(const struct import_options *o, uint64_t at_ns, int count, char **paths)
{
    CLEANUP(store_closep) struct store *store = NULL;
    CLEANUP(strbuf_done) struct strbuf json = {0};
    struct error err = {0};
    int code = EXIT_DONE;
    for (int i = 0; i < count; i++)
        if (import_file(o, &store, at_ns, paths[i], &json, &err) < 0)
            code = cmd_fail(&verb_import, &err, EXIT_TROUBLE);
    if (o->json && cmd_write(o->json, &json, &err) < 0)
        code = cmd_fail(&verb_import, &err, EXIT_TROUBLE);
    return code;
}

static int run(int argc, char **argv)
{
    struct error err = {0};
    struct import_options o = {0};
    uint64_t at_ns = 0;
    int first = options_parse_mixed(options, &o, argc, argv, &err);
    if (first == OPTIONS_HELP)
        return cmd_help(&verb_import);
    if (first > 0 && o.list)
        return list_formats();
    if (first > 0 && first == argc)
        first = error_set(&err, -EINVAL, "give a file, e.g. assay import results.json");
    if (first > 0 && o.name && !*o.name)
        first = error_set(&err, -EINVAL, "--name must not be empty");
    if (first > 0 && o.date && (at_ns = harness_parse_time(o.date)) == 0)
        first = error_set(&err, -EINVAL, "--date %s: not a time like 2026-11-17T19:51:22+01:00",
                          o.date);
    if (first < 0)
        return cmd_usage(&verb_import, &err);
    return import_all(&o, at_ns, argc - first, argv + first);
}

const struct verb verb_import = {
    .name = "import",
    .summary = "keep results of other benchmark tools in the store",
    .synopsis = "[options] FILE …",
    .examples = "  ./bench --benchmark_format=json > new.json; assay import new.json\n"
                "  assay import --name parser --commit \"$(git rev-parse HEAD)\" target/criterion\n"
                "  go test -bench . | assay import -\n",
    .options = options,
    .run = run,
};
