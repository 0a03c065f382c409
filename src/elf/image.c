/* SPDX-License-Identifier: MIT */
/* ELF files: see image.h.  The format is that of the System V ABI's chapters 4 and 5. */
#include "elf/image.h"

#include "base/fd.h"
#include "base/memory.h"
#include "config.h"

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#if HAVE_LIBELF
#include <gelf.h>
#endif
#if HAVE_LIBZSTD
#include <zstd.h>
#endif

#define SECTION_COUNT_MAX (1u << 20)
#define SECTION_BYTES_MAX (4ull << 30)
#define NOTE_BYTES_MAX (1u << 16)
#define VDSO_BYTES_MAX (64u << 10)

static_assert(offsetof(Elf64_Ehdr, e_machine) == offsetof(Elf32_Ehdr, e_machine), "both sizes");
static_assert(sizeof(Elf64_Shdr) == 64 && sizeof(Elf32_Shdr) == 40, "the ABI's sizes");

size_t image_read(const struct image *image, uint64_t offset, void *buffer, size_t size)
{
    if (offset >= image->size)
        return 0;
    if (size > image->size - offset)
        size = (size_t)(image->size - offset);
    if (image->fd < 0) {
        memcpy(buffer, image->bytes + offset, size);
        return size;
    }
    size_t done = 0;
    while (done < size) {
        ssize_t got = pread(image->fd, (char *)buffer + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        done += (size_t)got;
    }
    return done;
}

static bool read_exactly(const struct image *image, uint64_t offset, void *buffer, size_t size)
{
    return image_read(image, offset, buffer, size) == size;
}

static int malformed(const struct image *image, struct error *err, const char *what)
{
    return error_set(err, -EBADMSG, "%s: %s", image->path, what);
}

/* Both sizes of the header, in the larger one's terms. */
static bool read_header(struct image *image, Elf64_Ehdr *ret)
{
    if (image->is_64bit)
        return read_exactly(image, 0, ret, sizeof(*ret));
    Elf32_Ehdr h;
    if (!read_exactly(image, 0, &h, sizeof(h)))
        return false;
    *ret = (Elf64_Ehdr){.e_type = h.e_type,
                        .e_machine = h.e_machine,
                        .e_phoff = h.e_phoff,
                        .e_shoff = h.e_shoff,
                        .e_phentsize = h.e_phentsize,
                        .e_phnum = h.e_phnum,
                        .e_shentsize = h.e_shentsize,
                        .e_shnum = h.e_shnum,
                        .e_shstrndx = h.e_shstrndx};
    return true;
}

static Elf64_Shdr widen_section(const Elf32_Shdr *s)
{
    return (Elf64_Shdr){.sh_name = s->sh_name,
                        .sh_type = s->sh_type,
                        .sh_flags = s->sh_flags,
                        .sh_addr = s->sh_addr,
                        .sh_offset = s->sh_offset,
                        .sh_size = s->sh_size,
                        .sh_link = s->sh_link,
                        .sh_info = s->sh_info,
                        .sh_addralign = s->sh_addralign,
                        .sh_entsize = s->sh_entsize};
}

static Elf64_Phdr widen_segment(const Elf32_Phdr *p)
{
    return (Elf64_Phdr){.p_type = p->p_type,
                        .p_flags = p->p_flags,
                        .p_offset = p->p_offset,
                        .p_vaddr = p->p_vaddr,
                        .p_filesz = p->p_filesz,
                        .p_memsz = p->p_memsz,
                        .p_align = p->p_align};
}

static bool read_section_header(const struct image *image, const Elf64_Ehdr *header, size_t index,
                                Elf64_Shdr *ret)
{
    uint64_t offset = header->e_shoff + index * (uint64_t)header->e_shentsize;
    if (image->is_64bit)
        return read_exactly(image, offset, ret, sizeof(*ret));
    Elf32_Shdr s;
    if (!read_exactly(image, offset, &s, sizeof(s)))
        return false;
    *ret = widen_section(&s);
    return true;
}

/* The names' table becomes one block that ends with a zero; names point into it. */
static void read_section_names(struct image *image, const Elf64_Shdr *strings)
{
    uint64_t size = strings->sh_size;
    if (strings->sh_type == SHT_NOBITS || strings->sh_offset >= image->size)
        size = 0;
    else if (size > image->size - strings->sh_offset)
        size = image->size - strings->sh_offset;
    if (size > SECTION_COUNT_MAX * 64ull)
        size = 0;
    image->section_names = memory_zalloc(1, (size_t)size + 1);
    image_read(image, strings->sh_offset, image->section_names, (size_t)size);
    for (size_t i = 0; i < image->section_count; i++) {
        struct image_section *s = &image->sections[i];
        size_t name = (size_t)(uintptr_t)s->name; /* an index until here */
        s->name = name < size ? image->section_names + name : "";
    }
}

static int read_sections(struct image *image, const Elf64_Ehdr *header, struct error *err)
{
    Elf64_Shdr first;
    size_t smallest = image->is_64bit ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
    if (header->e_shoff == 0 || header->e_shentsize < smallest)
        return 0; /* no section table at all: allowed, as in the memory of a process */
    if (!read_section_header(image, header, 0, &first))
        return 0; /* cut off: the segments in front may still serve */
    uint64_t count = header->e_shnum ? header->e_shnum : first.sh_size;
    uint64_t names = header->e_shstrndx == SHN_XINDEX ? first.sh_link : header->e_shstrndx;
    uint64_t room = (image->size - header->e_shoff) / header->e_shentsize;
    if (count > room)
        count = room;
    if (count > SECTION_COUNT_MAX)
        return malformed(image, err, "more than a million sections");

    CLEANUP(memory_freep) uint8_t *table = memory_alloc((size_t)count * header->e_shentsize);
    count = image_read(image, header->e_shoff, table, (size_t)count * header->e_shentsize) /
            header->e_shentsize;
    image->sections = memory_zalloc((size_t)count, sizeof(*image->sections));
    image->section_count = (size_t)count;
    Elf64_Shdr strings = {0};
    for (size_t i = 0; i < count; i++) {
        Elf64_Shdr s;
        if (image->is_64bit) {
            memcpy(&s, table + i * header->e_shentsize, sizeof(s));
        } else {
            Elf32_Shdr narrow;
            memcpy(&narrow, table + i * header->e_shentsize, sizeof(narrow));
            s = widen_section(&narrow);
        }
        if (i == names)
            strings = s;
        image->sections[i] = (struct image_section){.name = (const char *)(uintptr_t)s.sh_name,
                                                    .type = s.sh_type,
                                                    .flags = s.sh_flags,
                                                    .address = s.sh_addr,
                                                    .offset = s.sh_offset,
                                                    .size = s.sh_size,
                                                    .entry_size = s.sh_entsize,
                                                    .link = s.sh_link,
                                                    .info = s.sh_info};
    }
    read_section_names(image, &strings);
    return 0;
}

static void find_build_id(struct image *image, uint64_t offset, uint64_t size)
{
    if (offset >= image->size || image->build_id.size)
        return;
    if (size > NOTE_BYTES_MAX)
        size = NOTE_BYTES_MAX;
    CLEANUP(memory_freep) uint8_t *notes = memory_alloc((size_t)size);
    size_t got = image_read(image, offset, notes, (size_t)size);
    build_id_in_notes(notes, got, &image->build_id);
}

static void read_segments(struct image *image, const Elf64_Ehdr *header)
{
    size_t entry = image->is_64bit ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
    if (header->e_phoff == 0 || header->e_phoff >= image->size || header->e_phentsize < entry)
        return;
    uint64_t size = (uint64_t)header->e_phnum * header->e_phentsize;
    if (size > image->size - header->e_phoff)
        size = image->size - header->e_phoff;
    CLEANUP(memory_freep) uint8_t *table = memory_alloc((size_t)size);
    size_t count = image_read(image, header->e_phoff, table, (size_t)size) / header->e_phentsize;
    image->segments = memory_zalloc(count, sizeof(*image->segments));
    for (size_t i = 0; i < count; i++) {
        Elf64_Phdr p;
        if (image->is_64bit) {
            memcpy(&p, table + i * header->e_phentsize, sizeof(p));
        } else {
            Elf32_Phdr narrow;
            memcpy(&narrow, table + i * header->e_phentsize, sizeof(narrow));
            p = widen_segment(&narrow);
        }
        if (p.p_type == PT_LOAD)
            image->segments[image->segment_count++] =
                (struct image_segment){.offset = p.p_offset,
                                       .address = p.p_vaddr,
                                       .file_size = p.p_filesz,
                                       .memory_size = p.p_memsz,
                                       .executable = p.p_flags & PF_X};
        else if (p.p_type == PT_NOTE)
            find_build_id(image, p.p_offset, p.p_filesz);
        else if (p.p_type == PT_INTERP)
            image->interpreter = (struct image_part){p.p_offset, p.p_filesz};
    }
}

static int read_image(struct image *image, struct error *err)
{
    uint8_t ident[EI_NIDENT];
    Elf64_Ehdr header;
    if (!read_exactly(image, 0, ident, sizeof(ident)) || memcmp(ident, ELFMAG, SELFMAG) != 0)
        return malformed(image, err, "is not an ELF file");
    if (ident[EI_DATA] != ELFDATA2LSB)
        return malformed(image, err, "is a big-endian ELF file, which assay cannot read");
    if (ident[EI_CLASS] != ELFCLASS64 && ident[EI_CLASS] != ELFCLASS32)
        return malformed(image, err, "is neither a 32-bit nor a 64-bit ELF file");
    image->is_64bit = ident[EI_CLASS] == ELFCLASS64;
    if (!read_header(image, &header))
        return malformed(image, err, "ends within the ELF header");
    image->machine = header.e_machine;
    image->type = header.e_type;
    int r = read_sections(image, &header, err);
    if (r < 0)
        return r;
    read_segments(image, &header);
    /* A separate debug file may have its notes in a section only. */
    for (size_t i = 0; i < image->section_count && image->build_id.size == 0; i++)
        if (image->sections[i].type == SHT_NOTE)
            find_build_id(image, image->sections[i].offset, image->sections[i].size);
    return 0;
}

int image_open(struct image *image, const char *path, struct error *err)
{
    *image = (struct image){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
    if (image->fd < 0)
        return error_errno(err, -errno, "%s", path);
    struct stat st;
    image->path = memory_strdup(path);
    int r;
    if (fstat(image->fd, &st) < 0)
        r = error_errno(err, -errno, "%s", path);
    else if (!S_ISREG(st.st_mode))
        r = malformed(image, err, "is not a regular file");
    else {
        image->size = (uint64_t)st.st_size;
        r = read_image(image, err);
    }
    if (r < 0)
        image_close(image);
    return r;
}

int image_open_memory(struct image *image, const char *name, const void *bytes, size_t size,
                      struct error *err)
{
    *image = (struct image){.fd = -1, .bytes = bytes, .size = size, .path = memory_strdup(name)};
    int r = read_image(image, err);
    if (r < 0)
        image_close(image);
    return r;
}

int image_open_own_vdso(struct image *image, struct error *err)
{
    const uint8_t *bytes = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
    Elf64_Ehdr header = {0};
    if (bytes && sizeof(void *) == 8)
        memcpy(&header, bytes, sizeof(header));
    /* Its size: the end of the section table that its header names. */
    uint64_t size = header.e_shoff + (uint64_t)header.e_shentsize * header.e_shnum;
    if (header.e_shoff == 0 || size > VDSO_BYTES_MAX)
        return error_set(err, -ENOENT, "[vdso]: this process has none that can be read");
    return image_open_memory(image, "[vdso]", bytes, (size_t)size, err);
}

void image_close(struct image *image)
{
    if (image->path && image->fd >= 0)
        close(image->fd);
    free(image->path);
    free(image->segments);
    free(image->sections);
    free(image->section_names);
    *image = (struct image){.fd = -1};
}

const struct image_section *image_find(const struct image *image, const char *name)
{
    for (size_t i = 0; i < image->section_count; i++)
        if (str_eq(image->sections[i].name, name))
            return image->sections[i].type == SHT_NOBITS ? NULL : &image->sections[i];
    return NULL;
}

const struct image_section *image_find_type(const struct image *image, uint32_t type)
{
    for (size_t i = 0; i < image->section_count; i++)
        if (image->sections[i].type == type)
            return &image->sections[i];
    return NULL;
}

/* A compressed section begins with how it was compressed, and how large it is without. */
struct packed {
    uint32_t type;
    uint64_t size;
    uint64_t offset; /* of the compressed bytes, in the file */
    size_t packed_size;
};

static bool read_packed(const struct image *image, const struct image_section *section,
                        struct packed *p)
{
    size_t header = image->is_64bit ? sizeof(Elf64_Chdr) : sizeof(Elf32_Chdr);
    Elf64_Chdr wide;
    Elf32_Chdr narrow;
    if (section->size < header || section->size > image->size - section->offset ||
        !read_exactly(image, section->offset, image->is_64bit ? (void *)&wide : (void *)&narrow,
                      header))
        return false;
    *p = (struct packed){.type = image->is_64bit ? wide.ch_type : narrow.ch_type,
                         .size = image->is_64bit ? wide.ch_size : narrow.ch_size,
                         .offset = section->offset + header,
                         .packed_size = (size_t)(section->size - header)};
    return true;
}

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

#if HAVE_LIBZSTD
/* libelf learned zstd only in 0.189.  The size that the header claims is not trusted: the room
 * grows with what comes out. */
static int decompress_zstd(const struct image *image, const struct packed *p, uint8_t **ret_bytes,
                           size_t *ret_size)
{
    CLEANUP(memory_freep) uint8_t *packed = memory_alloc(p->packed_size + 1);
    if (!read_exactly(image, p->offset, packed, p->packed_size))
        return -EBADMSG;
    ZSTD_DStream *zstd = ZSTD_createDStream();
    ZSTD_inBuffer in = {.src = packed, .size = p->packed_size};
    uint8_t *bytes = NULL;
    size_t capacity = 0, left = 1;
    ZSTD_outBuffer out = {0};
    while (left && !ZSTD_isError(left) && out.pos <= p->size) {
        bytes = memory_grow(bytes, &capacity, out.pos + 65536 + 1, 1);
        size_t before = out.pos, read_before = in.pos;
        out.dst = bytes;
        out.size = capacity - 1;
        left = ZSTD_decompressStream(zstd, &out, &in);
        if (out.pos == before && in.pos == read_before)
            break;
    }
    ZSTD_freeDStream(zstd);
    if (left || out.pos != p->size || !bytes) {
        free(bytes);
        return -EBADMSG;
    }
    bytes[out.pos] = 0;
    *ret_bytes = bytes;
    *ret_size = out.pos;
    return 0;
}
#else
static int decompress_zstd(const struct image *image, const struct packed *p, uint8_t **ret_bytes,
                           size_t *ret_size)
{
    (void)image, (void)p, (void)ret_bytes, (void)ret_size;
    return -ENOTSUP;
}
#endif

#if HAVE_LIBELF
/* libelf undoes the others; the section is found again by its place. */
static int decompress_other(const struct image *image, const struct image_section *section,
                            uint8_t **ret_bytes, size_t *ret_size)
{
    int r = -EBADMSG;
    if (elf_version(EV_CURRENT) == EV_NONE)
        return r;
    Elf *elf = image->fd >= 0 ? elf_begin(image->fd, ELF_C_READ, NULL)
                              : elf_memory((char *)(uintptr_t)image->bytes, (size_t)image->size);
    Elf_Scn *scn = elf ? elf_getscn(elf, (size_t)(section - image->sections)) : NULL;
    if (scn && elf_compress(scn, 0, 0) >= 0) {
        Elf_Data *data = elf_rawdata(scn, NULL);
        if (data && data->d_buf && data->d_size) {
            *ret_bytes = memory_alloc(data->d_size + 1);
            memcpy(*ret_bytes, data->d_buf, data->d_size);
            (*ret_bytes)[data->d_size] = 0;
            *ret_size = data->d_size;
            r = 0;
        }
    }
    elf_end(elf);
    return r;
}
#else
static int decompress_other(const struct image *image, const struct image_section *section,
                            uint8_t **ret_bytes, size_t *ret_size)
{
    (void)image, (void)section, (void)ret_bytes, (void)ret_size;
    return -ENOTSUP;
}
#endif

static int decompress(const struct image *image, const struct image_section *section,
                      uint8_t **ret_bytes, size_t *ret_size, struct error *err)
{
    struct packed p;
    int r = -EBADMSG;
    /* The size that the header claims is checked against what deflate and zstd can reach at
     * most. */
    if (read_packed(image, section, &p) && p.size <= SECTION_BYTES_MAX &&
        p.size / 131072 <= p.packed_size)
        r = p.type == ELFCOMPRESS_ZSTD ? decompress_zstd(image, &p, ret_bytes, ret_size)
                                       : decompress_other(image, section, ret_bytes, ret_size);
    if (r == -ENOTSUP)
        return error_set(err, r,
                         "%s: section %s is compressed; this build lacks the library for it",
                         image->path, section->name);
    return r < 0 ? error_set(err, r, "%s: section %s: cannot be decompressed", image->path,
                             section->name)
                 : 0;
}

int image_section_bytes(const struct image *image, const struct image_section *section,
                        uint8_t **ret_bytes, size_t *ret_size, struct error *err)
{
    if (section->type == SHT_NOBITS || section->size == 0 || section->offset >= image->size)
        return error_set(err, -ENOENT, "%s: section %s has no bytes", image->path, section->name);
    if (section->flags & SHF_COMPRESSED)
        return decompress(image, section, ret_bytes, ret_size, err);
    uint64_t size = section->size;
    if (size > image->size - section->offset)
        size = image->size - section->offset;
    if (size > SECTION_BYTES_MAX)
        return error_set(err, -EFBIG, "%s: section %s is larger than 4 GiB", image->path,
                         section->name);
    uint8_t *bytes = memory_alloc((size_t)size + 1);
    *ret_size = image_read(image, section->offset, bytes, (size_t)size);
    bytes[*ret_size] = 0;
    *ret_bytes = bytes;
    return 0;
}

bool image_offset_to_address(const struct image *image, uint64_t offset, uint64_t *ret_address)
{
    /* A page holds the end of one segment and the start of the next: code wins. */
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < image->segment_count; i++) {
            const struct image_segment *s = &image->segments[i];
            if (s->executable == (pass == 0) && offset >= s->offset &&
                offset - s->offset < s->file_size) {
                *ret_address = s->address + (offset - s->offset);
                return true;
            }
        }
    }
    return false;
}

