/* SPDX-License-Identifier: MIT */
/* Fuzzes the readers of other printed_harnesses' output; the first byte chooses one. */
#include "base/memory.h"
#include "bench/printed/printed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t count = 0;
    while (printed_harnesses[count].name)
        count++;
    if (!size)
        return 0;
    struct error err;
    CLEANUP(printed_results_done) struct printed_results results = {0};
    /* At its exact length: what reads beyond the end is found. */
    CLEANUP(memory_freep) char *text = memory_alloc(size);
    memcpy(text, data + 1, size - 1);
    printed_harnesses[data[0] % count].parse(&results, text, size - 1, &err);
    return 0;
}
