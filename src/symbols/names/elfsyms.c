/* SPDX-License-Identifier: MIT */
/* The symbols of ELF files: see elfsyms.h. */
#include "symbols/names/elfsyms.h"

#include "base/fd.h"
#include "base/memory.h"
#include "config.h"
#include "elf/table.h"
#include "symbols/names/own_library.h"

#include <elf.h>
#include <errno.h>
#include <sys/mman.h>
#if HAVE_LIBDW
#include "symbols/names/libdw.h"
#endif

#define DEBUGDATA_BYTES_MAX (16u << 20)

static const char *name_of(const struct elf_table *t, const Elf64_Sym *symbol, size_t *ret_length)
{
    return elf_table_name(t, symbol->st_name, SYMBOLS_NAME_MAX, ret_length);
}

/* "$x" and "$d.7" mark code and data for disassemblers on other machines than x86. */
static bool is_mapping_symbol(const struct image *image, const char *name)
{
    return image->machine != EM_X86_64 && image->machine != EM_386 && name[0] == '$' &&
           strchr("adtx", name[1]) && (name[1] == '\0' || name[2] == '\0' || name[2] == '.');
}

/* Functions, and labels without a type that lie in code. */
static bool is_code(const struct image *image, const Elf64_Sym *symbol)
{
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS)
        return false;
    switch (ELF64_ST_TYPE(symbol->st_info)) {
    case STT_FUNC:
    case STT_GNU_IFUNC:
        return true;
    case STT_NOTYPE:
        return symbol->st_shndx < image->section_count &&
               (image->sections[symbol->st_shndx].flags & SHF_EXECINSTR);
    default:
        return false;
    }
}

static enum symtab_binding binding_of(const Elf64_Sym *symbol)
{
    switch (ELF64_ST_BIND(symbol->st_info)) {
    case STB_LOCAL:
        return SYMTAB_LOCAL;
    case STB_WEAK:
        return SYMTAB_WEAK;
    default:
        return SYMTAB_GLOBAL;
    }
}

static void add_table(struct symtab_builder *builder, const struct image *image,
                      const struct image_section *section)
{
    CLEANUP(elf_table_done) struct elf_table t;
    if (!elf_table_read(&t, image, section))
        return;
    for (size_t i = 1; i < t.count; i++) {
        Elf64_Sym symbol = elf_table_symbol(&t, i);
        if (!is_code(image, &symbol))
            continue;
        size_t length;
        const char *name = name_of(&t, &symbol, &length);
        if (is_mapping_symbol(image, name))
            continue;
        uint64_t limit = UINT64_MAX;
        if (symbol.st_shndx < image->section_count) {
            const struct image_section *home = &image->sections[symbol.st_shndx];
            limit = home->address + home->size;
        }
        symtab_add(builder, symbol.st_value, symbol.st_size, limit, binding_of(&symbol), name,
                   length);
    }
}

uint64_t elfsyms_address_of(const struct image *image, const char *name)
{
    const struct image_section *section = image_find_type(image, SHT_SYMTAB);
    CLEANUP(elf_table_done) struct elf_table t = {0};
    if (!section || !elf_table_read(&t, image, section))
        return 0;
    size_t wanted = strlen(name);
    for (size_t i = 1; i < t.count; i++) {
        Elf64_Sym symbol = elf_table_symbol(&t, i);
        size_t length;
        const char *text = name_of(&t, &symbol, &length);
        if (length == wanted && memcmp(text, name, length) == 0)
            return symbol.st_value;
    }
    return 0;
}

bool elfsyms_has_symtab(const struct image *image)
{
    const struct image_section *section = image_find_type(image, SHT_SYMTAB);
    return section && section->size > sizeof(Elf64_Sym);
}

#if HAVE_LIBDW
/* A whole small ELF file, packed with xz, whose .symtab has what .dynsym lacks.  libdw unpacks
 * files, so it gets one that lives in memory. */
static void add_debugdata(struct symtab_builder *builder, const struct image *code,
                          struct error *err)
{
    const struct image_section *section = image_find(code, ".gnu_debugdata");
    CLEANUP(memory_freep) uint8_t *bytes = NULL;
    size_t size = 0;
    if (!section || section->size > DEBUGDATA_BYTES_MAX ||
        image_section_bytes(code, section, &bytes, &size, NULL) < 0)
        return;
    CLEANUP(fd_closep) int fd = memfd_create("gnu_debugdata", MFD_CLOEXEC);
    if (fd < 0 || fd_write_all(fd, bytes, size) < 0 || elf_version(EV_CURRENT) == EV_NONE)
        return;
    Elf *elf = library_load(&dw_library, err) == 0 ? dwelf_elf_begin(fd) : NULL;
    size_t unpacked_size = 0;
    char *unpacked = elf ? elf_rawfile(elf, &unpacked_size) : NULL;
    struct image inner;
    if (unpacked && image_open_memory(&inner, code->path, unpacked, unpacked_size, NULL) == 0) {
        const struct image_section *symtab = image_find_type(&inner, SHT_SYMTAB);
        if (symtab)
            add_table(builder, &inner, symtab);
        image_close(&inner);
    }
    elf_end(elf);
}
#else
static void add_debugdata(struct symtab_builder *builder, const struct image *code,
                          struct error *err)
{
    (void)builder;
    if (image_find(code, ".gnu_debugdata"))
        error_set(err, -ENOTSUP,
                  "assay was built without libdw and cannot read the symbols in .gnu_debugdata");
}
#endif

