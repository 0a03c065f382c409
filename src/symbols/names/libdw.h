/* SPDX-License-Identifier: MIT */
/* libdw, loaded when a binary first has packed symbols: see base/library.h. */
#ifndef ASSAY_SYMBOLS_NAMES_LIBDW_H
#define ASSAY_SYMBOLS_NAMES_LIBDW_H

#include "base/library.h"
#include "config.h"

#include <elfutils/libdwelf.h>

#if LOAD_LIBRARIES
#define DW_FUNCTIONS(X) X(dwelf_elf_begin)
LIBRARY_TABLE(dw, DW_FUNCTIONS, "libdw.so.1", "libdw1", "packed symbols (.gnu_debugdata)");
#define dwelf_elf_begin dw.dwelf_elf_begin
#else
LIBRARY_LINKED(dw);
#endif

#endif
