/* SPDX-License-Identifier: MIT */
/* The little of ELF that the probes need: see elf.h. */
#include "machine/elf.h"
#include "base/fd.h"
#include "base/memory.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define FUNCTION_BYTES_LEAST 32 /* shorter ones are stubs, which need no frame */
#define PROLOGUE_BYTES 48       /* how far into a function its frame may be set up */

int elf_from_memory(struct elf_file *e, const void *bytes, size_t size)
{
    Elf64_Ehdr header;
    if (size < sizeof(header))
        return -ENOEXEC;
    memcpy(&header, bytes, sizeof(header));
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_ident[EI_DATA] != ELFDATA2LSB)
        return -ENOEXEC;
    *e = (struct elf_file){.bytes = bytes, .size = size, .machine = header.e_machine};
    return 0;
}

int elf_open(struct elf_file *e, const char *path)
{
    CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(Elf64_Ehdr))
        return -ENOEXEC;
    size_t size = (size_t)st.st_size;
    void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return -errno;
    int r = elf_from_memory(e, bytes, size);
    if (r < 0)
        munmap(bytes, size);
    return r;
}

void elf_done(struct elf_file *e)
{
    munmap((void *)(uintptr_t)e->bytes, e->size);
}

/* The bytes from offset on, NULL when the file has not that many. */
static const unsigned char *elf_part(const struct elf_file *e, uint64_t offset, uint64_t length)
{
    return offset <= e->size && length <= e->size - offset ? e->bytes + offset : NULL;
}

static bool elf_section(const struct elf_file *e, size_t index, Elf64_Shdr *ret_section)
{
    Elf64_Ehdr header;
    memcpy(&header, e->bytes, sizeof(header));
    if (index >= header.e_shnum || header.e_shentsize != sizeof(*ret_section) ||
        header.e_shoff > e->size)
        return false;
    const unsigned char *at =
        elf_part(e, header.e_shoff + index * sizeof(*ret_section), sizeof(*ret_section));
    if (at)
        memcpy(ret_section, at, sizeof(*ret_section));
    return at != NULL;
}

bool elf_notes_build_id(const unsigned char *notes, size_t length, char *hex, size_t size)
{
    Elf64_Nhdr note;
    for (size_t at = 0; at < length && length - at >= sizeof(note);) {
        memcpy(&note, notes + at, sizeof(note));
        at += sizeof(note);
        /* Sums of 64 bits, so that lengths near 4 GiB cannot wrap. */
        uint64_t name_end = at + (((uint64_t)note.n_namesz + 3) & ~UINT64_C(3));
        uint64_t end = name_end + (((uint64_t)note.n_descsz + 3) & ~UINT64_C(3));
        if (name_end > length || name_end + note.n_descsz > length)
            return false;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            memcmp(notes + at, "GNU", 4) == 0 && note.n_descsz &&
            2 * (size_t)note.n_descsz < size) {
            for (size_t i = 0; i < note.n_descsz; i++)
                snprintf(hex + 2 * i, 3, "%02x", notes[name_end + i]);
            return true;
        }
        at = end > length ? length : (size_t)end;
    }
    return false;
}

bool elf_build_id(const struct elf_file *e, char *hex, size_t size)
{
    Elf64_Shdr section;
    for (size_t i = 0; elf_section(e, i, &section); i++) {
        if (section.sh_type != SHT_NOTE)
            continue;
        const unsigned char *notes = elf_part(e, section.sh_offset, section.sh_size);
        if (notes && elf_notes_build_id(notes, (size_t)section.sh_size, hex, size))
            return true;
    }
    return false;
}

/* push %rbp; mov %rsp,%rbp; the two may be apart when the push comes first. */
bool code_sets_frame_x86_64(const unsigned char *code, size_t length)
{
    static const unsigned char endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    if (length > PROLOGUE_BYTES)
        length = PROLOGUE_BYTES;
    if (length >= 4 && memcmp(code, endbr64, 4) == 0) {
        code += 4;
        length -= 4;
    }
    bool pushed_first = length && code[0] == 0x55;
    for (size_t at = 1; at + 3 <= length; at++) {
        bool moves = (code[at] == 0x48 && code[at + 1] == 0x89 && code[at + 2] == 0xe5) ||
                     (code[at] == 0x48 && code[at + 1] == 0x8b && code[at + 2] == 0xec);
        if (moves && (pushed_first || code[at - 1] == 0x55))
            return true;
    }
    return false;
}

/* stp x29, x30, [sp, …] and mov x29, sp or add x29, sp, #… */
bool code_sets_frame_aarch64(const unsigned char *code, size_t length)
{
    bool stored = false;
    if (length > PROLOGUE_BYTES)
        length = PROLOGUE_BYTES;
    for (size_t at = 0; at + 4 <= length; at += 4) {
        uint32_t word;
        memcpy(&word, code + at, sizeof(word));
        stored |= (word & 0xffc07fff) == 0xa9807bfd || (word & 0xffc07fff) == 0xa9007bfd;
        if (stored && (word & 0xffc003ff) == 0x910003fd)
            return true;
    }
    return false;
}

/* The code of a symbol, when it is a function with a body of some length in this file. */
static const unsigned char *symbol_code(const struct elf_file *e, const Elf64_Sym *symbol)
{
    Elf64_Shdr section;
    if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_size < FUNCTION_BYTES_LEAST ||
        !elf_section(e, symbol->st_shndx, &section) || section.sh_type != SHT_PROGBITS ||
        symbol->st_value < section.sh_addr)
        return NULL;
    uint64_t inside = symbol->st_value - section.sh_addr;
    if (inside > section.sh_size || symbol->st_size > section.sh_size - inside ||
        section.sh_offset > e->size)
        return NULL;
    return elf_part(e, section.sh_offset + inside, symbol->st_size);
}

static void count_in_table(const struct elf_file *e, const Elf64_Shdr *table,
                           struct elf_frames *frames)
{
    const unsigned char *at = elf_part(e, table->sh_offset, table->sh_size);
    size_t count = at ? (size_t)table->sh_size / sizeof(Elf64_Sym) : 0;
    for (size_t i = 0; i < count; i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, at + i * sizeof(symbol), sizeof(symbol));
        const unsigned char *code = symbol_code(e, &symbol);
        if (!code)
            continue;
        frames->functions++;
        frames->framed += e->machine == EM_X86_64
                              ? code_sets_frame_x86_64(code, (size_t)symbol.st_size)
                              : code_sets_frame_aarch64(code, (size_t)symbol.st_size);
    }
}

bool elf_count_frames(const struct elf_file *e, struct elf_frames *ret_frames)
{
    struct elf_frames frames = {0};
    Elf64_Shdr section;
    if (e->machine != EM_X86_64 && e->machine != EM_AARCH64)
        return false;
    for (size_t i = 0; elf_section(e, i, &section); i++)
        if (section.sh_type == SHT_DYNSYM)
            count_in_table(e, &section, &frames);
    if (!frames.functions)
        return false;
    *ret_frames = frames;
    return true;
}
