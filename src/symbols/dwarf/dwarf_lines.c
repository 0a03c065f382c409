/* SPDX-License-Identifier: MIT */
/* Line programs (DWARF 5, section 6.2): see dwarf.h. */
#include "base/memory.h"
#include "symbols/dwarf/dwarf.h"
#include "symbols/dwarf/dwarf_constants.h"

#define FILE_COUNT_MAX (1u << 20)
#define FORMAT_COUNT_MAX 16u

struct line_header {
    const struct dwarf *dwarf;
    struct dwarf_unit sizes; /* of this program: what forms take */
    uint8_t instruction_size, line_range, opcode_base;
    int8_t line_base;
    const uint8_t *opcode_lengths;
    const char **folders;
    size_t folder_count, folder_capacity;
    struct dwarf_files files;
    size_t file_capacity;
    struct cursor program;
};

static const char *read_string(struct cursor *c)
{
    const uint8_t *start = c->at, *end = memchr(c->at, 0, cursor_left(c));
    cursor_skip(c, end ? (uint64_t)(end - start) + 1 : UINT64_MAX);
    return end ? (const char *)start : "";
}

/* Folder 0 is the one that the unit was compiled in: where that is relative (./csu, as Debian's
 * libc6-dbg has it), it is not relative to itself. */
static void add_file(struct line_header *h, const char *name, uint64_t folder)
{
    const char *where = folder < h->folder_count ? h->folders[folder] : NULL;
    if (folder == 0 && where && *where != '/' && h->sizes.folder)
        where = NULL;
    if (h->files.count < FILE_COUNT_MAX)
        ARRAY_PUSH(h->files.items, h->files.count, h->file_capacity) =
            (struct dwarf_file){.folder = where, .name = name};
}

/* Up to DWARF 4: strings, and an empty one at the end.  Folder 0 is the compiler's, file 0 none. */
static void read_old_tables(struct line_header *h, struct cursor *c, const char *folder)
{
    ARRAY_PUSH(h->folders, h->folder_count, h->folder_capacity) = folder;
    while (!c->bad && h->folder_count < FILE_COUNT_MAX) {
        const char *name = read_string(c);
        if (!*name)
            break;
        ARRAY_PUSH(h->folders, h->folder_count, h->folder_capacity) = name;
    }
    add_file(h, NULL, UINT64_MAX);
    while (!c->bad) {
        const char *name = read_string(c);
        if (!*name)
            break;
        uint64_t where = cursor_uleb(c);
        cursor_uleb(c); /* time */
        cursor_uleb(c); /* size */
        add_file(h, name, where);
    }
}

struct entry_format {
    uint64_t content[FORMAT_COUNT_MAX];
    struct dwarf_attribute attributes[FORMAT_COUNT_MAX];
    size_t count;
};

static void read_format(struct cursor *c, struct entry_format *ret)
{
    *ret = (struct entry_format){.count = cursor_u8(c)};
    if (ret->count > FORMAT_COUNT_MAX)
        c->bad = true;
    for (size_t i = 0; i < ret->count && !c->bad; i++) {
        ret->content[i] = cursor_uleb(c);
        uint64_t form = cursor_uleb(c);
        /* A constant from nowhere would let a file of no size have any number of entries. */
        if (form > UINT16_MAX || form == FORM_implicit_const || form == FORM_flag_present)
            c->bad = true;
        ret->attributes[i].form = (uint16_t)form;
    }
}

static void read_entry(const struct line_header *h, struct cursor *c,
                       const struct entry_format *format, const char **ret_name,
                       uint64_t *ret_folder)
{
    *ret_name = NULL;
    *ret_folder = UINT64_MAX;
    for (size_t i = 0; i < format->count; i++) {
        struct dwarf_value value = dwarf_read_value(&h->sizes, c, &format->attributes[i]);
        if (format->content[i] == LNCT_path)
            *ret_name = dwarf_string(h->dwarf, &h->sizes, value);
        else if (format->content[i] == LNCT_directory_index)
            *ret_folder = value.number;
    }
}

