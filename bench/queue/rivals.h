/* SPDX-License-Identifier: MIT */
/* Queues of others under the same load as ours, with the same waiting; each file has those of one
 * library. */
#ifndef ASSAY_BENCH_QUEUE_RIVALS_H
#define ASSAY_BENCH_QUEUE_RIVALS_H

#include "load.h"

QUEUE_C_BEGIN
extern const struct load_driver rival_slots, rival_ck_ring_spsc, rival_ck_ring_mpmc,
    rival_ck_fifo_spsc, rival_ck_fifo_mpmc, rival_urcu_wfcqueue, rival_rte_ring_sp,
    rival_rte_ring_mp, rival_cds_vyukov, rival_boost_spsc, rival_boost_queue, rival_tbb_queue;
QUEUE_C_END

#endif
