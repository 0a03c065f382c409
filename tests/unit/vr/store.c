/* SPDX-License-Identifier: MIT */
/* What a replica makes of its disk after a crash: damage is a hole or a doubt, never a shorter log.
 */
#include "vr/disk/store.h"
#include "test.h"

#include <errno.h>
#include <stdlib.h>

struct disk {
    struct vr_store store;
    unsigned char *bytes;
    struct vr_entry entries[8];
};

static int read_disk(void *context, uint64_t offset, void *bytes, size_t size)
{
    struct disk *d = context;
    memcpy(bytes, d->bytes + offset, size);
    return 0;
}

static void write_phases(struct disk *d, const struct vr_write *w, unsigned phases)
{
    unsigned char *buffer = malloc(vr_store_phase_bytes_max(&d->store));
    for (unsigned phase = 0; phase < phases; phase++) {
        uint64_t offset;
        size_t size = vr_store_phase(&d->store, w, phase, buffer, &offset);
        memcpy(d->bytes + offset, buffer, size);
    }
    free(buffer);
}

/* A disk with ops 1 to 5 on it, the last of which has come through so many phases. */
static void setup(struct disk *d, unsigned last_phases)
{
    struct vr_config config = {.cluster = 3,
                               .page_bytes = 512,
                               .replica_count = 3,
                               .slots = 16,
                               .batch_bytes = 1024,
                               .sessions = 2,
                               .kv_capacity = 2};
    static unsigned char body[1000];
    uint64_t parent = vr_genesis_checksum(3), offset;
    vr_store_init(&d->store, &config, 512);
    d->bytes = calloc(1, d->store.total_bytes);
    unsigned char sector[512];
    size_t size = vr_store_format(&d->store, 7, sector, &offset);
    memcpy(d->bytes + offset, sector, size);
    struct vr_write started = {.kind = VR_WRITE_DURABLE,
                               .durable = {.view_checksum = vr_genesis_checksum(3)}};
    write_phases(d, &started, 2);
    struct vr_request request = {.client = 1, .size = sizeof(body) - sizeof(request)};
    memcpy(body, &request, sizeof(request));
    for (uint64_t op = 1; op <= 5; op++) {
        struct vr_entry e = {.op = op, .parent = parent, .size = sizeof(body), .count = 1};
        e.body_checksum = vr_hash(body, sizeof(body));
        parent = e.checksum = vr_entry_checksum(&e);
        d->entries[op] = e;
        struct vr_write w = {VR_WRITE_ENTRY, .entry = e, .bytes = body, .size = sizeof(body)};
        write_phases(d, &w, op == 5 ? last_phases : 2);
    }
}

static void spoil_entry(struct disk *d, uint64_t op, size_t at)
{
    d->bytes[d->store.entries_offset + op * d->store.slot_bytes + at] ^= 1;
}

static void spoil_head(struct disk *d, uint64_t op)
{
    d->bytes[d->store.heads_offset + op * sizeof(struct vr_entry) + 3] ^= 1;
}

static void load(struct disk *d, struct vr_loaded *l)
{
    struct error err = {0};
    CHECK_INT(vr_store_load(&d->store, read_disk, d, l, &err), 0);
}

static void done(struct disk *d, struct vr_loaded *l)
{
    vr_loaded_done(l);
    vr_store_done(&d->store);
    free(d->bytes);
}

TEST(a_whole_log_comes_back)
{
    struct disk d;
    struct vr_loaded l;
    setup(&d, 2);
    load(&d, &l);
    CHECK_INT(l.image.count, 5);
    CHECK(!l.image.uncertain);
    CHECK_INT(l.damaged, 0);
    CHECK(l.entries[4].checksum == d.entries[5].checksum);
    done(&d, &l);
}