bool image_address_to_offset(const struct image *image, uint64_t address, uint64_t *ret_offset,
                             size_t *ret_left)
{
    for (size_t i = 0; i < image->segment_count; i++) {
        const struct image_segment *s = &image->segments[i];
        if (address >= s->address && address - s->address < s->file_size) {
            *ret_offset = s->offset + (address - s->address);
            *ret_left = (size_t)(s->file_size - (address - s->address));
            return true;
        }
    }
    return false;
}

void image_describe(const struct image *image, struct strbuf *out)
{
    struct stat st;
    if (!image || image->fd < 0 || fstat(image->fd, &st) < 0)
        strbuf_puts(out, "- ");
    else
        strbuf_printf(out, "%s %lld %lld.%09ld ", image->path, (long long)st.st_size,
                      (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

char *image_interpreter(const struct image *image)
{
    const struct image_part *part = &image->interpreter;
    if (part->size == 0 || part->size > PATH_MAX)
        return NULL;
    CLEANUP(memory_freep) char *name = memory_zalloc((size_t)part->size + 1, 1);
    if (!read_exactly(image, part->offset, name, (size_t)part->size))
        return NULL;
    return memory_strdup(name);
}

char *image_debuglink(const struct image *image, uint32_t *ret_crc)
{
    const struct image_section *section = image_find(image, ".gnu_debuglink");
    CLEANUP(memory_freep) uint8_t *bytes = NULL;
    size_t size = 0;
    if (!section || section->size > NOTE_BYTES_MAX ||
        image_section_bytes(image, section, &bytes, &size, NULL) < 0)
        return NULL;
    size_t length = strnlen((char *)bytes, size);
    size_t crc_at = (length + 4) & ~(size_t)3;
    if (length == 0 || crc_at + sizeof(*ret_crc) > size || memchr(bytes, '/', length))
        return NULL;
    memcpy(ret_crc, bytes + crc_at, sizeof(*ret_crc));
    return memory_strndup((char *)bytes, length);
}
