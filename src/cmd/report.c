/* SPDX-License-Identifier: MIT */
/* `assay report`: where the time of a recording went. */
#include "base/memory.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "cmd/profile_options.h"
#include "config.h"
#include "profile/idle.h"
#include "report/browser/browser.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

struct report_options {
    struct profile_cli profile;
    const char *sort, *call_graph, *percentage;
    bool children, no_children, inline_rows, idle, wakers;
    double percent_limit;
    bool stdio, wide;
    const char *csv, *json;
};

#define O(field) offsetof(struct report_options, field)

static const struct option options[] = {
    {'s', "sort", OPTION_STRING, O(sort), "KEY[,KEY…]",
     "group by comm, pid, tid, dso, symbol, srcline, cpu, event (default: comm,dso,symbol)",
     "comm pid tid dso symbol srcline cpu event"},
    {'g', "call-graph", OPTION_STRING, O(call_graph), "ORDER",
     "call trees: callee (a function's callers), caller (its callees), or none",
     "callee caller none"},
    {0, "children", OPTION_FLAG, O(children), NULL,
     "count a sample for every function on its stack, next to Self", NULL},
    {0, "no-children", OPTION_FLAG, O(no_children), NULL,
     "count a sample only for the running function (default)", NULL},
    {0, "percent-limit", OPTION_DOUBLE, O(percent_limit), "PERCENT",
     "hide rows and branches below this percentage (default: rows 0, branches 0.5)", NULL},
    {0, "percentage", OPTION_STRING, O(percentage), "absolute|relative",
     "percentages of all samples, or of those that pass the filters", "absolute relative"},
    {0, "inline-rows", OPTION_FLAG, O(inline_rows), NULL,
     "count a sample for the inlined function, not the one that contains it", NULL},
    {0, "idle", OPTION_FLAG, O(idle), NULL,
     "off-cpu: also waits for own children, and of threads without work", NULL},
    {0, "wakers", OPTION_FLAG, O(wakers), NULL,
     "who ended the waits, of a recording made with --wakers", NULL},
    PROFILE_CLI_OPTIONS(struct report_options, profile),
    {0, "comm", OPTION_LIST, O(profile.comms), "NAME[,NAME…]",
     "only these commands; * and ? are wildcards", NULL},
    {0, "dso", OPTION_LIST, O(profile.dsos), "NAME[,NAME…]",
     "only these binaries, libraries, [kernel.kallsyms]", NULL},
    {'S', "symbol", OPTION_LIST, O(profile.symbols), "NAME", "only this function", NULL},
    {0, "through", OPTION_LIST, O(profile.through), "NAME",
     "only samples with this function anywhere on the stack", NULL},
    PROFILE_CLI_NAMES(struct report_options, profile),
    {0, NULL, OPTION_HEADING, 0, NULL, "Output", NULL},
    {0, "stdio", OPTION_FLAG, O(stdio), NULL, "print text even on a terminal", NULL},
    {'w', "wide", OPTION_FLAG, O(wide), NULL, "do not cut names at the terminal's width", NULL},
    {0, "csv", OPTION_OPTIONAL, O(csv), "FILE", CMD_CSV_HELP, "file"},
    {'j', "json", OPTION_OPTIONAL, O(json), "FILE", CMD_JSON_HELP, "file"},
    {0},
};

static int set_order(const struct report_options *o, struct profile_view *view, struct error *err)
{
    view->trees = true;
    view->order = o->children ? CALLTREE_CALLER : CALLTREE_CALLEE;
    if (!o->call_graph)
        return 0;
    if (str_eq(o->call_graph, "caller"))
        view->order = CALLTREE_CALLER;
    else if (str_eq(o->call_graph, "callee"))
        view->order = CALLTREE_CALLEE;
    else if (str_eq(o->call_graph, "none"))
        view->trees = false;
    else
        return error_set(err, -EINVAL, "option --call-graph: '%s' is not callee, caller or none",
                         o->call_graph);
    return 0;
}

static int set_view(struct report_options *o, struct profile_view *view, struct error *err)
{
    const char *sort = o->sort ? o->sort : "comm,dso,symbol";
    int r = row_keys_parse(sort, view->rows.keys, &view->rows.key_count, err);
    if (r == 0)
        r = set_order(o, view, err);
    if (r < 0)
        return r;
    if (o->wakers && (o->csv || o->json))
        return error_set(err, -EINVAL,
                         "--wakers prints text; it cannot be used with --csv or --json");
    if (o->children && o->no_children)
        return error_set(err, -EINVAL, "--children and --no-children cannot be used together");
    if (o->percentage && !str_eq(o->percentage, "absolute") && !str_eq(o->percentage, "relative"))
        return error_set(err, -EINVAL, "option --percentage: '%s' is not absolute or relative",
                         o->percentage);
    if (o->percent_limit > 100)
        return error_set(err, -EINVAL, "option --percent-limit: %g is more than 100 percent",
                         o->percent_limit);
    view->relative = o->percentage && str_eq(o->percentage, "relative");
    view->rows.children = o->children;
    view->rows.inline_rows = o->inline_rows;
    view->row_limit = o->percent_limit < 0 ? 0 : o->percent_limit;
    view->tree_limit = o->percent_limit < 0 ? 0.5 : o->percent_limit;
    view->verbose = o->profile.verbose;
    bool terminal = isatty(STDOUT_FILENO);
    view->columns = terminal && !o->wide ? term_columns(STDOUT_FILENO) : 0;
    view->colour = term_has_colour(STDOUT_FILENO);
    return 0;
}

