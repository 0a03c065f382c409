/* SPDX-License-Identifier: MIT */
/* Call chains from copied stacks: see unwind.h. */
#include "symbols/unwind.h"

#include "base/memory.h"
#include "symbols/dwarf/cfi.h"
#include "symbols/internal.h"

#include <assert.h>

static_assert(UNWIND_REGISTER_COUNT == CFI_REGISTER_COUNT, "both count as DWARF does");

enum {
    X86_RBP = 6,
    X86_RSP = 7,
    X86_RIP = 16,
    ARM_FP = 29,
    ARM_LR = 30,
    ARM_SP = 31,
    ARM_PC = 32, /* has no number in DWARF; this one is free */
};

/* Which of DWARF's registers <asm/perf_regs.h> means; -1 for none (flags, segments). */
static int dwarf_register(enum unwind_arch arch, unsigned bit)
{
    /* ax bx cx dx si di bp sp ip flags cs ss ds es fs gs r8-r15 */
    static const int8_t x86[] = {0, 3, 2, 1, 4, 5, 6, 7, 16, -1, -1, -1};
    if (arch == UNWIND_AARCH64)
        return bit <= ARM_PC ? (int)bit : -1; /* x0-x29, lr, sp, pc */
    if (bit >= 16 && bit < 24)
        return (int)bit - 8;
    return bit < ARRAY_COUNT(x86) ? x86[bit] : -1;
}

static unsigned pc_register(enum unwind_arch arch)
{
    return arch == UNWIND_X86_64 ? X86_RIP : ARM_PC;
}

static unsigned sp_register(enum unwind_arch arch)
{
    return arch == UNWIND_X86_64 ? X86_RSP : ARM_SP;
}

static bool is_known(const struct unwind_registers *r, unsigned index)
{
    return r->known >> index & 1;
}

static void set_register(struct unwind_registers *r, unsigned index, uint64_t value)
{
    r->values[index] = value;
    r->known |= 1ull << index;
}

bool unwind_registers_from_perf(struct unwind_registers *registers, enum unwind_arch arch,
                                uint64_t abi, uint64_t mask, const uint64_t *values, size_t count)
{
    struct unwind_registers r = {.arch = arch};
    if (abi != 2)
        return false;
    size_t next = 0;
    for (unsigned bit = 0; bit < 64 && next < count; bit++) {
        if (!(mask >> bit & 1))
            continue;
        int index = dwarf_register(arch, bit);
        if (index >= 0)
            set_register(&r, (unsigned)index, values[next]);
        next++;
    }
    if (!is_known(&r, pc_register(arch)) || !is_known(&r, sp_register(arch)))
        return false;
    *registers = r;
    return true;
}

uint64_t unwind_registers_pc(const struct unwind_registers *registers)
{
    return registers->values[pc_register(registers->arch)];
}

uint64_t unwind_registers_sp(const struct unwind_registers *registers)
{
    return registers->values[sp_register(registers->arch)];
}

/* The copied bytes; a read behind them is remembered as the reason to stop. */
struct stack {
    uint64_t start;
    const uint8_t *bytes;
    size_t size;
    bool beyond;
};

static bool stack_read(void *memory, uint64_t address, uint64_t *ret_value)
{
    struct stack *s = memory;
    uint64_t offset = address - s->start;
    if (s->size < sizeof(*ret_value) || offset > s->size - sizeof(*ret_value)) {
        s->beyond = s->beyond || address >= s->start;
        return false;
    }
    memcpy(ret_value, s->bytes + offset, sizeof(*ret_value));
    return true;
}

/* One unwinding.  The map of the last look-up is kept: neighbours on a stack are often of one
 * module. */
struct walk {
    const struct addrspace *space;
    struct unwind_registers registers;
    struct stack stack;
    struct map map; /* map.end 0: none yet */
};

static bool find_map(struct walk *w, uint64_t address)
{
    return (address >= w->map.start && address < w->map.end) ||
           addrspace_find_map(w->space, address, &w->map);
}

static struct cfi *module_cfi(struct module *m)
{
    struct cfi *cfi = atomic_load_explicit(&m->cfi, memory_order_acquire);
    if (cfi)
        return cfi;
    pthread_mutex_lock(&m->lock);
    cfi = atomic_load_explicit(&m->cfi, memory_order_relaxed);
    if (!cfi) {
        bool has_code = module_open(m);
        cfi = cfi_load(has_code ? &m->image : NULL, NULL);
        atomic_store_explicit(&m->cfi, cfi, memory_order_release);
    }
    pthread_mutex_unlock(&m->lock);
    return cfi;
}

