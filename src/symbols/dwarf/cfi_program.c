/* SPDX-License-Identifier: MIT */
/* Programs of call frame information (DWARF 5, section 6.4.2): see cfi_program.h. */
#include "symbols/dwarf/cfi_program.h"

#include "base/memory.h"

#define SAVED_DEPTH_MAX 32
#define ROW_COUNT_MAX (1u << 16) /* of one function */
#define KIND_SAME 0xff           /* no rule */

enum {
    CFA_advance_loc = 0x40,
    CFA_offset = 0x80,
    CFA_restore = 0xc0,
    CFA_nop = 0x00,
    CFA_set_loc = 0x01,
    CFA_advance_loc1 = 0x02,
    CFA_advance_loc2 = 0x03,
    CFA_advance_loc4 = 0x04,
    CFA_offset_extended = 0x05,
    CFA_restore_extended = 0x06,
    CFA_undefined = 0x07,
    CFA_same_value = 0x08,
    CFA_register = 0x09,
    CFA_remember_state = 0x0a,
    CFA_restore_state = 0x0b,
    CFA_def_cfa = 0x0c,
    CFA_def_cfa_register = 0x0d,
    CFA_def_cfa_offset = 0x0e,
    CFA_def_cfa_expression = 0x0f,
    CFA_expression = 0x10,
    CFA_offset_extended_sf = 0x11,
    CFA_def_cfa_sf = 0x12,
    CFA_def_cfa_offset_sf = 0x13,
    CFA_val_offset = 0x14,
    CFA_val_offset_sf = 0x15,
    CFA_val_expression = 0x16,
    CFA_AARCH64_negate_ra_state = 0x2d,
    CFA_GNU_args_size = 0x2e,
    CFA_GNU_negative_offset_extended = 0x2f,
};

/* The rules as the program has them at some point. */
struct state {
    struct cfi_rule rules[CFI_REGISTER_COUNT]; /* kind KIND_SAME: none */
    struct cfi_row cfa;                        /* its cfa_… and ra_signed */
};

struct run {
    const struct cfi_cie *cie;
    struct state state, initial;
    struct state *saved;
    size_t saved_count, saved_capacity;
    uint64_t location; /* from the function's start */
    struct cfi_row *rows;
    size_t row_count, row_capacity;
    struct cfi_rule *rules;
    size_t rule_count, rule_capacity;
    bool bad;
};

static void set_rule(struct run *r, uint64_t reg, enum cfi_rule_kind kind, int64_t value)
{
    if (reg >= CFI_REGISTER_COUNT)
        return; /* a vector register: not followed */
    if (value < INT32_MIN || value > INT32_MAX)
        r->bad = true;
    r->state.rules[reg] =
        (struct cfi_rule){.reg = (uint8_t)reg, .kind = (uint8_t)kind, .value = (int32_t)value};
}

static const uint8_t *read_block(struct cursor *c, uint16_t *ret_size)
{
    uint64_t size = cursor_uleb(c);
    const uint8_t *at = c->at;
    if (size > UINT16_MAX)
        c->bad = true;
    cursor_skip(c, size);
    *ret_size = c->bad ? 0 : (uint16_t)size;
    return at;
}

static void set_expression(struct run *r, struct cursor *c, enum cfi_rule_kind kind)
{
    uint64_t reg = cursor_uleb(c);
    uint16_t size;
    const uint8_t *expression = read_block(c, &size);
    set_rule(r, reg, kind, 0);
    if (reg < CFI_REGISTER_COUNT) {
        r->state.rules[reg].expression = expression;
        r->state.rules[reg].expression_size = size;
    }
}

static void set_cfa(struct run *r, uint64_t reg, int64_t offset)
{
    if (reg >= CFI_REGISTER_COUNT || offset < INT32_MIN || offset > INT32_MAX)
        r->bad = true;
    r->state.cfa.cfa_register = (uint8_t)reg;
    r->state.cfa.cfa_offset = (int32_t)offset;
    r->state.cfa.cfa_expression_size = 0;
}

