/* SPDX-License-Identifier: MIT */
/* Build-ids: what the linker wrote into a file to tell it from every other, kept in a note. */
#ifndef ASSAY_ELF_BUILD_ID_H
#define ASSAY_ELF_BUILD_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUILD_ID_MAX 32
#define BUILD_ID_TEXT (2 * BUILD_ID_MAX + 1)

/* Bytes behind the size are zero. */
struct build_id {
    uint8_t size; /* 0 when there is none */
    uint8_t bytes[BUILD_ID_MAX];
};

/* Cuts what is longer than BUILD_ID_MAX; the kernel records up to 20 bytes, padded with zeros. */
struct build_id build_id_from_bytes(const void *bytes, size_t size);
bool build_id_equal(const struct build_id *a, const struct build_id *b);
/* In hexadecimal; the buffer holds BUILD_ID_TEXT characters. */
char *build_id_format(const struct build_id *id, char *buffer);

/* The first of a row of notes; false when there is none or the notes are damaged before it. */
bool build_id_in_notes(const void *notes, size_t size, struct build_id *ret_id);
/* From a file of bare notes, as /sys/kernel/notes. */
bool build_id_of_notes(const char *path, struct build_id *ret_id);
/* False when the file has none, is no ELF file, or cannot be read. */
bool build_id_of_file(const char *path, struct build_id *ret_id);

#endif
