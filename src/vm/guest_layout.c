/* SPDX-License-Identifier: MIT */
/*
 * Mappings for a program that has just begun: see guest_internal.h.
 *
 * How many mappings a process has decides what a change of them costs (docs/VM.md), and nobody
 * chooses that number.  The program stops at its first instruction (ptrace(2)), where a system call
 * is put, made as often as wanted, and taken away again.
 */
#include "base/process.h"
#include "base/strings.h"
#include "vm/guest.h"
#include "vm/guest_internal.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

enum { PAGE_BYTES = 4096 };

#if defined(__aarch64__)
#define SYSTEM_CALL 0xd4000001UL /* svc #0 */
#define SYSTEM_CALL_MASK 0xffffffffUL

static unsigned long program_counter(const struct user_regs_struct *r)
{
    return r->pc;
}

static void set_call(struct user_regs_struct *r, const unsigned long *arguments)
{
    r->regs[8] = SYS_mmap;
    for (size_t i = 0; i < 6; i++)
        r->regs[i] = arguments[i];
}

static long result_of(const struct user_regs_struct *r)
{
    return (long)r->regs[0];
}
#elif defined(__x86_64__)
#define SYSTEM_CALL 0x050fUL /* syscall */
#define SYSTEM_CALL_MASK 0xffffUL

static unsigned long program_counter(const struct user_regs_struct *r)
{
    return r->rip;
}

static void set_call(struct user_regs_struct *r, const unsigned long *arguments)
{
    r->orig_rax = (unsigned long)-1;
    r->rax = SYS_mmap;
    r->rdi = arguments[0];
    r->rsi = arguments[1];
    r->rdx = arguments[2];
    r->r10 = arguments[3];
    r->r8 = arguments[4];
    r->r9 = arguments[5];
}

static long result_of(const struct user_regs_struct *r)
{
    return (long)r->rax;
}
#endif

#ifdef SYSTEM_CALL
static bool registers(int request, pid_t pid, struct user_regs_struct *r)
{
    struct iovec part = {.iov_base = r, .iov_len = sizeof(*r)};
    return ptrace(request, pid, (void *)NT_PRSTATUS, &part) == 0;
}

/* To the next stop of the system call, its beginning or its end. */
static bool go_on(pid_t pid)
{
    int status;
    if (ptrace(PTRACE_SYSCALL, pid, NULL, NULL) != 0)
        return false;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return WIFSTOPPED(status);
}

/* Neighbours differ in what is allowed, so that the kernel does not make one of them. */
static bool map_one(pid_t pid, const struct user_regs_struct *start, size_t index)
{
    const unsigned long arguments[6] = {0,
                                        PAGE_BYTES,
                                        index % 2 ? PROT_READ : PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS,
                                        (unsigned long)-1,
                                        0};
    struct user_regs_struct now = *start;
    set_call(&now, arguments);
    if (!registers(PTRACE_SETREGSET, pid, &now) || !go_on(pid) || !go_on(pid) ||
        !registers(PTRACE_GETREGSET, pid, &now))
        return false;
    long result = result_of(&now);
    errno = result < 0 && result > -PAGE_BYTES ? (int)-result : 0;
    return errno == 0;
}

static bool map_all(pid_t pid, size_t count)
{
    struct user_regs_struct start;
    if (!registers(PTRACE_GETREGSET, pid, &start))
        return false;
    void *place = (void *)program_counter(&start);
    errno = 0;
    long text = ptrace(PTRACE_PEEKTEXT, pid, place, NULL);
    if (errno)
        return false;
    long call = (long)(((unsigned long)text & ~SYSTEM_CALL_MASK) | SYSTEM_CALL);
    if (ptrace(PTRACE_POKETEXT, pid, place, (void *)call) != 0)
        return false;
    bool good = true;
    for (size_t i = 0; good && i < count; i++)
        good = map_one(pid, &start, i);
    return good && ptrace(PTRACE_POKETEXT, pid, place, (void *)text) == 0 &&
           registers(PTRACE_SETREGSET, pid, &start);
}
#else
static bool map_all(pid_t pid, size_t count)
{
    (void)pid, (void)count;
    errno = ENOTSUP;
    return false;
}
#endif

bool guest_layout_ask(void)
{
    return ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0;
}

bool guest_layout_give(pid_t pid, size_t mapping_count)
{
    siginfo_t info = {0};
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WSTOPPED | WNOWAIT) < 0)
        if (errno != EINTR)
            return false;
    if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED)
        return true; /* it has not even begun: that is told elsewhere */
    int status;
    waitpid(pid, &status, 0);
    bool good = map_all(pid, mapping_count);
    int code = errno;
    good = ptrace(PTRACE_DETACH, pid, NULL, NULL) == 0 && good;
    errno = code ? code : errno;
    return good;
}

bool vm_guest_is_with_mappings(char *const *argv)
{
    return argv[0] && str_eq(argv[0], VM_WITH_MAPPINGS) && argv[1] && argv[2];
}

int vm_guest_with_mappings(char *const *argv)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        if (guest_layout_ask())
            execvp(argv[2], argv + 2);
        _exit(127);
    }
    if (pid < 0 || !guest_layout_give(pid, strtoul(argv[1], NULL, 10))) {
        fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
        return 125;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return process_exit_code(status);
}
