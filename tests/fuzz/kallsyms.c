/* SPDX-License-Identifier: MIT */
/* Fuzzes the reader of /proc/kallsyms. */
#include "symbols/names/kallsyms.h"
#include "base/memory.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(memory_freep) char *text = memory_strndup((const char *)data, size);
    for (uint64_t shift = 0; shift < 2; shift++) {
        struct kallsyms k;
        size_t length;
        kallsyms_parse(text, size, shift * 0x1000, &k);
        uint64_t stext = kallsyms_address_of(text, size, "_stext");
        uint32_t symbol = symtab_find(&k.table, stext);
        if (symbol != SYMTAB_NONE)
            symtab_name(&k.table, symbol, &length);
        kallsyms_done(&k);
    }
    return 0;
}
