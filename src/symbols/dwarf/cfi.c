/* SPDX-License-Identifier: MIT */
/* Call frame information: see cfi.h. */
#include "symbols/dwarf/cfi.h"

#include "base/memory.h"
#include "symbols/dwarf/cfi_program.h"

#include <stdatomic.h>

#define SECTION_BYTES_MAX (1u << 30)

enum {
    PE_ABSOLUTE = 0x00,
    PE_ULEB = 0x01,
    PE_U2 = 0x02,
    PE_U4 = 0x03,
    PE_U8 = 0x04,
    PE_SLEB = 0x09,
    PE_S2 = 0x0a,
    PE_S4 = 0x0b,
    PE_S8 = 0x0c,
    PE_FORMAT = 0x0f,
    PE_RELATIVE_TO = 0x70,
    PE_PC_RELATIVE = 0x10,
    PE_OMIT = 0xff,
};

/* One function's program; its rows once they are known. */
struct cfi_function {
    uint64_t start, size;
    const uint8_t *program;
    uint32_t program_size;
    uint32_t cie;
    _Atomic(struct cfi_rows *) rows; /* published with release, read with acquire */
};

/* One section's index. */
struct cfi_index {
    uint8_t *bytes;
    size_t size;
    uint64_t address; /* where it is loaded */
    bool is_eh;
    struct cfi_cie *cies; /* by offset */
    size_t cie_count, cie_capacity;
    struct cfi_function *functions; /* by start */
    uint64_t *starts;
    size_t function_count, function_capacity;
};

struct cfi {
    struct cfi_index eh, debug;
};

/* One entry of a section: a CIE or an FDE. */
struct entry {
    size_t offset;      /* of its length field */
    struct cursor body; /* behind the id */
    uint64_t id;        /* 0 (or -1 in .debug_frame) for a CIE, else where the CIE is */
    size_t id_offset;   /* where the id stands */
    bool is_cie;
    bool is_64bit; /* the format, not the machine */
};

/* Reads the entry at *offset and moves on; false at the end, or where sizes make no sense. */
static bool next_entry(const struct cfi_index *index, size_t *offset, struct entry *ret)
{
    struct cursor c = {index->bytes + *offset, index->bytes + index->size, false};
    uint64_t length = cursor_unsigned(&c, 4);
    bool wide = length == UINT32_MAX;
    if (wide)
        length = cursor_unsigned(&c, 8);
    /* In .eh_frame a length of zero ends the list, in .debug_frame it is padding. */
    if (c.bad || length > cursor_left(&c) || (length == 0 && index->is_eh))
        return false;
    *ret = (struct entry){.offset = *offset, .is_64bit = wide};
    ret->id_offset = (size_t)(c.at - index->bytes);
    ret->body = (struct cursor){c.at, c.at + length, false};
    *offset = ret->id_offset + (size_t)length;
    size_t id_size = wide && !index->is_eh ? 8 : 4;
    ret->id = cursor_unsigned(&ret->body, id_size);
    uint64_t mark = index->is_eh ? 0 : id_size == 8 ? UINT64_MAX : UINT32_MAX;
    ret->is_cie = ret->id == mark;
    return true;
}

/* How many bytes a pointer of an encoding takes; 0 for those of no fixed size. */
static size_t encoded_size(uint8_t encoding, uint8_t address_size)
{
    switch (encoding & PE_FORMAT) {
    case PE_ABSOLUTE:
        return address_size;
    case PE_U2:
    case PE_S2:
        return 2;
    case PE_U4:
    case PE_S4:
        return 4;
    case PE_U8:
    case PE_S8:
        return 8;
    default:
        return 0;
    }
}

static uint64_t read_encoded(const struct cfi_index *index, struct cursor *c, uint8_t encoding,
                             uint8_t address_size)
{
    uint64_t here = index->address + (uint64_t)(c->at - index->bytes), value;
    uint8_t format = encoding & PE_FORMAT;
    size_t size = encoded_size(encoding, address_size);
    if (format == PE_ULEB)
        value = cursor_uleb(c);
    else if (format == PE_SLEB)
        value = (uint64_t)cursor_sleb(c);
    else if (size == 0)
        c->bad = true, value = 0;
    else if (format >= PE_SLEB)
        value = (uint64_t)cursor_signed(c, size);
    else
        value = cursor_unsigned(c, size);
    uint8_t relative = encoding & PE_RELATIVE_TO;
    if (relative == PE_PC_RELATIVE)
        value += here;
    else if (relative != 0)
        c->bad = true;
    return value;
}

