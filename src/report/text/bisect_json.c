/* SPDX-License-Identifier: MIT */
/* A bisect as JSON: docs/man/assay-bisect.1.scd names its parts. */
#include "base/json.h"
#include "base/memory.h"
#include "config.h"
#include "report/text/bisect_internal.h"

static const char *bisection_verdict_name(enum bisection_verdict verdict)
{
    static const char *const names[] = {"searching", "found", "no-change", "cannot-tell",
                                        "bad-end"};
    return names[verdict];
}

static void put_commit(struct json *j, const char *key, const struct bisect *b, size_t commit)
{
    json_object(j, key);
    json_u64(j, "number", commit);
    json_string(j, "hash", b->commits[commit].hash);
    json_string(j, "subject", b->commits[commit].subject);
    json_string(j, "author", b->commits[commit].author);
    if (b->commits[commit].kernel)
        json_string(j, "kernel", b->commits[commit].kernel);
    json_end(j);
}

static void put_comparison(struct json *j, const char *key, const struct comparison *c)
{
    json_object(j, key);
    json_string(j, "scale", c->scale == COMPARISON_RATIO ? "ratio" : "difference");
    json_double(j, "estimate", c->estimate);
    json_double(j, "low", c->low);
    json_double(j, "high", c->high);
    json_double(j, "level", c->level);
    json_double(j, "p", c->p);
    json_u64(j, "rounds", c->base_count);
    json_double(j, "before_median", c->base_median);
    json_double(j, "after_median", c->new_median);
    json_end(j);
}

static void put_metrics(struct json *j, const struct bisect *b, const struct bisection_change *c)
{
    CLEANUP(bisect_metrics_done) struct bisect_metrics m;
    bisect_metrics_init(&m, b, c->step);
    json_array(j, "metrics");
    for (size_t i = 0; i < m.outcome.data->metric_count; i++) {
        const struct store_metric *metric = &m.outcome.data->metrics[i];
        const struct outcome_cell *after = outcome_cell(&m.outcome, i, 1);
        json_object(j, NULL);
        json_string(j, "name", metric->name);
        json_string(j, "unit", metric->unit);
        if (after->judged) {
            put_comparison(j, "change", &after->judged->comparison);
            json_double(j, "adjusted_p", after->judged->p_adjusted);
            json_bool(j, "stands", after->judged->changed);
        }
        for (size_t k = 0; k < 2; k++) {
            json_array(j, k ? "after" : "before");
            struct dataset_column column = dataset_column(m.outcome.data, i, k);
            for (size_t n = 0; n < column.count; n++)
                json_double(j, NULL, column.values[n]);
            json_end(j);
        }
        json_end(j);
    }
    json_end(j);
}

static void put_change(struct json *j, const struct bisect *b, const struct bisection_change *c)
{
    CLEANUP(strbuf_done) struct strbuf command = {0};
    bisect_put_reproduce(&command, b, c->lo, c->hi);
    json_object(j, NULL);
    put_commit(j, "commit", b, c->hi);
    put_commit(j, "before", b, c->lo);
    json_string(j, "kind", verdict_change_name(&c->change, b->better));
    json_bool(j, "certain", !bisect_is_range(c));
    json_array(j, "suspects");
    for (size_t i = c->lo + 1; i <= c->hi; i++)
        json_string(j, NULL, b->commits[i].hash);
    json_end(j);
    put_comparison(j, "change", &c->change);
    json_double(j, "p", b->search.steps[c->step].p);
    json_double(j, "p_allowed", b->search.steps[c->step].chance);
    json_string(j, "reproduce", strbuf_text(&command));
    json_array(j, "reasons");
    for (const char *at = b->commits[c->hi].reasons; at && *at;) {
        size_t length = strcspn(at, "\n");
        json_string_n(j, NULL, at, length);
        at += length + (at[length] == '\n');
    }
    json_end(j);
    put_metrics(j, b, c);
    json_end(j);
}

