/* SPDX-License-Identifier: MIT */
/* Cells of one item: a ring of three, and up to eight interruptions. */
#define SPSC_CELL_WORDS 1
#define MODEL_NAME "spsc"
#define MODEL_TEST spsc_holds_and_is_weakened
#define MODEL_CAPACITY 2
#define MODEL_ITEMS 2
#define MODEL_SINGLES ((const unsigned[]){1, 1, 1, 1, 0})
#define MODEL_DEPTH 8, 4
#include "models_spsc.h"
