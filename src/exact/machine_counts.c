/* SPDX-License-Identifier: MIT */
/* What the plugin counted in an emulated machine: see machine.h. */
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"
#include "elf/image.h"
#include "exact/machine.h"
#include "exact/machine_format.h"
#include "monitors/syscalls.h"
#include "symbols/names/kallsyms.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* A file that the command mapped as code, and where. */
struct map {
    uint64_t start, end, offset;
    char *path;
    int fd;       /* -1 where it cannot be read */
    bool no_file; /* the kernel's own, e.g. [vdso] */
};

struct reader {
    struct exact_counts *c;
    const struct machine_head *head;
    const struct machine_block *blocks;
    const uint64_t *counts;
    uint32_t block_count;
    struct map *maps;
    size_t map_count, map_capacity;
    struct image guest;
    struct kallsyms kernel;
    uint64_t not_ours; /* instructions in user mode that were not the command's */
};

/* ---- user mode ---- */

/* Where a file of the command is on the host: it may have seen another tree in its place. */
static char *host_path(const struct exact_machine_run *run, const char *path)
{
    const char *rest = run->tree && run->seen_as ? exact_below(path, run->seen_as) : NULL;
    return rest ? memory_printf("%s%s", run->tree, rest) : memory_strdup(path);
}

static void read_maps(struct reader *r, const struct exact_machine_run *run)
{
    CLEANUP(memory_freep) char *copy = memory_strdup(run->maps);
    char *save = NULL;
    for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        unsigned long long start, end, offset;
        int at = 0;
        if (sscanf(line, "%llx %llx %llx %n", &start, &end, &offset, &at) < 3 || !at)
            continue;
        char *path = host_path(run, line + at);
        ARRAY_PUSH(r->maps, r->map_count, r->map_capacity) =
            (struct map){.start = start,
                         .end = end,
                         .offset = offset,
                         .path = path,
                         .fd = *path == '/' ? open(path, O_RDONLY | O_CLOEXEC) : -1,
                         .no_file = *path != '/'};
    }
}

/* The part of a block's code that is kept: not beyond its page. */
static size_t kept_bytes(const struct machine_block *b)
{
    size_t room = 4096 - b->address % 4096;
    return room < MACHINE_BYTES ? room : MACHINE_BYTES;
}

/* Several programs have code at the same address: the bytes tell which one it was. */
static bool is_in(const struct map *m, const struct machine_block *b)
{
    uint8_t bytes[MACHINE_BYTES];
    if (b->address < m->start || b->address >= m->end)
        return false;
    if (m->fd < 0)
        return m->no_file;
    size_t want = kept_bytes(b);
    ssize_t got = pread(m->fd, bytes, want, (off_t)(b->address - m->start + m->offset));
    return got == (ssize_t)want && memcmp(bytes, b->bytes, want) == 0;
}

static const struct map *find_map(const struct reader *r, const struct machine_block *b)
{
    static size_t last;
    for (size_t i = 0; i < r->map_count; i++) {
        size_t at = (last + i) % r->map_count; /* most blocks are where the last one was */
        if (is_in(&r->maps[at], b)) {
            last = at;
            return &r->maps[at];
        }
    }
    return NULL;
}

/* Code of assay's process in the machine. */
static bool is_guest(const struct reader *r, const struct machine_block *b)
{
    uint8_t bytes[MACHINE_BYTES];
    for (size_t i = 0; i < r->guest.segment_count; i++) {
        const struct image_segment *s = &r->guest.segments[i];
        if (b->address < s->address || b->address - s->address >= s->file_size)
            continue;
        size_t want = kept_bytes(b);
        return image_read(&r->guest, b->address - s->address + s->offset, bytes, want) == want &&
               memcmp(bytes, b->bytes, want) == 0;
    }
    return false;
}

static void add_user(struct reader *r, const struct machine_block *b, uint64_t instructions)
{
    if (r->not_ours && is_guest(r, b)) {
        uint64_t off = instructions < r->not_ours ? instructions : r->not_ours;
        r->not_ours -= off;
        instructions -= off;
    }
    if (!instructions)
        return;
    const struct map *m = find_map(r, b);
    exact_counts_put(r->c, m ? m->path : "", m ? b->address - m->start + m->offset : b->address,
                     instructions);
}

