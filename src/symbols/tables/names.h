/* SPDX-License-Identifier: MIT */
/* Names of symbols: demangling, and the variants that compilers make of one function. */
#ifndef ASSAY_SYMBOLS_TABLES_NAMES_H
#define ASSAY_SYMBOLS_TABLES_NAMES_H

#include "base/strings.h"

#include <stdbool.h>
#include <stddef.h>

/* Longer names are cut here: a file cannot make us keep more. */
#define SYMBOLS_NAME_MAX (64u << 10)

enum demangle_style {
    DEMANGLE_SHORT, /* std::vector<int>::push_back, as perf report shows it */
    DEMANGLE_FULL,  /* std::vector<int>::push_back(int const&) */
    DEMANGLE_NONE,
};

/*
 * Appends the demangled name and returns true, or appends nothing and returns false when the name
 * is not mangled (C++ and Rust, both its ways) or would grow beyond SYMBOLS_NAME_MAX.  What stands
 * behind a mangled name stays: "f [clone .cold]", "f@plt".  Thread-safe.
 */
bool name_demangle(const char *name, enum demangle_style style, struct strbuf *out);

/*
 * The length of the name without what compilers append to a function they split or specialised:
 * .isra.N, .constprop.N, .part.N, .cold, .cold.N, .lto_priv.N, .llvm.N and any row of them.
 * Works on mangled names and on what name_demangle made.  Equal to length when there is none;
 * never 0 unless length is.
 */
size_t name_fold(const char *name, size_t length);

#endif
