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
    NULL,
};

const struct variant *variant_find(const char *name)
{
    for (size_t i = 0; variants[i]; i++)
        if (str_eq(variants[i]->name, name))
            return variants[i];
    return NULL;
}
