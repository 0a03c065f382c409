/* SPDX-License-Identifier: MIT */
/* See counts.h. */
#include "exact/counts.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { SITES_FIRST = 4096 };

static size_t site_hash(uint32_t file, uint64_t offset, size_t capacity)
{
    uint64_t h = (offset ^ (uint64_t)file << 40) * 0x9e3779b97f4a7c15ULL;
    return (size_t)(h >> 20) & (capacity - 1);
}

static struct exact_site *find_site(struct exact_site *sites, size_t capacity, uint32_t file,
                                    uint64_t offset)
{
    size_t at = site_hash(file, offset, capacity);
    while (sites[at].instructions && (sites[at].file != file || sites[at].offset != offset))
        at = (at + 1) & (capacity - 1);
    return &sites[at];
}

static void grow_sites(struct exact_counts *c)
{
    size_t capacity = c->site_capacity ? c->site_capacity * 2 : SITES_FIRST;
    struct exact_site *sites = memory_zalloc(capacity, sizeof(*sites));
    for (size_t i = 0; i < c->site_capacity; i++)
        if (c->sites[i].instructions)
            *find_site(sites, capacity, c->sites[i].file, c->sites[i].offset) = c->sites[i];
    free(c->sites);
    c->sites = sites;
    c->site_capacity = capacity;
}

static void add_site(struct exact_counts *c, uint32_t file, uint64_t offset, uint64_t instructions)
{
    if (2 * c->site_count >= c->site_capacity)
        grow_sites(c);
    struct exact_site *site = find_site(c->sites, c->site_capacity, file, offset);
    c->site_count += !site->instructions;
    *site = (struct exact_site){file, offset, site->instructions + instructions};
}

static uint32_t intern(struct exact_counts *c, const char *path)
{
    for (size_t i = 0; i < c->file_count; i++)
        if (str_eq(c->files[i], path))
            return (uint32_t)i;
    ARRAY_PUSH(c->files, c->file_count, c->file_capacity) = memory_strdup(path);
    return (uint32_t)c->file_count - 1;
}

void exact_counts_put(struct exact_counts *c, const char *path, uint64_t offset,
                      uint64_t instructions)
{
    add_site(c, intern(c, path), offset, instructions);
}

/* The number in c->files of each module of a file, and one more for memory without one.  The caller
 * frees them. */
static uint32_t *intern_modules(struct exact_counts *c, const char *bytes, uint32_t count)
{
    const struct exact_module *modules = (const struct exact_module *)(bytes + EXACT_MODULES_AT);
    uint32_t *files = memory_zalloc(count + 1, sizeof(*files));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = modules[i].path < EXACT_TEXT_BYTES ? modules[i].path : 0;
        const char *text = bytes + EXACT_TEXT_AT + at;
        CLEANUP(memory_freep)
        char *path = memory_strndup(text, strnlen(text, EXACT_TEXT_BYTES - at));
        files[i] = intern(c, path);
    }
    files[count] = intern(c, "");
    return files;
}

static void add_blocks(struct exact_counts *c, const char *bytes, uint32_t block_count,
                       uint32_t module_count, size_t slots)
{
    const struct exact_module *modules = (const struct exact_module *)(bytes + EXACT_MODULES_AT);
    const struct exact_block *blocks = (const struct exact_block *)(bytes + EXACT_BLOCKS_AT);
    CLEANUP(memory_freep) uint32_t *files = intern_modules(c, bytes, module_count);
    for (uint32_t i = 0; i < block_count; i++) {
        uint64_t count = 0;
        for (size_t slot = 0; slot < slots; slot++)
            count += ((const uint64_t *)(bytes + EXACT_COUNTS_AT + slot * EXACT_SLOT_BYTES))[i];
        if (!count || !blocks[i].instructions)
            continue;
        bool has_file = blocks[i].module < module_count;
        const struct exact_module *m = has_file ? &modules[blocks[i].module] : NULL;
        uint64_t offset = m ? blocks[i].address - m->start + m->offset : blocks[i].address;
        uint64_t instructions = count * blocks[i].instructions;
        add_site(c, files[has_file ? blocks[i].module : module_count], offset, instructions);
        c->instructions += instructions;
    }
}

static void add_bytes(struct exact_counts *c, const char *bytes, const struct exact_head *head)
{
    uint32_t blocks = head->block_count < EXACT_BLOCKS ? head->block_count : EXACT_BLOCKS;
    uint32_t modules = head->module_count < EXACT_MODULES ? head->module_count : EXACT_MODULES;
    add_blocks(c, bytes, blocks, modules, head->slots < EXACT_SLOTS ? head->slots : EXACT_SLOTS);
    c->instructions += head->rest;
    c->unplaced += head->rest;
    for (size_t i = 0; i < EXACT_CALLS; i++) {
        c->calls_by_number[i] += head->calls[i];
        c->calls += head->calls[i];
    }
    c->process_count++;
    c->thread_count += head->threads;
}

int exact_counts_add(struct exact_counts *c, const char *path, struct error *err)
{
    CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return error_errno(err, -errno, "%s", path);
    if (st.st_size == 0)
        return 0; /* ended before its first instruction */
    if (st.st_size != EXACT_FILE_BYTES)
        return error_set(err, -EBADMSG, "%s: not a file of exact counts", path);
    char *bytes = mmap(NULL, EXACT_FILE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED)
        return error_errno(err, -errno, "%s", path);
    const struct exact_head *head = (const struct exact_head *)bytes;
    uint64_t magic = head->magic;
    if (magic == EXACT_MAGIC)
        add_bytes(c, bytes, head);
    munmap(bytes, EXACT_FILE_BYTES);
    return magic == EXACT_MAGIC || magic == 0
               ? 0
               : error_set(err, -EBADMSG, "%s: not a file of exact counts", path);
}

static bool has_ended(unsigned long pid)
{
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%lu/stat", pid);
    CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    text[got > 0 ? got : 0] = '\0';
    const char *name_end = strrchr(text, ')');
    return !name_end || name_end[1] == '\0' || name_end[2] == 'Z' || name_end[2] == 'X';
}

int exact_counts_collect(struct exact_counts *c, const char *folder, bool is_over,
                         struct error *err)
{
    DIR *entries = opendir(folder);
    int r = 0;
    if (!entries)
        return error_errno(err, -errno, "%s", folder);
    for (struct dirent *entry; r == 0 && (entry = readdir(entries));) {
        unsigned long pid, number;
        char rest[16];
        if (sscanf(entry->d_name, "%lu.%lu.%15s", &pid, &number, rest) != 3 ||
            !str_eq(rest, "counts") || (!is_over && !has_ended(pid)))
            continue;
        CLEANUP(memory_freep) char *path = memory_printf("%s/%s", folder, entry->d_name);
        r = exact_counts_add(c, path, err);
        unlink(path);
    }
    closedir(entries);
    return r;
}

void exact_counts_done(struct exact_counts *c)
{
    for (size_t i = 0; i < c->file_count; i++)
        free(c->files[i]);
    for (size_t i = 0; i < c->named_count; i++) {
        free(c->named[i].name);
        free(c->named[i].module);
    }
    for (size_t i = 0; i < c->way_count; i++)
        free(c->ways[i].name);
    free(c->named);
    free(c->ways);
    free(c->files);
    free(c->sites);
    *c = (struct exact_counts){0};
}
