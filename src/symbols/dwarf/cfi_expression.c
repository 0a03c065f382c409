/* SPDX-License-Identifier: MIT */
/* DWARF expressions (DWARF 5, section 2.5) as they occur in call frame information. */
#include "symbols/dwarf/cfi.h"
#include "symbols/tables/bytes.h"

#define STACK_SIZE 64
#define STEP_COUNT_MAX 1000 /* expressions can jump back */

enum {
    OP_addr = 0x03,
    OP_deref = 0x06,
    OP_const1u = 0x08,
    OP_constu = 0x10,
    OP_consts = 0x11,
    OP_dup = 0x12,
    OP_drop = 0x13,
    OP_over = 0x14,
    OP_pick = 0x15,
    OP_swap = 0x16,
    OP_rot = 0x17,
    OP_abs = 0x19,
    OP_and = 0x1a,
    OP_div = 0x1b,
    OP_minus = 0x1c,
    OP_mod = 0x1d,
    OP_mul = 0x1e,
    OP_neg = 0x1f,
    OP_not = 0x20,
    OP_or = 0x21,
    OP_plus = 0x22,
    OP_plus_uconst = 0x23,
    OP_shl = 0x24,
    OP_shr = 0x25,
    OP_shra = 0x26,
    OP_xor = 0x27,
    OP_bra = 0x28,
    OP_eq = 0x29,
    OP_ge = 0x2a,
    OP_gt = 0x2b,
    OP_le = 0x2c,
    OP_lt = 0x2d,
    OP_ne = 0x2e,
    OP_skip = 0x2f,
    OP_lit0 = 0x30,
    OP_lit31 = 0x4f,
    OP_breg0 = 0x70,
    OP_breg31 = 0x8f,
    OP_bregx = 0x92,
    OP_deref_size = 0x94,
    OP_nop = 0x96,
};

struct machine {
    const struct cfi_context *context;
    uint64_t stack[STACK_SIZE];
    size_t depth;
    bool bad;
};

static void push(struct machine *m, uint64_t value)
{
    if (m->depth < STACK_SIZE)
        m->stack[m->depth++] = value;
    else
        m->bad = true;
}

static uint64_t pop(struct machine *m)
{
    if (m->depth)
        return m->stack[--m->depth];
    m->bad = true;
    return 0;
}

static uint64_t pick(struct machine *m, size_t index)
{
    if (index < m->depth)
        return m->stack[m->depth - 1 - index];
    m->bad = true;
    return 0;
}

static void push_register(struct machine *m, uint64_t index, int64_t offset)
{
    if (index < CFI_REGISTER_COUNT && (m->context->known >> index & 1))
        push(m, m->context->registers[index] + (uint64_t)offset);
    else
        m->bad = true;
}

static void dereference(struct machine *m, unsigned size)
{
    uint64_t value = 0;
    if (size < 1 || size > 8 || !m->context->read(m->context->memory, pop(m), &value))
        m->bad = true;
    push(m, size < 8 ? value & ((1ull << 8 * (size & 7)) - 1) : value);
}

static uint64_t binary(struct machine *m, uint8_t op, uint64_t a, uint64_t b)
{
    int64_t x = (int64_t)a, y = (int64_t)b;
    switch (op) {
    case OP_and:
        return a & b;
    case OP_or:
        return a | b;
    case OP_xor:
        return a ^ b;
    case OP_plus:
        return a + b;
    case OP_minus:
        return a - b;
    case OP_mul:
        return a * b;
    case OP_div:
        m->bad |= y == 0 || (x == INT64_MIN && y == -1);
        return m->bad ? 0 : (uint64_t)(x / y);
    case OP_mod:
        m->bad |= b == 0;
        return m->bad ? 0 : a % b;
    case OP_shl:
        return b < 64 ? a << b : 0;
    case OP_shr:
        return b < 64 ? a >> b : 0;
    case OP_shra:
        return (uint64_t)(x >> (b < 64 ? b : 63));
    case OP_eq:
        return x == y;
    case OP_ge:
        return x >= y;
    case OP_gt:
        return x > y;
    case OP_le:
        return x <= y;
    case OP_lt:
        return x < y;
    default: /* OP_ne */
        return x != y;
    }
}

