/* SPDX-License-Identifier: MIT */
/*
 * The views of `assay serve`: a path and its arguments become a page.  Nothing here knows of
 * sockets, and nothing is written to the store.
 */
#ifndef ASSAY_REPORT_SERVE_SERVE_H
#define ASSAY_REPORT_SERVE_SERVE_H

#include "base/strings.h"
#include "store/store.h"

struct serve_request {
    const char *path; /* behind the token: "/", "/e/12", "/e/12/runs", "/e/12/report", "/compare" */
    const char *query, *page, *base, *new, *name, *state; /* arguments, NULL where not given */
};

/* Appends the page and returns the HTTP status: 200, 400, 404, 500. */
int serve_page(struct store *store, const struct serve_request *request, struct strbuf *out);

/* Below this, answers are JSON. */
#define SERVE_API "/api/v1/"

enum { SERVE_EXPERIMENTS = 50, SERVE_RUNS = 100 }; /* on one page */

#endif
