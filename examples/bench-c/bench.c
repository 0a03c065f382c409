/* SPDX-License-Identifier: MIT */
/* Two ways to count the words of a text.
 *
 *   cc -O2 $(pkg-config --cflags assay) bench.c -o bench && assay bench ./bench
 */
#include <assay.h>
#include <ctype.h>

static size_t count_by_isspace(const char *text)
{
    size_t count = 0;
    for (int before = ' '; *text; before = *text++)
        count += isspace((unsigned char)before) && !isspace((unsigned char)*text);
    return count;
}

static size_t count_by_table(const char *text)
{
    static const unsigned char blank[256] = {[' '] = 1, ['\t'] = 1, ['\n'] = 1};
    size_t count = 0;
    for (unsigned char before = 1; *text; text++) {
        unsigned char now = blank[(unsigned char)*text];
        count += before & (now ^ 1u);
        before = now;
    }
    return count;
}

/* n words and a blank behind each. */
static char *words(size_t n)
{
    char *text = malloc(6 * n + 1);
    for (size_t i = 0; text && i < n; i++)
        memcpy(text + 6 * i, "words ", 6);
    if (text)
        text[6 * n] = '\0';
    return text;
}

ASSAY_BENCH(isspace, ASSAY_RANGE(n, 16, 4096, 16))
{
    char *text = words((size_t)n);
    size_t count = 0;
    ASSAY_LOOP
    {
        count = count_by_isspace(text);
        ASSAY_KEEP(count);
    }
    ASSAY_CHECK(count == (size_t)n);
    ASSAY_ITEMS(n);
    ASSAY_BYTES(6 * n);
    ASSAY_COMPLEXITY(n, "n");
    free(text);
}

ASSAY_BENCH(table, ASSAY_RANGE(n, 16, 4096, 16))
{
    char *text = words((size_t)n);
    size_t count = 0;
    ASSAY_LOOP
    {
        count = count_by_table(text);
        ASSAY_KEEP(count);
    }
    ASSAY_CHECK(count == (size_t)n);
    ASSAY_ITEMS(n);
    ASSAY_BYTES(6 * n);
    ASSAY_COMPLEXITY(n, "n");
    free(text);
}

ASSAY_MAIN
