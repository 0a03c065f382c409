/* SPDX-License-Identifier: MIT */
/*
 * A spec: what an experiment is.  docs/FORMATS.md describes the file; spec_parse checks all that
 * can be known without running anything, and names the line and the key of whatever is wrong.
 */
#ifndef ASSAY_SPEC_SPEC_H
#define ASSAY_SPEC_SPEC_H

#include "base/arena.h"
#include "base/error.h"
#include "base/strings.h"
#include "stats/metric.h"
#include "vm/machine.h"

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SPEC_FACTORS_MAX = 32,
    SPEC_CELLS_MAX = 1000000,
};

/* One value of a factor.  `{factor}` gives its name, `{factor.KEY}` one of its attributes. */
struct spec_level {
    const char *name;
    size_t line;
    struct text_pairs attributes;
    struct text_pairs environment;
    const char *folder; /* where its cells are built and run; NULL for the spec's own */
};

struct spec_factor {
    const char *name;
    size_t line;
    struct spec_level *levels;
    size_t level_count;
};

/* Cells of which every named factor has one of the given values. */
struct spec_condition {
    size_t line;
    size_t *factors;
    const char ***values; /* values[i] are those of factors[i]; each ends with NULL */
    size_t count;
};

/* A command: words to be filled and executed, or a text for the shell. */
struct spec_command {
    const char *text;   /* a whole text; NULL when it was given as a list */
    const char **words; /* ends with NULL; NULL when it is a text */
    bool shell;         /* the text goes to /bin/sh -c */
    size_t line;
};

struct spec_build {
    const char *name; /* "" for the only one */
    struct spec_command command;
    const char **inputs; /* patterns of files, ends with NULL; NULL: never cached between runs */
    size_t line;
};

enum spec_ready { READY_AT_ONCE, READY_PORT, READY_OUTPUT, READY_FILE, READY_COMMAND };

/* Something to do before or after a run. */
struct spec_step {
    struct spec_command command;
    bool background; /* a server: started, awaited, and ended after the run */
    bool once;       /* for the whole experiment instead of each run */
    enum spec_ready ready;
    const char *ready_text; /* port, pattern, path or shell command; with holes */
    uint64_t timeout_ns;
};

enum metric_source { METRIC_PRINTED, METRIC_REGEX, METRIC_JSON };

struct spec_metric {
    const char *name, *unit;
    enum metric_better better;
    bool better_given, headline;
    bool optional; /* not every cell reports it */
    enum metric_source source;
    const char *pattern; /* regular expression or JSON path */
    const char *file;    /* where to look, with holes; NULL for standard output */
    regex_t regex;
    bool regex_ready;
    const char *note; /* what it means when the value is beyond the limit; NULL for nothing */
    double note_limit;
    bool note_above; /* the note is for values above the limit, not below */
    size_t line;
};

/* The emulated machines of a factor `kernel`. */
struct spec_vm {
    bool given;
    size_t line;
    const char *arch, *guest, *append; /* NULL where it is not said */
    bool keeps_startup; /* what a command takes with no operations is not subtracted */
    enum vm_accel accel;
    uint64_t memory_bytes, cpus, rounds_per_boot, boot_timeout_ns; /* 0 where it is not said */
    const char **files;                                            /* HOST[:GUEST] */
    size_t file_count;
};

/* A role of `hosts:`; see hosts.h. */
struct spec_host {
    const char *name;  /* "receiver", "replica2" */
    const char *group; /* "replica"; the name where there is one only */
    const char *host, *address;
    const char **launcher; /* words that run a command there, ends with NULL; NULL for none */
};

enum { SPEC_HOSTS_MAX = 64 };

#define SPEC_NO_FACTOR ((size_t)-1)

enum spec_profile { PROFILE_NONE, PROFILE_CHANGED, PROFILE_ALL };

struct spec {
    const char *file, *folder; /* the spec's; commands run in its folder */
    char *text;
    const char *name, *question;
    struct spec_command command;
    struct spec_factor *factors;
    size_t factor_count;
    struct spec_condition *excludes;
    size_t exclude_count;
    const char ***includes; /* each: one value per factor */
    size_t include_count;
    struct spec_build *builds;
    size_t build_count;
    struct spec_step *setups, *teardowns;
    size_t setup_count, teardown_count;
    struct spec_metric *metrics;
    size_t metric_count;
    struct text_pairs environment;
    const char *work;         /* the metric that counts the work done, NULL for none */
    const char *counters;     /* an event list as -e takes it, "" for none */
    const char *exact;        /* what counts instructions exactly, and no times; or NULL */
    const char *exact_metric; /* what they are called, by what counts here; NULL until known */
    const char **monitors;
    size_t monitor_count;
    uint64_t monitor_interval_ns;
    uint64_t rounds, rounds_max, warmup, attempts;
    double precision;   /* 0.01 for 1 %; 0 for none */
    uint64_t budget_ns; /* 0 for none */
    uint64_t timeout_ns;
    const char *input; /* standard input, with holes; NULL for /dev/null */
    struct text_pairs baseline;
    enum spec_profile profile;
    bool vary_layout;
    const char *needs; /* findings of the machine that every cell needs, "" for none */
    const char *cpus;  /* NULL for all */
    int nice;
    struct text_pairs cgroup;
    uint64_t seed;
    bool has_seed;
    bool allow_failures;
    bool quick;
    struct spec_host *hosts;
    size_t host_count;
    size_t kernel_factor; /* whose values are kernels to boot; SPEC_NO_FACTOR for none */
    struct spec_vm vm;
    struct arena arena;
};

/* `file` names the text in messages, and its folder is where the commands run. */
int spec_parse(struct spec *s, const char *file, const char *text, size_t length, bool quick,
               struct error *err);
int spec_load(struct spec *s, const char *path, bool quick, struct error *err);
void spec_done(struct spec *s);

/* Where a cell is built and run. */
const char *spec_folder(const struct spec *s, const struct spec_level *const *levels);

/* Adds monitors to those that the spec names; the texts must outlive the spec. */
int spec_add_monitors(struct spec *s, const char *const *names, size_t count, struct error *err);

/* Adds a last factor, of which the first level is the baseline instead of the spec's own.  The
 * levels' texts must outlive the spec. */
int spec_add_factor(struct spec *s, const char *name, const struct spec_level *levels, size_t count,
                    struct error *err);

#endif
