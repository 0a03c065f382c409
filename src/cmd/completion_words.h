/* SPDX-License-Identifier: MIT */
#ifndef ASSAY_CMD_COMPLETION_WORDS_H
#define ASSAY_CMD_COMPLETION_WORDS_H

#include <stdbool.h>

/* Prints the words of a kind: specs, monitors, experiments, cells, metrics, or sides (experiments
 * and cells).  False for another kind. */
bool completion_print_words(const char *kind);

#endif
