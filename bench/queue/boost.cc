/* SPDX-License-Identifier: MIT */
/* Boost.Lockfree: its ring for one and one, singly and in batches, and its linked queue. */
#include <boost/lockfree/queue.hpp>
#include <boost/lockfree/spsc_queue.hpp>

#include "cxx.h"

typedef boost::lockfree::spsc_queue<uint64_t> ring;
typedef boost::lockfree::queue<uint64_t> linked;

/* Nodes for a backlog are there before the clock starts, as its documentation advises. */
static int make_linked(struct load *, void **ret_queue, struct error *)
{
    *ret_queue = new linked(65536);
    return 0;
}
template <class Q> static constexpr auto make_nodes = make_linked;

#define DRIVER boost_spsc
#define DRIVER_PUSH(q, t, items, count, bytes)                              \
    ((void)(t), (count) == 1 ? (size_t) static_cast<ring *>(q)->push(*(items)) \
                             : static_cast<ring *>(q)->push(items, count))
#define DRIVER_POP(q, t, items, count, bytes)                              \
    ((void)(t), (count) == 1 ? (size_t) static_cast<ring *>(q)->pop(*(items)) \
                             : static_cast<ring *>(q)->pop(items, count))
#include "driver.h"
RIVAL(boost_spsc, true, 1, make_sized, ring, nullptr, nullptr);

#define DRIVER boost_queue
#define DRIVER_PUSH(q, t, items, count, bytes) \
    ((void)(t), (size_t) static_cast<linked *>(q)->push(*(items)))
#define DRIVER_POP(q, t, items, count, bytes) \
    ((void)(t), (size_t) static_cast<linked *>(q)->pop(*(items)))
#include "driver.h"
RIVAL(boost_queue, false, 0, make_nodes, linked, nullptr, nullptr);
