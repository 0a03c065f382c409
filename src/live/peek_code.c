/* SPDX-License-Identifier: MIT */
/* The eBPF programs of peek.h: see the kernel's Documentation/bpf/standardization. */
#include "live/peek_code.h"
#include "base/memory.h"

#include <stddef.h>
#include <sys/syscall.h>

enum { R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, FP };

/* What lies on the stack, below FP: the key of a map at -4, a size at -16. */
enum { CONTEXT_AT = -24, FAILED_AT = -32, PENDING_AT = -32 - (int)sizeof(struct peek_pending) };

static size_t emit(struct peek_code *c, unsigned code, unsigned to, unsigned from, int16_t offset,
                   int32_t constant)
{
    ARRAY_PUSH(c->items, c->count, c->capacity) = (struct bpf_insn){.code = (uint8_t)code,
                                                                    .dst_reg = to & 15,
                                                                    .src_reg = from & 15,
                                                                    .off = offset,
                                                                    .imm = constant};
    return c->count - 1;
}

static void move(struct peek_code *c, unsigned to, unsigned from)
{
    emit(c, BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0);
}

static void set(struct peek_code *c, unsigned to, int32_t constant)
{
    emit(c, BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, constant);
}

static void compute(struct peek_code *c, unsigned operation, unsigned to, int32_t constant)
{
    emit(c, BPF_ALU64 | operation | BPF_K, to, 0, 0, constant);
}

static void read_u64(struct peek_code *c, unsigned to, unsigned from, int16_t offset)
{
    emit(c, BPF_LDX | BPF_MEM | BPF_DW, to, from, offset, 0);
}

static void call(struct peek_code *c, int32_t function)
{
    emit(c, BPF_JMP | BPF_CALL, 0, 0, 0, function);
}

/* A jump whose goal is set later by land(). */
static size_t jump_if(struct peek_code *c, unsigned condition, unsigned what, int32_t constant)
{
    return emit(c, BPF_JMP | condition | BPF_K, what, 0, 0, constant);
}

static void land(struct peek_code *c, size_t jump)
{
    c->items[jump].off = (int16_t)(c->count - jump - 1);
}

/* R0 = the map's value for the number at FP-4. */
static void look_up(struct peek_code *c, int map_fd)
{
    move(c, R2, FP);
    compute(c, BPF_ADD, R2, -4);
    emit(c, BPF_LD | BPF_DW | BPF_IMM, R1, BPF_PSEUDO_MAP_FD, 0, map_fd);
    emit(c, 0, 0, 0, 0, 0);
    call(c, BPF_FUNC_map_lookup_elem);
}

static void store_key(struct peek_code *c, unsigned from)
{
    emit(c, BPF_STX | BPF_MEM | BPF_W, FP, from, -4, 0);
}

/* R3 = the argument whose number + 1 is in R1, R4 = the one behind it. */
static void choose_argument(struct peek_code *c)
{
    size_t found[CALL_ARGUMENTS];
    for (int16_t i = 0; i < CALL_ARGUMENTS; i++) {
        size_t other = jump_if(c, BPF_JNE, R1, i + 1);
        read_u64(c, R3, R6, (int16_t)(16 + 8 * i));
        if (i + 1 < CALL_ARGUMENTS)
            read_u64(c, R4, R6, (int16_t)(16 + 8 * (i + 1)));
        else
            set(c, R4, 0);
        found[i] = emit(c, BPF_JMP | BPF_JA, 0, 0, 0, 0);
        land(c, other);
    }
    set(c, R3, 0);
    set(c, R4, 0);
    for (unsigned i = 0; i < CALL_ARGUMENTS; i++)
        land(c, found[i]);
}

