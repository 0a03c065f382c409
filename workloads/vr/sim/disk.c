/* SPDX-License-Identifier: MIT */
/*
 * The simulated disk: bytes, a group of writes under way, and what can go wrong with them.  A crash
 * leaves each sector of a write under way old or new, and sometimes one of them unreadable.
 */
#include "base/memory.h"
#include "vr/sim/internal.h"

static uint32_t heads_per_sector(void)
{
    return SIM_SECTOR / sizeof(struct vr_entry);
}

void sim_disk_format(struct sim *s, uint8_t index)
{
    struct sim_replica *r = &s->replicas[index];
    struct vr_config config = s->config;
    config.index = index;
    config.joins = r->joins;
    r->incarnation = ++s->incarnations;
    r->restored = r->lost_tail = false;
    vr_store_init(&r->store, &config, SIM_SECTOR);
    r->disk = memory_zalloc(1, r->store.total_bytes);
    r->body_fault = memory_zalloc(config.slots, sizeof(bool));
    r->head_fault = memory_zalloc(config.slots, sizeof(bool));
    unsigned char sector[SIM_SECTOR];
    uint64_t offset;
    size_t size = vr_store_format(&r->store, r->incarnation, sector, &offset);
    memcpy(r->disk + offset, sector, size);
}

static void release(struct sim_write *w)
{
    free(w->content);
    free(w->phase_bytes);
    *w = (struct sim_write){0};
}

void sim_disk_free(struct sim *s, uint8_t index)
{
    struct sim_replica *r = &s->replicas[index];
    for (uint32_t i = 0; i < r->group_count; i++)
        release(&r->group[i]);
    for (uint32_t i = 0; i < r->waiting_count; i++)
        release(&r->waiting[i]);
    r->group_count = r->waiting_count = 0;
    for (unsigned i = 0; i < SIM_LANES; i++) {
        struct sim_lane *lane = &r->lanes[i];
        for (uint32_t w = 0; w < lane->count; w++)
            release(&lane->writes[w]);
        for (uint32_t w = 0; w < lane->waiting_count; w++)
            release(&lane->waiting[w]);
        lane->count = lane->waiting_count = 0;
    }
}

void sim_disk_done_with(struct sim *s, uint8_t index)
{
    struct sim_replica *r = &s->replicas[index];
    sim_disk_free(s, index);
    vr_store_done(&r->store);
    free(r->copy.disk);
    free(r->copy.body_fault);
    free(r->copy.head_fault);
    memset(&r->copy, 0, sizeof(r->copy));
    free(r->disk);
    free(r->body_fault);
    free(r->head_fault);
}

void sim_disk_copy(struct sim *s, uint8_t index)
{
    struct sim_replica *r = &s->replicas[index];
    uint32_t slots = r->store.config.slots;
    if (!r->copy.disk) {
        r->copy.disk = memory_alloc(r->store.total_bytes);
        r->copy.body_fault = memory_alloc(slots * sizeof(bool));
        r->copy.head_fault = memory_alloc(slots * sizeof(bool));
    }
    memcpy(r->copy.disk, r->disk, r->store.total_bytes);
    memcpy(r->copy.body_fault, r->body_fault, slots * sizeof(bool));
    memcpy(r->copy.head_fault, r->head_fault, slots * sizeof(bool));
    r->copy.incarnation = r->core->durable.incarnation;
    r->copy.start_count = r->core->durable.starts;
}

void sim_disk_restore(struct sim *s, uint8_t index)
{
    struct sim_replica *r = &s->replicas[index];
    uint32_t slots = r->store.config.slots;
    s->result->count[SIM_COPIES_RESTORED]++;
    r->restored = true;
    r->restored_epoch = vr_epoch_of(s->model.group.first_view);
    memcpy(r->disk, r->copy.disk, r->store.total_bytes);
    memcpy(r->body_fault, r->copy.body_fault, slots * sizeof(bool));
    memcpy(r->head_fault, r->copy.head_fault, slots * sizeof(bool));
}

static uint64_t slot_of(const struct sim_replica *r, uint64_t offset)
{
    return (offset - r->store.entries_offset) / r->store.slot_bytes;
}

static bool is_head(const struct sim_replica *r, uint64_t offset)
{
    return offset >= r->store.heads_offset && offset < r->store.entries_offset;
}

static uint64_t first_head(const struct sim_replica *r, uint64_t offset)
{
    return (offset - r->store.heads_offset) / sizeof(struct vr_entry);
}

/* Whether the copy at this place may be damaged: the other copies must be whole. */
static bool may_damage(const struct sim_replica *r, uint64_t offset)
{
    if (offset >= r->store.entries_offset)
        return !r->head_fault[slot_of(r, offset)];
    if (is_head(r, offset)) {
        uint64_t first = first_head(r, offset);
        for (uint32_t i = 0; i < heads_per_sector(); i++)
            if (first + i < r->store.config.slots && r->body_fault[first + i])
                return false;
        return true;
    }
    if (offset < r->store.pages_offset)
        return offset / SIM_SECTOR % 2 == 1;
    return true;
}

