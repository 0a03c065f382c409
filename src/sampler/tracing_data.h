/* SPDX-License-Identifier: MIT */
/* The formats of tracepoints as perf stores them in a file: without them perf refuses to open a
 * file with samples of tracepoints. */
#ifndef ASSAY_SAMPLER_TRACING_DATA_H
#define ASSAY_SAMPLER_TRACING_DATA_H

#include "base/error.h"
#include "base/strings.h"

/* Appends the block for the events named "system:name…"; others are passed over.  Appends nothing
 * when there is none. */
int tracing_data_write(struct strbuf *out, const char *const *names, size_t count,
                       struct error *err);

/* Calls for each tracepoint's format in such a block, which may come from anywhere; stops where it
 * makes no sense. */
void tracing_data_each(const void *bytes, size_t size,
                       void (*each)(void *context, const char *system, const char *format,
                                    size_t length),
                       void *context);

#endif
