/* SPDX-License-Identifier: MIT */
/* See machine.h. */
#include "machine.h"
#include "exact/machine_format.h"
#include "ksyms.h"
#include "qemu.h"
#include "vm/marker.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    HASHES = MACHINE_BLOCKS * 2,
    TASKS = 4096,    /* that are told apart */
    LOG_MAX = 8192,  /* blocks of a new task until it is known what it is */
    NESTED_MAX = 16, /* interrupts and exceptions in each other */
    PAGE = 4096,
};

enum owner { OWNER_UNKNOWN, OWNER_COMMAND, OWNER_OTHER };

/* One of the guest's. */
struct task {
    uint64_t id; /* where its stack pointer is kept */
    enum owner owner;
    uint64_t pending; /* kernel instructions since it came from user mode, until its way is known */
    uint16_t entry;   /* its way into the kernel, 0 while it is not known */
    uint8_t depth, interrupts;
    bool is_leaving; /* the innermost of them is about to return */
    /* A function whose work is not the command's: where it begins, how often it has called itself,
     * and whether it returns.  0 for none. */
    uint64_t aside;
    uint32_t aside_depth;
    bool aside_ends;
    bool yields;                /* the last block was of a function that lets others run */
    uint8_t nested[NESTED_MAX]; /* 1 for an interrupt */
    uint32_t *log;              /* numbers of blocks */
    uint32_t log_count;
};

/* What the plugin knows of a block beside the file. */
struct extra {
    uint8_t kind; /* enum ksym_kind */
    bool returns; /* from its function, where that matters */
    uint16_t entry;
    uint64_t function;
};

static char *base;
static uint32_t *hashes; /* block number + 1, 0 for none */
static struct extra *extras;
static struct ksyms ksyms;
static struct task tasks[TASKS]; /* a hash table */
static struct task first_task, *current = &first_task;
static bool awaits_load; /* of the stack pointer of the task that is switched to */
static uint64_t user_total, user_seen;

static struct machine_head *head(void)
{
    return (struct machine_head *)base;
}

static struct machine_block *blocks(void)
{
    return (struct machine_block *)(base + MACHINE_BLOCKS_AT);
}

static uint64_t *counts(void)
{
    return (uint64_t *)(base + MACHINE_COUNTS_AT);
}

/* ---- tasks ---- */

/* A table that is full takes the last one for all that do not fit. */
static struct task *task_of(uint64_t id)
{
    size_t at = (size_t)(id * 0x9e3779b97f4a7c15ULL >> 40) % TASKS;
    for (size_t tries = 0; tries < TASKS; tries++, at = (at + 1) % TASKS) {
        if (tasks[at].id == id)
            return &tasks[at];
        if (!tasks[at].id) {
            tasks[at].id = id;
            return &tasks[at];
        }
    }
    return &tasks[at];
}

static void add_kernel(struct task *t, uint32_t block)
{
    uint32_t instructions = blocks()[block].instructions;
    struct machine_head *h = head();
    if (t->interrupts) {
        h->interrupts += instructions;
        return;
    }
    if (t->aside) {
        h->aside += instructions;
        return;
    }
    counts()[block]++;
    h->kernel += instructions;
    if (t->entry)
        h->entries[t->entry].instructions += instructions;
    else
        t->pending += instructions;
}

/* A task that has run in user mode is the command's, and so is what the kernel did to start it. */
static void adopt(struct task *t)
{
    t->owner = OWNER_COMMAND;
    head()->tasks++;
    for (uint32_t i = 0; i < t->log_count; i++)
        add_kernel(t, t->log[i]);
    t->log_count = 0;
}

static void give_up(struct task *t)
{
    for (uint32_t i = 0; i < t->log_count; i++)
        head()->others += blocks()[t->log[i]].instructions;
    t->log_count = 0;
    t->owner = OWNER_OTHER;
}

static void log_block(struct task *t, uint32_t block)
{
    if (!t->log)
        t->log = malloc(LOG_MAX * sizeof(*t->log));
    if (!t->log || t->log_count == LOG_MAX) {
        give_up(t);
        head()->others += blocks()[block].instructions;
        return;
    }
    t->log[t->log_count++] = block;
}

