/* SPDX-License-Identifier: MIT */
/*
 * What one page of the tree looks like (tree.h), and how its records are read: for tree.c alone.
 */
#ifndef ASSAY_VR_NODE_H
#define ASSAY_VR_NODE_H

#include "vr/core/tree.h"

#include <string.h>

/* A page: this head, places of the records in the order of their keys, room, records. */
struct vr_node_head {
    uint16_t level; /* 0: a leaf */
    uint16_t count;
    uint16_t records; /* where the records begin */
    uint16_t garbage; /* bytes of records that are no more */
    uint32_t next;    /* of a free page */
    uint32_t kind;
};

#define KIND_NODE 0x65646f6eu
#define KIND_FREE 0x65657266u

struct vr_record {
    uint16_t key_size, value_size;
};

static inline struct vr_node_head head_of(const unsigned char *page)
{
    struct vr_node_head h;
    memcpy(&h, page, sizeof(h));
    return h;
}

static inline void set_head(unsigned char *page, struct vr_node_head h)
{
    memcpy(page, &h, sizeof(h));
}

static inline uint16_t place_at(const unsigned char *page, uint32_t index)
{
    uint16_t place;
    memcpy(&place, page + sizeof(struct vr_node_head) + 2 * index, 2);
    return place;
}

static inline void set_place(unsigned char *page, uint32_t index, uint16_t place)
{
    memcpy(page + sizeof(struct vr_node_head) + 2 * index, &place, 2);
}

static inline struct vr_record record_at(const unsigned char *page, uint32_t index)
{
    struct vr_record r;
    memcpy(&r, page + place_at(page, index), sizeof(r));
    return r;
}

static inline struct vr_bytes key_at(const unsigned char *page, uint32_t index)
{
    const unsigned char *at = page + place_at(page, index);
    struct vr_record r = record_at(page, index);
    return (struct vr_bytes){at + sizeof(r), r.key_size};
}

static inline struct vr_bytes value_at(const unsigned char *page, uint32_t index)
{
    const unsigned char *at = page + place_at(page, index);
    struct vr_record r = record_at(page, index);
    return (struct vr_bytes){at + sizeof(r) + r.key_size, r.value_size};
}

static inline uint32_t record_bytes(const unsigned char *page, uint32_t index)
{
    struct vr_record r = record_at(page, index);
    return (uint32_t)sizeof(r) + r.key_size + r.value_size;
}

static inline uint32_t child_at(const unsigned char *page, uint32_t index)
{
    uint32_t child;
    memcpy(&child, value_at(page, index).at, sizeof(child));
    return child;
}

static inline int compare(struct vr_bytes a, struct vr_bytes b)
{
    int order = memcmp(a.at, b.at, a.size < b.size ? a.size : b.size);
    return order ? order : a.size < b.size ? -1 : a.size > b.size;
}

/* The first record whose key is not below this one; *ret_same: it is this one. */
static inline uint32_t lower_bound(const unsigned char *page, struct vr_bytes key, bool *ret_same)
{
    uint32_t low = 0, high = head_of(page).count;
    *ret_same = false;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        int order = compare(key_at(page, middle), key);
        if (order == 0) {
            *ret_same = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

#endif
