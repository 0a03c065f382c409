/* SPDX-License-Identifier: MIT */
/* Cells of two items: calls that begin and end within a cell, pushes that leave their tail where
 * another began before, and cells that the consumer claims when it has read them. */
#define SPSC_CELL_WORDS 2
#define MODEL_NAME "spsc-cells"
#define MODEL_TEST spsc_cells_hold_and_are_weakened
#define MODEL_CAPACITY 4
#define MODEL_ITEMS 4
#define MODEL_SINGLES ((const unsigned[]){1, 1, 1, 1, 1, 1, 1, 1, 0})
#define MODEL_DEPTH 5, 2
#include "models_spsc.h"
