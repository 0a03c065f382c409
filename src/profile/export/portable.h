/* SPDX-License-Identifier: MIT */
/*
 * A recording that opens the same wherever it is read: perf.data with its names, source lines and
 * inlined calls inside (symbols/portable.h), and with call chains in the place of copied stacks,
 * which nobody could unwind without the binaries.  perf reads it as any other recording.
 *
 *   struct portable portable;
 *   portable_start(&portable, "out.data", &options, &err)   // sets options.each
 *   profile_load(&profile, "perf.data", &options, &err), profile_symbolize(profile)
 *   portable_finish(&portable, profile, &err)
 *   portable_done(&portable)
 */
#ifndef ASSAY_PROFILE_EXPORT_PORTABLE_H
#define ASSAY_PROFILE_EXPORT_PORTABLE_H

#include "base/fd.h"
#include "profile/profile.h"
#include "sampler/perfdata_write.h"

struct portable {
    struct outfile file;
    struct perfdata_writer writer;
    struct perfdata_writer_event *events;
    bool is_open; /* the writer, since the first record */
    struct strbuf records;
    size_t since_round;
    const void *last; /* the record that was written last */
    uint64_t last_offset;
    uint64_t unclear; /* samples whose stack could not be taken apart, left out */
    int code;         /* the first failure */
    struct error err;
};

int portable_start(struct portable *p, const char *path, struct profile_options *options,
                   struct error *err);
int portable_finish(struct portable *p, const struct profile *profile, struct error *err);
void portable_done(struct portable *p);

#endif
