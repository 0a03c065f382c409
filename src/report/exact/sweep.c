/* SPDX-License-Identifier: MIT */
/* See sweep.h and docs/FORMATS.md. */
#include "report/exact/sweep.h"
#include "base/json.h"
#include "base/measured.h"
#include "base/memory.h"
#include "report/exact/exact.h"

#include <stdio.h>

enum { WAYS_SHOWN = 8, FUNCTIONS_SHOWN = 12 };

/* ---- text ---- */

static void put_range(struct strbuf *out, const struct sweep_range *range)
{
    strbuf_put_grouped(out, ((double)range->least + (double)range->most) / 2, 0, 16);
}

static void put_kernel(struct strbuf *out, const struct sweep_view *v, size_t index, int width)
{
    const struct sweep_kernel *k = &v->sweep->items[index];
    struct sweep_step step;
    strbuf_printf(out, "%-*s", width, k->name);
    if (k->why) {
        strbuf_printf(out, "  %s\n", k->why);
        return;
    }
    put_range(out, &k->user);
    put_range(out, &k->kernel);
    double spread = (double)(k->kernel.most - k->kernel.least) / (double)(k->kernel.least + 1);
    strbuf_printf(out, "  ±%-*.1g", sweep_before(v->sweep, index) ? 7 : 0, spread / 2);
    if (sweep_step_find(v->sweep, index, v->threshold, &step))
        strbuf_printf(out, "  %+.2f %%", 100 * step.change);
    else if (sweep_before(v->sweep, index))
        strbuf_puts(out, "  no change");
    strbuf_putc(out, '\n');
}

static void put_way(struct strbuf *out, int64_t change, const char *name)
{
    char digits[32], text[40];
    snprintf(text, sizeof(text), "%c%s", change < 0 ? '-' : '+',
             format_thousands((uint64_t)(change < 0 ? -change : change), digits, sizeof(digits)));
    strbuf_printf(out, "%18s  %s\n", text, name);
}

static void put_ways(struct strbuf *out, const struct sweep_step *step)
{
    struct sweep_way *ways = NULL;
    size_t count = sweep_ways(step, &ways);
    int64_t rest = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t change = (int64_t)(ways[i].new - ways[i].base);
        if (i >= WAYS_SHOWN)
            rest += change;
        else
            put_way(out, change, ways[i].name);
    }
    if (count > WAYS_SHOWN)
        put_way(out, rest, "others");
    free(ways);
}

static void put_step(struct strbuf *out, const struct sweep_step *step)
{
    strbuf_printf(out,
                  "\nFrom %s to %s: %+.2f %% of the kernel's instructions\n"
                  "\n by system call and exception:\n\n",
                  step->from->name, step->to->name, 100 * step->change);
    put_ways(out, step);
    strbuf_puts(out, "\n by function of the kernel:\n\n");
    report_exact_changes(out, &step->from->functions, &step->to->functions, FUNCTIONS_SHOWN);
}

void report_sweep_text(struct strbuf *out, const struct sweep_view *v)
{
    int width = 6;
    size_t failed = 0, steps = 0;
    for (size_t i = 0; i < v->sweep->count; i++) {
        int length = (int)strlen(v->sweep->items[i].name);
        width = length > width ? length : width;
        failed += v->sweep->items[i].why != NULL;
    }
    strbuf_printf(out, "%-*s%16s%16s  %-8s  change\n", width, "kernel", "user", "in the kernel",
                  "runs");
    for (size_t i = 0; i < v->sweep->count; i++)
        put_kernel(out, v, i, width);
    for (size_t i = 0; i < v->sweep->count; i++) {
        struct sweep_step step;
        if (!sweep_step_find(v->sweep, i, v->threshold, &step))
            continue;
        put_step(out, &step);
        steps++;
    }
    if (!steps && v->sweep->count - failed > 1)
        strbuf_printf(out, "\nNo change of more than %.3g %% between versions.\n",
                      100 * v->threshold);
    strbuf_puts(out, "\n  * Instructions in an emulated machine, with one layout of memory; they "
                     "are no times.\n");
}

/* ---- JSON ---- */

static void put_range_json(struct json *j, const char *key, const struct sweep_range *range)
{
    json_object(j, key);
    json_u64(j, "least", range->least);
    json_u64(j, "most", range->most);
    json_end(j);
}

static void put_kernel_json(struct json *j, const struct sweep_kernel *k)
{
    json_object(j, NULL);
    json_string(j, "kernel", k->name);
    json_string(j, "flavour", k->flavour);
    json_string(j, "failed", k->why);
    json_u64(j, "runs", k->run_count);
    put_range_json(j, "user", &k->user);
    put_range_json(j, "kernel_instructions", &k->kernel);
    json_array(j, "ways");
    for (size_t i = 0; i < k->way_count; i++) {
        json_object(j, NULL);
        json_string(j, "name", k->ways[i].name);
        json_u64(j, "count", k->ways[i].count);
        json_u64(j, "instructions", k->ways[i].instructions);
        json_end(j);
    }
    json_end(j);
    json_array(j, "functions");
    for (size_t i = 0; i < k->functions.count; i++) {
        json_object(j, NULL);
        json_string(j, "name", k->functions.items[i].name);
        json_u64(j, "instructions", k->functions.items[i].instructions);
        json_end(j);
    }
    json_end(j);
    json_end(j);
}

void report_sweep_json(struct strbuf *out, const struct sweep_view *v)
{
    struct json j = {.out = out};
    json_object(&j, NULL);
    json_string(&j, "format", "assay-sweep-1");
    json_array(&j, "command");
    for (size_t i = 0; v->argv[i]; i++)
        json_string(&j, NULL, v->argv[i]);
    json_end(&j);
    json_double(&j, "threshold", v->threshold);
    json_array(&j, "kernels");
    for (size_t i = 0; i < v->sweep->count; i++)
        put_kernel_json(&j, &v->sweep->items[i]);
    json_end(&j);
    json_array(&j, "steps");
    for (size_t i = 0; i < v->sweep->count; i++) {
        struct sweep_step step;
        if (!sweep_step_find(v->sweep, i, v->threshold, &step))
            continue;
        json_object(&j, NULL);
        json_string(&j, "from", step.from->name);
        json_string(&j, "to", step.to->name);
        json_double(&j, "change", step.change);
        json_end(&j);
    }
    json_end(&j);
    json_end(&j);
    strbuf_putc(out, '\n');
}
