/* SPDX-License-Identifier: MIT */
/* The options that 'client' and 'bench' share. */
#ifndef ASSAY_VR_LOAD_OPTIONS_H
#define ASSAY_VR_LOAD_OPTIONS_H

#include "base/options.h"
#include "vr/load/load.h"

struct vr_load_options {
    uint64_t clients, requests, warmup, payload_bytes, keys, seed, time_ns, patience_ns;
    double rate;
    const char *op, *history, *history_format, *client_transport;
    bool json, fill;
};

#define VR_LOAD_DEFAULTS                                                          \
    {                                                                             \
        .clients = 1, .requests = 10000, .warmup = 2000, .keys = 1000, .seed = 1, \
        .patience_ns = 100 * NS_PER_MS, .op = "null", .client_transport = NULL    \
    }

#define VR_LOAD_OPTIONS(type, field)                                                             \
    {'n',        "requests",                                                                     \
     OPTION_U64, offsetof(type, field.requests),                                                 \
     "N",        "requests of all clients together (10,000)",                                    \
     NULL},                                                                                      \
        {'C',        "clients",                                                                  \
         OPTION_U64, offsetof(type, field.clients),                                              \
         "N",        "clients, each with a socket and a session (1)",                            \
         NULL},                                                                                  \
        {0,                                                                                      \
         "op",                                                                                   \
         OPTION_STRING,                                                                          \
         offsetof(type, field.op),                                                               \
         "OP",                                                                                   \
         "what they request: null (default), put, get, mixed",                                   \
         "null put get mixed"},                                                                  \
        {0,                                                                                      \
         "payload",                                                                              \
         OPTION_BYTES,                                                                           \
         offsetof(type, field.payload_bytes),                                                    \
         "B",                                                                                    \
         "bytes in a request, or in a value (0)",                                                \
         NULL},                                                                                  \
        {0, "keys", OPTION_U64, offsetof(type, field.keys), "N", "number of keys (1000)", NULL}, \
        {0,           "fill",                                                                    \
         OPTION_FLAG, offsetof(type, field.fill),                                                \
         NULL,        "put every key once before the warm-up",                                   \
         NULL},                                                                                  \
        {0,                                                                                      \
         "rate",                                                                                 \
         OPTION_DOUBLE,                                                                          \
         offsetof(type, field.rate),                                                             \
         "R",                                                                                    \
         "requests per second on a schedule, answered or not (default: closed loop)",            \
         NULL},                                                                                  \
        {0,                                                                                      \
         "time",                                                                                 \
         OPTION_SECONDS,                                                                         \
         offsetof(type, field.time_ns),                                                          \
         "T",                                                                                    \
         "send no more requests after this time",                                                \
         NULL},                                                                                  \
        {0,          "warmup",                                                                   \
         OPTION_U64, offsetof(type, field.warmup),                                               \
         "N",        "warm-up requests before the measurement (2000)",                           \
         NULL},                                                                                  \
        {0,         "patience",                                                                  \
         OPTION_MS, offsetof(type, field.patience_ns),                                           \
         "T",       "resend a request, to all replicas, after this time (100 ms)",               \
         NULL},                                                                                  \
        {0,          "seed",                                                                     \
         OPTION_U64, offsetof(type, field.seed),                                                 \
         "N",        "seed for the choice of operations and keys (1)",                           \
         NULL},                                                                                  \
        {0,                                                                                      \
         "history",                                                                              \
         OPTION_STRING,                                                                          \
         offsetof(type, field.history),                                                          \
         "FILE",                                                                                 \
         "write what was requested and answered when, to check linearizability",                 \
         "file"},                                                                                \
        {0,                                                                                      \
         "history-format",                                                                       \
         OPTION_STRING,                                                                          \
         offsetof(type, field.history_format),                                                   \
         "FORM",                                                                                 \
         "text (default), edn (Jepsen, Elle) or porcupine (JSON)",                               \
         "text edn porcupine"},                                                                  \
        {0,                                                                                      \
         "client-transport",                                                                     \
         OPTION_STRING,                                                                          \
         offsetof(type, field.client_transport),                                                 \
         "T",                                                                                    \
         "transport of the clients (uring where allowed, else epoll)",                           \
         "epoll uring spin"},                                                                    \
    {                                                                                            \
        0, "json", OPTION_FLAG, offsetof(type, field.json), NULL, "print JSON", NULL             \
    }

/* Checks, and makes the settings; opens the history, which the caller closes. */
int vr_load_options_check(const struct vr_load_options *o, struct vr_load_settings *ret_settings,
                          struct error *err);
/* Closes the history, says what went wrong, and returns the exit code: 128 and the signal that
 * ended it, where one did. */
int vr_load_end(const struct verb *verb, const struct vr_load_options *o,
                struct vr_load_settings *s, int result, int signal, struct error *err);

#endif
