/* SPDX-License-Identifier: MIT */
#include "vr/net/crypt.h"
#include "base/library.h"
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#define HEAD_BYTES 8u
#define NONCE_BYTES 24u
#define TAG_BYTES 16u
static_assert(HEAD_BYTES + NONCE_BYTES + TAG_BYTES == VR_CIPHER_BYTES, "what it adds");

/* Of libsodium, whose header need not be there: its names and types have been the same
 * since 1.0.12. */
int sodium_init(void);
int crypto_generichash(unsigned char *out, size_t out_size, const unsigned char *in,
                       unsigned long long in_size, const unsigned char *key, size_t key_size);
int crypto_aead_xchacha20poly1305_ietf_encrypt(
    unsigned char *out, unsigned long long *out_size, const unsigned char *in,
    unsigned long long in_size, const unsigned char *more, unsigned long long more_size,
    const unsigned char *unused, const unsigned char *nonce, const unsigned char *key);
int crypto_aead_xchacha20poly1305_ietf_decrypt(
    unsigned char *out, unsigned long long *out_size, unsigned char *unused,
    const unsigned char *in, unsigned long long in_size, const unsigned char *more,
    unsigned long long more_size, const unsigned char *nonce, const unsigned char *key);

#define SODIUM_FUNCTIONS(X)                       \
    X(sodium_init)                                \
    X(crypto_generichash)                         \
    X(crypto_aead_xchacha20poly1305_ietf_encrypt) \
    X(crypto_aead_xchacha20poly1305_ietf_decrypt)
LIBRARY_TABLE(sodium, SODIUM_FUNCTIONS, "libsodium.so.23", "libsodium23", "'encrypt yes'");

static size_t encrypt(const struct vr_cipher *cipher, unsigned set, unsigned slot,
                      const void *bytes, size_t size, unsigned char *out)
{
    const struct vr_crypt *c = (const struct vr_crypt *)cipher;
    unsigned char *nonce = out + HEAD_BYTES;
    unsigned long long sealed = 0;
    memset(out, 0, HEAD_BYTES);
    out[0] = (unsigned char)(slot + 1);
    if (getrandom(nonce, NONCE_BYTES, 0) != NONCE_BYTES)
        return 0;
    sodium.crypto_aead_xchacha20poly1305_ietf_encrypt(nonce + NONCE_BYTES, &sealed, bytes, size,
                                                      out, HEAD_BYTES, NULL, nonce,
                                                      c->keys[set][slot]);
    return HEAD_BYTES + NONCE_BYTES + (size_t)sealed;
}

static size_t decrypt(const struct vr_cipher *cipher, const void *bytes, size_t size,
                      unsigned char *out)
{
    const struct vr_crypt *c = (const struct vr_crypt *)cipher;
    const unsigned char *at = bytes;
    unsigned long long opened = 0;
    if (size <= VR_CIPHER_BYTES || at[0] == 0 || at[0] > VR_ROLES + 1)
        return 0;
    for (unsigned set = 0; set < c->sets; set++)
        if (sodium.crypto_aead_xchacha20poly1305_ietf_decrypt(
                out, &opened, NULL, at + HEAD_BYTES + NONCE_BYTES, size - HEAD_BYTES - NONCE_BYTES,
                at, HEAD_BYTES, at + HEAD_BYTES, c->keys[set][at[0] - 1]) == 0)
            return (size_t)opened;
    return 0;
}

static void derive(unsigned char *out, uint32_t cluster, const struct vr_key *key)
{
    struct {
        char label[16];
        uint64_t words[2], cluster;
    } from = {"assay-vr encrypt", {key->word[0], key->word[1]}, cluster};
    sodium.crypto_generichash(out, 32, (const unsigned char *)&from, sizeof(from), NULL, 0);
}

int vr_crypt_init(struct vr_crypt *c, uint32_t cluster, const struct vr_keys *keys,
                  const struct vr_keys *accept, struct error *err)
{
    const struct vr_keys *sets[VR_KEY_SETS] = {keys, accept};
    int result = library_load(&sodium_library, err);
    if (result)
        return result;
    if (sodium.sodium_init() < 0)
        return error_set(err, -EIO, "libsodium cannot be initialised");
    *c = (struct vr_crypt){.cipher = {encrypt, decrypt}, .cluster = cluster};
    for (; c->sets < VR_KEY_SETS && sets[c->sets]; c->sets++) {
        for (unsigned role = 0; role < VR_ROLES; role++)
            derive(c->keys[c->sets][role], cluster, &sets[c->sets]->clients[role]);
        derive(c->keys[c->sets][VR_ROLES], cluster, &sets[c->sets]->replica);
    }
    return 0;
}