/* ---- the kernel ---- */

/* The symbol at an address, with its part ("[9p]"); "" where there is none. */
static const char *symbol_at(const struct reader *r, uint64_t address, char *buffer, size_t size,
                             const char **ret_part, bool *ret_starts)
{
    uint32_t at = symtab_find(&r->kernel.table, address);
    size_t length = 0;
    *ret_part = "";
    *ret_starts = false;
    buffer[0] = '\0';
    if (at == SYMTAB_NONE)
        return buffer;
    const char *name = symtab_name(&r->kernel.table, at, &length);
    snprintf(buffer, size, "%.*s", (int)length, name);
    *ret_part = symtab_part(&r->kernel.table, at);
    *ret_starts = r->kernel.table.symbols[at].start == address;
    return buffer;
}

/* "__x64_sys_newfstat": fstat; NULL for what is no system call's function. */
static const char *call_of(const char *symbol)
{
    static const char *const others[][2] = {{"newfstat", "fstat"}, {"newstat", "stat"},
                                            {"newlstat", "lstat"}, {"newuname", "uname"},
                                            {"umount", "umount2"}, {"sendfile64", "sendfile"}};
    static const char *const prefixes[] = {"__x64_sys_", "__ia32_sys_", "__ia32_compat_sys_"};
    for (size_t i = 0; i < ARRAY_COUNT(prefixes); i++) {
        if (!str_has_prefix(symbol, prefixes[i]))
            continue;
        const char *name = symbol + strlen(prefixes[i]);
        for (size_t k = 0; k < ARRAY_COUNT(others); k++)
            if (str_eq(name, others[k][0]))
                return others[k][1];
        return name;
    }
    return NULL;
}

static size_t number_of(const char *call)
{
    char buffer[32];
    for (size_t i = 0; i < EXACT_CALLS - 1; i++)
        if (str_eq(syscall_name(i, buffer, sizeof(buffer)), call))
            return i;
    return EXACT_CALLS - 1;
}

static void add_kernel(struct reader *r, const struct machine_block *b, uint64_t count)
{
    char name[256];
    const char *part;
    bool starts;
    struct exact_counts *c = r->c;
    symbol_at(r, b->address, name, sizeof(name), &part, &starts);
    const char *call = starts ? call_of(name) : NULL;
    if (call) {
        c->calls += count;
        c->calls_by_number[number_of(call)] += count;
    }
    if (starts && str_eq(name, "asm_exc_page_fault"))
        c->faults += count;
    if (starts && str_eq(name, "__switch_to_asm"))
        c->switches += count;
    ARRAY_PUSH(c->named, c->named_count, c->named_capacity) =
        (struct exact_named){memory_strdup(*name ? name : "[unknown]"),
                             memory_strdup(*part ? part : "[kernel]"), count * b->instructions};
}

static int by_size(const void *a, const void *b)
{
    const struct exact_way *x = a, *y = b;
    return x->instructions != y->instructions ? (x->instructions < y->instructions ? 1 : -1)
                                              : strcmp(x->name, y->name);
}

/* How often a block at this address was executed. */
static uint64_t count_at(const struct reader *r, uint64_t address)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < r->block_count; i++)
        if (r->blocks[i].address == address)
            sum += r->counts[i];
    return sum;
}

static void add_ways(struct reader *r)
{
    struct exact_counts *c = r->c;
    uint32_t count =
        r->head->entry_count < MACHINE_ENTRIES ? r->head->entry_count : MACHINE_ENTRIES;
    for (uint32_t i = 0; i < count; i++) {
        const struct machine_entry *e = &r->head->entries[i];
        char name[256];
        const char *part;
        bool starts;
        if (!e->instructions)
            continue;
        symbol_at(r, e->address, name, sizeof(name), &part, &starts);
        const char *call = call_of(name);
        const char *exception = str_has_prefix(name, "asm_exc_") ? name + 8 : NULL;
        ARRAY_PUSH(c->ways, c->way_count, c->way_capacity) =
            (struct exact_way){call        ? memory_strdup(call)
                               : exception ? memory_printf("[%s]", exception)
                                           : memory_strdup("[other]"),
                               e->address ? count_at(r, e->address) : 0, e->instructions};
    }
    if (c->way_count)
        qsort(c->ways, c->way_count, sizeof(*c->ways), by_size);
}

