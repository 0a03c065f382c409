/* SPDX-License-Identifier: MIT */
/* DWARF files: sections, units and what refers from one file to another.  See dwarf.h. */
#include "symbols/dwarf/dwarf.h"

#include "base/memory.h"
#include "symbols/dwarf/dwarf_constants.h"
#include "symbols/tables/source_path.h"

#include <elf.h>
#include <stdio.h>
#include <sys/mman.h>

#define UNIT_COUNT_MAX (4u << 20)

static const char *const section_names[DWARF_SECTION_COUNT] = {
    [DWARF_INFO] = ".debug_info",         [DWARF_ABBREV] = ".debug_abbrev",
    [DWARF_LINE] = ".debug_line",         [DWARF_LINE_STR] = ".debug_line_str",
    [DWARF_STR] = ".debug_str",           [DWARF_STR_OFFSETS] = ".debug_str_offsets",
    [DWARF_ADDR] = ".debug_addr",         [DWARF_RANGES] = ".debug_ranges",
    [DWARF_RNGLISTS] = ".debug_rnglists",
};

void dwarf_close(struct dwarf *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < DWARF_SECTION_COUNT; i++)
        free(d->sections[i].owned);
    if (d->mapping)
        munmap(d->mapping, d->mapping_size);
    dwarf_close(d->alternate);
    free(d->units);
    free(d);
}

/* The file is mapped: of gigabytes of DWARF a report may need a few pages. */
static const uint8_t *map_image(struct dwarf *d, const struct image *image)
{
    if (image->fd < 0)
        return image->bytes;
    if (!d->mapping) {
        void *mapping = mmap(NULL, (size_t)image->size, PROT_READ, MAP_PRIVATE, image->fd, 0);
        if (mapping == MAP_FAILED)
            return NULL;
        d->mapping = mapping;
        d->mapping_size = (size_t)image->size;
    }
    return d->mapping;
}

static void load_section(struct dwarf *d, const struct image *image, const char *suffix,
                         enum dwarf_section which)
{
    char name[64];
    struct dwarf_bytes *bytes = &d->sections[which];
    snprintf(name, sizeof(name), "%s%s", section_names[which], suffix);
    const struct image_section *section = image_find(image, name);
    if (!section || section->size == 0 || section->offset >= image->size)
        return;
    if (section->flags & SHF_COMPRESSED) {
        if (image_section_bytes(image, section, &bytes->owned, &bytes->size, NULL) == 0)
            bytes->bytes = bytes->owned;
        return;
    }
    const uint8_t *base = map_image(d, image);
    if (!base)
        return;
    uint64_t room = image->size - section->offset;
    bytes->bytes = base + section->offset;
    bytes->size = (size_t)(section->size < room ? section->size : room);
}

/* Reads a unit's header and moves to the next one; false where sizes make no sense. */
static bool next_unit(const struct dwarf *d, size_t *offset, struct dwarf_unit *ret)
{
    const struct dwarf_bytes *info = &d->sections[DWARF_INFO];
    struct cursor c = {info->bytes + *offset, info->bytes + info->size, false};
    *ret = (struct dwarf_unit){.offset = *offset, .offset_size = 4, .type = UT_compile};
    uint64_t length = cursor_unsigned(&c, 4);
    if (length == UINT32_MAX) {
        ret->offset_size = 8;
        length = cursor_unsigned(&c, 8);
    }
    if (c.bad || length == 0 || length > cursor_left(&c))
        return false;
    c.end = c.at + length;
    ret->end = (size_t)(c.end - info->bytes);
    *offset = ret->end;
    ret->version = (uint8_t)cursor_unsigned(&c, 2);
    if (ret->version >= 5) {
        ret->type = cursor_u8(&c);
        ret->address_size = cursor_u8(&c);
        ret->abbrev_offset = cursor_unsigned(&c, ret->offset_size);
        if (ret->type == UT_skeleton || ret->type == UT_split_compile)
            ret->dwo_id = cursor_unsigned(&c, 8);
        else if (ret->type == UT_type || ret->type == UT_split_type)
            cursor_skip(&c, 8 + (uint64_t)ret->offset_size);
    } else {
        ret->abbrev_offset = cursor_unsigned(&c, ret->offset_size);
        ret->address_size = cursor_u8(&c);
    }
    ret->die_offset = (size_t)(c.at - info->bytes);
    if (c.bad || ret->version < 2 || ret->version > 5 ||
        (ret->address_size != 8 && ret->address_size != 4))
        ret->type = 0; /* stepped over */
    return true;
}

