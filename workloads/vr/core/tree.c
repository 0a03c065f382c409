/* SPDX-License-Identifier: MIT */
#include "vr/core/tree.h"
#include "base/memory.h"
#include "vr/core/node.h"

#include <assert.h>
#include <string.h>

#define RECORD_MAX 4096
#define IN_CACHE_PAGES 1024u /* a smaller tree stays in the processor's cache by itself */
#define RECORD_FETCHED 576u  /* the longest there is in the store */

/* The way from the root to a leaf: pages, and which record was followed. */
struct path {
    uint32_t page[VR_TREE_DEPTH_MAX];
    uint32_t index[VR_TREE_DEPTH_MAX];
    unsigned depth; /* pages on it */
};

void vr_tree_init(struct vr_tree *t, struct vr_pages *pages, uint32_t first)
{
    *t = (struct vr_tree){.pages = pages, .first = first, .at = {.used = first}};
    t->scratch = memory_alloc(2 * (size_t)pages->bytes);
    vr_hints_init(&t->hints, pages->count - first);
}

void vr_tree_done(struct vr_tree *t)
{
    free(t->scratch);
    vr_hints_done(&t->hints);
    *t = (struct vr_tree){0};
}

uint32_t vr_tree_record_max(uint32_t page_bytes)
{
    return (page_bytes - (uint32_t)sizeof(struct vr_node_head)) / 4 -
           (uint32_t)sizeof(struct vr_record) - 2;
}

uint32_t vr_tree_pages(uint32_t page_bytes, uint32_t keys, uint32_t bytes)
{
    uint32_t room = page_bytes - (uint32_t)sizeof(struct vr_node_head);
    uint32_t most = vr_tree_record_max(page_bytes);
    uint64_t each = (bytes < most ? bytes : most) + sizeof(struct vr_record) + 2;
    /* Pages are four sevenths full, as a rule; and what stands above the leaves. */
    uint64_t leaves = (uint64_t)keys * each * 7 / 4 / room + 1;
    return (uint32_t)(leaves + leaves / 16 + 2 * 4);
}

/* Down to the leaf in which the key stands, or would; *ret_same: it does.  False: this is no tree,
 * which only a state of somebody else can be. */
static bool descend(const struct vr_tree *t, struct vr_bytes key, struct path *p, bool *ret_same)
{
    uint32_t page = t->at.root, level = head_of(vr_pages_at(t->pages, page)).level;
    p->depth = 0;
    for (;; level--) {
        const unsigned char *at = vr_pages_at(t->pages, page);
        struct vr_node_head h = head_of(at);
        bool same;
        if (h.kind != KIND_NODE || h.level != level || h.count == 0 ||
            p->depth == VR_TREE_DEPTH_MAX)
            return false;
        uint32_t index = lower_bound(at, key, &same);
        if (level && !same && index)
            index--; /* the child whose first key is below */
        p->page[p->depth] = page;
        p->index[p->depth++] = index;
        *ret_same = same;
        if (level == 0)
            return true;
        page = child_at(at, index);
    }
}

/* The record at this place, if the key is its. */
static bool is_at(const unsigned char *page, uint16_t place, struct vr_bytes key,
                  uint32_t *ret_index)
{
    uint32_t count = head_of(page).count;
    for (uint32_t i = 0; i < count; i++)
        if (place_at(page, i) == place) {
            *ret_index = i;
            return compare(key_at(page, i), key) == 0;
        }
    return false;
}

/* Where the key stands if there is a guess that is right.  All leaves below at.used belong to the
 * tree, for one that is given back is wiped; and a key stands in one leaf only. */
static bool guess(struct vr_tree *t, struct vr_bytes key, uint64_t hint, uint32_t *ret_leaf,
                  uint32_t *ret_index)
{
    uint16_t place;
    bool same;
    if (!vr_hints_find(&t->hints, hint, ret_leaf, &place) || *ret_leaf >= t->at.used)
        return false;
    const unsigned char *at = vr_pages_at(t->pages, *ret_leaf);
    struct vr_node_head h = head_of(at);
    if (h.kind != KIND_NODE || h.level != 0)
        return false;
    if (is_at(at, place, key, ret_index))
        return true;
    *ret_index = lower_bound(at, key, &same);
    if (same)
        vr_hints_set(&t->hints, hint, *ret_leaf, place_at(at, *ret_index));
    return same;
}

