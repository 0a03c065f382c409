/* SPDX-License-Identifier: MIT */
/* What the reader of benchmarks must know before believing them: see bench.h. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"
#include "report/bench/bench.h"
#include "report/text/ab.h"

#include <string.h>

#define DISTURBED_SHARE 0.1
#define FREQUENCY_SPREAD 1.05

/* The labels of the cases that fit, a few of them. */
static size_t collect(const struct bench_view *v, struct strbuf *names,
                      bool (*fits)(const struct bench_view *, size_t, size_t))
{
    size_t count = 0;
    for (size_t i = 0; i < v->results->count; i++)
        for (size_t side = 0; side < v->results->side_count; side++) {
            if (!v->results->items[i].sample_count || !fits(v, i, side))
                continue;
            if (count++ < 5) {
                strbuf_printf(names, "%s%s", names->length ? ", " : "", v->cases->items[i].label);
                if (v->results->side_count > 1)
                    strbuf_printf(names, " (%s)", v->names[side]);
            }
        }
    if (count > 5)
        strbuf_printf(names, " and %zu more", count - 5);
    return count;
}

static bool is_empty(const struct bench_view *v, size_t index, size_t side)
{
    return bench_is_empty(&v->results->items[index], side);
}

static bool still_warms(const struct bench_view *v, size_t index, size_t side)
{
    return v->results->items[index].sides[side].still_warming;
}

static bool is_short_by_call(const struct bench_view *v, size_t index, size_t side)
{
    struct bench_figures f;
    return v->results->items[index].sides[side].by_call &&
           bench_figures(&v->results->items[index], side, &f) &&
           f.mean.value < 20 * v->results->clock_ns;
}

static bool is_disturbed(const struct bench_view *v, size_t index, size_t side)
{
    struct bench_figures f;
    return bench_figures(&v->results->items[index], side, &f) &&
           (double)f.disturbed > DISTURBED_SHARE * (double)f.count;
}

static void note_only(struct doubt_list *notes, const struct bench_view *v)
{
    for (size_t side = 0; side < 2; side++) {
        CLEANUP(strbuf_done) struct strbuf names = {0};
        for (size_t i = 0; i < v->cases->only_count[side] && i < 5; i++)
            strbuf_printf(&names, "%s%s", i ? ", " : "", v->cases->only[side][i]);
        if (v->cases->only_count[side] > 5)
            strbuf_printf(&names, " and %zu more", v->cases->only_count[side] - 5);
        if (names.length)
            report_note(notes, "one-version-only", "Only %s has %s: not compared.", v->names[side],
                        strbuf_text(&names));
    }
}

/* Rounds at different clock rates are of different machines, as it were. */
static void note_frequency(struct doubt_list *notes, const struct bench_view *v)
{
    uint32_t least = UINT32_MAX, most = 0;
    for (size_t i = 0; i < v->results->count; i++)
        for (size_t k = 0; k < v->results->items[i].sample_count; k++) {
            uint32_t khz = v->results->items[i].samples[k].khz;
            least = khz && khz < least ? khz : least;
            most = khz > most ? khz : most;
        }
    if (most && (double)most > FREQUENCY_SPREAD * (double)least)
        report_note(notes, "frequency",
                    "CPU %d ran at %.2f to %.2f GHz. Two versions are compared within rounds; "
                    "times by themselves depend on it.",
                    v->results->cpu, (double)least / 1e6, (double)most / 1e6);
}

void report_bench_notes(struct doubt_list *notes, const struct bench_view *v)
{
    CLEANUP(strbuf_done) struct strbuf empty = {0}, warm = {0}, brief = {0}, disturbed = {0};
    if (collect(v, &empty, is_empty))
        report_note(
            notes, "optimised-away",
            "No slower than an empty loop (%.2f ns): %s. The compiler has removed the work, "
            "or it is too small to be seen: pass the result to ASSAY_KEEP, and make sure "
            "that the input is not known when it compiles.",
            v->results->loop_ns, strbuf_text(&empty));
    if (collect(v, &brief, is_short_by_call))
        report_note(notes, "clock",
                    "ASSAY_LOOP_WITH times every iteration by itself, and reading the clock costs "
                    "%.0f ns, which is taken off. These take little longer: %s. Do more work in "
                    "an iteration.",
                    v->results->clock_ns, strbuf_text(&brief));
    if (collect(v, &warm, still_warms))
        report_note(notes, "warming-up",
                    "Samples were still getting faster when the warm-up ended: %s.",
                    strbuf_text(&warm));
    if (v->one_process)
        report_note(notes, "one-process",
                    "Both versions ran in one process: they share its heap, its libraries and what "
                    "C++ keeps once for a process (statics of inline functions and templates), and "
                    "one may slow or speed up the other.");
    note_frequency(notes, v);
    if (collect(v, &disturbed, is_disturbed))
        report_note(notes, "disturbed",
                    "The kernel took the CPU away during more than a tenth of the samples: %s. "
                    "Those samples are left out where a round has others.",
                    strbuf_text(&disturbed));
    note_only(notes, v);
    if (v->results->signal && v->results->round_count)
        report_note(notes, "interrupted",
                    "Interrupted by SIG%s after %zu %s: these are the values until then.",
                    signal_name(v->results->signal), v->results->round_count,
                    plural(v->results->round_count, "round", "rounds"));
    else if (v->results->signal)
        report_note(notes, "interrupted", "Interrupted by SIG%s before the end of the first round.",
                    signal_name(v->results->signal));
}
