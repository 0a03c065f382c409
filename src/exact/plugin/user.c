/* SPDX-License-Identifier: MIT */
/*
 * The plugin for QEMU's user mode: counts how often each block of code is executed, and system
 * calls by number, into the files that format.h describes.  It makes what the program draws from
 * getrandom(2) and /dev/urandom the same in each run, and follows the programs that it executes
 * (follow.h).
 *
 * One thread counts by an addition that QEMU puts into the translated code.  Such additions are not
 * atomic: before a second thread starts, QEMU translates everything anew, and from then on a call
 * for each block adds atomically, mostly in a table of the thread's own.
 */
#include "user.h"
#include "follow.h"
#include "qemu.h"
#include "table.h"

#include <elf.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { RESTARTED = -512 }; /* a call that a signal interrupted, and that is made again */

/* The system calls that matter here, and their numbers (Linux:
 * arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h). */
enum call {
    CALL_OTHER,
    CALL_EXECVE,
    CALL_EXECVEAT,
    CALL_CLONE,
    CALL_CLONE3,
    CALL_GETRANDOM,
    CALL_OPENAT,
    CALL_READ,
    CALL_CLOSE,
    CALL_MMAP,
    CALL_MUNMAP,
    CALL_MREMAP,
};
static const struct {
    enum call call;
    short x86_64, arm64;
} numbers[] = {
    {CALL_EXECVE, 59, 221},  {CALL_EXECVEAT, 322, 281},  {CALL_CLONE, 56, 220},
    {CALL_CLONE3, 435, 435}, {CALL_GETRANDOM, 318, 278}, {CALL_OPENAT, 257, 56},
    {CALL_READ, 0, 63},      {CALL_CLOSE, 3, 57},        {CALL_MMAP, 9, 222},
    {CALL_MUNMAP, 11, 215},  {CALL_MREMAP, 25, 216},
};
static unsigned char call_of[512]; /* by number: an enum call */

static __thread uint64_t random_at; /* where the call that is being made puts its bytes */
static __thread bool opens_random, starts_thread;
static unsigned char random_files[1024]; /* by descriptor: one of /dev/urandom and /dev/random */
static uint64_t random_state = 0x853c49e6748fea9bULL;

static void count_block(unsigned vcpu, void *context)
{
    uint64_t *count = table_count(vcpu, (int)(uintptr_t)context);
    if (table_is_shared())
        __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
    else
        ++*count;
}

static void count_rest(unsigned vcpu, void *context)
{
    (void)vcpu;
    __atomic_fetch_add(&table_head()->rest, (uint64_t)(uintptr_t)context, __ATOMIC_RELAXED);
}

static void on_translate(uint64_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    uint64_t address = qemu_plugin_tb_vaddr(tb);
    uint32_t instructions = (uint32_t)qemu_plugin_tb_n_insns(tb);
    void *host = qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(tb, 0));
    if (host)
        follow_set_shift((uint64_t)(uintptr_t)host - address);
    uint64_t shift = follow_shift();
    int block = table_block(address, instructions, table_module(address + shift, shift));
    if (block == TABLE_FULL)
        qemu_plugin_register_vcpu_tb_exec_cb(tb, count_rest, 0, (void *)(uintptr_t)instructions);
    else if (qemu_plugin_register_vcpu_tb_exec_inline && !table_is_shared())
        qemu_plugin_register_vcpu_tb_exec_inline(tb, 0, table_count(0, block), 1);
    else
        qemu_plugin_register_vcpu_tb_exec_cb(tb, count_block, 0, (void *)(uintptr_t)block);
}

static uint64_t *call_count(int64_t number)
{
    int64_t last = EXACT_CALLS - 1;
    return &table_head()->calls[number < 0 || number > last ? last : number];
}

static enum call call_by(int64_t number)
{
    return number >= 0 && number < (int64_t)sizeof(call_of) ? call_of[number] : CALL_OTHER;
}

static void on_clone(uint64_t flags)
{
    starts_thread = flags & CLONE_VM && !(flags & CLONE_VFORK);
    if (starts_thread)
        table_share();
}

