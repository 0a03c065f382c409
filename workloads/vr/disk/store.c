/* SPDX-License-Identifier: MIT */
#include "vr/disk/store.h"
#include "base/memory.h"
#include "vr/core/planted.h"

#include <errno.h>
#include <string.h>

#define SUPERBLOCK_MAGIC 0x6b63616279617372 /* "rsayback" */
#define COPIES 4
#define FORMAT 1 /* of the file; 0 had other sums of pages */

struct superblock {
    uint64_t magic, sequence;
    uint32_t cluster, index, replica_count, in_memory;
    uint32_t slots, batch_bytes, sessions, kv_capacity, page_bytes, format;
    struct vr_durable durable;
    uint64_t checksum; /* of all before it */
};

static size_t round_up(size_t size, size_t to)
{
    return (size + to - 1) / to * to;
}

void vr_store_init(struct vr_store *s, const struct vr_config *config, uint32_t sector_bytes)
{
    *s = (struct vr_store){.config = *config, .sector_bytes = sector_bytes};
    s->slot_bytes = round_up(sizeof(struct vr_entry) + config->batch_bytes, sector_bytes);
    s->heads_bytes = round_up(config->slots * sizeof(struct vr_entry), sector_bytes);
    s->page_count = vr_state_pages(config);
    s->pages_offset = round_up(COPIES * (size_t)sector_bytes, config->page_bytes);
    s->heads_offset = s->pages_offset + 2 * (uint64_t)s->page_count * config->page_bytes;
    s->entries_offset = s->heads_offset + s->heads_bytes;
    s->total_bytes = s->entries_offset + config->slots * s->slot_bytes;
    s->heads = memory_zalloc(1, s->heads_bytes);
    s->head_new = memory_zalloc(config->slots, sizeof(bool));
}

void vr_store_done(struct vr_store *s)
{
    free(s->heads);
    free(s->head_new);
    *s = (struct vr_store){0};
}

size_t vr_store_phase_bytes_max(const struct vr_store *s)
{
    return s->slot_bytes > s->config.page_bytes ? s->slot_bytes : s->config.page_bytes;
}

static size_t superblock_phase(struct vr_store *s, const struct vr_durable *durable, unsigned phase,
                               unsigned char *out, uint64_t *ret_offset)
{
    const struct vr_config *c = &s->config;
    /* After a write that failed the same pair is written again: the other one is what counts. */
    if (phase == 0)
        s->sequence += s->settled == s->sequence ? 1 : 2;
    else
        s->settled = s->sequence;
    struct superblock b = {.magic = SUPERBLOCK_MAGIC,
                           .sequence = s->sequence,
                           .cluster = c->cluster,
                           .index = c->index,
                           .replica_count = c->replica_count,
                           .in_memory = c->in_memory,
                           .slots = c->slots,
                           .batch_bytes = c->batch_bytes,
                           .sessions = c->sessions,
                           .kv_capacity = c->kv_capacity,
                           .page_bytes = c->page_bytes,
                           .format = FORMAT,
                           .durable = *durable};
    b.checksum = vr_hash(&b, offsetof(struct superblock, checksum));
    memset(out, 0, s->sector_bytes);
    memcpy(out, &b, sizeof(b));
    *ret_offset = (s->sequence % 2 * 2 + phase) * s->sector_bytes;
    return phase < 2 ? s->sector_bytes : 0;
}

static size_t entry_phase(struct vr_store *s, const struct vr_write *w, unsigned phase,
                          unsigned char *out, uint64_t *ret_offset)
{
    uint64_t slot = w->entry.op % s->config.slots;
    if (phase == 0) {
        size_t used = sizeof(w->entry) + w->size, size = round_up(used, s->sector_bytes);
        memcpy(out, &w->entry, sizeof(w->entry));
        memcpy(out + sizeof(w->entry), w->bytes, w->size);
        memset(out + used, 0, size - used);
        *ret_offset = s->entries_offset + slot * s->slot_bytes;
        return size;
    }
    if (phase > 1)
        return 0;
    s->head_new[slot] |= s->heads[slot].checksum != w->entry.checksum;
    s->heads[slot] = w->entry;
    size_t sector = slot * sizeof(struct vr_entry) / s->sector_bytes * s->sector_bytes;
    memcpy(out, (unsigned char *)s->heads + sector, s->sector_bytes);
    *ret_offset = s->heads_offset + sector;
    return s->sector_bytes;
}

