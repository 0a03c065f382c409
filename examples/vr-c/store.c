/* SPDX-License-Identifier: MIT */
/*
 * The replicated store from C: a counter that several programs may increment at once, and many
 * operations under way at the same time.
 *
 *   cc store.c -o store $(pkg-config --cflags --libs assay-vr)
 *   ./store cluster.conf
 */
#include <assay_vr.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int result, const char *what)
{
    if (result == ASSAY_VR_OK)
        return;
    fprintf(stderr, "store: %s: %s\n", what,
            result < 0 ? assay_vr_error() : assay_vr_result_name(result));
    exit(1);
}

/* Adds one to a number that others may change meanwhile: compare and swap, again until it holds. */
static unsigned long increment(struct assay_vr *store, const char *key)
{
    char old[ASSAY_VR_VALUE_MAX + 1], new[32];
    for (;;) {
        size_t size = ASSAY_VR_VALUE_MAX;
        int result = assay_vr_get(store, key, strlen(key), old, &size);
        if (result == ASSAY_VR_NOT_FOUND)
            size = 0; /* as the value expected: there must be no such key */
        else
            check(result, "get");
        old[size] = '\0';
        unsigned long number = size ? strtoul(old, NULL, 10) + 1 : 1;
        int length = snprintf(new, sizeof(new), "%lu", number);
        result = assay_vr_cas(store, key, strlen(key), old, size, new, (size_t)length, NULL, NULL);
        if (result == ASSAY_VR_OK)
            return number;
        if (result != ASSAY_VR_CONFLICT && result != ASSAY_VR_NOT_FOUND)
            check(result, "cas");
    }
}

struct progress {
    unsigned ended, failed;
};

static void on_done(void *context, int result, const void *value, size_t size)
{
    struct progress *p = context;
    (void)value, (void)size;
    p->ended++;
    p->failed += result != ASSAY_VR_OK;
}

/* As many at once as the library allows. */
static struct progress put_many(struct assay_vr *store, unsigned count)
{
    struct progress p = {0, 0};
    for (unsigned i = 0; i < count; i++) {
        char key[32];
        int length = snprintf(key, sizeof(key), "item-%05u", i), result;
        while ((result = assay_vr_begin_put(store, key, (size_t)length, "x", 1, on_done, &p)) ==
               -EAGAIN)
            assay_vr_turn(store, -1);
        check(result, "begin");
    }
    while (assay_vr_pending(store))
        assay_vr_turn(store, -1);
    return p;
}

int main(int argc, char **argv)
{
    struct assay_vr *store;
    if (argc != 2) {
        fprintf(stderr, "usage: store CONFIGURATION\n");
        return 2;
    }
    check(assay_vr_open(&store, argv[1]), "open");
    assay_vr_set_timeout(store, 60000);
    printf("counter %lu\n", increment(store, "counter"));
    struct progress p = put_many(store, 200);
    printf("%u ended, %u failed\n", p.ended, p.failed);
    assay_vr_close(store);
    return p.failed != 0;
}