static bool is_binary(uint8_t op)
{
    return op == OP_and || (op >= OP_div && op <= OP_mul) || op == OP_or || op == OP_plus ||
           (op >= OP_shl && op <= OP_xor) || (op >= OP_eq && op <= OP_ne);
}

static void jump(struct machine *m, struct cursor *c, const uint8_t *start, int64_t distance)
{
    if (distance < start - c->at || distance > c->end - c->at)
        m->bad = true;
    else
        c->at += distance;
}

static void stack_operation(struct machine *m, uint8_t op, struct cursor *c)
{
    uint64_t a, b, top;
    switch (op) {
    case OP_dup:
        push(m, pick(m, 0));
        break;
    case OP_drop:
        pop(m);
        break;
    case OP_over:
        push(m, pick(m, 1));
        break;
    case OP_pick:
        push(m, pick(m, cursor_u8(c)));
        break;
    case OP_swap:
        a = pop(m), b = pop(m);
        push(m, a), push(m, b);
        break;
    default: /* OP_rot: the top one goes below the next two */
        top = pop(m), a = pop(m), b = pop(m);
        push(m, top), push(m, b), push(m, a);
        break;
    }
}

static void unary(struct machine *m, uint8_t op, struct cursor *c)
{
    uint64_t a = pop(m);
    switch (op) {
    case OP_abs:
        push(m, (int64_t)a < 0 ? 0 - a : a);
        break;
    case OP_neg:
        push(m, 0 - a);
        break;
    case OP_not:
        push(m, ~a);
        break;
    default: /* OP_plus_uconst */
        push(m, a + cursor_uleb(c));
        break;
    }
}

static void step(struct machine *m, struct cursor *c, const uint8_t *start)
{
    uint8_t op = cursor_u8(c);
    if (op >= OP_lit0 && op <= OP_lit31) {
        push(m, op - OP_lit0);
    } else if (op >= OP_breg0 && op <= OP_breg31) {
        push_register(m, op - OP_breg0, cursor_sleb(c));
    } else if (op == OP_bregx) {
        uint64_t index = cursor_uleb(c);
        push_register(m, index, cursor_sleb(c));
    } else if (op >= OP_const1u && op < OP_constu) {
        size_t size = (size_t)1 << (op - OP_const1u) / 2; /* const1u, const1s, const2u, … */
        push(m, op & 1 ? (uint64_t)cursor_signed(c, size) : cursor_unsigned(c, size));
    } else if (op == OP_addr) {
        push(m, cursor_unsigned(c, 8));
    } else if (op == OP_constu) {
        push(m, cursor_uleb(c));
    } else if (op == OP_consts) {
        push(m, (uint64_t)cursor_sleb(c));
    } else if (op == OP_deref) {
        dereference(m, 8);
    } else if (op == OP_deref_size) {
        dereference(m, cursor_u8(c));
    } else if (op >= OP_dup && op <= OP_rot) {
        stack_operation(m, op, c);
    } else if (op == OP_abs || op == OP_neg || op == OP_not || op == OP_plus_uconst) {
        unary(m, op, c);
    } else if (is_binary(op)) {
        uint64_t b = pop(m), a = pop(m);
        push(m, binary(m, op, a, b));
    } else if (op == OP_bra || op == OP_skip) {
        int64_t distance = cursor_signed(c, 2);
        if (op == OP_skip || pop(m))
            jump(m, c, start, distance);
    } else if (op != OP_nop) {
        m->bad = true;
    }
}

bool cfi_evaluate(const struct cfi_context *context, const uint8_t *expression, size_t size,
                  bool has_cfa, uint64_t cfa, uint64_t *ret_value)
{
    struct machine m = {.context = context};
    struct cursor c = {expression, expression + size, false};
    if (has_cfa)
        push(&m, cfa);
    for (int steps = 0; c.at < c.end && !m.bad && !c.bad; steps++) {
        if (steps >= STEP_COUNT_MAX)
            return false;
        step(&m, &c, expression);
    }
    if (m.bad || c.bad || m.depth == 0)
        return false;
    *ret_value = m.stack[m.depth - 1];
    return true;
}
