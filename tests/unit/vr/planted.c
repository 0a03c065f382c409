/* SPDX-License-Identifier: MIT */
/* Beside a unit test that is built with the planted bugs: VR_BUG names the one to run with. */
#include "vr/core/planted.h"

#include <stdlib.h>
#include <string.h>

__attribute__((constructor)) static void plant(void)
{
    const char *bug = getenv("VR_BUG");
    for (int i = 0; bug && i < PLANTED_COUNT; i++)
        if (strcmp(bug, vr_planted_names[i]) == 0)
            vr_planted = (enum vr_planted)i;
}
