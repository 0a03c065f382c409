/* SPDX-License-Identifier: MIT */
/* spin N: a loop of N million rounds, some milliseconds each on most machines. */
#include <stdlib.h>

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) * 1000000 : 0;
    for (volatile long i = 0; i < count; i++)
        ;
    return 0;
}