/* Reads one argument's memory: R6 the context, R8 the shape, R9 the output. */
static void emit_slot(struct peek_code *c, unsigned slot)
{
    int32_t bytes = (int32_t)(offsetof(struct peek_output, bytes) + slot * CALL_TEXT_MAX);
    int16_t size = (int16_t)(offsetof(struct peek_output, sizes) + slot * sizeof(uint32_t));
    move(c, R1, R8);
    compute(c, BPF_RSH, R1, (int32_t)(16 * slot));
    compute(c, BPF_AND, R1, 255);
    size_t none = jump_if(c, BPF_JEQ, R1, 0);
    choose_argument(c);
    move(c, R5, R8);
    compute(c, BPF_RSH, R5, (int32_t)(16 * slot + 8));
    compute(c, BPF_AND, R5, 255);
    size_t no_text = jump_if(c, BPF_JNE, R5, CALL_PATH);
    move(c, R1, R9);
    compute(c, BPF_ADD, R1, bytes);
    set(c, R2, CALL_TEXT_MAX);
    call(c, BPF_FUNC_probe_read_user_str);
    size_t bad_text = jump_if(c, BPF_JSLT, R0, 1);
    emit(c, BPF_STX | BPF_MEM | BPF_W, R9, R0, size, 0);
    size_t done = emit(c, BPF_JMP | BPF_JA, 0, 0, 0, 0);
    land(c, no_text);
    size_t has_length = jump_if(c, BPF_JNE, R5, CALL_TIMESPEC);
    set(c, R4, 16);
    land(c, has_length);
    size_t short_enough = jump_if(c, BPF_JLE, R4, PEEK_BYTES);
    set(c, R4, PEEK_BYTES);
    land(c, short_enough);
    emit(c, BPF_STX | BPF_MEM | BPF_DW, FP, R4, -16, 0);
    move(c, R1, R9);
    compute(c, BPF_ADD, R1, bytes);
    move(c, R2, R4);
    call(c, BPF_FUNC_probe_read_user);
    size_t bad_bytes = jump_if(c, BPF_JNE, R0, 0);
    read_u64(c, R4, FP, -16);
    emit(c, BPF_STX | BPF_MEM | BPF_W, R9, R4, size, 0);
    size_t read = emit(c, BPF_JMP | BPF_JA, 0, 0, 0, 0);
    land(c, bad_text);
    land(c, bad_bytes);
    emit(c, BPF_ST | BPF_MEM | BPF_DW, FP, 0, FAILED_AT, 1);
    land(c, none);
    land(c, done);
    land(c, read);
}

/* Reads what the arguments at R6 point to and gives it away: R7 the call's number.  Jumps to leave
 * it are added to outs. */
static void emit_reading(struct peek_code *c, const struct peek_maps *maps, size_t *outs,
                         size_t *count)
{
    store_key(c, R7);
    look_up(c, maps->shapes_fd);
    outs[(*count)++] = jump_if(c, BPF_JEQ, R0, 0);
    emit(c, BPF_LDX | BPF_MEM | BPF_W, R8, R0, 0, 0);
    outs[(*count)++] = jump_if(c, BPF_JEQ, R8, 0);
    set(c, R1, 0);
    store_key(c, R1);
    look_up(c, maps->buffer_fd);
    outs[(*count)++] = jump_if(c, BPF_JEQ, R0, 0);
    move(c, R9, R0);
    emit(c, BPF_STX | BPF_MEM | BPF_DW, R9, R7, offsetof(struct peek_output, number), 0);
    emit(c, BPF_ST | BPF_MEM | BPF_DW, R9, 0, offsetof(struct peek_output, sizes), 0);
    emit(c, BPF_ST | BPF_MEM | BPF_DW, FP, 0, FAILED_AT, 0);
    for (unsigned slot = 0; slot < PEEK_SLOTS; slot++)
        emit_slot(c, slot);
    read_u64(c, R1, FP, CONTEXT_AT);
    emit(c, BPF_LD | BPF_DW | BPF_IMM, R2, BPF_PSEUDO_MAP_FD, 0, maps->output_fd);
    emit(c, 0, 0, 0, 0, 0);
    emit(c, BPF_ALU | BPF_MOV | BPF_K, R3, 0, 0, -1); /* BPF_F_CURRENT_CPU: 32 bits */
    move(c, R4, R9);
    set(c, R5, sizeof(struct peek_output));
    call(c, BPF_FUNC_perf_event_output);
}

/* R1 = the map, R2 = the key at FP-4. */
static void set_map_and_key(struct peek_code *c, int map_fd)
{
    emit(c, BPF_LD | BPF_DW | BPF_IMM, R1, BPF_PSEUDO_MAP_FD, 0, map_fd);
    emit(c, 0, 0, 0, 0, 0);
    move(c, R2, FP);
    compute(c, BPF_ADD, R2, -4);
}

