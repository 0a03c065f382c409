/* SPDX-License-Identifier: MIT */
/* What a gate found, as Markdown and JSON: see gate.h. */
#include "report/text/gate.h"
#include "base/json.h"
#include "base/measured.h"
#include "base/memory.h"
#include "exact/model.h"

#include <time.h>

enum { FUNCTIONS_SHOWN = 12 };

static const char *result_name(enum gate_result result)
{
    return result == GATE_PASS ? "pass" : result == GATE_REGRESSION ? "regression" : "inconclusive";
}

static const char *by_name(enum gate_by by)
{
    static const char *const names[] = {"median and the mean", "median", "mean", "95th percentile"};
    return names[by];
}

void gate_put_interval(struct strbuf *out, const struct comparison *c, const char *unit)
{
    if (c->scale == COMPARISON_RATIO) {
        strbuf_printf(out, "%+.2f %% [%+.2f, %+.2f]", 100 * (c->estimate - 1), 100 * (c->low - 1),
                      100 * (c->high - 1));
        return;
    }
    strbuf_put_measured(out, c->estimate, unit);
    strbuf_puts(out, " [");
    strbuf_put_measured(out, c->low, unit);
    strbuf_puts(out, ", ");
    strbuf_put_measured(out, c->high, unit);
    strbuf_puts(out, "]");
}

/* "New (1a2b3c, with uncommitted changes)" */
static void put_new(struct strbuf *out, const struct gate_result_set *set)
{
    strbuf_puts(out, "New");
    if (set->new_commit)
        strbuf_printf(out, " (%.12s%s)", set->new_commit,
                      set->is_dirty ? ", with uncommitted changes" : "");
}

static void put_stored(struct strbuf *out, const struct gate_result_set *set)
{
    char day[32] = "";
    time_t seconds = (time_t)(set->stored_at_ns / 1000000000);
    struct tm tm;
    if (seconds && gmtime_r(&seconds, &tm))
        strftime(day, sizeof(day), "%Y-%m-%d %H:%M UTC", &tm);
    strbuf_printf(out, "the stored result %s", set->stored);
    bool has_commit = set->stored_commit && *set->stored_commit;
    if (has_commit || *day)
        strbuf_printf(out, " (%.18s%s%s)", has_commit ? set->stored_commit : "",
                      has_commit && *day ? ", " : "", day);
}

static void put_sides(struct strbuf *out, const struct gate_result_set *set)
{
    put_new(out, set);
    strbuf_puts(out, " against ");
    if (set->stored)
        put_stored(out, set);
    else
        strbuf_printf(out, "base %.12s (%s)", set->base_commit, set->base_ref);
    if (set->max_time_regression > 0)
        strbuf_printf(
            out,
            ". Limits: exact counts may get at most %.3g %% worse, and the %s of the time at "
            "most %.3g %%.\n\n",
            100 * set->max_regression, by_name(set->by), 100 * set->max_time_regression);
    else
        strbuf_printf(out, ". Limit: the %s may get at most %.3g %% worse.\n\n", by_name(set->by),
                      100 * set->max_regression);
    if (!set->stored && !set->is_dirty && str_eq(set->base_commit, set->new_commit))
        strbuf_puts(out, "Both are the same commit, and the working tree has no changes of tracked "
                         "files: there is nothing to compare.\n\n");
}

static void put_row(struct strbuf *out, const struct gate_row *row)
{
    const struct comparison *c = &row->change.comparison;
    strbuf_printf(out, "| %s%s%s | ", row->metric, row->cell[0] ? ", " : "", row->cell);
    strbuf_put_measured(out, row->change.base.median, row->unit);
    strbuf_puts(out, " | ");
    strbuf_put_measured(out, row->change.new.median, row->unit);
    strbuf_puts(out, " | ");
    gate_put_interval(out, c, row->unit);
    strbuf_puts(out, " | ");
    if (row->has_control)
        gate_put_interval(out, &row->control.comparison, row->unit);
    else
        strbuf_puts(out, "not measured");
    strbuf_printf(out, "%s | ", row->control_failed ? " (differs)" : "");
    if (c->paired)
        strbuf_printf(out, "%zu", c->base_count);
    else
        strbuf_printf(out, "%zu, %zu", c->base_count, c->new_count);
    strbuf_printf(out, " | %s |\n", row->set_aside ? "set aside" : result_name(row->result));
}

