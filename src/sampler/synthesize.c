/* SPDX-License-Identifier: MIT */
/* Records for what was there before: see synthesize.h. */
#include "sampler/synthesize.h"
#include "base/fd.h"
#include "base/memory.h"
#include "sampler/perfdata.h"

#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/utsname.h>

#define KERNEL_MAP_NAME "[kernel.kallsyms]_text"
#define KERNEL_NAME "[kernel.kallsyms]"

/* One record: its fixed part, then a padded string, then the zeros of the sample_id. */
static void put_record(const struct synthesis *s, uint32_t type, uint16_t misc, const void *fixed,
                       size_t fixed_size, const char *text)
{
    size_t length = strlen(text), padded = (length + 8) / 8 * 8;
    struct perf_event_header head = {.type = type, .misc = misc};
    size_t size = sizeof(head) + fixed_size + padded + s->sample_id_size;
    if (size > UINT16_MAX)
        return;
    head.size = (uint16_t)size;
    strbuf_append(s->out, (const char *)&head, sizeof(head));
    strbuf_append(s->out, fixed, fixed_size);
    strbuf_append(s->out, text, length);
    strbuf_pad(s->out, '\0', padded - length + s->sample_id_size);
}

struct mmap_fixed {
    uint32_t pid, tid;
    uint64_t start, size, offset;
};

static void put_kernel_map(const struct synthesis *s, uint64_t start, uint64_t size,
                           uint64_t offset, const char *name)
{
    struct mmap_fixed fixed = {.pid = UINT32_MAX, .start = start, .size = size, .offset = offset};
    put_record(s, PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL, &fixed, sizeof(fixed), name);
}

/* How large the kernel's code is, from the map of physical memory: far shorter than the list of
 * symbols.  0 when it is closed to us. */
static uint64_t kernel_code_size(void)
{
    FILE *f = fopen("/proc/iomem", "re");
    char line[256];
    uint64_t start, end, size = 0;
    while (f && !size && fgets(line, sizeof(line), f))
        if (strstr(line, ": Kernel code") &&
            sscanf(line, " %" SCNx64 "-%" SCNx64, &start, &end) == 2 && end > start)
            size = end - start + 1;
    if (f)
        fclose(f);
    return size;
}

/* Where the kernel's code starts and ends. */
static bool find_kernel(uint64_t *ret_start, uint64_t *ret_end)
{
    FILE *f = fopen("/proc/kallsyms", "re");
    char line[1024], name[512], kind;
    uint64_t address, start = 0, end = 0;
    while (f && !end && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "%" SCNx64 " %c %511s", &address, &kind, name) != 3)
            continue;
        if (!start && (str_eq(name, "_text") || str_eq(name, "_stext"))) {
            start = address;
            uint64_t size = kernel_code_size();
            if (!start)
                break; /* hidden */
            end = size ? start + size : 0;
        } else if (start && str_eq(name, "_etext")) {
            end = address;
        }
    }
    if (f)
        fclose(f);
    *ret_start = start;
    *ret_end = end;
    return start && end > start;
}

/* The file of a module, from the list that depmod keeps; '-' and '_' count as the same. */
static char *module_path(const struct strbuf *list, const char *folder, const char *module)
{
    size_t length = strlen(module);
    for (const char *line = strbuf_text(list); *line;) {
        size_t line_length = strcspn(line, "\n"), path_length = strcspn(line, ":\n");
        const char *name = line + path_length;
        while (name > line && name[-1] != '/')
            name--;
        size_t i = 0;
        while (i < length && (name[i] == module[i] || (name[i] == '-' && module[i] == '_')))
            i++;
        if (i == length && name[i] == '.' && path_length < line_length)
            return memory_printf("%s/%.*s", folder, (int)path_length, line);
        line += line_length + (line[line_length] == '\n');
    }
    return memory_printf("[%s]", module);
}

static void put_modules(const struct synthesis *s)
{
    CLEANUP(strbuf_done) struct strbuf list = {0};
    struct utsname name;
    uname(&name);
    CLEANUP(memory_freep) char *folder = memory_printf("/lib/modules/%s", name.release);
    CLEANUP(memory_freep) char *list_path = memory_printf("%s/modules.dep", folder);
    file_read(list_path, &list, NULL);
    FILE *f = fopen("/proc/modules", "re");
    char line[4096], module[128];
    while (f && fgets(line, sizeof(line), f)) {
        uint64_t size, start;
        const char *address = strstr(line, " 0x");
        if (sscanf(line, "%127s %" SCNu64, module, &size) != 2 || !address ||
            sscanf(address, " %" SCNx64, &start) != 1 || !start)
            continue;
        CLEANUP(memory_freep) char *path = module_path(&list, folder, module);
        put_kernel_map(s, start, size, 0, path);
        CLEANUP(memory_freep)
        char *notes = memory_printf("/sys/module/%s/notes/.note.gnu.build-id", module);
        struct build_id id;
        if (build_id_of_notes(notes, &id))
            mapped_files_add(s->files, path, PERF_RECORD_MISC_KERNEL, &id);
    }
    if (f)
        fclose(f);
}

bool synthesize_kernel(const struct synthesis *s)
{
    uint64_t start, end;
    if (!find_kernel(&start, &end))
        return false;
    put_kernel_map(s, start, end - start, start, KERNEL_MAP_NAME);
    struct build_id id;
    if (build_id_of_notes("/sys/kernel/notes", &id))
        mapped_files_add(s->files, KERNEL_NAME, PERF_RECORD_MISC_KERNEL, &id);
    put_modules(s);
    return true;
}

struct ksymbol_fixed {
    uint64_t address;
    uint32_t size;
    uint16_t type, flags;
};

