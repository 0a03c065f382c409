/* SPDX-License-Identifier: MIT */
/*
 * What counts exactly here, and by which name its counts go.
 *
 * Counts of different tools differ (other processors are emulated, other instructions chosen by the
 * C library), so each tool has a metric of its own, and one is never compared with another.
 */
#ifndef ASSAY_EXACT_TOOL_H
#define ASSAY_EXACT_TOOL_H

#include "base/error.h"
#include "counters/simulated.h"

#define EXACT_INSTRUCTIONS "exact:instructions"
#define EXACT_CALLS_METRIC "exact:syscalls"

struct exact_tool {
    bool is_cachegrind;      /* Valgrind's, where there is no QEMU */
    char why[256];           /* cachegrind is used: the reason, in a sentence; "" else */
    char name[128];          /* "qemu-x86_64 7.2.22, CPU model max" */
    const char *metric;      /* of its instructions */
    char *emulator, *plugin; /* files */
};

/* The word after --exact=, or of `exact:` in a spec; -EINVAL for one that is not known. */
int exact_check_word(const char *word, struct error *err);
/* -ENOENT, with what to install, where neither QEMU nor Valgrind is there. */
int exact_tool_find(struct exact_tool *t, struct error *err);
void exact_tool_done(struct exact_tool *t);

#endif
