/* SPDX-License-Identifier: MIT */
/* A library that is loaded at run time: see loads.c. */

static __attribute__((noinline)) unsigned long plugin_inner(unsigned long value)
{
    for (int i = 0; i < 1000; i++)
        value = (value ^ value >> 29) * 0x9e3779b97f4a7c15ul;
    return value;
}

unsigned long plugin_work(unsigned long value);

unsigned long plugin_work(unsigned long value)
{
    return plugin_inner(value) + 1;
}
