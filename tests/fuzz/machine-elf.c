/* SPDX-License-Identifier: MIT */
/* Fuzzes what is read of ELF files without their symbols' names: build-ids, the loader, frame
 * pointers. */
#include "base/memory.h"
#include "elf/build_id.h"
#include "machine/frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct image image;
    struct frames frames;
    struct build_id id;
    uint16_t machine;
    if (image_open_memory(&image, "fuzz", data, size, NULL) == 0) {
        CLEANUP(memory_freep) char *loader = image_interpreter(&image);
        (void)loader;
        frames_count(&image, &frames);
        image_close(&image);
    }
    image_machine(data, size, &machine);
    build_id_in_notes(data, size, &id);
    code_sets_frame_x86_64(data, size);
    code_sets_frame_aarch64(data, size);
    return 0;
}