static void list_units(struct dwarf *d)
{
    size_t capacity = 0;
    struct dwarf_unit unit;
    for (size_t at = 0; at < d->sections[DWARF_INFO].size && next_unit(d, &at, &unit);)
        if (unit.type != 0 && d->unit_count < UNIT_COUNT_MAX)
            ARRAY_PUSH(d->units, d->unit_count, capacity) = unit;
}

static struct dwarf *open_sections(const struct image *image, const char *suffix)
{
    struct dwarf *d = memory_zalloc(1, sizeof(*d));
    for (size_t i = 0; i < DWARF_SECTION_COUNT; i++)
        load_section(d, image, suffix, (enum dwarf_section)i);
    list_units(d);
    if (d->unit_count)
        return d;
    dwarf_close(d);
    return NULL;
}

/* dwz moves what several files share into one, named in .gnu_debugaltlink with its build-id. */
static struct dwarf *open_alternate(const struct image *image)
{
    const struct image_section *section = image_find(image, ".gnu_debugaltlink");
    CLEANUP(memory_freep) uint8_t *bytes = NULL;
    size_t size = 0;
    if (!section || section->size > 4096 + BUILD_ID_MAX || !image->path ||
        image_section_bytes(image, section, &bytes, &size, NULL) < 0)
        return NULL;
    const char *name = (const char *)bytes;
    size_t length = strnlen(name, size);
    if (length == 0 || length >= size)
        return NULL;
    struct build_id id = build_id_from_bytes(bytes + length + 1, size - length - 1);
    CLEANUP(strbuf_done) struct strbuf path = {0};
    CLEANUP(memory_freep) char *folder = memory_strdup(image->path);
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
    source_path(&path, slash ? folder : NULL, name);
    struct image alternate;
    if (image_open(&alternate, strbuf_text(&path), NULL) < 0)
        return NULL;
    struct dwarf *d =
        build_id_equal(&id, &alternate.build_id) ? open_sections(&alternate, "") : NULL;
    image_close(&alternate);
    return d;
}

struct dwarf *dwarf_open(const struct image *image)
{
    struct dwarf *d = open_sections(image, "");
    if (d)
        d->alternate = open_alternate(image);
    return d;
}

struct dwarf *dwarf_open_split(const struct dwarf *main, const struct dwarf_unit *skeleton)
{
    CLEANUP(strbuf_done) struct strbuf path = {0};
    struct image image;
    source_path(&path, skeleton->folder, skeleton->dwo_name);
    if (image_open(&image, strbuf_text(&path), NULL) < 0)
        return NULL;
    struct dwarf *d = open_sections(&image, ".dwo");
    image_close(&image);
    if (!d)
        return NULL;
    d->main = main;
    struct dwarf_unit *unit = &d->units[0];
    struct dwarf_pc pc;
    uint64_t id = skeleton->dwo_id;
    /* What the skeleton says of addresses holds for the other file as well. */
    unit->addr_base = skeleton->addr_base;
    if (dwarf_read_unit_die(d, unit, &pc) && unit->dwo_id == id) {
        if (unit->version < 5)
            unit->rnglists_base = skeleton->rnglists_base;
        unit->low_pc = skeleton->low_pc;
        unit->folder = skeleton->folder;
        return d;
    }
    dwarf_close(d);
    return NULL;
}

const struct dwarf_unit *dwarf_unit_at(const struct dwarf *d, uint64_t offset)
{
    size_t low = 0, high = d->unit_count; /* the first that starts behind the offset */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (d->units[middle].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    const struct dwarf_unit *unit = low ? &d->units[low - 1] : NULL;
    return unit && offset >= unit->die_offset && offset < unit->end ? unit : NULL;
}
