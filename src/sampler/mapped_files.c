/* SPDX-License-Identifier: MIT */
/* Build-ids: see buildid.h. */
#include "sampler/buildid.h"
#include "base/fd.h"
#include "base/memory.h"
#include "sampler/perfdata_write.h"

#include <elf.h>
#include <fcntl.h>

#define NOTES_BYTES_MAX ((size_t)1 << 20)

static size_t align4(size_t size)
{
    return (size + 3) & ~(size_t)3;
}

bool buildid_from_notes(const unsigned char *notes, size_t size, struct buildid *ret_id)
{
    while (size >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr head; /* the same for 32 bits */
        memcpy(&head, notes, sizeof(head));
        size_t left = size - sizeof(head);
        size_t name_size = align4(head.n_namesz), id_size = align4(head.n_descsz);
        if (head.n_namesz > left || name_size > left || id_size > left - name_size)
            return false;
        const unsigned char *name = notes + sizeof(head);
        if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 && memcmp(name, "GNU", 4) == 0 &&
            head.n_descsz && head.n_descsz <= BUILDID_BYTES_MAX) {
            ret_id->size = (uint8_t)head.n_descsz;
            memcpy(ret_id->bytes, name + name_size, head.n_descsz);
            return true;
        }
        notes += sizeof(head) + name_size + id_size;
        size = left - name_size - id_size;
    }
    return false;
}

static bool read_at(int fd, void *bytes, size_t size, uint64_t offset)
{
    return pread(fd, bytes, size, (off_t)offset) == (ssize_t)size;
}

static bool notes_at(int fd, uint64_t offset, uint64_t size, struct buildid *ret_id)
{
    if (!size || size > NOTES_BYTES_MAX)
        return false;
    CLEANUP(memory_freep) unsigned char *notes = memory_alloc((size_t)size);
    return read_at(fd, notes, (size_t)size, offset) &&
           buildid_from_notes(notes, (size_t)size, ret_id);
}

static bool of_elf64(int fd, const Elf64_Ehdr *head, struct buildid *ret_id)
{
    for (unsigned i = 0; i < head->e_phnum && head->e_phentsize == sizeof(Elf64_Phdr); i++) {
        Elf64_Phdr p;
        if (!read_at(fd, &p, sizeof(p), head->e_phoff + i * sizeof(p)))
            return false;
        if (p.p_type == PT_NOTE && notes_at(fd, p.p_offset, p.p_filesz, ret_id))
            return true;
    }
    /* A relocatable file, such as a kernel module, has sections only. */
    for (unsigned i = 0; i < head->e_shnum && head->e_shentsize == sizeof(Elf64_Shdr); i++) {
        Elf64_Shdr s;
        if (head->e_phnum || !read_at(fd, &s, sizeof(s), head->e_shoff + i * sizeof(s)))
            return false;
        if (s.sh_type == SHT_NOTE && notes_at(fd, s.sh_offset, s.sh_size, ret_id))
            return true;
    }
    return false;
}

static bool of_elf32(int fd, const Elf32_Ehdr *head, struct buildid *ret_id)
{
    for (unsigned i = 0; i < head->e_phnum && head->e_phentsize == sizeof(Elf32_Phdr); i++) {
        Elf32_Phdr p;
        if (!read_at(fd, &p, sizeof(p), head->e_phoff + i * sizeof(p)))
            return false;
        if (p.p_type == PT_NOTE && notes_at(fd, p.p_offset, p.p_filesz, ret_id))
            return true;
    }
    return false;
}

bool buildid_of_file(const char *path, struct buildid *ret_id)
{
    /* A mapped device must not be opened in earnest. */
    CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    union {
        unsigned char ident[EI_NIDENT];
        Elf32_Ehdr e32;
        Elf64_Ehdr e64;
    } head;
    if (fd < 0 || !read_at(fd, &head, sizeof(head), 0))
        return false;
    if (memcmp(head.ident, ELFMAG, SELFMAG) != 0 || head.ident[EI_DATA] != ELFDATA2LSB)
        return false;
    if (head.ident[EI_CLASS] == ELFCLASS64)
        return of_elf64(fd, &head.e64, ret_id);
    return head.ident[EI_CLASS] == ELFCLASS32 && of_elf32(fd, &head.e32, ret_id);
}

bool buildid_of_notes(const char *path, struct buildid *ret_id)
{
    CLEANUP(strbuf_done) struct strbuf notes = {0};
    return file_read(path, &notes, NULL) == 0 &&
           buildid_from_notes((const unsigned char *)notes.data, notes.length, ret_id);
}

static struct buildid_file *find_slot(struct buildid_table *t, const char *filename)
{
    size_t at = 14695981039346656037ULL;
    for (const char *c = filename; *c; c++)
        at = (at ^ (unsigned char)*c) * 1099511628211ULL;
    for (at &= t->slot_count - 1; t->files[at].filename; at = (at + 1) & (t->slot_count - 1))
        if (str_eq(t->files[at].filename, filename))
            break;
    return &t->files[at];
}

static void grow(struct buildid_table *t)
{
    struct buildid_file *old = t->files;
    size_t old_count = t->slot_count;
    t->slot_count = old_count ? old_count * 2 : 64;
    t->files = memory_zalloc(t->slot_count, sizeof(*t->files));
    for (size_t i = 0; i < old_count; i++)
        if (old[i].filename)
            *find_slot(t, old[i].filename) = old[i];
    free(old);
}

static bool is_file(const char *filename)
{
    return (filename[0] == '/' && filename[1] != '/' && !str_has_prefix(filename, "/dev/zero") &&
            !str_has_prefix(filename, "/SYSV") && !str_has_prefix(filename, "/memfd:")) ||
           str_eq(filename, "[vdso]") || str_has_prefix(filename, "[kernel");
}

void buildid_table_add(struct buildid_table *t, const char *filename, uint16_t cpumode,
                       const struct buildid *id)
{
    if (!is_file(filename))
        return;
    if (t->count * 2 >= t->slot_count)
        grow(t);
    struct buildid_file *file = find_slot(t, filename);
    if (!file->filename) {
        file->filename = memory_strdup(filename);
        file->cpumode = cpumode;
        t->count++;
    }
    if (!file->id.size && id)
        file->id = *id;
}

const struct buildid *buildid_table_find(struct buildid_table *t, const char *filename)
{
    if (!t->slot_count)
        return NULL;
    const struct buildid_file *file = find_slot(t, filename);
    return file->filename ? &file->id : NULL;
}

void buildid_table_write(struct buildid_table *t, struct strbuf *out)
{
    for (size_t i = 0; i < t->slot_count; i++) {
        struct buildid_file *file = &t->files[i];
        if (!file->filename)
            continue;
        if (!file->id.size && file->filename[0] == '/')
            buildid_of_file(file->filename, &file->id);
        if (file->id.size)
            perfdata_put_build_id(out, file->cpumode, file->id.bytes, file->id.size,
                                  file->filename);
    }
}

void buildid_table_done(struct buildid_table *t)
{
    for (size_t i = 0; i < t->slot_count; i++)
        free(t->files[i].filename);
    free(t->files);
    *t = (struct buildid_table){0};
}
