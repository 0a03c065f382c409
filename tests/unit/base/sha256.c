/* SPDX-License-Identifier: MIT */
#include "base/sha256.h"
#include "test.h"

static const char *hash_of(const char *text, size_t piece)
{
    static char hex[65];
    struct sha256 h;
    sha256_start(&h);
    for (size_t at = 0, length = strlen(text); at < length; at += piece)
        sha256_add(&h, text + at, length - at < piece ? length - at : piece);
    sha256_end(&h, hex);
    return hex;
}

/* The examples of FIPS 180-4's companion document, and the empty text. */
TEST(published_examples)
{
    CHECK_STR(hash_of("", 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK_STR(hash_of("abc", 3),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK_STR(hash_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(pieces_do_not_matter)
{
    char text[301];
    memset(text, 'a', 300);
    text[300] = '\0';
    char whole[65];
    strcpy(whole, hash_of(text, 300));
    for (size_t piece = 1; piece < 130; piece++)
        CHECK_STR(hash_of(text, piece), whole);
}

TEST(texts_are_kept_apart)
{
    char first[65], second[65];
    struct sha256 h;
    sha256_start(&h);
    sha256_add_text(&h, "ab");
    sha256_add_text(&h, "c");
    sha256_end(&h, first);
    sha256_start(&h);
    sha256_add_text(&h, "a");
    sha256_add_text(&h, "bc");
    sha256_end(&h, second);
    CHECK(strcmp(first, second) != 0);
}
