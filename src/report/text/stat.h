/* SPDX-License-Identifier: MIT */
/* A measurement of `assay stat` as text for people, JSON or CSV for programs. */
#ifndef ASSAY_REPORT_TEXT_STAT_H
#define ASSAY_REPORT_TEXT_STAT_H

#include "base/measured.h"
#include "base/strings.h"
#include "counters/doubts.h"
#include "counters/measure.h"
#include "counters/simulated.h"
#include "machine/machine.h"

struct stat_view {
    const struct event_list *events;
    const struct measurement *m;
    const struct doubt_list *doubts;
    char *const *argv;  /* the command, NULL for none */
    const char *target; /* in words: "'./a'", "process id 12", "system wide" */
    const char *kind;   /* for programs: "command", "pid", "cpus", "cgroup" */
    bool has_usage;     /* user and system time are the command's own */
    uint64_t requested_runs;
    const struct machine *machine; /* for JSON and CSV */
    bool colour;
};

/* Whether what is told apart are CPUs or cores, not threads. */
static inline bool stat_has_cpus(const struct stat_view *v)
{
    return str_eq(v->kind, "cpus") || str_eq(v->kind, "cgroup");
}

void report_stat_text(struct strbuf *out, const struct stat_view *v);
void report_stat_json(struct strbuf *out, const struct stat_view *v);
void report_stat_csv(struct strbuf *out, const struct stat_view *v);

/* The newest interval of the measurement, with a head before the first. */
void report_stat_interval(struct strbuf *out, const struct stat_view *v);

/* Lines of fields as `perf stat -x` prints them, without a head. */
void report_stat_fields(struct strbuf *out, const struct stat_view *v, const char *separator);
void report_stat_fields_interval(struct strbuf *out, const struct stat_view *v,
                                 const char *separator);

struct simulation_view {
    const struct simulation *s;
    char *const *argv;
    const struct machine *machine;
    uint64_t requested_runs;
    bool colour;
};

void report_simulation_text(struct strbuf *out, const struct simulation_view *v);
void report_simulation_json(struct strbuf *out, const struct simulation_view *v);
void report_simulation_csv(struct strbuf *out, const struct simulation_view *v);

/* Mean, spread and range of some values. */
struct spread {
    size_t count;
    double mean, stddev, min, max; /* stddev of the sample, 0 below two values */
};
struct spread spread_of(const double *values, size_t count);
/* "  ± 1.20%  [0.75 … 0.79]" in the given decimals, with the values divided by the divisor. */
void strbuf_put_spread(struct strbuf *out, const struct spread *s, double divisor, int decimals);
/* Words of a text that stands behind `indent` columns, which every further line gets, too. */
void strbuf_put_wrapped(struct strbuf *out, const char *text, size_t indent, size_t width);
/* Wraps those lines of a text that are wider than the terminal; 0 columns: none.  What follows
 * stands below the line's words, behind its indentation or its heading ("state      done"). */
void strbuf_fit_lines(struct strbuf *text, size_t columns);
/* Notes under a table, wrapped. */
void strbuf_put_note(struct strbuf *out, const char *text, bool colour);
/* … into a terminal of so many columns, if that is narrower. */
void strbuf_put_note_within(struct strbuf *out, const char *text, bool colour, size_t columns);
void strbuf_put_notes(struct strbuf *out, const struct doubt_list *doubts, bool colour);

#endif
