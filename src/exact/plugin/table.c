/* SPDX-License-Identifier: MIT */
/* See table.h. */
#include "table.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

enum { HASHES = EXACT_BLOCKS * 2, CHUNK = 4096 /* blocks */ };

static char *base; /* of the mapped file */
static char folder[4096];
static uint32_t *hashes; /* block number + 1, 0 for none */
static bool is_shared;
static int reserved; /* blocks whose bytes are there */
static atomic_bool maps_changed = true;

/* The modules that are mapped now. */
static struct {
    uint64_t start, end;
    uint32_t module;
} mapped[EXACT_MODULES];
static uint32_t mapped_count;

struct exact_head *table_head(void)
{
    return (struct exact_head *)base;
}

static struct exact_module *modules(void)
{
    return (struct exact_module *)(base + EXACT_MODULES_AT);
}

static struct exact_block *blocks(void)
{
    return (struct exact_block *)(base + EXACT_BLOCKS_AT);
}

uint64_t *table_count(unsigned slot, int block)
{
    char *counts = base + EXACT_COUNTS_AT + (size_t)(slot % EXACT_SLOTS) * EXACT_SLOT_BYTES;
    return (uint64_t *)counts + block;
}

/* A new file for this process; its descriptor. */
static int create(void)
{
    char path[4200];
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(path, sizeof(path), "%s/%d.%u.counts", folder, (int)getpid(), i);
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd >= 0 && ftruncate(fd, EXACT_FILE_BYTES) < 0) {
            close(fd);
            return -1;
        }
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/* A full disk must not end the program by SIGBUS: what is counted in is there beforehand.  A file
 * system that cannot promise that is trusted. */
static bool has_bytes(off_t at, off_t length)
{
    return madvise(base + at, (size_t)length, MADV_POPULATE_WRITE) == 0 || errno == EINVAL;
}

static bool reserve(int from, int to, unsigned first_slot, unsigned slots)
{
    bool good = has_bytes(EXACT_BLOCKS_AT + (off_t)from * 16, (off_t)(to - from) * 16);
    for (unsigned i = first_slot; good && i < slots; i++)
        good = has_bytes(EXACT_COUNTS_AT + (off_t)i * EXACT_SLOT_BYTES + (off_t)from * 8,
                         (off_t)(to - from) * 8);
    return good;
}

/* The counts of a child begin at 0, in a file of its own at the same place in memory: the code
 * that was translated before goes on counting there.  Where no file can be made (the directory may
 * be gone by now), it counts in memory that nobody reads. */