struct page_trailer {
    uint64_t page, op;
    uint64_t checksum; /* of the page, with its number, and of the op */
    uint64_t zero;
};
static_assert(sizeof(struct page_trailer) == VR_PAGE_TRAILER_BYTES, "pages leave room for it");

static uint64_t trailer_checksum(uint64_t page_sum, uint64_t op)
{
    return page_sum ^ op * 0x9e3779b97f4a7c15;
}

static uint64_t page_offset(const struct vr_store *s, uint32_t page, uint32_t place)
{
    return s->pages_offset + (2 * (uint64_t)page + place) * s->config.page_bytes;
}

static size_t page_phase(const struct vr_store *s, const struct vr_write *w, unsigned char *out,
                         uint64_t *ret_offset)
{
    uint64_t sum = vr_page_sum(w->page, w->bytes, (uint32_t)w->size);
    struct page_trailer trailer = {w->page, w->page_op, trailer_checksum(sum, w->page_op), 0};
    memcpy(out, w->bytes, w->size);
    memcpy(out + w->size, &trailer, sizeof(trailer));
    *ret_offset = page_offset(s, w->page, w->area);
    return s->config.page_bytes;
}

void vr_store_ended(struct vr_store *s, const struct vr_write *w, bool failed)
{
    uint64_t slot = w->entry.op % s->config.slots;
    if (w->kind != VR_WRITE_ENTRY)
        return;
    if (failed && s->head_new[slot])
        s->heads[slot] = (struct vr_entry){0};
    s->head_new[slot] = false;
}

size_t vr_store_phase(struct vr_store *s, const struct vr_write *w, unsigned phase,
                      unsigned char *out, uint64_t *ret_offset)
{
    if (w->kind == VR_WRITE_ENTRY)
        return entry_phase(s, w, phase, out, ret_offset);
    if (w->kind == VR_WRITE_DURABLE)
        return phase < 2 ? superblock_phase(s, &w->durable, phase, out, ret_offset) : 0;
    return phase == 0 ? page_phase(s, w, out, ret_offset) : 0;
}

size_t vr_store_format(struct vr_store *s, uint32_t incarnation, unsigned char *out,
                       uint64_t *ret_offset)
{
    struct vr_durable durable = {.fresh = VR_FRESH_NEW,
                                 .incarnation = incarnation,
                                 .view_checksum = vr_genesis_checksum(s->config.cluster),
                                 .group = {.checksum = vr_genesis_checksum(s->config.cluster)}};
    durable.group.members = s->config.joins ? VR_GROUP_NONE : (1u << s->config.replica_count) - 1;
    size_t size = superblock_phase(s, &durable, 0, out, ret_offset);
    s->settled = s->sequence;
    return size;
}

static bool superblock_valid(const struct superblock *b)
{
    return b->magic == SUPERBLOCK_MAGIC &&
           b->checksum == vr_hash(b, offsetof(struct superblock, checksum));
}

static int superblock_check(const struct vr_store *s, const struct superblock *b, struct error *err)
{
    const struct vr_config *c = &s->config;
    if (b->format != FORMAT)
        return error_set(err, -EINVAL,
                         "it has format %u, and this version reads format %d; make a backup with "
                         "the version that wrote it, and restore it into a new cluster",
                         b->format, FORMAT);
    if (b->cluster != c->cluster || b->index != c->index || b->replica_count != c->replica_count)
        return error_set(err, -EINVAL,
                         "this is the disk of replica %u of %u in cluster %u, not of %u of %u in "
                         "cluster %u",
                         b->index, b->replica_count, b->cluster, c->index, c->replica_count,
                         c->cluster);
    const struct {
        const char *name;
        uint32_t formatted, configured;
    } settings[] = {{"in-memory", b->in_memory, c->in_memory},
                    {"slots", b->slots, c->slots},
                    {"batch-bytes", b->batch_bytes, c->batch_bytes},
                    {"sessions", b->sessions, c->sessions},
                    {"keys", b->kv_capacity, c->kv_capacity},
                    {"pages of", b->page_bytes, c->page_bytes}};
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
        if (settings[i].formatted != settings[i].configured)
            return error_set(
                err, -EINVAL,
                "it was formatted with %s %u, but the configuration says %u; change it "
                "back: a file keeps the settings it was formatted with",
                settings[i].name, settings[i].formatted, settings[i].configured);
    return 0;
}

