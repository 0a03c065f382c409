/* SPDX-License-Identifier: MIT */
/* What `assay export --to portable` and `assay record --portable` share. */
#ifndef ASSAY_CMD_EXPORT_PORTABLE_H
#define ASSAY_CMD_EXPORT_PORTABLE_H

#include "cmd/profile_options.h"

/* Writes the recording at `input` to `output`, which may be the same, with its names. */
int export_portable(struct profile_cli *cli, const char *input, const char *output,
                    struct profile_options *needs, struct error *err);

#endif
