/* SPDX-License-Identifier: MIT */
/* Fuzzes the reader of jitdump files. */
#include "symbols/names/jitdump.h"
#include "base/memory.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct jitdump dump;
    struct error err;
    jitdump_parse(data, size, &dump, &err);
    for (size_t i = 0; i < dump.count; i++)
        for (size_t l = 1; l < dump.codes[i].line_count; l++)
            if (dump.codes[i].lines[l].offset < dump.codes[i].lines[l - 1].offset)
                __builtin_trap();
    jitdump_done(&dump);
    return 0;
}
