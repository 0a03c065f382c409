/* SPDX-License-Identifier: MIT */
/* The addresses of a DIE: DW_AT_low_pc and high_pc, .debug_ranges, .debug_rnglists. */
#include "symbols/dwarf/dwarf.h"
#include "symbols/dwarf/dwarf_constants.h"

#define RANGE_COUNT_MAX (1u << 20) /* of one DIE */

struct range_sink {
    void (*call)(void *context, uint64_t start, uint64_t end);
    void *context;
};

/* What the linker dropped is left at 0, at 1 (for lists that end with 0), or near the end. */
static void give(const struct range_sink *sink, uint64_t start, uint64_t end)
{
    if (start > 1 && end > start && start < UINT64_MAX - 1)
        sink->call(sink->context, start, end);
}

/* DWARF 2 to 4: pairs of addresses, or of offsets from a base. */
static size_t read_old_list(const struct dwarf *d, const struct dwarf_unit *unit, uint64_t offset,
                            const struct range_sink *sink)
{
    const struct dwarf_bytes *s = &d->sections[DWARF_RANGES];
    if (offset >= s->size)
        return 0;
    struct cursor c = {s->bytes + offset, s->bytes + s->size, false};
    uint64_t base = unit->low_pc;
    uint64_t mark = unit->address_size == 8 ? UINT64_MAX : UINT32_MAX;
    size_t i = 0;
    for (; i < RANGE_COUNT_MAX; i++) {
        uint64_t start = cursor_unsigned(&c, unit->address_size);
        uint64_t end = cursor_unsigned(&c, unit->address_size);
        if (c.bad || (start == 0 && end == 0))
            break;
        if (start == mark)
            base = end;
        else if (base != 0 || start > 1) /* else: dropped */
            give(sink, base + start, base + end);
    }
    return i;
}

static uint64_t indexed(const struct dwarf *d, const struct dwarf_unit *unit, struct cursor *c)
{
    uint64_t address = 0;
    struct dwarf_value value = {FORM_addrx, cursor_uleb(c)};
    if (!dwarf_address(d, unit, value, &address))
        c->bad = true;
    return address;
}

/* One entry of a DWARF 5 list; false at the end. */
static bool read_entry(const struct dwarf *d, const struct dwarf_unit *unit, struct cursor *c,
                       uint64_t *base, const struct range_sink *sink)
{
    uint64_t start = 0, end = 0;
    size_t size = unit->address_size;
    switch (cursor_u8(c)) {
    case RLE_base_addressx:
        *base = indexed(d, unit, c);
        return !c->bad;
    case RLE_base_address:
        *base = cursor_unsigned(c, size);
        return !c->bad;
    case RLE_startx_endx:
        start = indexed(d, unit, c);
        end = indexed(d, unit, c);
        break;
    case RLE_startx_length:
        start = indexed(d, unit, c);
        end = start + cursor_uleb(c);
        break;
    case RLE_offset_pair:
        start = *base + cursor_uleb(c);
        end = *base + cursor_uleb(c);
        if (*base <= 1)
            return !c->bad;
        break;
    case RLE_start_end:
        start = cursor_unsigned(c, size);
        end = cursor_unsigned(c, size);
        break;
    case RLE_start_length:
        start = cursor_unsigned(c, size);
        end = start + cursor_uleb(c);
        break;
    default: /* RLE_end_of_list, and what is not known */
        return false;
    }
    if (!c->bad)
        give(sink, start, end);
    return !c->bad;
}

static size_t read_list(const struct dwarf *d, const struct dwarf_unit *unit,
                        struct dwarf_value value, const struct range_sink *sink)
{
    const struct dwarf_bytes *s = &d->sections[DWARF_RNGLISTS];
    uint64_t offset = value.number;
    if (value.form == FORM_rnglistx) { /* a table of offsets stands at the base */
        uint64_t size = unit->offset_size;
        if (unit->rnglists_base > s->size || offset >= (s->size - unit->rnglists_base) / size)
            return 0;
        struct cursor table = {s->bytes + unit->rnglists_base + offset * size, s->bytes + s->size,
                               false};
        offset = unit->rnglists_base + cursor_unsigned(&table, (size_t)size);
    }
    if (offset >= s->size)
        return 0;
    struct cursor c = {s->bytes + offset, s->bytes + s->size, false};
    uint64_t base = unit->low_pc;
    size_t i = 0;
    while (i < RANGE_COUNT_MAX && read_entry(d, unit, &c, &base, sink))
        i++;
    return i;
}

size_t dwarf_each_range(const struct dwarf *d, const struct dwarf_unit *unit,
                        const struct dwarf_pc *pc,
                        void (*call)(void *context, uint64_t start, uint64_t end), void *context)
{
    struct range_sink sink = {call, context};
    if (pc->ranges.form && unit->version >= 5)
        return read_list(d, unit, pc->ranges, &sink);
    if (pc->ranges.form)
        /* A .dwo file of DWARF 4 has its ranges in the main file, from a base on. */
        return read_old_list(d->main ? d->main : d, unit,
                             pc->ranges.number + (d->main ? unit->rnglists_base : 0), &sink);
    uint64_t start, end;
    if (!pc->high.form || !dwarf_address(d, unit, pc->low, &start))
        return 0;
    if (!dwarf_address(d, unit, pc->high, &end))
        end = start + dwarf_number(pc->high); /* a length, since DWARF 4 */
    give(&sink, start, end);
    return 1;
}
