/* SPDX-License-Identifier: MIT */
/* Fuzzes the reader of cachegrind's output. */
#include "base/memory.h"
#include "counters/simulated.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_function(const char *name, size_t length, const struct simulated_function *f,
                        void *context)
{
    double *sum = context;
    *sum += (length ? name[length - 1] : 0) + f->instructions + f->mispredicted + f->first_level +
            f->last_level;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(memory_freep) char *text = memory_strndup((const char *)data, size);
    uint64_t values[SIMULATED_EVENTS_MAX] = {0};
    struct error err;
    simulated_parse(text, true, values, &err);
    simulated_parse(text, false, values, &err);
    double sum = 0;
    simulated_functions(text, on_function, &sum);
    return 0;
}
