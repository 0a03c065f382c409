/* SPDX-License-Identifier: MIT */
/* oneTBB: its unbounded queue. */
#include <tbb/concurrent_queue.h>

#include "cxx.h"

typedef tbb::concurrent_queue<uint64_t> tbb_t;

#define DRIVER tbb_queue
#define DRIVER_PUSH(q, t, items, count, bytes) \
    ((void)(t), static_cast<tbb_t *>(q)->push(*(items)), (size_t)1)
#define DRIVER_POP(q, t, items, count, bytes) \
    ((void)(t), (size_t) static_cast<tbb_t *>(q)->try_pop(*(items)))
#include "driver.h"
RIVAL(tbb_queue, false, 0, make_plain, tbb_t, nullptr, nullptr);
