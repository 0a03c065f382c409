/* SPDX-License-Identifier: MIT */
/* Abbreviations, attributes and their values: see dwarf.h. */
#include "base/memory.h"
#include "symbols/dwarf/dwarf.h"
#include "symbols/dwarf/dwarf_constants.h"

#define ABBREV_CODE_MAX (1u << 20)
#define ATTRIBUTE_COUNT_MAX 1000u /* of one abbreviation */
#define INDIRECT_DEPTH_MAX 4

/* How many bytes a form takes; -1 when that varies. */
static int form_size(const struct dwarf_unit *unit, uint16_t form)
{
    switch (form) {
    case FORM_addr:
        return unit->address_size;
    case FORM_data1:
    case FORM_flag:
    case FORM_ref1:
    case FORM_strx1:
    case FORM_addrx1:
        return 1;
    case FORM_data2:
    case FORM_ref2:
    case FORM_strx2:
    case FORM_addrx2:
        return 2;
    case FORM_strx3:
    case FORM_addrx3:
        return 3;
    case FORM_data4:
    case FORM_ref4:
    case FORM_strx4:
    case FORM_addrx4:
    case FORM_ref_sup4:
        return 4;
    case FORM_data8:
    case FORM_ref8:
    case FORM_ref_sig8:
    case FORM_ref_sup8:
        return 8;
    case FORM_data16:
        return 16;
    case FORM_strp:
    case FORM_sec_offset:
    case FORM_line_strp:
    case FORM_strp_sup:
    case FORM_GNU_ref_alt:
    case FORM_GNU_strp_alt:
        return unit->offset_size;
    case FORM_ref_addr: /* in DWARF 2 an address */
        return unit->version <= 2 ? unit->address_size : unit->offset_size;
    case FORM_flag_present:
    case FORM_implicit_const:
        return 0;
    default:
        return -1;
    }
}

/* A value of that many bytes; 16 are cut to the first 8, and none at all says 1. */
static inline uint64_t read_sized(struct cursor *c, int size)
{
    if (size == 3) {
        uint64_t low = cursor_unsigned(c, 2);
        return low | (uint64_t)cursor_u8(c) << 16;
    }
    if (size == 16) {
        uint64_t first = cursor_unsigned(c, 8);
        cursor_skip(c, 8);
        return first;
    }
    return size ? cursor_unsigned(c, (size_t)size) : 1;
}

static void read_form(const struct dwarf_unit *unit, struct cursor *c, uint16_t form, int depth,
                      struct dwarf_value *ret)
{
    int size = form_size(unit, form);
    ret->form = form;
    if (size >= 0) {
        ret->number = read_sized(c, size);
        return;
    }
    switch (form) {
    case FORM_sdata:
        ret->number = (uint64_t)cursor_sleb(c);
        break;
    case FORM_udata:
    case FORM_ref_udata:
    case FORM_strx:
    case FORM_addrx:
    case FORM_loclistx:
    case FORM_rnglistx:
    case FORM_GNU_addr_index:
    case FORM_GNU_str_index:
        ret->number = cursor_uleb(c);
        break;
    case FORM_string: {
        const uint8_t *end = memchr(c->at, 0, cursor_left(c));
        ret->number = end ? (uint64_t)(uintptr_t)c->at : 0;
        cursor_skip(c, end ? (uint64_t)(end - c->at) + 1 : UINT64_MAX);
        break;
    }
    case FORM_block1:
        cursor_skip(c, cursor_u8(c));
        break;
    case FORM_block2:
        cursor_skip(c, cursor_unsigned(c, 2));
        break;
    case FORM_block4:
        cursor_skip(c, cursor_unsigned(c, 4));
        break;
    case FORM_block:
    case FORM_exprloc:
        cursor_skip(c, cursor_uleb(c));
        break;
    case FORM_indirect: {
        uint64_t real = cursor_uleb(c);
        if (depth < INDIRECT_DEPTH_MAX && real <= UINT16_MAX)
            read_form(unit, c, (uint16_t)real, depth + 1, ret);
        else
            c->bad = true;
        break;
    }
    default:
        c->bad = true; /* its size is not known, so nothing behind it is either */
        break;
    }
}