/* What the table cannot show. */
static void put_notes(struct strbuf *out, const struct gate_result_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct gate_row *row = &set->rows[i];
        bool few = set->by == GATE_BY_P95 && row->change.comparison.too_few;
        if (set->by == GATE_BY_BOTH && row->change.tails.beyond && !row->set_aside)
            strbuf_printf(out, "\n%s%s%s: %s.\n", row->metric, row->cell[0] ? ", " : "", row->cell,
                          row->change.verdict.text);
        if (few)
            strbuf_printf(out,
                          "\n%s: the 95th percentile takes 60 rounds or more; there were %zu.\n",
                          row->metric, row->change.comparison.base_count);
    }
    if (set->count && str_eq(set->rows[0].metric, EXACT_MODEL_CYCLES))
        strbuf_puts(out, "\nNote: " EXACT_MODEL_WORDS ".\n");
    if (set->by_cpu)
        strbuf_puts(out, "\nWall time cannot tell on this machine. The command runs in one thread "
                         "and never waits, so its CPU time was judged instead.\n");
}

static void put_failures(struct strbuf *out, const struct gate_result_set *set)
{
    strbuf_puts(out, "\n> [!CAUTION]\n> Runs that failed, and are left out:");
    for (size_t i = 0; i < set->failure_count; i++) {
        const struct gate_failure *f = &set->failures[i];
        strbuf_printf(out, "%s %s (%zu of %zu %s)", i ? "," : "", f->cell, f->failed_count,
                      f->run_count, plural(f->run_count, "run", "runs"));
    }
    strbuf_puts(out, ". Nothing is known about what they would have measured.\n");
}

/* In code spans, which end at a backtick and at the end of a line. */
static void put_code(struct strbuf *out, const char *text)
{
    strbuf_putc(out, '`');
    for (; *text; text++)
        strbuf_putc(out, *text == '`' ? '\'' : (unsigned char)*text < ' ' ? ' ' : *text);
    strbuf_putc(out, '`');
}

static void put_commands(struct strbuf *out, const struct gate_result_set *set)
{
    strbuf_puts(out, "\n> [!WARNING]\n> The command is not that of the stored result: ");
    put_code(out, set->new_command);
    strbuf_puts(out, " now, ");
    put_code(out, set->stored_command);
    strbuf_puts(out, " then. The verdict means something only if both do the same work.\n");
}

static void put_warnings(struct strbuf *out, const struct gate_result_set *set)
{
    if (set->failure_count)
        put_failures(out, set);
    if (set->stored)
        strbuf_puts(
            out, "\n> [!WARNING]\n> The stored result was not measured in the same rounds: what "
                 "drifted since (the machine, its load, temperature, kernel, libraries) counts as "
                 "a difference, and there is no control that would show it. `--base REF` "
                 "measures both together.\n");
    if (set->stored_command)
        put_commands(out, set);
    if (set->control_failed)
        strbuf_puts(out, "\n> [!WARNING]\n> Not checked: the same commit, run twice in the same "
                         "rounds, gave different results. This machine is too noisy to fail "
                         "anyone.\n");
    else if (set->result == GATE_INCONCLUSIVE)
        strbuf_puts(out, "\n> [!WARNING]\n> Not checked: whether the change is within the limit is "
                         "not known. This is not a pass.\n");
}

/* The functions that account for a change; their lines add up to that of the whole. */
static void put_functions(struct strbuf *out, const struct gate_row *row)
{
    const struct exact_functions *base = &row->functions[0], *new = &row->functions[1];
    if (!base->count || !new->count)
        return;
    CLEANUP(exact_changes_done) struct exact_changes c;
    exact_changes_find(&c, base, new);
    int64_t whole = (int64_t)(new->instructions - base->instructions), rest = whole;
    strbuf_printf(out,
                  "\nInstructions by function%s%s:\n\n| function | base | new | change |\n"
                  "|---|---:|---:|---:|\n",
                  *row->cell ? ", " : "", row->cell);
    for (size_t i = 0; i < c.count && i < FUNCTIONS_SHOWN; i++) {
        int64_t change = (int64_t)(c.items[i].new - c.items[i].base);
        rest -= change;
        strbuf_puts(out, "| `");
        strbuf_put_safe(out, c.items[i].name, strlen(c.items[i].name), 80);
        strbuf_printf(out, "` | %llu | %llu | %+lld |\n", (unsigned long long)c.items[i].base,
                      (unsigned long long)c.items[i].new, (long long)change);
    }
    if (c.count > FUNCTIONS_SHOWN)
        strbuf_printf(out, "| %zu %s | | | %+lld |\n", c.count - FUNCTIONS_SHOWN,
                      plural(c.count - FUNCTIONS_SHOWN, "other", "others"), (long long)rest);
    strbuf_printf(out, "| in all | %llu | %llu | %+lld |\n", (unsigned long long)base->instructions,
                  (unsigned long long)new->instructions, (long long)whole);
}

