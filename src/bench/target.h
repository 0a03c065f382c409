/* SPDX-License-Identifier: MIT */
/* A file with benchmarks: an executable whose main is assay.h's, or a shared object. */
#ifndef ASSAY_BENCH_TARGET_H
#define ASSAY_BENCH_TARGET_H

#include "base/error.h"

enum bench_kind {
    BENCH_EXECUTABLE, /* also a script */
    BENCH_SHARED,     /* loaded by a runner: assay itself, started under another name */
};

struct bench_target {
    char *path; /* that can be executed or loaded as it stands: with a slash */
    enum bench_kind kind;
};

/* Looks at the file: whether it can hold benchmarks, and what it is.  -ENOTSUP for a program that
 * can be run, but does not include assay.h. */
int bench_target_open(struct bench_target *t, const char *path, struct error *err);
void bench_target_done(struct bench_target *t);

#endif
