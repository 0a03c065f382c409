/* SPDX-License-Identifier: MIT */
/*
 * Inside src/machine: the little of ELF that the probes need, without any library, since doctor
 * must work where none is.  Files of 64 bits in little-endian order only.  Every offset and count
 * is checked against the file, so that a damaged one gives false and nothing worse.
 */
#ifndef ASSAY_MACHINE_ELF_H
#define ASSAY_MACHINE_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file {
    const unsigned char *bytes;
    size_t size;
    uint16_t machine; /* EM_X86_64, … */
};

/* Maps the file; 0 or a negative errno, -ENOEXEC when it is no ELF of the kind above. */
int elf_open(struct elf_file *e, const char *path);
void elf_done(struct elf_file *e);
/* The same over bytes that the caller keeps; elf_done must not be called. */
int elf_from_memory(struct elf_file *e, const void *bytes, size_t size);

/* The build-id in hexadecimal digits; the buffer takes at least 41 bytes. */
bool elf_build_id(const struct elf_file *e, char *hex, size_t size);
/* The same from bare notes, as /sys/kernel/notes has them. */
bool elf_notes_build_id(const unsigned char *notes, size_t length, char *hex, size_t size);

/* How many functions the symbol table names, and how many of them set up a frame pointer. */
struct elf_frames {
    size_t functions, framed;
};
bool elf_count_frames(const struct elf_file *e, struct elf_frames *ret_frames);

/* Whether the code at the start of a function sets up a frame pointer. */
bool code_sets_frame_x86_64(const unsigned char *code, size_t length);
bool code_sets_frame_aarch64(const unsigned char *code, size_t length);

#endif
