/* SPDX-License-Identifier: MIT */
/* Fuzzes the reader of specs, and what follows from one: cells, selections, filled commands. */
#include "spec/spec.h"
#include "base/memory.h"
#include "base/strings.h"
#include "run/command.h"
#include "spec/holes.h"
#include "spec/matrix.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const struct spec *s)
{
    struct error err;
    double cells = 1;
    for (size_t f = 0; f < s->factor_count; f++)
        cells *= (double)s->factors[f].level_count;
    struct matrix m;
    if (cells > 2000 || matrix_make(&m, s, &err) < 0)
        return;
    CLEANUP(memory_freep) bool *kept = memory_zalloc(m.count, sizeof(bool));
    matrix_select(&m, "1,2-3", kept, &err);
    const char *builds[4] = {"/b", "/b", "/b", "/b"};
    struct hole_values values = {
        .spec = s, .levels = m.cells[0].levels, .builds = s->build_count <= 4 ? builds : NULL};
    char **words = NULL;
    if (holes_command(&s->command, &values, &words, &err) == 0)
        command_free_words(words);
    matrix_done(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int quick = 0; quick < 2; quick++) {
        struct spec s;
        struct error err;
        if (spec_parse(&s, "fuzz.yaml", (const char *)data, size, quick, &err) < 0)
            continue;
        use(&s);
        spec_done(&s);
    }
    return 0;
}