/* ---- all of it ---- */

/* The command's blocks and assay's own in user mode are counted together: what is more than the
 * command's is assay's. */
static int take_blocks(struct reader *r, struct error *err)
{
    uint64_t user = r->head->user_rest;
    for (uint32_t i = 0; i < r->block_count; i++)
        if (!(r->blocks[i].address >> 63))
            user += r->counts[i] * r->blocks[i].instructions;
    r->not_ours = user > r->head->user ? user - r->head->user : 0;
    for (uint32_t i = 0; i < r->block_count; i++) {
        const struct machine_block *b = &r->blocks[i];
        if (r->counts[i] && b->address >> 63)
            add_kernel(r, b, r->counts[i]);
        else if (r->counts[i])
            add_user(r, b, r->counts[i] * b->instructions);
    }
    struct exact_counts *c = r->c;
    c->user = r->head->user;
    c->kernel = r->head->kernel;
    c->instructions = c->user + c->kernel;
    c->interrupts = r->head->interrupts;
    c->began_at_ns = r->head->began_at_ns;
    c->aside = r->head->aside;
    c->unplaced = r->head->user_rest + r->head->kernel_rest;
    c->process_count = 1;
    c->thread_count = r->head->tasks;
    add_ways(r);
    return r->not_ours || user < r->head->user
               ? error_set(
                     err, -EBADMSG,
                     "the machine's counts do not add up (%llu in user mode by block, %llu by "
                     "task); this is an error of assay",
                     (unsigned long long)user, (unsigned long long)r->head->user)
               : 0;
}

static void reader_done(struct reader *r)
{
    for (size_t i = 0; i < r->map_count; i++) {
        free(r->maps[i].path);
        fd_closep(&r->maps[i].fd);
    }
    free(r->maps);
    image_close(&r->guest);
    kallsyms_done(&r->kernel);
}

static int take(struct exact_counts *c, const char *bytes, const struct exact_machine_run *run,
                struct error *err)
{
    const struct machine_head *head = (const struct machine_head *)bytes;
    struct reader r = {.c = c,
                       .head = head,
                       .blocks = (const struct machine_block *)(bytes + MACHINE_BLOCKS_AT),
                       .counts = (const uint64_t *)(bytes + MACHINE_FINAL_AT),
                       .block_count =
                           head->block_count < MACHINE_BLOCKS ? head->block_count : MACHINE_BLOCKS};
    CLEANUP(strbuf_done) struct strbuf text = {0};
    int code = file_read(run->symbols, &text, err);
    if (code < 0)
        return code;
    code = image_open(&r.guest, run->guest, err);
    if (code < 0)
        return code;
    kallsyms_parse(strbuf_text(&text), text.length, 0, &r.kernel);
    read_maps(&r, run);
    code = take_blocks(&r, err);
    reader_done(&r);
    return code;
}

int exact_machine_counts(struct exact_counts *c, const char *path,
                         const struct exact_machine_run *run, struct error *err)
{
    CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return error_errno(err, -errno, "%s", path);
    char *bytes = st.st_size == MACHINE_FILE_BYTES
                      ? mmap(NULL, MACHINE_FILE_BYTES, PROT_READ, MAP_SHARED, fd, 0)
                      : MAP_FAILED;
    if (bytes == MAP_FAILED)
        return error_set(err, -EBADMSG, "%s: not a file of exact counts", path);
    const struct machine_head *head = (const struct machine_head *)bytes;
    int r =
        head->magic == MACHINE_MAGIC && head->state == MACHINE_COUNTED
            ? take(c, bytes, run, err)
            : error_set(err, -EIO,
                        "the machine ran, but its plugin counted nothing; is %s of this version "
                        "of assay? (./dev guests)",
                        run->guest);
    munmap(bytes, MACHINE_FILE_BYTES);
    return r;
}
