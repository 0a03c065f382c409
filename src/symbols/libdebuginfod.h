/* SPDX-License-Identifier: MIT */
/* debuginfod's client, loaded when a server is first asked: it brings an HTTP client with thirty
 * libraries along: see base/library.h. */
#ifndef ASSAY_SYMBOLS_LIBDEBUGINFOD_H
#define ASSAY_SYMBOLS_LIBDEBUGINFOD_H

#include "base/library.h"
#include "config.h"

#include <elfutils/debuginfod.h>

#if LOAD_LIBRARIES
#define DEBUGINFOD_FUNCTIONS(X)  \
    X(debuginfod_begin)          \
    X(debuginfod_end)            \
    X(debuginfod_find_debuginfo) \
    X(debuginfod_find_executable)
LIBRARY_TABLE(debuginfod, DEBUGINFOD_FUNCTIONS, "libdebuginfod.so.1", "libdebuginfod1",
              "DEBUGINFOD_URLS");
#define debuginfod_begin debuginfod.debuginfod_begin
#define debuginfod_end debuginfod.debuginfod_end
#define debuginfod_find_debuginfo debuginfod.debuginfod_find_debuginfo
#define debuginfod_find_executable debuginfod.debuginfod_find_executable
#else
LIBRARY_LINKED(debuginfod);
#endif

#endif
