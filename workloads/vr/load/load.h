/* SPDX-License-Identifier: MIT */
/*
 * Clients that put load on a cluster and time its answers, each with its own socket and session,
 * all in one thread.  Closed loop: each sends its next request when the last is answered.  Open
 * loop: by a schedule, and a request's time begins when it was due.
 */
#ifndef ASSAY_VR_LOAD_H
#define ASSAY_VR_LOAD_H

#include "vr/load/hist.h"
#include "vr/net/cluster.h"
#include "vr/net/io.h"

#include <signal.h>
#include <stdio.h>

enum vr_load_kind { VR_LOAD_NULL, VR_LOAD_PUT, VR_LOAD_GET, VR_LOAD_MIXED };

struct vr_load_settings {
    uint64_t clients, requests, warmup, payload_bytes, keys, seed;
    uint64_t time_ns;     /* no further request after it; 0: no limit */
    uint64_t patience_ns; /* until a request is sent again */
    double rate;          /* requests in a second by schedule; 0: closed loop */
    enum vr_load_kind kind;
    const struct vr_io_way *way;
    bool fill;     /* every key is put once before the warm-up */
    FILE *history; /* one line for each operation, or NULL */
    /* Called when the clients have sessions and the warm-up is done, and at the end. */
    void (*begins)(void *context);
    void (*ends)(void *context);
    /* Called now and then while it runs. */
    void (*tick)(void *context, uint64_t elapsed_ns);
    /* The same, from the start on: an error ends it.  NULL for none. */
    int (*check)(void *context, struct error *err);
    void *context;
    const volatile sig_atomic_t *stop;
};

struct vr_load_result {
    struct vr_hist hist;
    uint64_t done, failed; /* answered; answered with other than success */
    uint64_t resends, evictions, unanswered;
    uint64_t elapsed_ns, gap_ns; /* the longest time without an answer */
};

int vr_load_kind_parse(const char *text, enum vr_load_kind *ret_kind, struct error *err);
int vr_load_run(const struct vr_cluster *cluster, const struct vr_load_settings *settings,
                struct vr_load_result *ret_result, struct error *err);

#endif
