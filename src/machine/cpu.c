/* SPDX-License-Identifier: MIT */
/* What makes the processor's speed vary: threads sharing a core, turbo, frequency, a hypervisor
 * that takes time away. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "machine/parse.h"
#include "machine/probe.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#define CPU_FOLDER "/sys/devices/system/cpu/"

static void probe_smt(struct machine *m)
{
    int64_t active;
    char control[64] = "";
    bool known = file_read_i64(CPU_FOLDER "smt/active", &active);
    file_read_line(CPU_FOLDER "smt/control", control, sizeof(control));
    if (!known && m->core_count && m->cpu_count) {
        active = m->core_count < m->cpu_count;
        known = true;
    }
    if (!known) {
        finding_add(m, "smt", "SMT", FINDING_UNKNOWN, "the kernel does not say");
        return;
    }
    struct finding *f = finding_add(m, "smt", "SMT", active ? FINDING_YES : FINDING_NO,
                                    active ? "%zu processors are threads of %zu cores"
                                           : "each processor is a separate core",
                                    m->cpu_count, m->core_count);
    if (active && str_eq(control, "on"))
        finding_remedy(m, f, "for steadier times: echo off | sudo tee " CPU_FOLDER "smt/control");
}

static void probe_turbo(struct machine *m)
{
    int64_t value;
    bool is_on;
    const char *command;
    if (file_read_i64(CPU_FOLDER "intel_pstate/no_turbo", &value)) {
        is_on = !value;
        command = "echo 1 | sudo tee " CPU_FOLDER "intel_pstate/no_turbo";
    } else if (file_read_i64(CPU_FOLDER "cpufreq/boost", &value)) {
        is_on = value != 0;
        command = "echo 0 | sudo tee " CPU_FOLDER "cpufreq/boost";
    } else {
        finding_add(m, "turbo", "turbo", FINDING_UNKNOWN,
                    "no cpufreq: the host or the firmware decides");
        return;
    }
    struct finding *f =
        finding_add(m, "turbo", "turbo", is_on ? FINDING_YES : FINDING_NO, "%s",
                    is_on ? "the clock speeds up while few cores are busy" : "switched off");
    if (is_on)
        finding_remedy(m, f, "for steadier times: %s", command);
}

/* The governors of all processors, each named once. */
static void list_governors(struct strbuf *out)
{
    if (access(CPU_FOLDER "cpu0/cpufreq", F_OK) < 0)
        return;
    size_t count;
    CLEANUP(memory_freep) int *online = machine_online_cpus(&count);
    for (size_t i = 0; i < count; i++) {
        char path[128], line[64];
        snprintf(path, sizeof(path), CPU_FOLDER "cpu%d/cpufreq/scaling_governor", online[i]);
        if (file_read_line(path, line, sizeof(line)) && *line && !strstr(strbuf_text(out), line))
            strbuf_printf(out, "%s%s", out->length ? ", " : "", line);
    }
}

static void probe_governor(struct machine *m)
{
    CLEANUP(strbuf_done) struct strbuf governors = {0};
    char driver[64] = "";
    list_governors(&governors);
    file_read_line(CPU_FOLDER "cpu0/cpufreq/scaling_driver", driver, sizeof(driver));
    if (!governors.length) {
        finding_add(m, "governor", "frequency governor", FINDING_UNKNOWN,
                    "no cpufreq: the host or the firmware decides");
        return;
    }
    bool fixed = str_eq(strbuf_text(&governors), "performance");
    struct finding *f =
        finding_add(m, "governor", "frequency governor", fixed ? FINDING_YES : FINDING_LIMITED,
                    "%s (driver %s)", strbuf_text(&governors), *driver ? driver : "unknown");
    if (!fixed)
        finding_remedy(m, f,
                       "echo performance | sudo tee " CPU_FOLDER "cpu*/cpufreq/scaling_governor");
}

/* The hypervisor's own word in cpuid; false on bare metal and elsewhere. */
static bool cpuid_hypervisor(char *name, size_t size)
{
#if defined(__x86_64__) || defined(__i386__)
    unsigned eax, ebx, ecx, edx;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx >> 31 & 1))
        return false;
    char signature[13] = "";
    __cpuid(0x40000000, eax, ebx, ecx, edx);
    memcpy(signature, &ebx, 4);
    memcpy(signature + 4, &ecx, 4);
    memcpy(signature + 8, &edx, 4);
    static const char *const known[][2] = {
        {"KVMKVMKVM", "KVM"},          {"Microsoft Hv", "Hyper-V"},  {"VMwareVMware", "VMware"},
        {"XenVMMXenVMM", "Xen"},       {"TCGTCGTCGTCG", "QEMU TCG"}, {"bhyve bhyve ", "bhyve"},
        {"ACRNACRNACRN", "ACRN"},      {"QNXQVMBSQG", "QNX"},        {" lrpepyh  vr", "Parallels"},
        {"prl hyperv  ", "Parallels"},
    };
    snprintf(name, size, "%s", "a hypervisor without a name");
    for (size_t i = 0; i < ARRAY_COUNT(known); i++)
        if (str_has_prefix(signature, known[i][0]))
            snprintf(name, size, "%s", known[i][1]);
    return true;