/* Segments with code first: a page that ends one segment and begins the next counts as code. */
static void add_segments(struct symtab_builder *builder, const struct image *code)
{
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < code->segment_count; i++) {
            const struct image_segment *s = &code->segments[i];
            if (s->executable == (pass == 0))
                symtab_add_segment(builder, s->offset, s->address, s->file_size);
        }
    }
}

/* With the debug file alone: it no longer knows where the code was in the other file.  What
 * linkers do when they are not told otherwise is to load the file as it is. */
static void guess_segments(struct symtab_builder *builder, const struct image *debug)
{
    if (debug->segment_count)
        symtab_add_segment(builder, 0, debug->segments[0].address & ~4095ull, UINT64_MAX);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The first of the sorted values that is not below another one. */
static size_t first_from(const uint64_t *values, size_t count, uint64_t wanted)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (values[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Stripped code keeps the bounds of its functions, for exceptions and debuggers. */
static void add_bounds(struct symtab_builder *builder, const struct elfsyms_bounds *bounds)
{
    size_t count = builder->count;
    uint64_t *starts = memory_alloc((count + 1) * sizeof(*starts));
    for (size_t i = 0; i < count; i++)
        starts[i] = builder->entries[i].start;
    qsort(starts, count, sizeof(*starts), by_value);
    const char *suffix = strstr(bounds->module, ".so");
    size_t length = suffix ? (size_t)(suffix - bounds->module) : strlen(bounds->module);
    for (size_t i = 0; i < bounds->count; i++) {
        const struct elfsyms_bound *b = &bounds->items[i];
        size_t next = first_from(starts, count, b->start);
        if (next < count && starts[next] < b->start + b->size)
            continue;
        CLEANUP(strbuf_done) struct strbuf name = {0};
        strbuf_append(&name, bounds->module, length);
        strbuf_printf(&name, "+0x%llx", (unsigned long long)b->start);
        symtab_add(builder, b->start, b->size, UINT64_MAX, SYMTAB_LOCAL, name.data, name.length);
    }
    free(starts);
}

bool elfsyms_is_address(const char *name, size_t length)
{
    size_t digits = 0;
    while (digits < length && strchr("0123456789abcdef", name[length - 1 - digits]))
        digits++;
    return digits > 0 && length > digits + 3 && memcmp(name + length - digits - 3, "+0x", 3) == 0;
}

void elfsyms_load(const struct image *code, const struct image *debug,
                  const struct elfsyms_bounds *bounds, struct symtab *ret_table, struct error *err)
{
    err->code = 0;
    struct symtab_builder builder = {0};
    const struct image *with_symtab = code && elfsyms_has_symtab(code)     ? code
                                      : debug && elfsyms_has_symtab(debug) ? debug
                                                                           : NULL;
    if (with_symtab) {
        add_table(&builder, with_symtab, image_find_type(with_symtab, SHT_SYMTAB));
    } else if (code) {
        const struct image_section *exported = image_find_type(code, SHT_DYNSYM);
        if (exported)
            add_table(&builder, code, exported);
        add_debugdata(&builder, code, err);
    }
    if (code) {
        elfsyms_add_plt(&builder, code);
        if (bounds && !with_symtab) {
            own_library_add(&builder, code, bounds);
            add_bounds(&builder, bounds);
        }
        add_segments(&builder, code);
    } else if (debug) {
        guess_segments(&builder, debug);
    }
    symtab_build(&builder, ret_table);
}

/* The rest is the procedure linkage table.  Each entry jumps through a slot that a relocation
 * names; so the slot's address, taken from the instructions, gives the name, whatever the
 * linker's layout is. */

struct plt_slot {
    uint64_t address;
    uint32_t symbol;
};

struct plt_slots {
    struct plt_slot *items;
    size_t count, capacity;
};

static int by_address(const void *a, const void *b)
{
    const struct plt_slot *x = a, *y = b;
    return x->address < y->address ? -1 : x->address > y->address;
}

static bool is_slot_type(uint16_t machine, uint32_t type)
{
    return machine == EM_X86_64 ? type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT
                                : type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
}

static void collect_slots(const struct image *code, struct plt_slots *slots)
{
    for (size_t s = 0; s < code->section_count; s++) {
        const struct image_section *section = &code->sections[s];
        CLEANUP(memory_freep) uint8_t *bytes = NULL;
        size_t size = 0;
        if (section->type != SHT_RELA || !(section->flags & SHF_ALLOC) ||
            image_section_bytes(code, section, &bytes, &size, NULL) < 0)
            continue;
        for (size_t at = 0; at + sizeof(Elf64_Rela) <= size; at += sizeof(Elf64_Rela)) {
            Elf64_Rela rela;
            memcpy(&rela, bytes + at, sizeof(rela));
            if (is_slot_type(code->machine, ELF64_R_TYPE(rela.r_info)))
                ARRAY_PUSH(slots->items, slots->count, slots->capacity) =
                    (struct plt_slot){rela.r_offset, (uint32_t)ELF64_R_SYM(rela.r_info)};
        }
    }
    if (slots->count)
        qsort(slots->items, slots->count, sizeof(*slots->items), by_address);
}

struct plt_scan {
    struct symtab_builder *builder;
    const struct elf_table *names;
    const struct plt_slots *slots;
};

static void name_entry(const struct plt_scan *scan, uint64_t address, uint64_t size, uint64_t slot)
{
    const struct plt_slot key = {.address = slot};
    const struct plt_slot *found =
        bsearch(&key, scan->slots->items, scan->slots->count, sizeof(key), by_address);
    if (!found || found->symbol >= scan->names->count)
        return;
    Elf64_Sym symbol = elf_table_symbol(scan->names, found->symbol);
    size_t length;
    const char *name = name_of(scan->names, &symbol, &length);
    if (length == 0)
        return;
    CLEANUP(strbuf_done) struct strbuf text = {0};
    strbuf_append(&text, name, length);
    strbuf_puts(&text, "@plt");
    symtab_add(scan->builder, address, size, UINT64_MAX, SYMTAB_LOCAL, text.data, text.length);
}

/* jmp *slot(%rip), alone, behind bnd, behind endbr64, or behind both. */
static void scan_x86(const struct plt_scan *scan, const struct image_section *section,
                     const uint8_t *bytes, size_t size)
{
    static const size_t places[] = {0, 1, 4, 5};
    size_t entry =
        section->entry_size == 8 || section->entry_size == 24 || section->entry_size == 32
            ? (size_t)section->entry_size
            : 16;
    for (size_t at = 0; at + entry <= size; at += entry) {
        for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
            size_t jump = at + places[i];
            if (places[i] + 6 > entry || bytes[jump] != 0xff || bytes[jump + 1] != 0x25)
                continue;
            int32_t distance;
            memcpy(&distance, bytes + jump + 2, sizeof(distance));
            name_entry(scan, section->address + at, entry,
                       section->address + jump + 6 + (uint64_t)(int64_t)distance);
            break;
        }
    }
}

/* adrp x16, page; ldr x17, [x16, #low]; perhaps behind bti c. */
static void scan_aarch64(const struct plt_scan *scan, const struct image_section *section,
                         const uint8_t *bytes, size_t size)
{
    const uint32_t bti_c = 0xd503245f;
    uint32_t before = 0, page = 0, load = 0;
    for (size_t at = 0; at + 8 <= size; at += 4, before = page) {
        memcpy(&page, bytes + at, 4);
        memcpy(&load, bytes + at + 4, 4);
        if ((page & 0x9f00001f) != 0x90000010 || (load & 0xffc003ff) != 0xf9400211)
            continue;
        uint64_t here = section->address + at;
        uint64_t pages = (page >> 29 & 3) | (page >> 5 & 0x7ffff) << 2;
        int64_t distance = (int64_t)(pages << 43) >> 31; /* 21 bits with sign, in pages of 4096 */
        uint64_t slot = (here & ~4095ull) + (uint64_t)distance + (load >> 10 & 0xfff) * 8;
        bool marked = before == bti_c;
        name_entry(scan, marked ? here - 4 : here, marked ? 24 : 16, slot);
    }
}

void elfsyms_add_plt(struct symtab_builder *builder, const struct image *code)
{
    static const char *const sections[] = {".plt", ".plt.sec", ".plt.got", ".plt.bnd"};
    const struct image_section *exported = image_find_type(code, SHT_DYNSYM);
    if (!code->is_64bit || !exported || (code->machine != EM_X86_64 && code->machine != EM_AARCH64))
        return;
    CLEANUP(elf_table_done) struct elf_table names;
    struct plt_slots slots = {0};
    if (!elf_table_read(&names, code, exported))
        return;
    collect_slots(code, &slots);
    struct plt_scan scan = {builder, &names, &slots};
    for (size_t i = 0; i < ARRAY_COUNT(sections) && slots.count; i++) {
        const struct image_section *section = image_find(code, sections[i]);
        CLEANUP(memory_freep) uint8_t *bytes = NULL;
        size_t size = 0;
        if (!section || image_section_bytes(code, section, &bytes, &size, NULL) < 0)
            continue;
        if (code->machine == EM_X86_64)
            scan_x86(&scan, section, bytes, size);
        else
            scan_aarch64(&scan, section, bytes, size);
    }
    free(slots.items);
}
