/* SPDX-License-Identifier: MIT */
/* `assay annotate`: one function's source lines and instructions with their samples. */
#include "base/memory.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "cmd/profile_options.h"
#include "report/profile/annotate_report.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

struct annotate_cli {
    struct profile_cli profile;
    const char *dso, *kernel_code;
    bool no_source, no_assembly, wide;
    const char *json;
};

#define O(field) offsetof(struct annotate_cli, field)

static const struct option options[] = {
    {0, "dso", OPTION_STRING, O(dso), "NAME", "choose the function from this binary", NULL},
    {0, "no-source", OPTION_FLAG, O(no_source), NULL, "show only the instructions", NULL},
    {0, "no-assembly", OPTION_FLAG, O(no_assembly), NULL, "show only the source lines", NULL},
    {'w', "wide", OPTION_FLAG, O(wide), NULL, "do not cut lines at the terminal's width", NULL},
    {'j', "json", OPTION_OPTIONAL, O(json), "FILE", CMD_JSON_HELP, "file"},
    {0, "kcore", OPTION_STRING, O(kernel_code), "FILE",
     "read the kernel's code from this file (default: /proc/kcore)", "file"},
    PROFILE_CLI_OPTIONS(struct annotate_cli, profile),
    PROFILE_CLI_NAMES(struct annotate_cli, profile),
    {0},
};

static int print(const struct annotate_cli *o, const struct annotation *a,
                 const struct profile *profile, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    bool terminal = isatty(STDOUT_FILENO);
    struct annotate_view view = {
        .no_source = o->no_source,
        .no_assembly = o->no_assembly,
        .colour = term_has_colour(STDOUT_FILENO),
        .columns = terminal && !o->wide ? term_columns(STDOUT_FILENO) : 0,
    };
    if (o->json) {
        annotate_put_json(a, profile, &out);
        int r = cmd_write(o->json, &out, err);
        if (r < 0 || !cmd_wants_text(o->json))
            return r;
        strbuf_clear(&out);
    }
    annotate_put_text(a, profile, &view, &out);
    return cmd_write(NULL, &out, err);
}

static int annotate(struct annotate_cli *o, int count, char **words)
{
    struct error err;
    struct profile_options needs = {
        .want = SYMBOLS_INLINES, .with_lines = true, .no_callers = true};
    const char *path;
    if (count < 1) {
        error_set(&err, -EINVAL, "name the function to annotate");
        return cmd_usage(&verb_annotate, &err);
    }
    if (profile_cli_file(&o->profile, count - 1, words + 1, &path, &err) < 0 ||
        profile_cli_apply(&o->profile, &needs, &err) < 0)
        return cmd_usage(&verb_annotate, &err);
    if (o->profile.no_inline)
        needs.want = SYMBOLS_LINES;
    struct profile *profile;
    if (profile_cli_load(&o->profile, path, &needs, &profile, &err) < 0)
        return cmd_fail(&verb_annotate, &err, EXIT_TROUBLE);
    uint32_t symbol, event = profile->event_count ? annotate_main_event(profile) : 0;
    size_t others = 0;
    int r = annotate_find(profile, event, words[0], o->dso, &symbol, &others, &err);
    if (r == 0) {
        struct annotation a;
        annotate_build(&a, profile, event, symbol, o->kernel_code);
        r = print(o, &a, profile, &err);
        annotate_done(&a);
        if (others)
            fprintf(stderr,
                    "assay annotate: %zu other function%s of this name with samples; "
                    "choose with --dso\n",
                    others, others == 1 ? "" : "s");
    }
    profile_free(profile);
    return r < 0 ? cmd_fail(&verb_annotate, &err, EXIT_TROUBLE) : EXIT_DONE;
}

static int run(int argc, char **argv)
{
    struct annotate_cli o = {0};
    struct error err;
    int code;
    int first = options_parse_mixed(options, &o, argc, argv, &err);
    if (first < 0)
        code = cmd_usage(&verb_annotate, &err);
    else if (first == OPTIONS_HELP)
        code = cmd_help(&verb_annotate);
    else
        code = annotate(&o, argc - first, argv + first);
    profile_cli_done(&o.profile);
    return code;
}

const struct verb verb_annotate = {
    .name = "annotate",
    .summary = "show a function's source and instructions with their samples",
    .synopsis = "[options] SYMBOL [FILE]",
    .examples = "  assay annotate main\n"
                "  assay annotate --no-source 'std::vector<int>::push_back' perf.data\n",
    .options = options,
    .run = run,
};
