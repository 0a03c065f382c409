/* SPDX-License-Identifier: MIT */
/*
 * The store is a treap whose priorities are hashes of the keys: its shape, and so the order of a
 * walk, is a function of the set of keys alone.
 */
#include "vr/core/service.h"
#include "base/memory.h"
#include "vr/core/hash.h"

#include <string.h>

#define NOBODY UINT32_MAX

struct node {
    uint64_t priority;
    uint32_t left, right;
    uint16_t key_size, value_size;
    unsigned char key[VR_KEY_BYTES_MAX], value[VR_VALUE_BYTES_MAX];
};

struct vr_service {
    uint32_t capacity, count, root, free_list;
    struct node *nodes;
};

static void clear(struct vr_service *s)
{
    s->count = 0;
    s->root = NOBODY;
    s->free_list = s->capacity ? 0 : NOBODY;
    for (uint32_t i = 0; i < s->capacity; i++)
        s->nodes[i].left = i + 1 < s->capacity ? i + 1 : NOBODY;
}

struct vr_service *vr_service_new(uint32_t capacity)
{
    struct vr_service *s = memory_zalloc(1, sizeof(*s));
    s->capacity = capacity;
    s->nodes = memory_zalloc(capacity ? capacity : 1, sizeof(*s->nodes));
    clear(s);
    return s;
}

void vr_service_free(struct vr_service *s)
{
    if (s)
        free(s->nodes);
    free(s);
}

uint32_t vr_service_count(const struct vr_service *s)
{
    return s->count;
}

static int compare(const void *a, size_t a_size, const void *b, size_t b_size)
{
    int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
    return order ? order : a_size < b_size ? -1 : a_size > b_size;
}

static struct node *find(struct vr_service *s, const void *key, size_t size)
{
    for (uint32_t at = s->root; at != NOBODY;) {
        struct node *n = &s->nodes[at];
        int order = compare(key, size, n->key, n->key_size);
        if (order == 0)
            return n;
        at = order < 0 ? n->left : n->right;
    }
    return NULL;
}

/* Splits a tree into what is below the key and what is above. */
static void split(struct vr_service *s, uint32_t at, const void *key, size_t size, uint32_t *below,
                  uint32_t *above)
{
    while (at != NOBODY) {
        struct node *n = &s->nodes[at];
        if (compare(n->key, n->key_size, key, size) < 0) {
            *below = at;
            below = &n->right;
            at = n->right;
        } else {
            *above = at;
            above = &n->left;
            at = n->left;
        }
    }
    *below = *above = NOBODY;
}

static void insert(struct vr_service *s, uint32_t index)
{
    struct node *n = &s->nodes[index];
    uint32_t *at = &s->root;
    while (*at != NOBODY && s->nodes[*at].priority >= n->priority) {
        struct node *here = &s->nodes[*at];
        at = compare(n->key, n->key_size, here->key, here->key_size) < 0 ? &here->left
                                                                         : &here->right;
    }
    uint32_t rest = *at;
    *at = index;
    split(s, rest, n->key, n->key_size, &n->left, &n->right);
}

static bool put(struct vr_service *s, const void *key, size_t key_size, const void *value,
                size_t value_size)
{
    struct node *n = find(s, key, key_size);
    if (!n && s->free_list == NOBODY)
        return false;
    if (!n) {
        uint32_t index = s->free_list;
        n = &s->nodes[index];
        s->free_list = n->left;
        s->count++;
        n->priority = vr_hash(key, key_size);
        n->key_size = (uint16_t)key_size;
        memcpy(n->key, key, key_size);
        insert(s, index);
    }
    n->value_size = (uint16_t)value_size;
    memcpy(n->value, value, value_size);
    return true;
}

static void join(struct vr_service *s, uint32_t *at, uint32_t left, uint32_t right)
{
    while (left != NOBODY && right != NOBODY) {
        struct node *l = &s->nodes[left], *r = &s->nodes[right];
        if (l->priority >= r->priority) {
            *at = left;
            at = &l->right;
            left = l->right;
        } else {
            *at = right;
            at = &r->left;
            right = r->left;
        }
    }
    *at = left != NOBODY ? left : right;
}

static bool remove_key(struct vr_service *s, const void *key, size_t size)
{
    uint32_t *at = &s->root;
    while (*at != NOBODY) {
        struct node *n = &s->nodes[*at];
        int order = compare(key, size, n->key, n->key_size);
        if (order == 0) {
            uint32_t index = *at;
            join(s, at, n->left, n->right);
            n->left = s->free_list;
            s->free_list = index;
            s->count--;
            return true;
        }
        at = order < 0 ? &n->left : &n->right;
    }
    return false;
}

struct arguments {
    const unsigned char *key, *expect, *value;
    struct vr_kv_args sizes;
};

static bool arguments_parse(struct arguments *a, const void *data, uint32_t size)
{
    if (size < sizeof(a->sizes))
        return false;
    memcpy(&a->sizes, data, sizeof(a->sizes));
    if (a->sizes.key_size > VR_KEY_BYTES_MAX || a->sizes.expect_size > VR_VALUE_BYTES_MAX ||
        a->sizes.value_size > VR_VALUE_BYTES_MAX ||
        size != sizeof(a->sizes) + a->sizes.key_size + a->sizes.expect_size + a->sizes.value_size)
        return false;
    a->key = (const unsigned char *)data + sizeof(a->sizes);
    a->expect = a->key + a->sizes.key_size;
    a->value = a->expect + a->sizes.expect_size;
    return true;
}

static enum vr_result give(const struct node *n, void *out, uint32_t *ret_size,
                           enum vr_result result)
{
    if (!n)
        return VR_NOT_FOUND;
    memcpy(out, n->value, n->value_size);
    *ret_size = n->value_size;
    return result;
}

