/* SPDX-License-Identifier: MIT */
/*
 * The kernel's table of symbols.
 *
 * The running kernel's is /proc/kallsyms.  A recording from another boot of the same kernel is
 * shifted, since the kernel is loaded at random: one symbol's address then and now gives by how
 * much.  A recording from another kernel has its own kallsyms in perf's cache, if anywhere.
 */
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "symbols/internal.h"
#include "symbols/names/elfsyms.h"
#include "symbols/names/kallsyms.h"
#include "symbols/tables/cache.h"

#include <errno.h>
#include <fcntl.h>

#define NOTE_PATH "/sys/kernel/notes"
#define LIVE_PATH "/proc/kallsyms"

/* Which text to read; NULL when there is none for the recorded kernel. */
static char *choose_kallsyms(struct module *kernel)
{
    struct symbols *symbols = kernel->symbols;
    const char *given = symbols->options.kallsyms_path;
    if (given)
        return memory_strdup(given);
    struct build_id running = {0};
    build_id_of_notes(NOTE_PATH, &running);
    if (symbols->kernel_id.size == 0 || running.size == 0 ||
        build_id_equal(&symbols->kernel_id, &running)) {
        if (kernel->build_id.size == 0)
            kernel->build_id = running;
        return memory_strdup(LIVE_PATH);
    }
    return locate_in_perf_cache(symbols, &symbols->kernel_id, "kallsyms");
}

/* Its table keeps the file's addresses; one segment says how far the kernel was from there. */
static bool load_vmlinux(struct module *kernel)
{
    const struct symbols *symbols = kernel->symbols;
    struct image vmlinux;
    if (!locate_vmlinux(kernel, &kernel->build_id, &vmlinux))
        return false;
    uint64_t there = symbols->kernel_symbol && symbols->kernel_symbol_address
                         ? elfsyms_address_of(&vmlinux, symbols->kernel_symbol)
                         : 0;
    elfsyms_load(NULL, &vmlinux, NULL, &kernel->table, &(struct error){0});
    if (kernel->table.segment_count)
        *(struct symtab_segment *)(uintptr_t)kernel->table.segments = (struct symtab_segment){
            .address = there ? there - symbols->kernel_symbol_address : 0, .size = UINT64_MAX};
    image_close(&vmlinux);
    return kernel->table.symbol_count > 0;
}

/* By how much the recorded kernel was loaded elsewhere than the text says. */
static uint64_t shift_of(const struct symbols *symbols, const char *text, size_t length)
{
    uint64_t then = symbols->kernel_symbol_address;
    uint64_t now = symbols->kernel_symbol && then
                       ? kallsyms_address_of(text, length, symbols->kernel_symbol)
                       : 0;
    return now ? then - now : 0;
}

/* Reading all of kallsyms takes the kernel longer than anything else in a small report.  Its
 * symbols stay where they are from one boot to the next, but for modules, and for code that is
 * made at run time, which is not kept. */
static bool describe_boot(struct strbuf *out)
{
    char boot[64];
    CLEANUP(strbuf_done) struct strbuf modules = {0};
    int r = file_read("/proc/modules", &modules, NULL); /* a kernel may be built without any */
    if ((r < 0 && r != -ENOENT) ||
        !file_read_line("/proc/sys/kernel/random/boot_id", boot, sizeof(boot)))
        return false;
    uint64_t hash = 14695981039346656037ull;
    for (const char *line = strbuf_text(&modules); *line;) {
        size_t length = strcspn(line, "\n"), name = strcspn(line, " \n");
        const char *address = memmem(line, length, " 0x", 3);
        hash = hash_bytes(hash, line, name);
        if (address)
            hash = hash_bytes(hash, address, (size_t)(line + length - address));
        line += length + (line[length] == '\n');
    }
    strbuf_printf(out, "kallsyms of boot %s with modules %016llx", boot, (unsigned long long)hash);
    return true;
}

/* The start of the text tells whether this boot's addresses are those of the recording. */
static bool load_cached(struct module *kernel)
{
    const struct symbols *symbols = kernel->symbols;
    CLEANUP(fd_closep) int fd = open(LIVE_PATH, O_RDONLY | O_CLOEXEC);
    CLEANUP(strbuf_done) struct strbuf source = {0};
    char head[8192];
    ssize_t length = fd < 0 ? -1 : read(fd, head, sizeof(head));
    if (!symbols->cache_folder || length <= 0 || !describe_boot(&source))
        return false;
    uint64_t text = kallsyms_address_of(head, (size_t)length, "_stext");
    bool same = !symbols->kernel_symbol || !symbols->kernel_symbol_address ||
                kallsyms_address_of(head, (size_t)length, symbols->kernel_symbol) ==
                    symbols->kernel_symbol_address;
    if (text == 0 || !same ||
        cache_load(symbols->cache_folder, &kernel->build_id, strbuf_text(&source), &kernel->table,
                   NULL) < 0)
        return false;
    kernel->kernel_text = text;
    kernel->is_cached = true;
    return true;
}

