/* SPDX-License-Identifier: MIT */
/* Who this host is: kernel, distribution, processor, memory.  Its name and addresses are left
 * out: results travel. */
#include "base/fd.h"
#include "base/memory.h"
#include "machine/parse.h"
#include "machine/probe.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/utsname.h>

static void probe_distribution(struct machine *m)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    char value[128];
    if (file_read("/etc/os-release", &text, NULL) < 0 &&
        file_read("/usr/lib/os-release", &text, NULL) < 0)
        return;
    if (proc_field(strbuf_text(&text), "PRETTY_NAME", value, sizeof(value)))
        m->distribution = machine_text(m, "%s", value);
    if (proc_field(strbuf_text(&text), "ID", value, sizeof(value)))
        m->distribution_id = machine_text(m, "%s", value);
}

/* Arm's cpuinfo has numbers in place of names; the common ones are told by name. */
static void arm_model(struct machine *m, const char *cpuinfo)
{
    static const struct {
        uint64_t implementer, part;
        const char *name;
    } parts[] = {
        {0x41, 0xd03, "Cortex-A53"},  {0x41, 0xd04, "Cortex-A35"},  {0x41, 0xd05, "Cortex-A55"},
        {0x41, 0xd07, "Cortex-A57"},  {0x41, 0xd08, "Cortex-A72"},  {0x41, 0xd09, "Cortex-A73"},
        {0x41, 0xd0a, "Cortex-A75"},  {0x41, 0xd0b, "Cortex-A76"},  {0x41, 0xd0c, "Neoverse-N1"},
        {0x41, 0xd40, "Neoverse-V1"}, {0x41, 0xd49, "Neoverse-N2"}, {0x41, 0xd4f, "Neoverse-V2"},
        {0x41, 0xd84, "Neoverse-V3"}, {0x41, 0xd8e, "Neoverse-N3"}, {0xc0, 0xac3, "Ampere-1"},
        {0xc0, 0xac4, "Ampere-1a"},
    };
    char text[64];
    struct error err;
    uint64_t implementer, part;
    if (!proc_field(cpuinfo, "CPU implementer", text, sizeof(text)) ||
        parse_u64(text, &implementer, &err) < 0 ||
        !proc_field(cpuinfo, "CPU part", text, sizeof(text)) || parse_u64(text, &part, &err) < 0)
        return;
    m->cpu_vendor = machine_text(m, "%s", implementer == 0x41 ? "ARM" : "");
    m->cpu_model = machine_text(m, "implementer 0x%llx part 0x%llx",
                                (unsigned long long)implementer, (unsigned long long)part);
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++)
        if (parts[i].implementer == implementer && parts[i].part == part)
            m->cpu_model = parts[i].name;
}

static void probe_processor(struct machine *m)
{
    /* The first processor's entry is enough; the whole file takes milliseconds on big machines. */
    char cpuinfo[4096], value[128];
    CLEANUP(fd_closep) int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, cpuinfo, sizeof(cpuinfo) - 1);
    if (got < 0)
        return;
    cpuinfo[got] = '\0';
    if (proc_field(cpuinfo, "vendor_id", value, sizeof(value)))
        m->cpu_vendor = machine_text(m, "%s", value);
    if (proc_field(cpuinfo, "model name", value, sizeof(value)))
        m->cpu_model = machine_text(m, "%s", value);
    if (!*m->cpu_model)
        arm_model(m, cpuinfo);
}

int *machine_online_cpus(size_t *ret_count)
{
    char line[4096];
    int *list = NULL;
    if (file_read_line("/sys/devices/system/cpu/online", line, sizeof(line)) &&
        parse_cpu_list(line, &list, ret_count, NULL) == 0)
        return list;
    /* Without /sys, as in some containers, they are taken to be the first ones. */
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    *ret_count = online > 0 ? (size_t)online : 1;
    list = memory_zalloc(*ret_count, sizeof(*list));
    for (size_t i = 0; i < *ret_count; i++)
        list[i] = (int)i;
    return list;
}

static void count_processors(struct machine *m)
{
    CLEANUP(memory_freep) int *online = machine_online_cpus(&m->cpu_count);
    size_t size = CPU_ALLOC_SIZE(8192);
    CLEANUP(memory_freep) cpu_set_t *set = memory_zalloc(1, size);
    if (sched_getaffinity(0, size, set) == 0)
        m->cpu_usable_count = (size_t)CPU_COUNT_S(size, set);
    /* A core is counted at its first thread. */
    for (size_t i = 0; i < m->cpu_count; i++) {
        char path[128], line[256];
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
                 online[i]);
        CLEANUP(memory_freep) int *list = NULL;
        size_t count;
        if (file_read_line(path, line, sizeof(line)) &&
            parse_cpu_list(line, &list, &count, NULL) == 0 && list[0] == online[i])
            m->core_count++;
    }
}

static void probe_caches(struct machine *m)
{
    for (unsigned index = 0; index < 8; index++) {
        char path[128], line[64];
        uint64_t bytes;
        int64_t level, line_bytes;
        const char *folder = "/sys/devices/system/cpu/cpu0/cache/index";
        snprintf(path, sizeof(path), "%s%u/level", folder, index);
        if (!file_read_i64(path, &level))
            break;
        snprintf(path, sizeof(path), "%s%u/type", folder, index);
        if (!file_read_line(path, line, sizeof(line)) || str_eq(line, "Instruction"))
            continue;
        snprintf(path, sizeof(path), "%s%u/coherency_line_size", folder, index);
        if (level == 1 && file_read_i64(path, &line_bytes) && line_bytes > 0)
            m->cache_line_bytes = (uint64_t)line_bytes;
        snprintf(path, sizeof(path), "%s%u/size", folder, index);
        if (!file_read_line(path, line, sizeof(line)) || !proc_cache_size(line, &bytes))
            continue;
        *(level == 1 ? &m->l1d_bytes : level == 2 ? &m->l2_bytes : &m->l3_bytes) = bytes;
    }
}

/* The number that the kernel gives to the user namespace the machine started with. */
#define FIRST_USER_NAMESPACE "user:[4026531837]"

static void probe_rights(struct machine *m)
{
    char name[64] = "";
    ssize_t length = readlink("/proc/self/ns/user", name, sizeof(name) - 1);
    m->in_user_namespace = length > 0 && !str_eq(name, FIRST_USER_NAMESPACE);
    if (m->in_user_namespace)
        return;
    CLEANUP(strbuf_done) struct strbuf text = {0};
    m->is_root = geteuid() == 0;
    if (file_read("/proc/self/status", &text, NULL) == 0)
        proc_field_hex(strbuf_text(&text), "CapEff", &m->capabilities);
}

void probe_identity(struct machine *m, enum machine_depth depth)
{
    (void)depth;
    struct utsname name;
    if (uname(&name) == 0) {
        m->kernel_release = machine_text(m, "%s", name.release);
        m->arch = machine_text(m, "%s", name.machine);
    }
    probe_distribution(m);
    probe_processor(m);
    count_processors(m);
    probe_caches(m);
    CLEANUP(strbuf_done) struct strbuf text = {0};
    uint64_t kib;
    if (file_read("/proc/meminfo", &text, NULL) == 0 &&
        proc_field_u64(strbuf_text(&text), "MemTotal", &kib))
        m->memory_bytes = kib * 1024;
    m->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    probe_rights(m);
}
