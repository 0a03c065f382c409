/* SPDX-License-Identifier: MIT */
/* The set of modules of one recording, and what there is to say about them: see symbols.h. */
#include "symbols/symbols.h"

#include "base/hash.h"
#include "base/memory.h"
#include "symbols/dwarf/cfi.h"
#include "symbols/dwarf/debug.h"
#include "symbols/internal.h"
#include "symbols/tables/cache.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define KERNEL_NAME "[kernel.kallsyms]"
#define DIAGNOSTIC_COUNT_MAX 10000 /* of all modules together */
#define DIAGNOSTIC_BYTES_MAX 1000

struct symbols *symbols_new(const struct symbols_options *options)
{
    struct symbols *symbols = memory_zalloc(1, sizeof(*symbols));
    symbols->options = *options;
    symbols->worker_count = options->thread_count ? options->thread_count : parallel_width();
    if (symbols->worker_count > PARALLEL_WIDTH_MAX)
        symbols->worker_count = PARALLEL_WIDTH_MAX;
    symbols->cache_folder = options->no_cache ? NULL : cache_folder(options->cache_folder);
    pthread_mutex_init(&symbols->lock, NULL);
    return symbols;
}

static void module_free(struct module *m)
{
    if (!m)
        return;
    module_free(m->rest);
    if (m->has_image)
        image_close(&m->image);
    symtab_done(&m->table);
    debug_free(m->debug);
    if (m->has_lines_image)
        image_close(&m->lines_image);
    if (m->lines)
        linetab_done(m->lines);
    free(m->lines);
    free(m->lines_source);
    cfi_free(atomic_load_explicit(&m->cfi, memory_order_relaxed)); /* no other thread is left */
    free(m->functions);
    free(m->pieces);
    free(m->inlined);
    arena_done(&m->arena);
    pthread_mutex_destroy(&m->lock);
    free(m->path);
    free(m->name);
    free(m);
}

void symbols_free(struct symbols *symbols)
{
    if (!symbols)
        return;
    for (size_t i = 0; i < symbols->module_count; i++)
        module_free(symbols->modules[i]);
    for (size_t i = 0; i < symbols->diagnostic_count; i++)
        free((char *)(uintptr_t)symbols->diagnostics[i].text);
    for (size_t i = 0; i < PARALLEL_WIDTH_MAX; i++)
        arena_done(&symbols->arenas[i]);
    free(symbols->modules);
    free(symbols->by_key);
    free(symbols->diagnostics);
    free(symbols->portable);
    free(symbols->kernel_symbol);
    free(symbols->cache_folder);
    pthread_mutex_destroy(&symbols->lock);
    free(symbols);
}

/* Mappings that no file stands behind: their code, if any, comes from a JIT compiler. */
static bool is_anonymous(const struct module_key *key)
{
    static const char *const prefixes[] = {"//anon", "/dev/zero", "/SYSV",  "/anon_hugepage",
                                           "[anon:", "[heap]",    "[stack", "/memfd:"};
    if (key->path[0] == '\0')
        return true;
    for (size_t i = 0; i < ARRAY_COUNT(prefixes); i++)
        if (str_has_prefix(key->path, prefixes[i]))
            return key->build_id.size == 0; /* a program may be started from a memfd */
    return false;
}

static enum module_kind kind_of(const struct module_key *key)
{
    if (is_anonymous(key))
        return MODULE_PERFMAP;
    if (str_eq(key->path, "[vdso]"))
        return MODULE_VDSO;
    return key->path[0] == '[' ? MODULE_NONE : MODULE_FILE;
}

/* What makes two keys the same module. */
struct identity {
    enum module_kind kind;
    const char *path;
    struct build_id id;
    uint64_t inode; /* where there is no build-id */
    uint64_t hash;
};

static struct identity identify(enum module_kind kind, const char *path, const struct build_id *id,
                                uint64_t inode)
{
    struct identity i = {.kind = kind, .path = path, .inode = inode};
    if (id) {
        i.id = *id;
        memset(i.id.bytes + i.id.size, 0, BUILD_ID_MAX - i.id.size);
    }
    if (i.id.size)
        i.inode = 0;
    i.hash = hash_text(HASH_START, path);
    i.hash = hash_bytes(i.hash, i.id.bytes, sizeof(i.id.bytes));
    i.hash = hash_bytes(i.hash, &i.inode, sizeof(i.inode)) + (uint64_t)kind;
    return i;
}

static struct module *find_module(struct symbols *symbols, const struct identity *i)
{
    if (symbols->by_key_size == 0)
        return NULL;
    struct module *m = symbols->by_key[i->hash & (symbols->by_key_size - 1)];
    for (; m; m = m->next)
        if (m->key_hash == i->hash && m->kind == i->kind && m->inode == i->inode &&
            memcmp(m->recorded_id.bytes, i->id.bytes, BUILD_ID_MAX) == 0 &&
            str_eq(m->path, i->path))
            return m;
    return NULL;
}

static void grow_hash(struct symbols *symbols)
{
    if (symbols->module_count < symbols->by_key_size)
        return;
    size_t size = symbols->by_key_size ? symbols->by_key_size * 2 : 64;
    struct module **table = memory_zalloc(size, sizeof(*table));
    for (size_t i = 0; i < symbols->module_count; i++) {
        struct module *m = symbols->modules[i];
        struct module **head = &table[m->key_hash & (size - 1)];
        m->next = *head;
        *head = m;
    }
    free(symbols->by_key);
    symbols->by_key = table;
    symbols->by_key_size = size;
}