TEST(a_torn_entry_without_its_head_was_never_acknowledged)
{
    struct disk d;
    struct vr_loaded l;
    setup(&d, 1);
    spoil_entry(&d, 5, 700);
    load(&d, &l);
    CHECK_INT(l.image.count, 4);
    CHECK(!l.image.uncertain);
    done(&d, &l);
}

/* Found by seed 74015: in a group of one nobody else can say whether it was acknowledged. */
TEST(a_write_that_failed_leaves_no_head_for_others_to_carry)
{
    struct disk d;
    struct vr_loaded l;
    setup(&d, 1);
    unsigned char sector[512];
    uint64_t offset;
    struct vr_write fifth = {VR_WRITE_ENTRY, .entry = d.entries[5]};
    struct vr_write fourth = {VR_WRITE_ENTRY, .entry = d.entries[4]};
    vr_store_phase(&d.store, &fifth, 1, sector, &offset); /* does not reach the disk */
    vr_store_ended(&d.store, &fifth, true);
    size_t size = vr_store_phase(&d.store, &fourth, 1, sector, &offset);
    memcpy(d.bytes + offset, sector, size);
    vr_store_ended(&d.store, &fourth, false);
    spoil_entry(&d, 5, 700);
    load(&d, &l);
    CHECK_INT(l.image.count, 4);
    CHECK(!l.image.uncertain);
    done(&d, &l);
}

/* A head that was there before stays: it may have been acknowledged. */
TEST(a_repair_that_failed_leaves_the_head)
{
    struct disk d;
    struct vr_loaded l;
    setup(&d, 2);
    unsigned char sector[512];
    uint64_t offset;
    struct vr_write fifth = {VR_WRITE_ENTRY, .entry = d.entries[5]};
    vr_store_ended(&d.store, &fifth, false);
    size_t size = vr_store_phase(&d.store, &fifth, 1, sector, &offset);
    vr_store_ended(&d.store, &fifth, true);
    size = vr_store_phase(&d.store, &(struct vr_write){VR_WRITE_ENTRY, .entry = d.entries[4]}, 1,
                          sector, &offset);
    memcpy(d.bytes + offset, sector, size);
    spoil_entry(&d, 5, 700);
    load(&d, &l);
    CHECK_INT(l.image.count, 5);
    done(&d, &l);
}

TEST(a_damaged_entry_with_its_head_is_a_hole)
{
    struct disk d;
    struct vr_loaded l;
    setup(&d, 2);
    spoil_entry(&d, 5, 700);
    spoil_entry(&d, 3, 700);
    load(&d, &l);
    CHECK_INT(l.image.count, 5);
    CHECK(!l.image.uncertain);
    CHECK_INT(l.entries[4].flags, 0);
    CHECK_INT(l.entries[2].flags, 0);
    CHECK_INT(l.entries[3].flags, VR_ENTRY_HAS_BODY);
    done(&d, &l);
}

TEST(a_damaged_head_is_no_loss)
{
    struct disk d;
    struct vr_loaded l;
    setup(&d, 2);
    spoil_head(&d, 5);
    load(&d, &l);
    CHECK_INT(l.image.count, 5);
    CHECK_INT(l.entries[4].flags, VR_ENTRY_HAS_BODY);
    /* Seed 552550: it is to be written again at once, before the entry can be damaged, too. */
    CHECK_INT(l.heads_stale, 1);
    CHECK(memcmp(&d.store.heads[5], &d.entries[5], sizeof(d.entries[5])) == 0);
    done(&d, &l);
}

/* Seed 748502: a crash between the two writes.  The entry counts after the start, so its second
 * copy is to be written before that is said to anybody; else one bad sector makes the replica
 * forget it. */