static enum vr_result swap(struct vr_service *s, const struct arguments *a, void *out,
                           uint32_t *ret_size)
{
    const struct node *n = find(s, a->key, a->sizes.key_size);
    bool same = n ? a->sizes.expect_size &&
                        compare(n->value, n->value_size, a->expect, a->sizes.expect_size) == 0
                  : a->sizes.expect_size == 0;
    if (!same)
        return n ? give(n, out, ret_size, VR_CONFLICT) : VR_NOT_FOUND;
    return put(s, a->key, a->sizes.key_size, a->value, a->sizes.value_size) ? VR_OK : VR_FULL;
}

struct scan {
    const struct arguments *from;
    unsigned char *out;
    uint32_t size;
};

static bool scan(const struct vr_service *s, uint32_t at, struct scan *to)
{
    if (at == NOBODY)
        return true;
    const struct node *n = &s->nodes[at];
    bool after = compare(n->key, n->key_size, to->from->key, to->from->sizes.key_size) >= 0;
    if (after && !scan(s, n->left, to))
        return false;
    if (after) {
        uint16_t sizes[2] = {n->key_size, n->value_size};
        if (to->size + sizeof(sizes) + n->key_size + n->value_size > VR_RESULT_BYTES_MAX)
            return false;
        memcpy(to->out + to->size, sizes, sizeof(sizes));
        memcpy(to->out + to->size + sizeof(sizes), n->key, n->key_size);
        memcpy(to->out + to->size + sizeof(sizes) + n->key_size, n->value, n->value_size);
        to->size += (uint32_t)(sizeof(sizes) + n->key_size + n->value_size);
    }
    return scan(s, n->right, to);
}

enum vr_result vr_service_execute(struct vr_service *s, uint32_t opcode, const void *data,
                                  uint32_t size, void *out, uint32_t *ret_size)
{
    struct arguments a;
    *ret_size = 0;
    if (opcode == VR_OP_NULL)
        return VR_OK;
    if (opcode <= VR_OP_REGISTER || opcode >= VR_OP_END || !s->capacity ||
        !arguments_parse(&a, data, size))
        return VR_INVALID;
    switch (opcode) {
    case VR_OP_GET:
        return give(find(s, a.key, a.sizes.key_size), out, ret_size, VR_OK);
    case VR_OP_PUT:
        return put(s, a.key, a.sizes.key_size, a.value, a.sizes.value_size) ? VR_OK : VR_FULL;
    case VR_OP_CAS:
        return swap(s, &a, out, ret_size);
    case VR_OP_DELETE:
        return remove_key(s, a.key, a.sizes.key_size) ? VR_OK : VR_NOT_FOUND;
    default:;
        struct scan to = {&a, out, 0};
        scan(s, s->root, &to);
        *ret_size = to.size;
        return VR_OK;
    }
}

size_t vr_service_bytes_max(const struct vr_service *s)
{
    return 8 + (size_t)s->capacity * (4 + VR_KEY_BYTES_MAX + VR_VALUE_BYTES_MAX);
}

static unsigned char *save_node(const struct vr_service *s, uint32_t at, unsigned char *out)
{
    if (at == NOBODY)
        return out;
    const struct node *n = &s->nodes[at];
    out = save_node(s, n->left, out);
    uint16_t sizes[2] = {n->key_size, n->value_size};
    memcpy(out, sizes, sizeof(sizes));
    memcpy(out + 4, n->key, n->key_size);
    memcpy(out + 4 + n->key_size, n->value, n->value_size);
    return save_node(s, n->right, out + 4 + n->key_size + n->value_size);
}

size_t vr_service_save(const struct vr_service *s, void *out)
{
    uint32_t head[2] = {s->capacity, s->count};
    memcpy(out, head, sizeof(head));
    return (size_t)(save_node(s, s->root, (unsigned char *)out + 8) - (unsigned char *)out);
}

bool vr_service_load(struct vr_service *s, const void *bytes, size_t size)
{
    const unsigned char *at = bytes, *end = at + size;
    uint32_t head[2];
    clear(s);
    if (size < sizeof(head))
        return false;
    memcpy(head, at, sizeof(head));
    at += sizeof(head);
    bool good = head[0] == s->capacity && head[1] <= s->capacity;
    for (uint32_t i = 0; good && i < head[1]; i++) {
        uint16_t sizes[2] = {0, 0};
        if (end - at >= 4)
            memcpy(sizes, at, 4);
        good = end - at >= 4 + sizes[0] + sizes[1] && sizes[0] <= VR_KEY_BYTES_MAX &&
               sizes[1] <= VR_VALUE_BYTES_MAX;
        if (good)
            put(s, at + 4, sizes[0], at + 4 + sizes[0], sizes[1]);
        at += good ? 4 + sizes[0] + sizes[1] : 0;
    }
    good = good && at == end && s->count == head[1];
    if (!good)
        clear(s);
    return good;
}

uint32_t vr_kv_encode(void *out, const void *key, size_t key_size, const void *expect,
                      size_t expect_size, const void *value, size_t value_size)
{
    struct vr_kv_args sizes = {(uint16_t)key_size, (uint16_t)expect_size, (uint32_t)value_size};
    unsigned char *at = out;
    memcpy(at, &sizes, sizeof(sizes));
    at += sizeof(sizes);
    memcpy(at, key, key_size);
    at += key_size;
    if (expect_size)
        memcpy(at, expect, expect_size);
    at += expect_size;
    if (value_size)
        memcpy(at, value, value_size);
    return (uint32_t)(sizeof(sizes) + key_size + expect_size + value_size);
}
