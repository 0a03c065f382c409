/* SPDX-License-Identifier: MIT */
/*
 * Who runs an experiment.  A process is known by its host, its boot, its PID namespace, its number
 * and the time it started, so that neither a reboot nor a reused number makes a dead one alive.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/strings.h"
#include "store/store_internal.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* An owner on another host or in another PID namespace is believed dead after this long. */
#define SILENCE_NS (600 * NS_PER_S)

struct owner {
    char host[65];
    char boot[40];
    unsigned long namespace;
    long pid;
    unsigned long long start;
};

/* The 22nd field of /proc/PID/stat; the second, the name, may hold blanks and brackets. */
static bool process_start(long pid, unsigned long long *ret_start)
{
    char path[64], line[1024];
    snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
    if (!file_read_line(path, line, sizeof(line)))
        return false;
    const char *p = strrchr(line, ')');
    for (int field = 2; p && field < 22; field++)
        p = strchr(p + 1, ' ');
    return p && sscanf(p, "%llu", ret_start) == 1;
}

static void find_self(struct owner *o)
{
    *o = (struct owner){.pid = getpid()};
    if (gethostname(o->host, sizeof(o->host) - 1) < 0 || !o->host[0])
        strcpy(o->host, "?");
    for (char *c = o->host; *c; c++)
        if (*c == ' ')
            *c = '_';
    if (!file_read_line("/proc/sys/kernel/random/boot_id", o->boot, sizeof(o->boot)))
        strcpy(o->boot, "?");
    struct stat s;
    if (stat("/proc/self/ns/pid", &s) == 0)
        o->namespace = s.st_ino;
    process_start(o->pid, &o->start);
}

void store_owner_self(char *text, size_t size)
{
    struct owner o;
    find_self(&o);
    snprintf(text, size, "%s %s %lu %ld %llu", o.host, o.boot, o.namespace, o.pid, o.start);
}

bool store_owner_alive(const char *text, uint64_t updated_at_ns)
{
    struct owner o = {0}, self;
    if (sscanf(text, "%64s %39s %lu %ld %llu", o.host, o.boot, &o.namespace, &o.pid, &o.start) != 5)
        return false;
    find_self(&self);
    bool same_boot = str_eq(o.boot, self.boot);
    if (same_boot && o.namespace == self.namespace) {
        unsigned long long start;
        return process_start(o.pid, &start) && start == o.start;
    }
    if (!same_boot && str_eq(o.host, self.host))
        return false; /* this host has been rebooted since */
    return clock_read_ns(CLOCK_REALTIME) < updated_at_ns + SILENCE_NS;
}
