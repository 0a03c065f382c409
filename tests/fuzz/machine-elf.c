/* SPDX-License-Identifier: MIT */
/* Fuzzes the little reader of ELF files: build-ids and frame pointers. */
#include "machine/elf.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct elf_file e;
    struct elf_frames frames;
    char hex[64];
    if (elf_from_memory(&e, data, size) == 0) {
        elf_build_id(&e, hex, sizeof(hex));
        elf_count_frames(&e, &frames);
    }
    elf_notes_build_id(data, size, hex, sizeof(hex));
    code_sets_frame_x86_64(data, size);
    code_sets_frame_aarch64(data, size);
    return 0;
}
