/* SPDX-License-Identifier: MIT */
/* Benchmarks as commands, for the verbs that run commands. */
#ifndef ASSAY_CMD_BENCH_COMMAND_H
#define ASSAY_CMD_BENCH_COMMAND_H

#include "base/error.h"

/* The name under which assay bench reports a benchmark to those who
 * run it; the caller frees it. */
char *bench_metric_name(const char *label);
/* The words of a command that measures one benchmark of a program; they stay the arguments'. */
enum { BENCH_COMMAND_WORDS = 8 };
void bench_command_words(char **words, const char *label, const char *program);
/* Commands that run a benchmark of two programs for the same number of iterations, each in one of
 * the folders (NULL: in assay's own); the caller frees them. */
int bench_command_texts(const char *label, char *const programs[2], char *const folders[2],
                        char *ret_texts[2], struct error *err);

#endif