void gate_write_markdown(struct strbuf *out, const struct gate_result_set *set)
{
    bool failed = set->has_failed && (set->result != GATE_REGRESSION || set->control_failed);
    const char *head =
        failed                     ? "failed: some runs ended with an error"
        : set->control_failed      ? "inconclusive: the base differs from itself on this machine"
        : set->result == GATE_PASS ? "pass"
        : set->result == GATE_REGRESSION ? "regression"
                                         : "inconclusive: more rounds would be needed to tell";
    strbuf_printf(out, "### assay gate: %s\n\n", head);
    put_sides(out, set);
    strbuf_printf(
        out,
        "| metric | base, median | new, median | change%s (95 %%) | base against itself | "
        "rounds | |\n|---|---:|---:|---:|---:|---:|---|\n",
        set->by == GATE_BY_MEAN  ? " of the mean"
        : set->by == GATE_BY_P95 ? " of the 95th percentile"
                                 : "");
    for (size_t i = 0; i < set->count; i++)
        put_row(out, &set->rows[i]);
    put_notes(out, set);
    for (size_t i = 0; i < set->count; i++)
        put_functions(out, &set->rows[i]);
    put_warnings(out, set);
}

static void put_comparison(struct json *j, const char *key, const struct comparison *c)
{
    json_object(j, key);
    json_string(j, "scale", c->scale == COMPARISON_RATIO ? "ratio" : "difference");
    json_double(j, "estimate", c->estimate);
    json_double(j, "low", c->low);
    json_double(j, "high", c->high);
    json_double(j, "p", c->p);
    json_u64(j, "rounds", c->base_count);
    json_bool(j, "too_few", c->too_few);
    json_end(j);
}

static void put_values(struct json *j, const char *key, const double *values, size_t count)
{
    json_array(j, key);
    for (size_t i = 0; i < count; i++)
        json_double(j, NULL, values[i]);
    json_end(j);
}

static void put_json_functions(struct json *j, const struct gate_row *row)
{
    if (!row->functions[0].count || !row->functions[1].count)
        return;
    CLEANUP(exact_changes_done) struct exact_changes c;
    exact_changes_find(&c, &row->functions[0], &row->functions[1]);
    json_array(j, "functions");
    for (size_t i = 0; i < c.count; i++) {
        json_object(j, NULL);
        json_string(j, "name", c.items[i].name);
        json_string(j, "module", c.items[i].module);
        json_u64(j, "base", c.items[i].base);
        json_u64(j, "new", c.items[i].new);
        json_end(j);
    }
    json_end(j);
}

static void put_json_row(struct json *j, const struct gate_row *row)
{
    json_object(j, NULL);
    json_string(j, "metric", row->metric);
    json_string(j, "unit", row->unit);
    json_string(j, "better", row->better == METRIC_HIGHER ? "higher" : "lower");
    json_string(j, "cell", row->cell);
    json_string(j, "command", row->command);
    json_object(j, "levels");
    for (size_t f = 0; f < row->factor_count; f++)
        json_string(j, row->factors[f], row->levels[f]);
    json_end(j);
    json_string(j, "result", row->set_aside ? "set aside" : result_name(row->result));
    json_bool(j, "control_failed", row->control_failed);
    json_double(j, "limit", row->limit);
    json_double(j, "base_median", row->change.base.median);
    json_double(j, "new_median", row->change.new.median);
    put_comparison(j, "change", &row->change.comparison);
    if (row->has_control)
        put_comparison(j, "control", &row->control.comparison);
    put_values(j, "base_values", row->values[0], row->value_counts[0]);
    put_values(j, "new_values", row->values[1], row->value_counts[1]);
    put_json_functions(j, row);
    json_end(j);
}

void gate_write_json(struct strbuf *out, const struct gate_result_set *set)
{
    static const char *const by[] = {"median,mean", "median", "mean", "p95"};
    struct json j = {.out = out};
    json_object(&j, NULL);
    json_string(&j, "format", "assay-gate-1");
    json_string(&j, "result", set->control_failed ? "inconclusive" : result_name(set->result));
    json_array(&j, "failures");
    for (size_t i = 0; i < set->failure_count; i++) {
        json_object(&j, NULL);
        json_string(&j, "cell", set->failures[i].cell);
        json_u64(&j, "failed", set->failures[i].failed_count);
        json_u64(&j, "runs", set->failures[i].run_count);
        json_end(&j);
    }
    json_end(&j);
    json_bool(&j, "control_failed", set->control_failed);
    if (set->stored)
        json_string(&j, "stored", set->stored);
    else
        json_string(&j, "base_ref", set->base_ref);
    if (set->stored_command)
        json_string(&j, "stored_command", set->stored_command);
    json_string(&j, "base", set->stored ? set->stored_commit : set->base_commit);
    json_string(&j, "new", set->new_commit ? set->new_commit : "");
    json_bool(&j, "dirty", set->is_dirty);
    json_string(&j, "judge", by[set->by]);
    json_bool(&j, "by_cpu", set->by_cpu);
    json_double(&j, "max_regression", set->max_regression);
    json_u64(&j, "started_at_ns", set->started_at_ns);
    json_array(&j, "rows");
    for (size_t i = 0; i < set->count; i++)
        put_json_row(&j, &set->rows[i]);
    json_end(&j);
    json_end(&j);
}
