/* SPDX-License-Identifier: MIT */
/* What `assay html` and `assay plot` take: experiments of the store, two of them or two values of a
 * factor to compare, recordings, and files of assay html and assay ab. */
#ifndef ASSAY_CMD_PAGE_SOURCES_H
#define ASSAY_CMD_PAGE_SOURCES_H

#include "report/page/page.h"

/* Loads all that the words name (none: the newest experiment) and prepares the page.  -EINVAL when
 * the words do not fit together. */
int page_sources_load(struct page *page, const char *db, int count, char **words,
                      struct error *err);
/* The command line, for the page's own record. */
void page_sources_command(struct strbuf *out, char **argv);

#endif
