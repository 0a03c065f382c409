/* SPDX-License-Identifier: MIT */
/* Where a uprobe goes: see probe.h.  Symbols are read with libelf; without it only offsets work. */
#include "counters/probe.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/strings.h"
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>

#if HAVE_LIBELF
#include <gelf.h>

/* Finds the symbol in the table of one section; keeps names for a suggestion. */
static bool find_in_section(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, const char *symbol,
                            uint64_t *ret_address, const char ***names, size_t *name_count,
                            size_t *name_capacity)
{
    Elf_Data *data = elf_getdata(section, NULL);
    if (!data || !header->sh_entsize)
        return false;
    size_t count = data->d_size / header->sh_entsize;
    for (size_t i = 0; i < count && i < INT_MAX; i++) {
        GElf_Sym sym;
        if (!gelf_getsym(data, (int)i, &sym) || GELF_ST_TYPE(sym.st_info) != STT_FUNC ||
            sym.st_shndx == SHN_UNDEF)
            continue;
        const char *name = elf_strptr(elf, header->sh_link, sym.st_name);
        if (!name)
            continue;
        if (str_eq(name, symbol)) {
            *ret_address = sym.st_value;
            return true;
        }
        ARRAY_PUSH(*names, *name_count, *name_capacity) = name;
    }
    return false;
}

static int find_symbol(Elf *elf, const char *symbol, uint64_t *ret_address, struct error *err)
{
    const char **names = NULL;
    size_t name_count = 0, name_capacity = 0;
    Elf_Scn *section = NULL;
    bool found = false;
    while (!found && (section = elf_nextscn(elf, section))) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) &&
            (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM))
            found = find_in_section(elf, section, &header, symbol, ret_address, &names, &name_count,
                                    &name_capacity);
    }
    CLEANUP(strbuf_done) struct strbuf near = {0};
    size_t near_count = found ? 0 : str_nearest(symbol, names, name_count, 3, &near);
    free(names);
    if (found)
        return 0;
    if (!name_count)
        return error_set(err, -ENOENT,
                         "it has no symbols (stripped): give an offset in the file, as 0x1234");
    if (near_count)
        return error_set(err, -ENOENT, "it has no function '%s'; near names: %s", symbol,
                         strbuf_text(&near));
    return error_set(err, -ENOENT, "it has no function '%s'", symbol);
}

/* The place in the file of what is loaded at an address. */
static int file_offset(Elf *elf, uint64_t address, uint64_t *ret_offset, struct error *err)
{
    size_t count;
    if (elf_getphdrnum(elf, &count) < 0)
        return error_set(err, -EINVAL, "its program headers cannot be read");
    for (size_t i = 0; i < count && i < INT_MAX; i++) {
        GElf_Phdr header;
        if (gelf_getphdr(elf, (int)i, &header) && header.p_type == PT_LOAD &&
            address >= header.p_vaddr && address - header.p_vaddr < header.p_filesz) {
            *ret_offset = address - header.p_vaddr + header.p_offset;
            return 0;
        }
    }
    return error_set(err, -EINVAL, "the symbol lies in no loaded part of the file");
}

static int symbol_offset(const char *path, const char *symbol, uint64_t *ret_offset,
                         struct error *err)
{
    CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, -errno, "%s", path);
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    if (!elf || elf_kind(elf) != ELF_K_ELF) {
        elf_end(elf);
        return error_set(err, -ENOEXEC, "%s is not an ELF file", path);
    }
    uint64_t address = 0;
    int r = find_symbol(elf, symbol, &address, err);
    if (r == 0)
        r = file_offset(elf, address, ret_offset, err);
    elf_end(elf);
    return r < 0 ? error_wrap(err, r, "%s", path) : 0;
}
#else
static int symbol_offset(const char *path, const char *symbol, uint64_t *ret_offset,
                         struct error *err)
{
    (void)ret_offset;
    return error_set(err, -ENOTSUP,
                     "%s: this assay was built without libelf and cannot look up '%s'; give an "
                     "offset in the file, as 0x1234",
                     path, symbol);
}
#endif

int probe_find(const char *binary, const char *place, char **ret_path, uint64_t *ret_offset,
               struct error *err)
{
    CLEANUP(memory_freep) char *path = NULL;
    if (strchr(binary, '/')) {
        path = realpath(binary, NULL);
        if (!path)
            return error_errno(err, -errno, "%s", binary);
    } else {
        CLEANUP(memory_freep) char *found = NULL;
        int r = process_find(binary, &found, err);
        if (r < 0)
            return r;
        path = realpath(found, NULL);
        if (!path)
            return error_errno(err, -errno, "%s", found);
    }
    uint64_t offset = 0, extra = 0;
    int r;
    if (str_has_prefix(place, "0x")) {
        r = parse_u64(place, &offset, err);
    } else {
        CLEANUP(memory_freep) char *symbol = memory_strdup(place);
        char *plus = strchr(symbol, '+');
        r = 0;
        if (plus) {
            *plus = '\0';
            r = parse_u64(plus + 1, &extra, err);
        }
        if (r == 0)
            r = symbol_offset(path, symbol, &offset, err);
    }
    if (r < 0)
        return r;
    *ret_path = path;
    path = NULL;
    *ret_offset = offset + extra;
    return 0;
}
