/* SPDX-License-Identifier: MIT */
/* Where a store is, and how it is opened. */
#ifndef ASSAY_STORE_STORE_PLACE_H
#define ASSAY_STORE_STORE_PLACE_H

#include <stdbool.h>

#define STORE_DEFAULT "assay.db"

enum store_mode {
    STORE_READ,   /* must exist; nothing is changed */
    STORE_WRITE,  /* must exist */
    STORE_CREATE, /* made when it is not there */
    STORE_EXPORT, /* as STORE_CREATE, but one single file when closed: no write-ahead log */
};

/* What --db gave (may be NULL), else ASSAY_DB, else assay.db in the current folder. */
const char *store_place(const char *option);

/* Whether the place is an address of a server, no path. */
bool store_is_address(const char *place);

#endif