/* The rules so far hold from the last row's start on: they become that row. */
static void emit_row(struct run *r)
{
    if (r->row_count >= ROW_COUNT_MAX || r->location > UINT32_MAX) {
        r->bad = true;
        return;
    }
    struct cfi_row row = r->state.cfa;
    row.start = (uint32_t)r->location;
    row.first_rule = (uint32_t)r->rule_count;
    row.rule_count = 0;
    for (size_t i = 0; i < CFI_REGISTER_COUNT; i++) {
        if (r->state.rules[i].kind == KIND_SAME)
            continue;
        ARRAY_PUSH(r->rules, r->rule_count, r->rule_capacity) = r->state.rules[i];
        row.rule_count++;
    }
    ARRAY_PUSH(r->rows, r->row_count, r->row_capacity) = row;
}

static void advance(struct run *r, uint64_t delta)
{
    uint64_t step = delta * r->cie->code_align;
    if (step == 0)
        return;
    emit_row(r);
    if (r->location + step < r->location)
        r->bad = true;
    r->location += step;
}

static void remember(struct run *r)
{
    if (r->saved_count >= SAVED_DEPTH_MAX) {
        r->bad = true;
        return;
    }
    ARRAY_PUSH(r->saved, r->saved_count, r->saved_capacity) = r->state;
}

static void restore(struct run *r)
{
    if (r->saved_count == 0)
        r->bad = true;
    else
        r->state = r->saved[--r->saved_count];
}

static void restore_register(struct run *r, uint64_t reg)
{
    if (reg < CFI_REGISTER_COUNT)
        r->state.rules[reg] = r->initial.rules[reg];
}

/* Those with a register of their own. */
static void register_operation(struct run *r, struct cursor *c, uint8_t op)
{
    int64_t align = r->cie->data_align;
    uint64_t reg = cursor_uleb(c);
    int64_t value;
    switch (op) {
    case CFA_offset_extended:
    case CFA_val_offset:
        value = (int64_t)(cursor_uleb(c) * (uint64_t)align);
        set_rule(r, reg, op == CFA_val_offset ? CFI_IS_OFFSET : CFI_AT_OFFSET, value);
        break;
    case CFA_offset_extended_sf:
    case CFA_val_offset_sf:
        value = (int64_t)((uint64_t)cursor_sleb(c) * (uint64_t)align);
        set_rule(r, reg, op == CFA_val_offset_sf ? CFI_IS_OFFSET : CFI_AT_OFFSET, value);
        break;
    case CFA_GNU_negative_offset_extended:
        value = (int64_t)(0 - cursor_uleb(c) * (uint64_t)align);
        set_rule(r, reg, CFI_AT_OFFSET, value);
        break;
    case CFA_restore_extended:
        restore_register(r, reg);
        break;
    case CFA_undefined:
        set_rule(r, reg, CFI_UNDEFINED, 0);
        break;
    case CFA_same_value:
        if (reg < CFI_REGISTER_COUNT)
            r->state.rules[reg].kind = KIND_SAME;
        break;
    default: /* CFA_register */
        set_rule(r, reg, CFI_REGISTER, (int64_t)cursor_uleb(c));
        break;
    }
}

static void cfa_operation(struct run *r, struct cursor *c, uint8_t op)
{
    uint64_t reg = r->state.cfa.cfa_register;
    int64_t offset = r->state.cfa.cfa_offset, align = r->cie->data_align;
    if (op == CFA_def_cfa || op == CFA_def_cfa_sf || op == CFA_def_cfa_register)
        reg = cursor_uleb(c);
    if (op == CFA_def_cfa || op == CFA_def_cfa_offset)
        offset = (int64_t)cursor_uleb(c);
    else if (op == CFA_def_cfa_sf || op == CFA_def_cfa_offset_sf)
        offset = (int64_t)((uint64_t)cursor_sleb(c) * (uint64_t)align);
    set_cfa(r, reg, offset);
}