struct dwarf_value dwarf_read_value(const struct dwarf_unit *unit, struct cursor *c,
                                    const struct dwarf_attribute *attribute)
{
    struct dwarf_value value = {0};
    if (attribute->form == FORM_implicit_const)
        return (struct dwarf_value){attribute->form, (uint64_t)attribute->constant};
    read_form(unit, c, attribute->form, 0, &value);
    return value;
}

void dwarf_skip_die(const struct dwarf_abbrevs *abbrevs, const struct dwarf_abbrev *abbrev,
                    struct cursor *c)
{
    if (abbrev->fixed_size >= 0) {
        cursor_skip(c, (uint64_t)abbrev->fixed_size);
        return;
    }
    const struct dwarf_attribute *attribute = abbrevs->attributes + abbrev->first_attribute;
    for (size_t i = 0; i < abbrev->attribute_count && !c->bad; i++, attribute++) {
        int size = form_size(abbrevs->unit, attribute->form);
        if (size >= 0)
            cursor_skip(c, (uint64_t)size);
        else
            dwarf_read_value(abbrevs->unit, c, attribute);
    }
}

/* One abbreviation from the table; 0 at its end. */
static uint64_t read_abbrev(struct cursor *c, const struct dwarf_unit *unit,
                            struct dwarf_abbrevs *a, struct dwarf_abbrev *ret)
{
    uint64_t code = cursor_uleb(c);
    if (code == 0 || c->bad)
        return 0;
    uint64_t tag = cursor_uleb(c);
    *ret = (struct dwarf_abbrev){.tag = (uint16_t)(tag <= UINT16_MAX ? tag : UINT16_MAX),
                                 .has_children = cursor_u8(c) != 0,
                                 .first_attribute = (uint32_t)a->attribute_count};
    while (ret->attribute_count < ATTRIBUTE_COUNT_MAX) {
        uint64_t name = cursor_uleb(c), form = cursor_uleb(c);
        if (c->bad || form > UINT16_MAX)
            return 0;
        struct dwarf_attribute attribute = {(uint16_t)(name <= UINT16_MAX ? name : UINT16_MAX),
                                            (uint16_t)form, 0};
        if (form == FORM_implicit_const)
            attribute.constant = cursor_sleb(c);
        if (name == 0 && form == 0)
            return code;
        int size = form_size(unit, attribute.form);
        ret->fixed_size = size < 0 || ret->fixed_size < 0 ? -1 : ret->fixed_size + size;
        ARRAY_PUSH(a->attributes, a->attribute_count, a->attribute_capacity) = attribute;
        ret->attribute_count++;
    }
    return 0;
}

static struct cursor abbrev_cursor(const struct dwarf *d, const struct dwarf_unit *unit)
{
    const struct dwarf_bytes *s = &d->sections[DWARF_ABBREV];
    if (unit->abbrev_offset >= s->size)
        return (struct cursor){NULL, NULL, true};
    return (struct cursor){s->bytes + unit->abbrev_offset, s->bytes + s->size, false};
}

void dwarf_read_abbrevs(const struct dwarf *d, const struct dwarf_unit *unit,
                        struct dwarf_abbrevs *ret)
{
    struct cursor c = abbrev_cursor(d, unit);
    struct dwarf_abbrev abbrev;
    *ret = (struct dwarf_abbrevs){.unit = unit};
    for (uint64_t code; !c.bad && (code = read_abbrev(&c, unit, ret, &abbrev));) {
        if (code >= ABBREV_CODE_MAX)
            continue;
        if (code >= ret->count) {
            ret->by_code =
                memory_grow(ret->by_code, &ret->capacity, (size_t)code + 1, sizeof(*ret->by_code));
            memset(ret->by_code + ret->count, 0,
                   ((size_t)code + 1 - ret->count) * sizeof(*ret->by_code));
            ret->count = (size_t)code + 1;
        }
        ret->by_code[code] = abbrev;
    }
}

