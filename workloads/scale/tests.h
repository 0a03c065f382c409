/* SPDX-License-Identifier: MIT */
/* All tests that were linked in, by name. */
#ifndef SCALE_TESTS_H
#define SCALE_TESTS_H

#include "scale.h"

#include <stddef.h>

/* Sorted by name; the array lives as long as the program. */
size_t tests_list(const struct scale_test *const **ret_tests);
/* NULL, with words that name the nearest, when there is none. */
const struct scale_test *tests_find(const char *name, struct error *err);

#endif