#else
    (void)name;
    (void)size;
    return false;
#endif
}

/* Firmware that only virtual machines have. */
static bool firmware_hypervisor(char *name, size_t size)
{
    static const char *const files[] = {
        "/sys/hypervisor/type", "/proc/device-tree/hypervisor/compatible",
        "/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name",
        "/proc/device-tree/compatible"};
    static const char *const signs[] = {"xen",
                                        "kvm",
                                        "QEMU",
                                        "VMware",
                                        "VirtualBox",
                                        "innotek",
                                        "Parallels",
                                        "Amazon EC2",
                                        "Google Compute Engine",
                                        "Bochs",
                                        "Virtual Machine",
                                        "linux,dummy-virt",
                                        "vmware"};
    for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
        char line[128];
        if (!file_read_line(files[i], line, sizeof(line)))
            continue;
        for (size_t sign = 0; sign < ARRAY_COUNT(signs); sign++)
            if (strstr(line, signs[sign])) {
                snprintf(name, size, "%s", line);
                return true;
            }
    }
    return false;
}

static void probe_virtual(struct machine *m)
{
    char name[128] = "", vendor[64] = "", product[64] = "";
    bool is_virtual =
        cpuid_hypervisor(name, sizeof(name)) || firmware_hypervisor(name, sizeof(name));
    file_read_line("/sys/class/dmi/id/sys_vendor", vendor, sizeof(vendor));
    file_read_line("/sys/class/dmi/id/product_name", product, sizeof(product));
    if (is_virtual && (*vendor || *product))
        finding_add(m, "virtual", "virtual machine", FINDING_YES, "%s (%s%s%s)", name, vendor,
                    *vendor && *product ? " " : "", product);
    else if (is_virtual)
        finding_add(m, "virtual", "virtual machine", FINDING_YES, "%s", name);
    else
        finding_add(m, "virtual", "virtual machine", FINDING_NO, "no sign of a hypervisor");
}

/* The first line of /proc/stat; the whole of it takes milliseconds on big machines. */
static bool read_times(struct proc_times *ret_times, uint64_t *ret_tick_ns)
{
    char line[512];
    long hz = sysconf(_SC_CLK_TCK);
    if (hz <= 0 || !file_read_line("/proc/stat", line, sizeof(line)) ||
        !proc_stat_times(line, ret_times))
        return false;
    *ret_tick_ns = NS_PER_S / (uint64_t)hz;
    return true;
}

bool machine_steal_ns(uint64_t *ret_steal_ns)
{
    struct proc_times t;
    uint64_t tick_ns;
    if (!read_times(&t, &tick_ns))
        return false;
    *ret_steal_ns = t.steal * tick_ns;
    return true;
}

static void probe_steal(struct machine *m)
{
    struct proc_times t;
    uint64_t tick_ns;
    if (!read_times(&t, &tick_ns)) {
        finding_add(m, "steal", "steal time", FINDING_UNKNOWN, "/proc/stat does not say");
        return;
    }
    uint64_t busy = t.user + t.nice + t.system + t.irq + t.softirq + t.steal;
    double share = busy ? 100.0 * (double)t.steal / (double)busy : 0;
    struct finding *f = finding_add(m, "steal", "steal time", t.steal ? FINDING_YES : FINDING_NO,
                                    "%.2f s since boot, %.2f %% of the CPU time requested",
                                    (double)(t.steal * tick_ns) / 1e9, share);
    finding_value(f, (int64_t)(t.steal * tick_ns / NS_PER_MS), "ms");
    if (share > 1)
        finding_remedy(
            m, f,
            "use a quieter host or dedicated processors, or compare CPU time instead of wall time");
}

void probe_cpu(struct machine *m, enum machine_depth depth)
{
    (void)depth;
    probe_virtual(m);
    probe_steal(m);
    probe_smt(m);
    probe_turbo(m);
    probe_governor(m);
}
