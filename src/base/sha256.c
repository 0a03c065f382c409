/* SPDX-License-Identifier: MIT */
/* SHA-256 as FIPS 180-4 writes it down; section numbers are that document's. */
#include "base/sha256.h"

#include <string.h>

/* 4.2.2: the first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

void sha256_start(struct sha256 *h)
{
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(h->state, start, sizeof(start));
    h->length_bytes = 0;
}

static uint32_t rotate(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

static uint32_t big_sigma_0(uint32_t x)
{
    return rotate(x, 2) ^ rotate(x, 13) ^ rotate(x, 22);
}

static uint32_t big_sigma_1(uint32_t x)
{
    return rotate(x, 6) ^ rotate(x, 11) ^ rotate(x, 25);
}

/* 6.2.2, step 1: the message schedule. */
static void expand(const uint8_t *block, uint32_t w[64])
{
    for (int t = 0; t < 16; t++)
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
               (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
    for (int t = 16; t < 64; t++) {
        uint32_t s0 = rotate(w[t - 15], 7) ^ rotate(w[t - 15], 18) ^ w[t - 15] >> 3;
        uint32_t s1 = rotate(w[t - 2], 17) ^ rotate(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = s1 + w[t - 7] + s0 + w[t - 16];
    }
}

/* 6.2.2, steps 2 to 4. */
static void mix(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[64], v[8];
    expand(block, w);
    memcpy(v, state, sizeof(v));
    for (int t = 0; t < 64; t++) {
        uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        uint32_t t1 = v[7] + big_sigma_1(v[4]) + choice + round_constants[t] + w[t];
        uint32_t t2 = big_sigma_0(v[0]) + majority;
        memmove(&v[1], &v[0], 7 * sizeof(v[0]));
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        state[i] += v[i];
}

void sha256_add(struct sha256 *h, const void *bytes, size_t length)
{
    const uint8_t *p = bytes;
    while (length > 0) {
        size_t at = h->length_bytes % 64;
        size_t take = length < 64 - at ? length : 64 - at;
        memcpy(h->block + at, p, take);
        h->length_bytes += take;
        p += take;
        length -= take;
        if (at + take == 64)
            mix(h->state, h->block);
    }
}

void sha256_add_text(struct sha256 *h, const char *text)
{
    sha256_add(h, text, strlen(text) + 1);
}

void sha256_end(struct sha256 *h, char ret_hex[static 65])
{
    uint64_t length_bits = h->length_bytes * 8;
    sha256_add(h, "\x80", 1);
    while (h->length_bytes % 64 != 56)
        sha256_add(h, "", 1);
    uint8_t length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(length_bits >> (56 - 8 * i));
    sha256_add(h, length, sizeof(length));
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < 64; i++)
        ret_hex[i] = digits[h->state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    ret_hex[64] = '\0';
}
