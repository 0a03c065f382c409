/* SPDX-License-Identifier: MIT */
/* Threads, CPUs and cores told apart: see entities.h. */
#include "counters/entities.h"
#include "base/fd.h"
#include "base/memory.h"
#include "counters/threads.h"

#include <inttypes.h>
#include <stdio.h>

void entities_name_threads(struct measurement *m, const pid_t *tasks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct measured_thread *thread = measurement_thread(m, 0, tasks[i]);
        char path[64];
        snprintf(path, sizeof(path), "/proc/%d/comm", (int)tasks[i]);
        file_read_line(path, thread->name, sizeof(thread->name));
    }
}

static int64_t topology(int cpu, const char *what)
{
    char path[96];
    int64_t number;
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, what);
    return file_read_i64(path, &number) ? number : -1;
}

int *entities_name_cpus(struct measurement *m, const int *cpus, size_t count, bool by_core)
{
    int *numbers = memory_zalloc(count + 1, sizeof(*numbers));
    for (size_t i = 0; i < count; i++) {
        char name[48];
        int64_t socket = topology(cpus[i], "physical_package_id"),
                core = topology(cpus[i], "core_id");
        numbers[i] = cpus[i];
        snprintf(name, sizeof(name), "CPU%d", cpus[i]);
        if (by_core && core >= 0) {
            snprintf(name, sizeof(name), "S%" PRId64 "-C%" PRId64, socket > 0 ? socket : 0, core);
            for (size_t k = 0; k < i; k++)
                if (topology(cpus[k], "core_id") == core &&
                    topology(cpus[k], "physical_package_id") == socket) {
                    numbers[i] = numbers[k];
                    break;
                }
        }
        struct measured_thread *entry = measurement_thread(m, 0, numbers[i]);
        snprintf(entry->name, sizeof(entry->name), "%.16s", name);
    }
    return numbers;
}

int entities_keep(struct measurement *m, const struct counters *c, const int *numbers,
                  struct error *err)
{
    CLEANUP(memory_freep)
    struct counter_value *values = memory_zalloc(m->event_count + 1, sizeof(*values));
    for (size_t entity = 0; entity < c->entity_count; entity++) {
        int r = counters_read_entity(c, entity, values, err);
        if (r < 0)
            return r;
        struct measured_thread *entry = measurement_thread(m, 0, numbers[entity]);
        for (size_t i = 0; i < m->event_count; i++) {
            entry->values[i].raw += values[i].raw;
            entry->values[i].enabled_ns += values[i].enabled_ns;
            entry->values[i].running_ns += values[i].running_ns;
        }
    }
    return 0;
}