static void note(struct sim_replica *r, uint64_t offset, bool damaged)
{
    if (offset >= r->store.entries_offset) {
        r->body_fault[slot_of(r, offset)] = damaged;
        return;
    }
    if (!is_head(r, offset))
        return;
    uint64_t first = first_head(r, offset);
    for (uint32_t i = 0; i < heads_per_sector(); i++)
        if (first + i < r->store.config.slots)
            r->head_fault[first + i] = damaged;
}

static void spoil(struct sim *s, struct sim_replica *r, uint64_t offset)
{
    for (unsigned i = 0; i < SIM_SECTOR; i += 8) {
        uint64_t noise = sim_random(s);
        memcpy(r->disk + offset + i, &noise, 8);
    }
    note(r, offset, true);
}

/* A write that the disk reports as done, though it did nothing or did it elsewhere. */
static bool betray(struct sim *s, uint8_t index, const struct sim_write *w)
{
    struct sim_replica *r = &s->replicas[index];
    if (!r->bad_disk || s->healing || !sim_chance(s, 20) || !may_damage(r, w->phase_offset))
        return false;
    bool entry = w->phase_offset >= r->store.entries_offset;
    note(r, w->phase_offset, true);
    if (entry && sim_chance(s, 400)) {
        uint64_t other =
            r->store.entries_offset + sim_below(s, r->store.config.slots) * r->store.slot_bytes;
        if (may_damage(r, other)) {
            sim_trace(s, "%u: a write of op %lu goes astray", index, w->write.entry.op);
            memcpy(r->disk + other, w->phase_bytes, w->phase_size);
            note(r, other, true);
            s->result->count[SIM_MISDIRECTED_WRITES]++;
            return true;
        }
    }
    s->result->count[SIM_LOST_WRITES]++;
    sim_trace(s, "%u: a write at %lu is lost", index, w->phase_offset);
    return true;
}

static void prepare_phase(struct sim *s, uint8_t index)
{
    struct sim_replica *r = &s->replicas[index];
    bool writes = false;
    for (uint32_t i = 0; i < r->group_count; i++) {
        struct sim_write *w = &r->group[i];
        if (!w->phase_bytes)
            w->phase_bytes = memory_alloc(r->store.slot_bytes);
        w->phase_size =
            vr_store_phase(&r->store, &w->write, r->phase, w->phase_bytes, &w->phase_offset);
        writes |= w->phase_size > 0;
    }
    /* What is on the disk already has not failed. */
    r->group_failed = writes && s->now_ns < r->disk_fails_until_ns;
    uint64_t slow = sim_chance(s, 10) ? 40 * NS_PER_MS : sim_below(s, r->disk_slow_ns);
    uint64_t time_ns = 50 * NS_PER_US + sim_below(s, 300 * NS_PER_US) + slow;
    if (!s->healing && sim_chance(s, s->crash_in_write))
        sim_push(s, (struct sim_event){.at_ns = s->now_ns + sim_below(s, time_ns),
                                       .kind = SIM_CRASH,
                                       .to = index,
                                       .life = r->life});
    sim_push(s, (struct sim_event){
                    .at_ns = s->now_ns + time_ns, .kind = SIM_DISK, .to = index, .life = r->life});
}

static void begin_group(struct sim *s, uint8_t index)
{
    struct sim_replica *r = &s->replicas[index];
    if (r->group_count || !r->waiting_count)
        return;
    memcpy(r->group, r->waiting, r->waiting_count * sizeof(r->waiting[0]));
    r->group_count = r->waiting_count;
    r->waiting_count = 0;
    r->phase = 0;
    prepare_phase(s, index);
}

static void lane_phase(struct sim *s, uint8_t index, unsigned which)
{
    struct sim_replica *r = &s->replicas[index];
    struct sim_lane *lane = &r->lanes[which];
    for (uint32_t i = 0; i < lane->count; i++) {
        struct sim_write *w = &lane->writes[i];
        w->phase_size =
            vr_store_phase(&r->store, &w->write, lane->phase, w->phase_bytes, &w->phase_offset);
    }
    lane->failed = s->now_ns < r->disk_fails_until_ns;
    uint64_t time_ns =
        50 * NS_PER_US + sim_below(s, 300 * NS_PER_US) + sim_below(s, r->disk_slow_ns);
    if (!s->healing && sim_chance(s, which == SIM_LANE_PAGES ? 50 : 20))
        time_ns += sim_below(s, which == SIM_LANE_PAGES ? 100 * NS_PER_MS : 10 * NS_PER_MS);
    time_ns += r->slow_ns[which];
    s->result->count[SIM_LATE_CHECKPOINTS] += which == SIM_LANE_PAGES && time_ns > 5 * NS_PER_MS;
    sim_push(s, (struct sim_event){.at_ns = s->now_ns + time_ns,
                                   .kind = SIM_DISK,
                                   .to = index,
                                   .from = (uint8_t)(which + 1),
                                   .life = r->life});
}

