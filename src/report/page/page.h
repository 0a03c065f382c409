/* SPDX-License-Identifier: MIT */
/*
 * What a report is made of, before it becomes HTML: experiments, profiles, the comparison, and the
 * plots that follow from them.  `assay html`, `assay plot` and `assay serve` fill one and draw it.
 */
#ifndef ASSAY_REPORT_PAGE_PAGE_H
#define ASSAY_REPORT_PAGE_PAGE_H

#include "analysis/answers.h"
#include "analysis/compare.h"
#include "analysis/profiles.h"
#include "report/draw/svg.h"
#include "report/page/embedded.h"
#include "stats/median.h"

/* A line of the table: a cell (or a pair of cells) and a metric. */
struct page_row {
    size_t metric, cell; /* in the view */
    size_t place;        /* of its metric among the rows */
    size_t base_cell;    /* DATASET_NONE for none: the rest is not compared */
    const char *label;
    bool headline, changed, is_noise; /* noise: shown only when everything is */
    struct summary base, new;
    struct median_interval interval; /* of the new one */
    struct comparison comparison;
    struct verdict verdict;
    double p_adjusted;
    bool compared;
};

/* Why it changed: functions of two sets of recordings, as `assay diff` finds them. */
struct page_cause {
    char *name, *before, *after, *change, *share, *words;
    bool is_function;
    bool is_grey; /* could be chance, or below the resolution */
};

struct page_why {
    char *label; /* of the cells; "" for files */
    char *whole; /* the whole change, with its unit */
    char *unit;  /* of before and after */
    char *note;
    struct page_cause *causes; /* the last one is what no function explains */
    size_t count, capacity;
};

/* A line of the picture on the first screen: a variant against its baseline, or a pair of cells. */
struct page_entry {
    char *name;
    struct comparison comparison;
    struct verdict verdict;
    char *note;                  /* that it is a mean; "" for none */
    char *caveat;                /* failed runs; "" for none */
    bool is_lost;                /* no run succeeded: there is no comparison */
    size_t cells, better, worse; /* of a mean: those that it is of, and those that differ */
};

/* The first screen: what a reader must know, and one picture that tells the same. */
struct page_first {
    size_t metric; /* in the view; DATASET_NONE where there is nothing to say */
    char *base;    /* what the entries are compared with */
    struct page_entry *entries;
    size_t count, capacity;
    size_t best; /* the entry to name in the sentence; DATASET_NONE for none */
    char *machine;
    char *row_factors; /* "size, threads": whose levels name the pairs; NULL where there are none */
    const struct plot *curve; /* instead of the entries, where a crossover was found */
};

struct page {
    struct embedded data;
    struct dataset joint;       /* two experiments as one, with a factor "side" */
    const struct dataset *view; /* what is drawn: joint, the only set, or NULL for profiles only */
    char *view_baseline;        /* "factor=value …" */
    size_t variant;             /* the factor of rivals in the view, DATASET_NONE for none */
    bool is_joint;              /* rounds of the two sides are not the same */
    bool is_compared;           /* two were asked for; else cells are beside their baselines */
    bool has_compare;
    struct compare compare;
    bool has_answers;
    struct answers answers;
    struct page_row *rows;
    size_t row_count, row_capacity;
    struct page_why *whys;
    size_t why_count, why_capacity;
    struct plot *plots;
    size_t plot_count, plot_capacity;
    struct page_first first;
    struct flame_pair pair; /* of the first two flames, where they are compared */
    bool has_pair;
    char *title;
    const char *home;    /* where `assay serve` has its list, from this page; NULL for a file */
    struct strbuf notes; /* one sentence a line */
};

/* From page->data on: the comparison, rows, answers.  Fails when a comparison was asked for that
 * cannot be made. */
int page_prepare(struct page *page, struct error *err);
/* All plots that the data gives. */
void page_plot(struct page *page);
void page_done(struct page *page);

/* Adds an experiment of the store with its texts. */
int page_add_experiment(struct page *page, struct store *store, int64_t id, struct error *err);
/* The profiles of its cells, where their files are still there. */
void page_add_profiles(struct page *page, struct store *store, int64_t id);
/* What differs between two sets of recordings.  With labels, the flame graphs of both sides' first
 * come along, marked by what differs.  Nothing is added on failure. */
int page_add_pair(struct page *page, const struct profile_pair *pair, char *const *labels,
                  struct error *err);
void page_why_done(struct page_why *why);
/* A recording. */
int page_add_recording(struct page *page, const char *path, const char *label, struct error *err);
/* The flame graph of one that is loaded and symbolized; -ENODATA when it has no samples. */
/* Of this event. */
int page_add_flame_of(struct page *page, const struct profile *profile, uint32_t event,
                      const char *label, struct error *err);
int page_add_flame(struct page *page, const struct profile *profile, const char *label,
                   struct error *err);
/* The source and the instructions of its hottest functions, from its recording. */
int page_add_source(struct flame *flame, const char *path, struct error *err);
/* What `assay explain` found about the experiments of the page, as far as the page compares them.
 */
int page_add_explanations(struct page *page, struct store *store, struct error *err);
/* Monitors and history of the (first) experiment, from the store. */
int page_add_monitors(struct page *page, struct store *store, int64_t id, struct error *err);
int page_add_history(struct page *page, struct store *store, int64_t id, struct error *err);

/* How far the row moved, for the order: the same for twice and half as much. */
double page_strength(const struct page_row *row);

/* For the plots. */
struct page_axis {
    size_t factor;
    const char **levels; /* of the view, each once; ascending where they are numbers */
    double *numbers;     /* NULL when they are none */
    size_t count;
};
void page_axis_init(struct page_axis *axis, const struct dataset *d, size_t factor);
void page_axis_done(struct page_axis *axis);
/* "size=64 threads=2" of the cell without two factors and those of one level only. */
char *page_where(const struct dataset *d, size_t cell, size_t factor, size_t other);
/* Is this the first cell of its combination of the factors but these two? */
bool page_is_first(const struct dataset *d, size_t cell, size_t factor, size_t other);
/* Two cells of the view: as the table has them, or as the judge says where it does not. */
bool page_compare(const struct page *page, size_t metric, size_t base, size_t new,
                  struct comparison *ret_comparison);
/* "throughput (Gbit/s)" */
const char *page_metric_label(struct plot *p, const char *name, const char *unit);
struct plot *page_add_plot(struct page *page, const char *kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* After the plots. */
void page_find_first(struct page *page);
void page_first_done(struct page_first *first);

void page_plot_curves(struct page *page, size_t metric);
void page_plot_efficiency(struct page *page, size_t metric);
void page_plot_runs(struct page *page, size_t metric);
void page_plot_percentiles(struct page *page);
void page_plot_pairs(struct page *page, size_t metric);
void page_plot_time(struct page *page);

#endif
