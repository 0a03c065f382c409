/* SPDX-License-Identifier: MIT */
/* The variants by family, for the table in variants.c. */
#ifndef ASSAY_MOVE_VARIANTS_H
#define ASSAY_MOVE_VARIANTS_H

#include "variant.h"

/* send.c */
extern const struct variant variant_send, variant_send_corked, variant_send8, variant_copy_send,
    variant_sendmsg, variant_batch_send, variant_batch_sendmsg;
/* zerocopy.c */
extern const struct variant variant_zerocopy, variant_zerocopy_fields;
/* uring_send.c, uring_zc.c, uring_receive.c: only with liburing */
extern const struct variant variant_uring_send, variant_uring_sendmsg, variant_uring_bundle,
    variant_uring_zc, variant_uring_zc_fixed, variant_uring_multishot;
/* broken.c */
extern const struct variant variant_broken;
/* receive.c */
extern const struct variant variant_recv, variant_recv_big, variant_recv_late, variant_trunc;
/* reference.c */
extern const struct variant variant_vmsplice, variant_sendfile, variant_splice;
/* limits.c */
extern const struct variant variant_shm_ring, variant_shm_ring_receive, variant_memcpy,
    variant_memcpy_cold;
/* iovec.c */
extern const struct variant variant_iovec_write, variant_iovec_writev, variant_iovec_vmsplice,
    variant_iovec_pwritev2, variant_iovec_process_vm_readv, variant_iovec_vm_receive;
/* iovec_uring.c */
extern const struct variant variant_iovec_uring;
/* sockmap.c */
extern const struct variant variant_sockmap, variant_sockmap_receive;
/* zerocopy_receive.c */
extern const struct variant variant_zerocopy_receive;
/* udp_sink.c */
extern const struct variant variant_zerocopy_udp_sink, variant_udp_sink;

#endif
