/* SPDX-License-Identifier: MIT */
/* What a module loads on demand: its file, its table of symbols, its functions, its code. */
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "symbols/dwarf/cfi.h"
#include "symbols/internal.h"
#include "symbols/names/elfsyms.h"
#include "symbols/names/perfmap.h"
#include "symbols/tables/cache.h"

#include <fcntl.h>
#include <sys/stat.h>

bool module_open(struct module *m)
{
    if (!m->opened) {
        m->opened = true;
        if (m->kind == MODULE_FILE || m->kind == MODULE_VDSO)
            m->has_image = locate_code(m, &m->image);
        if (m->has_image && m->build_id.size == 0)
            m->build_id = m->image.build_id;
    }
    return m->has_image;
}

/* Where the functions of stripped code are, as its unwinding rules tell. */
static void find_bounds(const struct module *m, struct elfsyms_bounds *ret)
{
    struct cfi *cfi = cfi_load(&m->image, NULL);
    struct elfsyms_bound bound;
    *ret = (struct elfsyms_bounds){.module = m->name};
    for (size_t i = 0; cfi_function(cfi, i, &bound.start, &bound.size); i++)
        ARRAY_PUSH(ret->items, ret->count, ret->capacity) = bound;
    cfi_free(cfi);
}

static bool has_real_names(const struct symtab *table)
{
    for (uint32_t i = 0; i < table->symbol_count; i++) {
        size_t length;
        const char *name = symtab_name(table, i, &length);
        bool is_plt = length > 4 && memcmp(name + length - 4, "@plt", 4) == 0;
        if (!is_plt && !elfsyms_is_address(name, length))
            return true;
    }
    return false;
}

static void load_file_table(struct module *m)
{
    const char *folder = m->symbols->cache_folder;
    bool has_code = module_open(m);
    struct image debug;
    bool has_debug = false;
    if (!has_code || !elfsyms_has_symtab(&m->image))
        has_debug = locate_debug(m, has_code ? &m->image : NULL, &debug);
    CLEANUP(strbuf_done) struct strbuf source = {0};
    image_describe(has_code ? &m->image : NULL, &source);
    image_describe(has_debug ? &debug : NULL, &source);
    bool nothing = !has_code && !has_debug;
    bool cached = folder && m->build_id.size &&
                  cache_load(folder, &m->build_id, nothing ? NULL : strbuf_text(&source), &m->table,
                             NULL) == 0;
    if (!cached) {
        struct error err;
        struct elfsyms_bounds bounds = {0};
        if (has_code && !elfsyms_has_symtab(&m->image))
            find_bounds(m, &bounds);
        elfsyms_load(has_code ? &m->image : NULL, has_debug ? &debug : NULL,
                     bounds.count ? &bounds : NULL, &m->table, &err);
        free(bounds.items);
        if (err.code < 0)
            symbols_diagnose(m->symbols, m, DIAGNOSTIC_NO_SYMBOLS, "%s: %s", m->path, err.message);
        else if (folder && m->build_id.size && !nothing && m->kind == MODULE_FILE)
            cache_store(folder, &m->build_id, strbuf_text(&source), &m->table, NULL);
    }
    if (has_debug)
        image_close(&debug);
    if (has_code && !has_real_names(&m->table))
        symbols_diagnose(m->symbols, m, DIAGNOSTIC_NO_SYMBOLS,
                         "%s has no symbols, and no debug file was found: showing %s only; "
                         "install its debug package or set DEBUGINFOD_URLS",
                         m->path,
                         m->table.symbol_count ? "the addresses of functions" : "addresses");
}

static void load_perfmap(struct module *m)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    struct symtab_builder builder = {.latest_wins = true};
    enum perfmap_found found = perfmap_read(m->path, m->pid, &text);
    if (found == PERFMAP_FOREIGN)
        symbols_diagnose(m->symbols, m, DIAGNOSTIC_FILE_MISSING,
                         "%s belongs to another user and is ignored: JIT code has no names; to use "
                         "it, become that user or give the file to yourself",
                         m->path);
    if (found == PERFMAP_READ) {
        size_t bad = perfmap_parse(strbuf_text(&text), text.length, &builder);
        if (bad)
            symbols_diagnose(m->symbols, m, DIAGNOSTIC_JIT_MALFORMED,
                             "%s: lines ignored because they are not \"START SIZE NAME\": %zu",
                             m->path, bad);
    }
    symtab_build(&builder, &m->table);
}

