/* SPDX-License-Identifier: MIT */
/*
 * Unwinding of this process's own stacks, compared with backtrace(), which follows the same rules
 * in the living process.  Where the machine can, that is done after every single instruction of a
 * piece of code that goes through prologues, epilogues, the PLT and the C library.
 */
#include "symbols/unwind.h"
#include "base/memory.h"
#include "symbols/addrspace.h"
#include "symbols/dwarf/cfi.h"
#include "test.h"

#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define FRAMES_MAX 64
#define STACK_BYTES (64u << 10)

static struct symbols *symbols;
static struct processes *processes;
static const struct addrspace *space;
static uint64_t stack_end;

/* Builds the address space of this process from what the kernel says of it. */
static void read_maps(void)
{
    if (symbols)
        return;
    symbols = symbols_new(&(struct symbols_options){.no_cache = true});
    processes = processes_new(symbols);
    FILE *file = fopen("/proc/self/maps", "r");
    char line[4096];
    while (file && fgets(line, sizeof(line), file)) {
        unsigned long long start, end, offset;
        char flags[5], path[4096] = "";
        if (sscanf(line, "%llx-%llx %4s %llx %*s %*s %4095[^\n]", &start, &end, flags, &offset,
                   path) < 4)
            continue;
        if (strstr(path, "[stack]"))
            stack_end = end;
        if (flags[2] != 'x')
            continue;
        struct process_map map = {
            .start = start, .length = end - start, .offset = offset, .path = path};
        processes_map(processes, getpid(), &map);
    }
    if (file)
        fclose(file);
    space = processes_space(processes, getpid(), 0);
}

__attribute__((destructor)) static void done(void)
{
    processes_free(processes);
    symbols_free(symbols);
}

