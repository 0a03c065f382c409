/* SPDX-License-Identifier: MIT */
/* Experiments for programs: JSON and CSV. */
#include "base/json.h"
#include "base/memory.h"
#include "report/text/experiment.h"
#include "report/text/nodes.h"

#include <math.h>

static const char *better_name(enum metric_better better)
{
    return better == METRIC_HIGHER ? "higher" : better == METRIC_LOWER ? "lower" : "neither";
}

static void put_experiment(struct json *j, const struct store_experiment *e)
{
    json_i64(j, "id", e->id);
    json_string(j, "uuid", e->uuid);
    json_string(j, "name", e->name);
    json_string(j, "question", e->question);
    json_string(j, "state", e->state);
    json_bool(j, "alive", e->alive);
    json_string(j, "selection", e->selection);
    json_string(j, "baseline", e->baseline);
    json_string(j, "commit", e->git_commit);
    json_string(j, "spec", e->spec_path);
    json_string(j, "spec_hash", e->spec_hash);
    json_u64(j, "seed", e->seed);
    json_u64(j, "started_at_ns", e->started_at_ns);
    json_u64(j, "ended_at_ns", e->ended_at_ns);
    json_u64(j, "cells_count", e->cell_count);
    json_u64(j, "runs_count", e->run_count);
    json_u64(j, "failed_count", e->failed_count);
    json_u64(j, "disturbed_count", e->disturbed_count);
}

void report_list_json(struct strbuf *out, const struct store_list *list)
{
    struct json j = {.out = out};
    json_object(&j, NULL);
    json_array(&j, "experiments");
    for (size_t i = 0; i < list->count; i++) {
        json_object(&j, NULL);
        put_experiment(&j, &list->items[i]);
        json_end(&j);
    }
    json_end(&j);
    json_end(&j);
}

static void put_cell(struct json *j, const struct dataset *d, size_t cell)
{
    const struct dataset_cell *c = &d->cells[cell];
    json_object(j, NULL);
    json_string(j, "label", c->label);
    json_object(j, "factors");
    for (size_t f = 0; f < d->factor_count; f++)
        json_string(j, d->factors[f], c->levels[f]);
    json_end(j);
    json_string(j, "command", c->command);
    json_string(j, "build_id", c->build_id[0] ? c->build_id : NULL);
    json_u64(j, "runs", c->run_count);
    json_u64(j, "failed", c->failed_count);
    json_u64(j, "disturbed", c->disturbed_count);
    json_object(j, "values");
    for (size_t m = 0; m < d->metric_count; m++) {
        struct dataset_column column = dataset_column(d, m, cell);
        if (!column.count)
            continue;
        json_array(j, d->metrics[m].name);
        for (size_t i = 0; i < column.count; i++) {
            json_array(j, NULL);
            json_u64(j, NULL, column.rounds[i]);
            json_double(j, NULL, column.values[i]);
            json_end(j);
        }
        json_end(j);
    }
    json_end(j);
    json_end(j);
}

void report_experiment_json(struct strbuf *out, const struct dataset *d)
{
    struct json j = {.out = out};
    json_object(&j, NULL);
    put_experiment(&j, &d->experiment);
    report_nodes_json(&j, d);
    json_array(&j, "metrics");
    for (size_t m = 0; m < d->metric_count; m++) {
        json_object(&j, NULL);
        json_string(&j, "name", d->metrics[m].name);
        json_string(&j, "unit", d->metrics[m].unit);
        json_string(&j, "better", better_name(d->metrics[m].facts.better));
        json_string(&j, "kind", d->metrics[m].kind);
        json_end(&j);
    }
    json_end(&j);
    json_array(&j, "cells");
    for (size_t c = 0; c < d->cell_count; c++)
        put_cell(&j, d, c);
    json_end(&j);
    json_end(&j);
}

static void put_levels(struct strbuf *out, const struct dataset *d, size_t cell)
{
    for (size_t f = 0; f < d->factor_count; f++) {
        strbuf_put_csv(out, cell == DATASET_NONE ? d->factors[f] : d->cells[cell].levels[f]);
        strbuf_putc(out, ',');
    }
}

/* The next run of a cell in the columns, from the positions on: its round, UINT32_MAX for none. */
static uint32_t next_round(const struct dataset *d, size_t cell, const size_t *positions)
{
    uint32_t next = UINT32_MAX;
    for (size_t m = 0; m < d->metric_count; m++) {
        struct dataset_column column = dataset_column(d, m, cell);
        if (positions[m] < column.count && column.rounds[positions[m]] < next)
            next = column.rounds[positions[m]];
    }
    return next;
}

void report_experiment_csv_wide(struct strbuf *out, const struct dataset *d)
{
    CLEANUP(memory_freep)
    size_t *positions = memory_zalloc(d->metric_count + 1, sizeof(*positions));
    put_levels(out, d, DATASET_NONE);
    strbuf_puts(out, "round");
    for (size_t m = 0; m < d->metric_count; m++) {
        const struct store_metric *metric = &d->metrics[m];
        bool has_unit = metric->unit && metric->unit[0];
        CLEANUP(memory_freep)
        char *name = memory_printf("%s%s%s%s", metric->name, has_unit ? " (" : "",
                                   has_unit ? metric->unit : "", has_unit ? ")" : "");
        strbuf_putc(out, ',');
        strbuf_put_csv(out, name);
    }
    strbuf_putc(out, '\n');
    for (size_t c = 0; c < d->cell_count; c++) {
        memset(positions, 0, d->metric_count * sizeof(*positions));
        for (uint32_t round; (round = next_round(d, c, positions)) != UINT32_MAX;) {
            put_levels(out, d, c);
            strbuf_printf(out, "%u", round);
            for (size_t m = 0; m < d->metric_count; m++) {
                struct dataset_column column = dataset_column(d, m, c);
                bool there = positions[m] < column.count && column.rounds[positions[m]] == round;
                strbuf_putc(out, ',');
                if (there)
                    strbuf_printf(out, "%.17g", column.values[positions[m]++]);
            }
            strbuf_putc(out, '\n');
        }
    }
}

void report_experiment_csv(struct strbuf *out, const struct dataset *d)
{
    put_levels(out, d, DATASET_NONE);
    strbuf_puts(out, "round,metric,unit,value\n");
    for (size_t c = 0; c < d->cell_count; c++)
        for (size_t m = 0; m < d->metric_count; m++) {
            struct dataset_column column = dataset_column(d, m, c);
            for (size_t i = 0; i < column.count; i++) {
                put_levels(out, d, c);
                strbuf_printf(out, "%u,", column.rounds[i]);
                strbuf_put_csv(out, d->metrics[m].name);
                strbuf_putc(out, ',');
                strbuf_put_csv(out, d->metrics[m].unit);
                strbuf_printf(out, ",%.17g\n", column.values[i]);
            }
        }
}
