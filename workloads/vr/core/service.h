/* SPDX-License-Identifier: MIT */
/*
 * The state machines that are replicated: a null service, which answers and does nothing, and an
 * ordered key-value store.  Deterministic to the last byte: what is saved depends on nothing but
 * the operations executed.  All memory is taken at the start.
 */
#ifndef ASSAY_VR_SERVICE_H
#define ASSAY_VR_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* capacity: how many keys; 0 makes the null service. */
struct vr_service *vr_service_new(uint32_t capacity);
void vr_service_free(struct vr_service *s);

/* Writes at most VR_RESULT_BYTES_MAX to out. */
enum vr_result vr_service_execute(struct vr_service *s, uint32_t opcode, const void *data,
                                  uint32_t size, void *out, uint32_t *ret_size);

size_t vr_service_bytes_max(const struct vr_service *s);
size_t vr_service_save(const struct vr_service *s, void *out);
/* False when the bytes are no saved state of a service with this capacity; then it is empty. */
bool vr_service_load(struct vr_service *s, const void *bytes, size_t size);
uint32_t vr_service_count(const struct vr_service *s);

/* Writes arguments to out, at most 8 + the three sizes bytes; returns how many. */
uint32_t vr_kv_encode(void *out, const void *key, size_t key_size, const void *expect,
                      size_t expect_size, const void *value, size_t value_size);

#endif
