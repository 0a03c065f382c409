/* SPDX-License-Identifier: MIT */
/* An assay that was built without libyaml: reading a spec says so. */
#include "spec/tree.h"

#include <errno.h>

int tree_parse(const char *file, const char *text, size_t length, struct arena *arena,
               struct tree *ret_root, struct error *err)
{
    (void)text, (void)length, (void)arena, (void)ret_root;
    return error_set(err, -ENOTSUP,
                     "%s: assay was built without libyaml; install libyaml-dev and rebuild it",
                     file);
}
