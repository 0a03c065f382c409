/* SPDX-License-Identifier: MIT */
/* What the drivers for rivals in C++ share: a queue made by new of its class. */
#ifndef ASSAY_BENCH_QUEUE_CXX_H
#define ASSAY_BENCH_QUEUE_CXX_H

#include "rivals.h"

template <class Q> static int make_sized(struct load *load, void **ret_queue, struct error *)
{
    *ret_queue = new Q(queue_power_of_two(load->settings.capacity));
    return 0;
}

template <class Q> static int make_plain(struct load *, void **ret_queue, struct error *)
{
    *ret_queue = new Q();
    return 0;
}

template <class Q> static void destroy(struct load *, void *queue)
{
    delete static_cast<Q *>(queue);
}

/* The table line of a rival whose loops driver.h has made. */
#define RIVAL(NAME, BOUNDED, MOST, MAKE, CLASS, JOIN, LEAVE)                         \
    extern "C" const struct load_driver rival_##NAME = {                             \
        #NAME,          BOUNDED, MOST,  MOST,           nullptr,        MAKE<CLASS>, \
        destroy<CLASS>, JOIN,    LEAVE, NAME##_produce, NAME##_consume, NAME##_ping}

#endif
