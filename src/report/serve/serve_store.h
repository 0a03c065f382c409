/* SPDX-License-Identifier: MIT */
/*
 * What the threads of `assay serve` share: connections to the store, pages that were made before,
 * and the right to make an expensive one.
 *
 * A page is kept until somebody writes to the store, so that asking again costs next to nothing; of
 * reports and comparisons only a few are made at a time, however many are asked for, so that lists
 * stay quick.  All functions may be called from any thread.
 */
#ifndef ASSAY_REPORT_SERVE_SERVE_STORE_H
#define ASSAY_REPORT_SERVE_SERVE_STORE_H

#include "report/serve/serve.h"

struct serve_store;

/* A page as it is sent; who has one gives it back. */
struct serve_body {
    int status;
    char *text;
    size_t length;
    unsigned references; /* the serve_store's affair, as is what follows */
    struct serve_store *owner;
};

/* Fails where the store cannot be opened. */
int serve_store_new(struct serve_store **ret_store, const char *place, struct error *err);
void serve_store_free(struct serve_store *s);

/* Never NULL: what goes wrong becomes a page that says so. */
struct serve_body *serve_store_page(struct serve_store *s, const struct serve_request *request);
void serve_body_release(struct serve_body *body);

#endif
