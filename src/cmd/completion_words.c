/* SPDX-License-Identifier: MIT */
/*
 * `assay completion --list KIND`: what stands in the store (the one of ASSAY_DB, or assay.db here)
 * and came with assay, one word a line, for the completion scripts.  Where nothing is, nothing is
 * printed: a completion has nobody to complain to.
 */
#include "cmd/completion_words.h"
#include "analysis/dataset.h"
#include "base/memory.h"
#include "harness/harness.h"
#include "monitors/monitors.h"
#include "session/experiments.h"

#include <stdio.h>

static void print_specs(void)
{
    char **names = NULL;
    size_t count = 0;
    if (experiments_names(&names, &count, NULL) < 0)
        return;
    for (size_t i = 0; i < count; i++) {
        puts(names[i]);
        free(names[i]);
    }
    free(names);
}

static void print_monitors(void)
{
    const char *names[MONITORS_MAX];
    size_t count = monitor_names(names);
    for (size_t i = 0; i < count; i++)
        puts(names[i]);
}

static void print_experiments(struct store *store)
{
    struct store_filter filter = {.most = 100};
    CLEANUP(store_list_done) struct store_list list = {0};
    if (store_list(store, &filter, &list, NULL) < 0 || !list.count)
        return;
    puts("last");
    for (size_t i = 0; i < list.count; i++)
        printf("%lld\n%s\n", (long long)list.items[i].id, list.items[i].name);
}

/* Of the newest experiment: factor=value, each once. */
static void print_cells(const struct dataset *d)
{
    for (size_t f = 0; f < d->factor_count; f++)
        for (size_t c = 0; c < d->cell_count; c++) {
            bool seen = false;
            for (size_t before = 0; before < c && !seen; before++)
                seen = str_eq(d->cells[before].levels[f], d->cells[c].levels[f]);
            if (!seen)
                printf("%s=%s\n", d->factors[f], d->cells[c].levels[f]);
        }
}

static void print_from_store(const char *kind)
{
    CLEANUP(store_closep) struct store *store = NULL;
    int64_t last;
    struct dataset d;
    if (store_open(&store, store_place(NULL), STORE_READ, NULL) < 0)
        return;
    if (!str_eq(kind, "cells") && !str_eq(kind, "metrics"))
        print_experiments(store);
    if (str_eq(kind, "experiments") || store_find(store, "last", &last, NULL) < 0 ||
        dataset_load(&d, store, last, NULL) < 0)
        return;
    if (str_eq(kind, "metrics"))
        for (size_t m = 0; m < d.metric_count; m++)
            puts(d.metrics[m].name);
    else
        print_cells(&d);
    dataset_done(&d);
}

bool completion_print_words(const char *kind)
{
    if (str_eq(kind, "specs"))
        print_specs();
    else if (str_eq(kind, "monitors"))
        print_monitors();
    else if (str_eq(kind, "formats"))
        for (const struct harness_format *f = harness_formats; f->name; f++)
            puts(f->name);
    else if (str_eq(kind, "experiments") || str_eq(kind, "cells") || str_eq(kind, "metrics") ||
             str_eq(kind, "sides"))
        print_from_store(kind);
    else
        return false;
    return true;
}
