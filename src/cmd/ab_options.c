/* SPDX-License-Identifier: MIT */
/* The options of `assay ab`: see ab.h. */
#include "base/memory.h"
#include "cmd/ab.h"
#include "cmd/cmd.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

enum { COPIES_MAX = 4096 };

#define O(field) offsetof(struct ab_options, field)

const struct option ab_option_table[] = {
    {0, NULL, OPTION_HEADING, 0, NULL, "How often", NULL},
    {'r', "rounds", OPTION_U64, O(rounds), "N", "run exactly N rounds", NULL},
    {'t', "time", OPTION_SECONDS, O(time_ns), "TIME", "measure for this long, e.g. 30s or 2m",
     NULL},
    {0, "precision", OPTION_STRING, O(precision), "PERCENT",
     "stop when the 95 % interval is within ± this, e.g. 1% (at most --time, or 10m)", NULL},
    {'m', "min-rounds", OPTION_U64, O(min_rounds), "N", "run at least N rounds (10)", NULL},
    {'M', "max-rounds", OPTION_U64, O(max_rounds), "N", "run at most N rounds", NULL},
    {'w', "warmup", OPTION_U64, O(warmup), "N", "warm-up rounds, which are not counted (1)", NULL},
    {0, "seed", OPTION_U64, O(seed), "N", "repeat the order of the run that printed this seed",
     NULL},
    {0, "duet", OPTION_FLAG, O(duet), NULL,
     "run two commands at the same time on two CPUs, swapped after each round", NULL},
    {0, NULL, OPTION_HEADING, 0, NULL, "What to run", NULL},
    {'n', "name", OPTION_LIST, O(names), "NAME", "a name for a command; repeat for each, in order",
     NULL},
    {'L', "parameter-list", OPTION_LIST, O(lists), "VAR VALUES",
     "replace {VAR} in commands with each value, e.g. -L size 64,512", NULL},
    {'P', "parameter-scan", OPTION_LIST, O(scans), "VAR MIN MAX",
     "replace {VAR} with each number from MIN to MAX", NULL},
    {'D', "parameter-step-size", OPTION_STRING, O(step), "STEP", "step for -P (1)", NULL},
    {'s', "setup", OPTION_LIST, O(setups), "CMD",
     "run once before all rounds; may be repeated, one for each command", NULL},
    {'p', "prepare", OPTION_LIST, O(prepares), "CMD",
     "run before each run; may be repeated, one for each command", NULL},
    {'C', "conclude", OPTION_LIST, O(concludes), "CMD",
     "run after each run; may be repeated, one for each command", NULL},
    {'c', "cleanup", OPTION_LIST, O(cleanups), "CMD", "run once at the end, even after a failure",
     NULL},
    {'S', "shell", OPTION_STRING, O(shell), "SHELL",
     "auto (sh only when a command needs it), none, default (sh), or a shell", "auto none default"},
    {'N', NULL, OPTION_FLAG, O(no_shell), NULL, "use no shell; same as --shell none", NULL},
    {0, "input", OPTION_STRING, O(input), "FILE", "standard input (default /dev/null)", "file"},
    {0, "output", OPTION_STRING, O(output), OUTPUT_VALUE, OUTPUT_HELP, OUTPUT_WORDS},
    {0, "show-output", OPTION_FLAG, O(show_output), NULL, "show what the commands print", NULL},
    {0, "copies", OPTION_U64, O(copies), "K", "run K copies of each command at once", NULL},
    {0, "directory", OPTION_STRING, O(directory), "DIR", "run the commands in this directory",
     "file"},
    {0, "cpus", OPTION_STRING, O(cpus), "CPUS", "run on these CPUs, e.g. 0-3 or 2,3", NULL},
    {0, "timeout", OPTION_SECONDS, O(timeout_ns), "TIME", "treat a run that takes longer as failed",
     NULL},
    {'i', "ignore-failure", OPTION_OPTIONAL, O(ignore_failure), "CODES",
     "count failed runs like any other: all, or those with these exit codes", NULL},
    {0, "no-padding", OPTION_FLAG, O(no_padding), NULL,
     "keep the size of the environment the same in every round", NULL},
    {0, "layouts", OPTION_U64, O(layouts), "N",
     "measure N memory layouts and tell how much of a difference they make (10 or more)", NULL},
    {0, "link", OPTION_LIST, O(links), "CMD",
     "with --layouts: links a command's program anew as $ASSAY_OUT; repeat for each, in order",
     NULL},
    {0, NULL, OPTION_HEADING, 0, NULL, "What to measure", NULL},
    {'e', "event", OPTION_LIST, O(events), "LIST", "events to count, as in assay stat; or none",
     "event"},
    {0, "metric", OPTION_STRING, O(metric), "NAME",
     "the headline metric, which --precision applies to (wall)", NULL},
    {0, "metric-regex", OPTION_LIST, O(metric_regexes), "NAME=REGEX",
     "take a figure from the commands' output: the number in the parentheses", NULL},
    {0, "sim", OPTION_FLAG, O(sim), NULL,
     "also compare exact instruction counts: extra runs under Valgrind, about 7 times slower",
     NULL},
    {0, "exact", OPTION_OPTIONAL, O(exact), "user|arm64|model",
     "compare exact instruction counts instead of times: runs in an emulator (QEMU)",
     "user arm64 model"},
    {0, "reference", OPTION_STRING, O(reference), "NAME",
     "the command to compare the others with: its name, its number (1), or one more command", NULL},
    {0, NULL, OPTION_HEADING, 0, NULL, "Output", NULL},
    {'a', "all", OPTION_FLAG, O(all), NULL, "show a table for every metric", NULL},
    {0, "verbose", OPTION_FLAG, O(verbose), NULL,
     "show the notes about this machine that are always the same", NULL},
    {0, "sort", OPTION_STRING, O(sort), "HOW", "order of the rows: auto, command, or mean-time",
     "auto command mean-time"},
    {'u', "time-unit", OPTION_STRING, O(time_unit), "UNIT",
     "microsecond, millisecond or second (default: what suits)", "microsecond millisecond second"},
    {0, "style", OPTION_STRING, O(style), "STYLE",
     "auto, basic, full, nocolor, color, or none (no text)", "auto basic full nocolor color none"},
    {'j', "json", OPTION_OPTIONAL, O(json), "FILE", "JSON with every value of every run", NULL},
    {0, "csv", OPTION_OPTIONAL, O(csv), "FILE", "CSV, a line for each value", NULL},
    {0, "markdown", OPTION_OPTIONAL, O(markdown), "FILE", "a Markdown table", NULL},
    {0, "html", OPTION_STRING, O(html), "FILE", "a report as one HTML file", "file"},
    {0, "export-hyperfine", OPTION_STRING, O(export_hyperfine), "FILE",
     "write JSON in the format of hyperfine --export-json", "file"},
    {0, "export-google-benchmark", OPTION_STRING, O(export_google), "FILE",
     "write JSON in the format of google-benchmark's --benchmark_out", "file"},
    {0, "export-asciidoc", OPTION_STRING, O(export_asciidoc), "FILE", "write an AsciiDoc table",
     "file"},
    {0, "export-orgmode", OPTION_STRING, O(export_orgmode), "FILE", "write an Org mode table",
     "file"},
    {0, "import-hyperfine", OPTION_LIST, O(imports), "FILE",
     "compare results in hyperfine's JSON files instead of running anything", "file"},
    {0, NULL, OPTION_HEADING, 0, NULL, "The store", NULL},
    {0, "save", OPTION_STRING, O(save), "NAME",
     "keep the result in the store, for compare, history and html", NULL},
    {0, "against", OPTION_STRING, O(against), "NAME",
     "also compare with what was saved under this name another day",
     "!assay completion --list experiments"},
    {0, "db", OPTION_STRING, O(db), "PATH", CMD_DB_HELP, "file"},
    {0, NULL, OPTION_HEADING, 0, NULL, "hyperfine's names for the same", NULL},
    {0, "runs", OPTION_U64, O(rounds), "N", "same as --rounds", NULL},
    {0, "min-runs", OPTION_U64, O(min_rounds), "N", "same as --min-rounds", NULL},
    {0, "max-runs", OPTION_U64, O(max_rounds), "N", "same as --max-rounds", NULL},
    {0, "command-name", OPTION_LIST, O(names), "NAME", "same as --name", NULL},
    {0, "export-json", OPTION_STRING, O(export_hyperfine), "FILE", "same as --export-hyperfine",
     "file"},
    {0, "export-csv", OPTION_STRING, O(export_csv), "FILE", "a line for each command, as hyperfine",
     "file"},
    {0, "export-markdown", OPTION_STRING, O(markdown), "FILE", "same as --markdown=FILE", "file"},
    {0},
};