void module_load_table(struct module *m)
{
    if (m->has_table)
        return;
    m->has_table = true;
    enum module_kind kind = portable_symbols(m) ? MODULE_NONE : m->kind; /* nothing to look for */
    switch (kind) {
    case MODULE_FILE:
    case MODULE_VDSO:
        load_file_table(m);
        break;
    case MODULE_KERNEL:
        if (m == m->symbols->kernel)
            kernel_load_table(m);
        break;
    case MODULE_PERFMAP:
        load_perfmap(m);
        break;
    case MODULE_CODE:
    case MODULE_NONE:
        break;
    }
    m->function_count = m->table.symbol_count;
    m->functions = memory_zalloc(m->function_count, sizeof(*m->functions));
}

/* Names that repeat are not copied twice where linkage name and name are the same. */
static struct function_entry *make_function(struct module *m, const char *name, size_t length)
{
    struct function_entry *e = arena_alloc(&m->arena, sizeof(*e));
    *e = (struct function_entry){.function = {.module = m}};
    CLEANUP(strbuf_done) struct strbuf text = {0};
    e->function.linkage_name = arena_strndup(&m->arena, name, length);
    e->function.name = name_demangle(e->function.linkage_name, m->symbols->options.demangle, &text)
                           ? arena_strndup(&m->arena, text.data, text.length)
                           : e->function.linkage_name;
    e->frame.function = &e->function;
    return e;
}

static struct function_entry *table_function(struct module *m, uint32_t symbol)
{
    struct function_entry *e = m->functions[symbol];
    if (e)
        return e;
    const struct symtab_symbol *s = &m->table.symbols[symbol];
    size_t length;
    const char *name = symtab_name(&m->table, symbol, &length);
    e = make_function(m, name, length);
    e->function.start = symtab_to_offset(&m->table, s->start);
    e->function.size = s->size;
    const char *part = symtab_part(&m->table, symbol);
    if (*part)
        e->function.module = symbols_named_module(m->symbols, MODULE_KERNEL, part);
    m->functions[symbol] = e;
    return e;
}

/* The pieces stand one behind the other in the module's own addresses. */
static size_t piece_at(const struct module *m, uint64_t address)
{
    size_t low = 0, high = m->piece_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->pieces[middle].start + m->pieces[middle].size <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < m->piece_count && address >= m->pieces[low].start ? low : SIZE_MAX;
}

static struct function_entry *piece_function(struct module *m, uint64_t address)
{
    size_t piece = piece_at(m, address);
    if (piece == SIZE_MAX)
        return NULL;
    if (m->function_count < m->piece_count) {
        m->functions = memory_resize(m->functions, m->piece_count, sizeof(*m->functions));
        memset(m->functions + m->function_count, 0,
               (m->piece_count - m->function_count) * sizeof(*m->functions));
        m->function_count = m->piece_count;
    }
    struct function_entry *e = m->functions[piece];
    if (!e) {
        const struct code_piece *p = &m->pieces[piece];
        e = m->functions[piece] = make_function(m, p->name, strlen(p->name));
        e->function.start = p->start;
        e->function.size = p->size;
    }
    return e;
}

/* Code that the kernel made at run time. */
static struct function_entry *rest_function(struct module *kernel, uint64_t address)
{
    struct module *rest = kernel_rest(kernel);
    uint32_t symbol = rest ? symtab_find(&rest->table, address) : SYMTAB_NONE;
    if (symbol == SYMTAB_NONE)
        return NULL;
    struct function_entry *e = table_function(rest, symbol);
    if (e->function.module == rest)
        e->function.module = kernel;
    return e;
}

struct function_entry *module_function_at(struct module *m, uint64_t address)
{
    if (m->kind == MODULE_CODE)
        return piece_function(m, address);
    uint32_t symbol = symtab_find(&m->table, symtab_to_address(&m->table, address));
    if (symbol != SYMTAB_NONE)
        return table_function(m, symbol);
    return m->kind == MODULE_KERNEL ? rest_function(m, address) : NULL;
}

const struct code_piece *module_piece_at(const struct module *m, uint64_t address)
{
    size_t piece = m->kind == MODULE_CODE ? piece_at(m, address) : SIZE_MAX;
    return piece == SIZE_MAX ? NULL : &m->pieces[piece];
}

uint64_t module_add_piece(struct module *m, const char *name, uint64_t size,
                          const struct code_piece *details)
{
    /* A gap of one keeps the end of a piece from being the start of the next. */
    if (size == 0 || size > UINT64_MAX / 4 || m->pieces_end > UINT64_MAX / 2)
        size = 1;
    struct code_piece piece = details ? *details : (struct code_piece){0};
    pthread_mutex_lock(&m->lock);
    piece.start = m->pieces_end;
    piece.size = size;
    piece.name = arena_strndup(&m->arena, name, strnlen(name, SYMBOLS_NAME_MAX));
    m->pieces_end += size + 1;
    ARRAY_PUSH(m->pieces, m->piece_count, m->piece_capacity) = piece;
    pthread_mutex_unlock(&m->lock);
    return piece.start;
}

