/* SPDX-License-Identifier: MIT */
/* Fuzzes demangling, the folding of names, and the numbers of lambdas in them. */
#include "symbols/tables/names.h"
#include "base/memory.h"
#include "profile/numbered.h"
#include "symbols/tables/source_path.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Each line is a function of one side or the other; its first letter stands for its code. */
static void try_numbers(char *lines)
{
    struct numbered *n = numbered_new();
    CLEANUP(strbuf_done) struct strbuf out = {0};
    char *rest = lines;
    unsigned side = 0;
    for (char *line = strsep(&rest, "\n"); line && side < 64; line = strsep(&rest, "\n"), side++)
        numbered_add(n, side & 1, line, (uint8_t)line[0]);
    numbered_conclude(n);
    numbered_name(n, 1, lines, &out);
    numbered_free(n);
}

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
    try_numbers(name);
    return 0;
}
