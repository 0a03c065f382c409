/* SPDX-License-Identifier: MIT */
/*
 * From addresses to names.
 *
 * A *module* is whatever holds code: an executable or library, the kernel, the vdso, the code that
 * a just-in-time compiler made.  Modules are found by what a recording knows of them (path,
 * build-id, inode) and interned, so that equal keys give the same pointer.  Nothing is opened until
 * a name is wanted.  A *location* is a module and an address in it: the offset in the file for
 * files, the address itself for the kernel and for JIT code.  Every address in this interface is
 * one of these, so that "symbol+0x10" is location.address - function->start;
 * module_elf_address() gives what objdump and addr2line call the address.
 *
 * Recordings are resolved in batches: collect the different locations, then symbols_resolve() once.
 * It sorts by module and address, reads each module's tables once, decodes only those compilation
 * units that are hit, and works in as many threads as the machine has.
 *
 *   struct symbols *symbols = symbols_new(&(struct symbols_options){0});
 *   struct symbols_request r = {.location = {module, address}};
 *   symbols_resolve(symbols, &r, 1, SYMBOLS_INLINES);
 *   … r.frames[0].function->name …
 *   symbols_free(symbols);
 *
 * Threads: one thread at a time may call the functions of one struct symbols; the pointers that it
 * handed out (modules, functions, frames) may be read by any thread, while no symbols_resolve runs.
 * Lifetime: all that is handed out lives until symbols_free.  Names are bytes from outside: up to
 * SYMBOLS_NAME_MAX of them, possibly no UTF-8; print them through strbuf_put_safe.
 */
#ifndef ASSAY_SYMBOLS_SYMBOLS_H
#define ASSAY_SYMBOLS_SYMBOLS_H

#include "base/strings.h"
#include "elf/build_id.h"
#include "symbols/tables/names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct symbols;
struct module;

enum module_kind {
    MODULE_FILE,    /* an executable or library */
    MODULE_KERNEL,  /* the kernel, or one of its modules: "[kernel.kallsyms]", "[ext4]" */
    MODULE_VDSO,    /* "[vdso]" */
    MODULE_PERFMAP, /* anonymous memory of a process, named by /tmp/perf-PID.map if by anything */
    MODULE_CODE,    /* code that was registered piece by piece: jitdump, BPF programs */
    MODULE_NONE,    /* memory that cannot hold code with names: "[stack]", "[vsyscall]" */
};

struct location {
    struct module *module; /* NULL: the address lies in no known map */
    uint64_t address;
};

struct function {
    const char *name;         /* demangled as symbols_options.demangle says */
    const char *linkage_name; /* as the linker sees it; equal to name where nothing is mangled */
    struct module *module;    /* "[ext4]" for code of a kernel module */
    uint64_t start, size;     /* of the code; 0 and 0 for a function known as inlined only */
    /* Where the source declares it: matches functions over builds.  Known once a batch with
     * SYMBOLS_INLINES met the function and its module has DWARF; else NULL and 0. */
    const char *declared_file;
    uint32_t declared_line;
};

struct symbols_frame {
    const struct function *function; /* NULL: no symbol covers the address */
    const char *file;                /* NULL: not known (or not asked for) */
    uint32_t line;                   /* 0: not known */
    bool inlined;                    /* this function was inlined into that of the next frame */
};

struct symbols_request {
    struct location location; /* in */
    /* Out: at least one frame, the innermost first; the last one is the function that has the
     * code. */
    const struct symbols_frame *frames;
    uint32_t frame_count;
};

enum symbols_want {
    SYMBOLS_NAMES,   /* symbol tables only */
    SYMBOLS_LINES,   /* source file and line of the address too */
    SYMBOLS_INLINES, /* and the functions that were inlined there, and declared_file/_line */
};

struct symbols_options {
    unsigned thread_count; /* 0: as many as there are processors */
    enum demangle_style demangle;
    bool no_cache;              /* also when ASSAY_NO_CACHE is set to anything but "0" or "" */
    bool no_debuginfod;         /* it is asked only where DEBUGINFOD_URLS is set */
    const char *cache_folder;   /* NULL: ${XDG_CACHE_HOME:-~/.cache}/assay/symbols */
    const char *debug_folders;  /* colons between; NULL: /usr/lib/debug */
    const char *file_root;      /* looked up below this folder first (a copied sysroot); or NULL */
    const char *kallsyms_path;  /* NULL: /proc/kallsyms */
    const char *perfmap_folder; /* NULL: /tmp */
    const char *perf_cache;     /* perf's own cache of binaries; NULL: ~/.debug */
    void (*waiting)(void *context, const char *what); /* before a server is asked; may be NULL */
    void *waiting_context;
};

/* The strings in options must live as long as the symbols. */
struct symbols *symbols_new(const struct symbols_options *options);
void symbols_free(struct symbols *symbols);