/* Remembers the call for its return; not one whose memory is gone then. */
static void emit_pending(struct peek_code *c, const struct peek_maps *maps)
{
    size_t outs[3];
    read_u64(c, R1, FP, FAILED_AT);
    outs[0] = jump_if(c, BPF_JEQ, R1, 0);
    outs[1] = jump_if(c, BPF_JEQ, R7, SYS_execve);
    outs[2] = jump_if(c, BPF_JEQ, R7, SYS_execveat);
    for (int16_t at = 0; at < (int16_t)sizeof(struct peek_pending); at += 8) {
        if (at)
            read_u64(c, R1, R6, at);
        else
            set(c, R1, 0);
        emit(c, BPF_STX | BPF_MEM | BPF_DW, FP, R1, (int16_t)(PENDING_AT + at), 0);
    }
    call(c, BPF_FUNC_get_current_pid_tgid);
    store_key(c, R0);
    set_map_and_key(c, maps->pending_fd);
    move(c, R3, FP);
    compute(c, BPF_ADD, R3, PENDING_AT);
    set(c, R4, BPF_ANY);
    call(c, BPF_FUNC_map_update_elem);
    for (unsigned i = 0; i < ARRAY_COUNT(outs); i++)
        land(c, outs[i]);
}

static void emit_end(struct peek_code *c)
{
    set(c, R0, 1); /* else other users of the tracepoint would see nothing */
    emit(c, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

void peek_code_enter(struct peek_code *c, const struct peek_maps *maps, bool everywhere)
{
    size_t outs[5], count = 0;
    move(c, R6, R1);
    emit(c, BPF_STX | BPF_MEM | BPF_DW, FP, R1, CONTEXT_AT, 0);
    read_u64(c, R7, R6, 8); /* the call's number */
    outs[count++] = jump_if(c, BPF_JGT, R7, PEEK_NUMBERS - 1);
    if (!everywhere) {
        call(c, BPF_FUNC_get_current_pid_tgid);
        store_key(c, R0);
        look_up(c, maps->followed_fd);
        outs[count++] = jump_if(c, BPF_JEQ, R0, 0);
    }
    emit_reading(c, maps, outs, &count);
    emit_pending(c, maps);
    while (count > 0)
        land(c, outs[--count]);
    emit_end(c);
}

void peek_code_exit(struct peek_code *c, const struct peek_maps *maps)
{
    size_t outs[5], count = 0;
    emit(c, BPF_STX | BPF_MEM | BPF_DW, FP, R1, CONTEXT_AT, 0);
    read_u64(c, R8, R1, 8); /* the call's number */
    call(c, BPF_FUNC_get_current_pid_tgid);
    store_key(c, R0);
    look_up(c, maps->pending_fd);
    size_t none = jump_if(c, BPF_JEQ, R0, 0);
    move(c, R6, R0);
    read_u64(c, R7, R6, offsetof(struct peek_pending, number));
    size_t other = emit(c, BPF_JMP | BPF_JNE | BPF_X, R7, R8, 0, 0);
    emit_reading(c, maps, outs, &count);
    while (count > 0)
        land(c, outs[--count]);
    land(c, other);
    call(c, BPF_FUNC_get_current_pid_tgid);
    store_key(c, R0);
    set_map_and_key(c, maps->pending_fd);
    call(c, BPF_FUNC_map_delete_elem);
    land(c, none);
    emit_end(c);
}

void peek_code_fork(struct peek_code *c, const struct peek_maps *maps, int16_t child_offset)
{
    move(c, R6, R1);
    call(c, BPF_FUNC_get_current_pid_tgid);
    store_key(c, R0);
    look_up(c, maps->followed_fd);
    size_t out = jump_if(c, BPF_JEQ, R0, 0);
    emit(c, BPF_LDX | BPF_MEM | BPF_W, R1, R6, child_offset, 0);
    store_key(c, R1);
    emit(c, BPF_ST | BPF_MEM | BPF_W, FP, 0, -8, 1);
    emit(c, BPF_LD | BPF_DW | BPF_IMM, R1, BPF_PSEUDO_MAP_FD, 0, maps->followed_fd);
    emit(c, 0, 0, 0, 0, 0);
    move(c, R2, FP);
    compute(c, BPF_ADD, R2, -4);
    move(c, R3, FP);
    compute(c, BPF_ADD, R3, -8);
    set(c, R4, BPF_ANY);
    call(c, BPF_FUNC_map_update_elem);
    land(c, out);
    emit_end(c);
}

void peek_code_done(struct peek_code *c)
{
    free(c->items);
    *c = (struct peek_code){0};
}
