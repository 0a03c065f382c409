/* SPDX-License-Identifier: MIT */
/* The options that `assay report`, `annotate` and `export` share: which samples count, and how
 * their addresses get names. */
#ifndef ASSAY_CMD_PROFILE_OPTIONS_H
#define ASSAY_CMD_PROFILE_OPTIONS_H

#include "base/options.h"
#include "base/term.h"
#include "profile/profile.h"

struct profile_cli {
    const char *input;
    struct option_list events, comms, dsos, symbols, through, pids, tids;
    const char *cpus, *time;
    bool no_inline, no_demangle, full_names, fold_variants;
    const char *root, *kallsyms;
    bool verbose;

    /* Made from these by profile_cli_apply: */
    uint32_t *pid_numbers, *tid_numbers;
    int *cpu_numbers;
    struct option_list comm_words, dso_words; /* commas taken apart */
    char **owned;
    size_t owned_count, owned_capacity;
    struct progress progress;
};

#define PROFILE_CLI_OPTIONS(type, member)                                                            \
    {'i',           "input",                                                                         \
     OPTION_STRING, offsetof(type, member.input),                                                    \
     "FILE",        "the recording (default: perf.data)",                                            \
     "file"},                                                                                        \
        {0, NULL, OPTION_HEADING, 0, NULL, "Which samples", NULL},                                   \
        {'e',         "event",                                                                       \
         OPTION_LIST, offsetof(type, member.events),                                                 \
         "EVENT",     "only samples of this event",                                                  \
         "event"},                                                                                   \
        {0,   "pid", OPTION_LIST, offsetof(type, member.pids), "PID[,PID…]", "only these processes", \
         NULL},                                                                                      \
        {0,   "tid", OPTION_LIST, offsetof(type, member.tids), "TID[,TID…]", "only these threads",   \
         NULL},                                                                                      \
        {'C',           "cpu",                                                                       \
         OPTION_STRING, offsetof(type, member.cpus),                                                 \
         "LIST",        "only samples on these CPUs, e.g. 0-3,7",                                    \
         NULL},                                                                                      \
    {                                                                                                \
        0, "time", OPTION_STRING, offsetof(type, member.time), "FROM,TO",                            \
            "only this range: clock seconds, +1,+2 from the first sample, or 10%-20%", NULL          \
    }

#define PROFILE_CLI_NAMES(type, member)                                          \
    {0, NULL, OPTION_HEADING, 0, NULL, "Names", NULL},                           \
        {0,           "no-inline",                                               \
         OPTION_FLAG, offsetof(type, member.no_inline),                          \
         NULL,        "do not show inlined functions",                           \
         NULL},                                                                  \
        {0,           "no-demangle",                                             \
         OPTION_FLAG, offsetof(type, member.no_demangle),                        \
         NULL,        "do not demangle C++ and Rust names",                      \
         NULL},                                                                  \
        {0,           "full-names",                                              \
         OPTION_FLAG, offsetof(type, member.full_names),                         \
         NULL,        "show C++ names with their parameters",                    \
         NULL},                                                                  \
        {0,           "fold-variants",                                           \
         OPTION_FLAG, offsetof(type, member.fold_variants),                      \
         NULL,        "count f.isra.0, f.constprop.0, f.part.0 and f.cold as f", \
         NULL},                                                                  \
        {0,                                                                      \
         "symfs",                                                                \
         OPTION_STRING,                                                          \
         offsetof(type, member.root),                                            \
         "DIR",                                                                  \
         "look for binaries in this directory first",                            \
         "file"},                                                                \
        {0,                                                                      \
         "kallsyms",                                                             \
         OPTION_STRING,                                                          \
         offsetof(type, member.kallsyms),                                        \
         "FILE",                                                                 \
         "read kernel symbols from this copy of /proc/kallsyms",                 \
         "file"},                                                                \
    {                                                                            \
        'v', "verbose", OPTION_FLAG, offsetof(type, member.verbose), NULL,       \
            "report every problem with symbols", NULL                            \
    }

/* The file: the word on the command line, --input, or perf.data.  More than one is an error. */
int profile_cli_file(const struct profile_cli *cli, int count, char **words, const char **ret_path,
                     struct error *err);
/* Fills the options for profile_load; they point into cli. */
int profile_cli_apply(struct profile_cli *cli, struct profile_options *options, struct error *err);
/* Loads and names, with progress on the terminal. */
int profile_cli_load(struct profile_cli *cli, const char *path, struct profile_options *options,
                     struct profile **ret_profile, struct error *err);
void profile_cli_done(struct profile_cli *cli);

#endif