struct location symbols_add_code(struct symbols *symbols, const char *module_name_,
                                 const char *name, uint64_t size)
{
    struct module *m = symbols_named_module(symbols, MODULE_CODE, module_name_);
    return (struct location){m, module_add_piece(m, name, size, NULL)};
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
    hash = text ? hash_text(hash, text) : hash;
    return hash ^ hash >> 29;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && str_eq(a, b));
}

static void grow_inlined(struct module *m)
{
    if (m->inlined_count < m->inlined_size)
        return;
    size_t size = m->inlined_size ? m->inlined_size * 2 : 256;
    struct function_entry **table = memory_zalloc(size, sizeof(*table));
    for (size_t i = 0; i < m->inlined_size; i++) {
        for (struct function_entry *e = m->inlined[i], *next; e; e = next) {
            next = e->next;
            e->next = table[e->hash & (size - 1)];
            table[e->hash & (size - 1)] = e;
        }
    }
    free(m->inlined);
    m->inlined = table;
    m->inlined_size = size;
}

const struct function *module_inlined(struct module *m, const char *name, const char *linkage_name,
                                      const char *file, uint32_t line)
{
    const char *key = linkage_name ? linkage_name : name;
    uint64_t hash = mix_text(mix_text(HASH_START + line, key), file);
    grow_inlined(m);
    struct function_entry **head = &m->inlined[hash & (m->inlined_size - 1)];
    for (struct function_entry *e = *head; e; e = e->next)
        if (e->hash == hash && e->function.declared_line == line &&
            str_eq(e->function.linkage_name, key) && same_text(e->function.declared_file, file))
            return &e->function;
    struct function_entry *e = make_function(m, key, strnlen(key, SYMBOLS_NAME_MAX));
    e->function.declared_file = file ? arena_strdup(&m->arena, file) : NULL;
    e->function.declared_line = line;
    e->hash = hash;
    e->next = *head;
    *head = e;
    m->inlined_count++;
    return &e->function;
}

const char *module_file(struct module *m)
{
    pthread_mutex_lock(&m->lock);
    const char *path = module_open(m) && m->image.fd >= 0 ? m->image.path : NULL;
    pthread_mutex_unlock(&m->lock);
    return path;
}

const struct function *module_function(struct module *m, size_t index)
{
    const struct function *function = NULL;
    pthread_mutex_lock(&m->lock);
    if (m->kind == MODULE_FILE) {
        module_load_table(m);
        if (index < m->table.symbol_count)
            function = &table_function(m, (uint32_t)index)->function;
    }
    pthread_mutex_unlock(&m->lock);
    return function;
}

bool function_is_nameless(const struct function *function)
{
    return elfsyms_is_address(function->linkage_name, strlen(function->linkage_name));
}

uint64_t module_elf_address(struct module *m, uint64_t address)
{
    pthread_mutex_lock(&m->lock);
    module_load_table(m);
    uint64_t result = symtab_to_address(&m->table, address);
    pthread_mutex_unlock(&m->lock);
    return result;
}

uint64_t module_address_of_elf(struct module *m, uint64_t elf_address)
{
    pthread_mutex_lock(&m->lock);
    module_load_table(m);
    uint64_t result = symtab_to_offset(&m->table, elf_address);
    pthread_mutex_unlock(&m->lock);
    return result;
}

static size_t read_piece(const struct code_piece *piece, uint64_t address, void *buffer,
                         size_t size)
{
    uint64_t from = address - piece->start;
    if (!piece->file || from >= piece->size)
        return 0;
    if (size > piece->size - from)
        size = (size_t)(piece->size - from);
    CLEANUP(fd_closep) int fd = open(piece->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t got = fd < 0 ? 0 : pread(fd, buffer, size, (off_t)(piece->file_offset + from));
    return got > 0 ? (size_t)got : 0;
}

size_t module_read(struct module *m, uint64_t address, void *buffer, size_t size)
{
    size_t got = 0;
    pthread_mutex_lock(&m->lock);
    const struct code_piece *piece = module_piece_at(m, address);
    if (piece)
        got = read_piece(piece, address, buffer, size);
    else if (module_open(m))
        got = image_read(&m->image, address, buffer, size);
    pthread_mutex_unlock(&m->lock);
    return got;
}
