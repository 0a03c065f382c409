/* SPDX-License-Identifier: MIT */
/* The worker of assay.h for Python's ctypes, which cannot include a header. */
#include <assay.h>

int serve(const struct assay_registry *registry, int argc, char **argv);

int serve(const struct assay_registry *registry, int argc, char **argv)
{
    return assay_main_with(registry, argc, argv);
}