static void begin_lane(struct sim *s, uint8_t index, unsigned which)
{
    struct sim_lane *lane = &s->replicas[index].lanes[which];
    if (lane->count || !lane->waiting_count)
        return;
    memcpy(lane->writes, lane->waiting, lane->waiting_count * sizeof(lane->waiting[0]));
    lane->count = lane->waiting_count;
    lane->waiting_count = 0;
    lane->phase = 0;
    lane_phase(s, index, which);
}

/* As on a real disk, the pages of a checkpoint go beside the groups of entries; and nobody promises
 * that a superblock overtakes nothing. */
static void submit_beside(struct sim *s, uint8_t index, const struct vr_write *write)
{
    struct sim_replica *r = &s->replicas[index];
    unsigned which = write->kind == VR_WRITE_PAGE ? SIM_LANE_PAGES : SIM_LANE_SUPERBLOCK;
    struct sim_lane *lane = &r->lanes[which];
    if (lane->waiting_count == (which == SIM_LANE_PAGES ? VR_PAGES_OUT_MAX : 1) ||
        (which == SIM_LANE_SUPERBLOCK && lane->count)) {
        sim_fail(s, "replica %u writes too many %s at once", index,
                 which == SIM_LANE_PAGES ? "pages" : "superblocks");
        return;
    }
    struct sim_write *w = &lane->waiting[lane->waiting_count++];
    *w = (struct sim_write){.write = *write};
    if (write->size) {
        w->content = memory_alloc(write->size);
        memcpy(w->content, write->bytes, write->size);
        w->write.bytes = w->content;
    }
    w->phase_bytes = memory_alloc(SIM_SECTOR);
    begin_lane(s, index, which);
}

void sim_disk_submit(struct sim *s, uint8_t index, const struct vr_write *write)
{
    struct sim_replica *r = &s->replicas[index];
    if (write->kind != VR_WRITE_ENTRY) {
        submit_beside(s, index, write);
        return;
    }
    if (r->waiting_count == SIM_WRITES_MAX) {
        sim_fail(s, "replica %u has too many writes under way", index);
        return;
    }
    struct sim_write *w = &r->waiting[r->waiting_count++];
    *w = (struct sim_write){.write = *write};
    if (write->size) {
        w->content = memory_alloc(write->size);
        memcpy(w->content, write->bytes, write->size);
        w->write.bytes = w->content;
    }
    begin_group(s, index);
}

/* A phase has ended: its bytes are on the disk, unless. */
void sim_disk_done(struct sim *s, uint8_t index)
{
    struct sim_replica *r = &s->replicas[index];
    bool more = false;
    for (uint32_t i = 0; i < r->group_count && !r->group_failed; i++) {
        struct sim_write *w = &r->group[i];
        if (!w->phase_size)
            continue;
        more = true;
        if (betray(s, index, w))
            continue;
        memcpy(r->disk + w->phase_offset, w->phase_bytes, w->phase_size);
        note(r, w->phase_offset, false);
    }
    r->phase++;
    if (more && r->phase < 3) {
        prepare_phase(s, index);
        return;
    }
    struct sim_write done[SIM_WRITES_MAX];
    uint32_t count = r->group_count;
    bool failed = r->group_failed;
    memcpy(done, r->group, count * sizeof(done[0]));
    for (uint32_t i = 0; i < count; i++)
        vr_store_ended(&r->store, &done[i].write, failed);
    r->group_count = 0;
    begin_group(s, index);
    for (uint32_t i = 0; i < count; i++) {
        struct vr_event event = {
            .kind = VR_EVENT_WRITTEN, .write = &done[i].write, .failed = failed};
        if (r->up)
            sim_replica_step(s, index, &event);
        release(&done[i]);
    }
}

void sim_disk_lane_done(struct sim *s, uint8_t index, unsigned which)
{
    struct sim_replica *r = &s->replicas[index];
    struct sim_lane *lane = &r->lanes[which];
    for (uint32_t i = 0; i < lane->count && !lane->failed; i++) {
        struct sim_write *w = &lane->writes[i];
        if (!betray(s, index, w))
            memcpy(r->disk + w->phase_offset, w->phase_bytes, w->phase_size);
    }
    lane->phase++;
    if (!lane->failed && which == SIM_LANE_SUPERBLOCK && lane->phase < 2) {
        lane_phase(s, index, which);
        return;
    }
    struct sim_write done[VR_PAGES_OUT_MAX];
    uint32_t count = lane->count;
    bool failed = lane->failed;
    memcpy(done, lane->writes, count * sizeof(done[0]));
    lane->count = 0;
    begin_lane(s, index, which);
    for (uint32_t i = 0; i < count; i++) {
        struct vr_event event = {
            .kind = VR_EVENT_WRITTEN, .write = &done[i].write, .failed = failed};
        if (r->up)
            sim_replica_step(s, index, &event);
        release(&done[i]);
    }
}

