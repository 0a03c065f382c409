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
#define EXACT_ARM64_INSTRUCTIONS "exact:arm64-instructions"
#define EXACT_USER "user"
#define EXACT_MACHINE "machine"
#define EXACT_MODEL "model"
#define EXACT_ARM64 "arm64"

struct exact_counts;
struct exact_machine;

/* What it counts. */
struct exact_metric {
    const char *name;
    uint64_t (*value_of)(const struct exact_counts *c);
};

struct exact_tool {
    bool is_cachegrind;            /* Valgrind's, where there is no QEMU, and for a model */
    bool is_model;                 /* of cycles (model.h) */
    struct exact_machine *machine; /* an emulated one; NULL for user mode */
    uint16_t processor;            /* EM_X86_64, …: whose programs run */
    bool is_quiet;                 /* what commands print in a machine goes nowhere */
    char why[256];                 /* cachegrind stands in: the reason, in a sentence; "" else */
    char name[128];                /* "qemu-x86_64 7.2.22, CPU model max" */
    char note[512];                /* see exact_tool_note */
    const char *metric;            /* of its instructions */
    char *emulator, *plugin;       /* files */
};

/* What the word after --exact=, or of `exact:` in a spec, stands for: EXACT_USER, EXACT_ARM64,
 * EXACT_MODEL, or EXACT_MACHINE for "" or "true"; NULL for one that is not known. */
const char *exact_word(const char *word);
int exact_check_word(const char *word, struct error *err);
/* By such a word.  -ENOENT, with what to install, where what is needed is not there.  The
 * first time, a machine is booted: that takes a while, of which progress (may be NULL) tells. */
int exact_tool_find(struct exact_tool *t, const char *word, void (*progress)(const char *what),
                    struct error *err);
void exact_tool_done(struct exact_tool *t);
/* Of a system call of the programs that it runs, as syscall_name. */
const char *exact_call_name(const struct exact_tool *t, uint64_t number, char *buffer, size_t size);
/* What is to be known of its counts, in a sentence, for stderr; NULL for nothing.  Valid as long as
 * the tool. */
const char *exact_tool_note(const struct exact_tool *t);
/* Ends with one without a name; the first is that which is judged by. */
const struct exact_metric *exact_tool_metrics(const struct exact_tool *t);

#endif
