/* SPDX-License-Identifier: MIT */
/* libcds: Vyukov's ring of sequence numbers, with room that is set when it is made. */
#include <cds/container/vyukov_mpmc_cycle_queue.h>

#include "cxx.h"

struct cds_traits : public cds::container::vyukov_queue::traits {
    typedef cds::opt::v::uninitialized_dynamic_buffer<int> buffer;
};
typedef cds::container::VyukovMPMCCycleQueue<uint64_t, cds_traits> vyukov;

#define DRIVER cds_vyukov
#define DRIVER_PUSH(q, t, items, count, bytes) \
    ((void)(t), (size_t) static_cast<vyukov *>(q)->enqueue(*(items)))
#define DRIVER_POP(q, t, items, count, bytes) \
    ((void)(t), (size_t) static_cast<vyukov *>(q)->dequeue(*(items)))
#include "driver.h"
RIVAL(cds_vyukov, true, 0, make_sized, vyukov, nullptr, nullptr);
