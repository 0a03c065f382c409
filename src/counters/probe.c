/* SPDX-License-Identifier: MIT */
/* Where a uprobe goes: see probe.h. */
#include "counters/probe.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/strings.h"
#include "elf/table.h"

#include <errno.h>

/* Where the search has been; names of its tables are kept for a suggestion. */
struct symbol_search {
    const char *wanted;
    const char **names;
    size_t count, capacity;
};

static bool find_in_table(struct symbol_search *s, const struct elf_table *table,
                          uint64_t *ret_address)
{
    for (size_t i = 0; i < table->count; i++) {
        Elf64_Sym symbol = elf_table_symbol(table, i);
        size_t length;
        const char *name = elf_table_name(table, symbol.st_name, SIZE_MAX, &length);
        if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF || !length)
            continue;
        if (str_eq(name, s->wanted)) {
            *ret_address = symbol.st_value;
            return true;
        }
        ARRAY_PUSH(s->names, s->count, s->capacity) = name;
    }
    return false;
}

static int no_such_symbol(const struct symbol_search *s, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf near = {0};
    if (!s->count)
        return error_set(err, -ENOENT,
                         "it has no symbols (stripped): give an offset in the file, e.g. 0x1234");
    if (str_nearest(s->wanted, s->names, s->count, 3, &near))
        return error_set(err, -ENOENT, "it has no function '%s'; similar names: %s", s->wanted,
                         strbuf_text(&near));
    return error_set(err, -ENOENT, "it has no function '%s'", s->wanted);
}

static int find_symbol(const struct image *image, const char *symbol, uint64_t *ret_address,
                       struct error *err)
{
    static const uint32_t types[] = {SHT_SYMTAB, SHT_DYNSYM};
    struct elf_table tables[ARRAY_COUNT(types)] = {0};
    struct symbol_search search = {.wanted = symbol};
    bool found = false;
    for (size_t i = 0; i < ARRAY_COUNT(types) && !found; i++) {
        const struct image_section *section = image_find_type(image, types[i]);
        found = section && elf_table_read(&tables[i], image, section) &&
                find_in_table(&search, &tables[i], ret_address);
    }
    int r = found ? 0 : no_such_symbol(&search, err);
    for (size_t i = 0; i < ARRAY_COUNT(types); i++)
        elf_table_done(&tables[i]);
    free(search.names);
    return r;
}

static int symbol_offset(const char *path, const char *symbol, uint64_t *ret_offset,
                         struct error *err)
{
    struct image image;
    int r = image_open(&image, path, err);
    if (r == -EBADMSG)
        return error_set(err, -ENOEXEC, "%s is not an ELF file", path);
    if (r < 0)
        return r;
    uint64_t address = 0;
    size_t left;
    r = find_symbol(&image, symbol, &address, err);
    if (r == 0 && !image_address_to_offset(&image, address, ret_offset, &left))
        r = error_set(err, -EINVAL, "the symbol is not in a loaded part of the file");
    image_close(&image);
    return r < 0 ? error_wrap(err, r, "%s", path) : 0;
}

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