static void extended_operation(struct run *r, struct cursor *c, uint8_t op)
{
    switch (op) {
    case CFA_nop:
        break;
    case CFA_advance_loc1:
        advance(r, cursor_u8(c));
        break;
    case CFA_advance_loc2:
        advance(r, cursor_unsigned(c, 2));
        break;
    case CFA_advance_loc4:
        advance(r, cursor_unsigned(c, 4));
        break;
    case CFA_remember_state:
        remember(r);
        break;
    case CFA_restore_state:
        restore(r);
        break;
    case CFA_def_cfa:
    case CFA_def_cfa_sf:
    case CFA_def_cfa_register:
    case CFA_def_cfa_offset:
    case CFA_def_cfa_offset_sf:
        cfa_operation(r, c, op);
        break;
    case CFA_def_cfa_expression:
        r->state.cfa.cfa_expression = read_block(c, &r->state.cfa.cfa_expression_size);
        break;
    case CFA_expression:
        set_expression(r, c, CFI_AT_EXPRESSION);
        break;
    case CFA_val_expression:
        set_expression(r, c, CFI_IS_EXPRESSION);
        break;
    case CFA_AARCH64_negate_ra_state: /* on SPARC this number means a register window */
        r->state.cfa.ra_signed = !r->state.cfa.ra_signed;
        break;
    case CFA_GNU_args_size:
        cursor_uleb(c);
        break;
    case CFA_offset_extended:
    case CFA_restore_extended:
    case CFA_undefined:
    case CFA_same_value:
    case CFA_register:
    case CFA_offset_extended_sf:
    case CFA_val_offset:
    case CFA_val_offset_sf:
    case CFA_GNU_negative_offset_extended:
        register_operation(r, c, op);
        break;
    default: /* set_loc too: no compiler for these machines writes it */
        r->bad = true;
        break;
    }
}

static void run_program(struct run *r, const uint8_t *program, size_t size)
{
    struct cursor c = {program, program + size, false};
    while (c.at < c.end && !c.bad && !r->bad) {
        uint8_t byte = cursor_u8(&c), low = byte & 0x3f;
        switch (byte & 0xc0) {
        case CFA_advance_loc:
            advance(r, low);
            break;
        case CFA_offset:
            set_rule(r, low, CFI_AT_OFFSET,
                     (int64_t)(cursor_uleb(&c) * (uint64_t)r->cie->data_align));
            break;
        case CFA_restore:
            restore_register(r, low);
            break;
        default:
            extended_operation(r, &c, byte);
            break;
        }
    }
    r->bad = r->bad || c.bad;
}

/* One block: the struct, the rows, the rules. */
static struct cfi_rows *pack(const struct run *r)
{
    size_t rows_size = r->row_count * sizeof(*r->rows);
    size_t rules_size = r->rule_count * sizeof(*r->rules);
    struct cfi_rows *packed = memory_alloc(sizeof(*packed) + rows_size + rules_size);
    packed->rows = (struct cfi_row *)(packed + 1);
    packed->rules = (struct cfi_rule *)((char *)packed->rows + rows_size);
    packed->row_count = r->row_count;
    packed->valid_size = r->bad ? r->location : UINT64_MAX;
    if (rows_size)
        memcpy(packed->rows, r->rows, rows_size);
    if (rules_size)
        memcpy(packed->rules, r->rules, rules_size);
    return packed;
}

struct cfi_rows *cfi_program_run(const struct cfi_cie *cie, const uint8_t *program, size_t size)
{
    struct run r = {.cie = cie};
    for (size_t i = 0; i < CFI_REGISTER_COUNT; i++)
        r.state.rules[i].kind = KIND_SAME;
    run_program(&r, cie->program, cie->program_size);
    r.initial = r.state;
    r.location = 0;
    r.row_count = r.rule_count = 0; /* a CIE has no rows of its own */
    if (!r.bad) {
        run_program(&r, program, size);
        if (!r.bad)
            emit_row(&r);
    }
    struct cfi_rows *packed = pack(&r);
    free(r.saved);
    free(r.rows);
    free(r.rules);
    return packed;
}
