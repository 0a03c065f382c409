/* SPDX-License-Identifier: MIT */
/*
 * The kernel's table of symbols.
 *
 * The running kernel's is /proc/kallsyms.  A recording from another boot of the same kernel is
 * shifted, since the kernel is loaded at random: one symbol's address then and now gives by how
 * much.  A recording from another kernel has its own kallsyms in perf's cache, if anywhere.
 */
#include "base/fd.h"
#include "base/memory.h"
#include "symbols/elfsyms.h"
#include "symbols/internal.h"
#include "symbols/kallsyms.h"

#include <elf.h>
#include <errno.h>

#define NOTE_PATH "/sys/kernel/notes"

static struct build_id running_build_id(void)
{
    CLEANUP(strbuf_done) struct strbuf notes = {0};
    if (file_read(NOTE_PATH, &notes, NULL) < 0)
        return (struct build_id){0};
    const char *at = notes.data;
    size_t left = notes.length;
    while (left >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr note;
        memcpy(&note, at, sizeof(note));
        size_t name = ((size_t)note.n_namesz + 3) & ~(size_t)3;
        size_t text = ((size_t)note.n_descsz + 3) & ~(size_t)3;
        if (name > left - sizeof(note) || text > left - sizeof(note) - name)
            break;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            memcmp(at + sizeof(note), "GNU", 4) == 0)
            return build_id_from_bytes(at + sizeof(note) + name, note.n_descsz);
        at += sizeof(note) + name + text;
        left -= sizeof(note) + name + text;
    }
    return (struct build_id){0};
}

/* Which text to read; NULL when there is none for the recorded kernel. */
static char *choose_kallsyms(struct module *kernel)
{
    struct symbols *symbols = kernel->symbols;
    const char *given = symbols->options.kallsyms_path;
    if (given)
        return memory_strdup(given);
    struct build_id running = running_build_id();
    if (symbols->kernel_id.size == 0 || running.size == 0 ||
        build_id_equal(&symbols->kernel_id, &running)) {
        if (kernel->build_id.size == 0)
            kernel->build_id = running;
        return memory_strdup("/proc/kallsyms");
    }
    char *cached = locate_in_perf_cache(symbols, &symbols->kernel_id, "kallsyms");
    char hex[2 * BUILD_ID_MAX + 1];
    if (!cached)
        symbols_diagnose(symbols, kernel, DIAGNOSTIC_KERNEL_DIFFERS,
                         "recorded under another kernel (build-id %s) than the running one: its "
                         "functions show as addresses unless perf's cache has its kallsyms",
                         build_id_format(&symbols->kernel_id, hex));
    return cached;
}

/* Its table keeps the file's addresses; one segment says how far the kernel was from there. */
static void load_vmlinux(struct module *kernel)
{
    const struct symbols *symbols = kernel->symbols;
    struct image vmlinux;
    if (!locate_vmlinux(kernel, &kernel->build_id, &vmlinux))
        return;
    uint64_t there = symbols->kernel_symbol && symbols->kernel_symbol_address
                         ? elfsyms_address_of(&vmlinux, symbols->kernel_symbol)
                         : 0;
    elfsyms_load(NULL, &vmlinux, &kernel->table);
    if (kernel->table.segment_count)
        *(struct symtab_segment *)(uintptr_t)kernel->table.segments = (struct symtab_segment){
            .address = there ? there - symbols->kernel_symbol_address : 0, .size = UINT64_MAX};
    image_close(&vmlinux);
}

void kernel_load_table(struct module *kernel)
{
    struct symbols *symbols = kernel->symbols;
    CLEANUP(memory_freep) char *path = choose_kallsyms(kernel);
    CLEANUP(strbuf_done) struct strbuf text = {0};
    CLEANUP(kallsyms_done) struct kallsyms k = {0};
    struct error err;
    if (path && file_read(path, &text, &err) < 0)
        symbols_diagnose(symbols, kernel, DIAGNOSTIC_FILE_MISSING, "%s", err.message);
    uint64_t then = symbols->kernel_symbol_address;
    uint64_t now =
        symbols->kernel_symbol && then
            ? kallsyms_address_of(strbuf_text(&text), text.length, symbols->kernel_symbol)
            : 0;
    kallsyms_parse(strbuf_text(&text), text.length, now ? then - now : 0, &k);
    kernel->kernel_text = kallsyms_address_of(strbuf_text(&text), text.length, "_stext");
    if (kernel->kernel_text && now)
        kernel->kernel_text += then - now;
    if (k.restricted)
        symbols_diagnose(symbols, kernel, DIAGNOSTIC_KERNEL_RESTRICTED,
                         "%s shows no addresses to this user, so functions of the kernel have no "
                         "names; run as root or set kernel.kptr_restrict to 0",
                         path);
    if (k.table.symbol_count) {
        kernel->table = k.table;
        k.table = (struct symtab){0};
    } else {
        load_vmlinux(kernel);
    }
}

uint64_t kernel_shift(struct module *kernel, const struct image *vmlinux)
{
    uint64_t there = elfsyms_address_of(vmlinux, "_stext");
    return there && kernel->kernel_text ? there - kernel->kernel_text : 0;
}
