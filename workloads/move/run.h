/* SPDX-License-Identifier: MIT */
/* A run seen from its parent: starts the sides as processes, outlives them, and lets none live on.
 */
#ifndef ASSAY_MOVE_RUN_H
#define ASSAY_MOVE_RUN_H

#include "side.h"

struct run_result {
    struct side_result send, receive;
};

int run_here(const struct settings *s, struct run_result *ret, struct error *err);
int run_connect(const struct settings *s, struct run_result *ret, struct error *err);
/* Serves one run after another (one with --once) until a signal. */
int run_listen(const struct settings *s, struct error *err);

#endif