static void begin_child(void)
{
    struct exact_head *old = table_head();
    int fd = create();
    int flags = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    char *now = mmap(NULL, EXACT_FILE_BYTES, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (fd >= 0)
        close(fd);
    if (now == MAP_FAILED)
        return;
    struct exact_head *head = (struct exact_head *)now;
    *head = (struct exact_head){.magic = EXACT_MAGIC,
                                .pid = (uint32_t)getpid(),
                                .parent = old->pid,
                                .block_count = old->block_count,
                                .module_count = old->module_count,
                                .text_bytes = old->text_bytes,
                                .threads = 1,
                                .slots = is_shared ? EXACT_SLOTS : 1};
    memcpy(now + EXACT_MODULES_AT, base + EXACT_MODULES_AT, old->module_count * 32UL);
    memcpy(now + EXACT_TEXT_AT, base + EXACT_TEXT_AT, old->text_bytes);
    memcpy(now + EXACT_BLOCKS_AT, base + EXACT_BLOCKS_AT, old->block_count * 16UL);
    if (mremap(now, EXACT_FILE_BYTES, EXACT_FILE_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, base) ==
        MAP_FAILED)
        _exit(125);
    reserve(0, reserved, 0, is_shared ? EXACT_SLOTS : 1);
}

bool table_open(const char *where)
{
    if (strlen(where) >= sizeof(folder))
        return false;
    strcpy(folder, where);
    int fd = create();
    if (fd < 0)
        return false;
    base = mmap(NULL, EXACT_FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    hashes = mmap(NULL, HASHES * sizeof(*hashes), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED || hashes == MAP_FAILED || !has_bytes(0, EXACT_BLOCKS_AT))
        return false;
    *table_head() = (struct exact_head){.magic = EXACT_MAGIC,
                                        .pid = (uint32_t)getpid(),
                                        .parent = (uint32_t)getppid(),
                                        .text_bytes = 1,
                                        .threads = 1,
                                        .slots = 1};
    return pthread_atfork(NULL, NULL, begin_child) == 0;
}

void table_share(void)
{
    if (!is_shared && reserved)
        reserve(0, reserved, 1, EXACT_SLOTS);
    is_shared = true;
    table_head()->slots = EXACT_SLOTS;
}

bool table_is_shared(void)
{
    return is_shared;
}

static uint32_t hash_of(uint64_t address, uint32_t instructions, uint32_t module)
{
    uint64_t h = address * 0x9e3779b97f4a7c15ULL ^ (uint64_t)instructions << 32 ^ module;
    h *= 0xff51afd7ed558ccdULL;
    return (uint32_t)(h >> 33) % HASHES;
}

int table_block(uint64_t address, uint32_t instructions, uint32_t module)
{
    struct exact_head *head = table_head();
    uint32_t at = hash_of(address, instructions, module);
    for (; hashes[at]; at = (at + 1) % HASHES) {
        const struct exact_block *b = &blocks()[hashes[at] - 1];
        if (b->address == address && b->instructions == instructions && b->module == module)
            return (int)hashes[at] - 1;
    }
    if (head->block_count == EXACT_BLOCKS)
        return TABLE_FULL;
    int number = (int)head->block_count;
    if (number == reserved) {
        if (!reserve(number, number + CHUNK, 0, is_shared ? EXACT_SLOTS : 1))
            return TABLE_FULL;
        reserved += CHUNK;
    }
    blocks()[number] = (struct exact_block){address, instructions, module};
    hashes[at] = (uint32_t)number + 1;
    head->block_count++;
    return number;
}

/* ---- what is mapped ---- */

static uint32_t add_text(const char *text)
{
    struct exact_head *head = table_head();
    size_t length = strlen(text) + 1;
    for (uint32_t i = 0; i < head->module_count; i++)
        if (strcmp(base + EXACT_TEXT_AT + modules()[i].path, text) == 0)
            return modules()[i].path;
    if (head->text_bytes + length > EXACT_TEXT_BYTES)
        return 0;
    uint32_t at = head->text_bytes;
    memcpy(base + EXACT_TEXT_AT + at, text, length);
    head->text_bytes += (uint32_t)length;
    return at;
}

static uint32_t add_module(uint64_t start, uint64_t end, uint64_t offset, const char *path)
{
    struct exact_head *head = table_head();
    uint32_t text = add_text(path);
    for (uint32_t i = 0; i < head->module_count; i++) {
        const struct exact_module *m = &modules()[i];
        if (m->start == start && m->end == end && m->offset == offset && m->path == text)
            return i;
    }
    if (head->module_count == EXACT_MODULES)
        return EXACT_NO_MODULE;
    modules()[head->module_count] = (struct exact_module){start, end, offset, text, 0};
    return head->module_count++;
}

static void read_maps(uint64_t shift)
{
    static char text[1 << 16];
    FILE *maps = fopen("/proc/self/maps", "re");
    mapped_count = 0;
    while (maps && fgets(text, sizeof(text), maps)) {
        unsigned long start, end, offset;
        int at = 0;
        text[strcspn(text, "\n")] = '\0';
        if (sscanf(text, "%lx-%lx %*s %lx %*s %*s %n", &start, &end, &offset, &at) >= 3 && at &&
            text[at] == '/' && mapped_count < EXACT_MODULES) {
            mapped[mapped_count].start = start - shift;
            mapped[mapped_count].end = end - shift;
            mapped[mapped_count++].module =
                add_module(start - shift, end - shift, offset, text + at);
        }
    }
    if (maps)
        fclose(maps);
}

void table_maps_changed(void)
{
    atomic_store(&maps_changed, true);
}

uint32_t table_module(uint64_t host_address, uint64_t shift)
{
    static uint32_t last;
    uint64_t address = host_address - shift;
    if (atomic_exchange(&maps_changed, false))
        read_maps(shift);
    for (uint32_t i = 0; i < mapped_count; i++) {
        uint32_t at = (last + i) % mapped_count; /* most blocks are where the last one was */
        if (address >= mapped[at].start && address < mapped[at].end) {
            last = at;
            return mapped[at].module;
        }
    }
    return EXACT_NO_MODULE;
}

void table_note(const char *kind, const char *text)
{
    char path[4200], line[4400];
    snprintf(path, sizeof(path), "%s/notes", folder);
    int length = snprintf(line, sizeof(line), "%s %.4000s\n", kind, text);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0 && write(fd, line, (size_t)length) < 0)
        errno = 0; /* a note that is lost loses no count */
    if (fd >= 0)
        close(fd);
}
