/* SPDX-License-Identifier: MIT */
/* What the plugin has to know of the guest's kernel: where tasks are switched, interrupts and
 * exceptions begin and end, and the functions of system calls are. */
#ifndef ASSAY_EXACT_PLUGIN_KSYMS_H
#define ASSAY_EXACT_PLUGIN_KSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ksym_kind {
    KSYM_NONE,
    KSYM_INTERRUPT, /* its entry */
    KSYM_EXCEPTION, /* its entry */
    KSYM_RETURN,    /* from either begins */
    KSYM_RETURNING, /* the rest of that */
    KSYM_STUB,      /* where the processor goes for an interrupt */
    KSYM_CALL,      /* the function of a system call */
    KSYM_NEW,       /* the first code of a new task */
    KSYM_ASIDE,     /* a function whose work, at that moment, is not due to the command */
    KSYM_YIELD,     /* a function that lets others run, where that is due to them */
    KSYM_SCHEDULE,  /* the function by which it does */
};

struct ksym {
    uint64_t address, end;
    enum ksym_kind kind;
};

struct ksyms {
    struct ksym *items; /* all of the kernel, by address */
    size_t count, capacity;
    uint64_t switch_start, switch_end; /* the function that changes the stack */
};

/* False when the file is no list of symbols, or lacks what is needed. */
bool ksyms_read(struct ksyms *k, const char *path);
/* What kind of code begins at an address; of KSYM_ASIDE and the next
 * ones, also within.  *ret_function is where the symbol begins. */
enum ksym_kind ksyms_kind(const struct ksyms *k, uint64_t address, uint64_t *ret_function);

#endif
