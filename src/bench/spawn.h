/* SPDX-License-Identifier: MIT */
/* The process of a worker: its words, its environment and its descriptors. */
#ifndef ASSAY_BENCH_SPAWN_H
#define ASSAY_BENCH_SPAWN_H

#include "bench/worker.h"

/* Starts the worker's target; sets its process ID and the descriptors to and from it. */
int bench_spawn(struct bench_worker *w, const struct bench_start *how, struct error *err);

#endif