/* The rules for an address; where is the address to look at: the call, for a caller. */
static bool find_rules(struct walk *w, uint64_t where, struct cfi_frame *ret_frame)
{
    struct module *m = w->map.module;
    if (m->kind != MODULE_FILE && m->kind != MODULE_VDSO)
        return false;
    struct cfi *cfi = module_cfi(m);
    uint64_t address;
    return m->has_image &&
           image_offset_to_address(&m->image, where - w->map.start + w->map.offset, &address) &&
           cfi_find(cfi, address, ret_frame);
}

enum step {
    STEP_DONE,
    STEP_OUTERMOST,
    STEP_FAILED,
};

static bool compute_cfa(const struct cfi_context *context, const struct cfi_row *row,
                        uint64_t *ret_cfa)
{
    if (row->cfa_expression_size)
        return cfi_evaluate(context, row->cfa_expression, row->cfa_expression_size, false, 0,
                            ret_cfa);
    if (!(context->known >> row->cfa_register & 1))
        return false;
    *ret_cfa = context->registers[row->cfa_register] + (uint64_t)(int64_t)row->cfa_offset;
    return true;
}

/* The value a rule gives; false when it gives none. */
static bool apply_rule(const struct cfi_context *context, const struct cfi_rule *rule, uint64_t cfa,
                       uint64_t *ret_value)
{
    uint64_t address;
    switch (rule->kind) {
    case CFI_AT_OFFSET:
        return context->read(context->memory, cfa + (uint64_t)(int64_t)rule->value, ret_value);
    case CFI_IS_OFFSET:
        *ret_value = cfa + (uint64_t)(int64_t)rule->value;
        return true;
    case CFI_REGISTER:
        if (rule->value < 0 || rule->value >= CFI_REGISTER_COUNT ||
            !(context->known >> rule->value & 1))
            return false;
        *ret_value = context->registers[rule->value];
        return true;
    case CFI_AT_EXPRESSION:
        return cfi_evaluate(context, rule->expression, rule->expression_size, true, cfa,
                            &address) &&
               context->read(context->memory, address, ret_value);
    case CFI_IS_EXPRESSION:
        return cfi_evaluate(context, rule->expression, rule->expression_size, true, cfa, ret_value);
    default:
        return false;
    }
}

/* With pointer authentication the upper bits hold a signature. */
static uint64_t without_signature(uint64_t address)
{
    return address & ((1ull << 48) - 1);
}

/* In an epilogue compilers leave the rule of a register that was popped already: its place is
 * below the stack pointer, where nothing was copied, and the register has its value back. */
static bool was_popped(const struct cfi_rule *rule, uint64_t cfa, uint64_t sp)
{
    return rule->kind == CFI_AT_OFFSET && cfa + (uint64_t)(int64_t)rule->value < sp;
}

static enum step step_by_rules(struct walk *w, const struct cfi_frame *frame)
{
    const struct unwind_registers *now = &w->registers;
    struct unwind_registers next = *now;
    unsigned pc = pc_register(now->arch), sp = sp_register(now->arch);
    struct cfi_context context = {now->values, now->known, stack_read, &w->stack};
    uint64_t cfa, value;
    if (!compute_cfa(&context, frame->row, &cfa))
        return STEP_FAILED;
    set_register(&next, sp, cfa);
    for (size_t i = 0; i < frame->row->rule_count; i++) {
        const struct cfi_rule *rule = &frame->rules[i];
        bool is_return = rule->reg == frame->return_register;
        if (is_return && rule->kind == CFI_UNDEFINED)
            return STEP_OUTERMOST;
        if (was_popped(rule, cfa, now->values[sp]))
            continue;
        if (apply_rule(&context, rule, cfa, &value))
            set_register(&next, rule->reg, value);
        else if (is_return)
            return STEP_FAILED;
        else
            next.known &= ~(1ull << rule->reg);
    }
    if (!is_known(&next, frame->return_register))
        return STEP_FAILED;
    value = next.values[frame->return_register];
    if (frame->row->ra_signed)
        value = without_signature(value);
    set_register(&next, pc, value);
    bool no_progress = next.values[pc] == now->values[pc] && next.values[sp] == now->values[sp];
    bool downwards = next.values[sp] < now->values[sp] && !frame->is_signal;
    if (no_progress || downwards)
        return STEP_FAILED;
    w->registers = next;
    return value ? STEP_DONE : STEP_OUTERMOST;
}

/* Code without rules (JIT compilers, hand-written): the frame pointer, if it points up the stack
 * to something that looks like a frame. */
