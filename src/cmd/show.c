/* SPDX-License-Identifier: MIT */
/* `assay show`: one experiment of the store. */
#include "base/memory.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "report/metrics/openmetrics.h"
#include "report/text/experiment.h"
#include "report/text/stat.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

struct show_options {
    const char *db;
    const char *json, *csv;
    bool all, wide, openmetrics, spec, machine, environment;
};

#define O(field) offsetof(struct show_options, field)

static const struct option options[] = {
    {0, "db", OPTION_STRING, O(db), "PATH", CMD_DB_HELP, "file"},
    {'a', "all", OPTION_FLAG, O(all), NULL, "show every metric, not only the headlines", NULL},
    {'j', "json", OPTION_OPTIONAL, O(json), "FILE",
     "print JSON with every raw value, or write it to this file", "file"},
    {0, "csv", OPTION_OPTIONAL, O(csv), "FILE",
     "print CSV with every raw value, a line each, or write it to this file", "file"},
    {0, "wide", OPTION_FLAG, O(wide), NULL,
     "CSV with a line for each run, a column for each metric", NULL},
    {0, "openmetrics", OPTION_FLAG, O(openmetrics), NULL,
     "print the figures of each cell as OpenMetrics text, for Prometheus", NULL},
    {0, "spec", OPTION_FLAG, O(spec), NULL, "print the spec as it was run", NULL},
    {0, "machine", OPTION_FLAG, O(machine), NULL, "print the description of the machine as JSON",
     NULL},
    {0, "environment", OPTION_FLAG, O(environment), NULL, "print the environment as JSON", NULL},
    {0},
};

static int show_document(struct store *store, int64_t id, const char *kind, struct error *err)
{
    CLEANUP(memory_freep) char *text = NULL;
    int r = store_document(store, id, kind, &text, err);
    if (r < 0)
        return cmd_fail(&verb_show, err, EXIT_TROUBLE);
    fputs(text, stdout);
    if (!str_has_suffix(text, "\n"))
        putchar('\n');
    return EXIT_DONE;
}

static int show_with(const struct show_options *o, const char *word, struct error *err)
{
    CLEANUP(store_closep) struct store *store = NULL;
    int64_t id;
    int r = store_open(&store, store_place(o->db), STORE_READ, err);
    if (r == 0)
        r = store_find(store, word, &id, err);
    if (r < 0)
        return cmd_fail(&verb_show, err, EXIT_TROUBLE);
    if (o->spec || o->machine || o->environment)
        return show_document(store, id,
                             o->spec      ? "spec"
                             : o->machine ? "machine"
                                          : "environment",
                             err);
    struct dataset d;
    r = dataset_load(&d, store, id, err);
    if (r < 0)
        return cmd_fail(&verb_show, err, EXIT_TROUBLE);
    CLEANUP(strbuf_done) struct strbuf out = {0};
    bool colour = term_has_colour(STDOUT_FILENO);
    const char *place = o->json ? o->json : o->csv ? o->csv : o->wide || o->openmetrics ? "" : NULL;
    if (o->json)
        report_experiment_json(&out, &d);
    else if (o->openmetrics)
        report_openmetrics(&out, &d);
    else if (o->wide)
        report_experiment_csv_wide(&out, &d);
    else if (o->csv)
        report_experiment_csv(&out, &d);
    r = place ? cmd_write(place, &out, err) : 0;
    strbuf_clear(&out);
    if (r == 0 && cmd_wants_text(place)) {
        size_t columns = isatty(STDOUT_FILENO) ? term_columns(STDOUT_FILENO) : 0;
        report_head_text(&out, &d, colour);
        report_cells_text(&out, &d,
                          &(struct cells_view){.all = o->all,
                                               .colour = colour,
                                               .bars = term_has_utf8(STDOUT_FILENO),
                                               .columns = columns});
        strbuf_fit_lines(&out, columns);
    }
    dataset_done(&d);
    fwrite(strbuf_text(&out), 1, out.length, stdout);
    return r < 0 ? cmd_fail(&verb_show, err, EXIT_TROUBLE) : EXIT_DONE;
}

static int run(int argc, char **argv)
{
    struct error err = {0};
    struct show_options o = {0};
    int first = options_parse_mixed(options, &o, argc, argv, &err);
    if (first == OPTIONS_HELP)
        return cmd_help(&verb_show);
    if (first > 0 && argc - first > 1)
        first = error_set(&err, -EINVAL, "give one experiment at most");
    if (first > 0 && !!o.json + o.openmetrics + (o.csv || o.wide) > 1)
        first = error_set(&err, -EINVAL, "--json, --csv and --openmetrics cannot be used together");
    if (first > 0 && o.csv && (str_eq(o.csv, "wide") || str_eq(o.csv, "long")))
        first = error_set(&err, -EINVAL,
                          "--csv=%s: --csv names a file; for a line for each run, use --csv --wide",
                          o.csv);
    if (first < 0)
        return cmd_usage(&verb_show, &err);
    return show_with(&o, first < argc ? argv[first] : "last", &err);
}

const struct verb verb_show = {
    .name = "show",
    .summary = "show one experiment from the store",
    .synopsis = "[options] [EXPERIMENT]",
    .examples = "  assay show            the newest\n"
                "  assay show 12 --all\n"
                "  assay show sort --csv > values.csv\n"
                "  assay show --openmetrics > /var/lib/prometheus/node-exporter/assay.prom\n",
    .options = options,
    .run = run,
    .words = "!assay completion --list experiments",
};