static bool is_random_device(uint64_t path)
{
    char name[16] = "";
    struct iovec from = {(void *)(uintptr_t)(path + follow_shift()), sizeof("/dev/urandom")};
    struct iovec here = {name, sizeof("/dev/urandom")};
    return process_vm_readv(getpid(), &here, 1, &from, 1, 0) > 0 &&
           (strncmp(name, "/dev/urandom", sizeof("/dev/urandom")) == 0 ||
            strncmp(name, "/dev/random", sizeof("/dev/random")) == 0);
}

static bool is_random_file(uint64_t fd)
{
    return fd < sizeof(random_files) && random_files[fd];
}

static uint64_t flags_of_clone3(uint64_t arguments)
{
    uint64_t flags = 0;
    struct iovec from = {(void *)(uintptr_t)(arguments + follow_shift()), sizeof(flags)};
    struct iovec here = {&flags, sizeof(flags)};
    process_vm_readv(getpid(), &here, 1, &from, 1, 0);
    return flags;
}

static void on_call(uint64_t id, unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2,
                    uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8)
{
    (void)id, (void)vcpu, (void)a6, (void)a7, (void)a8;
    __atomic_fetch_add(call_count(number), 1, __ATOMIC_RELAXED);
    switch (call_by(number)) {
    case CALL_EXECVE:
        follow_exec(-100, a1, a2, a3, 0); /* AT_FDCWD */
        break;
    case CALL_EXECVEAT:
        follow_exec((int)a1, a2, a3, a4, (int)a5);
        break;
    case CALL_CLONE:
        on_clone(a1);
        break;
    case CALL_CLONE3:
        on_clone(flags_of_clone3(a1));
        break;
    case CALL_GETRANDOM:
        random_at = a1;
        break;
    case CALL_OPENAT:
        opens_random = is_random_device(a2);
        break;
    case CALL_READ:
        random_at = is_random_file(a1) ? a2 : 0;
        break;
    case CALL_CLOSE:
        if (is_random_file(a1))
            random_files[a1] = 0;
        break;
    case CALL_MMAP:
    case CALL_MUNMAP:
    case CALL_MREMAP:
        table_maps_changed();
        break;
    default:
        break;
    }
}

/* SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014). */
static uint64_t next_random(void)
{
    uint64_t z = __atomic_add_fetch(&random_state, 0x9e3779b97f4a7c15ULL, __ATOMIC_RELAXED);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
    return z ^ z >> 31;
}

static void put_random(uint64_t address, size_t length)
{
    unsigned char *to = (unsigned char *)(uintptr_t)(address + follow_shift());
    for (size_t i = 0; i < length; i += 8) {
        uint64_t word = next_random();
        memcpy(to + i, &word, length - i < 8 ? length - i : 8);
    }
}

static void on_return(uint64_t id, unsigned vcpu, int64_t number, int64_t result)
{
    enum call call = call_by(number);
    (void)id, (void)vcpu;
    if (result == RESTARTED)
        __atomic_fetch_sub(call_count(number), 1, __ATOMIC_RELAXED);
    if ((call == CALL_GETRANDOM || call == CALL_READ) && random_at && result > 0)
        put_random(random_at, (size_t)result);
    if (call == CALL_OPENAT && result >= 0 && (size_t)result < sizeof(random_files))
        random_files[result] = opens_random;
    random_at = 0;
    if ((call == CALL_CLONE || call == CALL_CLONE3) && starts_thread && result > 0)
        __atomic_fetch_add(&table_head()->threads, 1, __ATOMIC_RELAXED);
    if (call == CALL_MMAP || call == CALL_MUNMAP || call == CALL_MREMAP)
        table_maps_changed();
}

bool user_open(uint64_t id, const char *folder, uint16_t machine)
{
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        call_of[machine == EM_AARCH64 ? numbers[i].arm64 : numbers[i].x86_64] =
            (unsigned char)numbers[i].call;
    if (!table_open(folder) || !follow_open(machine)) {
        fprintf(stderr, "assay's plugin cannot create its file in %s\n", folder);
        return false;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
    qemu_plugin_register_vcpu_syscall_cb(id, on_call);
    qemu_plugin_register_vcpu_syscall_ret_cb(id, on_return);
    return true;
}