static int load_superblock(struct vr_store *s, vr_store_read read, void *context,
                           struct vr_loaded *loaded, unsigned char *buffer, struct error *err)
{
    struct superblock best = {0};
    for (unsigned i = 0; i < COPIES; i++) {
        struct superblock b;
        if (read(context, (uint64_t)i * s->sector_bytes, buffer, s->sector_bytes))
            memset(buffer, 0xff, s->sector_bytes);
        memcpy(&b, buffer, sizeof(b));
        bool valid = superblock_valid(&b) && b.sequence % 2 * 2 == i / 2 * 2;
        loaded->damaged += !valid && b.magic != 0;
        if (valid && b.sequence > best.sequence)
            best = b;
    }
    if (best.sequence == 0 && PLANTED(FRESH_STARTS))
        return 0;
    if (best.sequence == 0)
        return error_set(err, -EUCLEAN,
                         "no copy of the superblock is intact, so it is not known what this "
                         "replica promised; replace it with a new one");
    s->sequence = s->settled = best.sequence;
    loaded->image.durable = best.durable;
    return superblock_check(s, &best, err);
}

enum found { NOTHING, DAMAGED, WHOLE };

static enum found classify(const struct vr_store *s, const struct vr_entry *entry, const void *body,
                           uint64_t slot)
{
    static const struct vr_entry zero;
    if (memcmp(entry, &zero, sizeof(zero)) == 0)
        return NOTHING;
    if (entry->op % s->config.slots != slot || entry->size > s->config.batch_bytes ||
        !vr_entry_valid(entry, body) || (body && !vr_batch_valid(body, entry->size, entry->count)))
        return DAMAGED;
    return WHOLE;
}

struct slot_found {
    enum found entry_found, head_found;
    struct vr_entry entry, head;
};

/* Whether an entry can stand at this op in the log of the last normal view. */
static bool fits(const struct vr_durable *d, const struct vr_entry *entry, uint64_t op)
{
    if (entry->op != op)
        return false;
    if (op <= d->view_op || PLANTED(TAIL_KEPT))
        return entry->view <= d->log_view;
    return entry->view == d->log_view && (!d->closed || PLANTED(CLOSED_FORGOTTEN));
}

static const struct vr_entry *standing(const struct vr_durable *d, const struct slot_found *f,
                                       uint64_t op, bool *ret_has_body)
{
    *ret_has_body = f->entry_found == WHOLE && fits(d, &f->entry, op);
    if (*ret_has_body)
        return &f->entry;
    if (f->entry_found == WHOLE && f->entry.op == op && f->entry.view > d->log_view)
        return NULL;
    if (f->head_found == WHOLE && fits(d, &f->head, op) && !PLANTED(HEADERS_IGNORED))
        return &f->head;
    return NULL;
}