static void tear(struct sim *s, struct sim_replica *r, const struct sim_write *w)
{
    uint64_t torn = sim_below(s, 8); /* mostly a part of the sectors */
    s->result->count[SIM_TORN_WRITES] += w->phase_size > SIM_SECTOR && torn;
    for (size_t at = 0; at < w->phase_size; at += SIM_SECTOR) {
        if (sim_below(s, 8) >= torn)
            continue;
        memcpy(r->disk + w->phase_offset + at, w->phase_bytes + at, SIM_SECTOR);
        if (w->phase_offset < r->store.entries_offset)
            note(r, w->phase_offset + at, false);
        else
            r->body_fault[slot_of(r, w->phase_offset)] = true;
    }
}

void sim_disk_crash(struct sim *s, uint8_t index)
{
    struct sim_replica *r = &s->replicas[index];
    for (unsigned i = 0; i < SIM_LANES; i++)
        for (uint32_t w = 0; w < r->lanes[i].count; w++)
            tear(s, r, &r->lanes[i].writes[w]);
    const struct sim_lane *superblock = &r->lanes[SIM_LANE_SUPERBLOCK];
    if (superblock->count && sim_chance(s, 100))
        spoil(s, r, superblock->writes[0].phase_offset);
    for (uint32_t i = 0; i < r->group_count; i++) {
        struct sim_write *w = &r->group[i];
        tear(s, r, w);
        if (w->phase_size && sim_chance(s, 100) && may_damage(r, w->phase_offset))
            spoil(s, r, w->phase_offset);
    }
    sim_disk_free(s, index);
}

void sim_disk_rot(struct sim *s, uint8_t index)
{
    struct sim_replica *r = &s->replicas[index];
    uint64_t zone = sim_below(s, 10), offset;
    if (zone < 5)
        offset =
            r->store.entries_offset + sim_below(s, r->store.config.slots) * r->store.slot_bytes;
    else if (zone < 8)
        offset =
            r->store.heads_offset + sim_below(s, r->store.heads_bytes / SIM_SECTOR) * SIM_SECTOR;
    else if (zone < 9)
        offset = SIM_SECTOR * (1 + 2 * sim_below(s, 2));
    else
        offset =
            r->store.pages_offset +
            sim_below(s, (r->store.heads_offset - r->store.pages_offset) / SIM_SECTOR) * SIM_SECTOR;
    if (!may_damage(r, offset))
        return;
    s->result->count[SIM_ROTTEN_SECTORS]++;
    sim_trace(s, "%u: the sector at %lu rots", index, offset);
    spoil(s, r, offset);
}

/* Copies that are damaged with the entry beside them stay so. */
void sim_disk_repair_heads(struct sim *s, uint8_t index)
{
    struct sim_replica *r = &s->replicas[index];
    memcpy(r->disk + r->store.heads_offset, r->store.heads, r->store.heads_bytes);
    for (uint32_t i = 0; i < r->store.config.slots; i++)
        r->head_fault[i] &= r->body_fault[i];
}

void sim_disk_lose_tail(struct sim *s, uint8_t index, uint64_t first, uint64_t last)
{
    struct sim_replica *r = &s->replicas[index];
    uint32_t slots = r->store.config.slots;
    s->result->count[SIM_LOST_TAILS]++;
    r->lost_tail = true;
    for (uint64_t op = first; op <= last; op++) {
        uint64_t slot = op % slots;
        unsigned char *head = r->disk + r->store.heads_offset + slot * sizeof(struct vr_entry);
        memset(r->disk + r->store.entries_offset + slot * r->store.slot_bytes, op == first,
               r->store.slot_bytes);
        memset(head, op == first, sizeof(struct vr_entry));
        r->body_fault[slot] = op == first;
    }
}

void sim_disk_rot_entry(struct sim *s, uint8_t index, uint64_t op)
{
    struct sim_replica *r = &s->replicas[index];
    uint64_t offset = r->store.entries_offset + op % r->store.config.slots * r->store.slot_bytes;
    if (!may_damage(r, offset))
        return;
    s->result->count[SIM_ROTTEN_SECTORS]++;
    sim_trace(s, "%u: op %lu rots", index, op);
    spoil(s, r, offset);
}