/* The kernel lists programs last and in the order of their addresses; the size of one is how far
 * the next is away, at most a page for the last. */
void synthesize_bpf(const struct synthesis *s)
{
    FILE *f = fopen("/proc/kallsyms", "re");
    char line[1024], name[512], last[512] = "", module[64], kind;
    struct ksymbol_fixed fixed = {.type = PERF_RECORD_KSYMBOL_TYPE_BPF};
    uint64_t address;
    while (f && fgets(line, sizeof(line), f)) {
        if (!strstr(line, "[bpf]") ||
            sscanf(line, "%" SCNx64 " %c %511s %63s", &address, &kind, name, module) != 4 ||
            !str_eq(module, "[bpf]") || !address)
            continue;
        if (last[0]) {
            uint64_t gap = address > fixed.address ? address - fixed.address : 4096;
            fixed.size = gap < 1 << 20 ? (uint32_t)gap : 4096;
            put_record(s, PERF_RECORD_KSYMBOL, 0, &fixed, sizeof(fixed), last);
        }
        fixed.address = address;
        memcpy(last, name, sizeof(last));
    }
    if (last[0]) {
        fixed.size = 4096;
        put_record(s, PERF_RECORD_KSYMBOL, 0, &fixed, sizeof(fixed), last);
    }
    if (f)
        fclose(f);
}

static void put_comm(const struct synthesis *s, pid_t pid, pid_t tid)
{
    char path[64], comm[64];
    uint32_t fixed[2] = {(uint32_t)pid, (uint32_t)tid};
    snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)pid, (int)tid);
    if (!file_read_line(path, comm, sizeof(comm)))
        return;
    comm[15] = '\0';
    put_record(s, PERF_RECORD_COMM, 0, fixed, sizeof(fixed), comm);
}

struct mmap2_fixed {
    struct mmap_fixed map;
    union {
        struct {
            uint32_t major, minor;
            uint64_t inode, generation;
        };
        struct {
            uint8_t id_size, reserved[3], id[PERFDATA_BUILD_ID_BYTES];
        };
    };
    uint32_t prot, flags;
};

/* /proc writes a newline in a name as \012. */
static void unescape(char *path)
{
    char *to = path;
    for (const char *at = path; *at; at++) {
        if (strncmp(at, "\\012", 4) == 0) {
            *to++ = '\n';
            at += 3;
        } else {
            *to++ = *at;
        }
    }
    *to = '\0';
}

/* The build-id of a file as the process sees it, looked up once for each name. */
static void find_build_id(const struct synthesis *s, pid_t pid, const char *path,
                          struct build_id *ret_id)
{
    const struct build_id *known = mapped_files_find(s->files, path);
    ret_id->size = 0;
    if (known) {
        *ret_id = *known;
        return;
    }
    if (path[0] == '/' && path[1] != '/') {
        CLEANUP(memory_freep) char *inside = memory_printf("/proc/%d/root%s", (int)pid, path);
        if (build_id_of_file(inside, ret_id) && ret_id->size > PERFDATA_BUILD_ID_BYTES)
            ret_id->size = 0;
    }
    mapped_files_add(s->files, path, PERF_RECORD_MISC_USER, ret_id->size ? ret_id : NULL);
}

static void put_map(const struct synthesis *s, pid_t pid, char *line)
{
    uint64_t start, end, offset, inode;
    unsigned major, minor;
    char mode[8];
    int path_at = 0;
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64 " %n", &start, &end,
               mode, &offset, &major, &minor, &inode, &path_at) != 7 ||
        mode[2] != 'x')
        return;
    char *path = line + path_at;
    path[strcspn(path, "\n")] = '\0';
    unescape(path);
    if (!*path)
        path = "//anon";
    struct mmap2_fixed fixed = {.map = {.pid = (uint32_t)pid,
                                        .tid = (uint32_t)pid,
                                        .start = start,
                                        .size = end - start,
                                        .offset = offset},
                                .prot = PROT_EXEC | (mode[0] == 'r' ? PROT_READ : 0) |
                                        (mode[1] == 'w' ? PROT_WRITE : 0),
                                .flags = mode[3] == 's' ? MAP_SHARED : MAP_PRIVATE};
    struct build_id id;
    uint16_t misc = PERF_RECORD_MISC_USER;
    find_build_id(s, pid, path, &id);
    if (id.size) {
        misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
        fixed.id_size = id.size;
        memcpy(fixed.id, id.bytes, id.size);
    } else {
        fixed.major = major;
        fixed.minor = minor;
        fixed.inode = inode;
    }
    put_record(s, PERF_RECORD_MMAP2, misc, &fixed, sizeof(fixed), path);
}

static void put_maps(const struct synthesis *s, pid_t pid)
{
    char path[64], line[PATH_MAX + 256];
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        put_map(s, pid, line);
    if (f)
        fclose(f);
}

/* Calls visit for each name in a folder of /proc that is a number. */
static void each_number(const char *path, void (*visit)(const struct synthesis *, pid_t, pid_t),
                        const struct synthesis *s, pid_t pid)
{
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        uint64_t number;
        if (parse_u64(entry->d_name, &number, NULL) == 0 && number && number <= INT32_MAX)
            visit(s, pid, (pid_t)number);
    }
    if (folder)
        closedir(folder);
}

void synthesize_process(const struct synthesis *s, pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    each_number(path, put_comm, s, pid);
    put_maps(s, pid);
}

static void visit_process(const struct synthesis *s, pid_t unused, pid_t pid)
{
    (void)unused;
    synthesize_process(s, pid);
}

void synthesize_all_processes(const struct synthesis *s)
{
    each_number("/proc", visit_process, s, 0);
}
