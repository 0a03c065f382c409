/* SPDX-License-Identifier: MIT */
/* The events that have names of their own: see catalogue.h. */
#include "counters/catalogue.h"
#include "base/memory.h"
#include "base/strings.h"

#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>

#define SW(event_name, event_alias, event_config, event_help)                        \
    {                                                                                \
        event_name, event_alias, PERF_TYPE_SOFTWARE, event_config, event_help, false \
    }
#define SW_NS(event_name, event_alias, event_config, event_help)                    \
    {                                                                               \
        event_name, event_alias, PERF_TYPE_SOFTWARE, event_config, event_help, true \
    }
#define HW(event_name, event_alias, event_config, event_help)                        \
    {                                                                                \
        event_name, event_alias, PERF_TYPE_HARDWARE, event_config, event_help, false \
    }

static const struct catalogue_entry fixed[] = {
    SW_NS("task-clock", NULL, PERF_COUNT_SW_TASK_CLOCK, "CPU time of the tasks counted"),
    SW_NS("cpu-clock", NULL, PERF_COUNT_SW_CPU_CLOCK, "time of the CPUs counted"),
    SW("context-switches", "cs", PERF_COUNT_SW_CONTEXT_SWITCHES, "switches to another task"),
    SW("cpu-migrations", "migrations", PERF_COUNT_SW_CPU_MIGRATIONS, "moves to another CPU"),
    SW("page-faults", "faults", PERF_COUNT_SW_PAGE_FAULTS, "page faults, minor and major"),
    SW("minor-faults", NULL, PERF_COUNT_SW_PAGE_FAULTS_MIN, "page faults served from memory"),
    SW("major-faults", NULL, PERF_COUNT_SW_PAGE_FAULTS_MAJ, "page faults that waited for a disk"),
    SW("alignment-faults", NULL, PERF_COUNT_SW_ALIGNMENT_FAULTS,
       "unaligned accesses fixed up by the kernel (not on x86)"),
    SW("emulation-faults", NULL, PERF_COUNT_SW_EMULATION_FAULTS,
       "instructions the kernel emulated"),
    SW("cgroup-switches", NULL, PERF_COUNT_SW_CGROUP_SWITCHES,
       "switches to a task in another cgroup"),
    SW("dummy", NULL, PERF_COUNT_SW_DUMMY, "counts nothing"),
    SW("bpf-output", NULL, PERF_COUNT_SW_BPF_OUTPUT, "what a BPF program writes"),
    HW("cycles", "cpu-cycles", PERF_COUNT_HW_CPU_CYCLES, "CPU cycles"),
    HW("instructions", NULL, PERF_COUNT_HW_INSTRUCTIONS, "instructions retired"),
    HW("branches", "branch-instructions", PERF_COUNT_HW_BRANCH_INSTRUCTIONS,
       "branch instructions retired"),
    HW("branch-misses", NULL, PERF_COUNT_HW_BRANCH_MISSES, "mispredicted branches"),
    HW("cache-references", NULL, PERF_COUNT_HW_CACHE_REFERENCES,
       "accesses that reached the last-level cache (on most CPUs)"),
    HW("cache-misses", NULL, PERF_COUNT_HW_CACHE_MISSES, "accesses that missed it"),
    HW("bus-cycles", NULL, PERF_COUNT_HW_BUS_CYCLES, "bus cycles"),
    HW("stalled-cycles-frontend", "idle-cycles-frontend", PERF_COUNT_HW_STALLED_CYCLES_FRONTEND,
       "cycles without instructions to issue"),
    HW("stalled-cycles-backend", "idle-cycles-backend", PERF_COUNT_HW_STALLED_CYCLES_BACKEND,
       "cycles waiting for data or units"),
    HW("ref-cycles", NULL, PERF_COUNT_HW_REF_CPU_CYCLES, "cycles at the nominal frequency"),
};

struct cache_kind {
    const char *name;
    uint64_t id;
    bool stores, prefetches;
    const char *what;
};

static const struct cache_kind caches[] = {
    {"L1-dcache", PERF_COUNT_HW_CACHE_L1D, true, true, "level 1 data cache"},
    {"L1-icache", PERF_COUNT_HW_CACHE_L1I, false, true, "level 1 instruction cache"},
    {"LLC", PERF_COUNT_HW_CACHE_LL, true, true, "last-level cache"},
    {"dTLB", PERF_COUNT_HW_CACHE_DTLB, true, true, "data TLB"},
    {"iTLB", PERF_COUNT_HW_CACHE_ITLB, false, false, "instruction TLB"},
    {"branch", PERF_COUNT_HW_CACHE_BPU, false, false, "branch predictor"},
    {"node", PERF_COUNT_HW_CACHE_NODE, true, true, "local memory node"},
};

static const struct {
    const char *word, *miss_word, *what;
    uint64_t id;
} operations[] = {
    {"loads", "load-misses", "loads", PERF_COUNT_HW_CACHE_OP_READ},
    {"stores", "store-misses", "stores", PERF_COUNT_HW_CACHE_OP_WRITE},
    {"prefetches", "prefetch-misses", "prefetches", PERF_COUNT_HW_CACHE_OP_PREFETCH},
};

#define ENTRIES_MAX (ARRAY_COUNT(fixed) + ARRAY_COUNT(caches) * ARRAY_COUNT(operations) * 2)

/* The cache events' names are put together once. */
static struct catalogue_entry entries[ENTRIES_MAX];
static char texts[ENTRIES_MAX][2][64];
static size_t entry_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void add_cache_event(const struct cache_kind *cache, size_t operation, bool miss)
{
    size_t index = entry_count++;
    snprintf(texts[index][0], sizeof(texts[index][0]), "%s-%s", cache->name,
             miss ? operations[operation].miss_word : operations[operation].word);
    snprintf(texts[index][1], sizeof(texts[index][1]), "%s of the %s%s", operations[operation].what,
             cache->what, miss ? " that missed" : "");
    uint64_t result = miss ? PERF_COUNT_HW_CACHE_RESULT_MISS : PERF_COUNT_HW_CACHE_RESULT_ACCESS;
    entries[index] = (struct catalogue_entry){
        .name = texts[index][0],
        .type = PERF_TYPE_HW_CACHE,
        .config = catalogue_cache_config(cache->id, operations[operation].id, result),
        .help = texts[index][1],
    };
}

static void build(void)
{
    for (size_t i = 0; i < ARRAY_COUNT(fixed); i++)
        entries[entry_count++] = fixed[i];
    for (size_t i = 0; i < ARRAY_COUNT(caches); i++)
        for (size_t operation = 0; operation < ARRAY_COUNT(operations); operation++) {
            uint64_t id = operations[operation].id;
            if ((id == PERF_COUNT_HW_CACHE_OP_WRITE && !caches[i].stores) ||
                (id == PERF_COUNT_HW_CACHE_OP_PREFETCH && !caches[i].prefetches))
                continue;
            add_cache_event(&caches[i], operation, false);
            add_cache_event(&caches[i], operation, true);
        }
}

const struct catalogue_entry *catalogue(size_t *ret_count)
{
    pthread_once(&once, build);
    *ret_count = entry_count;
    return entries;
}

const struct catalogue_entry *catalogue_find(const char *name)
{
    size_t count;
    const struct catalogue_entry *all = catalogue(&count);
    for (size_t i = 0; i < count; i++)
        if (str_eq(all[i].name, name) || (all[i].alias && str_eq(all[i].alias, name)))
            return &all[i];
    return NULL;
}
