/* SPDX-License-Identifier: MIT */
/* What the queues ask of the system: ranges of addresses, segments, and barriers. */
#include "atomics.h"
#include "faa.h"
#include "nodes.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int membarrier(int command)
{
    return (int)syscall(SYS_membarrier, command, 0, 0);
}

bool queue_barrier_is_cheap(void)
{
    int known = membarrier(MEMBARRIER_CMD_QUERY);
    return known > 0 && (known & MEMBARRIER_CMD_PRIVATE_EXPEDITED) &&
           (known & MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
           membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

void queue_barrier_heavy(void)
{
    /* It cannot fail once the process is registered. */
    if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0)
        abort();
}

static void *map_pages(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

#define NODES_UNITS_MIN 1024

int nodes_init(struct nodes *n, enum nodes_kind kind, size_t item_bytes, uint64_t nodes_max)
{
    *n = (struct nodes){.kind = kind, .node_bytes = nodes_bytes_for(item_bytes)};
    if (kind == NODES_MALLOC)
        return 0;
    uint64_t units = n->node_bytes / NODES_UNIT, wanted = (nodes_max + 1) * units;
    if (wanted > UINT32_MAX)
        wanted = UINT32_MAX;
    if (wanted < NODES_UNITS_MIN)
        wanted = NODES_UNITS_MIN;
    /* Only addresses are reserved; where even these are rationed, fewer will do. */
    for (; wanted >= NODES_UNITS_MIN && !n->base; wanted /= n->base ? 1 : 2) {
        n->base = map_pages(wanted * NODES_UNIT);
        n->unit_end = n->base ? wanted : 0;
        if (n->base)
            break;
    }
    if (!n->base)
        return -ENOMEM;
    n->fresh = units; /* unit 0 names no node */
    return 0;
}

void nodes_done(struct nodes *n)
{
    if (n->base)
        munmap(n->base, n->unit_end * NODES_UNIT);
    *n = (struct nodes){0};
}

void *faa_memory_get(size_t bytes)
{
    return map_pages(bytes);
}

void faa_memory_put(void *memory, size_t bytes)
{
    munmap(memory, bytes);
}
