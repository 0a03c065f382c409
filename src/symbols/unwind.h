/* SPDX-License-Identifier: MIT */
/*
 * Call chains from copied stacks (perf record --call-graph dwarf: REGS_USER and STACK_USER).
 *
 * The rules by which a function's caller is found stand in .eh_frame and .debug_frame.  Each
 * module's are indexed once, each function's decoded once into rows, and a row is applied in some
 * tens of nanoseconds.  x86-64 and aarch64.  Where a module has no rules, the frame pointer is
 * followed as long as it makes sense.
 *
 * Threads: unwind_user may run in many threads at once, on the same modules too; it must not run
 * beside symbols_resolve or symbols_module of the same symbols.
 */
#ifndef ASSAY_SYMBOLS_UNWIND_H
#define ASSAY_SYMBOLS_UNWIND_H

#include "symbols/addrspace.h"

#include <stddef.h>
#include <stdint.h>

enum unwind_arch {
    UNWIND_X86_64,
    UNWIND_AARCH64,
};

#define UNWIND_REGISTER_COUNT 33

/* Numbered as DWARF does for the machine. */
struct unwind_registers {
    enum unwind_arch arch;
    uint64_t values[UNWIND_REGISTER_COUNT];
    uint64_t known; /* bit i: values[i] is known */
};

/* From a sample's REGS_USER: values stand for the bits of mask, lowest first, numbered as
 * <asm/perf_regs.h> of that machine does; count says how many there are.  False for 32-bit
 * processes (abi 1), for no registers (abi 0), or when pc or sp is missing. */
bool unwind_registers_from_perf(struct unwind_registers *registers, enum unwind_arch arch,
                                uint64_t abi, uint64_t mask, const uint64_t *values, size_t count);
uint64_t unwind_registers_pc(const struct unwind_registers *registers);
uint64_t unwind_registers_sp(const struct unwind_registers *registers);

enum unwind_end {
    UNWIND_OUTERMOST, /* the rules say that there is no caller: a whole chain */
    UNWIND_STACK_CUT, /* the next frame lies beyond the bytes that were copied */
    UNWIND_NO_RULES,  /* code without rules, and the frame pointer makes no sense */
    UNWIND_NO_MAP,    /* the return address lies in no known map */
    UNWIND_BROKEN,    /* rules that contradict themselves, or no progress */
    UNWIND_LIMIT,     /* as many frames as there was room for */
};

struct unwind_frame {
    uint64_t ip; /* the first: where the sample was; others: return addresses as on the stack */
    /* Where to look the name up: for a return address that is one byte before it, in the call. */
    struct location location;
};

/*
 * Unwinds one user stack.  stack holds the bytes from the stack pointer upwards.  Fills frames,
 * innermost first, and returns how many (at least one, when most > 0).
 */
size_t unwind_user(const struct addrspace *space, const struct unwind_registers *registers,
                   const void *stack, size_t stack_size, struct unwind_frame *frames, size_t most,
                   enum unwind_end *ret_end);

#endif
