/* SPDX-License-Identifier: MIT */
/*
 * assay_vr.h: the replicated store of assay-vr for programs in C, and for all that can call C.
 *
 *   #include <assay_vr.h>
 *
 *   struct assay_vr *store;
 *   if (assay_vr_open(&store, "cluster.conf"))
 *       errx(1, "%s", assay_vr_error());
 *   int result = assay_vr_put(store, "colour", 6, "green", 5);
 *   assay_vr_close(store);
 *
 *   cc program.c $(pkg-config --cflags --libs assay-vr)
 *
 * Results.  Every operation gives one of enum assay_vr_result, or a negative errno:
 *   0 or more    it was executed, once, and will not be lost; the number is the store's answer
 *   -ETIMEDOUT   nobody answered in time.  It is not known whether it was executed, or will be
 *   -ESTALE      the session was evicted, for there are more clients than sessions.  Not known, too
 *   -EACCES      the key in the configuration does not allow it; nothing was sent
 *   -E2BIG       key or value too large; nothing was sent
 *   -EAGAIN      ASSAY_VR_CALLS_MAX operations are under way; nothing was sent
 *   others       the configuration or its key cannot be read, or the system refuses
 * assay_vr_error() says it in words.
 *
 * Sessions.  They are part of the replicated state: an operation that is sent again is executed
 * once, also across a change of leaders, a restart of all replicas, and a reconfiguration.  A
 * client reaches every replica and spare that its configuration names; it needs to be opened again
 * only when the group has moved to addresses that its configuration does not have.
 *
 * Threads.  One thread at a time may use a store.  Different stores are independent.  Memory that
 * cannot be had ends the program.
 */
#ifndef ASSAY_VR_H
#define ASSAY_VR_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ASSAY_VR_KEY_MAX 64u    /* bytes of a key */
#define ASSAY_VR_VALUE_MAX 512u /* bytes of a value */
#define ASSAY_VR_CALLS_MAX 16u  /* operations of one client at the same time */

enum assay_vr_result {
    ASSAY_VR_OK = 0,
    ASSAY_VR_NOT_FOUND = 1, /* there is no such key */
    ASSAY_VR_CONFLICT = 2,  /* cas: the key has another value */
    ASSAY_VR_FULL = 3,      /* the store cannot hold another key */
    ASSAY_VR_INVALID = 4,   /* the service does not support this (keys 0 in its settings) */
    ASSAY_VR_TOO_LARGE = 5  /* more than one entry of the log holds (batch-bytes) */
};

struct assay_vr;

/* Opens a client with a configuration file (man assay-vr, CONFIGURATION).  Nothing is sent yet. */
int assay_vr_open(struct assay_vr **ret_store, const char *config_path);
/* Operations that are under way are forgotten; whether they are executed is not known.  Not from a
 * callback.  NULL is allowed. */
void assay_vr_close(struct assay_vr *store);
/* How long operations that begin from now on are tried: 5000 unless set. */
void assay_vr_set_timeout(struct assay_vr *store, unsigned milliseconds);
/* What went wrong in the last call of this thread that gave a negative number; never NULL. */
const char *assay_vr_error(void);
/* "ok", "not found", ... or the text of an errno. */
const char *assay_vr_result_name(int result);

/* ---- operations that wait for their answer */

/* value has room for *size bytes; *size becomes the value's size.  A value that is larger than the
 * room is cut, which *size shows.  With ASSAY_VR_VALUE_MAX there is always room. */
int assay_vr_get(struct assay_vr *store, const void *key, size_t key_size, void *value,
                 size_t *size);
int assay_vr_put(struct assay_vr *store, const void *key, size_t key_size, const void *value,
                 size_t value_size);
/* Puts the value if the key has the value expected; expect_size 0: if there is no such key.  On
 * ASSAY_VR_CONFLICT found (may be NULL) holds what the key has, as with assay_vr_get. */
int assay_vr_cas(struct assay_vr *store, const void *key, size_t key_size, const void *expect,
                 size_t expect_size, const void *value, size_t value_size, void *found,
                 size_t *found_size);
int assay_vr_delete(struct assay_vr *store, const void *key, size_t key_size);
/* Calls back for each pair in the order of keys, from the key on, as many as one answer holds (a
 * few); *ret_count tells how many, 0: there are no more.  Ask again from behind the last key. */
int assay_vr_scan(struct assay_vr *store, const void *from, size_t from_size,
                  void (*pair)(void *context, const void *key, size_t key_size, const void *value,
                               size_t value_size),
                  void *context, unsigned *ret_count);

/* ---- operations that do not wait */

/* Called once for each operation that was begun, from assay_vr_turn or from any operation that
 * waits. value: what get has found, or cas on ASSAY_VR_CONFLICT; it is gone when the function
 * returns.  It may begin further operations. */
typedef void (*assay_vr_done)(void *context, int result, const void *value, size_t size);

/* 0: it is under way, and done will be called; else a negative errno, and it will not.  Key and
 * value are copied.  Operations that are under way at the same time may be executed in any order.
 */
int assay_vr_begin_get(struct assay_vr *store, const void *key, size_t key_size, assay_vr_done done,
                       void *context);
int assay_vr_begin_put(struct assay_vr *store, const void *key, size_t key_size, const void *value,
                       size_t value_size, assay_vr_done done, void *context);
int assay_vr_begin_cas(struct assay_vr *store, const void *key, size_t key_size, const void *expect,
                       size_t expect_size, const void *value, size_t value_size, assay_vr_done done,
                       void *context);
int assay_vr_begin_delete(struct assay_vr *store, const void *key, size_t key_size,
                          assay_vr_done done, void *context);

/* Takes what has come and sends again what was not answered; waits up to so many milliseconds (0:
 * not at all, negative: as long as it takes) until an operation has ended.  Returns how many have
 * ended. */
int assay_vr_turn(struct assay_vr *store, int milliseconds);
/* For loops of others: call assay_vr_turn(store, 0) when this descriptor can be read, and after so
 * many milliseconds at the latest (negative: there is no need). */
int assay_vr_fd(const struct assay_vr *store);
int assay_vr_wait(const struct assay_vr *store);
/* How many operations are under way. */
unsigned assay_vr_pending(const struct assay_vr *store);

#ifdef __cplusplus
}
#endif

#endif
