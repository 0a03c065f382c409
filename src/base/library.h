/* SPDX-License-Identifier: MIT */
/*
 * Libraries that are loaded when they are first needed.  One that only `assay serve` calls must not
 * make every start of assay slower, nor bring thirty others along, nor be there at all for those
 * who never serve.
 *
 * A header beside the only user names the functions once:
 *
 *     #include <zlib.h>
 *     #if LOAD_LIBRARIES
 *     #define Z_FUNCTIONS(X) X(deflate) X(inflate)
 *     LIBRARY_TABLE(z, Z_FUNCTIONS, "libz.so.1", "zlib1g", "packed files");
 *     #define deflate z.deflate
 *     #define inflate z.inflate
 *     #else
 *     LIBRARY_LINKED(z);
 *     #endif
 *
 * and its calls stay what they were, behind a library_load(&z_library, err) that succeeded.
 * Variables of a library are named among the functions and used through their address.  A static
 * build has no loader; there LOAD_LIBRARIES is 0, and the linker brings the library.
 */
#ifndef ASSAY_BASE_LIBRARY_H
#define ASSAY_BASE_LIBRARY_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct library {
    const char *soname;
    const char *package; /* Debian's that has it */
    const char *purpose; /* what cannot be done without it: "'assay serve'" */
    const char *const *names;
    void **addresses; /* one for each name */
    size_t count;
    bool ready; /* guarded by a lock of library.c */
};

#define LIBRARY_MEMBER(name) __typeof__(name) *name;
#define LIBRARY_NAME(name) #name,

/* A table of pointers called `table`, and `table_library` that fills it. */
#define LIBRARY_TABLE(table, FUNCTIONS, soname_, package_, purpose_)       \
    static struct {                                                        \
        FUNCTIONS(LIBRARY_MEMBER)                                          \
    } table;                                                               \
    static const char *const table##_names[] = {FUNCTIONS(LIBRARY_NAME)};  \
    static struct library table##_library = {.soname = (soname_),          \
                                             .package = (package_),        \
                                             .purpose = (purpose_),        \
                                             .names = table##_names,       \
                                             .addresses = (void **)&table, \
                                             .count = sizeof(table) / sizeof(void *)}

/* The same where the linker brought the library: loading it is nothing. */
#define LIBRARY_LINKED(table) static struct library table##_library = {.ready = true}

/* Finds the library and all its names; at once when that was done before.  Without it: -ENOPKG and
 * a sentence that names the package.  From any thread. */
int library_load(struct library *library, struct error *err);

#endif
