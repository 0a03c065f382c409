/* SPDX-License-Identifier: MIT */
/*
 * The emulated machines of an experiment with a factor `kernel`: one for each of its values, which
 * serves all cells with that kernel.
 *
 * Rounds stay interleaved: all machines are up at the same time, and each run of a round goes to
 * the machine of its kernel.  A machine serves `rounds_per_boot` rounds and boots anew for the
 * next, so that what differs from boot to boot is among what differs from round to round.
 *
 * Under emulation instructions are counted exactly, and times and cycles mean nothing: neither are
 * kept.
 */
#ifndef ASSAY_SESSION_GUESTS_H
#define ASSAY_SESSION_GUESTS_H

#include "monitors/monitors.h"
#include "run/runner.h"
#include "spec/matrix.h"
#include "vm/machine.h"

/* What is counted where the spec does not say. */
#define GUEST_EVENTS "instructions,instructions:u,instructions:k"

struct guest {
    struct vm_kernel kernel;
    struct vm_files files;
    struct vm_settings settings;
    struct vm_machine machine;
    uint64_t epoch, boot_count;
    bool has_booted;
};

struct guests {
    const struct spec *spec;
    struct guest *items; /* one per value of the factor; those that no cell needs have no kernel */
    size_t count;
    char *program;         /* the static assay */
    char **inputs;         /* per cell: the file there that it reads, or NULL */
    const char **commands; /* per cell: the program there */
    uint64_t *boots_seen;  /* per cell: the boot of its last run that was asked about */
    uint64_t *boots_told;  /* per cell: the boot whose instructions were handed out */
    size_t cell_count;
    char *events;
    struct vm_result result;
    struct strbuf left_out; /* metrics that are times, with their units */
    /* What the last command's start took, by events: with no operations. */
    struct vm_counts startup;
    bool has_startup, startup_failed;
    struct guest *watched; /* the machine whose files monitors read */
    /* Called often; may be NULL. */
    void (*on_tick)(void *context, const char *what);
    void *context;
};

/* A cell as the machine needs it. */
struct guest_cell {
    char *const *argv;  /* of the host's command; NULL for a cell that does not run */
    const char *folder; /* that the command's path is relative to */
    const char *input;  /* NULL for none */
};

struct guest_job {
    size_t cell;
    uint64_t round;
    char *const *argv;      /* with the holes filled; its first word is replaced */
    char *const *before;    /* words before it; NULL for none */
    char *const *variables; /* NAME=VALUE; NULL for none */
    size_t padding_bytes;
    bool has_layout;        /* of its own: */
    unsigned mapping_count; /* that the command has more than by itself */
    const char *events;     /* NULL for the spec's */
    uint64_t timeout_ns;
    struct monitors *monitors; /* that read files there before and after; NULL for none */
};

/* Finds kernels, programs and files; boots nothing. */
int guests_open(struct guests *g, const struct matrix *matrix, const struct guest_cell *cells,
                struct error *err);
void guests_done(struct guests *g);

/*
 * Runs a cell's command in the machine of its kernel, which is booted when need be.  Fills the
 * result as runner_run does, as far as there is something: metrics, output, faults and switches,
 * status; no times, and no values of events, which guests_counts has.  When the words before it
 * record into a file (-o FILE), the recording and the kernel's symbols are brought back.
 */
int guests_run(struct guests *g, const struct matrix *matrix, const struct guest_job *job,
               struct run_result *result, struct error *err);
/* For monitors_open_elsewhere: files in the machine that runs a job; the context is the guests. */
monitor_read_fn guests_read_file;
/* The kernel that a value of the factor names: a package or a path. */
const char *guests_image(const struct spec_level *level);
/* What its results are to be called. */
const char *guests_words(const struct guests *g);
/* Whether the cell's last run was its first since its machine booted: then it took more (the
 * program's pages are made executable). */
bool guests_is_first(struct guests *g, const struct matrix *matrix, size_t cell);
/* How many instructions the machine of a cell took to boot; 0 where that is not known, and after
 * the first time that a cell asks about a boot: one boot is one value, whatever ran afterwards. */
uint64_t guests_new_boot(struct guests *g, const struct matrix *matrix, size_t cell);
/* Of the last run. */
const struct vm_counts *guests_counts(const struct guests *g);

/* Whether times mean something there: the machine of the cell runs under KVM. */
bool guests_times_count(const struct guests *g, const struct matrix *matrix, size_t cell);
/* Whether a unit is one of time or of something for each second. */
bool guest_unit_is_time(const char *unit);

#endif
