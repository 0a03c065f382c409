/* SPDX-License-Identifier: MIT */
/* Settings of the kernel that change what a measurement says: clocks, memory layout, memory
 * pages, nodes, pressure, congestion control, mitigations. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "machine/parse.h"
#include "machine/probe.h"

#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/personality.h>
#include <sys/socket.h>

/* The cost of one reading of the clock: the least of some batches. */
static double clock_cost_ns(void)
{
    enum { BATCHES = 8, READINGS = 64 };
    uint64_t least_ns = UINT64_MAX;
    for (int batch = 0; batch < BATCHES; batch++) {
        uint64_t start_ns = clock_now_ns(), end_ns = 0;
        for (int i = 0; i < READINGS; i++)
            end_ns = clock_now_ns();
        if (end_ns - start_ns < least_ns)
            least_ns = end_ns - start_ns;
    }
    return (double)least_ns / READINGS;
}

static void probe_clock(struct machine *m)
{
    const char *folder = "/sys/devices/system/clocksource/clocksource0";
    char path[128], current[64] = "", available[128] = "";
    snprintf(path, sizeof(path), "%s/current_clocksource", folder);
    file_read_line(path, current, sizeof(current));
    snprintf(path, sizeof(path), "%s/available_clocksource", folder);
    file_read_line(path, available, sizeof(available));
    double cost_ns = clock_cost_ns();
    bool is_quick = cost_ns < 150;
    struct finding *f =
        finding_add(m, "clock", "clock source", is_quick ? FINDING_YES : FINDING_LIMITED,
                    "%s; reading it takes %.0f ns", *current ? current : "unknown", cost_ns);
    finding_value(f, (int64_t)(cost_ns + 0.5), "ns");
    if (!is_quick && !str_eq(current, "tsc") && strstr(available, "tsc"))
        finding_remedy(m, f, "echo tsc | sudo tee %s/current_clocksource", folder);
}

static void probe_aslr(struct machine *m)
{
    int64_t level;
    const char *path = "/proc/sys/kernel/randomize_va_space";
    int persona = personality(0xffffffff);
    if (!file_read_i64(path, &level)) {
        finding_add(m, "aslr", "address randomisation", FINDING_UNKNOWN, "%s: %s", path,
                    strerror(errno));
        return;
    }
    bool off_here = persona >= 0 && (persona & ADDR_NO_RANDOMIZE);
    struct finding *f = finding_add(m, "aslr", "address randomisation",
                                    off_here || level == 0 ? FINDING_NO
                                    : level == 1           ? FINDING_LIMITED
                                                           : FINDING_YES,
                                    "randomize_va_space is %lld%s", (long long)level,
                                    off_here ? ", switched off for this process"
                                    : level  ? "; each run gets a different layout"
                                             : "");
    finding_value(f, level, "level");
    if (level && !off_here)
        finding_remedy(m, f, "to run with a fixed layout: setarch -R COMMAND");
}

static void probe_thp(struct machine *m)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    char word[32];
    if (file_read("/sys/kernel/mm/transparent_hugepage/enabled", &text, NULL) < 0 ||
        !proc_chosen(strbuf_text(&text), word, sizeof(word))) {
        finding_add(m, "thp", "transparent huge pages", FINDING_NO, "not in this kernel");
        return;
    }
    finding_add(m, "thp", "transparent huge pages",
                str_eq(word, "always")  ? FINDING_YES
                : str_eq(word, "never") ? FINDING_NO
                                        : FINDING_LIMITED,
                "%s",
                str_eq(word, "madvise") ? "madvise: only where a program asks for them" : word);
}

static void probe_numa(struct machine *m)
{
    char line[256];
    CLEANUP(memory_freep) int *nodes = NULL;
    size_t count = 0;
    if (!file_read_line("/sys/devices/system/node/online", line, sizeof(line)) ||
        parse_cpu_list(line, &nodes, &count, NULL) < 0)
        count = 1;
    struct finding *f = finding_add(m, "numa", "NUMA", count > 1 ? FINDING_YES : FINDING_NO,
                                    count == 1 ? "%zu node" : "%zu nodes", count);
    finding_value(f, (int64_t)count, "nodes");
    if (count > 1)
        finding_remedy(m, f, "for steadier times: numactl --cpunodebind=0 --membind=0 COMMAND");
}

