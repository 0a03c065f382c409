/* SPDX-License-Identifier: MIT */
/*
 * What a profile cannot tell.  Nine samples look like a table of shares with two decimals; call
 * chains of code without frame pointers look like call chains.  These notes say so, with the
 * remedy.
 */
#include "base/memory.h"
#include "report/profile/profile_report.h"

#include <math.h>
#include <stdio.h>

#define FEW_SAMPLES 200.0
#define BROKEN_PERCENT 1.0  /* from here on broken chains are worth a word */
#define ENDING_PERCENT 10.0 /* and chains that end early */
#define DIAGNOSTIC_PERCENT 0.5
#define DIAGNOSTICS_SHOWN 5

void notes_done(struct notes *notes)
{
    for (size_t i = 0; i < notes->count; i++)
        free(notes->items[i]);
    free(notes->items);
    *notes = (struct notes){0};
}

#define NOTE(notes, ...) \
    (ARRAY_PUSH((notes)->items, (notes)->count, (notes)->capacity) = memory_printf(__VA_ARGS__))

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void note_losses(const struct profile *p, struct notes *notes)
{
    const struct perfdata_losses *l = &p->losses;
    uint64_t lost = perfdata_lost(l);
    char number[32];
    if (lost)
        NOTE(notes,
             "%s records were lost (%.2f %% of all): the kernel's buffer was full; lower the "
             "frequency (-F) or enlarge the buffer (assay record --buffer, perf record -m).",
             format_thousands(lost, number, sizeof(number)), percent(lost, lost + l->samples));
    if (l->throttled)
        NOTE(notes,
             "The kernel throttled sampling %s times: shares of the busiest moments are too low; "
             "lower the frequency or raise kernel.perf_event_max_sample_rate.",
             format_thousands(l->throttled, number, sizeof(number)));
    if (l->undecompressed)
        NOTE(notes, "%s compressed blocks could not be unpacked; their samples are missing.",
             format_thousands(l->undecompressed, number, sizeof(number)));
    if (l->malformed)
        NOTE(notes, "%s damaged records were skipped.",
             format_thousands(l->malformed, number, sizeof(number)));
    if (l->unmatched)
        NOTE(notes, "%s records name an event that the file does not contain; they were skipped.",
             format_thousands(l->unmatched, number, sizeof(number)));
}

/* Samples whose leaf lies in each module, by module_index. */
static uint64_t *samples_of_modules(const struct profile *p, uint64_t *ret_total)
{
    uint64_t *counts = memory_zalloc(symbols_module_count(p->symbols) + 1, sizeof(*counts));
    *ret_total = 0;
    for (size_t i = 0; i < p->stacks.cell_count; i++) {
        const struct stack_cell *c = &p->stacks.cells[i];
        *ret_total += c->samples;
        if (c->node == STACK_EMPTY)
            continue;
        const struct module *m = p->stacks.locations[p->stacks.nodes[c->node].location].module;
        if (m)
            counts[module_index(m)] += c->samples;
    }
    return counts;
}

static void note_diagnostics(const struct profile *p, bool verbose, struct notes *notes)
{
    uint64_t total;
    CLEANUP(memory_freep) uint64_t *counts = samples_of_modules(p, &total);
    size_t count, shown = 0, hidden = 0;
    const struct diagnostic *list = symbols_diagnostics(p->symbols, &count);
    for (size_t i = 0; i < count; i++) {
        double share = list[i].module ? percent(counts[module_index(list[i].module)], total) : 100;
        if (!verbose && (share < DIAGNOSTIC_PERCENT || shown >= DIAGNOSTICS_SHOWN)) {
            hidden++;
            continue;
        }
        shown++;
        if (list[i].module)
            NOTE(notes, "%s (%.1f %% of the samples)", list[i].text, share);
        else
            NOTE(notes, "%s", list[i].text);
    }
    if (hidden && shown)
        NOTE(notes, "--verbose shows %zu more %s on symbols.", hidden,
             plural(hidden, "note", "notes"));
}

void profile_file_notes(const struct profile *p, bool verbose, struct notes *notes)
{
    if (p->trouble)
        NOTE(notes, "%s", p->trouble);
    note_losses(p, notes);
    note_diagnostics(p, verbose, notes);
}

