/* SPDX-License-Identifier: MIT */
/* What a stack says: see places.h. */
#include "bill/places.h"
#include "base/memory.h"
#include "base/strings.h"

/* How names of the kernel's functions begin.  The innermost one that is listed counts. */
static const struct {
    const char *prefix;
    enum wait_kind kind;
} waits[] = {
    {"futex_", WAIT_LOCK},
    {"__futex_", WAIT_LOCK},
    {"rwsem_down", WAIT_KERNEL},
    {"down_read", WAIT_KERNEL},
    {"down_write", WAIT_KERNEL},
    {"__mutex_lock", WAIT_KERNEL},
    {"mutex_lock", WAIT_KERNEL},
    {"percpu_rwsem", WAIT_KERNEL},
    {"hrtimer_nanosleep", WAIT_SLEEP},
    {"do_nanosleep", WAIT_SLEEP},
    {"common_nsleep", WAIT_SLEEP},
    {"do_wait", WAIT_CHILD},
    {"kernel_wait4", WAIT_CHILD},
    {"wait_for_vfork_done", WAIT_CHILD},
    {"kernel_clone", WAIT_CHILD},
    {"pipe_", WAIT_PIPE},
    {"anon_pipe_", WAIT_PIPE},
    {"fifo_", WAIT_PIPE},
    {"wait_for_partner", WAIT_PIPE},
    {"unix_", WAIT_LOCAL},
    {"eventfd_", WAIT_LOCAL},
    {"tcp_", WAIT_NETWORK},
    {"udp_", WAIT_NETWORK},
    {"__skb_wait", WAIT_NETWORK},
    {"sk_wait_data", WAIT_NETWORK},
    {"sk_stream_wait", WAIT_NETWORK},
    {"inet_", WAIT_NETWORK},
    {"netlink_", WAIT_NETWORK},
    {"ep_poll", WAIT_POLL},
    {"do_epoll", WAIT_POLL},
    {"do_sys_poll", WAIT_POLL},
    {"do_poll", WAIT_POLL},
    {"poll_schedule", WAIT_POLL},
    {"do_select", WAIT_POLL},
    {"core_sys_select", WAIT_POLL},
    {"do_sigtimedwait", WAIT_POLL},
    {"sigsuspend", WAIT_POLL},
    {"n_tty_", WAIT_TERMINAL},
    {"tty_", WAIT_TERMINAL},
    {"io_schedule", WAIT_STORAGE},
    {"folio_wait", WAIT_STORAGE},
    {"__folio_lock", WAIT_STORAGE},
    {"wait_on_page", WAIT_STORAGE},
    {"filemap_", WAIT_STORAGE},
    {"submit_bio_wait", WAIT_STORAGE},
    {"blk_", WAIT_STORAGE},
    {"blkdev_", WAIT_STORAGE},
    {"bio_", WAIT_STORAGE},
    {"rq_qos_wait", WAIT_STORAGE},
    {"wbt_wait", WAIT_STORAGE},
    {"balance_dirty", WAIT_STORAGE},
    {"jbd2_", WAIT_STORAGE},
    {"ext4_", WAIT_STORAGE},
    {"xfs_", WAIT_STORAGE},
    {"btrfs_", WAIT_STORAGE},
    {"f2fs_", WAIT_STORAGE},
    {"nfs_", WAIT_STORAGE},
    {"nfs4_", WAIT_STORAGE},
    {"fuse_", WAIT_STORAGE},
    {"iomap_", WAIT_STORAGE},
    {"vfs_fsync", WAIT_STORAGE},
    {"do_fsync", WAIT_STORAGE},
    {"swap_read", WAIT_STORAGE},
};

enum wait_kind place_wait_kind(const char *function)
{
    for (size_t i = 0; i < ARRAY_COUNT(waits); i++)
        if (str_has_prefix(function, waits[i].prefix))
            return waits[i].kind;
    return WAIT_UNKNOWN;
}

