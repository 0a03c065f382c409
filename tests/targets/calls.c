/* SPDX-License-Identifier: MIT */
/* calls N: calls `marked` N times; each call writes `watched` once.  Linked at a fixed address, so
 * that a breakpoint can be placed by its symbol table. */
#include <stdlib.h>

volatile long watched;

__attribute__((noinline)) void marked(long value);

void marked(long value)
{
    watched = value;
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 0;
    for (long i = 0; i < count; i++)
        marked(i);
    return 0;
}
