/* SPDX-License-Identifier: MIT */
/* capstone, loaded when code is first disassembled: see base/library.h. */
#ifndef ASSAY_PROFILE_CODE_LIBCAPSTONE_H
#define ASSAY_PROFILE_CODE_LIBCAPSTONE_H

#include "base/library.h"
#include "config.h"

#include <capstone/capstone.h>

#if LOAD_LIBRARIES
#define CAPSTONE_WORDS(x) #x
#define CAPSTONE_STRING(x) CAPSTONE_WORDS(x)
#define CAPSTONE_FUNCTIONS(X) \
    X(cs_close)               \
    X(cs_disasm_iter)         \
    X(cs_free)                \
    X(cs_insn_group)          \
    X(cs_malloc)              \
    X(cs_open)                \
    X(cs_option)
LIBRARY_TABLE(capstone, CAPSTONE_FUNCTIONS, "libcapstone.so." CAPSTONE_STRING(CS_API_MAJOR),
              "libcapstone" CAPSTONE_STRING(CS_API_MAJOR), "disassembly");
#define cs_close capstone.cs_close
#define cs_disasm_iter capstone.cs_disasm_iter
#define cs_free capstone.cs_free
#define cs_insn_group capstone.cs_insn_group
#define cs_malloc capstone.cs_malloc
#define cs_open capstone.cs_open
#define cs_option capstone.cs_option
#else
LIBRARY_LINKED(capstone);
#endif

#endif