/* Follows the chain of entries from the checkpoint on. */
static void walk(const struct vr_store *s, const struct slot_found *found, struct vr_loaded *l)
{
    const struct vr_durable *d = &l->image.durable;
    uint64_t parent =
        d->checkpoint_op ? d->checkpoint_entry : vr_genesis_checksum(s->config.cluster);
    uint64_t last = d->checkpoint_op;
    uint64_t at_view_op = last == d->view_op ? parent : 0;
    bool unknown_parent = false;
    for (uint64_t op = last + 1; op <= d->checkpoint_op + s->config.slots; op++) {
        const struct slot_found *f = &found[op % s->config.slots];
        const struct slot_found *next = &found[(op + 1) % s->config.slots];
        struct vr_entry entry = {.op = op};
        bool has_body, next_body;
        const struct vr_entry *here = standing(d, f, op, &has_body);
        if (here && (here->parent == parent || unknown_parent)) {
            entry = *here;
            entry.flags = has_body ? VR_ENTRY_HAS_BODY : 0;
            unknown_parent = false;
        } else if (f->entry_found == DAMAGED && f->head_found == DAMAGED) {
            const struct vr_entry *after = standing(d, next, op + 1, &next_body);
            l->image.uncertain |= !after;
            if (!after)
                break;
            entry.checksum = after->parent;
            unknown_parent = true;
        } else {
            break;
        }
        l->entries[l->image.count++] = entry;
        parent = entry.checksum;
        last = op;
        if (op == d->view_op)
            at_view_op = parent;
    }
    if (last < d->view_op || (d->view_op >= d->checkpoint_op && at_view_op != d->view_checksum))
        l->image.uncertain = true;
}

static const void *loaded_body(const struct vr_image *image, uint32_t index)
{
    const struct vr_loaded *l = image->context;
    uint64_t slot = image->entries[index].op - image->durable.checkpoint_op - 1;
    return l->bodies + slot * l->batch_bytes;
}

/* The ring of heads is written by the sector: what stands beside a head must be right, too.  And an
 * entry whose second copy was not written before a crash counts from now on, so it needs one. */
static void repair_heads(struct vr_store *s, const struct slot_found *found, struct vr_loaded *l)
{
    for (uint32_t i = 0; i < s->config.slots; i++)
        if (found[i].head_found == DAMAGED && found[i].entry_found != DAMAGED)
            s->heads[i] = found[i].entry;
    for (uint32_t i = 0; i < l->image.count; i++) {
        struct vr_entry entry = l->entries[i];
        if (!(entry.flags & VR_ENTRY_HAS_BODY))
            continue;
        entry.flags = 0;
        s->heads[entry.op % s->config.slots] = entry;
    }
    for (uint32_t i = 0; i < s->config.slots && !PLANTED(HEAD_LATER); i++)
        l->heads_stale += memcmp(&s->heads[i], &found[i].head, sizeof(s->heads[i])) != 0;
}

static void load_log(struct vr_store *s, vr_store_read read, void *context, struct vr_loaded *l,
                     unsigned char *buffer)
{
    uint32_t slots = s->config.slots;
    struct slot_found *found = memory_zalloc(slots, sizeof(*found));
    memset(s->head_new, 0, slots * sizeof(s->head_new[0]));
    if (read(context, s->heads_offset, s->heads, s->heads_bytes))
        memset(s->heads, 0xff, s->heads_bytes);
    for (uint64_t offset = 1; offset <= slots; offset++) {
        uint64_t slot = (l->image.durable.checkpoint_op + offset) % slots;
        struct slot_found *f = &found[slot];
        if (read(context, s->entries_offset + slot * s->slot_bytes, buffer, s->slot_bytes))
            memset(buffer, 0xff, s->slot_bytes);
        memcpy(&f->entry, buffer, sizeof(f->entry));
        f->head = s->heads[slot];
        if (f->entry.size <= s->config.batch_bytes)
            f->entry_found = classify(s, &f->entry, buffer + sizeof(f->entry), slot);
        else
            f->entry_found = DAMAGED;
        f->head_found = classify(s, &f->head, NULL, slot);
        l->damaged += (f->entry_found == DAMAGED) + (f->head_found == DAMAGED);
        memcpy(l->bodies + (offset - 1) * s->config.batch_bytes, buffer + sizeof(f->entry),
               s->config.batch_bytes);
    }
    walk(s, found, l);
    repair_heads(s, found, l);
    free(found);
}

/* The place of a page that counts, or -1; what stands in the other may be of a checkpoint that was
 * never finished. */
