/* SPDX-License-Identifier: MIT */
/* SHA-256 (FIPS 180-4): names for contents, not for secrets. */
#ifndef ASSAY_BASE_SHA256_H
#define ASSAY_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

struct sha256 {
    uint32_t state[8];
    uint64_t length_bytes;
    uint8_t block[64];
};

void sha256_start(struct sha256 *h);
void sha256_add(struct sha256 *h, const void *bytes, size_t length);
/* A text with its end, so that ("ab", "c") and ("a", "bc") differ. */
void sha256_add_text(struct sha256 *h, const char *text);
/* 64 hexadecimal digits and the end of the text. */
void sha256_end(struct sha256 *h, char ret_hex[static 65]);

#endif
