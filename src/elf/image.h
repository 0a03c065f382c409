/* SPDX-License-Identifier: MIT */
/*
 * An ELF file as assay needs it: segments, sections, build-id, and the bytes of a section.  Nothing
 * else in assay reads ELF headers.
 *
 * Written here and not taken from libelf because it is asked on the paths that must be quick
 * (thousands of files, most of them for a name or two), because it must stand malformed files
 * without a library's word for it, and because it must be there in builds without libelf.
 * 32 and 64 bits, little-endian.  Bytes are read, not mapped: a file that shrinks while it is read
 * gives short reads, never a signal.
 *
 * Threads: an image is read-only after image_open; any number of threads may read it.
 */
#ifndef ASSAY_ELF_IMAGE_H
#define ASSAY_ELF_IMAGE_H

#include "base/error.h"
#include "base/strings.h"
#include "elf/build_id.h"
#include "elf/machine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image_segment {
    uint64_t offset, address, file_size, memory_size;
    bool executable;
};

struct image_section {
    const char *name; /* "" when it has none */
    uint32_t type;
    uint64_t flags, address, offset, size, entry_size;
    uint32_t link, info;
};

/* A part of the file. */
struct image_part {
    uint64_t offset, size;
};

struct image {
    int fd;               /* -1 when it lies in memory */
    const uint8_t *bytes; /* then here, owned by whoever opened it */
    uint64_t size;
    char *path; /* for messages */
    bool is_64bit;
    uint16_t machine, type;
    struct image_segment *segments; /* those that are loaded, in the file's order */
    size_t segment_count;
    struct image_section *sections;
    size_t section_count;
    char *section_names;
    struct build_id build_id;
    struct image_part interpreter; /* the program that loads it; size 0 for none */
};

int image_open(struct image *image, const char *path, struct error *err);
/* The bytes must live as long as the image. */
int image_open_memory(struct image *image, const char *name, const void *bytes, size_t size,
                      struct error *err);
/* The vdso is in every process, this one included; it has a section table in its one or two
 * pages. */
int image_open_own_vdso(struct image *image, struct error *err);
void image_close(struct image *image);

/* Copies up to size bytes from an offset of the file; returns how many there were. */
size_t image_read(const struct image *image, uint64_t offset, void *buffer, size_t size);

/* NULL when there is none of that name (or it has no bytes in this file). */
const struct image_section *image_find(const struct image *image, const char *name);
const struct image_section *image_find_type(const struct image *image, uint32_t type);

/* The bytes of a section, decompressed where that is needed and can be done; the caller frees
 * *ret_bytes, which has a zero byte behind the end.  -ENOENT when the section has none. */
int image_section_bytes(const struct image *image, const struct image_section *section,
                        uint8_t **ret_bytes, size_t *ret_size, struct error *err);

/* Between offsets in the file and addresses; false when no loaded segment has it. */
bool image_offset_to_address(const struct image *image, uint64_t offset, uint64_t *ret_address);
/* And how many bytes of the segment the file has from there on. */
bool image_address_to_offset(const struct image *image, uint64_t address, uint64_t *ret_offset,
                             size_t *ret_left);

/* Appends which file this is, so that a table made from it is not used when it has changed.
 * image may be NULL. */
void image_describe(const struct image *image, struct strbuf *out);

/* The path of the program that loads it; the caller frees it.  NULL: none. */
char *image_interpreter(const struct image *image);

/* The debug file's name and checksum in .gnu_debuglink; the caller frees the name.  NULL: none. */
char *image_debuglink(const struct image *image, uint32_t *ret_crc);

#endif