void dwarf_abbrevs_done(struct dwarf_abbrevs *a)
{
    free(a->by_code);
    free(a->attributes);
    *a = (struct dwarf_abbrevs){0};
}

static const char *string_at(const struct dwarf *d, enum dwarf_section which, uint64_t offset)
{
    const struct dwarf_bytes *s = &d->sections[which];
    if (offset >= s->size || !memchr(s->bytes + offset, 0, s->size - (size_t)offset))
        return NULL;
    return (const char *)s->bytes + offset;
}

/* An element of a table of offsets or addresses. */
static bool table_entry(const struct dwarf *d, enum dwarf_section which, uint64_t base,
                        uint64_t index, size_t size, uint64_t *ret_value)
{
    const struct dwarf_bytes *s = &d->sections[which];
    if (base > s->size || index >= (s->size - base) / size)
        return false;
    struct cursor c = {s->bytes + base + index * size, s->bytes + s->size, false};
    *ret_value = cursor_unsigned(&c, size);
    return true;
}

const char *dwarf_string(const struct dwarf *d, const struct dwarf_unit *unit,
                         struct dwarf_value value)
{
    uint64_t offset;
    switch (value.form) {
    case FORM_string:
        return (const char *)(uintptr_t)value.number;
    case FORM_strp:
        return string_at(d, DWARF_STR, value.number);
    case FORM_line_strp:
        return string_at(d, DWARF_LINE_STR, value.number);
    case FORM_strp_sup:
    case FORM_GNU_strp_alt:
        return d->alternate ? string_at(d->alternate, DWARF_STR, value.number) : NULL;
    case FORM_strx:
    case FORM_strx1:
    case FORM_strx2:
    case FORM_strx3:
    case FORM_strx4:
    case FORM_GNU_str_index:
        return table_entry(d, DWARF_STR_OFFSETS, unit->str_offsets_base, value.number,
                           unit->offset_size, &offset)
                   ? string_at(d, DWARF_STR, offset)
                   : NULL;
    default:
        return NULL;
    }
}

bool dwarf_address(const struct dwarf *d, const struct dwarf_unit *unit, struct dwarf_value value,
                   uint64_t *ret_address)
{
    switch (value.form) {
    case FORM_addr:
        *ret_address = value.number;
        return true;
    case FORM_addrx:
    case FORM_addrx1:
    case FORM_addrx2:
    case FORM_addrx3:
    case FORM_addrx4:
    case FORM_GNU_addr_index:
        return table_entry(d->main ? d->main : d, DWARF_ADDR, unit->addr_base, value.number,
                           unit->address_size, ret_address);
    default:
        return false;
    }
}

uint64_t dwarf_number(struct dwarf_value value)
{
    switch (value.form) {
    case FORM_data1:
    case FORM_data2:
    case FORM_data4:
    case FORM_data8:
    case FORM_udata:
    case FORM_sdata:
    case FORM_implicit_const:
    case FORM_sec_offset:
    case FORM_flag:
    case FORM_flag_present:
        return value.number;
    default:
        return 0;
    }
}

bool dwarf_reference(const struct dwarf_unit *unit, struct dwarf_value value, uint64_t *ret_offset,
                     bool *ret_alternate)
{
    *ret_alternate = false;
    switch (value.form) {
    case FORM_ref1:
    case FORM_ref2:
    case FORM_ref4:
    case FORM_ref8:
    case FORM_ref_udata:
        *ret_offset = unit->offset + value.number;
        return *ret_offset >= unit->offset && *ret_offset < unit->end;
    case FORM_ref_addr:
        *ret_offset = value.number;
        return true;
    case FORM_ref_sup4:
    case FORM_ref_sup8:
    case FORM_GNU_ref_alt:
        *ret_offset = value.number;
        *ret_alternate = true;
        return true;
    default:
        return false;
    }
}

