/* SPDX-License-Identifier: MIT */
/* The key-value store over the tree of tree.h. */
#include "vr/core/service.h"
#include "base/memory.h"
#include "vr/core/tree.h"

#include <assert.h>
#include <string.h>

struct vr_service {
    uint32_t capacity;
    struct vr_tree tree;
};
static_assert(sizeof(struct vr_tree_root) == VR_SERVICE_ROOT_BYTES, "kept with every state");

struct vr_service *vr_service_new(uint32_t capacity, struct vr_pages *pages, uint32_t first)
{
    struct vr_service *s = memory_zalloc(1, sizeof(*s));
    s->capacity = capacity;
    vr_tree_init(&s->tree, pages, first);
    return s;
}

void vr_service_free(struct vr_service *s)
{
    if (s)
        vr_tree_done(&s->tree);
    free(s);
}

uint32_t vr_service_pages(uint32_t page_bytes, uint32_t capacity)
{
    return capacity ? vr_tree_pages(page_bytes, capacity, VR_KEY_BYTES_MAX + VR_VALUE_BYTES_MAX)
                    : 0;
}

uint32_t vr_service_count(const struct vr_service *s)
{
    return s->tree.at.count;
}

uint32_t vr_service_used(const struct vr_service *s)
{
    return s->tree.at.used;
}

struct arguments {
    struct vr_bytes key, expect, value;
};

static bool arguments_parse(struct arguments *a, const void *data, uint32_t size)
{
    struct vr_kv_args sizes;
    if (size < sizeof(sizes))
        return false;
    memcpy(&sizes, data, sizeof(sizes));
    if (sizes.key_size > VR_KEY_BYTES_MAX || sizes.expect_size > VR_VALUE_BYTES_MAX ||
        sizes.value_size > VR_VALUE_BYTES_MAX ||
        size != sizeof(sizes) + sizes.key_size + sizes.expect_size + sizes.value_size)
        return false;
    const unsigned char *at = (const unsigned char *)data + sizeof(sizes);
    a->key = (struct vr_bytes){at, sizes.key_size};
    a->expect = (struct vr_bytes){at + sizes.key_size, sizes.expect_size};
    a->value = (struct vr_bytes){at + sizes.key_size + sizes.expect_size, sizes.value_size};
    return true;
}

static enum vr_result give(struct vr_bytes value, void *out, uint32_t *ret_size,
                           enum vr_result result)
{
    if (value.size > VR_VALUE_BYTES_MAX)
        return VR_INVALID; /* no state that this service has made */
    memcpy(out, value.at, value.size);
    *ret_size = (uint32_t)value.size;
    return result;
}

static enum vr_result get(struct vr_service *s, const struct arguments *a, void *out,
                          uint32_t *ret_size)
{
    struct vr_bytes found;
    return vr_tree_find(&s->tree, a->key, &found) ? give(found, out, ret_size, VR_OK)
                                                  : VR_NOT_FOUND;
}

static enum vr_result put(struct vr_service *s, const struct arguments *a)
{
    return vr_tree_put(&s->tree, a->key, a->value, s->capacity) ? VR_OK : VR_FULL;
}

static enum vr_result swap(struct vr_service *s, const struct arguments *a, void *out,
                           uint32_t *ret_size)
{
    struct vr_bytes found;
    bool there = vr_tree_find(&s->tree, a->key, &found);
    bool same = there ? a->expect.size && found.size == a->expect.size &&
                            memcmp(found.at, a->expect.at, found.size) == 0
                      : a->expect.size == 0;
    if (!same)
        return there ? give(found, out, ret_size, VR_CONFLICT) : VR_NOT_FOUND;
    return put(s, a);
}

struct scan {
    unsigned char *out;
    uint32_t size;
};

static bool add_pair(void *context, struct vr_bytes key, struct vr_bytes value)
{
    struct scan *to = context;
    uint16_t sizes[2] = {(uint16_t)key.size, (uint16_t)value.size};
    if (to->size + sizeof(sizes) + key.size + value.size > VR_RESULT_BYTES_MAX)
        return false;
    memcpy(to->out + to->size, sizes, sizeof(sizes));
    memcpy(to->out + to->size + sizeof(sizes), key.at, key.size);
    memcpy(to->out + to->size + sizeof(sizes) + key.size, value.at, value.size);
    to->size += (uint32_t)(sizeof(sizes) + key.size + value.size);
    return true;
}

/* Whether the store has such an operation, and its arguments are whole. */
static bool understood(const struct vr_service *s, uint32_t opcode, const void *data, uint32_t size,
                       struct arguments *ret_arguments)
{
    return opcode > VR_OP_REGISTER && opcode < VR_OP_END && s->capacity &&
           arguments_parse(ret_arguments, data, size);
}

bool vr_service_key(const struct vr_service *s, uint32_t opcode, const void *data, uint32_t size,
                    struct vr_bytes *ret_key)
{
    struct arguments a;
    if (!understood(s, opcode, data, size, &a))
        return false;
    *ret_key = a.key;
    return true;
}

void vr_service_prefetch(const struct vr_service *s, const struct vr_bytes *keys, uint32_t count)
{
    vr_tree_prefetch(&s->tree, keys, count);
}

enum vr_result vr_service_execute(struct vr_service *s, uint32_t opcode, const void *data,
                                  uint32_t size, void *out, uint32_t *ret_size)
{
    struct arguments a;
    *ret_size = 0;
    if (opcode == VR_OP_NULL)
        return VR_OK;
    if (!understood(s, opcode, data, size, &a))
        return VR_INVALID;
    switch (opcode) {
    case VR_OP_GET:
        return get(s, &a, out, ret_size);
    case VR_OP_PUT:
        return put(s, &a);
    case VR_OP_CAS:
        return swap(s, &a, out, ret_size);
    case VR_OP_DELETE:
        return vr_tree_remove(&s->tree, a.key) ? VR_OK : VR_NOT_FOUND;
    default:;
        struct scan to = {out, 0};
        vr_tree_scan(&s->tree, a.key, add_pair, &to);
        *ret_size = to.size;
        return VR_OK;
    }
}

void vr_service_each(const struct vr_service *s,
                     bool (*pair)(void *context, struct vr_bytes key, struct vr_bytes value),
                     void *context)
{
    vr_tree_scan(&s->tree, (struct vr_bytes){"", 0}, pair, context);
}

void vr_service_save(const struct vr_service *s, void *out)
{
    memcpy(out, &s->tree.at, sizeof(s->tree.at));
}

bool vr_service_root_valid(const struct vr_service *s, const void *root, vr_page_reader read,
                           const void *context)
{
    struct vr_tree_root at;
    memcpy(&at, root, sizeof(at));
    return at.count <= s->capacity && vr_tree_root_valid(&s->tree, &at, read, context);
}

void vr_service_load(struct vr_service *s, const void *root)
{
    struct vr_tree_root at;
    memcpy(&at, root, sizeof(at));
    vr_tree_load(&s->tree, &at);
}

bool vr_service_page_valid(const struct vr_service *s, const unsigned char *page)
{
    return vr_tree_page_valid(s->tree.pages, s->tree.first, page);
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
