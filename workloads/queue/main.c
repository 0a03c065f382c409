/* SPDX-License-Identifier: MIT */
/* assay-queue: moves items through a queue, verifies them, and measures. */
#include "load.h"

int main(int argc, char **argv)
{
    return load_main(argc, argv, "assay-queue", load_drivers);
}