static bool is_made_at_run_time(const char *part)
{
    return str_eq(part, "[bpf]") || str_has_prefix(part, "[__builtin");
}

static void store_cached(const struct module *kernel)
{
    const struct symbols *symbols = kernel->symbols;
    CLEANUP(strbuf_done) struct strbuf source = {0};
    if (!symbols->cache_folder || kernel->build_id.size == 0 || !describe_boot(&source))
        return;
    struct symtab copy;
    symtab_copy(&kernel->table, &copy);
    uint32_t *owners = (uint32_t *)(uintptr_t)copy.owners;
    for (size_t i = 0; i < copy.range_count; i++)
        if (owners[i] < copy.symbol_count && is_made_at_run_time(symtab_part(&copy, owners[i])))
            owners[i] = SYMTAB_NONE;
    cache_store(symbols->cache_folder, &kernel->build_id, strbuf_text(&source), &copy, NULL);
    symtab_done(&copy);
}

static void load_text(struct module *kernel, const char *path)
{
    struct symbols *symbols = kernel->symbols;
    CLEANUP(strbuf_done) struct strbuf text = {0};
    CLEANUP(kallsyms_done) struct kallsyms k = {0};
    struct error err;
    if (file_read(path, &text, &err) < 0) {
        symbols_diagnose(symbols, kernel, DIAGNOSTIC_FILE_MISSING, "%s", err.message);
        return;
    }
    uint64_t shift = shift_of(symbols, strbuf_text(&text), text.length);
    kallsyms_parse(strbuf_text(&text), text.length, shift, &k);
    kernel->kernel_text = kallsyms_address_of(strbuf_text(&text), text.length, "_stext");
    if (kernel->kernel_text)
        kernel->kernel_text += shift;
    if (k.restricted)
        symbols_diagnose(symbols, kernel, DIAGNOSTIC_KERNEL_RESTRICTED,
                         "%s hides addresses from this user, so kernel functions have no names; "
                         "run as root or set kernel.kptr_restrict to 0",
                         path);
    kernel->table = k.table;
    k.table = (struct symtab){0};
    if (shift == 0 && kernel->table.symbol_count && str_eq(path, LIVE_PATH))
        store_cached(kernel);
}

void kernel_load_table(struct module *kernel)
{
    struct symbols *symbols = kernel->symbols;
    CLEANUP(memory_freep) char *path = choose_kallsyms(kernel);
    char hex[BUILD_ID_TEXT];
    if (path && str_eq(path, LIVE_PATH) && load_cached(kernel))
        return;
    if (path)
        load_text(kernel, path);
    if (kernel->table.symbol_count)
        return;
    symtab_done(&kernel->table);
    if (!load_vmlinux(kernel) && !path)
        symbols_diagnose(
            symbols, kernel, DIAGNOSTIC_KERNEL_DIFFERS,
            "recorded under a different kernel (build-id %s) than the running one: its functions "
            "appear as addresses unless its vmlinux is installed or perf's cache has its kallsyms",
            build_id_format(&symbols->kernel_id, hex));
}

struct module *kernel_rest(struct module *kernel)
{
    if (!kernel->is_cached)
        return NULL;
    if (!kernel->rest) {
        struct module *rest = memory_zalloc(1, sizeof(*rest));
        rest->symbols = kernel->symbols;
        rest->kind = MODULE_KERNEL;
        rest->path = memory_strdup(kernel->path);
        rest->name = memory_strdup(kernel->name);
        rest->build_id = kernel->build_id;
        rest->image.fd = -1;
        pthread_mutex_init(&rest->lock, NULL);
        load_text(rest, LIVE_PATH);
        rest->has_table = true;
        rest->functions = memory_zalloc(rest->table.symbol_count, sizeof(*rest->functions));
        kernel->rest = rest;
    }
    return kernel->rest;
}

uint64_t kernel_shift(struct module *kernel, const struct image *vmlinux)
{
    uint64_t there = elfsyms_address_of(vmlinux, "_stext");
    return there && kernel->kernel_text ? there - kernel->kernel_text : 0;
}