TEST(a_head_that_was_not_written_yet_is_written_at_the_start)
{
    struct disk d;
    struct vr_loaded l;
    setup(&d, 1);
    load(&d, &l);
    CHECK_INT(l.image.count, 5);
    CHECK_INT(l.damaged, 0);
    CHECK_INT(l.heads_stale, 1);
    memcpy(d.bytes + d.store.heads_offset, d.store.heads, d.store.heads_bytes);
    vr_loaded_done(&l);
    spoil_entry(&d, 5, 700);
    load(&d, &l);
    CHECK_INT(l.image.count, 5);
    CHECK_INT(l.entries[4].flags, 0);
    CHECK_INT(l.heads_stale, 0);
    done(&d, &l);
}

TEST(both_copies_damaged_at_the_end_is_a_doubt)
{
    struct disk d;
    struct vr_loaded l;
    setup(&d, 2);
    spoil_entry(&d, 5, 700);
    spoil_head(&d, 5);
    load(&d, &l);
    CHECK(l.image.uncertain);
    done(&d, &l);
}

TEST(both_copies_damaged_inside_are_known_by_their_successor)
{
    struct disk d;
    struct vr_loaded l;
    setup(&d, 2);
    spoil_entry(&d, 3, 700);
    spoil_head(&d, 3);
    load(&d, &l);
    CHECK(!l.image.uncertain);
    CHECK_INT(l.image.count, 5);
    CHECK(l.entries[2].checksum == d.entries[3].checksum);
    done(&d, &l);
}

TEST(an_entry_in_another_slot_is_damage)
{
    struct disk d;
    struct vr_loaded l;
    setup(&d, 2);
    memcpy(d.bytes + d.store.entries_offset + 4 * d.store.slot_bytes,
           d.bytes + d.store.entries_offset + 2 * d.store.slot_bytes, d.store.slot_bytes);
    load(&d, &l);
    CHECK_INT(l.image.count, 5);
    CHECK_INT(l.entries[3].flags, 0);
    done(&d, &l);
}

TEST(a_log_that_ends_before_its_view_began_is_a_doubt)
{
    struct disk d;
    struct vr_loaded l;
    setup(&d, 2);
    struct vr_write w = {.kind = VR_WRITE_DURABLE, .durable = {.view_op = 6, .view_checksum = 1}};
    write_phases(&d, &w, 2);
    load(&d, &l);
    CHECK(l.image.uncertain);
    done(&d, &l);
}

TEST(what_a_view_cut_off_does_not_come_back)
{
    struct disk d;
    struct vr_loaded l;
    setup(&d, 2);
    struct vr_write w = {
        .kind = VR_WRITE_DURABLE,
        .durable = {
            .view = 2, .log_view = 2, .view_op = 3, .view_checksum = d.entries[3].checksum}};
    write_phases(&d, &w, 2);
    load(&d, &l);
    CHECK_INT(l.image.count, 3); /* 4 and 5 are of view 0, and view 2 began behind 3 */
    CHECK(!l.image.uncertain);
    done(&d, &l);
}

/* Seed 588146: entries of the log's own view, one of them half written over by the next view's. */
TEST(a_log_that_was_closed_ends_there)
{
    struct disk d;
    struct vr_loaded l;
    setup(&d, 2);
    struct vr_write w = {
        .kind = VR_WRITE_DURABLE,
        .durable = {.view = 1, .view_op = 3, .view_checksum = d.entries[3].checksum, .closed = 1}};
    write_phases(&d, &w, 2);
    spoil_entry(&d, 4, 700);
    load(&d, &l);
    CHECK_INT(l.image.count, 3);
    CHECK(!l.image.uncertain);
    done(&d, &l);
}

TEST(without_a_superblock_nothing_starts)
{
    struct disk d;
    struct vr_loaded l;
    struct error err = {0};
    setup(&d, 2);
    memset(d.bytes, 0x55, 4 * 512);
    CHECK(vr_store_load(&d.store, read_disk, &d, &l, &err) < 0);
    CHECK_CONTAINS(err.message, "superblock");
    done(&d, &l);
}

