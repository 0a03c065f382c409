/* SPDX-License-Identifier: MIT */
/* Code of the same function at other places, and of others. */
#include "profile/code/fingerprint.h"
#include "test.h"

#include <errno.h>
#include <string.h>

/* push rbx; mov ebx, edi; call …; lea rax, [rip + …]; add ebx, 5; jne back; mov eax, ebx; pop; ret
 */
static const uint8_t plain[] = {0x53, 0x89, 0xfb, 0xe8, 0x10, 0x00, 0x00, 0x00,
                                0x48, 0x8d, 0x05, 0x20, 0x00, 0x00, 0x00, 0x83,
                                0xc3, 0x05, 0x75, 0xed, 0x89, 0xd8, 0x5b, 0xc3};
enum { CALL_AT = 4, LEA_AT = 11, NUMBER_AT = 17 };

static struct fingerprinter *open_one(void)
{
    struct fingerprinter *f = NULL;
    struct error err;
    int r = fingerprinter_new(&f, "x86_64", &err);
    if (r < 0)
        test_skip("there is no disassembler here");
    return f;
}

static struct fingerprint take(struct fingerprinter *f, const uint8_t *code, uint64_t address)
{
    struct fingerprint print;
    fingerprint_take(f, code, sizeof(plain), address, &print);
    return print;
}

TEST(addresses_do_not_count_and_numbers_do)
{
    struct fingerprinter *f = open_one();
    if (!f)
        return;
    uint8_t moved[sizeof(plain)], other[sizeof(plain)];
    memcpy(moved, plain, sizeof(plain));
    memcpy(other, plain, sizeof(plain));
    moved[CALL_AT] = 0x77;
    moved[LEA_AT] = 0x66;
    other[NUMBER_AT] = 9;
    struct fingerprint a = take(f, plain, 0x1000), b = take(f, moved, 0x5550),
                       c = take(f, other, 0x1000);
    CHECK_INT(a.instruction_count, 9);
    CHECK(a.exact == b.exact);
    CHECK(a.loose == b.loose);
    CHECK(a.exact != c.exact);
    CHECK(a.loose == c.loose);
    CHECK_NEAR(fingerprint_likeness(&a, &c), 1, 0);
    CHECK_INT(a.target_count, 1);
    CHECK_INT(a.targets[0], 0x1000 + 8 + 0x10);
    CHECK_INT(b.targets[0], 0x5550 + 8 + 0x77);
    fingerprint_done(&a);
    fingerprint_done(&b);
    fingerprint_done(&c);
    fingerprinter_free(f);
}

TEST(numbers_that_are_addresses_do_not_count)
{
    struct fingerprinter *f = open_one();
    if (!f)
        return;
    uint8_t a[] = {0xbf, 0x10, 0x20, 0x40, 0x00, 0xc3}, b[] = {0xbf, 0x90, 0x31, 0x40, 0x00, 0xc3};
    struct fingerprint prints[4];
    fingerprint_take(f, a, sizeof(a), 0x401000, &prints[0]);
    fingerprint_take(f, b, sizeof(b), 0x401000, &prints[1]);
    fingerprinter_set_addresses(f, 0x400000, 0x500000);
    fingerprint_take(f, a, sizeof(a), 0x401000, &prints[2]);
    fingerprint_take(f, b, sizeof(b), 0x401000, &prints[3]);
    CHECK(prints[0].exact != prints[1].exact);
    CHECK(prints[2].exact == prints[3].exact);
    for (size_t i = 0; i < 4; i++)
        fingerprint_done(&prints[i]);
    fingerprinter_free(f);
}

TEST(nothing_is_like_nothing)
{
    struct fingerprinter *f = open_one();
    if (!f)
        return;
    struct fingerprint a, b = take(f, plain, 0);
    fingerprint_take(f, plain, 0, 0, &a);
    CHECK_INT(a.instruction_count, 0);
    CHECK_NEAR(fingerprint_likeness(&a, &a), 0, 0);
    CHECK_NEAR(fingerprint_likeness(&a, &b), 0, 0);
    fingerprint_done(&a);
    fingerprint_done(&b);
    fingerprinter_free(f);
}

TEST(other_machines_are_refused)
{
    struct fingerprinter *f = NULL;
    struct error err;
    CHECK(fingerprinter_new(&f, "s390x", &err) < 0);
    CHECK(!f);
}
