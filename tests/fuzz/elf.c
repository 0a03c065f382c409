/* SPDX-License-Identifier: MIT */
/* Fuzzes all that is read from ELF files: symbols, PLT, lines, inlined functions, frame rules. */
#include "base/memory.h"
#include "elf/image.h"
#include "symbols/dwarf/cfi.h"
#include "symbols/symbols.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define REQUEST_COUNT 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool read_nothing(void *memory, uint64_t address, uint64_t *ret_value)
{
    (void)memory;
    *ret_value = address * 3;
    return address & 8;
}

static void try_rules(const uint8_t *data, size_t size)
{
    struct image image;
    uint64_t registers[CFI_REGISTER_COUNT] = {1, 2, 3};
    struct cfi_context context = {registers, (1ull << CFI_REGISTER_COUNT) - 1, read_nothing, NULL};
    if (image_open_memory(&image, "fuzz", data, size, NULL) < 0)
        return;
    struct cfi *cfi = cfi_load(&image, &image);
    for (uint64_t address = 0x100; address < 0x900; address += 3) {
        struct cfi_frame frame;
        uint64_t value;
        if (!cfi_find(cfi, address, &frame))
            continue;
        cfi_evaluate(&context, frame.row->cfa_expression, frame.row->cfa_expression_size, false, 0,
                     &value);
        for (size_t i = 0; i < frame.row->rule_count; i++)
            cfi_evaluate(&context, frame.rules[i].expression, frame.rules[i].expression_size, true,
                         address, &value);
    }
    cfi_free(cfi);
    image_close(&image);
}

/* The whole way, through a file that lives in memory. */
static void try_names(const uint8_t *data, size_t size)
{
    static int fd = -1;
    if (fd < 0)
        fd = memfd_create("fuzz", 0);
    if (ftruncate(fd, 0) < 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
        return;
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    struct symbols_options options = {.no_cache = true,
                                      .no_debuginfod = true,
                                      .thread_count = 1,
                                      .debug_folders = "/nonexistent",
                                      .perf_cache = "/nonexistent"};
    struct symbols *symbols = symbols_new(&options);
    struct module *module = symbols_module(symbols, &(struct module_key){.path = path});
    struct symbols_request requests[REQUEST_COUNT];
    for (uint64_t i = 0; i < REQUEST_COUNT; i++)
        requests[i] = (struct symbols_request){.location = {module, 0x100 + i * 5}};
    symbols_resolve(symbols, requests, REQUEST_COUNT, SYMBOLS_INLINES);
    symbols_free(symbols);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_rules(data, size);
    try_names(data, size);
    return 0;
}
