/* SPDX-License-Identifier: MIT */
/* The corpus of the fuzzer vr-log: disks as a replica leaves them, whole and damaged. */
#include "../../fuzz/vr-disk.h"
#include "corpus.h"

/* A first primary, whose writes reach its disk at once, and the backup that acknowledges. */
struct writer {
    struct disk disk;
    struct vr_replica *r;
    struct vr_update *u;
};

static void write_step(struct writer *w, struct vr_event event)
{
    struct vr_write writes[VR_UPDATE_WRITES];
    event.now_ns = w->r->now_ns + 1;
    vr_step(w->r, &event, w->u);
    uint32_t count = w->u->write_count;
    memcpy(writes, w->u->writes, count * sizeof(writes[0]));
    w->u->message_count = w->u->write_count = 0;
    w->u->scratch_used = 0;
    for (uint32_t i = 0; i < count; i++) {
        disk_write(&w->disk, &writes[i], 2);
        write_step(w, (struct vr_event){.kind = VR_EVENT_WRITTEN, .write = &writes[i]});
    }
}

static void write_request(struct writer *w, uint64_t number)
{
    struct {
        struct vr_request request;
        unsigned char data[32];
    } q = {.request = {.client = 7, .number = number}};
    q.request.opcode = number ? VR_OP_PUT : VR_OP_REGISTER;
    q.request.session = number ? 1 << 16 : 0;
    if (number)
        q.request.size = vr_kv_encode(q.data, "key", 3, NULL, 0, "a value", 7);
    struct vr_header h = {.type = VR_REQUEST, .cluster = 3, .client = 7, .number = number};
    h.size = (uint32_t)vr_request_bytes(q.request.size);
    write_step(w, (struct vr_event){.kind = VR_EVENT_MESSAGE, .header = &h, .body = &q});
    write_step(w, (struct vr_event){.kind = VR_EVENT_TURN});
    struct vr_header ok = {.type = VR_PREPARE_OK, .cluster = 3, .replica = 1, .op = w->r->op};
    write_step(w, (struct vr_event){.kind = VR_EVENT_MESSAGE, .header = &ok});
}

/* A disk with so many operations on it. */
static void write_disk(struct writer *w, uint64_t ops)
{
    struct vr_loaded l;
    struct error err = {0};
    uint64_t offset;
    unsigned char sector[DISK_SECTOR];
    *w = (struct writer){.u = memory_zalloc(1, sizeof(*w->u))};
    disk_init(&w->disk);
    size_t size = vr_store_format(&w->disk.store, 7, sector, &offset);
    memcpy(w->disk.bytes + offset, sector, size);
    CHECK_INT(vr_store_load(&w->disk.store, disk_read, &w->disk, &l, &err), 0);
    /* As if it were founded: nobody else is there. */
    l.image.durable.fresh = VR_FRESH_FOUNDED;
    l.image.durable.incarnation = 0;
    w->r = vr_replica_new(&w->disk.config, &l.image, 1, 1);
    vr_loaded_done(&l);
    write_step(w, (struct vr_event){.kind = VR_EVENT_TURN});
    for (uint64_t i = 0; i < ops; i++)
        write_request(w, i);
    CHECK_INT(w->r->op, ops);
    CHECK_INT(w->r->commit, ops);
}

static void writer_done(struct writer *w)
{
    vr_replica_free(w->r);
    free(w->u);
    disk_done(&w->disk);
}

static unsigned char *entry_at(struct disk *d, uint64_t op)
{
    return d->bytes + d->store.entries_offset + op % d->config.slots * d->store.slot_bytes;
}

static unsigned char *head_at(struct disk *d, uint64_t op)
{
    return d->bytes + d->store.heads_offset + op % d->config.slots * sizeof(struct vr_entry);
}

static void tear_last(struct disk *d)
{
    entry_at(d, 3)[80] ^= 1;
    memset(head_at(d, 3), 0, sizeof(struct vr_entry));
}

static void spoil_head(struct disk *d)
{
    head_at(d, 3)[3] ^= 1;
}

static void spoil_entry(struct disk *d)
{
    entry_at(d, 2)[80] ^= 1;
}

static void spoil_both(struct disk *d)
{
    spoil_head(d);
    entry_at(d, 3)[80] ^= 1;
}

static void spoil_checkpoint(struct disk *d)
{
    for (unsigned place = 0; place < 2; place++)
        d->bytes[d->store.pages_offset + place * d->config.page_bytes] ^= 1;
}

/* No sum on it is right. */
static void spoil_sums(struct disk *d)
{
    for (unsigned i = 0; i < DISK_COPIES; i++)
        memset(d->bytes + i * DISK_SECTOR + DISK_SUM_AT, 0, 8);
    for (uint64_t op = 1; op <= 6; op++) {
        entry_at(d, op)[offsetof(struct vr_entry, checksum)] ^= 1;
        entry_at(d, op)[offsetof(struct vr_entry, body_checksum)] ^= 1;
        head_at(d, op)[offsetof(struct vr_entry, checksum)] ^= 1;
    }
    entry_at(d, 6)[offsetof(struct vr_entry, parent)] ^= 1;
}