static bool registers_of(const ucontext_t *context, struct unwind_registers *r)
{
#if defined(__x86_64__)
    static const int order[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    *r = (struct unwind_registers){.arch = UNWIND_X86_64, .known = (1ull << 17) - 1};
    for (size_t i = 0; i < ARRAY_COUNT(order); i++)
        r->values[i] = (uint64_t)context->uc_mcontext.gregs[order[i]];
    return true;
#elif defined(__aarch64__)
    *r = (struct unwind_registers){.arch = UNWIND_AARCH64, .known = (1ull << 33) - 1};
    for (size_t i = 0; i < 31; i++)
        r->values[i] = context->uc_mcontext.regs[i];
    r->values[31] = context->uc_mcontext.sp;
    r->values[32] = context->uc_mcontext.pc;
    return true;
#else
    (void)context, (void)r;
    return false;
#endif
}

static uint64_t stack_copy[STACK_BYTES / 8];
static size_t copied;

/* As the kernel does: what lies above the stack pointer.  The sanitizers' own marks on the stack
 * are read as well. */
__attribute__((no_sanitize("address"))) static void copy_stack(const struct unwind_registers *r)
{
    const volatile uint64_t *from = (const uint64_t *)(uintptr_t)(unwind_registers_sp(r) & ~7ull);
    copied = 0;
    while (copied < STACK_BYTES && (uint64_t)(uintptr_t)from < stack_end) {
        stack_copy[copied / 8] = *from++;
        copied += 8;
    }
}

static size_t unwind_context(const ucontext_t *context, struct unwind_frame *frames,
                             enum unwind_end *end)
{
    struct unwind_registers r;
    if (!registers_of(context, &r))
        return 0;
    copy_stack(&r);
    return unwind_user(space, &r, stack_copy, copied, frames, FRAMES_MAX, end);
}

static ucontext_t here;
static void *expected[FRAMES_MAX];
static int expected_count;

/* Under a sanitizer backtrace() has a frame of its own in front: the callers are compared. */
static void check_expected(const struct unwind_frame *frames, size_t count)
{
    size_t truth = (size_t)expected_count;
    CHECK(count > 1 && count <= truth && count + 1 >= truth);
    for (size_t i = 1; i < count && i < truth; i++)
        CHECK(frames[count - i].ip == (uint64_t)(uintptr_t)expected[truth - i]);
}

static const char *name_of(struct location location)
{
    struct symbols_request r = {.location = location};
    symbols_resolve(symbols, &r, 1, SYMBOLS_NAMES);
    return r.frames[0].function ? r.frames[0].function->name : "??";
}

TEST(a_stack_is_unwound_as_backtrace_does)
{
    struct unwind_frame frames[FRAMES_MAX];
    enum unwind_end end;
    struct unwind_registers r;
    read_maps();
    getcontext(&here);
    if (!registers_of(&here, &r)) {
        test_skip("neither x86-64 nor aarch64");
        return;
    }
    expected_count = backtrace(expected, FRAMES_MAX);
    size_t count = unwind_context(&here, frames, &end);
    check_expected(frames, count);
    CHECK_INT(end, UNWIND_OUTERMOST);
    CHECK_STR(name_of(frames[0].location), "a_stack_is_unwound_as_backtrace_does");
    CHECK_STR(name_of(frames[1].location), "main");
}

/* Functions that stay what they are written as. */
#ifdef __clang__
#define PLAIN __attribute__((noinline, optnone))
#else
#define PLAIN __attribute__((noipa))
#endif

static PLAIN int copying(int value)
{
    struct unwind_registers r;
    getcontext(&here);
    expected_count = backtrace(expected, FRAMES_MAX);
    if (registers_of(&here, &r))
        copy_stack(&r);
    return value + 1;
}

static PLAIN int calls_copying(int value)
{
    return copying(value) + 1;
}

TEST(a_copied_stack_that_is_cut_says_so)
{
    struct unwind_frame frames[FRAMES_MAX];
    struct unwind_registers r;
    enum unwind_end end;
    read_maps();
    CHECK(calls_copying(1) > 0);
    if (!registers_of(&here, &r)) {
        test_skip("neither x86-64 nor aarch64");
        return;
    }
    size_t whole = unwind_user(space, &r, stack_copy, copied, frames, FRAMES_MAX, &end);
    check_expected(frames, whole);
    CHECK_STR(name_of(frames[0].location), "copying");
    CHECK_STR(name_of(frames[1].location), "calls_copying");
    size_t last = 1;
    for (size_t size = 0; size < copied; size += 8) {
        size_t count = unwind_user(space, &r, stack_copy, size, frames, FRAMES_MAX, &end);
        CHECK(count >= last && count <= whole);
        CHECK(end == UNWIND_STACK_CUT || count == whole);
        last = count;
    }
    CHECK_INT(unwind_user(space, &r, stack_copy, copied, frames, 2, &end), 2);
    CHECK_INT(end, UNWIND_LIMIT);
}

TEST(nonsense_does_no_harm)
{
    struct unwind_frame frames[FRAMES_MAX];
    struct unwind_registers r = {.arch = UNWIND_X86_64, .known = (1ull << 17) - 1};
    enum unwind_end end;
    uint64_t stack[64];
    uint32_t seed = 3;
    read_maps();
    for (int round = 0; round < 20000; round++) {
        for (size_t i = 0; i < ARRAY_COUNT(stack); i++) {
            seed = seed * 1103515245u + 12345u;
            /* Addresses of code, of the stack, and anything. */
            stack[i] = seed % 3 == 0   ? (uint64_t)(uintptr_t)&read_maps + (seed >> 8 & 0xfff)
                       : seed % 3 == 1 ? 0x7000 + (seed >> 8 & 0x1ff)
                                       : (uint64_t)seed * seed;
        }
        for (size_t i = 0; i < 17; i++)
            r.values[i] = stack[(i * 7 + (size_t)round) % 64];
        r.values[7] = 0x7000;
        size_t count = unwind_user(space, &r, stack, sizeof(stack), frames, FRAMES_MAX, &end);
        CHECK(count >= 1 && count <= FRAMES_MAX);
    }
}

TEST(registers_as_perf_gives_them)
{
    struct unwind_registers r;
    uint64_t values[33];
    for (uint64_t i = 0; i < 33; i++)
        values[i] = 100 + i;
    /* x86: ax bx cx dx si di bp sp ip flags cs ss, then r8 to r15 from bit 16 on. */
    CHECK(unwind_registers_from_perf(&r, UNWIND_X86_64, 2, 0xff0fff, values, 20));
    CHECK_INT(r.values[0], 100);
    CHECK_INT(r.values[3], 101);
    CHECK_INT(r.values[1], 103);
    CHECK_INT(unwind_registers_sp(&r), 107);
    CHECK_INT(unwind_registers_pc(&r), 108);
    CHECK_INT(r.values[8], 112);
    CHECK_INT(r.values[15], 119);
    CHECK_INT(r.known, 0x1ffff);
    CHECK(!unwind_registers_from_perf(&r, UNWIND_X86_64, 1, 0xff0fff, values, 20));
    CHECK(!unwind_registers_from_perf(&r, UNWIND_X86_64, 2, 0xff0fff, values, 7));
    CHECK(unwind_registers_from_perf(&r, UNWIND_AARCH64, 2, 0x1ffffffff, values, 33));
    CHECK_INT(unwind_registers_sp(&r), 131);
    CHECK_INT(unwind_registers_pc(&r), 132);
}

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)

#define TRAP_FLAG 0x100
#define STEPS_MAX 12000
#define STEP_STACK_BYTES (8u << 10)

/* The handler runs within any instruction, malloc's as well: it only takes down what it sees. */
struct step_record {
    struct unwind_registers registers;
    void *truth[FRAMES_MAX];
    int depth;
    size_t stack_size;
    uint64_t stack[STEP_STACK_BYTES / 8];
};