static void probe_psi(struct machine *m)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    struct proc_pressure p;
    int r = file_read("/proc/pressure/cpu", &text, NULL);
    if (r < 0 || !proc_pressure_line(strbuf_text(&text), "some", &p)) {
        struct finding *f = finding_add(m, "psi", "pressure (PSI)", FINDING_NO,
                                        r == -EOPNOTSUPP ? "built in, but switched off at boot"
                                        : r == -ENOENT   ? "not in this kernel"
                                        : r < 0 ? "no permission to read /proc/pressure/cpu"
                                                : "/proc/pressure/cpu is in an unknown format");
        finding_remedy(m, f,
                       r == -EOPNOTSUPP ? "boot with psi=1 on the kernel's command line"
                                        : "a kernel with CONFIG_PSI");
        return;
    }
    struct finding *f = finding_add(m, "psi", "pressure (PSI)", FINDING_YES,
                                    "tasks waited for a processor %.1f %% of the last 10 s, "
                                    "%.1f %% of the last minute",
                                    p.avg10, p.avg60);
    if (p.avg10 > 10)
        finding_remedy(m, f, "something else is using this machine; measure when it is idle");
}

/* Which of TCP's congestion controls this user may choose, by choosing each. */
static void probe_congestion_control(struct machine *m)
{
    char all[256], own[16] = "", *rest = all;
    socklen_t length = sizeof(own);
    CLEANUP(strbuf_done) struct strbuf allowed = {0};
    CLEANUP(fd_closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, own, &length) < 0 ||
        !file_read_line("/proc/sys/net/ipv4/tcp_available_congestion_control", all, sizeof(all))) {
        finding_add(m, "tcp-congestion", "TCP congestion control", FINDING_UNKNOWN, "%s",
                    strerror(errno));
        return;
    }
    bool any_refused = false;
    for (char *word; (word = strsep(&rest, " "));) {
        if (!*word)
            continue;
        bool may = setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, word, (socklen_t)strlen(word)) == 0;
        any_refused |= !may;
        if (may)
            strbuf_printf(&allowed, "%s%s", allowed.length ? ", " : "", word);
    }
    finding_add(m, "tcp-congestion", "TCP congestion control",
                any_refused ? FINDING_LIMITED : FINDING_YES, "%.15s; you may choose %s", own,
                allowed.length ? strbuf_text(&allowed) : "none");
}

static void probe_mitigations(struct machine *m)
{
    DIR *folder = opendir("/sys/devices/system/cpu/vulnerabilities");
    if (!folder) {
        finding_add(m, "mitigations", "CPU mitigations", FINDING_UNKNOWN,
                    "the kernel does not say");
        return;
    }
    size_t mitigated = 0, vulnerable = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        CLEANUP(strbuf_done) struct strbuf text = {0};
        if (entry->d_name[0] == '.' || file_read_at(dirfd(folder), entry->d_name, &text, NULL) < 0)
            continue;
        mitigated += strstr(strbuf_text(&text), "Mitigation") != NULL;
        vulnerable += str_has_prefix(strbuf_text(&text), "Vulnerable");
    }
    closedir(folder);
    struct finding *f =
        finding_add(m, "mitigations", "CPU mitigations", mitigated ? FINDING_YES : FINDING_NO,
                    "%zu on (system calls and switches cost more), %zu %s unmitigated", mitigated,
                    vulnerable, plural(vulnerable, "vulnerability", "vulnerabilities"));
    finding_value(f, (int64_t)mitigated, "mitigations");
}

void probe_kernel(struct machine *m, enum machine_depth depth)
{
    (void)depth;
    probe_clock(m);
    probe_aslr(m);
    probe_thp(m);
    probe_numa(m);
    probe_psi(m);
    probe_congestion_control(m);
    probe_mitigations(m);
}
