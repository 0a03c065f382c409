/* SPDX-License-Identifier: MIT */
/* Where a module's source lines come from: its cached table, its file, its debug file. */
#include "base/memory.h"
#include "symbols/dwarf/debug.h"
#include "symbols/internal.h"
#include "symbols/tables/cache.h"

static bool has_dwarf(const struct image *image)
{
    return image_find(image, ".debug_info") && image_find(image, ".debug_abbrev");
}

/* Finds the file with the DWARF: what is returned is open. */
static bool find_image(struct module *m, struct image *ret_image)
{
    if (m->kind == MODULE_KERNEL) {
        if (!locate_vmlinux(m, &m->build_id, ret_image))
            return false;
        m->lines_shift = kernel_shift(m, ret_image);
        return true;
    }
    bool has_code = module_open(m);
    if (has_code && has_dwarf(&m->image))
        return image_open(ret_image, m->image.path, NULL) == 0;
    return locate_debug(m, has_code ? &m->image : NULL, ret_image);
}

static void open_table(struct module *m)
{
    const char *folder = m->symbols->cache_folder;
    struct strbuf source = {0};
    if ((m->kind != MODULE_FILE && m != m->symbols->kernel) || portable_lines(m))
        return;
    m->has_lines_image = find_image(m, &m->lines_image);
    image_describe(m->has_image ? &m->image : NULL, &source);
    image_describe(m->has_lines_image ? &m->lines_image : NULL, &source);
    m->lines_source = source.data;

    struct sealed_block block;
    struct linetab table = {0};
    bool gone = !m->has_image && !m->has_lines_image; /* then whatever is left of it */
    bool cached =
        folder && m->build_id.size &&
        cache_map(folder, &m->build_id, CACHE_LINES, &block, NULL) == 0 &&
        linetab_unseal(&table, block, &m->build_id, gone ? NULL : m->lines_source, NULL) == 0;
    if (cached || m->has_lines_image) {
        m->lines = memory_alloc(sizeof(*m->lines));
        *m->lines = table;
    }
}

struct linetab *module_lines(struct module *m)
{
    if (!m->lines_tried) {
        m->lines_tried = true;
        open_table(m);
    }
    return m->lines;
}

struct debug *module_debug(struct module *m)
{
    if (m->has_lines_image) {
        m->debug = debug_open(&m->lines_image);
        image_close(&m->lines_image);
        m->has_lines_image = false;
    }
    return m->debug;
}

void module_store_lines(struct module *m)
{
    const char *folder = m->symbols->cache_folder;
    if (!m->lines || !m->lines->changed || !m->lines_source || !folder || m->build_id.size == 0)
        return;
    struct sealed_block block = linetab_seal(m->lines, &m->build_id, m->lines_source);
    cache_write(folder, &m->build_id, CACHE_LINES, &block, NULL);
    sealed_block_done(&block);
    m->lines->changed = false;
}

uint64_t module_lines_address(struct module *m, uint64_t address)
{
    return symtab_to_address(&m->table, address) + m->lines_shift;
}
