/* SPDX-License-Identifier: MIT */
/* See guest.h: why a command did not start, or did not live, where the system's word misleads. */
#include "base/fd.h"
#include "base/memory.h"
#include "vm/guest_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

/* Opens what execvp would have started; -1: there is none. */
static int open_program(const char *name)
{
    const char *at = getenv("PATH");
    if (strchr(name, '/'))
        return open(name, O_RDONLY | O_CLOEXEC);
    while (at && *at) {
        char path[PATH_MAX];
        size_t length = strcspn(at, ":");
        snprintf(path, sizeof(path), "%.*s/%s", (int)length, at, name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0)
            return fd;
        at += length + (at[length] == ':');
    }
    return -1;
}

enum { ELF_START = 20, ELF_MACHINE_AT = 18 };

/* The start of an ELF file; false where it is none. */
static bool read_elf(int fd, unsigned char start[ELF_START])
{
    return read(fd, start, ELF_START) == ELF_START && memcmp(start, "\177ELF", 4) == 0;
}

const char *guest_exec_words(const char *name, int code)
{
    unsigned char start[ELF_START], own[ELF_START];
    CLEANUP(fd_closep) int fd = code == ENOENT || code == ENOEXEC ? open_program(name) : -1;
    CLEANUP(fd_closep) int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return strerror(code);
    if (!read_elf(fd, start))
        return "not an ELF program, and the machine has no shell or interpreters";
    if (read_elf(self, own) && memcmp(start + ELF_MACHINE_AT, own + ELF_MACHINE_AT, 2) != 0)
        return "for another processor than the machine's; cross-compile it";
    return "dynamically linked, but the machine has no libraries; link it with -static";
}

/* How many processes the kernel has killed for want of memory. */
static uint64_t oom_kills(void)
{
    uint64_t count = 0;
    char line[128];
    FILE *file = fopen("/proc/vmstat", "re");
    while (file && fgets(line, sizeof(line), file))
        if (str_has_prefix(line, "oom_kill "))
            count = strtoull(line + strlen("oom_kill "), NULL, 10);
    if (file)
        fclose(file);
    return count;
}

void guest_tell_death(const struct guest *g, int status)
{
    static uint64_t told;
    static const char words[] = "init: the machine ran out of memory, and its kernel killed the "
                                "command; --memory gives the machine more\n";
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        return;
    uint64_t kills = oom_kills();
    if (kills > told)
        guest_send(g, "err", words, strlen(words));
    told = kills;
}
