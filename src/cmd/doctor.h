/* SPDX-License-Identifier: MIT */
/* The parts of `assay doctor`: the table of findings and the noise test. */
#ifndef ASSAY_CMD_DOCTOR_H
#define ASSAY_CMD_DOCTOR_H

#include "base/error.h"
#include "base/json.h"
#include "fits/noise.h"
#include "machine/machine.h"

#define NOISE_WORKER "--noise-worker" /* the hidden first word of what the noise test runs */
#define NOISE_BUDGET_SECONDS 10       /* of measuring, for the smallest change */

/* What differs between the two measures of a run. */
enum noise_measure { NOISE_WALL, NOISE_CPU, NOISE_MEASURES };

/* The same program against itself: round i ran it twice, in an order that the seed decides. */
struct noise_test {
    uint64_t seed, iterations;
    size_t round_count, round_capacity;
    double *first_ns[NOISE_MEASURES], *second_ns[NOISE_MEASURES];
    double elapsed_seconds;
    int signal;                    /* that ended it early, 0 for none */
    uint64_t involuntary_switches; /* of the runs */
    double steal_seconds;          /* of the whole machine meanwhile; negative when not known */
    struct noise noise[NOISE_MEASURES];
};

/* Runs for so long, with a line of progress.  A signal ends it and is no failure. */
int noise_test_run(struct noise_test *t, uint64_t duration_ns, uint64_t seed, struct error *err);
void noise_test_done(struct noise_test *t);
/* What the runs execute: spins for that many iterations. */
int noise_worker(const char *iterations);

void noise_test_json(const struct noise_test *t, struct json *j, const char *key);
void noise_test_text(const struct noise_test *t, struct strbuf *out, size_t columns, bool colour);

/* The findings as a table that fits the columns. */
void doctor_table(const struct machine *m, struct strbuf *out, size_t columns, bool colour);
/* Appends text in lines of at most `columns` columns; lines after the first start with `indent`
 * blanks.  `used` columns of the first line are taken already. */
void doctor_wrap(struct strbuf *out, const char *text, size_t used, size_t indent, size_t columns);

#endif
