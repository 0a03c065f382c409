/* SPDX-License-Identifier: MIT */
/*
 * An emulated machine: QEMU with a kernel and an initramfs, driven over a virtio port.
 *
 *   struct vm_machine m;
 *   vm_machine_start(&m, &settings, &err);    starts to boot
 *   vm_machine_await(&m, &err);               booted
 *   struct vm_result result = {0};
 *   vm_machine_run(&m, &run, &result, &err);  as often as wanted
 *   vm_result_done(&result);
 *   vm_machine_stop(&m);
 *
 * Without KVM, QEMU runs with -icount: every instruction takes the same virtual time, and an arm64
 * machine's PMU counts instructions exactly.  Times and cycles there mean nothing.
 *
 * There is no network and no disk, and nothing is written here: initramfs and console are files in
 * memory.  QEMU dies with the thread that started the machine.  The caller has called
 * process_signals_catch: a signal ends every wait with -EINTR.
 */
#ifndef ASSAY_VM_MACHINE_H
#define ASSAY_VM_MACHINE_H

#include "vm/exits.h"
#include "vm/frames.h"
#include "vm/initramfs.h"

#define VM_EMULATED_WORDS "emulated: instructions are counted, times and cycles mean nothing"
/* Of several processors: they take turns, and one that waits for another counts what it spins. */
#define VM_TURNS_WORDS                                                                         \
    "emulated, with several CPUs that take turns: waiting for each other is counted, too, so " \
    "that "                                                                                    \
    "instructions do not repeat exactly; times and cycles mean nothing"
/* Of a machine whose PMU is not emulated. */
#define VM_UNCOUNTED_WORDS \
    "emulated: times and cycles mean nothing, and no instructions are counted"

#define VM_MEMORY_BYTES \
    ((uint64_t)1 << 30) /* where nothing else is said: with 512M Linux has no huge pages */
#define VM_SHARE_TAG "host"

/* Of the kernel's command line: no address is random, in the kernel or in programs. */
#define VM_FIXED_WORDS "nokaslr norandmaps"
/*
 * Of the kernel's command line, where counts are to repeat: no defences
 * against flaws of processors, which depend on the processor; and memory is copied and cleared by
 * words, since an emulator needs an instruction for each byte otherwise (297: "erms").
 */
#define VM_EXACT_WORDS "mitigations=off clearcpuid=297 nowatchdog tsc=reliable"

enum vm_accel { VM_ACCEL_AUTO, VM_ACCEL_TCG, VM_ACCEL_KVM };

struct vm_settings {
    const struct vm_arch *arch;
    const struct vm_kernel *kernel;
    const char *guest; /* the static assay */
    const struct vm_files *files;
    uint64_t memory_bytes; /* 0 for 1 GiB */
    unsigned cpu_count;    /* 0 for 1 */
    enum vm_accel accel;
    const char *append;       /* words for the kernel's command line, or NULL */
    bool is_exact;            /* what can be made to repeat does */
    bool shares_files;        /* the host's files can be mounted, without changing them */
    bool keeps;               /* it boots to be kept (vm/snapshot.h) */
    const char *memory_file;  /* that it has its memory in, or NULL */
    const char *state_file;   /* with which it goes on instead of booting, or NULL */
    const char *plugin;       /* QEMU's option, or NULL */
    uint64_t boot_timeout_ns; /* 0 for two minutes */
    /* Called ten times a second while waiting; may be NULL. */
    void (*on_tick)(void *context, const char *what);
    void *context;
};

struct vm_machine {
    const struct vm_settings *settings; /* must live as long */
    pid_t pid;
    int port, monitor;
    int console, errors; /* files in memory */
    struct vm_frames frames;
    char release[128]; /* of the kernel, once it has booted */
    bool is_kvm, is_ready;
    bool kvm_failed;  /* it did not boot under KVM, and is emulated instead */
    uint64_t boot_ns; /* how long it took */
    /* Until its first process began, by the clock of the machine; 0 where that does not tell. */
    uint64_t boot_instructions;
};

struct vm_run {
    char *const *argv;
    char *const *variables; /* NAME=VALUE …, ends with NULL; may be NULL */
    const char *events;     /* to count, as -e takes them; NULL for none */
    const char *folder;     /* there; NULL for / */
    const char *input;      /* a file there; NULL for /dev/null */
    const char *program;    /* one of the host, among whose files the command then runs; or NULL */
    const char *groups;     /* there: "1000,27" */
    const char *tree;       /* there: a directory that is seen as another one, too; or NULL */
    const char *seen_as;
    bool drops_output;
    bool has_layout;        /* of its own: */
    unsigned mapping_count; /* it has so many mappings more than by itself */
    unsigned uid;
    uint64_t timeout_ns; /* of this machine's clock; 0 for none */
    /* Streams come as they are written, and nothing is counted, where this is set. */
    void (*on_output)(void *context, bool is_error, const char *bytes, size_t length);
    void *context;
};

struct vm_result {
    int status; /* as wait(2) gives it */
    bool timed_out;
    uint64_t wall_ns; /* of this machine's clock */
    struct strbuf out, err, metrics;
    struct strbuf maps; /* of a command among the host's files: "START END OFFSET PATH" … */
    struct vm_usage usage;
    struct vm_counts counts;
};

/* Why no such machine can be started here: what is to be installed. */
int vm_machine_check(const struct vm_arch *arch, struct error *err);

int vm_machine_start(struct vm_machine *m, const struct vm_settings *settings, struct error *err);
int vm_machine_await(struct vm_machine *m, struct error *err);
/* A command that fails is no failure of the machine.  One that runs out of time is: then the
 * machine is gone, result->timed_out is set, and -ETIMEDOUT returned. */
int vm_machine_run(struct vm_machine *m, const struct vm_run *run, struct vm_result *result,
                   struct error *err);
/* A file of the machine. */
int vm_machine_get(struct vm_machine *m, const char *path, struct strbuf *out, struct error *err);
int vm_machine_put(struct vm_machine *m, const char *path, const void *bytes, size_t length,
                   struct error *err);
/* What its results are to be called; NULL for a machine under KVM. */
const char *vm_machine_words(const struct vm_machine *m);
/* Whether its kernel killed a process because the machine has no more memory. */
bool vm_machine_ran_out(const struct vm_machine *m);
/* The same before it is started: of one that is emulated. */
const char *vm_settings_words(const struct vm_settings *s);
bool vm_machine_alive(const struct vm_machine *m);
/* Switches it off; safe at any time after vm_machine_start, also when that failed. */
void vm_machine_stop(struct vm_machine *m);

/* For one of QEMU's options, which commas separate; the caller frees it. */
char *vm_qemu_quoted(const char *text);

void vm_result_done(struct vm_result *result);

#endif