static void count_kernel(struct task *t, uint32_t block)
{
    if (t->owner == OWNER_COMMAND)
        add_kernel(t, block);
    else if (t->owner == OWNER_UNKNOWN)
        log_block(t, block);
    else
        head()->others += blocks()[block].instructions;
}

static void end_aside(struct task *t)
{
    t->aside = 0;
    t->aside_depth = 0;
    t->aside_ends = t->yields = false;
}

/* The instructions in user mode since the kernel ran last were the current task's. */
static void settle_user(struct task *t)
{
    uint64_t added = user_total - user_seen;
    user_seen = user_total;
    t->depth = t->interrupts = 0;
    t->is_leaving = false;
    end_aside(t);
    if (t->owner == OWNER_UNKNOWN)
        adopt(t);
    if (t->owner == OWNER_COMMAND)
        head()->user += added;
    head()->entries[0].instructions += t->pending;
    t->pending = 0;
    t->entry = 0;
}

static void enter(struct task *t, bool is_interrupt)
{
    if (t->depth == NESTED_MAX)
        return;
    t->nested[t->depth++] = is_interrupt;
    t->interrupts = (uint8_t)(t->interrupts + is_interrupt);
}

static void leave(struct task *t)
{
    t->is_leaving = false;
    if (t->depth)
        t->interrupts = (uint8_t)(t->interrupts - t->nested[--t->depth]);
}

/* The way into the kernel is known from here on. */
static void take_entry(struct task *t, uint16_t entry)
{
    if (t->entry || t->interrupts || !entry)
        return;
    t->entry = entry;
    head()->entries[entry].instructions += t->pending;
    t->pending = 0;
}

/* It may call itself, and be interrupted. */
static void follow_aside(struct task *t, const struct extra *e, uint64_t address)
{
    if (t->interrupts || (t->aside && t->aside != e->function))
        return;
    if (address == e->function) {
        t->aside = e->function;
        t->aside_depth++;
    }
    t->aside_ends = t->aside && e->returns && --t->aside_depth == 0;
}

/* ---- what QEMU calls while the machine runs ---- */

/* What a block means for the task that executes it. */
static void follow(struct task *t, const struct extra *e, uint64_t address)
{
    bool yields = t->yields;
    if (t->is_leaving && e->kind != KSYM_RETURNING)
        leave(t);
    if (t->aside_ends)
        end_aside(t);
    t->yields = e->kind == KSYM_YIELD && !t->interrupts;
    switch (e->kind) {
    case KSYM_INTERRUPT:
        enter(t, true);
        break;
    case KSYM_EXCEPTION:
        enter(t, false);
        take_entry(t, e->entry);
        break;
    case KSYM_CALL:
        take_entry(t, e->entry);
        break;
    case KSYM_RETURN:
        t->is_leaving = true;
        break;
    case KSYM_NEW: /* its place may have been another task's */
        if (t->owner == OWNER_OTHER)
            t->owner = OWNER_UNKNOWN;
        t->depth = t->interrupts = 0;
        end_aside(t);
        break;
    case KSYM_ASIDE:
        follow_aside(t, e, address);
        break;
    case KSYM_SCHEDULE:
        if (yields || t->aside == e->function)
            follow_aside(t, e, address);
        break;
    default:
        break;
    }
}

static void on_kernel_block(unsigned vcpu, void *context)
{
    (void)vcpu;
    uint32_t block = (uint32_t)(uintptr_t)context;
    struct task *t = current;
    if (head()->state != MACHINE_COUNTING)
        return;
    if (user_total != user_seen)
        settle_user(t);
    follow(t, &extras[block], blocks()[block].address);
    if (extras[block].kind == KSYM_STUB)
        head()->interrupts += blocks()[block].instructions;
    else
        count_kernel(t, block);
}

static void on_kernel_rest(unsigned vcpu, void *context)
{
    (void)vcpu;
    if (head()->state == MACHINE_COUNTING && current->owner == OWNER_COMMAND) {
        head()->kernel += (uint64_t)(uintptr_t)context;
        head()->kernel_rest += (uint64_t)(uintptr_t)context;
    }
}

static void on_switch(unsigned vcpu, void *context)
{
    (void)vcpu, (void)context;
    awaits_load = true;
}

/* The first load of the function that switches is that of the next task's stack pointer. */
static void on_access(unsigned vcpu, uint32_t info, uint64_t address, void *context)
{
    (void)vcpu, (void)context;
    if (!awaits_load || qemu_plugin_mem_is_store(info))
        return;
    current = task_of(address);
    awaits_load = false;
}

