/* SPDX-License-Identifier: MIT */
/* Fuzzes the readers of other tools' results: the first byte chooses a format, or none, so that
 * each is tried also on what it would not take for its own. */
#include "harness/harness.h"
#include "base/memory.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t formats = 0;
    struct error err;
    CLEANUP(harness_results_done) struct harness_results results = {0};
    while (harness_formats[formats].name)
        formats++;
    size_t choice = size ? data[0] : 0;
    bool is_named = size && choice < formats;
    CLEANUP(memory_freep)
    char *text = memory_strndup((const char *)data + is_named, size - is_named);
    harness_read_text(&results, text, strlen(text), "fuzz",
                      is_named ? harness_formats[choice].name : NULL, &err);
    return 0;
}
