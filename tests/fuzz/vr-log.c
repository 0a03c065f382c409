/* SPDX-License-Identifier: MIT */
/* Fuzzes what a replica reads from its disk: any bytes give a log that chains, or an error. */
#include "base/memory.h"
#include "store.h"

#include <assert.h>
#include <string.h>

struct input {
    const uint8_t *data;
    size_t size;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_input(void *context, uint64_t offset, void *bytes, size_t size)
{
    const struct input *in = context;
    memset(bytes, 0, size);
    if (offset < in->size)
        memcpy(bytes, in->data + offset, size < in->size - offset ? size : in->size - offset);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vr_config config = {.cluster = 3,
                               .replica_count = 3,
                               .slots = 8,
                               .checkpoint_every = 4,
                               .pipeline = 2,
                               .batch_bytes = 448,
                               .sessions = 1,
                               .kv_capacity = 1,
                               .heartbeat_ns = 1000,
                               .timeout_ns = 10000};
    struct vr_store store;
    struct vr_loaded l;
    struct error err = {0};
    struct input in = {data, size};
    vr_store_init(&store, &config, 512);
    if (vr_store_load(&store, read_input, &in, &l, &err) == 0) {
        for (uint32_t i = 0; i < l.image.count; i++)
            assert(l.entries[i].op == l.image.durable.checkpoint_op + 1 + i);
        vr_replica_free(vr_replica_new(&config, &l.image, 1, 1));
    }
    vr_loaded_done(&l);
    vr_store_done(&store);
    return 0;
}
