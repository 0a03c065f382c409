/* SPDX-License-Identifier: MIT */
/* Fuzzes demangling and the folding of names. */
#include "symbols/tables/names.h"
#include "base/memory.h"
#include "symbols/tables/source_path.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(memory_freep) char *name = memory_strndup((const char *)data, size);
    CLEANUP(strbuf_done) struct strbuf out = {0};
    size_t length = strlen(name);
    if (name_fold(name, length) > length)
        __builtin_trap();
    for (int style = DEMANGLE_SHORT; style <= DEMANGLE_NONE; style++) {
        strbuf_clear(&out);
        if (name_demangle(name, (enum demangle_style)style, &out))
            name_fold(out.data, out.length);
        if (out.length > 2 * SYMBOLS_NAME_MAX)
            __builtin_trap();
    }
    source_path(&out, name, name);
    return 0;
}