bool vr_tree_find(struct vr_tree *t, struct vr_bytes key, struct vr_bytes *ret_value)
{
    struct path p;
    bool same;
    uint64_t hint = vr_hint_of(key.at, key.size);
    uint32_t leaf, index;
    if (!t->at.root)
        return false;
    if (!guess(t, key, hint, &leaf, &index)) {
        if (!descend(t, key, &p, &same) || !same)
            return false;
        leaf = p.page[p.depth - 1];
        index = p.index[p.depth - 1];
        vr_hints_set(&t->hints, hint, leaf, place_at(vr_pages_at(t->pages, leaf), index));
    }
    *ret_value = value_at(vr_pages_at(t->pages, leaf), index);
    return true;
}

/* What a batch needs is asked for at once; one after the other would be waited for.  Keys that were
 * never looked for are left out: a walk through the tree is what would have to be waited for. */
void vr_tree_prefetch(const struct vr_tree *t, const struct vr_bytes *keys, uint32_t count)
{
    uint64_t hints[VR_TREE_AHEAD];
    if (!t->at.root || t->at.used - t->first < IN_CACHE_PAGES)
        return;
    count = count < VR_TREE_AHEAD ? count : VR_TREE_AHEAD;
    for (uint32_t i = 0; i < count; i++) {
        hints[i] = vr_hint_of(keys[i].at, keys[i].size);
        vr_hints_prefetch(&t->hints, hints[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t page;
        uint16_t place;
        if (!vr_hints_find(&t->hints, hints[i], &page, &place))
            continue;
        const unsigned char *at = vr_pages_at(t->pages, page);
        __builtin_prefetch(at);
        vr_pages_prefetch_known(t->pages, page);
        vr_pages_prefetch(at + place, RECORD_FETCHED);
    }
}

/* ---- one page */

static uint32_t room_in(const unsigned char *page)
{
    struct vr_node_head h = head_of(page);
    return h.records - (uint32_t)sizeof(h) - 2u * h.count + h.garbage;
}

static uint32_t filled(const struct vr_tree *t, const unsigned char *page)
{
    return t->pages->bytes - (uint32_t)sizeof(struct vr_node_head) - room_in(page);
}

static void append(unsigned char *page, const void *record, uint32_t size)
{
    struct vr_node_head h = head_of(page);
    h.records = (uint16_t)(h.records - size);
    memcpy(page + h.records, record, size);
    set_place(page, h.count++, h.records);
    set_head(page, h);
}

static void make_empty(const struct vr_tree *t, unsigned char *page, uint16_t level)
{
    memset(page, 0, t->pages->bytes);
    set_head(page, (struct vr_node_head){
                       .level = level, .records = (uint16_t)t->pages->bytes, .kind = KIND_NODE});
}

/* Without what is no more. */
static void compact(const struct vr_tree *t, unsigned char *page)
{
    unsigned char *old = t->scratch;
    memcpy(old, page, t->pages->bytes);
    struct vr_node_head h = head_of(old);
    make_empty(t, page, h.level);
    for (uint32_t i = 0; i < h.count; i++)
        append(page, old + place_at(old, i), record_bytes(old, i));
}

static void take_out(unsigned char *page, uint32_t index)
{
    struct vr_node_head h = head_of(page);
    h.garbage = (uint16_t)(h.garbage + record_bytes(page, index));
    unsigned char *places = page + sizeof(h);
    memmove(places + 2 * index, places + 2 * (index + 1), 2u * (h.count - index - 1));
    h.count--;
    set_head(page, h);
}

static uint32_t make_record(unsigned char *out, struct vr_bytes key, struct vr_bytes value)
{
    struct vr_record r = {(uint16_t)key.size, (uint16_t)value.size};
    memcpy(out, &r, sizeof(r));
    memcpy(out + sizeof(r), key.at, key.size);
    if (value.size)
        memcpy(out + sizeof(r) + key.size, value.at, value.size);
    return (uint32_t)(sizeof(r) + key.size + value.size);
}

/* There is room. */
static void put_in(const struct vr_tree *t, unsigned char *page, uint32_t index, const void *record,
                   uint32_t size)
{
    struct vr_node_head h = head_of(page);
    if (h.records - sizeof(h) - 2u * h.count < size + 2) {
        compact(t, page);
        h = head_of(page);
    }
    h.records = (uint16_t)(h.records - size);
    memcpy(page + h.records, record, size);
    unsigned char *places = page + sizeof(h);
    memmove(places + 2 * (index + 1), places + 2 * index, 2u * (h.count - index));
    h.count++;
    set_head(page, h);
    set_place(page, index, h.records);
}

/* ---- pages */

static uint32_t available(const struct vr_tree *t)
{
    return t->free_count + t->pages->count - t->at.used;
}

static uint32_t take_page(struct vr_tree *t)
{
    if (!t->at.free_list) {
        assert(t->at.used < t->pages->count);
        return t->at.used++;
    }
    uint32_t page = t->at.free_list;
    t->at.free_list = head_of(vr_pages_at(t->pages, page)).next;
    t->free_count--;
    return page;
}

static void give_page(struct vr_tree *t, uint32_t page)
{
    unsigned char *at = vr_pages_touch(t->pages, page);
    memset(at, 0, t->pages->bytes);
    set_head(at, (struct vr_node_head){.next = t->at.free_list, .kind = KIND_FREE});
    t->at.free_list = page;
    t->free_count++;
}

/* Divides a page that has no room for the record; returns the new page, which stands behind it. */
static uint32_t split(struct vr_tree *t, uint32_t page, uint32_t index, const void *record,
                      uint32_t size)
{
    uint32_t right = take_page(t), bytes = t->pages->bytes;
    unsigned char *left_at = vr_pages_touch(t->pages, page);
    unsigned char *right_at = vr_pages_touch(t->pages, right), *old = t->scratch + bytes;
    memcpy(old, left_at, bytes);
    struct vr_node_head h = head_of(old);
    uint32_t half = (filled(t, old) + size + 2) / 2, used = 0;
    make_empty(t, left_at, h.level);
    make_empty(t, right_at, h.level);
    /* Keys often come in their order: behind the last one the left page stays full. */
    bool at_end = index == h.count;
    for (uint32_t i = 0; i <= h.count; i++) {
        bool is_new = i == index;
        uint32_t from = i > index ? i - 1 : i;
        const void *bytes_at = is_new ? record : old + place_at(old, from);
        uint32_t each = is_new ? size : record_bytes(old, from);
        bool to_left = i == 0 || (i < h.count && (at_end || used + each / 2 <= half));
        append(to_left && head_of(right_at).count == 0 ? left_at : right_at, bytes_at, each);
        used += each + 2;
    }
    return right;
}

/* A page was divided: its new neighbour is named above it, which may divide that one, too. */
static void name_above(struct vr_tree *t, const struct path *p, uint32_t right)
{
    unsigned char record[sizeof(struct vr_record) + 512 + sizeof(right)];
    for (unsigned level = p->depth - 1;; level--) {
        struct vr_bytes key = key_at(vr_pages_at(t->pages, right), 0);
        assert(key.size <= 512);
        uint32_t size = make_record(record, key, (struct vr_bytes){&right, sizeof(right)});
        if (level == 0) {
            uint32_t left = p->page[0], root = take_page(t);
            uint16_t above = (uint16_t)(head_of(vr_pages_at(t->pages, left)).level + 1);
            unsigned char *at = vr_pages_touch(t->pages, root);
            make_empty(t, at, above);
            unsigned char first[sizeof(record)];
            uint32_t first_size = make_record(first, key_at(vr_pages_at(t->pages, left), 0),
                                              (struct vr_bytes){&left, sizeof(left)});
            append(at, first, first_size);
            append(at, record, size);
            t->at.root = root;
            return;
        }
        uint32_t parent = p->page[level - 1], index = p->index[level - 1] + 1;
        if (room_in(vr_pages_at(t->pages, parent)) >= size + 2) {
            put_in(t, vr_pages_touch(t->pages, parent), index, record, size);
            return;
        }
        right = split(t, parent, index, record, size);
    }
}

/* A key that is there gets a value of the same size: nothing but its bytes change. */
static bool overwrite(struct vr_tree *t, uint32_t leaf, uint32_t index, struct vr_bytes value)
{
    const unsigned char *at = vr_pages_at(t->pages, leaf);
    struct vr_bytes before = value_at(at, index);
    if (before.size != value.size)
        return false;
    vr_pages_put(t->pages, leaf, (uint32_t)((const unsigned char *)before.at - at), value.at,
                 (uint32_t)value.size);
    return true;
}

/* The keys of a leaf stand elsewhere than before. */
static void note_places(struct vr_tree *t, uint32_t leaf)
{
    const unsigned char *at = vr_pages_at(t->pages, leaf);
    for (uint32_t i = 0; i < head_of(at).count; i++) {
        struct vr_bytes key = key_at(at, i);
        vr_hints_set(&t->hints, vr_hint_of(key.at, key.size), leaf, place_at(at, i));
    }
}

static bool put_first(struct vr_tree *t, struct vr_bytes key, struct vr_bytes value)
{
    unsigned char record[RECORD_MAX];
    if (!available(t))
        return false;
    t->at.root = take_page(t);
    t->at.count = 1;
    unsigned char *at = vr_pages_touch(t->pages, t->at.root);
    make_empty(t, at, 0);
    append(at, record, make_record(record, key, value));
    return true;
}

bool vr_tree_put(struct vr_tree *t, struct vr_bytes key, struct vr_bytes value, uint32_t keys_max)
{
    unsigned char record[RECORD_MAX];
    struct path p;
    bool same = false;
    if (key.size + value.size > vr_tree_record_max(t->pages->bytes))
        return false;
    if (!t->at.root)
        return keys_max && put_first(t, key, value);
    uint64_t hint = vr_hint_of(key.at, key.size);
    uint32_t leaf, index;
    if (guess(t, key, hint, &leaf, &index) && overwrite(t, leaf, index, value))
        return true;
    if (!descend(t, key, &p, &same))
        return false;
    leaf = p.page[p.depth - 1];
    index = p.index[p.depth - 1];
    if (same)
        vr_hints_set(&t->hints, hint, leaf, place_at(vr_pages_at(t->pages, leaf), index));
    if (same && overwrite(t, leaf, index, value))
        return true;
    /* As many pages as a split up to the root takes. */
    if (available(t) < p.depth + 1 || (!same && t->at.count >= keys_max))
        return false;
    unsigned char *at = vr_pages_touch(t->pages, leaf);
    uint32_t size = make_record(record, key, value);
    if (same)
        take_out(at, index);
    t->at.count += !same;
    if (room_in(at) >= size + 2) {
        put_in(t, at, index, record, size);
        vr_hints_set(&t->hints, hint, leaf, place_at(at, index));
        return true;
    }
    uint32_t right = split(t, leaf, index, record, size);
    name_above(t, &p, right);
    note_places(t, leaf);
    note_places(t, right);
    return true;
}

/* ---- removing */

/* Two neighbours below the same page that need but one: the left one takes all.  Above the leaves
 * the first key of the right one is what stands above it: a child may have keys below its own. */
static bool merge(struct vr_tree *t, const struct path *p, unsigned level, uint32_t left_index)
{
    unsigned char record[RECORD_MAX];
    const unsigned char *above = vr_pages_at(t->pages, p->page[level - 1]);
    if (left_index + 1 >= head_of(above).count)
        return false;
    uint32_t left = child_at(above, left_index), right = child_at(above, left_index + 1);
    const unsigned char *from = vr_pages_at(t->pages, right);
    struct vr_node_head h = head_of(from);
    struct vr_bytes named = key_at(above, left_index + 1);
    uint32_t room = t->pages->bytes - (uint32_t)sizeof(struct vr_node_head);
    uint32_t both = filled(t, vr_pages_at(t->pages, left)) + filled(t, from);
    if (both + (h.level ? named.size : 0) > room * 3 / 4)
        return false;
    unsigned char *to = vr_pages_touch(t->pages, left);
    compact(t, to);
    for (uint32_t i = 0; i < h.count; i++) {
        if (i == 0 && h.level)
            append(to, record, make_record(record, named, value_at(from, 0)));
        else
            append(to, from + place_at(from, i), record_bytes(from, i));
    }
    give_page(t, right);
    take_out(vr_pages_touch(t->pages, p->page[level - 1]), left_index + 1);
    return true;
}

/* A root with one child is none. */
static void lower_root(struct vr_tree *t)
{
    for (;;) {
        const unsigned char *root = vr_pages_at(t->pages, t->at.root);
        struct vr_node_head h = head_of(root);
        if (h.level == 0 || h.count > 1)
            return;
        uint32_t child = child_at(root, 0);
        give_page(t, t->at.root);
        t->at.root = child;
    }
}

bool vr_tree_remove(struct vr_tree *t, struct vr_bytes key)
{
    struct path p;
    bool same;
    if (!t->at.root || !descend(t, key, &p, &same) || !same)
        return false;
    unsigned level = p.depth - 1;
    t->at.count--;
    take_out(vr_pages_touch(t->pages, p.page[level]), p.index[level]);
    /* Pages without a record go. */
    while (head_of(vr_pages_at(t->pages, p.page[level])).count == 0) {
        give_page(t, p.page[level]);
        if (level == 0) {
            t->at.root = 0;
            return true;
        }
        level--;
        take_out(vr_pages_touch(t->pages, p.page[level]), p.index[level]);
    }
    for (; level; level--) {
        uint32_t above = p.index[level - 1];
        if (!merge(t, &p, level, above) && (above == 0 || !merge(t, &p, level, above - 1)))
            break;
    }
    lower_root(t);
    return true;
}

void vr_tree_scan(const struct vr_tree *t, struct vr_bytes from,
                  bool (*pair)(void *context, struct vr_bytes key, struct vr_bytes value),
                  void *context)
{
    struct path p;
    bool same;
    if (!t->at.root || !descend(t, from, &p, &same))
        return;
    for (;;) {
        unsigned last = p.depth - 1;
        const unsigned char *leaf = vr_pages_at(t->pages, p.page[last]);
        for (uint32_t i = p.index[last]; i < head_of(leaf).count; i++)
            if (!pair(context, key_at(leaf, i), value_at(leaf, i)))
                return;
        /* To the next leaf: up to where there is another child, and down its first ones. */
        unsigned level = last;
        while (level &&
               p.index[level - 1] + 1 >= head_of(vr_pages_at(t->pages, p.page[level - 1])).count)
            level--;
        if (!level)
            return;
        p.index[level - 1]++;
        for (; level <= last; level++) {
            p.page[level] = child_at(vr_pages_at(t->pages, p.page[level - 1]), p.index[level - 1]);
            p.index[level] = 0;
            struct vr_node_head h = head_of(vr_pages_at(t->pages, p.page[level]));
            if (h.kind != KIND_NODE || h.level != last - level || h.count == 0)
                return;
        }
    }
}

/* ---- states of others */

bool vr_tree_page_valid(const struct vr_pages *pages, uint32_t first, const unsigned char *page)
{
    struct vr_node_head h = head_of(page);
    if (h.kind == KIND_FREE)
        return h.next == 0 || (h.next >= first && h.next < pages->count);
    if (h.kind != KIND_NODE || h.level >= VR_TREE_DEPTH_MAX || h.records > pages->bytes ||
        h.count == 0 || h.records < sizeof(h) + 2u * h.count)
        return false;
    for (uint32_t i = 0; i < h.count; i++) {
        uint32_t place = place_at(page, i), child;
        if (place < h.records || place + sizeof(struct vr_record) > pages->bytes ||
            place + record_bytes(page, i) > pages->bytes)
            return false;
        if (!h.level)
            continue;
        if (record_at(page, i).value_size != sizeof(child))
            return false;
        child = child_at(page, i);
        if (child < first || child >= pages->count)
            return false;
    }
    return true;
}

/* The free pages behind a root; more than there can be when the list has no end. */
static uint32_t count_free(const struct vr_tree *t, const struct vr_tree_root *root,
                           vr_page_reader read, const void *context)
{
    uint32_t count = 0;
    for (uint32_t page = root->free_list; page; count++) {
        struct vr_node_head h = {0};
        if (page >= t->first && page < root->used)
            h = head_of(read(context, page));
        if (h.kind != KIND_FREE || count > root->used)
            return root->used + 1;
        page = h.next;
    }
    return count;
}

bool vr_tree_root_valid(const struct vr_tree *t, const struct vr_tree_root *root,
                        vr_page_reader read, const void *context)
{
    if (root->used < t->first || root->used > t->pages->count || root->root >= root->used ||
        (root->root && root->root < t->first) || (!root->root) != (!root->count))
        return false;
    return (!root->root || head_of(read(context, root->root)).kind == KIND_NODE) &&
           count_free(t, root, read, context) <= root->used;
}

static const unsigned char *read_present(const void *context, uint32_t page)
{
    return vr_pages_at(context, page);
}

void vr_tree_load(struct vr_tree *t, const struct vr_tree_root *root)
{
    t->at = *root;
    t->free_count = count_free(t, root, read_present, t->pages);
}
