/* SPDX-License-Identifier: MIT */
/* Every variant, in the order of --list and --prove. */
#include "variants.h"
#include "base/strings.h"
#include "config.h"

const struct variant *const variants[] = {
    /* one message per call */
    &variant_send,
    &variant_send8,
    &variant_copy_send,
    &variant_sendmsg,
    /* several messages per call */
    &variant_batch_send,
    &variant_batch_sendmsg,
    /* receive sides */
    &variant_recv_big,
    &variant_recv,
    &variant_trunc,
    /* by reference */
    &variant_vmsplice,
    &variant_sendfile,
    &variant_splice,
    &variant_zerocopy_receive,
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
    NULL,
};

const struct variant *variant_find(const char *name)
{
    for (size_t i = 0; variants[i]; i++)
        if (str_eq(variants[i]->name, name))
            return variants[i];
    return NULL;
}
