/* SPDX-License-Identifier: MIT */
/*
 * queue-headers: the load over queues that are headers only and that Debian does not have.
 * bench/queue/run compiles it with those whose folders are given (ATOMIC_QUEUE, RIGTORP, MOODYCAMEL).
 */
#ifdef HAVE_ATOMIC_QUEUE
#include <atomic_queue/atomic_queue.h>
#endif
#ifdef HAVE_RIGTORP
#include <rigtorp/MPMCQueue.h>
#include <rigtorp/SPSCQueue.h>
#endif
#ifdef HAVE_MOODYCAMEL
#include <concurrentqueue.h>
#endif

#include "cxx.h"

#ifdef HAVE_ATOMIC_QUEUE
/* Its items may not be 0, as the load's first is: each is one more. */
typedef atomic_queue::AtomicQueueB<uint64_t, std::allocator<uint64_t>, 0, true, false, false> aq_any;
typedef atomic_queue::AtomicQueueB<uint64_t, std::allocator<uint64_t>, 0, true, false, true> aq_one;
template <class Q> static size_t aq_try_push(void *q, const uint64_t *item)
{
    return static_cast<Q *>(q)->try_push(*item + 1);
}
template <class Q> static size_t aq_try_pop(void *q, uint64_t *item)
{
    bool got = static_cast<Q *>(q)->try_pop(*item);
    *item -= got;
    return got;
}

#define DRIVER atomic_queue
#define DRIVER_PUSH(q, t, items, count, bytes) ((void)(t), aq_try_push<aq_any>(q, items))
#define DRIVER_POP(q, t, items, count, bytes) ((void)(t), aq_try_pop<aq_any>(q, items))
#include "driver.h"
RIVAL(atomic_queue, true, 0, make_sized, aq_any, nullptr, nullptr);

#define DRIVER atomic_queue_spsc
#define DRIVER_PUSH(q, t, items, count, bytes) ((void)(t), aq_try_push<aq_one>(q, items))
#define DRIVER_POP(q, t, items, count, bytes) ((void)(t), aq_try_pop<aq_one>(q, items))
#include "driver.h"
RIVAL(atomic_queue_spsc, true, 1, make_sized, aq_one, nullptr, nullptr);

/* Its push and pop, which wait inside by themselves: fastest where one waits for one. */
#define DRIVER atomic_queue_waits
#define DRIVER_PUSH(q, t, items, count, bytes) \
    ((void)(t), static_cast<aq_one *>(q)->push(*(items) + 1), (size_t)1)
#define DRIVER_POP(q, t, items, count, bytes) \
    ((void)(t), *(items) = static_cast<aq_one *>(q)->pop() - 1, (size_t)1)
#include "driver.h"
RIVAL(atomic_queue_waits, true, 1, make_sized, aq_one, nullptr, nullptr);
#endif

#ifdef HAVE_RIGTORP
typedef rigtorp::SPSCQueue<uint64_t> rig_one;
typedef rigtorp::MPMCQueue<uint64_t> rig_any;

static size_t rig_one_pop(void *queue, uint64_t *item)
{
    rig_one *q = static_cast<rig_one *>(queue);
    uint64_t *front = q->front();
    if (!front)
        return 0;
    *item = *front;
    q->pop();
    return 1;
}

#define DRIVER rigtorp_spsc
#define DRIVER_PUSH(q, t, items, count, bytes) \
    ((void)(t), (size_t) static_cast<rig_one *>(q)->try_push(*(items)))
#define DRIVER_POP(q, t, items, count, bytes) ((void)(t), rig_one_pop(q, items))
#include "driver.h"
RIVAL(rigtorp_spsc, true, 1, make_sized, rig_one, nullptr, nullptr);

#define DRIVER rigtorp_mpmc
#define DRIVER_PUSH(q, t, items, count, bytes) \
    ((void)(t), (size_t) static_cast<rig_any *>(q)->try_push(*(items)))
#define DRIVER_POP(q, t, items, count, bytes) \
    ((void)(t), (size_t) static_cast<rig_any *>(q)->try_pop(*(items)))
#include "driver.h"
RIVAL(rigtorp_mpmc, true, 0, make_sized, rig_any, nullptr, nullptr);
#endif

#ifdef HAVE_MOODYCAMEL
typedef moodycamel::ConcurrentQueue<uint64_t> moody;
struct moody_thread {
    moody_thread(moody &q) : push(q), pop(q) {}
    moodycamel::ProducerToken push;
    moodycamel::ConsumerToken pop;
};
static void *moody_join(void *queue)
{
    return new moody_thread(*static_cast<moody *>(queue));
}
static void moody_leave(void *, void *thread)
{
    delete static_cast<moody_thread *>(thread);
}
#define MOODY(t) static_cast<moody_thread *>(t)

#define DRIVER moodycamel
#define DRIVER_PUSH(q, t, items, count, bytes)                                                   \
    ((count) == 1 ? (size_t) static_cast<moody *>(q)->enqueue(MOODY(t)->push, *(items))          \
     : static_cast<moody *>(q)->enqueue_bulk(MOODY(t)->push, items, count) ? (size_t)(count) : 0)
#define DRIVER_POP(q, t, items, count, bytes)                                                  \
    ((count) == 1 ? (size_t) static_cast<moody *>(q)->try_dequeue(MOODY(t)->pop, *(items))     \
                  : static_cast<moody *>(q)->try_dequeue_bulk(MOODY(t)->pop, items, count))
#include "driver.h"
RIVAL(moodycamel, false, 0, make_plain, moody, moody_join, moody_leave);
#endif

static const struct load_driver *const drivers[] = {
#ifdef HAVE_ATOMIC_QUEUE
    &rival_atomic_queue, &rival_atomic_queue_spsc, &rival_atomic_queue_waits,
#endif
#ifdef HAVE_RIGTORP
    &rival_rigtorp_spsc, &rival_rigtorp_mpmc,
#endif
#ifdef HAVE_MOODYCAMEL
    &rival_moodycamel,
#endif
    nullptr};

int main(int argc, char **argv)
{
    return load_main(argc, argv, "queue-headers", drivers);
}