static int choose_place(const struct vr_store *s, const unsigned char *places, uint32_t page,
                        uint64_t checkpoint_op, uint64_t *ret_sum, bool *ret_unfinished)
{
    uint32_t bytes = s->config.page_bytes - VR_PAGE_TRAILER_BYTES;
    struct page_trailer t[2];
    for (unsigned i = 0; i < 2; i++) {
        memcpy(&t[i], places + (size_t)i * s->config.page_bytes + bytes, sizeof(t[i]));
        *ret_unfinished |= t[i].page == page && t[i].op > checkpoint_op;
    }
    int first = t[1].op > t[0].op ? 1 : 0;
    for (unsigned i = 0; i < 2; i++) {
        int at = i ? 1 - first : first;
        if (t[at].page != page || t[at].op > checkpoint_op || t[at].op == 0)
            continue;
        *ret_sum = vr_page_sum(page, places + (size_t)at * s->config.page_bytes, bytes);
        if (trailer_checksum(*ret_sum, t[at].op) == t[at].checksum)
            return at;
    }
    return -1;
}

#define PAGES_AT_ONCE 128u

static void load_pages(struct vr_store *s, vr_store_read read, void *context, struct vr_loaded *l)
{
    const struct vr_durable *d = &l->image.durable;
    size_t each = 2 * (size_t)s->config.page_bytes, unfinished_capacity = 0;
    if (d->checkpoint_op == 0 || d->checkpoint_size > s->page_count)
        return;
    CLEANUP(memory_freep) unsigned char *buffer = memory_alloc(PAGES_AT_ONCE * each);
    vr_pages_init(&l->pages, s->page_count, s->config.page_bytes - VR_PAGE_TRAILER_BYTES);
    l->image.pages = &l->pages;
    l->image.copies = memory_alloc(s->page_count);
    memset(l->image.copies, 1, s->page_count);
    for (uint32_t page = 0; page < d->checkpoint_size; page++) {
        uint32_t at = page % PAGES_AT_ONCE;
        uint64_t left = d->checkpoint_size - page, sum = 0;
        if (at == 0 && read(context, page_offset(s, page, 0), buffer,
                            (left < PAGES_AT_ONCE ? left : PAGES_AT_ONCE) * each))
            memset(buffer, 0xff, PAGES_AT_ONCE * each);
        bool unfinished = false;
        int place = choose_place(s, buffer + at * each, page, d->checkpoint_op, &sum, &unfinished);
        if (place >= 0) {
            vr_pages_replace(&l->pages, page,
                             buffer + at * each + (size_t)place * s->config.page_bytes, sum);
            l->image.copies[page] = (unsigned char)place;
        }
        if (unfinished)
            ARRAY_PUSH(l->image.unfinished, l->image.unfinished_count, unfinished_capacity) = page;
    }
    l->image.has_checkpoint = l->pages.root == d->checkpoint_checksum;
    l->damaged += !l->image.has_checkpoint;
}

int vr_store_load(struct vr_store *s, vr_store_read read, void *context,
                  struct vr_loaded *ret_loaded, struct error *err)
{
    struct vr_loaded *l = ret_loaded;
    *l = (struct vr_loaded){.batch_bytes = s->config.batch_bytes};
    CLEANUP(memory_freep) unsigned char *buffer = memory_alloc(vr_store_phase_bytes_max(s));
    int result = load_superblock(s, read, context, l, buffer, err);
    if (result)
        return result;
    l->entries = memory_zalloc(s->config.slots, sizeof(*l->entries));
    l->image.entries = l->entries;
    l->image.body = loaded_body;
    l->image.context = l;
    if (s->config.in_memory) {
        l->image.uncertain = !l->image.durable.fresh && !PLANTED(MEMORY_TRUSTED);
        return 0;
    }
    l->bodies = memory_alloc((size_t)s->config.slots * s->config.batch_bytes);
    l->image.uncertain = l->image.durable.uncertain;
    load_log(s, read, context, l, buffer);
    load_pages(s, read, context, l);
    return 0;
}

void vr_loaded_done(struct vr_loaded *loaded)
{
    free(loaded->entries);
    free(loaded->bodies);
    free(loaded->image.copies);
    free(loaded->image.unfinished);
    if (loaded->image.pages)
        vr_pages_done(loaded->image.pages);
    *loaded = (struct vr_loaded){0};
}
