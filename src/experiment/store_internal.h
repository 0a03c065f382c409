/* SPDX-License-Identifier: MIT */
/* What the store's own files share. */
#ifndef ASSAY_EXPERIMENT_STORE_INTERNAL_H
#define ASSAY_EXPERIMENT_STORE_INTERNAL_H

#include "experiment/store.h"

struct store {
    struct sql *sql;
    struct store_metric *metrics; /* ids that were asked for, ordered by name */
    size_t metric_count, metric_capacity;
};

/* Brings the tables up to date; -EPROTO when a newer assay wrote them. */
int store_migrate(struct sql *sql, bool may_write, struct error *err);

/* The process that runs an experiment, as a text that tells it from every other. */
void store_owner_self(char *text, size_t size);
/* Whether that process still runs; updated_at_ns is when it last wrote. */
bool store_owner_alive(const char *owner, uint64_t updated_at_ns);

#endif
