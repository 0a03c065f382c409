/* SPDX-License-Identifier: MIT */
/*
 * The state machines that are replicated: a null service, which answers and does nothing, and an
 * ordered key-value store.  Deterministic to the last byte: its pages depend on nothing but the
 * operations executed.
 */
#ifndef ASSAY_VR_SERVICE_H
#define ASSAY_VR_SERVICE_H

#include "vr/core/tree.h"

#define VR_KEY_BYTES_MAX 64
#define VR_VALUE_BYTES_MAX 512
#define VR_RESULT_BYTES_MAX 1024

enum vr_opcode {
    VR_OP_NULL,
    VR_OP_REGISTER, /* begins a session; the core's own */
    VR_OP_GET,
    VR_OP_PUT,
    VR_OP_CAS, /* puts value where expect stands; an empty expect means: where no key is */
    VR_OP_DELETE,
    VR_OP_SCAN, /* from key on, as many as fit the reply */
    VR_OP_END,
    VR_OP_RECONFIGURE = 64, /* the core's own: struct vr_reconfiguration */
};

enum vr_result {
    VR_OK,
    VR_NOT_FOUND,
    VR_CONFLICT,  /* cas: something else stands there; the reply holds it */
    VR_FULL,      /* no room for another key */
    VR_INVALID,   /* no such operation, or its arguments are not whole */
    VR_TOO_LARGE, /* more than one entry of the log holds: refused, not executed */
};

/* The arguments of a key-value operation; key, expect and value follow. */
struct vr_kv_args {
    uint16_t key_size, expect_size;
    uint32_t value_size;
};

struct vr_service;

/* capacity: how many keys; 0 makes the null service.  Its pages are those from first on. */
struct vr_service *vr_service_new(uint32_t capacity, struct vr_pages *pages, uint32_t first);
void vr_service_free(struct vr_service *s);
/* How many pages it takes. */
uint32_t vr_service_pages(uint32_t page_bytes, uint32_t capacity);

/* Writes at most VR_RESULT_BYTES_MAX to out. */
enum vr_result vr_service_execute(struct vr_service *s, uint32_t opcode, const void *data,
                                  uint32_t size, void *out, uint32_t *ret_size);

/* Which key an operation is about; false: none. */
bool vr_service_key(const struct vr_service *s, uint32_t opcode, const void *data, uint32_t size,
                    struct vr_bytes *ret_key);
/* A hint that operations on these keys come soon. */
void vr_service_prefetch(const struct vr_service *s, const struct vr_bytes *keys, uint32_t count);

/* Calls for each pair in the order of keys, until it returns false. */
void vr_service_each(const struct vr_service *s,
                     bool (*pair)(void *context, struct vr_bytes key, struct vr_bytes value),
                     void *context);

/* What stands beside its pages: to be kept with a state, and given back with one. */
#define VR_SERVICE_ROOT_BYTES 16
void vr_service_save(const struct vr_service *s, void *out);
bool vr_service_root_valid(const struct vr_service *s, const void *root, vr_page_reader read,
                           const void *context);
void vr_service_load(struct vr_service *s, const void *root);
/* Whether a page that came from elsewhere can be one of its pages. */
bool vr_service_page_valid(const struct vr_service *s, const unsigned char *page);
uint32_t vr_service_count(const struct vr_service *s);
/* Pages below this one are in use. */
uint32_t vr_service_used(const struct vr_service *s);

/* Writes arguments to out, at most 8 + the three sizes bytes; returns how many. */
uint32_t vr_kv_encode(void *out, const void *key, size_t key_size, const void *expect,
                      size_t expect_size, const void *value, size_t value_size);

#endif
