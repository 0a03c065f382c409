/* SPDX-License-Identifier: MIT */
/*
 * Where a program's start ends: the loader maps libraries, sets up the first thread's memory
 * (set_tid_address, set_robust_list, rseq), protects what need not be written any more, and is
 * done.  The first call that no loader makes, or none makes any more at that point, is the
 * program's own; what came before the loader's last call was the start.  This is a rule of thumb
 * (glibc and musl follow it): a program whose own first calls are the same counts them as its
 * start.
 */
#include "timeline/timeline.h"

#include <sys/syscall.h>

enum loading_phase { LOADED, MAPS_LIBRARIES, PROTECTS };

static bool maps_libraries(int64_t call)
{
    switch (call) {
    case SYS_brk:
    case SYS_mmap:
    case SYS_munmap:
    case SYS_mprotect:
    case SYS_openat:
    case SYS_read:
    case SYS_pread64:
    case SYS_close:
    case SYS_fstat:
    case SYS_newfstatat:
    case SYS_faccessat:
    case SYS_readlinkat:
    case SYS_uname:
#ifdef SYS_arch_prctl
    case SYS_open:
    case SYS_access:
    case SYS_arch_prctl:
#endif
        return true;
    default:
        return false;
    }
}

static bool sets_up_thread(int64_t call)
{
    return call == SYS_set_tid_address || call == SYS_set_robust_list;
}

static bool protects(int64_t call)
{
    switch (call) {
    case SYS_mprotect:
    case SYS_munmap:
    case SYS_prlimit64:
    case SYS_rseq:
    case SYS_getrandom:
        return true;
    default:
        return sets_up_thread(call);
    }
}

void timeline_begins_to_load(struct timeline_thread *thread)
{
    thread->loading = MAPS_LIBRARIES;
    thread->now.is_start = true;
    thread->loaded_ns = thread->now.start_ns;
}

void timeline_loads(struct timeline_thread *thread, int64_t call)
{
    if (thread->loading == MAPS_LIBRARIES && sets_up_thread(call))
        thread->loading = PROTECTS;
    if (thread->loading == LOADED || (thread->loading == MAPS_LIBRARIES && maps_libraries(call)) ||
        (thread->loading == PROTECTS && protects(call)))
        return;
    thread->loading = LOADED;
    thread->now.is_start = false;
    for (size_t i = thread->piece_count;
         i-- > 0 && thread->pieces[i].start_ns >= thread->loaded_ns && thread->pieces[i].is_start;)
        thread->pieces[i].is_start = false;
}