static const struct log_file {
    const char *name;
    uint64_t ops;
    void (*spoil)(struct disk *d);
    unsigned char seal;
    /* What it must read as. */
    uint32_t count, holes, stale, damaged;
    bool uncertain, checkpoint;
} log_files[] = {
    {.name = "formatted", .ops = 0},
    {.name = "whole-log", .ops = 3, .count = 3},
    {.name = "torn-entry", .ops = 3, .spoil = tear_last, .count = 2, .damaged = 1},
    {.name = "damaged-head", .ops = 3, .spoil = spoil_head, .count = 3, .stale = 1, .damaged = 1},
    {.name = "damaged-entry", .ops = 3, .spoil = spoil_entry, .count = 3, .holes = 1, .damaged = 1},
    {.name = "damaged-both",
     .ops = 3,
     .spoil = spoil_both,
     .count = 2,
     .damaged = 2,
     .uncertain = true},
    {.name = "checkpoint", .ops = 6, .count = 2, .checkpoint = true},
    {.name = "damaged-checkpoint", .ops = 6, .spoil = spoil_checkpoint, .count = 2, .damaged = 1},
    {.name = "wrapped-ring", .ops = 10, .count = 2, .checkpoint = true},
    {.name = "to-be-sealed",
     .ops = 6,
     .spoil = spoil_sums,
     .seal = DISK_SEAL_ALL,
     .count = 2,
     .checkpoint = true},
};
#define EACH_LOG_FILE(f) \
    for (const struct log_file *f = log_files; f < log_files + sizeof(log_files) / sizeof(*f); f++)

static void check_disk(const struct log_file *f, const unsigned char *bytes, size_t size)
{
    struct disk d;
    struct vr_loaded l;
    struct error err = {0};
    uint32_t holes = 0;
    disk_from_input(&d, bytes, size);
    int result = vr_store_load(&d.store, disk_read, &d, &l, &err);
    if (result)
        test_fail(__FILE__, __LINE__, "%s: %s" AGAIN, f->name, err.message);
    for (uint32_t i = 0; i < l.image.count && !result; i++)
        holes += !(l.entries[i].flags & VR_ENTRY_HAS_BODY);
    if (!result && (l.image.count != f->count || holes != f->holes || l.heads_stale != f->stale ||
                    l.damaged != f->damaged || l.image.uncertain != f->uncertain ||
                    l.image.has_checkpoint != f->checkpoint))
        test_fail(__FILE__, __LINE__,
                  "%s reads as %u entries, %u holes, %u stale heads, %u damaged, %s, %s "
                  "checkpoint" AGAIN,
                  f->name, l.image.count, holes, l.heads_stale, l.damaged,
                  l.image.uncertain ? "uncertain" : "certain", l.image.has_checkpoint ? "a" : "no");
    vr_loaded_done(&l);
    disk_done(&d);
}

TEST(each_disk_made_now_reads_as_its_name_says)
{
    EACH_LOG_FILE(f)
    {
        struct writer w;
        write_disk(&w, f->ops);
        if (f->spoil)
            f->spoil(&w.disk);
        size_t size = 1 + w.disk.store.total_bytes;
        unsigned char *bytes = memory_alloc(size);
        bytes[0] = f->seal;
        memcpy(bytes + 1, w.disk.bytes, size - 1);
        check_disk(f, bytes, size);
        write_file("vr-log", f->name, bytes, size);
        free(bytes);
        writer_done(&w);
    }
}

TEST(each_disk_of_the_corpus_reads_as_its_name_says)
{
    static unsigned char bytes[1 << 16];
    EACH_LOG_FILE(f)
    check_disk(f, bytes, read_file("vr-log", f->name, bytes, sizeof(bytes)));
}

/* What the fuzzer makes right is what the store makes, at the same place. */
TEST(a_whole_disk_is_sealed_already)
{
    struct writer w;
    write_disk(&w, 6);
    unsigned char *before = memory_alloc(w.disk.store.total_bytes);
    memcpy(before, w.disk.bytes, w.disk.store.total_bytes);
    disk_seal(&w.disk, DISK_SEAL_ALL & ~DISK_SEAL_SUPERBLOCKS);
    CHECK(memcmp(before, w.disk.bytes, w.disk.store.total_bytes) == 0);
    disk_seal(&w.disk, DISK_SEAL_ALL); /* copies that were never written get a sum, too */
    unsigned char *newest = disk_newest(&w.disk);
    CHECK(newest && memcmp(newest, before + (newest - w.disk.bytes), DISK_SECTOR) == 0);
    free(before);
    writer_done(&w);
}
