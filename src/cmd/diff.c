/* SPDX-License-Identifier: MIT */
/* `assay diff A B`: two profiles, or two sets of profiled runs, function by function. */
#include "report/profile/diff.h"
#include "analysis/profiles.h"
#include "base/memory.h"
#include "base/term.h"
#include "cmd/cmd.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

struct diff_cli {
    const char *db, *in, *event, *root, *kallsyms;
    uint64_t limit;
    bool all;
    const char *json, *csv, *markdown;
};

#define O(field) offsetof(struct diff_cli, field)

static const struct option options[] = {
    {'e', "event", OPTION_STRING, O(event), "EVENT",
     "compare samples of this event (default: time on the CPU)", "event"},
    {0, "db", OPTION_STRING, O(db), "PATH", CMD_DB_HELP, "file"},
    {0, "in", OPTION_STRING, O(in), "EXPERIMENT",
     "the experiment for factor=value (default: the newest with that factor)", NULL},
    {0, "symfs", OPTION_STRING, O(root), "DIR", "look for binaries in this directory first",
     "file"},
    {0, "kallsyms", OPTION_STRING, O(kallsyms), "FILE",
     "read kernel symbols from this copy of /proc/kallsyms", "file"},
    {0, NULL, OPTION_HEADING, 0, NULL, "Output", NULL},
    {'a', "all", OPTION_FLAG, O(all), NULL, "show every function, however small its change", NULL},
    {'n', "limit", OPTION_U64, O(limit), "N", "show the N largest changes", NULL},
    {'j', "json", OPTION_OPTIONAL, O(json), "FILE", CMD_JSON_HELP, "file"},
    {0, "csv", OPTION_OPTIONAL, O(csv), "FILE", CMD_CSV_HELP, "file"},
    {0, "markdown", OPTION_OPTIONAL, O(markdown), "FILE", CMD_MARKDOWN_HELP, "file"},
    {0},
};

struct printer {
    const struct diff_cli *cli;
    const char *place;       /* of the result, NULL for none */
    struct strbuf out, text; /* the result, and the text for people */
    struct json json;
    size_t count;
};

static void print(struct printer *p, const struct diff *d, const struct profile_pair *pair)
{
    struct diff_view view = {
        .d = d,
        .names = {pair->sides[SIDE_A].name, pair->sides[SIDE_B].name},
        .label = pair->label,
        .emulated = pair->emulated,
        .all = p->cli->all,
        .row_limit = p->cli->limit,
        .colour = term_has_colour(STDOUT_FILENO),
    };
    if (p->cli->json) {
        report_diff_json(&p->json, &view);
    } else if (p->cli->csv) {
        if (!p->count)
            report_diff_csv_head(&p->out);
        report_diff_csv(&p->out, &view);
        if (!p->count && pair->emulated)
            fprintf(stderr, "assay diff: %s\n", pair->emulated);
    } else if (p->cli->markdown) {
        if (pair->label[0])
            strbuf_printf(&p->out, "%s**%s**\n\n", p->count ? "\n" : "", pair->label);
        report_diff_markdown(&p->out, &view);
    }
    if (cmd_wants_text(p->place)) {
        strbuf_puts(&p->text, p->count ? "\n" : "");
        report_diff_text(&p->text, &view);
    }
    p->count++;
}

static int compare_pair(struct printer *p, const struct profile_pair *pair, struct error *err)
{
    struct profile_loads loads = {
        .event = p->cli->event,
        .symbols = {.file_root = p->cli->root, .kallsyms_path = p->cli->kallsyms}};
    struct diff d = {0};
    int r = profile_loads_read(&loads, pair, err);
    if (r == 0)
        r = diff_build(&d, &loads.options, err);
    if (r == 0)
        print(p, &d, pair);
    diff_done(&d);
    profile_loads_done(&loads);
    return r;
}

static int compare(const struct diff_cli *cli, const char *a, const char *b)
{
    struct error err = {0};
    struct profile_pairs pairs = {0};
    struct printer p = {.cli = cli,
                        .place = cli->json  ? cli->json
                                 : cli->csv ? cli->csv
                                            : cli->markdown};
    p.json.out = &p.out;
    if (cli->json) {
        json_object(&p.json, NULL);
        json_string(&p.json, "format", "assay-diff-1");
        json_array(&p.json, "diffs");
    }
    int r = profile_pairs_find(&pairs, a, b, cli->in, cli->db, &err);
    for (size_t i = 0; r == 0 && i < pairs.count; i++)
        r = compare_pair(&p, &pairs.items[i], &err);
    if (cli->json) {
        json_end(&p.json);
        json_end(&p.json);
        strbuf_putc(&p.out, '\n');
    }
    if (r == 0 && p.place)
        r = cmd_write(p.place, &p.out, &err);
    if (r == 0)
        r = cmd_write(NULL, &p.text, &err);
    strbuf_done(&p.out);
    strbuf_done(&p.text);
    profile_pairs_done(&pairs);
    return r < 0 ? cmd_fail(&verb_diff, &err, EXIT_TROUBLE) : EXIT_DONE;
}

static int run(int argc, char **argv)
{
    struct error err = {0};
    struct diff_cli cli = {0};
    int first = options_parse_mixed(options, &cli, argc, argv, &err);
    if (first == OPTIONS_HELP)
        return cmd_help(&verb_diff);
    if (first > 0 && argc - first != 2)
        first = error_set(&err, -EINVAL,
                          "expected two recordings, two experiments, or two factor=value pairs");
    if (first > 0 && !!cli.json + !!cli.csv + !!cli.markdown > 1)
        first = error_set(&err, -EINVAL, "--json, --csv and --markdown cannot be used together");
    if (first < 0)
        return cmd_usage(&verb_diff, &err);
    return compare(&cli, argv[first], argv[first + 1]);
}

const struct verb verb_diff = {
    .name = "diff",
    .summary = "compare two profiles, function by function",
    .synopsis = "[options] A B",
    .examples =
        "  assay diff old.data new.data\n"
        "  assay diff 'old-*.data' 'new-*.data'         several runs of each give intervals\n"
        "  assay diff variant=send8 variant=sendmsg     profiles of the newest experiment\n"
        "  assay diff '12 size=64' '15 size=64'         of two experiments\n",
    .options = options,
    .run = run,
};