static enum step step_by_frame_pointer(struct walk *w)
{
    struct unwind_registers *r = &w->registers;
    unsigned fp = r->arch == UNWIND_X86_64 ? X86_RBP : ARM_FP;
    unsigned sp = sp_register(r->arch);
    uint64_t at = r->values[fp], next_fp, next_pc;
    if (!is_known(r, fp) || at < r->values[sp] || at % 8)
        return STEP_FAILED;
    if (!stack_read(&w->stack, at, &next_fp) || !stack_read(&w->stack, at + 8, &next_pc))
        return STEP_FAILED;
    if (r->arch == UNWIND_AARCH64)
        next_pc = without_signature(next_pc);
    set_register(r, fp, next_fp);
    set_register(r, sp, at + 16);
    set_register(r, pc_register(r->arch), next_pc);
    return next_pc ? STEP_DONE : STEP_OUTERMOST;
}

/* A call to nowhere (a null function pointer): the caller is on top of the stack. */
static enum step step_from_nowhere(struct walk *w)
{
    struct unwind_registers *r = &w->registers;
    unsigned sp = sp_register(r->arch);
    uint64_t value;
    if (r->arch == UNWIND_AARCH64) {
        if (!is_known(r, ARM_LR))
            return STEP_FAILED;
        value = without_signature(r->values[ARM_LR]);
    } else {
        if (!stack_read(&w->stack, r->values[sp], &value))
            return STEP_FAILED;
        set_register(r, sp, r->values[sp] + 8);
    }
    struct map map;
    if (!addrspace_find_map(w->space, value, &map))
        return STEP_FAILED;
    set_register(r, pc_register(r->arch), value);
    return STEP_DONE;
}

/* Linux on aarch64 gives its signal trampoline in the vdso no rules on purpose; the frame it
 * leaves is part of the system's interface: struct rt_sigframe, whose registers stand behind 128
 * bytes of siginfo and 176 of ucontext, behind the fault address. */
static bool is_arm_trampoline(struct walk *w)
{
    static const uint8_t code[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4};
    struct module *m = w->map.module;
    uint8_t there[sizeof(code)];
    uint64_t pc = unwind_registers_pc(&w->registers);
    return w->registers.arch == UNWIND_AARCH64 && m->kind == MODULE_VDSO && m->has_image &&
           image_read(&m->image, pc - w->map.start + w->map.offset, there, sizeof(there)) ==
               sizeof(there) &&
           memcmp(there, code, sizeof(code)) == 0;
}

static enum step step_from_arm_signal(struct walk *w)
{
    struct unwind_registers *r = &w->registers, next = {.arch = UNWIND_AARCH64};
    uint64_t at = r->values[ARM_SP] + 128 + 176 + 8, value;
    for (unsigned i = 0; i <= ARM_PC; i++, at += 8) {
        if (!stack_read(&w->stack, at, &value))
            return STEP_FAILED;
        set_register(&next, i, value);
    }
    *r = next;
    return STEP_DONE;
}

static enum unwind_end why_failed(const struct walk *w, bool had_rules)
{
    if (w->stack.beyond)
        return UNWIND_STACK_CUT;
    return had_rules ? UNWIND_BROKEN : UNWIND_NO_RULES;
}

size_t unwind_user(const struct addrspace *space, const struct unwind_registers *registers,
                   const void *stack, size_t stack_size, struct unwind_frame *frames, size_t most,
                   enum unwind_end *ret_end)
{
    struct walk w = {.space = space,
                     .registers = *registers,
                     .stack = {unwind_registers_sp(registers), stack, stack_size, false}};
    bool exact = true; /* the address itself and not the call before it */
    for (size_t count = 0; count < most; count++) {
        uint64_t pc = unwind_registers_pc(&w.registers), where = exact ? pc : pc - 1;
        struct cfi_frame rules;
        enum step step;
        bool mapped = find_map(&w, where), has_rules = false;
        if (!mapped && count > 0) {
            *ret_end = UNWIND_NO_MAP;
            return count;
        }
        frames[count].ip = pc;
        frames[count].location =
            mapped ? (struct location){w.map.module, where - w.map.start + w.map.offset}
                   : (struct location){NULL, where};
        bool was_signal = false;
        if (!mapped) {
            step = step_from_nowhere(&w);
        } else if (find_rules(&w, where, &rules)) {
            has_rules = true;
            was_signal = rules.is_signal;
            step = step_by_rules(&w, &rules);
        } else if (is_arm_trampoline(&w)) {
            was_signal = true;
            step = step_from_arm_signal(&w);
        } else {
            step = step_by_frame_pointer(&w);
        }
        if (step != STEP_DONE) {
            *ret_end = step == STEP_OUTERMOST ? UNWIND_OUTERMOST : why_failed(&w, has_rules);
            return count + 1;
        }
        if (was_signal) /* it was not called: its own address, not the one before it */
            frames[count].location.address += exact ? 0 : 1;
        exact = was_signal;
    }
    *ret_end = UNWIND_LIMIT;
    return most;
}
