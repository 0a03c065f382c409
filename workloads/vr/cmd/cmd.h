/* SPDX-License-Identifier: MIT */
/* The commands of assay-vr: each is a verb with its table of options. */
#ifndef ASSAY_VR_CMD_H
#define ASSAY_VR_CMD_H

#include "base/options.h"

extern const struct verb vr_verb_backup, vr_verb_bench, vr_verb_client, vr_verb_key, vr_verb_kv,
    vr_verb_reconfigure, vr_verb_replica, vr_verb_restore, vr_verb_sim, vr_verb_status;

/* "assay-vr NAME: message" on standard error; returns code. */
int vr_fail(const struct verb *verb, const struct error *err, int code);

/* Parses; returns true when the verb goes on, else *ret_code is what it returns.  Words that are no
 * options are refused where ret_first is NULL. */
bool vr_options(const struct verb *verb, void *target, int argc, char **argv, int *ret_first,
                int *ret_code);

#endif
