/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes what a replica reads from its disk: any bytes give a log that chains, or an error.  What
 * is read once reads the same again after the heads' second copies were repaired, and a replica
 * starts on it and writes nothing that cannot be read.
 *
 * With VR_FUZZ_COUNT set, the last line says how many inputs came how far.
 */
#include "vr-disk.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
    unsigned long inputs, loaded, certain, with_entries, with_holes, with_checkpoint;
} counts;

static void say_counts(void)
{
    fprintf(stderr,
            "vr-log: %lu inputs, %lu loaded, of these %lu certain, %lu with entries, %lu with "
            "holes, %lu with a checkpoint\n",
            counts.inputs, counts.loaded, counts.certain, counts.with_entries, counts.with_holes,
            counts.with_checkpoint);
}

static void check_log(const struct disk *d, const struct vr_loaded *l)
{
    const struct vr_durable *durable = &l->image.durable;
    uint64_t parent =
        durable->checkpoint_op ? durable->checkpoint_entry : vr_genesis_checksum(d->config.cluster);
    bool linked = true;
    for (uint32_t i = 0; i < l->image.count; i++) {
        const struct vr_entry *e = &l->entries[i];
        assert(e->op == durable->checkpoint_op + 1 + i);
        /* Of an entry that is known by its successor alone, the one before is not known. */
        bool by_successor = e->size == 0 && e->body_checksum == 0 && !e->flags && e->parent == 0;
        assert(!linked || by_successor || e->parent == parent);
        if (e->flags & VR_ENTRY_HAS_BODY) {
            const void *body = l->image.body(&l->image, i);
            assert(e->size <= d->config.batch_bytes && vr_entry_valid(e, body));
            assert(vr_batch_valid(body, e->size, e->count));
        }
        linked = !by_successor;
        parent = e->checksum;
    }
    if (l->image.has_checkpoint)
        assert(l->image.pages->root == durable->checkpoint_checksum);
}

/* A start writes the second copies as the store has them then: after that they are right. */
static void check_repair(struct disk *d, struct vr_loaded *l)
{
    struct vr_loaded again;
    struct error err = {0};
    memcpy(d->bytes + d->store.heads_offset, d->store.heads, d->store.heads_bytes);
    int result = vr_store_load(&d->store, disk_read, d, &again, &err);
    assert(result == 0 && again.heads_stale == 0);
    assert(again.image.count == l->image.count && again.image.uncertain == l->image.uncertain);
    vr_loaded_done(&again);
}

static void check_start(struct disk *d, struct vr_loaded *l)
{
    static struct vr_update update;
    struct vr_loaded again;
    struct error err = {0};
    struct vr_replica *r = vr_replica_new(&d->config, &l->image, 1, 1);
    struct vr_event turn = {.kind = VR_EVENT_TURN, .now_ns = 2};
    update.message_count = update.write_count = 0;
    update.scratch_used = 0;
    vr_step(r, &turn, &update);
    for (uint32_t i = 0; i < update.write_count; i++)
        disk_write(d, &update.writes[i], 2);
    int result = vr_store_load(&d->store, disk_read, d, &again, &err);
    assert(result == 0);
    vr_loaded_done(&again);
    vr_replica_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct disk d;
    struct vr_loaded l;
    struct error err = {0};
    if (counts.inputs++ == 0 && getenv("VR_FUZZ_COUNT"))
        atexit(say_counts);
    disk_from_input(&d, data, size);
    if (vr_store_load(&d.store, disk_read, &d, &l, &err) == 0) {
        uint32_t holes = 0;
        for (uint32_t i = 0; i < l.image.count; i++)
            holes += !(l.entries[i].flags & VR_ENTRY_HAS_BODY);
        counts.loaded++;
        counts.certain += !l.image.uncertain;
        counts.with_entries += l.image.count > 0;
        counts.with_holes += holes > 0;
        counts.with_checkpoint += l.image.has_checkpoint;
        check_log(&d, &l);
        check_repair(&d, &l);
        check_start(&d, &l);
    }
    vr_loaded_done(&l);
    disk_done(&d);
    return 0;
}
