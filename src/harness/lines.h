/* SPDX-License-Identifier: MIT */
/* A text, line by line, and the words of a line. */
#ifndef ASSAY_HARNESS_LINES_H
#define ASSAY_HARNESS_LINES_H

#include <stdbool.h>
#include <stddef.h>

enum { LINES_LENGTH_MAX = 4096, LINES_WORDS_MAX = 64 };

struct lines {
    const char *at;              /* set it to the text; what is left */
    size_t number;               /* of the line, from 1 */
    bool is_cut;                 /* it is the last one, and has no newline at its end */
    char line[LINES_LENGTH_MAX]; /* without its end; longer ones are cut */
};

bool lines_next(struct lines *l);
/* Where the first of several runs in one text ends: before a line that begins a run and comes after
 * one that ends the run before. */
const char *lines_run_end(const char *text, bool (*begins)(const char *line),
                          bool (*ends)(const char *line));
/* Cuts the line into its words at runs of blanks; at most LINES_WORDS_MAX. */
size_t lines_words(char *line, char **ret_words);
/* Cuts it at each separator; quotes around a field are taken away. */
size_t lines_fields(char *line, char separator, char **ret_fields);
/* Whether all of the text is one finite number; a sign "%", "ms" and the like behind it is allowed
 * where `ret_rest` is given. */
bool lines_number(const char *text, double *ret_value, const char **ret_rest);
/* "1.25 µs" at the beginning, with or without blanks, as nanoseconds. */
bool lines_duration(const char *text, double *ret_ns, const char **ret_rest);

#endif
