/* SPDX-License-Identifier: MIT */
/* What one stack says: see explain_stacks.h. */
#include "why/explain_stacks.h"

#include <string.h>

static bool has_any(const char *name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strstr(name, list[i]))
            return true;
    return false;
}

#define HAS_ANY(name, ...)                              \
    has_any((name), (const char *const[]){__VA_ARGS__}, \
            ARRAY_COUNT(((const char *const[]){__VA_ARGS__})))

/* A compiler turns the last call of __x64_sys_write into a jump: then what it jumps to is all that
 * is left of it on the stack. */
const char *part_syscall_name(const char *name)
{
    static const char *const prefixes[] = {"__x64_sys_",   "__arm64_sys_", "__riscv_sys_",
                                           "__s390x_sys_", "__se_sys_",    "__do_sys_",
                                           "ksys_",        "__sys_"};
    static const struct {
        const char *function, *call;
    } others[] = {{"do_writev", "writev"},         {"do_readv", "readv"},
                  {"do_pwritev", "pwritev"},       {"do_preadv", "preadv"},
                  {"do_sys_poll", "poll"},         {"do_sys_openat2", "openat"},
                  {"do_epoll_wait", "epoll_wait"}, {"do_futex", "futex"},
                  {"do_group_exit", "exit_group"}, {"do_execveat_common", "execve"},
                  {"kernel_clone", "clone"},       {"kernel_wait4", "wait4"},
                  {"vm_mmap_pgoff", "mmap"},       {"do_mprotect_pkey", "mprotect"}};
    for (size_t i = 0; i < ARRAY_COUNT(prefixes); i++)
        if (str_has_prefix(name, prefixes[i]))
            return name + strlen(prefixes[i]);
    size_t length = name_fold(name, strlen(name));
    for (size_t i = 0; i < ARRAY_COUNT(others); i++)
        if (strlen(others[i].function) == length && strncmp(name, others[i].function, length) == 0)
            return others[i].call;
    return NULL;
}

static void read_fault_frame(struct reading *r, const char *name)
{
    r->memory[FAULT_ANONYMOUS] |= HAS_ANY(name, "do_anonymous_page", "do_huge_pmd_anonymous",
                                          "alloc_anon_folio", "clear_page", "clear_huge_page");
    r->memory[FAULT_FILE] |= HAS_ANY(name, "do_read_fault", "do_shared_fault", "filemap_",
                                     "__do_fault", "map_pages", "shmem_fault");
    r->memory[FAULT_COPY] |= HAS_ANY(name, "do_wp_page", "wp_page_copy", "do_cow_fault");
    r->memory[FAULT_SWAP] |= HAS_ANY(name, "do_swap_page");
}

static void read_kernel_frame(struct reading *r, const char *name)
{
    read_fault_frame(r, name);
    const char *syscall = part_syscall_name(name);
    if (syscall) /* the outermost has the name that programs use */
        r->syscall = syscall;
    r->storage |= HAS_ANY(name, "io_schedule", "folio_wait", "blk_", "submit_bio", "jbd2",
                          "filemap_fault", "wait_on_page", "fsync", "writeback");
    r->peer |= HAS_ANY(name, "pipe_read", "pipe_write", "unix_stream", "unix_dgram", "unix_wait",
                       "tcp_recv", "tcp_send", "sk_wait", "skb_wait", "skb_recv", "sock_alloc_send",
                       "ep_poll", "do_epoll", "do_poll", "do_sys_poll", "poll_schedule",
                       "do_select", "eventfd_", "do_wait", "inet_csk_accept", "io_cqring_wait",
                       "wait_for_completion", "n_tty_read");
    r->sleep |= HAS_ANY(name, "nanosleep", "hrtimer_nanosleep");
    r->worker |= HAS_ANY(name, "io_wq_worker", "io_sq_thread");
    if (r->marked)
        return;
    r->fault = HAS_ANY(name, "exc_page_fault", "do_user_addr_fault", "handle_mm_fault",
                       "do_page_fault", "do_mem_abort", "do_translation_fault");
    r->interrupt = HAS_ANY(name, "asm_sysvec", "sysvec_", "common_interrupt", "irq_exit", "softirq",
                           "el1_interrupt", "el0_interrupt");
    r->entry = !syscall && HAS_ANY(name, "entry_SYSCALL", "do_syscall", "x64_sys_call",
                                   "syscall_exit", "syscall_enter", "el0_svc", "syscall_return");
    r->marked = syscall || r->fault || r->interrupt || r->entry;
}

