/* SPDX-License-Identifier: MIT */
/* Machine code as text: see disassemble.h. */
#include "profile/disassemble.h"
#include "base/memory.h"
#include "config.h"

#include <stdio.h>
#include <string.h>
#if HAVE_CAPSTONE
#include "profile/code/libcapstone.h"
#endif

#if HAVE_CAPSTONE

/* The address that a branch or call names in its text, 0 for none. */
static uint64_t branch_target(csh handle, const cs_insn *insn)
{
    if (!cs_insn_group(handle, insn, CS_GRP_JUMP) && !cs_insn_group(handle, insn, CS_GRP_CALL))
        return 0;
    const char *hex = strstr(insn->op_str, "0x");
    if (!hex || strchr(insn->op_str, '['))
        return 0;
    return strtoull(hex, NULL, 16);
}

struct target {
    size_t instruction;
    uint64_t address;
};

/* Adds " <name+0x10>" to the instructions that leave the function. */
static void name_targets(struct annotation *a, struct profile *p, struct module *module,
                         const struct target *targets, size_t count, uint64_t shift)
{
    struct symbols_request *requests = memory_zalloc(count + 1, sizeof(*requests));
    for (size_t i = 0; i < count; i++)
        requests[i].location = (struct location){module, targets[i].address - shift};
    symbols_resolve(p->symbols, requests, count, SYMBOLS_NAMES);
    for (size_t i = 0; i < count; i++) {
        const struct function *f = requests[i].frame_count
                                       ? requests[i].frames[requests[i].frame_count - 1].function
                                       : NULL;
        struct annotate_instruction *insn = &a->instructions[targets[i].instruction];
        if (!f)
            continue;
        uint64_t offset = requests[i].location.address - f->start;
        insn->comment = (uint32_t)strlen(insn->text);
        char *text = offset ? memory_printf("%s <%s+0x%llx>", insn->text, f->name,
                                            (unsigned long long)offset)
                            : memory_printf("%s <%s>", insn->text, f->name);
        free(insn->text);
        insn->text = text;
    }
    free(requests);
}

static bool open_machine(const char *arch, csh *handle)
{
    if (!arch || strcmp(arch, "x86_64") == 0)
        return cs_open(CS_ARCH_X86, CS_MODE_64, handle) == CS_ERR_OK;
    if (strcmp(arch, "aarch64") == 0)
        return cs_open(CS_ARCH_ARM64, CS_MODE_ARM, handle) == CS_ERR_OK;
    return false;
}

void disassemble(struct annotation *a, struct profile *p, struct module *module,
                 const uint8_t *code, size_t size, uint64_t address, uint64_t shift)
{
    csh handle;
    struct error err;
    if (library_load(&capstone_library, &err) < 0) {
        snprintf(a->missing_text, sizeof(a->missing_text), "%.500s.", err.message);
        a->missing = a->missing_text;
        return;
    }
    if (!open_machine(p->arch, &handle)) {
        snprintf(a->missing_text, sizeof(a->missing_text), "There is no disassembler for '%.40s'.",
                 p->arch ? p->arch : "");
        a->missing = a->missing_text;
        return;
    }
    cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
    cs_option(handle, CS_OPT_SKIPDATA, CS_OPT_ON);
    cs_insn *insn = cs_malloc(handle);
    struct target *targets = NULL;
    size_t target_count = 0, target_capacity = 0;
    uint64_t at = address;
    size_t left = size;
    while (insn && cs_disasm_iter(handle, &code, &left, &at, insn)) {
        uint64_t target = insn->id ? branch_target(handle, insn) : 0;
        if (target && (target < address || target >= address + size))
            ARRAY_PUSH(targets, target_count, target_capacity) =
                (struct target){a->instruction_count, target};
        ARRAY_PUSH(a->instructions, a->instruction_count, a->instruction_capacity) =
            (struct annotate_instruction){
                .address = insn->address,
                .text = memory_printf("%s%s%s", insn->mnemonic, insn->op_str[0] ? " " : "",
                                      insn->op_str),
            };
    }
    if (insn)
        cs_free(insn, 1);
    cs_close(&handle);
    name_targets(a, p, module, targets, target_count, shift);
    free(targets);
}

#else

void disassemble(struct annotation *a, struct profile *p, struct module *module,
                 const uint8_t *code, size_t size, uint64_t address, uint64_t shift)
{
    (void)p, (void)module, (void)code, (void)size, (void)address, (void)shift;
    a->missing = "assay was built without capstone, so there is no disassembly.";
}

#endif
