/* SPDX-License-Identifier: MIT */
/*
 * One function from near: which of its source lines and instructions the samples are on.
 *
 * The profile must be loaded with_lines and symbolized with SYMBOLS_INLINES.  A sample in code that
 * was inlined into the function counts for the line that called it, and in the disassembly for the
 * instruction, whose own line may be in another file.
 */
#ifndef ASSAY_PROFILE_ANNOTATE_H
#define ASSAY_PROFILE_ANNOTATE_H

#include "profile/profile.h"

struct annotate_line { /* of the source */
    const char *file;  /* NULL: not known */
    uint32_t line;
    uint64_t samples, weight;
};

struct annotate_instruction {
    uint64_t address; /* as objdump shows it */
    uint64_t samples, weight;
    const char *file; /* of the innermost function there; NULL: not known */
    uint32_t line;
    char *text;       /* "mov eax, dword ptr [rbx]"; NULL where it could not be read */
    uint32_t comment; /* offset in text of what was added to the bare instruction; 0 for none */
};

/* Where an inlined function is. */
struct annotate_host {
    uint32_t symbol;
    uint64_t weight;
};

struct annotation {
    uint32_t symbol; /* in profile->calls.symbols */
    uint32_t event;
    uint64_t samples, weight;    /* on the function's own code and on what is inlined in it */
    uint64_t inlined_weight;     /* where the function was itself inlined elsewhere */
    uint64_t elsewhere_weight;   /* in parts outside [start, start + size): variants */
    struct annotate_line *lines; /* by file and line */
    size_t line_count, line_capacity;
    struct annotate_instruction *instructions; /* by address */
    size_t instruction_count, instruction_capacity;
    struct annotate_host *hosts; /* heaviest first */
    size_t host_count, host_capacity;
    const char *missing; /* why there is no disassembly; NULL when there is one */
    char missing_text[600];
};

/* The event with most samples. */
uint32_t annotate_main_event(const struct profile *profile);

/*
 * The symbol that the name means: its name or linkage name, in the given binary if dso is not NULL;
 * of several the one with most samples, and *ret_others says how many there are beside it.
 * -ENOENT, with suggestions, when there is none with samples.
 */
int annotate_find(const struct profile *profile, uint32_t event, const char *name, const char *dso,
                  uint32_t *ret_symbol, size_t *ret_others, struct error *err);

/* kernel_code is the file with the running kernel's memory; NULL for /proc/kcore. */
void annotate_build(struct annotation *a, struct profile *profile, uint32_t event, uint32_t symbol,
                    const char *kernel_code);
void annotate_done(struct annotation *a);

/* Reads kernel memory from a core file such as /proc/kcore; returns how many bytes there were. */
size_t kernel_memory_read(const char *path, uint64_t address, void *buffer, size_t size);

#endif
