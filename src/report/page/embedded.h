/* SPDX-License-Identifier: MIT */
/*
 * What a report holds besides what it shows: raw values and stacks, as JSON (assay-html-1 in
 * docs/FORMATS.md), compressed and in base64 within the page, so that the page is the data.  Also
 * the reader of what `assay ab --json` writes, as an experiment with one factor more.
 */
#ifndef ASSAY_REPORT_PAGE_EMBEDDED_H
#define ASSAY_REPORT_PAGE_EMBEDDED_H

#include "analysis/dataset.h"
#include "base/strings.h"
#include "profile/flame.h"
#include "why/explanation.h"

/* Texts kept with an experiment; "" for none. */
struct embedded_documents {
    char *machine, *environment, *spec;
};

/* A monitor's readings during one run. */
struct embedded_trace {
    size_t cell; /* in the first set */
    double *seconds, *values;
    size_t count;
};

struct embedded_monitor {
    char *name, *unit;
    struct embedded_trace *traces;
    size_t count, capacity;
};

/* One cell's headline in experiments of the same name, oldest first. */
struct embedded_history {
    char *label, *metric, *unit;
    double *medians, *lows, *highs;
    int64_t *experiments;
    char **commits;
    size_t count;
};

struct embedded {
    struct dataset *sets;
    struct embedded_documents *documents; /* one per set */
    size_t set_count, set_capacity, document_capacity;
    struct flame *flames;
    size_t flame_count, flame_capacity;
    struct explanations explanations;
    struct embedded_monitor *monitors;
    size_t monitor_count, monitor_capacity;
    struct embedded_history *histories;
    size_t history_count, history_capacity;
    char *base, *new; /* "variant=a" and "variant=b" of a comparison within; NULL for none */
    char *command;    /* that made the report */
};

void embedded_done(struct embedded *e);

/* The JSON.  `view` is a JSON value for the page's scripts, or NULL. */
void embedded_put_json(struct strbuf *out, const struct embedded *e, const char *view);
/* The element of the page that holds it, compressed where assay was built with zlib. */
void embedded_put_element(struct strbuf *out, const struct strbuf *json);
/* Its id, by which it is found again. */
#define EMBEDDED_ID "assay-data"

/* Reads a page's data.  `name` is for messages. */
int embedded_read(struct embedded *e, const char *text, size_t length, const char *name,
                  struct error *err);
/* Adds what `assay ab --json` wrote. */
int embedded_read_ab(struct embedded *e, const char *text, size_t length, const char *name,
                     struct error *err);
/* Adds what `assay gate --json` wrote. */
int embedded_read_gate(struct embedded *e, const char *text, size_t length, const char *name,
                       struct error *err);
/* One of them, or what `assay explain --json` wrote, by its content: -EBADMSG when it is none of
 * them or damaged. */
int embedded_read_file(struct embedded *e, const char *path, struct error *err);

#endif