static bool is_fault(const char *name)
{
    return str_has_prefix(name, "asm_exc_page_fault") || str_has_prefix(name, "exc_page_fault") ||
           str_has_prefix(name, "handle_mm_fault") || str_has_prefix(name, "do_user_addr_fault") ||
           str_has_prefix(name, "do_page_fault") || str_has_prefix(name, "do_translation_fault") ||
           str_has_prefix(name, "el0_da") || str_has_prefix(name, "el0_ia");
}

const char *place_call_name(const char *name)
{
    /* The last three are what an entry may end in: a tail call leaves no entry on the stack. */
    static const char *const prefixes[] = {"__x64_sys_",  "__arm64_sys_", "__riscv_sys_",
                                           "__ia32_sys_", "__se_sys_",    "__do_sys_",
                                           "ksys_",       "do_sys_",      "__sys_"};
    for (size_t i = 0; i < ARRAY_COUNT(prefixes); i++)
        if (str_has_prefix(name, prefixes[i]))
            return name + strlen(prefixes[i]);
    return NULL;
}

static bool takes_lock(const char *name)
{
    static const char *const prefixes[] = {
        "pthread_mutex_",    "__pthread_mutex_",     "___pthread_mutex_",
        "__lll_lock_",       "pthread_rwlock_",      "___pthread_rwlock",
        "pthread_spin_lock", "__GI___pthread_mutex", "__GI___lll_lock_wait"};
    for (size_t i = 0; i < ARRAY_COUNT(prefixes); i++)
        if (str_has_prefix(name, prefixes[i]))
            return true;
    return false;
}

static void look_at_kernel(struct place *place, const char *name)
{
    const char *call = place_call_name(name);
    place->in_fault |= is_fault(name);
    place->in_exit |= str_has_prefix(name, "do_exit") || str_has_prefix(name, "do_group_exit");
    place->call = call ? call : place->call;
    if (place->wait == WAIT_UNKNOWN)
        place->wait = place_wait_kind(name);
}

/* The C library and the loader: what they do, they do for their callers. */
static bool is_runtime(const char *dso)
{
    const char *slash = strrchr(dso, '/'), *name = slash ? slash + 1 : dso;
    return str_has_prefix(name, "libc.so") || str_has_prefix(name, "libc-") ||
           str_has_prefix(name, "libpthread") || str_has_prefix(name, "ld-") ||
           str_has_prefix(name, "libm.so") || str_has_prefix(name, "libstdc++") ||
           str_has_prefix(name, "libgcc_s.") || str_has_prefix(name, "[vdso]");
}

static bool is_loader(const char *dso)
{
    const char *slash = strrchr(dso, '/');
    return str_has_prefix(slash ? slash + 1 : dso, "ld-");
}

void place_find(struct place *place, const struct profile *profile, uint32_t node)
{
    const struct calls *c = &profile->calls;
    bool is_leaf = true;
    *place = (struct place){0};
    for (; node; node = c->nodes[node].parent) {
        uint32_t frame = c->nodes[node].frame;
        const struct profile_symbol *s = calls_symbol(c, frame);
        if (s->is_kernel) {
            const char *name = s->name ? s->name : "";
            place->in_kernel |= is_leaf;
            look_at_kernel(place, name);
            is_leaf = false;
            continue;
        }
        is_leaf = false;
        if (c->frames[frame].inlined)
            continue;
        const char *dso = calls_dso(c, frame), *name = s->name ? s->name : dso;
        place->wants_lock |= s->name && takes_lock(name);
        if (!place->function) {
            place->function = name;
            place->in_loader = is_loader(dso);
        } else if (!place->caller && s->name) {
            place->caller = name;
        }
        if (!place->program_function && s->name && !is_runtime(dso))
            place->program_function = name;
        if (place->caller && place->program_function)
            break;
    }
    /* Called by the program, the loader resolves a symbol or opens a library: its own doing. */
    place->in_loader &= !place->program_function;
    place->in_loader |= place->call && str_has_prefix(place->call, "execve");
}