/* The letters of the augmentation say what its data is. */
static bool read_augmentation(const struct cfi_index *index, struct cursor *c, const char *letters,
                              struct cfi_cie *cie)
{
    if (letters[0] == '\0')
        return true;
    if (letters[0] != 'z')
        return false;
    uint64_t size = cursor_uleb(c);
    if (c->bad || size > cursor_left(c))
        return false;
    struct cursor data = {c->at, c->at + size, false};
    c->at += size;
    cie->has_augmentation = true;
    for (const char *letter = letters + 1; *letter && !data.bad; letter++) {
        if (*letter == 'R') {
            cie->pointer_encoding = cursor_u8(&data);
        } else if (*letter == 'P') {
            uint8_t encoding = cursor_u8(&data);
            if (encoding != PE_OMIT)
                read_encoded(index, &data, encoding & PE_FORMAT, cie->address_size);
        } else if (*letter == 'L') {
            cursor_u8(&data);
        } else if (*letter == 'S') {
            cie->is_signal = true;
        } else if (*letter != 'B') { /* B: the return address is signed with key B */
            break;                   /* unknown, but its size is known */
        }
    }
    return !data.bad;
}

static bool read_cie(const struct cfi_index *index, const struct entry *entry, uint8_t address_size,
                     struct cfi_cie *ret)
{
    struct cursor c = entry->body;
    *ret = (struct cfi_cie){.offset = entry->offset, .address_size = address_size};
    uint8_t version = cursor_u8(&c);
    const char *letters = (const char *)c.at;
    const uint8_t *end = memchr(c.at, 0, cursor_left(&c));
    if ((version != 1 && version != 3 && version != 4) || !end)
        return false;
    c.at = end + 1;
    if (version == 4) {
        ret->address_size = cursor_u8(&c);
        if (cursor_u8(&c) != 0 || (ret->address_size != 4 && ret->address_size != 8))
            return false; /* segments */
    }
    ret->code_align = cursor_uleb(&c);
    ret->data_align = cursor_sleb(&c);
    uint64_t reg = version == 1 ? cursor_u8(&c) : cursor_uleb(&c);
    if (c.bad || reg >= CFI_REGISTER_COUNT || !read_augmentation(index, &c, letters, ret))
        return false;
    ret->return_register = (uint8_t)reg;
    ret->program = c.at;
    ret->program_size = cursor_left(&c);
    return true;
}

