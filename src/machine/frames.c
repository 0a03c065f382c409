/* SPDX-License-Identifier: MIT */
/* Frame pointers in the code of a library: see frames.h. */
#include "machine/frames.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"
#include "elf/table.h"
#include "machine/parse.h"

#include <glob.h>
#include <stdio.h>

#define SHARE_ENOUGH 0.4        /* assembly and cold parts have none; without the option: 3 % */
#define SHARE_EVERYWHERE 0.9    /* the rest: the program's start, and what is written in assembly */
#define FUNCTION_BYTES_LEAST 32 /* shorter ones are stubs, which need no frame */
#define PROLOGUE_BYTES 48       /* how far into a function its frame may be set up */

/* push %rbp; mov %rsp,%rbp; the two may be apart when the push comes first. */
bool code_sets_frame_x86_64(const unsigned char *code, size_t length)
{
    static const unsigned char endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    if (length > PROLOGUE_BYTES)
        length = PROLOGUE_BYTES;
    if (length >= 4 && memcmp(code, endbr64, 4) == 0) {
        code += 4;
        length -= 4;
    }
    bool pushed_first = length && code[0] == 0x55;
    for (size_t at = 1; at + 3 <= length; at++) {
        bool moves = (code[at] == 0x48 && code[at + 1] == 0x89 && code[at + 2] == 0xe5) ||
                     (code[at] == 0x48 && code[at + 1] == 0x8b && code[at + 2] == 0xec);
        if (moves && (pushed_first || code[at - 1] == 0x55))
            return true;
    }
    return false;
}

/* stp x29, x30, [sp, …] and mov x29, sp or add x29, sp, #… */
bool code_sets_frame_aarch64(const unsigned char *code, size_t length)
{
    bool stored = false;
    if (length > PROLOGUE_BYTES)
        length = PROLOGUE_BYTES;
    for (size_t at = 0; at + 4 <= length; at += 4) {
        uint32_t word;
        memcpy(&word, code + at, sizeof(word));
        stored |= (word & 0xffc07fff) == 0xa9807bfd || (word & 0xffc07fff) == 0xa9007bfd;
        if (stored && (word & 0xffc003ff) == 0x910003fd)
            return true;
    }
    return false;
}

/* The code at the start of a symbol, when that is a function with a body of some length here. */
static size_t read_prologue(const struct image *image, const Elf64_Sym *symbol, unsigned char *code)
{
    if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_size < FUNCTION_BYTES_LEAST ||
        symbol->st_shndx >= image->section_count)
        return 0;
    const struct image_section *section = &image->sections[symbol->st_shndx];
    uint64_t inside = symbol->st_value - section->address;
    if (section->type != SHT_PROGBITS || symbol->st_value < section->address ||
        inside > section->size || symbol->st_size > section->size - inside)
        return 0;
    size_t wanted = symbol->st_size < PROLOGUE_BYTES ? (size_t)symbol->st_size : PROLOGUE_BYTES;
    size_t got = image_read(image, section->offset + inside, code, wanted);
    return got == wanted ? got : 0;
}

/* Nothing calls _start, so it keeps none in any program. */
static bool is_start(const struct elf_table *table, const Elf64_Sym *symbol)
{
    static const char start[] = "_start";
    size_t length;
    const char *name = elf_table_name(table, symbol->st_name, sizeof(start), &length);
    return length == sizeof(start) - 1 && memcmp(name, start, length) == 0;
}

bool frames_count(const struct image *image, struct frames *ret_frames)
{
    struct frames frames = {0};
    const struct image_section *section = image_find_type(image, SHT_SYMTAB);
    if (!section)
        section = image_find_type(image, SHT_DYNSYM);
    if ((image->machine != EM_X86_64 && image->machine != EM_AARCH64) || !section)
        return false;
    CLEANUP(elf_table_done) struct elf_table table;
    elf_table_read(&table, image, section);
    for (size_t i = 0; i < table.count; i++) {
        unsigned char code[PROLOGUE_BYTES];
        Elf64_Sym symbol = elf_table_symbol(&table, i);
        size_t length = read_prologue(image, &symbol, code);
        if (!length || is_start(&table, &symbol))
            continue;
        frames.functions++;
        frames.framed += image->machine == EM_X86_64 ? code_sets_frame_x86_64(code, length)
                                                     : code_sets_frame_aarch64(code, length);
    }
    if (!frames.functions)
        return false;
    *ret_frames = frames;
    return true;
}

bool frames_suffice(const struct frames *frames)
{
    return (double)frames->framed >= SHARE_ENOUGH * (double)frames->functions;
}

bool frames_are_everywhere(const struct frames *frames)
{
    return (double)frames->framed >= SHARE_EVERYWHERE * (double)frames->functions;
}

/* A C library's file name: libc.so.6, libc-2.31.so, ld-musl-x86_64.so.1, libc.musl-x86_64.so.1 */
static bool is_libc(const char *path, size_t length)
{
    CLEANUP(memory_freep) char *copy = memory_strndup(path, length);
    const char *slash = strrchr(copy, '/');
    const char *name = slash ? slash + 1 : copy;
    return str_has_prefix(name, "libc.so.6") || str_has_prefix(name, "libc-2.") ||
           str_has_prefix(name, "ld-musl-") || str_has_prefix(name, "libc.musl-");
}

bool frames_find_libc(char *path, size_t size)
{
    CLEANUP(strbuf_done) struct strbuf maps = {0};
    file_read("/proc/self/maps", &maps, NULL);
    for (const char *line = strbuf_text(&maps); line && *line; line = proc_next_line(line)) {
        struct proc_mapping map;
        if (proc_maps_line(line, &map) && map.path_length < size && map.path[0] == '/' &&
            is_libc(map.path, map.path_length)) {
            snprintf(path, size, "%.*s", (int)map.path_length, map.path);
            return true;
        }
    }
    static const char *const patterns[] = {"/lib/*-linux-gnu/libc.so.6", "/lib64/libc.so.6",
                                           "/usr/lib/libc.so.6", "/lib/ld-musl-*.so.1"};
    for (size_t i = 0; i < ARRAY_COUNT(patterns); i++) {
        glob_t found;
        bool there = glob(patterns[i], 0, NULL, &found) == 0 && found.gl_pathc > 0;
        if (there)
            snprintf(path, size, "%s", found.gl_pathv[0]);
        globfree(&found);
        if (there)
            return true;
    }
    return false;
}
