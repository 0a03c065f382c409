/* SPDX-License-Identifier: MIT */
/* Paths of source files as compilers write them, made readable. */
#ifndef ASSAY_SYMBOLS_TABLES_SOURCE_PATH_H
#define ASSAY_SYMBOLS_TABLES_SOURCE_PATH_H

#include "base/strings.h"

/* Sets out to the file, below the folder (which may be NULL) unless it is absolute, without "." and
 * "x/.." in it. */
void source_path(struct strbuf *out, const char *folder, const char *file);

#endif