/* Executed by the process that becomes the command. */
static void on_begin(unsigned vcpu, void *context)
{
    (void)vcpu, (void)context;
    struct machine_head *h = head();
    for (size_t i = 0; i < TASKS; i++)
        if (tasks[i].id && &tasks[i] != current)
            tasks[i].owner = OWNER_OTHER;
    memset(counts(), 0, h->block_count * sizeof(uint64_t));
    for (size_t i = 0; i < MACHINE_ENTRIES; i++)
        h->entries[i].instructions = 0;
    h->user = h->kernel = h->interrupts = h->aside = h->others = h->user_rest = h->kernel_rest = 0;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    h->began_at_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    h->tasks = 1;
    current->owner = OWNER_COMMAND;
    current->pending = 0;
    current->entry = 0;
    user_seen = user_total;
    h->state = MACHINE_COUNTING;
}

static void on_end(unsigned vcpu, void *context)
{
    (void)vcpu, (void)context;
    struct machine_head *h = head();
    if (h->state != MACHINE_COUNTING)
        return;
    for (size_t i = 0; i < TASKS; i++) {
        h->entries[0].instructions += tasks[i].owner == OWNER_COMMAND ? tasks[i].pending : 0;
        tasks[i].pending = 0;
    }
    memcpy(base + MACHINE_FINAL_AT, counts(), h->block_count * sizeof(uint64_t));
    h->state = MACHINE_COUNTED;
}

/* QEMU without inline additions. */
static void on_user_block(unsigned vcpu, void *context)
{
    (void)vcpu;
    uint32_t block = (uint32_t)(uintptr_t)context;
    counts()[block]++;
    user_total += blocks()[block].instructions;
}

static void on_user_rest(unsigned vcpu, void *context)
{
    (void)vcpu;
    user_total += (uint64_t)(uintptr_t)context;
    head()->user_rest += (uint64_t)(uintptr_t)context;
}

/* ---- translation ---- */

static uint64_t hash_of(const struct machine_block *b)
{
    uint64_t words[2];
    memcpy(words, b->bytes, sizeof(words));
    uint64_t h = b->address * 0x9e3779b97f4a7c15ULL ^ (uint64_t)b->instructions << 48;
    h = (h ^ words[0]) * 0xff51afd7ed558ccdULL;
    h = (h ^ h >> 31 ^ words[1]) * 0xc4ceb9fe1a85ec53ULL;
    return h >> 33;
}

/* The number of a way into the kernel; 0 when there are too many. */
static uint16_t entry_of(uint64_t address)
{
    struct machine_head *h = head();
    for (uint32_t i = 1; i < h->entry_count; i++)
        if (h->entries[i].address == address)
            return (uint16_t)i;
    if (h->entry_count == MACHINE_ENTRIES)
        return 0;
    h->entries[h->entry_count].address = address;
    return (uint16_t)h->entry_count++;
}

/* Its last instruction leaves the function: a return, or a jump to another one. */
static bool returns(struct qemu_plugin_tb *tb, uint32_t instructions, uint64_t function)
{
    struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, instructions - 1);
    const uint8_t *code = qemu_plugin_insn_haddr(insn);
    int32_t distance;
    if (!code)
        return false;
    if (code[0] == 0xc3)
        return true;
    if (code[0] != 0xe9 || qemu_plugin_insn_size(insn) != 5)
        return false;
    memcpy(&distance, code + 1, sizeof(distance));
    uint64_t there, target = qemu_plugin_insn_vaddr(insn) + 5 + (uint64_t)distance;
    ksyms_kind(&ksyms, target, &there);
    return there != function;
}

/* Its number, the same for the same block; -1 when there is no room. */
static int number_of(const struct machine_block *b, struct qemu_plugin_tb *tb)
{
    struct machine_head *h = head();
    uint64_t at = hash_of(b) % HASHES;
    for (; hashes[at]; at = (at + 1) % HASHES)
        if (memcmp(&blocks()[hashes[at] - 1], b, sizeof(*b)) == 0)
            return (int)hashes[at] - 1;
    if (h->block_count == MACHINE_BLOCKS)
        return -1;
    uint64_t function;
    enum ksym_kind kind = ksyms_kind(&ksyms, b->address, &function);
    uint32_t number = h->block_count;
    blocks()[number] = *b;
    extras[number] = (struct extra){
        .kind = (uint8_t)kind,
        .returns = kind >= KSYM_ASIDE && returns(tb, b->instructions, function),
        .entry = kind == KSYM_CALL || kind == KSYM_EXCEPTION ? entry_of(b->address) : 0,
        .function = function};
    hashes[at] = number + 1;
    h->block_count++;
    return (int)number;
}

