/* SPDX-License-Identifier: MIT */
/* queue-rivals: assay-queue's command line over other people's queues. */
#include "rivals.h"

static const struct load_driver *const drivers[] = {&rival_slots,
#ifdef HAVE_CK
                                                    &rival_ck_ring_spsc,
                                                    &rival_ck_ring_mpmc,
                                                    &rival_ck_fifo_spsc,
                                                    &rival_ck_fifo_mpmc,
#endif
#ifdef HAVE_URCU
                                                    &rival_urcu_wfcqueue,
#endif
#ifdef HAVE_DPDK
                                                    &rival_rte_ring_sp,
                                                    &rival_rte_ring_mp,
#endif
#ifdef HAVE_CDS
                                                    &rival_cds_vyukov,
#endif
#ifdef HAVE_BOOST
                                                    &rival_boost_spsc,
                                                    &rival_boost_queue,
#endif
#ifdef HAVE_TBB
                                                    &rival_tbb_queue,
#endif
                                                    NULL};

int main(int argc, char **argv)
{
    return load_main(argc, argv, "queue-rivals", drivers);
}
