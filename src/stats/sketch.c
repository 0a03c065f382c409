/* SPDX-License-Identifier: MIT */
/* See sketch.h. */
#include "stats/sketch.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

static size_t bin_of(double value, double low, double high, bool by_logs, size_t bin_count)
{
    double share =
        by_logs ? log(fmax(value, low) / low) / log(high / low) : (value - low) / (high - low);
    if (!(share > 0))
        return 0;
    size_t bin = (size_t)(fmin(share, 1) * (double)bin_count);
    return bin < bin_count ? bin : bin_count - 1;
}

void sketch_levels(const double *values, size_t count, double low, double high, size_t bin_count,
                   uint8_t *ret_levels)
{
    size_t counts[SKETCH_BINS_MAX] = {0}, most = 0;
    assert(bin_count > 0 && bin_count <= SKETCH_BINS_MAX);
    bool by_logs = low > 0 && high >= 4 * low;
    for (size_t i = 0; i < count; i++) {
        size_t bin = high > low ? bin_of(values[i], low, high, by_logs, bin_count) : bin_count / 2;
        counts[bin]++;
        most = counts[bin] > most ? counts[bin] : most;
    }
    for (size_t i = 0; i < bin_count; i++)
        ret_levels[i] = (uint8_t)(counts[i] ? (counts[i] * SKETCH_LEVELS + most - 1) / most : 0);
}

void sketch_text(const uint8_t *levels, size_t bin_count, char *out, size_t size)
{
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    size_t length = 0;
    for (size_t i = 0; i < bin_count; i++) {
        const char *block = blocks[levels[i] <= SKETCH_LEVELS ? levels[i] : SKETCH_LEVELS];
        size_t bytes = strlen(block);
        if (length + bytes >= size)
            break;
        memcpy(out + length, block, bytes);
        length += bytes;
    }
    if (size)
        out[length] = 0;
}
