/* SPDX-License-Identifier: MIT */
/* assay_vr.h: the client for programs of others.  All of the work is done in client.c. */
#include "assay_vr.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/strings.h"
#include "vr/client/client.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static_assert(ASSAY_VR_KEY_MAX == VR_KEY_BYTES_MAX && ASSAY_VR_VALUE_MAX == VR_VALUE_BYTES_MAX &&
                  ASSAY_VR_CALLS_MAX == VR_CLIENT_CALLS_MAX,
              "what the header promises");
static_assert(ASSAY_VR_OK == (int)VR_OK && ASSAY_VR_NOT_FOUND == (int)VR_NOT_FOUND &&
                  ASSAY_VR_CONFLICT == (int)VR_CONFLICT && ASSAY_VR_FULL == (int)VR_FULL &&
                  ASSAY_VR_INVALID == (int)VR_INVALID && ASSAY_VR_TOO_LARGE == (int)VR_TOO_LARGE,
              "results are passed on");

#define EXPORT __attribute__((visibility("default")))

struct waiting { /* the callback of one operation that is under way */
    struct assay_vr *store;
    assay_vr_done done;
    void *context;
};

struct assay_vr {
    struct vr_client *client;
    struct waiting waiting[VR_CLIENT_CALLS_MAX];
};

static _Thread_local struct error last;

static int result_of(int code, enum vr_result outcome)
{
    return code ? code : (int)outcome;
}

EXPORT const char *assay_vr_error(void)
{
    return last.code ? last.message : "";
}

EXPORT const char *assay_vr_result_name(int result)
{
    static const char *const names[] = {"ok",   "not found", "conflict",
                                        "full", "invalid",   "too large"};
    if (result < 0)
        return strerror(-result);
    return (size_t)result < ARRAY_COUNT(names) ? names[result] : "unknown";
}

EXPORT int assay_vr_open(struct assay_vr **ret_store, const char *config_path)
{
    struct vr_client *client;
    *ret_store = NULL;
    last = (struct error){0};
    int result = vr_client_open(&client, config_path, &last);
    if (result)
        return result;
    *ret_store = memory_zalloc(1, sizeof(**ret_store));
    (*ret_store)->client = client;
    return 0;
}

EXPORT void assay_vr_close(struct assay_vr *store)
{
    if (store)
        vr_client_close(store->client);
    free(store);
}

EXPORT void assay_vr_set_timeout(struct assay_vr *store, unsigned milliseconds)
{
    vr_client_set_timeout(store->client, milliseconds * NS_PER_MS);
}

/* As much of the value as there is room for. */
static void hand_over(const void *found, uint32_t found_size, void *value, size_t *size)
{
    if (!size)
        return;
    if (value && found_size)
        memcpy(value, found, found_size < *size ? found_size : *size);
    *size = found_size;
}

EXPORT int assay_vr_get(struct assay_vr *store, const void *key, size_t key_size, void *value,
                        size_t *size)
{
    unsigned char found[VR_RESULT_BYTES_MAX];
    uint32_t found_size = 0;
    enum vr_result outcome = VR_INVALID;
    int result = vr_client_get(store->client, key, key_size, &outcome, found, &found_size, &last);
    if (!result)
        hand_over(found, found_size, value, size);
    return result_of(result, outcome);
}

EXPORT int assay_vr_put(struct assay_vr *store, const void *key, size_t key_size, const void *value,
                        size_t value_size)
{
    enum vr_result outcome = VR_INVALID;
    int result = vr_client_put(store->client, key, key_size, value, value_size, &outcome, &last);
    return result_of(result, outcome);
}

EXPORT int assay_vr_cas(struct assay_vr *store, const void *key, size_t key_size,
                        const void *expect, size_t expect_size, const void *value,
                        size_t value_size, void *found, size_t *found_size)
{
    unsigned char there[VR_RESULT_BYTES_MAX];
    uint32_t there_size = 0;
    enum vr_result outcome = VR_INVALID;
    int result = vr_client_cas(store->client, key, key_size, expect, expect_size, value, value_size,
                               &outcome, there, &there_size, &last);
    if (!result)
        hand_over(there, there_size, found, found_size);
    return result_of(result, outcome);
}

