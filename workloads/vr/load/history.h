/* SPDX-License-Identifier: MIT */
/*
 * A history of operations in the forms that checkers of others read: Jepsen's EDN (Knossos, Elle:
 * an invocation and a completion for each operation, in the order of time), and operations as
 * porcupine's Go program decodes them from JSON.
 */
#ifndef ASSAY_VR_HISTORY_H
#define ASSAY_VR_HISTORY_H

#include "base/error.h"

#include <stdio.h>

enum vr_history_form { VR_HISTORY_TEXT, VR_HISTORY_EDN, VR_HISTORY_PORCUPINE };

int vr_history_form_parse(const char *text, enum vr_history_form *ret_form, struct error *err);
/* Reads the lines that load.c writes, from the beginning. */
int vr_history_convert(FILE *in, FILE *out, enum vr_history_form form, struct error *err);

#endif
