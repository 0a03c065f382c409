/* SPDX-License-Identifier: MIT */
/* Fuzzes the reader of what programs with assay.h say, line by line. */
#include "base/memory.h"
#include "base/strings.h"
#include "bench/cases.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(bench_entries_done) struct bench_entries entries = {0};
    CLEANUP(bench_cases_done) struct bench_cases cases = {0};
    CLEANUP(memory_freep) char *text = memory_strndup((const char *)data, size);
    struct error err;
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        CLEANUP(memory_freep) char *name = NULL, *unit = NULL, *law = NULL;
        struct bench_sample sample;
        double value;
        bench_sample_parse(line, &sample, &err);
        bench_figure_parse(line, &value, &name, &unit, &err);
        bench_law_parse(line, &value, &law, &err);
        if (entries.count < 20)
            bench_entries_take(&entries, line, &err);
    }
    bench_entries_sort(&entries);
    bench_cases_make(&cases, &entries, NULL, NULL, 0, &err);
    return 0;
}
