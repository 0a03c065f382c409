/* SPDX-License-Identifier: MIT */
/* The figure beside a count: see derived.h. */
#include "counters/derived.h"
#include "counters/catalogue.h"

#include <math.h>

/* The value of the list's event of that kind in the same modes as e; NAN when not counted. */
static double partner_value(const struct event_list *list, const double *values,
                            const struct event *e, uint32_t type, uint64_t config)
{
    const struct event *partner = event_list_partner(list, e, type, config);
    return partner ? values[partner - list->items] : NAN;
}

/* CPU time counted, in nanoseconds: what rates are taken over. */
static double clock_ns(const struct event_list *list, const double *values, const struct event *e)
{
    double ns = partner_value(list, values, e, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
    if (isnan(ns))
        ns = partner_value(list, values, e, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
    return ns;
}

static struct derived share(double part, double whole, const char *text)
{
    if (!(whole > 0))
        return (struct derived){.text = ""};
    return (struct derived){.value = 100 * part / whole, .text = text, .is_percent = true};
}

static struct derived rate(double value, double ns)
{
    if (!(ns > 0))
        return (struct derived){.text = ""};
    double per_second = value / ns * 1e9;
    if (per_second >= 1e9)
        return (struct derived){.value = per_second / 1e9, .text = "G/sec"};
    if (per_second >= 1e6)
        return (struct derived){.value = per_second / 1e6, .text = "M/sec"};
    if (per_second >= 1e3)
        return (struct derived){.value = per_second / 1e3, .text = "K/sec"};
    return (struct derived){.value = per_second, .text = "/sec"};
}

/* Misses of a cache as a share of its accesses. */
static struct derived cache_misses(const struct event_list *list, const double *values,
                                   const struct event *e, double value)
{
    static const char *const texts[] = {
        [PERF_COUNT_HW_CACHE_L1D] = "of all L1-dcache accesses",
        [PERF_COUNT_HW_CACHE_L1I] = "of all L1-icache accesses",
        [PERF_COUNT_HW_CACHE_LL] = "of all LL-cache accesses",
        [PERF_COUNT_HW_CACHE_DTLB] = "of all dTLB cache accesses",
        [PERF_COUNT_HW_CACHE_ITLB] = "of all iTLB cache accesses",
        [PERF_COUNT_HW_CACHE_BPU] = "of all branch loads",
        [PERF_COUNT_HW_CACHE_NODE] = "of all node accesses",
    };
    uint64_t cache = e->attr.config & 0xff;
    double accesses =
        partner_value(list, values, e, PERF_TYPE_HW_CACHE, e->attr.config & ~(0xffULL << 16));
    if (cache >= sizeof(texts) / sizeof(texts[0]) || isnan(accesses))
        return (struct derived){.text = ""};
    return share(value, accesses, texts[cache]);
}

static struct derived hardware(const struct event_list *list, const double *values,
                               const struct event *e, double value, double ns)
{
    double cycles = partner_value(list, values, e, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
    double whole;
    switch (e->attr.config) {
    case PERF_COUNT_HW_CPU_CYCLES:
        return ns > 0 ? (struct derived){.value = value / ns, .text = "GHz"}
                      : (struct derived){.text = ""};
    case PERF_COUNT_HW_INSTRUCTIONS:
        if (cycles > 0)
            return (struct derived){.value = value / cycles, .text = "insn per cycle"};
        break;
    case PERF_COUNT_HW_BRANCH_MISSES:
        whole =
            partner_value(list, values, e, PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS);
        if (!isnan(whole))
            return share(value, whole, "of all branches");
        break;
    case PERF_COUNT_HW_CACHE_MISSES:
        whole = partner_value(list, values, e, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES);
        if (!isnan(whole))
            return share(value, whole, "of all cache refs");
        break;
    case PERF_COUNT_HW_STALLED_CYCLES_FRONTEND:
        if (cycles > 0)
            return share(value, cycles, "frontend cycles idle");
        break;
    case PERF_COUNT_HW_STALLED_CYCLES_BACKEND:
        if (cycles > 0)
            return share(value, cycles, "backend cycles idle");
        break;
    default:
        break;
    }
    return rate(value, ns);
}

struct derived derived_figure(const struct event_list *list, const double *values, size_t index,
                              double wall_ns)
{
    const struct event *e = &list->items[index];
    double value = values[index], ns = clock_ns(list, values, e);
    if (isnan(value))
        return (struct derived){.text = ""};
    bool is_clock =
        e->attr.type == PERF_TYPE_SOFTWARE &&
        (e->attr.config == PERF_COUNT_SW_TASK_CLOCK || e->attr.config == PERF_COUNT_SW_CPU_CLOCK);
    if (is_clock)
        return wall_ns > 0 ? (struct derived){.value = value / wall_ns, .text = "CPUs utilized"}
                           : (struct derived){.text = ""};
    if (e->attr.type == PERF_TYPE_HARDWARE)
        return hardware(list, values, e, value, ns);
    if (e->attr.type == PERF_TYPE_HW_CACHE && (e->attr.config >> 16) == 1) {
        struct derived figure = cache_misses(list, values, e, value);
        if (*figure.text)
            return figure;
    }
    /* An event with a unit of its own (joules, say) has no rate in counts. */
    if (*e->unit)
        return (struct derived){.text = ""};
    return rate(value, ns);
}
