/* SPDX-License-Identifier: MIT */
/*
 * A bill of the traced runs is not yet one of the command: tracing takes time, and the machine may
 * have been busier in one kind of run than in the other.  Three things are done about it, in order:
 *
 *  1. Lines that ran are brought to the CPU time that the runs without tracing took.  The clocks
 *     of CPU time know what tracing costs, whatever else the machine did.
 *  2. Where the lines still add up to more than the wall time of the untraced runs, the rest is
 *     taken from the time in which the command was ready without a CPU, which is the machine's
 *     doing, and only then from the others alike, but never from sleeping: a timer ends at its
 *     time, traced or not.
 *  3. Where they add up to less, nobody saw what the untraced runs did in that time: it is
 *     unattributed.
 *
 * A difference of less than 3 % after the first step is left alone: runs vary that much.
 */
#include "base/memory.h"
#include "bill/bill.h"

#include <math.h>

#define TOLERANCE 0.03
#define CPU_SCALE_LEAST 0.1

static double mean_of(const struct bill *b, const struct bill_line *l)
{
    double sum = 0;
    for (size_t r = 0; r < b->run_count; r++)
        sum += l->ns[r];
    return sum / (double)b->run_count;
}

static double mean_sum(const struct bill *b)
{
    double sum = 0;
    for (size_t l = 0; l < b->line_count; l++)
        sum += mean_of(b, &b->lines[l]);
    return sum;
}

static void scale_line(const struct bill *b, struct bill_line *l, double factor)
{
    for (size_t r = 0; r < b->run_count; r++)
        l->ns[r] *= factor;
}

static bool is_cpu(const struct bill_line *l)
{
    return bill_part_is_cpu(l->part);
}

static bool is_ready(const struct bill_line *l)
{
    return l->part == BILL_READY;
}

static bool is_elastic(const struct bill_line *l)
{
    return l->part != BILL_SLEEP;
}

static void scale_lines(struct bill *b, double factor, bool (*counts)(const struct bill_line *))
{
    for (size_t l = 0; l < b->line_count; l++)
        if (counts(&b->lines[l]))
            scale_line(b, &b->lines[l], factor);
}

static double sum_of(const struct bill *b, bool (*counts)(const struct bill_line *))
{
    double sum = 0;
    for (size_t l = 0; l < b->line_count; l++)
        sum += counts(&b->lines[l]) ? mean_of(b, &b->lines[l]) : 0;
    return sum;
}

/* How much of the CPU time of the traced runs the command takes without tracing; 1 where that is
 * not known. */
static double cpu_share(const struct bill *b)
{
    double traced = 0, untraced = b->wall_count ? b->cpu_ns / (double)b->wall_count : 0;
    for (size_t r = 0; r < b->run_count; r++)
        traced += b->runs[r].cpu_ns / (double)b->run_count;
    return traced > 0 && untraced > 0 ? untraced / traced : 1;
}

/* What ran on the path in the traced runs, before anything was taken out. */
static double raw_cpu(const struct bill *b)
{
    double sum = 0;
    for (size_t i = 0; i < b->item_count; i++)
        for (size_t r = 0; r < b->run_count && bill_part_is_cpu(b->items[i].part); r++)
            sum += b->items[i].ns[r] / (double)b->run_count;
    return sum;
}

static void scale_cpu(struct bill *b)
{
    double left = sum_of(b, is_cpu), raw = raw_cpu(b), share = cpu_share(b);
    if (share != 1 && left > 0 && raw > 0)
        scale_lines(b, fmax(share, CPU_SCALE_LEAST) * raw / left, is_cpu);
    b->cpu_scale = raw > 0 ? sum_of(b, is_cpu) / raw : 1;
}

static void take_out(struct bill *b, double surplus)
{
    double ready = sum_of(b, is_ready), from_ready = fmin(surplus, ready);
    if (from_ready > 0)
        scale_lines(b, (ready - from_ready) / ready, is_ready);
    double rest = surplus - from_ready, elastic = sum_of(b, is_elastic);
    if (rest > 0 && elastic > 0)
        scale_lines(b, fmax((elastic - rest) / elastic, 0), is_elastic);
}

static void add_unseen(struct bill *b, double ns)
{
    struct bill_line line = {.part = BILL_UNKNOWN,
                             .who = "the command",
                             .what = "not seen in the traced runs, which were shorter",
                             .ns = memory_zalloc(b->run_count + 1, sizeof(double))};
    for (size_t r = 0; r < b->run_count; r++)
        line.ns[r] = ns;
    ARRAY_PUSH(b->lines, b->line_count, b->line_capacity) = line;
    b->unseen_ns = ns;
}

void bill_calibrate(struct bill *b)
{
    b->cpu_scale = 1;
    if (!b->run_count || !b->wall_count)
        return;
    scale_cpu(b);
    double surplus = mean_sum(b) - b->wall.mean;
    if (surplus > TOLERANCE * b->wall.mean)
        take_out(b, surplus);
    else if (-surplus > TOLERANCE * b->wall.mean)
        add_unseen(b, -surplus);
}
