/* SPDX-License-Identifier: MIT */
/*
 * The client: calls that wait for their answers, or several at once, each in a session of its own.
 * assay_vr.h is the same for programs of others (library.c).
 *
 *   struct vr_client *c;
 *   if (vr_client_open(&c, "cluster.conf", &err)) …
 *   vr_client_put(c, "name", 4, "value", 5, &result, &err);
 *   vr_client_close(c);
 *
 * A call that returns 0 was executed, once, and will not be lost.  -ETIMEDOUT: nobody knows; it may
 * still be executed.  -ESTALE: the session was evicted (there are more clients than sessions); the
 * same; the next call begins a new session.  result says what the service answered.
 */
#ifndef ASSAY_VR_CLIENT_H
#define ASSAY_VR_CLIENT_H

#include "vr/core/copy.h"
#include "vr/net/cluster.h"

#include <sys/uio.h>

struct vr_client;

int vr_client_open(struct vr_client **ret_client, const char *config_path, struct error *err);
/* With a cluster that was read already; it stays the caller's. */
int vr_client_open_cluster(struct vr_client **ret_client, const struct vr_cluster *cluster,
                           struct error *err);
const struct vr_cluster *vr_client_cluster(const struct vr_client *c);
void vr_client_close(struct vr_client *c);
void vr_client_set_timeout(struct vr_client *c, uint64_t timeout_ns); /* default: 5 s */

/* Any operation.  out has room for VR_RESULT_BYTES_MAX. */
int vr_client_call(struct vr_client *c, uint32_t opcode, const void *data, uint32_t size,
                   enum vr_result *ret_result, void *out, uint32_t *ret_size, struct error *err);

/* The same without waiting.  done is called later, by vr_client_turn or by any other call that
 * waits; it may begin another operation.  result: 0, or a negative errno, of which err tells; only
 * with 0 there are an outcome and bytes, which are valid during the call.  Operations that are
 * under way at the same time have no order.  -EAGAIN: as many are under way as may be. */
#define VR_CLIENT_CALLS_MAX 16
typedef void (*vr_client_done)(void *context, int result, enum vr_result outcome, const void *bytes,
                               uint32_t size, const struct error *err);
int vr_client_begin(struct vr_client *c, uint32_t opcode, const void *data, uint32_t size,
                    vr_client_done done, void *context, struct error *err);
/* An operation of the key-value store; parts are key, expect and value. */
int vr_client_begin_kv(struct vr_client *c, uint32_t opcode, const struct iovec *parts,
                       vr_client_done done, void *context, struct error *err);
/* Takes what has come, sends again what is not answered; waits until an operation has ended, none
 * is under way, or this time has come.  Returns how many have ended. */
uint32_t vr_client_turn(struct vr_client *c, uint64_t end_ns);
/* When vr_client_turn must be called even if nothing comes by vr_client_fd; UINT64_MAX: never. */
uint64_t vr_client_due_ns(const struct vr_client *c);
uint32_t vr_client_under_way(const struct vr_client *c);
int vr_client_fd(const struct vr_client *c);

int vr_client_get(struct vr_client *c, const void *key, size_t key_size, enum vr_result *ret_result,
                  void *value, uint32_t *ret_size, struct error *err);
int vr_client_put(struct vr_client *c, const void *key, size_t key_size, const void *value,
                  size_t value_size, enum vr_result *ret_result, struct error *err);
/* expect_size 0: only where there is no such key.  On VR_CONFLICT found holds what stands there. */
int vr_client_cas(struct vr_client *c, const void *key, size_t key_size, const void *expect,
                  size_t expect_size, const void *value, size_t value_size,
                  enum vr_result *ret_result, void *found, uint32_t *ret_size, struct error *err);
int vr_client_delete(struct vr_client *c, const void *key, size_t key_size,
                     enum vr_result *ret_result, struct error *err);
/* Calls back for each pair from the key on, as many as one answer holds; how many in *ret_count. */
int vr_client_scan(struct vr_client *c, const void *key, size_t key_size,
                   void (*pair)(void *context, const void *key, size_t key_size, const void *value,
                                size_t value_size),
                   void *context, uint32_t *ret_count, struct error *err);

/* Asks every replica how it is; those that answer in time set there[i].  Both arrays have room for
 * VR_NODES_MAX. */
int vr_client_status(struct vr_client *c, uint64_t timeout_ns, struct vr_status *statuses,
                     bool *there, struct error *err);

/* A copy of the state with everything that was acknowledged before the call, and nothing that was
 * not: of one checkpoint.  Writes operations that do nothing until a checkpoint is there.  -EPROTO:
 * the settings are not those of the replicas.  The caller frees the copy. */
int vr_client_copy(struct vr_client *c, struct vr_copy **ret_copy, struct error *err);

/* The number of the replica that leads, by what this one says; VR_NODES_MAX: nobody. */
uint8_t vr_status_primary(const struct vr_status *status);

/* Names the next group, if the present epoch is the one that is named.  VR_CONFLICT: it is another.
 * *ret_now tells the group and epoch afterwards. */
int vr_client_reconfigure(struct vr_client *c, const struct vr_reconfiguration *wish,
                          enum vr_result *ret_result, struct vr_reconfiguration *ret_now,
                          struct error *err);

/* A socket from which the cluster's replicas can be reached; non-blocking. */
int vr_client_socket(const struct vr_cluster *cluster, struct error *err);
uint64_t vr_client_id(void);

#endif
