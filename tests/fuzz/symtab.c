/* SPDX-License-Identifier: MIT */
/* Fuzzes the reader of cached tables, with a checksum that is right. */
#include "symbols/tables/symtab.h"
#include "base/memory.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct symtab table = {.block = {.bytes = memory_alloc(size), .size = size}};
    struct build_id id = build_id_from_bytes("fuzz", 4);
    memcpy(table.block.bytes, data, size);
    if (size >= sizeof(struct sealed_header))
        symtab_seal(&table, &id, "fuzz");
    if (symtab_unseal(&table, table.block, &id, NULL, NULL) < 0)
        return 0;
    for (size_t i = 0; i < table.range_count; i++) {
        uint32_t symbol = symtab_find(&table, table.starts[i]);
        size_t length;
        if (symbol != SYMTAB_NONE)
            symtab_name(&table, symbol, &length);
        symtab_to_address(&table, i);
        symtab_to_offset(&table, i);
    }
    symtab_done(&table);
    return 0;
}
