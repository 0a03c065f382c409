/* SPDX-License-Identifier: MIT */
/* Every variant, in the order of --list and --prove. */
#include "variants.h"
#include "base/strings.h"
#include "config.h"

const struct variant *const variants[] = {
    /* one message per call */
    &variant_send,
    &variant_send_corked,
    &variant_send8,
    &variant_copy_send,
    &variant_sendmsg,
    /* several messages per call */
    &variant_batch_send,
    &variant_batch_sendmsg,
    /* zero-copy, if it is granted */
    &variant_zerocopy,
    &variant_zerocopy_fields,
#if HAVE_LIBURING
    &variant_uring_send,
    &variant_uring_sendmsg,
    &variant_uring_bundle,
    &variant_uring_zc,
    &variant_uring_zc_fixed,
#endif
    /* receive sides */
    &variant_recv_big,
    &variant_recv,
    &variant_recv_late,
    &variant_trunc,
    &variant_zerocopy_receive,
#if HAVE_LIBURING
    &variant_uring_multishot,
#endif
    /* by reference */
    &variant_zerocopy_udp_sink,
    &variant_udp_sink,
    &variant_vmsplice,
    &variant_sendfile,
    &variant_splice,
    &variant_sockmap,
    &variant_sockmap_receive,
    /* limits */
    &variant_shm_ring,
    &variant_shm_ring_receive,
    &variant_memcpy,
    &variant_memcpy_cold,
    /* many pieces handed over as a list */
    &variant_iovec_write,
    &variant_iovec_writev,
    &variant_iovec_vmsplice,
    &variant_iovec_pwritev2,
#if HAVE_LIBURING
    &variant_iovec_uring,
#endif
    &variant_iovec_process_vm_readv,
    &variant_iovec_vm_receive,
    &variant_broken,
    NULL,
};

const struct variant *variant_find(const char *name)
{
    for (size_t i = 0; variants[i]; i++)
        if (str_eq(variants[i]->name, name))
            return variants[i];
    return NULL;
}