static void count_user(struct qemu_plugin_tb *tb, int number, uint32_t instructions)
{
    void *context = (void *)(uintptr_t)(number < 0 ? instructions : (uint32_t)number);
    if (!qemu_plugin_register_vcpu_tb_exec_inline || number < 0) {
        qemu_plugin_register_vcpu_tb_exec_cb(tb, number < 0 ? on_user_rest : on_user_block, 0,
                                             context);
        return;
    }
    qemu_plugin_register_vcpu_tb_exec_inline(tb, 0, counts() + number, 1);
    qemu_plugin_register_vcpu_tb_exec_inline(tb, 0, &user_total, instructions);
}

/* Instructions of assay's process that say what happens (vm/marker.h). */
static void find_markers(struct qemu_plugin_tb *tb, uint32_t instructions)
{
    static const uint8_t begin[] = MARKER_CODE(MARKER_BEGIN), end[] = MARKER_CODE(MARKER_END);
    for (uint32_t i = 0; i < instructions; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        const uint8_t *code = qemu_plugin_insn_haddr(insn);
        if (!code || qemu_plugin_insn_size(insn) != MARKER_BYTES)
            continue;
        if (memcmp(code, begin, sizeof(begin)) == 0)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, on_begin, 0, NULL);
        else if (memcmp(code, end, sizeof(end)) == 0)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, on_end, 0, NULL);
    }
}

static void find_switch(struct qemu_plugin_tb *tb, uint64_t address, uint32_t instructions)
{
    if (address == ksyms.switch_start)
        qemu_plugin_register_vcpu_tb_exec_cb(tb, on_switch, 0, NULL);
    for (uint32_t i = 0; i < instructions; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uint64_t at = qemu_plugin_insn_vaddr(insn);
        if (at >= ksyms.switch_start && at < ksyms.switch_end)
            qemu_plugin_register_vcpu_mem_cb(insn, on_access, 0, QEMU_MEM_ALL, NULL);
    }
}

static void on_translate(uint64_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    struct machine_block b = {.address = qemu_plugin_tb_vaddr(tb),
                              .instructions = (uint32_t)qemu_plugin_tb_n_insns(tb)};
    const uint8_t *code = qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(tb, 0));
    size_t room = PAGE - b.address % PAGE;
    if (code)
        memcpy(b.bytes, code, room < MACHINE_BYTES ? room : MACHINE_BYTES);
    int number = number_of(&b, tb);
    if (!(b.address >> 63)) {
        count_user(tb, number, b.instructions);
        find_markers(tb, b.instructions);
        return;
    }
    qemu_plugin_register_vcpu_tb_exec_cb(
        tb, number < 0 ? on_kernel_rest : on_kernel_block, 0,
        (void *)(uintptr_t)(number < 0 ? b.instructions : (uint32_t)number));
    if (b.address < ksyms.switch_end && b.address + PAGE > ksyms.switch_start)
        find_switch(tb, b.address, b.instructions);
}

static void *reserve(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

bool machine_open(uint64_t id, const char *path, const char *symbols)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0 && ftruncate(fd, MACHINE_FILE_BYTES) == 0)
        base = mmap(NULL, MACHINE_FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    hashes = reserve(HASHES * sizeof(*hashes));
    extras = reserve(MACHINE_BLOCKS * sizeof(*extras));
    if (!base || base == MAP_FAILED || !hashes || !extras) {
        fprintf(stderr, "assay's plugin cannot count in %s\n", path);
        return false;
    }
    if (!ksyms_read(&ksyms, symbols)) {
        fprintf(stderr,
                "assay's plugin does not know this kernel: %s lacks symbols that it needs\n",
                symbols);
        return false;
    }
    *head() = (struct machine_head){.magic = MACHINE_MAGIC, .entry_count = 1};
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
    return true;
}
