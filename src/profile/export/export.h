/* SPDX-License-Identifier: MIT */
/*
 * Profiles for other viewers.  Whatever the format, the weights add up to the same total: that of
 * the event, in its own unit, or the number of samples.
 */
#ifndef ASSAY_PROFILE_EXPORT_EXPORT_H
#define ASSAY_PROFILE_EXPORT_EXPORT_H

#include "base/fd.h"
#include "profile/profile.h"

enum export_format {
    EXPORT_FOLDED,      /* "comm;main;f 12": flamegraph.pl, speedscope, inferno */
    EXPORT_SPEEDSCOPE,  /* speedscope's own JSON */
    EXPORT_PPROF,       /* gzipped protobuf: go tool pprof */
    EXPORT_FIREFOX,     /* processed profile: profiler.firefox.com */
    EXPORT_PERF_SCRIPT, /* text as perf script prints it: stackcollapse-perf.pl and many more */
    EXPORT_PORTABLE,    /* a recording with its names: see portable.h, not profile_export */
};

#define EXPORT_FORMATS "folded speedscope pprof firefox perf-script portable"

int export_format_parse(const char *word, enum export_format *ret_format, struct error *err);
/* What profile_load must be asked for. */
void export_format_needs(enum export_format format, bool merged, struct profile_options *options);
/* Whether one file of this format holds several events. */
bool export_holds_events(enum export_format format);

struct export_options {
    enum export_format format;
    uint32_t event;     /* for formats that hold one */
    bool count_samples; /* each sample weighs one */
    bool merged;        /* speedscope: equal stacks together, without their order in time */
};

/* The profile must be symbolized and loaded with what export_format_needs said. */
int profile_export(const struct profile *profile, const struct export_options *options,
                   struct outfile *file, struct error *err);

/* For the writers of formats. */
struct export_out {
    const struct profile *profile;
    const struct export_options *options;
    struct strbuf text; /* written out when it is large */
    struct outfile *file;
    struct error *err;
    int code; /* the first failure */
};

/* Passes the text on to the file once there is much of it. */
void export_spill(struct export_out *out);
uint64_t export_weight(const struct export_out *out, uint64_t samples, uint64_t weight);

void export_folded(struct export_out *out);
void export_speedscope(struct export_out *out);
void export_pprof(struct export_out *out);
void export_firefox(struct export_out *out);
void export_perf_script(struct export_out *out);

/* The threads of the samples of an event, each with its own samples in order of time. */
struct export_thread {
    uint32_t task;         /* the one with the most samples: it gives the name */
    uint32_t first, count; /* in export_threads.order */
};

struct export_threads {
    struct export_thread *items;
    size_t count;
    uint32_t *order; /* indices of profile->samples */
};

void export_threads_init(struct export_threads *threads, const struct profile *profile,
                         uint32_t event);
void export_threads_done(struct export_threads *threads);

#endif
