/* SPDX-License-Identifier: MIT */
/* What the code of a function is like: see fingerprint.h. */
#include "profile/code/fingerprint.h"
#include "base/hash.h"
#include "base/memory.h"
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

void fingerprint_done(struct fingerprint *print)
{
    free(print->targets);
    free(print->sites);
    *print = (struct fingerprint){0};
}

double fingerprint_likeness(const struct fingerprint *a, const struct fingerprint *b)
{
    unsigned common = 0, all = 0;
    for (size_t i = 0; i < FINGERPRINT_PAIRS; i++) {
        common += a->pairs[i] < b->pairs[i] ? a->pairs[i] : b->pairs[i];
        all += (unsigned)a->pairs[i] + b->pairs[i];
    }
    return all ? 2.0 * common / all : 0;
}

#if HAVE_CAPSTONE

#include "profile/code/libcapstone.h"

struct fingerprinter {
    csh handle;
    cs_insn *insn;
    bool is_x86;
    uint64_t low, high; /* numbers from low up to high are addresses */
};

int fingerprinter_new(struct fingerprinter **ret, const char *arch, struct error *err)
{
    bool is_x86 = !arch || strcmp(arch, "x86_64") == 0;
    csh handle;
    int r = library_load(&capstone_library, err);
    if (r < 0)
        return r;
    if (!is_x86 && strcmp(arch, "aarch64") != 0)
        return error_set(err, -ENOTSUP, "there is no disassembler for '%.40s'", arch);
    if ((is_x86 ? cs_open(CS_ARCH_X86, CS_MODE_64, &handle)
                : cs_open(CS_ARCH_ARM64, CS_MODE_ARM, &handle)) != CS_ERR_OK)
        return error_set(err, -ENOTSUP, "the disassembler cannot be used");
    cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
    cs_option(handle, CS_OPT_SKIPDATA, CS_OPT_ON);
    *ret = memory_zalloc(1, sizeof(**ret));
    **ret = (struct fingerprinter){.handle = handle, .insn = cs_malloc(handle), .is_x86 = is_x86};
    return 0;
}

void fingerprinter_free(struct fingerprinter *f)
{
    if (!f)
        return;
    if (f->insn)
        cs_free(f->insn, 1);
    cs_close(&f->handle);
    free(f);
}

void fingerprinter_set_addresses(struct fingerprinter *f, uint64_t low, uint64_t high)
{
    f->low = low;
    f->high = high;
}

/* One function while its instructions are read. */
struct reading {
    struct fingerprinter *f;
    struct fingerprint *print;
    uint64_t start, end;
    uint64_t last; /* the hash of the instruction before */
    uint64_t next; /* the address behind this one */
};

/* Instructions whose number is part of an address that was found by the one before. */
static bool holds_half_an_address(const struct fingerprinter *f, const char *mnemonic)
{
    return !f->is_x86 && (strncmp(mnemonic, "adr", 3) == 0 || strcmp(mnemonic, "add") == 0 ||
                          strncmp(mnemonic, "ld", 2) == 0 || strncmp(mnemonic, "st", 2) == 0);
}

static void read_number(struct reading *r, uint64_t value, bool is_branch, bool is_place)
{
    struct fingerprint *p = r->print;
    bool is_outside = is_branch && (value < r->start || value >= r->end);
    if (is_outside) {
        size_t count = p->target_count;
        ARRAY_PUSH(p->sites, count, p->site_capacity) = r->next;
        ARRAY_PUSH(p->targets, p->target_count, p->target_capacity) = value;
    }
    if (is_outside || is_place || (!is_branch && value >= r->f->low && value < r->f->high))
        return;
    value -= is_branch ? r->start : 0;
    p->exact = hash_bytes(p->exact, &value, sizeof(value));
}

/* Operands: registers and marks count for both hashes, numbers for the exact one unless they are
 * addresses. */
static void read_operands(struct reading *r, const cs_insn *insn, bool is_branch)
{
    struct fingerprint *p = r->print;
    bool half = holds_half_an_address(r->f, insn->mnemonic), relative = false;
    const char *text = insn->op_str;
    bool is_direct = is_branch && !strchr(text, '[');
    for (const char *at = text; *at;) {
        bool is_number =
            isdigit((unsigned char)*at) && (at == text || !isalnum((unsigned char)at[-1]));
        if (!is_number) {
            relative |= strncmp(at, "rip", 3) == 0;
            relative &= *at != ',';
            p->exact = hash_byte(p->exact, (uint8_t)*at);
            p->loose = hash_byte(p->loose, (uint8_t)*at);
            at++;
            continue;
        }
        char *end;
        uint64_t value = strtoull(at, &end, 0);
        read_number(r, value, is_direct, half || relative);
        at = end;
    }
}

static void read_instruction(struct reading *r, const cs_insn *insn)
{
    struct fingerprint *p = r->print;
    csh handle = r->f->handle;
    bool is_branch = insn->id && (cs_insn_group(handle, insn, CS_GRP_JUMP) ||
                                  cs_insn_group(handle, insn, CS_GRP_CALL));
    uint64_t kind = hash_text(HASH_START, insn->mnemonic);
    size_t pair = (size_t)((r->last * 31 + kind) % 1021 % FINGERPRINT_PAIRS);
    if (p->instruction_count++ && p->pairs[pair] < UINT16_MAX)
        p->pairs[pair]++;
    r->last = kind;
    r->next = insn->address + insn->size;
    p->exact = hash_text(p->exact, insn->mnemonic);
    p->loose = hash_text(p->loose, insn->mnemonic);
    read_operands(r, insn, is_branch);
}

void fingerprint_take(struct fingerprinter *f, const uint8_t *code, size_t size, uint64_t address,
                      struct fingerprint *ret)
{
    *ret = (struct fingerprint){.exact = HASH_START, .loose = HASH_START};
    struct reading r = {.f = f, .print = ret, .start = address, .end = address + size};
    while (f->insn && cs_disasm_iter(f->handle, &code, &size, &address, f->insn))
        read_instruction(&r, f->insn);
}

#else

int fingerprinter_new(struct fingerprinter **ret, const char *arch, struct error *err)
{
    (void)ret, (void)arch;
    return error_set(err, -ENOTSUP, "assay was built without capstone");
}

void fingerprinter_free(struct fingerprinter *f)
{
    (void)f;
}

void fingerprinter_set_addresses(struct fingerprinter *f, uint64_t low, uint64_t high)
{
    (void)f, (void)low, (void)high;
}

void fingerprint_take(struct fingerprinter *f, const uint8_t *code, size_t size, uint64_t address,
                      struct fingerprint *ret)
{
    (void)f, (void)code, (void)size, (void)address;
    *ret = (struct fingerprint){0};
}

#endif