static void put_step(struct json *j, const struct bisect *b, const struct bisection_step *s)
{
    static const char *const kinds[] = {"ends", "split", "confirm"};
    json_object(j, NULL);
    json_string(j, "kind", kinds[s->kind]);
    json_string(j, "outcome", bisection_outcome_name(s->outcome));
    json_string(j, "lo", b->commits[s->lo].hash);
    if (s->mid != BISECTION_NONE)
        json_string(j, "mid", b->commits[s->mid].hash);
    json_string(j, "hi", b->commits[s->hi].hash);
    json_u64(j, "rounds", s->round_count);
    json_double(j, "p", s->p);
    if (s->outcome != BISECTION_OPEN && s->outcome != BISECTION_DROPPED)
        put_comparison(j, "change", &s->whole);
    json_end(j);
}

static void put_head(struct json *j, const struct bisect *b)
{
    static const char *const betters[] = {"lower", "higher", "neither"};
    const struct bisection *s = &b->search;
    json_string(j, "format", "assay-bisect-1");
    json_string(j, "assay", ASSAY_VERSION);
    json_string(j, "verdict", bisection_verdict_name(s->verdict));
    json_object(j, "metric");
    json_string(j, "name", b->settings.metric);
    json_string(j, "unit", b->unit);
    json_string(j, "better", betters[b->better]);
    json_bool(j, "chosen", b->metric_chosen);
    json_end(j);
    put_commit(j, "good", b, 0);
    put_commit(j, "bad", b, s->count - 1);
    json_u64(j, "commits", s->count - 1);
    json_u64(j, "built", bisection_build_count(s));
    json_u64(j, "runs", b->run_count);
    json_u64(j, "stolen_rounds", b->stolen_count);
    json_u64(j, "seed", b->settings.seed);
    json_string(j, "build", b->settings.build);
    json_string(j, "run", b->settings.run);
    json_string(j, "benchmark", b->settings.bench);
    json_double(j, "error", s->options.error);
    json_double(j, "min_change", s->options.min_change);
    json_bool(j, "more_changes", s->more_changes);
    json_object(j, "range");
    json_string(j, "after", b->commits[s->lo].hash);
    json_string(j, "to", b->commits[s->hi].hash);
    json_end(j);
    json_array(j, "left_out");
    for (size_t i = 0; i < s->count; i++)
        if (s->states[i] == COMMIT_SKIPPED)
            json_string(j, NULL, b->commits[i].hash);
    json_end(j);
    json_array(j, "failed_runs");
    for (size_t i = 0; i < s->count; i++)
        if (b->commits[i].failed_runs && s->states[i] != COMMIT_SKIPPED) {
            json_object(j, NULL);
            json_string(j, "commit", b->commits[i].hash);
            json_u64(j, "runs", b->commits[i].failed_runs);
            json_end(j);
        }
    json_end(j);
}

void report_bisect_json(struct strbuf *out, const struct bisect_view *v)
{
    const struct bisect *b = v->b;
    const struct bisection *s = &b->search;
    struct json j = {.out = out};
    json_object(&j, NULL);
    put_head(&j, b);
    json_array(&j, "changes");
    for (size_t i = 0; i < s->found_count; i++)
        put_change(&j, b, &s->found[i]);
    json_end(&j);
    json_array(&j, "unexplained");
    for (size_t i = 0; i < s->rest_count; i++) {
        json_object(&j, NULL);
        json_string(&j, "after", b->commits[s->rests[i].lo].hash);
        json_string(&j, "to", b->commits[s->rests[i].hi].hash);
        json_bool(&j, "differs", s->rests[i].differs);
        put_comparison(&j, "change", &s->rests[i].change);
        json_end(&j);
    }
    json_end(&j);
    json_array(&j, "steps");
    for (size_t i = 0; i < s->step_count; i++)
        put_step(&j, b, &s->steps[i]);
    json_end(&j);
    if (v->machine)
        machine_write_json(v->machine, &j, "machine");
    json_end(&j);
}