/* DWARF 5: both tables say of themselves what they hold. */
static void read_tables(struct line_header *h, struct cursor *c)
{
    struct entry_format format;
    const char *name;
    uint64_t folder;
    read_format(c, &format);
    uint64_t count = cursor_uleb(c);
    for (uint64_t i = 0; i < count && format.count && !c->bad && i < FILE_COUNT_MAX; i++) {
        read_entry(h, c, &format, &name, &folder);
        ARRAY_PUSH(h->folders, h->folder_count, h->folder_capacity) = name;
    }
    read_format(c, &format);
    count = cursor_uleb(c);
    for (uint64_t i = 0; i < count && format.count && !c->bad && i < FILE_COUNT_MAX; i++) {
        read_entry(h, c, &format, &name, &folder);
        add_file(h, name, folder);
    }
}

static bool read_header(const struct dwarf *d, const struct dwarf_unit *unit, struct line_header *h)
{
    const struct dwarf_bytes *s = &d->sections[DWARF_LINE];
    *h = (struct line_header){.dwarf = d, .sizes = *unit};
    uint64_t offset = unit->line_offset; /* a .dwo file has one program, and no attribute for it */
    if (offset >= s->size || (!unit->has_lines && !d->main))
        return false;
    struct cursor c = {s->bytes + offset, s->bytes + s->size, false};
    uint64_t length = cursor_unsigned(&c, 4);
    h->sizes.offset_size = 4;
    if (length == UINT32_MAX) {
        h->sizes.offset_size = 8;
        length = cursor_unsigned(&c, 8);
    }
    if (c.bad || length > cursor_left(&c))
        return false;
    c.end = c.at + length;
    h->program = c;
    uint64_t version = cursor_unsigned(&c, 2);
    if (version < 2 || version > 5)
        return false;
    h->sizes.version = (uint8_t)version;
    if (version >= 5) {
        h->sizes.address_size = cursor_u8(&c);
        if (cursor_u8(&c) != 0) /* segments */
            return false;
    }
    if (h->sizes.address_size != 4 && h->sizes.address_size != 8)
        return false;
    uint64_t header_length = cursor_unsigned(&c, h->sizes.offset_size);
    if (c.bad || header_length > cursor_left(&c))
        return false;
    h->program.at = c.at + header_length;
    c.end = h->program.at;
    h->instruction_size = cursor_u8(&c);
    if (version >= 4)
        cursor_u8(&c); /* operations in one instruction: one, on these machines */
    cursor_u8(&c);     /* whether a line begins a statement */
    h->line_base = (int8_t)cursor_u8(&c);
    h->line_range = cursor_u8(&c);
    h->opcode_base = cursor_u8(&c);
    h->opcode_lengths = c.at;
    if (h->opcode_base == 0 || h->line_range == 0)
        return false;
    cursor_skip(&c, (uint64_t)h->opcode_base - 1);
    if (c.bad)
        return false;
    if (version >= 5)
        read_tables(h, &c);
    else
        read_old_tables(h, &c, NULL);
    return true;
}

struct sequence {
    uint64_t start;
    size_t first, count; /* of the lines */
};

/* The state machine, and the lines it has written. */
struct line_run {
    const struct line_header *header;
    uint64_t address, line, file;
    struct dwarf_line *lines;
    size_t count, capacity, sequence_first;
    struct sequence *sequences;
    size_t sequence_count, sequence_capacity;
};

static void reset(struct line_run *r)
{
    r->address = 0;
    r->line = 1;
    r->file = 1;
    r->sequence_first = r->count;
}

static void put_line(struct line_run *r)
{
    struct dwarf_line line = {.address = r->address,
                              .file = r->file < r->header->files.count ? (uint32_t)r->file
                                                                       : UINT32_MAX - 1,
                              .line = r->line <= UINT32_MAX ? (uint32_t)r->line : 0};
    if (r->count > r->sequence_first) {
        const struct dwarf_line *last = &r->lines[r->count - 1];
        if (line.address < last->address || (line.file == last->file && line.line == last->line))
            return;
    }
    ARRAY_PUSH(r->lines, r->count, r->capacity) = line;
}

/* A sequence at 0 is of a function that the linker dropped. */
static void end_sequence(struct line_run *r)
{
    if (r->count == r->sequence_first)
        return;
    uint64_t start = r->lines[r->sequence_first].address;
    if (start <= 1 || start >= UINT64_MAX - 1) {
        r->count = r->sequence_first;
        return;
    }
    uint64_t last = r->lines[r->count - 1].address;
    ARRAY_PUSH(r->lines, r->count, r->capacity) =
        (struct dwarf_line){.address = r->address > last ? r->address : last, .file = UINT32_MAX};
    ARRAY_PUSH(r->sequences, r->sequence_count, r->sequence_capacity) =
        (struct sequence){start, r->sequence_first, r->count - r->sequence_first};
}

