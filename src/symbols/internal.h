/* SPDX-License-Identifier: MIT */
/*
 * What the files of this folder share and nobody else sees: the insides of struct symbols and
 * struct module.
 *
 * Locks: symbols->lock guards the list of modules and the diagnostics; module->lock guards what a
 * module loads on demand.  A thread that holds a module's lock may take symbols->lock, never the
 * other way round, and never two modules' locks.
 */
#ifndef ASSAY_SYMBOLS_INTERNAL_H
#define ASSAY_SYMBOLS_INTERNAL_H

#include "base/arena.h"
#include "base/parallel.h"
#include "elf/image.h"
#include "symbols/symbols.h"
#include "symbols/tables/symtab.h"

#include <pthread.h>
#include <stdatomic.h>

struct cfi;
struct debug;
struct linetab;

/* A function and the one frame that answers "names only", so that such answers cost nothing. */
struct function_entry {
    struct function function;
    struct symbols_frame frame;
    struct function_entry *next; /* of the same hash, for functions known as inlined only */
    uint64_t hash;
};

struct code_line;

/* One piece of code that was registered. */
struct code_piece {
    uint64_t start, size; /* in the module's own addresses */
    const char *name;
    const struct code_line *lines; /* by offset */
    size_t line_count;
    const char *file; /* that has the bytes at file_offset; or NULL */
    uint64_t file_offset;
};

struct module {
    struct symbols *symbols;
    uint32_t index;
    enum module_kind kind;
    char *path, *name;
    struct build_id recorded_id; /* as the key said */
    struct build_id build_id;    /* that, or the file's */
    pid_t pid;
    uint64_t map_start, map_end;
    uint64_t inode;
    uint32_t dev_major, dev_minor;
    struct module *next; /* of the same hash of the key */
    uint64_t key_hash;

    pthread_mutex_t lock;
    bool opened;    /* the file was looked for */
    bool has_image; /* and found */
    struct image image;
    bool has_table;
    struct symtab table;
    struct function_entry **functions; /* by symbol or piece */
    size_t function_count;
    bool is_cached;       /* the kernel's table lacks what was made at run time: that is in */
    struct module *rest;  /* this one, once it is asked for */
    uint64_t kernel_text; /* where the kernel's text begins, as recorded; 0: not known */
    struct code_piece *pieces;
    size_t piece_count, piece_capacity;
    uint64_t pieces_end;
    struct function_entry **inlined; /* hash table of those known as inlined only */
    size_t inlined_count, inlined_size;
    struct arena arena; /* functions, names, pieces, paths */
    bool lines_tried;
    struct linetab *lines;    /* NULL: there can be none */
    char *lines_source;       /* what it is made from */
    struct image lines_image; /* that has the DWARF, until it is opened */
    bool has_lines_image;
    uint64_t lines_shift;      /* added to the table's addresses to give those of the DWARF */
    struct debug *debug;       /* NULL until it is needed */
    _Atomic(struct cfi *) cfi; /* published with release, read with acquire */
};

/* What a recording brings with it: see portable.h. */
enum portable_kind { PORTABLE_SYMBOLS = 1, PORTABLE_LINES = 2, PORTABLE_FILE = 3 };

struct portable_entry {
    enum portable_kind kind;
    enum module_kind module_kind; /* of the module; 0 for a file */
    uint64_t lines_shift;
    const char *path; /* not terminated */
    size_t path_size;
    struct build_id id; /* as recorded */
    const char *bytes;
    size_t size;
};

struct symbols {
    struct symbols_options options;
    size_t worker_count;
    char *cache_folder; /* NULL: no cache */
    pthread_mutex_t lock;
    struct module **modules;
    size_t module_count, module_capacity;
    struct module **by_key; /* hash table */
    size_t by_key_size;
    struct module *kernel;
    struct build_id kernel_id; /* recorded */
    char *kernel_symbol;
    uint64_t kernel_symbol_address;
    struct portable_entry *portable;
    size_t portable_count, portable_capacity;
    struct diagnostic *diagnostics;
    size_t diagnostic_count, diagnostic_capacity;
    struct arena arenas[PARALLEL_WIDTH_MAX]; /* frames, one for each worker */
};

/* Adds a diagnostic, unless the module has one of the kind. */
void symbols_diagnose(struct symbols *symbols, const struct module *module,
                      enum diagnostic_kind kind, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Interns a module of a kind that has no file: a part of the kernel, registered code. */
struct module *symbols_named_module(struct symbols *symbols, enum module_kind kind,
                                    const char *name);

/* The following are for holders of the module's lock. */

/* Looks for the file with the code; true when there is one, open as module->image. */
bool module_open(struct module *module);
/* Reads or builds the table of symbols. */
void module_load_table(struct module *module);
/* The function that covers an address of the module; NULL when there is none. */
struct function_entry *module_function_at(struct module *module, uint64_t address);
/* Of two calls with the same names and place, the second gives the first one's result. */
const struct function *module_inlined(struct module *module, const char *name,
                                      const char *linkage_name, const char *file, uint32_t line);
/* The table of source lines, with what earlier runs left of it; NULL when there is no DWARF. */
struct linetab *module_lines(struct module *module);
/* Opens the DWARF for what the table lacks; NULL when it cannot be read. */
struct debug *module_debug(struct module *module);
/* Keeps the table for later runs, if it has changed. */
void module_store_lines(struct module *module);
/* The piece of registered code at an address; NULL when there is none. */
const struct code_piece *module_piece_at(const struct module *module, uint64_t address);
/* Adds one (takes the lock itself) and returns its first address.  details, which may be NULL,
 * gives lines and bytes; what it points to lives as long as the module. */
uint64_t module_add_piece(struct module *module, const char *name, uint64_t size,
                          const struct code_piece *details);
/* The address in terms of the DWARF. */
uint64_t module_lines_address(struct module *module, uint64_t address);

/* portable.c: what the recording brings for a module, or a file; false when that is nothing. */
bool portable_symbols(struct module *module);
bool portable_lines(struct module *module);
bool portable_file(const struct symbols *symbols, const char *path, struct strbuf *out);

/* locate.c */

/* Finds the file of a module by its recorded path and build-id, opens it as ret_image. */
bool locate_code(struct module *module, struct image *ret_image);
/* Finds the separate debug file for a build-id and/or the debuglink of the code.  code may be
 * NULL. */
bool locate_debug(struct module *module, const struct image *code, struct image *ret_image);
/* vmlinux with debug information of the kernel with that build-id. */
bool locate_vmlinux(struct module *kernel, const struct build_id *id, struct image *ret_image);
/* A file in perf's cache of binaries; NULL when it is not there.  The caller frees it. */
char *locate_in_perf_cache(const struct symbols *symbols, const struct build_id *id,
                           const char *name);

/* kernel.c: builds the table of the kernel. */
void kernel_load_table(struct module *kernel);
/* Where to look for what the cached table lacks; NULL when it lacks nothing. */
struct module *kernel_rest(struct module *kernel);
/* What to add to the table's addresses to have those of a vmlinux file. */
uint64_t kernel_shift(struct module *kernel, const struct image *vmlinux);

#endif
