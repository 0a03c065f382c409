/* SPDX-License-Identifier: MIT */
/* What the views of `assay serve` share. */
#ifndef ASSAY_REPORT_SERVE_SERVE_INTERNAL_H
#define ASSAY_REPORT_SERVE_SERVE_INTERNAL_H

#include "report/serve/serve.h"

/* Up to the content.  Links are relative, so that the token stays out of the pages; `depth` is how
 * far below it the page is. */
void serve_put_start(struct strbuf *out, const char *title, const char *subtitle, int depth);
/* A page that says why there is none; returns the status. */
int serve_trouble(struct strbuf *out, const struct error *err, int code, int depth);
/* For a query in a link. */
void serve_put_escaped(struct strbuf *out, const char *text);
/* The argument "page"; false where it is not a number. */
bool serve_page_number(const char *text, uint64_t *ret_page);
/* The first page is there also when nothing stands on it. */
bool serve_page_exists(uint64_t page, uint64_t count, uint64_t each);

/* What follows an experiment's number in the path, which begins with `before`; NULL for no number
 * as links have it. */
const char *serve_behind_id(const char *path, const char *before, int64_t *ret_id);

/* The run with which a page of them begins. */
int serve_pages_find(struct serve_pages *p, struct store *store, const struct store_experiment *e,
                     uint64_t page, int64_t *ret_first, struct error *err);

/* The state of an experiment, with how far it is. */
void serve_put_state(struct strbuf *out, struct store *store, const struct store_experiment *e);

/* The views that have files of their own. */
int serve_live(struct store *store, struct strbuf *out);
int serve_moved(struct store *store, struct strbuf *out);
int serve_api(struct store *store, const struct serve_request *q, const char *rest,
              struct strbuf *out);

#endif