static struct step_record *records;
static volatile size_t record_count;

/* backtrace() sees this handler and the trampoline below what was interrupted. */
static void on_step(int number, siginfo_t *info, void *argument)
{
    ucontext_t *context = argument;
    (void)number, (void)info;
    struct step_record *r = &records[record_count++];
    registers_of(context, &r->registers);
    r->depth = backtrace(r->truth, FRAMES_MAX);
    copy_stack(&r->registers);
    r->stack_size = copied < sizeof(r->stack) ? copied : sizeof(r->stack);
    memcpy(r->stack, stack_copy, r->stack_size);
    if (record_count >= STEPS_MAX)
        context->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

/* Whether a step is unwound as backtrace() did it.  Returns how many frames there are. */
static size_t check_step(const struct step_record *r)
{
    struct unwind_frame frames[FRAMES_MAX];
    enum unwind_end end;
    uint64_t pc = unwind_registers_pc(&r->registers);
    size_t count =
        unwind_user(space, &r->registers, r->stack, r->stack_size, frames, FRAMES_MAX, &end);
    int skip = 0;
    while (skip < r->depth && (uint64_t)(uintptr_t)r->truth[skip] != pc)
        skip++;
    bool same = skip < r->depth && count == (size_t)(r->depth - skip);
    for (size_t i = 0; same && i < count; i++)
        same = frames[i].ip == (uint64_t)(uintptr_t)r->truth[skip + (int)i];
    if (!same)
        test_fail(__FILE__, __LINE__, "at %llx: %zu frames, end %d; backtrace has %d below %d",
                  (unsigned long long)pc, count, (int)end, r->depth - skip, skip);
    return count;
}

static void set_stepping(int number, siginfo_t *info, void *argument)
{
    ucontext_t *context = argument;
    (void)info;
    if (number == SIGUSR1)
        context->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
    else
        context->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

static int compare_numbers(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static PLAIN int recurse(int depth, int *numbers)
{
    char text[64];
    if (depth > 0)
        return recurse(depth - 1, numbers) + 1;
    qsort(numbers, 20, sizeof(*numbers), compare_numbers);
    snprintf(text, sizeof(text), "%d %s %.3f", numbers[0], "text", 1.5);
    void *block = malloc(100);
    free(block);
    return (int)strlen(text);
}

TEST(every_instruction_is_unwound_as_backtrace_does)
{
    struct sigaction step = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    struct sigaction set = {.sa_sigaction = set_stepping, .sa_flags = SA_SIGINFO};
    struct sigaction old_trap, old_one, old_two;
    int numbers[20];
    read_maps();
    for (int i = 0; i < 20; i++)
        numbers[i] = i * 7919 % 101;
    expected_count = backtrace(expected, FRAMES_MAX); /* loads what it needs now */
    records = mmap(NULL, STEPS_MAX * sizeof(*records), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (records == MAP_FAILED) {
        test_skip("no memory for the steps");
        return;
    }
    sigaction(SIGTRAP, &step, &old_trap);
    sigaction(SIGUSR1, &set, &old_one);
    sigaction(SIGUSR2, &set, &old_two);
    raise(SIGUSR1);
    CHECK(recurse(5, numbers) > 0);
    raise(SIGUSR2);
    sigaction(SIGTRAP, &old_trap, NULL);
    sigaction(SIGUSR1, &old_one, NULL);
    sigaction(SIGUSR2, &old_two, NULL);
    if (record_count == 0)
        test_skip("the machine does not single-step");
    size_t deepest = 0;
    for (size_t i = 0; i < record_count; i++) {
        size_t count = check_step(&records[i]);
        deepest = count > deepest ? count : deepest;
    }
    CHECK(record_count == 0 || (record_count > 1000 && deepest > 8));
    munmap(records, STEPS_MAX * sizeof(*records));
}

static PLAIN void in_handler(int number)
{
    (void)number;
    copying(1);
}

TEST(a_signal_handler_is_unwound_through)
{
    struct unwind_frame frames[FRAMES_MAX];
    struct unwind_registers r;
    enum unwind_end end;
    struct sigaction action = {.sa_handler = in_handler}, old;
    read_maps();
    sigaction(SIGUSR1, &action, &old);
    raise(SIGUSR1);
    sigaction(SIGUSR1, &old, NULL);
    registers_of(&here, &r);
    size_t count = unwind_user(space, &r, stack_copy, copied, frames, FRAMES_MAX, &end);
    CHECK_INT(end, UNWIND_OUTERMOST);
    CHECK_INT(count, expected_count);
    bool met = false;
    for (size_t i = 0; i < count; i++)
        met = met || str_eq(name_of(frames[i].location), "a_signal_handler_is_unwound_through");
    CHECK(met);
}

#endif
