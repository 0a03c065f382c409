/* SPDX-License-Identifier: MIT */
/* What a run is asked to do: the command line's values, checked, with names resolved. */
#ifndef ASSAY_MOVE_SETTINGS_H
#define ASSAY_MOVE_SETTINGS_H

#include "base/error.h"
#include "variant.h"

#include <stdbool.h>
#include <stdint.h>

enum { THREADS_MAX = 256, FIELDS_MAX = 64, BATCH_MAX = 1024, PIECES_MAX = 1 << 20 };
#define SIZE_MAX_BYTES (64ULL << 20)

struct settings {
    /* as given */
    const char *variant_name, *receive_name, *transport_name;
    const char *cc, *pin, *listen_address, *connect_address;
    uint64_t size, threads, fields, batch, pieces, receive_bytes, buffer_bytes, seed;
    uint64_t seconds_ns, warmup_ns;
    const char *prove; /* NULL, or the ways wanted ("" for all) */
    const char *ping;  /* NULL, or how (ping.h) */
    uint64_t rate;     /* round trips a second; 0: each when the last is back */
    bool verify, json, list, once, no_trace;
    const char *completion; /* the shell that wants a script */
    /* resolved by settings_check */
    const struct variant *send, *receive; /* receive is NULL when send is alone */
    enum transport transport;
    char *split_name;              /* where variant_name points when it was "SEND/RECEIVE" */
    bool cc_fair;                  /* --cc fair: cc is what that means here */
    int *send_cpus, *receive_cpus; /* -1 terminated; NULL: not pinned */
};

void settings_defaults(struct settings *s);
/* Finds the variants and refuses what does not go together, in words that say what would. */
int settings_check(struct settings *s, struct error *err);
/* The same for --ping, which has no variants. */
int settings_check_ping(struct settings *s, struct error *err);
void settings_done(struct settings *s);

const char *transport_text(enum transport t);
enum transport transport_named(const char *name); /* 0 when there is none */

#endif