static void extended_operation(struct line_run *r, struct cursor *c)
{
    uint64_t length = cursor_uleb(c);
    if (c->bad || length == 0 || length > cursor_left(c)) {
        c->bad = true;
        return;
    }
    struct cursor body = {c->at, c->at + length, false};
    c->at += length;
    switch (cursor_u8(&body)) {
    case LNE_end_sequence:
        end_sequence(r);
        reset(r);
        break;
    case LNE_set_address:
        if (cursor_left(&body) == 8 || cursor_left(&body) == 4)
            r->address = cursor_unsigned(&body, cursor_left(&body));
        break;
    default: /* define_file is no longer written by anyone */
        break;
    }
}

static void standard_operation(struct line_run *r, struct cursor *c, uint8_t op)
{
    const struct line_header *h = r->header;
    switch (op) {
    case LNS_copy:
        put_line(r);
        break;
    case LNS_advance_pc:
        r->address += cursor_uleb(c) * h->instruction_size;
        break;
    case LNS_advance_line:
        r->line += (uint64_t)cursor_sleb(c);
        break;
    case LNS_set_file:
        r->file = cursor_uleb(c);
        break;
    case LNS_const_add_pc:
        r->address += (uint64_t)((255 - h->opcode_base) / h->line_range) * h->instruction_size;
        break;
    case LNS_fixed_advance_pc:
        r->address += cursor_unsigned(c, 2);
        break;
    default: /* the header says how many operands the others have */
        for (uint8_t i = 0; i < h->opcode_lengths[op - 1]; i++)
            cursor_uleb(c);
        break;
    }
}

static void run_program(struct line_run *r)
{
    const struct line_header *h = r->header;
    struct cursor c = h->program;
    reset(r);
    while (c.at < c.end && !c.bad) {
        uint8_t op = cursor_u8(&c);
        if (op >= h->opcode_base) {
            uint8_t adjusted = (uint8_t)(op - h->opcode_base);
            r->address += (uint64_t)(adjusted / h->line_range) * h->instruction_size;
            r->line += (uint64_t)(int64_t)(h->line_base + adjusted % h->line_range);
            put_line(r);
        } else if (op == 0) {
            extended_operation(r, &c);
        } else {
            standard_operation(r, &c, op);
        }
    }
    r->count = r->sequence_first; /* a sequence without an end has no known end */
}

static int by_start(const void *a, const void *b)
{
    const struct sequence *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

static int by_address(const void *a, const void *b)
{
    const struct dwarf_line *x = a, *y = b;
    return x->address < y->address ? -1 : x->address > y->address;
}

/* The sequences in order of their addresses; each is in order itself. */
static struct dwarf_line *put_in_order(struct line_run *r)
{
    struct dwarf_line *sorted = memory_alloc(r->count * sizeof(*sorted));
    size_t count = 0;
    bool overlap = false;
    if (r->sequence_count)
        qsort(r->sequences, r->sequence_count, sizeof(*r->sequences), by_start);
    for (size_t i = 0; i < r->sequence_count; i++) {
        const struct sequence *s = &r->sequences[i];
        overlap = overlap || (count && sorted[count - 1].address > s->start);
        memcpy(sorted + count, r->lines + s->first, s->count * sizeof(*sorted));
        count += s->count;
    }
    r->count = count;
    if (overlap)
        qsort(sorted, count, sizeof(*sorted), by_address);
    return sorted;
}

void dwarf_read_lines(const struct dwarf *d, const struct dwarf_unit *unit,
                      struct dwarf_files *ret_files, struct dwarf_line **ret_lines,
                      size_t *ret_line_count)
{
    struct line_header h;
    *ret_files = (struct dwarf_files){0};
    if (ret_lines) {
        *ret_lines = NULL;
        *ret_line_count = 0;
    }
    if (read_header(d, unit, &h) && ret_lines) {
        struct line_run run = {.header = &h};
        run_program(&run);
        *ret_lines = put_in_order(&run);
        *ret_line_count = run.count;
        free(run.lines);
        free(run.sequences);
    }
    *ret_files = h.files;
    free(h.folders);
}
