/* SPDX-License-Identifier: MIT */
/* A static build has no loader, and nothing to interpose with. */
#include "bench/passes.h"

const unsigned char bench_interposer[] = {0};
const size_t bench_interposer_size = 0;
