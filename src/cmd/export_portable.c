/* SPDX-License-Identifier: MIT */
/* A recording with its names: see export_portable.h. */
#include "cmd/export_portable.h"
#include "profile/export/portable.h"

#include <errno.h>
#include <stdio.h>

static int convert(struct profile_cli *cli, const char *input, struct portable *portable,
                   struct profile_options *needs, struct error *err)
{
    struct profile *profile;
    int r = profile_cli_load(cli, input, needs, &profile, err);
    if (r < 0)
        return r;
    r = profile->given
            ? error_set(err, -EINVAL, "%s has its names already: it can be read anywhere as it is",
                        input)
            : portable_finish(portable, profile, err);
    profile_free(profile);
    if (r == 0 && portable->unclear)
        fprintf(stderr,
                "assay: %llu %s left out: their stacks stand behind fields that assay does not "
                "read\n",
                (unsigned long long)portable->unclear,
                plural(portable->unclear, "sample was", "samples were"));
    return r;
}

int export_portable(struct profile_cli *cli, const char *input, const char *output,
                    struct profile_options *needs, struct error *err)
{
    struct portable portable;
    int r = portable_start(&portable, output, needs, err);
    if (r < 0)
        return r;
    r = convert(cli, input, &portable, needs, err);
    portable_done(&portable);
    return r;
}
