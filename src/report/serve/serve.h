/* SPDX-License-Identifier: MIT */
/*
 * The views of `assay serve`: a path and its arguments become a page.  Nothing here knows of
 * sockets, and nothing is written to the store.
 */
#ifndef ASSAY_REPORT_SERVE_SERVE_H
#define ASSAY_REPORT_SERVE_SERVE_H

#include "base/strings.h"
#include "store/store.h"

/* Where pages of runs begin, as far as is known; threads share it. */
struct serve_pages;
struct serve_pages *serve_pages_new(void);
void serve_pages_free(struct serve_pages *p);

struct serve_request {
    const char *path; /* behind the token: "/", "/e/12", "/e/12/runs", "/e/12/report", "/compare" */
    const char *query, *page, *base, *new, *name, *metric; /* arguments, NULL where not given */
    struct serve_pages *pages;
};

/* Appends the page and returns the HTTP status: 200, 400, 404, 500. */
int serve_page(struct store *store, const struct serve_request *request, struct strbuf *out);

/* Below this, answers are JSON. */
#define SERVE_API "/api/v1/"
/* What is under way, as JSON; another text whenever the list of experiments has changed. */
#define SERVE_LIVE "/live"

enum { SERVE_EXPERIMENTS = 50, SERVE_RUNS = 100 }; /* on one page */

#endif
