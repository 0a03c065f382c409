/* SPDX-License-Identifier: MIT */
/* Fuzzes the readers of /proc and /sys: each takes any text. */
#include "base/memory.h"
#include "machine/parse.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_lines(const char *text)
{
    struct proc_cgroup group;
    struct proc_mapping mapping;
    for (const char *line = text; line; line = proc_next_line(line)) {
        if (proc_cgroup_line(line, &group) && group.path_length > strlen(group.path))
            __builtin_trap();
        if (proc_maps_line(line, &mapping) && mapping.path_length > strlen(mapping.path))
            __builtin_trap();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(memory_freep) char *text = memory_strndup((const char *)data, size);
    char small[4], value[64];
    uint64_t number;
    struct proc_times times;
    struct proc_pressure pressure;
    proc_field(text, "model name", small, sizeof(small));
    proc_field(text, "ID", value, sizeof(value));
    proc_field_u64(text, "MemTotal", &number);
    proc_field_hex(text, "CapEff", &number);
    proc_chosen(text, small, sizeof(small));
    proc_stat_times(text, &times);
    proc_pressure_line(text, "some", &pressure);
    proc_cache_size(text, &number);
    read_lines(text);
    return 0;
}