struct module_key {
    const char *path;         /* as recorded, " (deleted)" and "//anon" included */
    struct build_id build_id; /* of the mapped file, size 0 when not recorded */
    /* The process that mapped it: while it lives, its /proc/PID/root and map_files are searched.
     * It is part of the identity for anonymous memory only.  0 when not known. */
    pid_t pid;
    uint64_t map_start, map_end;   /* the mapping, for map_files of a deleted file; or 0 */
    uint64_t inode;                /* tells a replaced file where there is no build-id; or 0 */
    uint32_t dev_major, dev_minor; /* of the inode */
};

/* The module of a mapping of a user process. */
struct module *symbols_module(struct symbols *symbols, const struct module_key *key);

/* The kernel.  Addresses in kernel modules and BPF programs that kallsyms lists belong to it as
 * well: function->module then names the part. */
struct module *symbols_kernel(struct symbols *symbols);

/* What a recording says of its kernel: its build-id, and where one symbol ("_text", "_stext") was,
 * which gives the shift between that boot and this one.  Either may be unknown (size 0; NULL and
 * 0).  With another kernel than the running one, kallsyms is not used: perf's cache and vmlinux
 * files are searched by build-id.  To be called before the first symbols_resolve. */
void symbols_set_kernel(struct symbols *symbols, const struct build_id *build_id,
                        const char *symbol, uint64_t symbol_address);

/*
 * Code that comes and goes: a BPF program, a method compiled at run time.  Each piece gets its own
 * addresses in a module of the given name, whatever memory it was in, so that reused memory
 * cannot mix names up.  Returns the location of its first byte; a map of that piece has
 * location.address as its offset.  name is copied.
 */
struct location symbols_add_code(struct symbols *symbols, const char *module_name, const char *name,
                                 uint64_t size);

/* Fills in every request.  Never fails as a whole: what could not be found has a NULL function,
 * and symbols_diagnostics says why. */
void symbols_resolve(struct symbols *symbols, struct symbols_request *requests, size_t count,
                     enum symbols_want want);

/* What went wrong or differs from what was recorded, once for each module and kind. */
enum diagnostic_kind {
    DIAGNOSTIC_FILE_MISSING,      /* no file with the recorded path, nor any with its build-id */
    DIAGNOSTIC_BUILD_ID_MISMATCH, /* the file is another one now: it was not used */
    DIAGNOSTIC_FILE_REPLACED,     /* the inode differs and there is no build-id: used, may be off */
    DIAGNOSTIC_FILE_MALFORMED,    /* no ELF, truncated, big-endian */
    DIAGNOSTIC_NO_SYMBOLS,        /* stripped, and no debug file */
    DIAGNOSTIC_DEBUG_MISMATCH,    /* a debug file was found that is of another build: not used */
    DIAGNOSTIC_KERNEL_RESTRICTED, /* kallsyms shows zeros */
    DIAGNOSTIC_KERNEL_DIFFERS,    /* recorded under another kernel */
    DIAGNOSTIC_DEBUGINFOD,        /* asked a server, and what came of it */
    DIAGNOSTIC_JIT_MALFORMED,     /* a perf map or jitdump file with lines that make no sense */
};

struct diagnostic {
    enum diagnostic_kind kind;
    const struct module *module;
    const char *text; /* whole words for a person, with the remedy; safe to print */
};

/* The list grows with symbols_resolve; the array is valid until the next call into symbols. */
const struct diagnostic *symbols_diagnostics(struct symbols *symbols, size_t *ret_count);

/* Dense numbers from 0 in order of interning. */
uint32_t module_index(const struct module *module);
size_t symbols_module_count(const struct symbols *symbols);
struct module *symbols_module_at(struct symbols *symbols, size_t index);

enum module_kind module_kind(const struct module *module);
/* Whether a function has no name but its place, as "libsqlite3+0x3f210". */
bool function_is_nameless(const struct function *function);
/* As a "Shared Object" column shows it: the last part of a path, "[kernel.kallsyms]". */
const char *module_name(const struct module *module);
/* As it was recorded. */
const char *module_path(const struct module *module);
/* The recorded one, or where none was recorded that of the file that was found. */
const struct build_id *module_build_id(const struct module *module);

/* These open the module's file if that was not done yet. */

/* The file that has the code, as found now; NULL when there is none. */
const char *module_file(struct module *module);
/* The address in the ELF file's own terms; the address itself where that makes no sense. */
uint64_t module_elf_address(struct module *module, uint64_t address);
/* And back. */
uint64_t module_address_of_elf(struct module *module, uint64_t elf_address);
/* Its functions, by number from 0; NULL behind the last.  None where there is no file. */
const struct function *module_function(struct module *module, size_t index);
/* Copies the code there; returns how many bytes there were. */
size_t module_read(struct module *module, uint64_t address, void *buffer, size_t size);

#endif
