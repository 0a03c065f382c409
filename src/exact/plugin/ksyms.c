/* SPDX-License-Identifier: MIT */
/* See ksyms.h.  The names are those of Linux on x86_64, arch/x86/entry/entry_64.S. */
#include "ksyms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static bool starts(const char *name, const char *with)
{
    return *name == *with && strncmp(name, with, strlen(with)) == 0;
}

/* Exceptions with stacks of their own return in another way, and do not come in a machine like
 * this. */
static const char *const special[] = {"asm_exc_nmi", "asm_exc_debug", "asm_exc_machine_check",
                                      "asm_exc_double_fault", "asm_exc_vmm_communication"};

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Also with what a compiler adds: "p9_client_zc_rpc.constprop.0". */
static bool is_variant(const char *name, const char *of)
{
    if (*name != *of) /* nearly always, and a machine's start waits for a hundred thousand names */
        return false;
    size_t length = strlen(of);
    return starts(name, of) && (!name[length] || name[length] == '.') && !strstr(name, ".cold");
}

/* Asking the host for a file, which may be there at once or after a sleep; filling and emptying the
 * stocks of allocators and of random numbers, which all tasks share: that the one comes to it by
 * which a stock ends is chance; and giving way to another task, with what is due after it. */
static const char *const aside[] = {"p9_client_rpc",
                                    "p9_client_zc_rpc",
                                    "___slab_alloc",
                                    "__slab_free",
                                    "put_cpu_partial",
                                    "kmem_cache_free_bulk",
                                    "rmqueue_bulk",
                                    "free_pcppages_bulk",
                                    "folio_batch_move_lru",
                                    "pagevec_lru_move_fn",
                                    "get_random_u8",
                                    "get_random_u16",
                                    "get_random_u32",
                                    "get_random_u64",
                                    "preempt_schedule_common",
                                    "__rseq_handle_notify_resume",
                                    "mem_cgroup_handle_over_high",
                                    "blkcg_maybe_throttle_current",
                                    "switch_fpu_return"};

static enum ksym_kind kind_of(const char *name)
{
    static const char *const returning[] = {"common_interrupt_return",
                                            "swapgs_restore_regs_and_return_to_usermode",
                                            "restore_regs_and_return_to_kernel",
                                            "native_iret",
                                            "native_irq_return_iret",
                                            "native_irq_return_ldt"};
    static const char *const stubs[] = {"irq_entries_start", "spurious_entries_start"};
    if (starts(name, "__x64_sys_") || starts(name, "__ia32_sys_") ||
        starts(name, "__ia32_compat_sys_"))
        return KSYM_CALL;
    if (strcmp(name, "asm_common_interrupt") == 0 || starts(name, "asm_sysvec_") ||
        strcmp(name, "asm_spurious_interrupt") == 0)
        return KSYM_INTERRUPT;
    if (starts(name, "asm_exc_") && !is_one_of(name, special, COUNT(special)))
        return KSYM_EXCEPTION;
    if (strcmp(name, "error_return") == 0)
        return KSYM_RETURN;
    if (strcmp(name, "ret_from_fork") == 0 || strcmp(name, "ret_from_fork_asm") == 0)
        return KSYM_NEW;
    for (size_t i = 0; i < COUNT(aside); i++)
        if (is_variant(name, aside[i]))
            return KSYM_ASIDE;
    if (is_variant(name, "exit_to_user_mode_prepare") || is_variant(name, "exit_to_user_mode_loop"))
        return KSYM_YIELD;
    if (strcmp(name, "schedule") == 0)
        return KSYM_SCHEDULE;
    return is_one_of(name, returning, COUNT(returning)) ? KSYM_RETURNING
           : is_one_of(name, stubs, COUNT(stubs))       ? KSYM_STUB
                                                        : KSYM_NONE;
}

static void add(struct ksyms *k, uint64_t address, enum ksym_kind kind)
{
    if (k->count == k->capacity) {
        k->capacity = k->capacity ? 2 * k->capacity : 1 << 16;
        k->items = realloc(k->items, k->capacity * sizeof(*k->items));
        if (!k->items)
            abort();
    }
    k->items[k->count++] = (struct ksym){address, 0, kind};
}

/* Of several names of one place, that which says something comes first. */
static int by_address(const void *a, const void *b)
{
    const struct ksym *x = a, *y = b;
    return x->address != y->address ? (x->address > y->address ? 1 : -1)
                                    : (y->kind > x->kind) - (y->kind < x->kind);
}

/* One symbol an address, each of which ends where the next begins. */
static void settle(struct ksyms *k)
{
    size_t kept = 0;
    if (k->count)
        qsort(k->items, k->count, sizeof(*k->items), by_address);
    for (size_t i = 0; i < k->count; i++)
        if (!kept || k->items[kept - 1].address != k->items[i].address)
            k->items[kept++] = k->items[i];
    k->count = kept;
    for (size_t i = 0; i < kept; i++) {
        k->items[i].end = i + 1 < kept ? k->items[i + 1].address : k->items[i].address;
        if (k->items[i].address == k->switch_start)
            k->switch_end = k->items[i].end;
    }
}

/* "ffffffff81000000 T name" or "… t name	[module]": the address, and the name, which then
 * ends there; 0 for other lines. */
static uint64_t read_line(char *line, char **ret_name)
{
    char *at;
    uint64_t address = strtoull(line, &at, 16);
    if (at[0] != ' ' || !at[1] || at[2] != ' ')
        return 0;
    *ret_name = at + 3;
    at[3 + strcspn(at + 3, " \t\n")] = '\0';
    return address;
}

bool ksyms_read(struct ksyms *k, const char *path)
{
    char line[1024], *name;
    FILE *file = fopen(path, "re");
    bool returns = false, interrupts = false;
    while (file && fgets(line, sizeof(line), file)) {
        uint64_t address = read_line(line, &name);
        if (!(address >> 63))
            continue;
        enum ksym_kind kind = kind_of(name);
        if (strcmp(name, "__switch_to_asm") == 0)
            k->switch_start = address;
        returns |= kind == KSYM_RETURN;
        interrupts |= kind == KSYM_INTERRUPT;
        add(k, address, kind);
    }
    if (file)
        fclose(file);
    settle(k);
    return returns && interrupts && k->switch_start && k->switch_end;
}

enum ksym_kind ksyms_kind(const struct ksyms *k, uint64_t address, uint64_t *ret_function)
{
    size_t low = 0, high = k->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (k->items[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_function = 0;
    if (!low)
        return KSYM_NONE;
    const struct ksym *s = &k->items[low - 1];
    bool whole = s->kind == KSYM_RETURNING || s->kind == KSYM_STUB || s->kind >= KSYM_ASIDE;
    *ret_function = s->address;
    return s->address == address || (whole && address < s->end) ? s->kind : KSYM_NONE;
}