/* An option that takes one of some words. */
static int check_word(const char *option, const char *word, const char *const *words, size_t count,
                      struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf all = {0};
    for (size_t i = 0; i < count; i++) {
        if (!word || str_eq(word, words[i]))
            return 0;
        strbuf_printf(&all, "%s%s", i ? ", " : "", words[i]);
    }
    return error_set(err, -EINVAL, "--%s %s: must be one of %s", option, word, strbuf_text(&all));
}

int ab_options_check(const struct ab_options *o, size_t command_count, struct error *err)
{
    if (!command_count && !o->imports.count)
        return error_set(
            err, -EINVAL,
            "no commands to run; give each as one quoted argument, e.g. 'ls -l' 'ls -lR'");
    if (o->rounds && (o->min_rounds || o->max_rounds))
        return error_set(err, -EINVAL, "--rounds cannot be used with --min-rounds or --max-rounds");
    if (o->max_rounds && o->min_rounds > o->max_rounds)
        return error_set(err, -EINVAL, "--min-rounds is greater than --max-rounds");
    if (o->rounds && o->precision)
        return error_set(err, -EINVAL, "--rounds and --precision cannot be used together");
    bool shown = o->show_output || (o->output && str_eq(o->output, "inherit"));
    if (shown && ((o->json && !*o->json) || (o->csv && !*o->csv) || (o->markdown && !*o->markdown)))
        return error_set(err, -EINVAL,
                         "the commands' output and the results would be mixed on standard output; "
                         "write the results to a file, e.g. --json=FILE");
    static const char *const sorts[] = {"auto", "command", "mean-time"};
    static const char *const units[] = {"microsecond", "millisecond", "second"};
    static const char *const styles[] = {"auto", "basic", "full", "nocolor", "color", "none"};
    int r = check_word("sort", o->sort, sorts, ARRAY_COUNT(sorts), err);
    if (r == 0)
        r = check_word("time-unit", o->time_unit, units, ARRAY_COUNT(units), err);
    if (r == 0)
        r = check_word("style", o->style, styles, ARRAY_COUNT(styles), err);
    if (r < 0)
        return r;
    if (o->copies < 1 || o->copies > COPIES_MAX)
        return error_set(err, -EINVAL, "--copies must be from 1 to %d", COPIES_MAX);
    if (o->copies > 1 && (o->no_shell || o->sim))
        return error_set(err, -EINVAL, "--copies needs a shell and cannot be used with %s",
                         o->sim ? "--sim" : "-N");
    if ((r = ab_exact_check(o, err)) < 0 || (r = ab_layouts_check(o, command_count, err)) < 0)
        return r;
    if (o->show_output && o->output)
        return error_set(err, -EINVAL,
                         "--show-output means --output inherit; use only one of them");
    if (o->directory && access(o->directory, X_OK) < 0)
        return error_errno(err, -errno, "--directory %s", o->directory);
    if (o->input && access(o->input, R_OK) < 0)
        return error_errno(err, -errno, "--input %s", o->input);
    return 0;
}
