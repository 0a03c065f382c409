/* SPDX-License-Identifier: MIT */
/* Fuzzes the reader of /tmp/perf-PID.map. */
#include "symbols/names/perfmap.h"
#include "base/memory.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(memory_freep) char *text = memory_strndup((const char *)data, size);
    struct symtab_builder builder = {.latest_wins = true};
    struct symtab table;
    perfmap_parse(text, size, &builder);
    symtab_build(&builder, &table);
    for (size_t i = 0; i < table.range_count; i++) {
        uint32_t symbol = symtab_find(&table, table.starts[i]);
        size_t length;
        if (symbol != SYMTAB_NONE)
            symtab_name(&table, symbol, &length);
    }
    symtab_done(&table);
    return 0;
}