static bool has_prefix_of(const char *name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_has_prefix(name, list[i]))
            return true;
    return false;
}

/* The C library and its like, by the names of their files. */
bool explain_is_system_library(const char *dso)
{
    static const char *const libraries[] = {"libc.so",      "libc-",     "libpthread", "ld-",
                                            "ld-linux.",    "ld.so",     "libm.so",    "libm-",
                                            "libstdc++.so", "libgcc_s.", "libc++",     "[vdso]"};
    return has_prefix_of(dso, libraries, ARRAY_COUNT(libraries));
}

/* Functions of the library that only lead into the kernel on somebody's behalf, in programs that
 * are linked with it statically, and what headers of C++ and Rust and the runtime of Go
 * bring along. */
static bool is_library_name(const char *name, bool is_static)
{
    static const char *const always[] = {
        "std::", "<std::", "core::", "<core::", "__gthread", "__gthr_", "__gnu_cxx::", "runtime."};
    static const char *const if_static[] = {"__", "pthread_", "sem_", "mtx_", "cnd_", "thrd_"};
    static const char *const calls[] = {"sleep", "usleep", "syscall", "clone", "clone3",
                                        "futex", "ppoll",  "pselect", "wait",  "waitpid"};
    if (has_prefix_of(name, always, ARRAY_COUNT(always)))
        return true;
    if (!is_static)
        return false;
    for (size_t i = 0; i < ARRAY_COUNT(calls); i++)
        if (str_eq(name, calls[i]))
            return true;
    return has_prefix_of(name, if_static, ARRAY_COUNT(if_static)) || explain_wrapped_call(name);
}

static void read_user_frame(struct reading *r, uint32_t node, uint32_t symbol, const char *name)
{
    const char *dso = r->calls->dsos.items[r->calls->symbols[symbol].dso];
    if (!r->user_node) {
        r->user_leaf = symbol;
        r->user_node = node;
    }
    if (!name || r->program)
        return;
    if (!explain_is_system_library(dso) && !is_library_name(name, r->is_static)) {
        r->program = node;
        return;
    }
    r->lock |= HAS_ANY(name, "lll_lock", "mutex_lock", "rwlock", "sem_wait", "sem_timed",
                       "spin_lock", "mtx_lock", "lock_contended");
    r->join |= HAS_ANY(name, "pthread_join", "clockjoin", "thrd_join", "cond_wait", "cond_timed",
                       "barrier_wait", "cnd_wait");
    r->join |= str_has_prefix(name, "runtime."); /* Go's threads wait for one another there */
}

bool explain_has_no_library(const struct calls *calls)
{
    for (size_t i = 0; i < calls->dsos.count; i++)
        if (explain_is_system_library(calls->dsos.items[i]) &&
            !str_eq(calls->dsos.items[i], "[vdso]"))
            return false;
    return true;
}

struct reading explain_read_stack(const struct calls *calls, uint32_t leaf, bool is_static)
{
    struct reading r = {.calls = calls, .user_leaf = IDTABLE_NONE, .is_static = is_static};
    r.in_kernel = leaf && calls_symbol(calls, calls->nodes[leaf].frame)->is_kernel;
    for (uint32_t node = leaf; node; node = calls->nodes[node].parent) {
        uint32_t symbol = calls->frames[calls->nodes[node].frame].symbol;
        const struct profile_symbol *s = &calls->symbols[symbol];
        if (!s->is_kernel)
            read_user_frame(&r, node, symbol, s->name);
        else if (s->name && !r.user_node)
            read_kernel_frame(&r, s->name);
    }
    return r;
}

/* Code that is inlined belongs to the function that has it; IDTABLE_NONE where none is known. */
uint32_t explain_owner_of(const struct reading *r)
{
    const struct calls *calls = r->calls;
    uint32_t node = r->program;
    while (node && calls->frames[calls->nodes[node].frame].inlined && calls->nodes[node].parent)
        node = calls->nodes[node].parent;
    return node ? calls->frames[calls->nodes[node].frame].symbol : IDTABLE_NONE;
}

const char *part_function_of(const struct calls *calls, uint32_t node)
{
    struct reading r = explain_read_stack(calls, node, explain_has_no_library(calls));
    uint32_t symbol = explain_owner_of(&r);
    return symbol == IDTABLE_NONE ? NULL : calls->symbols[symbol].name;
}
