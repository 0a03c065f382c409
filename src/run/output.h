/* SPDX-License-Identifier: MIT */
/*
 * Where a command's standard output goes: --output of every verb that runs commands.
 *
 * Not to /dev/null unless asked for: GNU grep and others notice that nobody reads and stop at the
 * first match, so what would be measured is not their work.  A file in memory makes them do it and
 * disturbs least: `./dev bench output` has the figures.
 */
#ifndef ASSAY_RUN_OUTPUT_H
#define ASSAY_RUN_OUTPUT_H

#include "base/error.h"

enum run_output {
    RUN_KEEP,    /* to memory; the end is in the result, what came before is dropped */
    RUN_DISCARD, /* to /dev/null; programs such as grep notice that and stop early */
    RUN_PIPE,    /* to a pipe that assay empties */
    RUN_SHOW,    /* to assay's own */
    RUN_FILE,    /* to a file, which each run writes anew */
};

#define OUTPUT_VALUE "WHERE"
#define OUTPUT_HELP "standard output: memory (default), null, pipe, inherit, or a file"
#define OUTPUT_WORDS "memory null pipe inherit"

/* What a word of --output means; NULL and "" are the default.  What is no other word is a file. */
enum run_output output_parse(const char *word);

/* A pipe for a command: both ends close-on-exec and 10 or more, the first does not block. */
int output_pipe(int ret_ends[2], struct error *err);
/* Throws away what is in the pipe, at most once its size. */
void output_drain(int pipe_fd, int null_fd);

#endif
