/* SPDX-License-Identifier: MIT */
/* `assay export`: a recording for another viewer. */
#include "profile/export/export.h"
#include "base/memory.h"
#include "cmd/cmd.h"
#include "cmd/export_portable.h"
#include "cmd/profile_options.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

struct export_cli {
    struct profile_cli profile;
    const char *to, *output;
    bool samples, merge;
};

#define O(field) offsetof(struct export_cli, field)

static const struct option options[] = {
    {'t', "to", OPTION_STRING, O(to), "FORMAT",
     "folded, speedscope, pprof, firefox, perf-script or portable", EXPORT_FORMATS},
    {'o', "output", OPTION_STRING, O(output), "FILE",
     "write to this file (default: standard output)", "file"},
    {0, "samples", OPTION_FLAG, O(samples), NULL, "count each sample as one, instead of its period",
     NULL},
    {0, "merge", OPTION_FLAG, O(merge), NULL,
     "speedscope: merge equal stacks, without their order in time", NULL},
    PROFILE_CLI_OPTIONS(struct export_cli, profile),
    PROFILE_CLI_NAMES(struct export_cli, profile),
    {0},
};

/* The event to export where the format holds one: that with most samples; a word on the others. */
static uint32_t choose_event(const struct profile *p, enum export_format format)
{
    uint32_t best = 0, others = 0;
    for (uint32_t i = 0; i < p->event_count; i++) {
        if (p->events[i].samples > p->events[best].samples)
            best = i;
        others += p->events[i].samples > 0;
    }
    if (others > 1 && !export_holds_events(format))
        fprintf(stderr, "assay export: this format holds one event: %s; choose with --event\n",
                p->events[best].name);
    return best;
}

static int write_file(const struct profile *profile, const struct export_options *o,
                      const char *path, struct error *err)
{
    struct outfile file;
    int r = outfile_open(&file, path, err);
    if (r < 0)
        return r;
    r = profile_export(profile, o, &file, err);
    if (r == 0)
        r = outfile_commit(&file, err);
    outfile_done(&file);
    return r;
}

static void warn(const struct profile *p)
{
    uint64_t lost = perfdata_lost(&p->losses);
    if (p->trouble)
        fprintf(stderr, "assay export: %s\n", p->trouble);
    if (lost)
        fprintf(stderr, "assay export: %llu %s lost while recording\n", (unsigned long long)lost,
                plural(lost, "record was", "records were"));
}

static int make_portable(struct export_cli *o, const char *path, struct profile_options *needs)
{
    struct error err;
    const struct profile_filter *f = &needs->filter;
    if (f->events.count || f->pid_count || f->tid_count || f->cpu_count || f->has_time) {
        error_set(&err, -EINVAL,
                  "a portable recording has all samples: leave the filters out, and "
                  "use them when you read it");
        return cmd_usage(&verb_export, &err);
    }
    if (!o->output) {
        error_set(&err, -EINVAL, "a portable recording is a file: add -o FILE");
        return cmd_usage(&verb_export, &err);
    }
    if (export_portable(&o->profile, path, o->output, needs, &err) < 0)
        return cmd_fail(&verb_export, &err, EXIT_TROUBLE);
    return EXIT_DONE;
}

static int export(struct export_cli *o, int count, char **words)
{
    struct error err;
    struct export_options wanted = {.count_samples = o->samples, .merged = o->merge};
    struct profile_options needs = {0};
    const char *path, *output = o->output ? o->output : "-";
    if (!o->to) {
        error_set(&err, -EINVAL, "choose a format: --to " EXPORT_FORMATS);
        return cmd_usage(&verb_export, &err);
    }
    if (export_format_parse(o->to, &wanted.format, &err) < 0 ||
        profile_cli_file(&o->profile, count, words, &path, &err) < 0 ||
        profile_cli_apply(&o->profile, &needs, &err) < 0)
        return cmd_usage(&verb_export, &err);
    if (wanted.format == EXPORT_PPROF && str_eq(output, "-") && isatty(STDOUT_FILENO)) {
        error_set(&err, -EINVAL,
                  "pprof is a binary format and would garble the terminal: add -o FILE");
        return cmd_usage(&verb_export, &err);
    }
    if (wanted.format == EXPORT_PORTABLE)
        return make_portable(o, path, &needs);
    export_format_needs(wanted.format, wanted.merged, &needs);
    needs.want = o->profile.no_inline ? SYMBOLS_LINES : SYMBOLS_INLINES;
    struct profile *profile;
    if (profile_cli_load(&o->profile, path, &needs, &profile, &err) < 0)
        return cmd_fail(&verb_export, &err, EXIT_TROUBLE);
    if (profile->given && needs.with_samples && wanted.format != EXPORT_SPEEDSCOPE) {
        error_set(&err, -EINVAL,
                  "%s: its samples have no times, which %s needs; choose folded, pprof or "
                  "speedscope",
                  path, o->to);
        profile_free(profile);
        return cmd_fail(&verb_export, &err, EXIT_TROUBLE);
    }
    wanted.merged = wanted.merged || profile->given;
    warn(profile);
    wanted.event = choose_event(profile, wanted.format);
    int r = write_file(profile, &wanted, output, &err);
    profile_free(profile);
    return r < 0 ? cmd_fail(&verb_export, &err, EXIT_TROUBLE) : EXIT_DONE;
}

static int run(int argc, char **argv)
{
    struct export_cli o = {0};
    struct error err;
    int code;
    int first = options_parse_mixed(options, &o, argc, argv, &err);
    if (first < 0)
        code = cmd_usage(&verb_export, &err);
    else if (first == OPTIONS_HELP)
        code = cmd_help(&verb_export);
    else
        code = export(&o, argc - first, argv + first);
    profile_cli_done(&o.profile);
    return code;
}

const struct verb verb_export = {
    .name = "export",
    .summary = "convert a recording for another viewer",
    .synopsis = "--to FORMAT [options] [FILE]",
    .examples = "  assay export --to speedscope -o profile.speedscope.json\n"
                "  assay export perf.data --to folded | flamegraph.pl > graph.svg\n"
                "  assay export --to pprof -o profile.pb.gz && go tool pprof -top profile.pb.gz\n"
                "  assay export --to portable -o for-others.data\n",
    .options = options,
    .run = run,
};
