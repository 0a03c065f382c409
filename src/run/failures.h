/* SPDX-License-Identifier: MIT */
/*
 * Commands that fail in rounds.  One that fails does not end the others: its failed runs are left
 * out, and it is not run any more once it has failed at every try or many times in a row.
 */
#ifndef ASSAY_RUN_FAILURES_H
#define ASSAY_RUN_FAILURES_H

#include "run/runner.h"

/* How a command failed. */
struct rounds_failure {
    char *what; /* "the command", "the setup command"; NULL: nothing failed */
    char *text; /* its command line */
    struct strbuf end;
    struct strbuf output_stdout, output_stderr;
    bool stdout_was_discarded;
    int exit_code; /* for assay's own exit */
};

/* How a contestant fared, warm-ups included. */
struct contestant_state {
    size_t run_count, failed_count, failed_in_row;
    size_t counted_failures;       /* measured runs that failed and were allowed to */
    bool is_out;                   /* it is not run any more */
    struct rounds_failure failure; /* the last one that was not allowed */
};

/* Which exit codes are no failure: --ignore-failure. */
struct failure_codes {
    bool all;
    int items[16];
    size_t count;
};

/* Takes "", "all-non-zero" or "1,3"; -EINVAL with words. */
int failure_codes_parse(struct failure_codes *codes, const char *text, struct error *err);
/* Whether the run failed and that is allowed. */
bool failure_is_allowed(const struct failure_codes *codes, const struct run_result *result);

/* Remembers a failure in the place of one before. */
void failure_keep(struct rounds_failure *f, const char *what, const char *text,
                  const struct run_result *result, bool stdout_was_discarded);
void failure_done(struct rounds_failure *f);
/* Appends the last line of its standard error, else of its standard output, safe for a terminal. */
void failure_last_words(const struct rounds_failure *f, struct strbuf *out);

/* Counts a run; says whether the contestant is out now. */
void contestant_state_note(struct contestant_state *state, bool failed);

#endif