static const struct cfi_cie *find_cie(const struct cfi_index *index, uint64_t offset)
{
    size_t low = 0, high = index->cie_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (index->cies[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low < index->cie_count && index->cies[low].offset == offset ? &index->cies[low] : NULL;
}

static void read_fde(struct cfi_index *index, const struct entry *entry)
{
    uint64_t cie_offset = index->is_eh ? entry->id_offset - entry->id : entry->id;
    const struct cfi_cie *cie = find_cie(index, cie_offset);
    if (!cie)
        return;
    struct cursor c = entry->body;
    uint64_t start = read_encoded(index, &c, cie->pointer_encoding, cie->address_size);
    uint64_t size = read_encoded(index, &c, cie->pointer_encoding & PE_FORMAT, cie->address_size);
    if (cie->has_augmentation)
        cursor_skip(&c, cursor_uleb(&c));
    /* A linker that drops a function leaves its entry at 0. */
    if (c.bad || size == 0 || start == 0 || start + size < start || size > UINT32_MAX)
        return;
    ARRAY_PUSH(index->functions, index->function_count, index->function_capacity) =
        (struct cfi_function){.start = start,
                              .size = size,
                              .program = c.at,
                              .program_size = (uint32_t)cursor_left(&c),
                              .cie = (uint32_t)(cie - index->cies)};
}

static int by_start(const void *a, const void *b)
{
    const struct cfi_function *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

/* CIEs first: an FDE may come before its own. */
static void build_index(struct cfi_index *index, uint8_t address_size)
{
    struct entry entry;
    struct cfi_cie cie;
    for (size_t at = 0; at < index->size && next_entry(index, &at, &entry);)
        if (entry.is_cie && read_cie(index, &entry, address_size, &cie))
            ARRAY_PUSH(index->cies, index->cie_count, index->cie_capacity) = cie;
    for (size_t at = 0; at < index->size && next_entry(index, &at, &entry);)
        if (!entry.is_cie)
            read_fde(index, &entry);
    if (index->function_count)
        qsort(index->functions, index->function_count, sizeof(*index->functions), by_start);
    index->starts = memory_alloc(index->function_count * sizeof(*index->starts));
    for (size_t i = 0; i < index->function_count; i++)
        index->starts[i] = index->functions[i].start;
}

static bool load_section(struct cfi_index *index, const struct image *image, const char *name)
{
    const struct image_section *section = image ? image_find(image, name) : NULL;
    if (!section || section->size > SECTION_BYTES_MAX ||
        image_section_bytes(image, section, &index->bytes, &index->size, NULL) < 0)
        return false;
    index->address = section->address;
    index->is_eh = name[1] == 'e';
    build_index(index, image->is_64bit ? 8 : 4);
    return true;
}

struct cfi *cfi_load(const struct image *code, const struct image *debug)
{
    struct cfi *cfi = memory_zalloc(1, sizeof(*cfi));
    load_section(&cfi->eh, code, ".eh_frame");
    if (!load_section(&cfi->debug, code, ".debug_frame"))
        load_section(&cfi->debug, debug, ".debug_frame");
    return cfi;
}

static void index_done(struct cfi_index *index)
{
    for (size_t i = 0; i < index->function_count; i++)
        free(atomic_load_explicit(&index->functions[i].rows, memory_order_relaxed));
    free(index->functions);
    free(index->starts);
    free(index->cies);
    free(index->bytes);
}

void cfi_free(struct cfi *cfi)
{
    if (!cfi)
        return;
    index_done(&cfi->eh);
    index_done(&cfi->debug);
    free(cfi);
}

static struct cfi_function *function_at(const struct cfi_index *index, uint64_t address)
{
    size_t count = index->function_count, low = 0;
    if (count == 0 || address < index->starts[0])
        return NULL;
    while (count > 1) {
        size_t half = count / 2;
        low += index->starts[low + half] <= address ? half : 0;
        count -= half;
    }
    struct cfi_function *f = &index->functions[low];
    return address - f->start < f->size ? f : NULL;
}

/* Two threads may decode the same function: the second one's work is dropped. */
static const struct cfi_rows *rows_of(const struct cfi_index *index, struct cfi_function *f)
{
    struct cfi_rows *rows = atomic_load_explicit(&f->rows, memory_order_acquire);
    if (rows)
        return rows;
    rows = cfi_program_run(&index->cies[f->cie], f->program, f->program_size);
    struct cfi_rows *there = NULL;
    if (atomic_compare_exchange_strong_explicit(&f->rows, &there, rows, memory_order_acq_rel,
                                                memory_order_acquire))
        return rows;
    free(rows);
    return there;
}

static bool find_in(const struct cfi_index *index, uint64_t address, struct cfi_frame *ret_frame)
{
    struct cfi_function *f = function_at(index, address);
    if (!f)
        return false;
    const struct cfi_rows *rows = rows_of(index, f);
    uint32_t offset = (uint32_t)(address - f->start);
    size_t low = 0, high = rows->row_count; /* the first behind the address */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (rows->rows[middle].start <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || offset >= rows->valid_size)
        return false;
    const struct cfi_row *row = &rows->rows[low - 1];
    *ret_frame = (struct cfi_frame){.row = row,
                                    .rules = rows->rules + row->first_rule,
                                    .return_register = index->cies[f->cie].return_register,
                                    .is_signal = index->cies[f->cie].is_signal};
    return true;
}

bool cfi_find(struct cfi *cfi, uint64_t address, struct cfi_frame *ret_frame)
{
    return find_in(&cfi->eh, address, ret_frame) || find_in(&cfi->debug, address, ret_frame);
}

bool cfi_function(const struct cfi *cfi, size_t index, uint64_t *ret_start, uint64_t *ret_size)
{
    const struct cfi_index *section = &cfi->eh;
    if (index >= section->function_count) {
        index -= section->function_count;
        section = &cfi->debug;
    }
    if (index >= section->function_count)
        return false;
    *ret_start = section->functions[index].start;
    *ret_size = section->functions[index].size;
    return true;
}