static bool has_key(const struct profile_view *view, enum row_key key)
{
    for (size_t i = 0; i < view->rows.key_count; i++)
        if (view->rows.keys[i] == key)
            return true;
    return false;
}

static void set_filters(const struct profile_cli *cli, struct profile_view *view)
{
    view->rows.comms =
        (struct name_filter){.patterns = cli->comm_words.items, .count = cli->comm_words.count};
    view->rows.dsos =
        (struct name_filter){.patterns = cli->dso_words.items, .count = cli->dso_words.count};
    view->rows.symbols =
        (struct name_filter){.patterns = cli->symbols.items, .count = cli->symbols.count};
    view->rows.through =
        (struct name_filter){.patterns = cli->through.items, .count = cli->through.count};
}

/* The browser, when a person sits before it. */
static bool is_interactive(const struct report_options *o)
{
    return !o->stdio && !o->wakers && !o->csv && !o->json && isatty(STDOUT_FILENO) &&
           isatty(STDIN_FILENO) && !term_is_dumb();
}

/* Only what this report needs is read and named. */
static void set_needs(const struct report_options *o, const struct profile_view *view,
                      struct profile_options *needs)
{
    bool callers = view->trees || o->children || o->profile.through.count;
    needs->with_cpus = has_key(view, ROW_CPU);
    needs->with_lines = has_key(view, ROW_SRCLINE);
    needs->no_callers = !callers;
    needs->want = SYMBOLS_NAMES;
    if (needs->with_lines)
        needs->want = SYMBOLS_LINES;
    if (!o->profile.no_inline && (callers || o->inline_rows))
        needs->want = SYMBOLS_INLINES;
    if (o->wakers) {
        needs->with_samples = needs->with_wakers = true;
        needs->no_callers = false;
    }
    if (!is_interactive(o))
        return;
    needs->no_callers = false;
    needs->with_lines = true; /* for annotating */
    needs->want = o->profile.no_inline ? SYMBOLS_LINES : SYMBOLS_INLINES;
}

static int print(const struct report_options *o, const struct profile *profile,
                 const struct profile_view *view, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    const char *place = o->json ? o->json : o->csv;
    if (o->wakers) {
        int r = profile_put_wakers(profile, &out, err);
        return r < 0 ? r : cmd_write(NULL, &out, err);
    }
    if (o->json)
        profile_put_json(profile, view, &out);
    else if (o->csv)
        profile_put_csv(profile, view, &out);
    int r = place ? cmd_write(place, &out, err) : 0;
    if (r < 0 || !cmd_wants_text(place))
        return r;
    strbuf_clear(&out);
    profile_put_text(profile, view, &out);
    return cmd_write(NULL, &out, err);
}

static int report(struct report_options *o, int count, char **words)
{
    struct error err;
    struct profile_view view = {0};
    struct profile_options needs = {0};
    const char *path;
    if (profile_cli_file(&o->profile, count, words, &path, &err) < 0 ||
        set_view(o, &view, &err) < 0 || profile_cli_apply(&o->profile, &needs, &err) < 0)
        return cmd_usage(&verb_report, &err);
    set_filters(&o->profile, &view);
    set_needs(o, &view, &needs);
    struct profile *profile;
    if (profile_cli_load(&o->profile, path, &needs, &profile, &err) < 0)
        return cmd_fail(&verb_report, &err, EXIT_TROUBLE);
    if (!o->idle)
        profile_leave_out_idle(profile);
    int r = is_interactive(o) ? browser_run(profile, &view, &err) : 0;
    if (r == -ENOPKG || r == -ENOSYS) { /* no ncurses */
        fprintf(stderr, "assay report: %s; this is the plain report\n", err.message);
        r = print(o, profile, &view, &err);
    } else if (!is_interactive(o)) {
        r = print(o, profile, &view, &err);
    }
    profile_free(profile);
    return r < 0 ? cmd_fail(&verb_report, &err, EXIT_TROUBLE) : EXIT_DONE;
}

static int run(int argc, char **argv)
{
    struct report_options o = {.percent_limit = -1};
    struct error err;
    int code;
    int first = options_parse_mixed(options, &o, argc, argv, &err);
    if (first < 0)
        code = cmd_usage(&verb_report, &err);
    else if (first == OPTIONS_HELP)
        code = cmd_help(&verb_report);
    else
        code = report(&o, argc - first, argv + first);
    profile_cli_done(&o.profile);
    return code;
}

const struct verb verb_report = {
    .name = "report",
    .summary = "show where the time of a recording went",
    .synopsis = "[options] [FILE]",
    .examples = "  assay report\n"
                "  assay report --children --sort dso,symbol perf.data\n"
                "  assay report --stdio -g caller --percent-limit 2 | less\n"
                "  assay report --json | jq '.rows[0]'\n",
    .options = options,
    .run = run,
};