/* The first DIE's abbreviation is nearly always the first of the table: no need for the rest. */
static bool find_first(const struct dwarf *d, const struct dwarf_unit *unit, uint64_t wanted,
                       struct dwarf_abbrevs *a, struct dwarf_abbrev *ret)
{
    struct cursor c = abbrev_cursor(d, unit);
    *a = (struct dwarf_abbrevs){.unit = unit};
    for (uint64_t code; !c.bad && (code = read_abbrev(&c, unit, a, ret));)
        if (code == wanted)
            return true;
    return false;
}

struct unit_values {
    struct dwarf_value folder, dwo_name, low, high, ranges, lines;
};

static void take_unit_attribute(struct dwarf_unit *unit, struct unit_values *v, uint16_t name,
                                struct dwarf_value value)
{
    switch (name) {
    case AT_comp_dir:
        v->folder = value;
        break;
    case AT_dwo_name:
    case AT_GNU_dwo_name:
        v->dwo_name = value;
        break;
    case AT_GNU_dwo_id:
        unit->dwo_id = value.number;
        break;
    case AT_low_pc:
        v->low = value;
        break;
    case AT_high_pc:
        v->high = value;
        break;
    case AT_ranges:
        v->ranges = value;
        break;
    case AT_stmt_list:
        v->lines = value;
        break;
    case AT_str_offsets_base:
        unit->str_offsets_base = value.number;
        break;
    case AT_addr_base:
    case AT_GNU_addr_base:
        unit->addr_base = value.number;
        break;
    case AT_rnglists_base:
    case AT_GNU_ranges_base:
        unit->rnglists_base = value.number;
        break;
    default:
        break;
    }
}

/* In a .dwo file the tables have no bases: they begin behind their headers. */
static void set_split_bases(const struct dwarf *d, struct dwarf_unit *unit)
{
    if (!d->main || unit->version < 5)
        return;
    uint64_t header = unit->offset_size == 8 ? 16 : 8;
    if (unit->str_offsets_base == 0)
        unit->str_offsets_base = header;
    if (unit->rnglists_base == 0)
        unit->rnglists_base = header + 4;
}

bool dwarf_read_unit_die(const struct dwarf *d, struct dwarf_unit *unit, struct dwarf_pc *ret_pc)
{
    const struct dwarf_bytes *info = &d->sections[DWARF_INFO];
    struct cursor c = {info->bytes + unit->die_offset, info->bytes + unit->end, false};
    CLEANUP(dwarf_abbrevs_done) struct dwarf_abbrevs abbrevs;
    struct dwarf_abbrev abbrev;
    struct unit_values v = {0};
    uint64_t code = cursor_uleb(&c);
    if (c.bad || !find_first(d, unit, code, &abbrevs, &abbrev))
        return false;
    const struct dwarf_attribute *attribute = abbrevs.attributes + abbrev.first_attribute;
    for (size_t i = 0; i < abbrev.attribute_count && !c.bad; i++, attribute++)
        take_unit_attribute(unit, &v, attribute->name, dwarf_read_value(unit, &c, attribute));
    set_split_bases(d, unit);
    unit->folder = dwarf_string(d, unit, v.folder);
    unit->dwo_name = dwarf_string(d, unit, v.dwo_name);
    unit->has_lines = v.lines.form != 0;
    unit->line_offset = dwarf_number(v.lines);
    if (!dwarf_address(d, unit, v.low, &unit->low_pc))
        unit->low_pc = 0;
    *ret_pc = (struct dwarf_pc){v.low, v.high, v.ranges};
    return true;
}