EXPORT int assay_vr_delete(struct assay_vr *store, const void *key, size_t key_size)
{
    enum vr_result outcome = VR_INVALID;
    int result = vr_client_delete(store->client, key, key_size, &outcome, &last);
    return result_of(result, outcome);
}

EXPORT int assay_vr_scan(struct assay_vr *store, const void *from, size_t from_size,
                         void (*pair)(void *context, const void *key, size_t key_size,
                                      const void *value, size_t value_size),
                         void *context, unsigned *ret_count)
{
    uint32_t count = 0;
    int result = vr_client_scan(store->client, from, from_size, pair, context, &count, &last);
    if (ret_count)
        *ret_count = count;
    return result;
}

/* ---- operations that do not wait */

static void over(void *context, int result, enum vr_result outcome, const void *bytes,
                 uint32_t size, const struct error *err)
{
    struct waiting w = *(struct waiting *)context;
    ((struct waiting *)context)->done = NULL;
    if (result)
        last = *err;
    w.done(w.context, result_of(result, outcome), bytes, size);
}

static int begin(struct assay_vr *store, uint32_t opcode, const struct iovec *parts,
                 assay_vr_done done, void *context)
{
    struct waiting *w = store->waiting;
    while (w < store->waiting + VR_CLIENT_CALLS_MAX - 1 && w->done)
        w++;
    bool taken = w->done != NULL;
    struct waiting now = {store, done, context};
    if (!taken)
        *w = now;
    int result = vr_client_begin_kv(store->client, opcode, parts, over, w, &last);
    if (result && !taken)
        w->done = NULL;
    return result;
}

static struct iovec part(const void *bytes, size_t size)
{
    return (struct iovec){(void *)(uintptr_t)bytes, size};
}

EXPORT int assay_vr_begin_get(struct assay_vr *store, const void *key, size_t key_size,
                              assay_vr_done done, void *context)
{
    struct iovec parts[3] = {part(key, key_size)};
    return begin(store, VR_OP_GET, parts, done, context);
}

EXPORT int assay_vr_begin_put(struct assay_vr *store, const void *key, size_t key_size,
                              const void *value, size_t value_size, assay_vr_done done,
                              void *context)
{
    struct iovec parts[3] = {part(key, key_size), {0}, part(value, value_size)};
    return begin(store, VR_OP_PUT, parts, done, context);
}

EXPORT int assay_vr_begin_cas(struct assay_vr *store, const void *key, size_t key_size,
                              const void *expect, size_t expect_size, const void *value,
                              size_t value_size, assay_vr_done done, void *context)
{
    struct iovec parts[3] = {part(key, key_size), part(expect, expect_size),
                             part(value, value_size)};
    return begin(store, VR_OP_CAS, parts, done, context);
}

EXPORT int assay_vr_begin_delete(struct assay_vr *store, const void *key, size_t key_size,
                                 assay_vr_done done, void *context)
{
    struct iovec parts[3] = {part(key, key_size)};
    return begin(store, VR_OP_DELETE, parts, done, context);
}

EXPORT int assay_vr_turn(struct assay_vr *store, int milliseconds)
{
    uint64_t end_ns =
        milliseconds < 0 ? UINT64_MAX : clock_now_ns() + (uint64_t)milliseconds * NS_PER_MS;
    return (int)vr_client_turn(store->client, end_ns);
}

EXPORT int assay_vr_fd(const struct assay_vr *store)
{
    return vr_client_fd(store->client);
}

EXPORT int assay_vr_wait(const struct assay_vr *store)
{
    uint64_t due_ns = vr_client_due_ns(store->client), now_ns = clock_now_ns();
    if (due_ns == UINT64_MAX)
        return -1;
    return due_ns <= now_ns ? 0 : (int)((due_ns - now_ns) / NS_PER_MS) + 1;
}

EXPORT unsigned assay_vr_pending(const struct assay_vr *store)
{
    return vr_client_under_way(store->client);
}