/* After a restart in memory nobody may take the empty log for all that there was (DISC'17). */
TEST(a_restart_in_memory_is_a_doubt)
{
    struct disk d;
    struct vr_loaded l;
    setup(&d, 2);
    d.store.config.in_memory = true;
    for (uint32_t fresh = 0; fresh < 2; fresh++) {
        struct vr_write w = {.kind = VR_WRITE_DURABLE, .durable = {.view = 2, .fresh = fresh}};
        write_phases(&d, &w, 2);
        load(&d, &l);
        CHECK(l.image.uncertain == !fresh);
        CHECK_INT(l.image.count, 0);
        vr_loaded_done(&l);
    }
    done(&d, &l);
}

/* A checkpoint is read from the places that are its own: what a later one has begun to write beside
 * it counts for nothing, and is told, because the next must write over it. */
TEST(an_unfinished_checkpoint_counts_for_nothing)
{
    struct disk d;
    struct vr_loaded l;
    unsigned char pages[3][480];
    uint64_t root = 0;
    setup(&d, 2);
    for (uint32_t i = 0; i < 3; i++) {
        memset(pages[i], (int)i + 1, sizeof(pages[i]));
        root += vr_page_sum(i, pages[i], sizeof(pages[i]));
        struct vr_write w = {VR_WRITE_PAGE, .page = i, .page_op = 4, .bytes = pages[i],
                             .size = 480};
        write_phases(&d, &w, 1);
    }
    struct vr_durable named = {.view_op = 4,
                               .view_checksum = d.entries[4].checksum,
                               .checkpoint_op = 4,
                               .checkpoint_entry = d.entries[4].checksum,
                               .checkpoint_size = 3,
                               .checkpoint_checksum = root};
    struct vr_write superblock = {.kind = VR_WRITE_DURABLE, .durable = named};
    write_phases(&d, &superblock, 2);
    unsigned char later[480] = {9};
    struct vr_write w = {VR_WRITE_PAGE, .page = 1,      .area = 1,
                         .page_op = 5,  .bytes = later, .size = 480};
    write_phases(&d, &w, 1);
    load(&d, &l);
    CHECK(l.image.has_checkpoint);
    CHECK_INT(l.image.unfinished_count, 1);
    CHECK_INT(l.image.unfinished[0], 1);
    CHECK_INT(l.image.copies[1], 0);
    CHECK(memcmp(vr_pages_at(l.image.pages, 1), pages[1], 480) == 0);
    vr_loaded_done(&l);
    /* A page that is damaged, or an older one in its place, is noticed by the sum. */
    d.bytes[d.store.pages_offset + 2 * 2 * 512 + 7] ^= 1;
    load(&d, &l);
    CHECK(!l.image.has_checkpoint);
    done(&d, &l);
}

/* The sums of pages were others in format 0: its checkpoint would look damaged. */
TEST(a_file_of_another_format_is_refused_by_name)
{
    struct disk d;
    struct vr_loaded l;
    struct error err = {0};
    setup(&d, 2);
    const size_t format_at = 16 + 4 * 4 + 5 * 4; /* magic, sequence, and nine numbers before it */
    for (unsigned i = 0; i < 4; i++) {
        unsigned char *copy = d.bytes + i * 512;
        uint64_t magic = 0, checksum;
        uint32_t format = 0;
        memcpy(&magic, copy, sizeof(magic));
        if (!magic)
            continue;
        memcpy(&format, copy + format_at, sizeof(format));
        CHECK_INT(format, 1);
        memset(copy + format_at, 0, sizeof(format));
        size_t sealed = format_at + sizeof(format) + sizeof(struct vr_durable);
        checksum = vr_hash(copy, sealed);
        memcpy(copy + sealed, &checksum, sizeof(checksum));
    }
    CHECK_INT(vr_store_load(&d.store, read_disk, &d, &l, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "format 0");
    CHECK_CONTAINS(err.message, "restore it into a new cluster");
    done(&d, &l);
}
