/* SPDX-License-Identifier: MIT */
/* The variants by family, for the table in variants.c. */
#ifndef ASSAY_MOVE_VARIANTS_H
#define ASSAY_MOVE_VARIANTS_H

#include "variant.h"

/* send.c */
extern const struct variant variant_send, variant_send8, variant_copy_send, variant_sendmsg,
    variant_batch_send, variant_batch_sendmsg;
/* receive.c */
extern const struct variant variant_recv, variant_recv_big, variant_trunc;

#endif
