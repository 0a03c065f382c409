/* SPDX-License-Identifier: MIT */
/* `assay --version`: which assay this is, of which commit, and what it was built with. */
#include "cmd/version.h"
#include "cmd/cmd.h"
#include "config.h"

#include <string.h>

void cmd_version(FILE *stream)
{
    fprintf(stream, "assay %s", ASSAY_VERSION);
    /* Meson has the version stand in where git knows no commit. */
    if (*ASSAY_COMMIT && strcmp(ASSAY_COMMIT, ASSAY_VERSION) != 0)
        fprintf(stream, " (commit %s)", ASSAY_COMMIT);
    fprintf(stream, "\nwith %s\n", *ASSAY_FEATURES ? ASSAY_FEATURES : "no optional library");
    if (*ASSAY_MISSING)
        fprintf(stream, "without %s\n", ASSAY_MISSING);
    if (*ASSAY_LOADED)
        fprintf(stream, "loaded when needed: %s\n", ASSAY_LOADED);
}
