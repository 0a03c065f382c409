/* SPDX-License-Identifier: MIT */
/*
 * Parameters of a command: {size} in its text stands for each of some values.  Several parameters
 * give every combination; combination i is a number in mixed base, the first parameter slowest.
 */
#ifndef ASSAY_SPEC_PARAMETERS_H
#define ASSAY_SPEC_PARAMETERS_H

#include "base/error.h"
#include "base/strings.h"

enum { PARAMETER_COMBINATIONS_MAX = 10000 };

struct parameter {
    char *name;
    char **values;
    size_t count, capacity;
};

struct parameter_list {
    struct parameter *items;
    size_t count, capacity;
};

/* Values separated by commas; a backslash keeps a comma (or a backslash) as it is. */
int parameters_add_list(struct parameter_list *list, const char *name, const char *values,
                        struct error *err);
/* The numbers from `first` to `last` in steps (NULL for 1), with as many decimals as these have. */
int parameters_add_range(struct parameter_list *list, const char *name, const char *first,
                         const char *last, const char *step, struct error *err);
void parameters_done(struct parameter_list *list);

/* 1 when there are no parameters. */
size_t parameters_combinations(const struct parameter_list *list);
const char *parameters_value(const struct parameter_list *list, size_t parameter,
                             size_t combination);
/* The text with every {name} replaced; other braces stay.  The caller frees it. */
char *parameters_substitute(const struct parameter_list *list, size_t combination,
                            const char *text);
/* Whether the text holds {name} of the parameter. */
bool parameters_used(const struct parameter_list *list, size_t parameter, const char *text);
/* Appends "size=64, threads=2". */
void parameters_describe(const struct parameter_list *list, size_t combination, struct strbuf *out);

#endif
