/* SPDX-License-Identifier: MIT */
/*
 * An ordered map of short keys to short values as a B+ tree in pages (pages.h).  Its depth is
 * bounded by the number of pages, whatever keys somebody chooses; there is no recursion.  What it
 * looks like depends on nothing but the operations, so that it is the same to the last byte on
 * every replica.
 *
 * A page holds records in the order of their keys: in a leaf keys and values, above that the first
 * key of a child and the child's page.  Pages that two neighbours do not need are merged, pages
 * that are free form a list.
 */
#ifndef ASSAY_VR_TREE_H
#define ASSAY_VR_TREE_H

#include "vr/core/hints.h"
#include "vr/core/pages.h"

#define VR_TREE_DEPTH_MAX 24

/* Kept with a checkpoint. */
struct vr_tree_root {
    uint32_t root;      /* page, 0: the tree is empty */
    uint32_t free_list; /* page, 0: none */
    uint32_t used;      /* pages below this one have been used */
    uint32_t count;     /* keys */
};

struct vr_tree {
    struct vr_pages *pages;
    uint32_t first; /* of the pages that are the tree's: from here to the end */
    uint32_t free_count;
    struct vr_tree_root at;
    unsigned char *scratch; /* two pages, for splits */
    struct vr_hints hints;  /* in which leaves keys stand */
};

struct vr_bytes {
    const void *at;
    size_t size;
};

void vr_tree_init(struct vr_tree *t, struct vr_pages *pages, uint32_t first);
void vr_tree_done(struct vr_tree *t);
/* How many pages so many keys of any size take, unless they are put and removed with malice. */
uint32_t vr_tree_pages(uint32_t page_bytes, uint32_t keys, uint32_t record_bytes);
/* The largest key and value together. */
uint32_t vr_tree_record_max(uint32_t page_bytes);

/* False: there is no such key.  The value is valid until the tree changes. */
bool vr_tree_find(struct vr_tree *t, struct vr_bytes key, struct vr_bytes *ret_value);
/* A hint that these keys will be looked up soon: what that takes is on its way meanwhile.  More
 * than VR_TREE_AHEAD would not stay in the cache until then. */
#define VR_TREE_AHEAD 128
void vr_tree_prefetch(const struct vr_tree *t, const struct vr_bytes *keys, uint32_t count);
/* False: there is no room, or the key would be one more than so many, and nothing has changed. */
bool vr_tree_put(struct vr_tree *t, struct vr_bytes key, struct vr_bytes value, uint32_t keys_max);
bool vr_tree_remove(struct vr_tree *t, struct vr_bytes key);
/* Calls for each pair from the key on, until it returns false. */
void vr_tree_scan(const struct vr_tree *t, struct vr_bytes from,
                  bool (*pair)(void *context, struct vr_bytes key, struct vr_bytes value),
                  void *context);

/* Whether this can be the root of a state whose pages are read like this. */
bool vr_tree_root_valid(const struct vr_tree *t, const struct vr_tree_root *root,
                        vr_page_reader read, const void *context);
/* The pages are now those of this root, which is valid. */
void vr_tree_load(struct vr_tree *t, const struct vr_tree_root *root);
/* Whether a page can be one of a tree: what it says about itself stays within it. */
bool vr_tree_page_valid(const struct vr_pages *pages, uint32_t first, const unsigned char *page);

#endif
