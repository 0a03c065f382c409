/* SPDX-License-Identifier: MIT */
/* Fuzzes what -e takes. */
#include "counters/event.h"
#include "base/memory.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(memory_freep) char *text = memory_strndup((const char *)data, size);
    CLEANUP(event_list_done) struct event_list list = {0};
    struct error err;
    event_list_parse(&list, text, &err);
    return 0;
}