/* For holders of symbols->lock. */
static struct module *intern(struct symbols *symbols, const struct identity *i, const char *name)
{
    struct module *m = find_module(symbols, i);
    if (m)
        return m;
    grow_hash(symbols);
    m = memory_zalloc(1, sizeof(*m));
    m->symbols = symbols;
    m->index = (uint32_t)symbols->module_count;
    m->kind = i->kind;
    m->path = memory_strdup(i->path);
    m->name = memory_strdup(name);
    m->recorded_id = m->build_id = i->id;
    m->inode = i->inode;
    m->key_hash = i->hash;
    m->image.fd = -1;
    pthread_mutex_init(&m->lock, NULL);
    ARRAY_PUSH(symbols->modules, symbols->module_count, symbols->module_capacity) = m;
    struct module **head = &symbols->by_key[i->hash & (symbols->by_key_size - 1)];
    m->next = *head;
    *head = m;
    return m;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* Anonymous memory of one process: named by the map that its JIT compiler may have written. */
static struct module *perfmap_module(struct symbols *symbols, pid_t pid)
{
    const char *folder = symbols->options.perfmap_folder ? symbols->options.perfmap_folder : "/tmp";
    CLEANUP(memory_freep) char *path = memory_printf("%s/perf-%d.map", folder, (int)pid);
    struct identity i = identify(MODULE_PERFMAP, path, NULL, 0);
    struct module *m = intern(symbols, &i, last_part(path));
    m->pid = pid;
    return m;
}

struct module *symbols_module(struct symbols *symbols, const struct module_key *key)
{
    enum module_kind kind = kind_of(key);
    pthread_mutex_lock(&symbols->lock);
    struct module *m;
    if (kind == MODULE_PERFMAP) {
        m = perfmap_module(symbols, key->pid);
    } else {
        struct identity i = identify(kind, key->path, &key->build_id, key->inode);
        m = intern(symbols, &i, kind == MODULE_FILE ? last_part(key->path) : key->path);
        if (m->pid == 0 || m->pid != key->pid) { /* the latest is the likeliest to live */
            m->pid = key->pid;
            m->map_start = key->map_start;
            m->map_end = key->map_end;
            m->dev_major = key->dev_major;
            m->dev_minor = key->dev_minor;
        }
    }
    pthread_mutex_unlock(&symbols->lock);
    return m;
}

struct module *symbols_named_module(struct symbols *symbols, enum module_kind kind,
                                    const char *name)
{
    struct identity i = identify(kind, name, NULL, 0);
    pthread_mutex_lock(&symbols->lock);
    struct module *m = intern(symbols, &i, name);
    pthread_mutex_unlock(&symbols->lock);
    return m;
}

struct module *symbols_kernel(struct symbols *symbols)
{
    if (!symbols->kernel)
        symbols->kernel = symbols_named_module(symbols, MODULE_KERNEL, KERNEL_NAME);
    return symbols->kernel;
}

void symbols_set_kernel(struct symbols *symbols, const struct build_id *build_id,
                        const char *symbol, uint64_t symbol_address)
{
    struct module *kernel = symbols_kernel(symbols);
    if (build_id && build_id->size)
        symbols->kernel_id = kernel->build_id = *build_id;
    free(symbols->kernel_symbol);
    symbols->kernel_symbol = symbol ? memory_strdup(symbol) : NULL;
    symbols->kernel_symbol_address = symbol_address;
}

void symbols_diagnose(struct symbols *symbols, const struct module *module,
                      enum diagnostic_kind kind, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    if (length < 0)
        return;
    struct strbuf safe = {0};
    strbuf_put_safe(&safe, text, (size_t)length, DIAGNOSTIC_BYTES_MAX);
    free(text);
    pthread_mutex_lock(&symbols->lock);
    bool wanted = symbols->diagnostic_count < DIAGNOSTIC_COUNT_MAX;
    for (size_t i = 0; i < symbols->diagnostic_count && wanted; i++)
        wanted = symbols->diagnostics[i].module != module || symbols->diagnostics[i].kind != kind;
    if (wanted)
        ARRAY_PUSH(symbols->diagnostics, symbols->diagnostic_count, symbols->diagnostic_capacity) =
            (struct diagnostic){.kind = kind, .module = module, .text = safe.data};
    else
        strbuf_done(&safe);
    pthread_mutex_unlock(&symbols->lock);
}

const struct diagnostic *symbols_diagnostics(struct symbols *symbols, size_t *ret_count)
{
    *ret_count = symbols->diagnostic_count;
    return symbols->diagnostics;
}

uint32_t module_index(const struct module *module)
{
    return module->index;
}

size_t symbols_module_count(const struct symbols *symbols)
{
    return symbols->module_count;
}

struct module *symbols_module_at(struct symbols *symbols, size_t index)
{
    return symbols->modules[index];
}

enum module_kind module_kind(const struct module *module)
{
    return module->kind;
}

const char *module_name(const struct module *module)
{
    return module->name;
}

const char *module_path(const struct module *module)
{
    return module->path;
}

const struct build_id *module_build_id(const struct module *module)
{
    return &module->build_id;
}