static void note_few_samples(const struct profile_event *e, struct notes *notes)
{
    double effective = profile_effective_samples(e);
    double samples = (double)e->samples < effective ? (double)e->samples : effective;
    if (!e->samples || samples >= FEW_SAMPLES || e->is_off_cpu)
        return;
    double low, high, unseen = 1 - pow(0.05, 1 / samples);
    share_interval(0.5, samples, &low, &high);
    char worth[64] = "";
    if (samples < 0.8 * (double)e->samples)
        snprintf(worth, sizeof(worth), ", worth %.1f samples of equal weight", samples);
    NOTE(notes,
         "Only %llu sample%s%s: one is %.*f %% of them. A share of 50 %% could be anything from "
         "%.0f %% to %.0f %% (95 %% interval), and what takes less than %.0f %% of the time may "
         "not appear at all. Record for longer, repeat the work, or sample faster (-F).",
         (unsigned long long)e->samples, e->samples == 1 ? "" : "s", worth,
         e->samples < 100 ? 0 : 1, 100.0 / (double)e->samples, 100 * low, 100 * high, 100 * unseen);
}

static void note_chains(const struct profile *p, struct notes *notes)
{
    const struct profile_chains *c = &p->chains;
    char number[32];
    double broken = percent(c->broken, c->samples), ending = percent(c->ending, c->samples);
    if (!c->unwound && broken >= BROKEN_PERCENT)
        NOTE(notes,
             "Broken call chains: %.1f %% of the samples with a call chain (%s) have a caller "
             "outside any code: something that was not a frame pointer was followed. Callers above "
             "that point are not real. Record with DWARF call graphs (assay record -g dwarf, perf "
             "record --call-graph dwarf) or build with -fno-omit-frame-pointer.",
             broken, format_thousands(c->broken, number, sizeof(number)));
    if (!c->unwound && ending >= ENDING_PERCENT)
        NOTE(notes,
             "Call chains that end early: %.1f %% of the samples (%s) have a chain whose outermost "
             "function is not where a thread starts; its callers are missing, most likely because "
             "there are no frame pointers. DWARF call graphs (-g dwarf) find them.",
             ending, format_thousands(c->ending, number, sizeof(number)));
    if (percent(c->stack_cut, c->unwound) >= BROKEN_PERCENT)
        NOTE(notes,
             "Truncated call chains: %.1f %% of the stacks (%s) were deeper than the %llu bytes "
             "that were copied; copy more with -g dwarf,%llu.",
             percent(c->stack_cut, c->unwound),
             format_thousands(c->stack_cut, number, sizeof(number)),
             (unsigned long long)c->stack_bytes,
             (unsigned long long)(c->stack_bytes >= 32768 ? 65528 : 2 * c->stack_bytes));
    if (percent(c->no_rules, c->unwound) >= BROKEN_PERCENT)
        NOTE(notes,
             "Broken call chains: %.1f %% of the stacks (%s) could not be unwound to their start: "
             "the code has no unwinding rules, or its file is missing.",
             percent(c->no_rules, c->unwound),
             format_thousands(c->no_rules, number, sizeof(number)));
}

/* What profile_leave_out_idle took away. */
static void note_idle(const struct profile *p, const struct profile_event *e, struct notes *notes)
{
    const struct profile_idle *children = &p->idle.children, *workers = &p->idle.workers;
    uint64_t left_out = children->ns + workers->ns, all = e->weight + left_out;
    if (!left_out || !str_eq(e->name, "off-cpu"))
        return;
    NOTE(notes,
         "Left out are waits of a process for its own children and threads (%.2f s, %.1f %%) and "
         "of threads that have nothing to do (%.2f s, %.1f %%); --idle shows them.",
         (double)children->ns / 1e9, percent(children->ns, all), (double)workers->ns / 1e9,
         percent(workers->ns, all));
}

void profile_event_notes(const struct profile *p, uint32_t event, struct notes *notes)
{
    const struct profile_event *e = &p->events[event];
    note_few_samples(e, notes);
    note_idle(p, e, notes);
    if (e->has_callers)
        note_chains(p, notes);
}
