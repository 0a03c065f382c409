/* SPDX-License-Identifier: MIT */
/*
 * The fields of tracepoints' samples: kept as the kernel wrote them, in the order of the profile's
 * samples, and printed by the formats that the recording has.
 */
#ifndef ASSAY_PROFILE_FIELDS_H
#define ASSAY_PROFILE_FIELDS_H

#include "base/strings.h"
#include "sampler/perfdata.h"

struct profile;
struct profile_fields;

/* Keeps what the record has as the next sample's fields. */
void profile_fields_keep(struct profile *profile, const struct perfdata_record *record);
/* Takes the formats over; after reading. */
void profile_fields_formats(struct profile *profile, const struct perfdata *reader);
/* "prev_comm=sh prev_pid=7 …" of a sample; nothing where none are known. */
void profile_fields_put(const struct profile *profile, size_t sample, struct strbuf *out);
void profile_fields_free(struct profile_fields *fields);

/* Wake-ups that were recorded beside waits (`assay record --wakers`), of the whole machine. */
struct wakings {
    const struct perfdata_event *event; /* NULL for none */
    size_t target_offset, flags_offset; /* in the raw bytes */
};

struct waking {
    uint32_t target;
    bool is_by_thread; /* that wrote the record; else an interrupt did it */
};

/* Whether the event is theirs, and where its fields stand. */
void wakings_find(struct wakings *w, const struct perfdata *reader,
                  const struct perfdata_event *event);
/* False for any other record. */
bool wakings_read(const struct wakings *w, const struct perfdata_record *record,
                  struct waking *ret);

#endif
