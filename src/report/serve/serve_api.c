/* SPDX-License-Identifier: MIT */
/* The store for programs, read-only: see "assay serve: /api/v1" in docs/FORMATS.md. */
#include "analysis/history.h"
#include "analysis/sparse.h"
#include "base/json.h"
#include "base/memory.h"
#include "report/serve/serve_internal.h"
#include "report/text/compare.h"
#include "report/text/experiment.h"
#include "report/text/history.h"
#include "store/store_rows.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

static int trouble(struct strbuf *out, int status, const char *words)
{
    struct json j = {.out = out};
    strbuf_clear(out);
    json_object(&j, NULL);
    json_string(&j, "error", words);
    json_end(&j);
    return status;
}

static int failure(struct strbuf *out, int code, const struct error *err)
{
    return trouble(out, code == -ENOENT ? 404 : code == -EINVAL ? 400 : 500, err->message);
}

static int list(struct store *store, const struct serve_request *q, struct strbuf *out)
{
    struct error err = {0};
    uint64_t page, count = 0;
    CLEANUP(store_list_done) struct store_list found = {0};
    if (!serve_page_number(q->page, &page))
        return trouble(out, 400, "the page number is not valid");
    int r = store_search(store, q->query ? q->query : "", (page - 1) * SERVE_EXPERIMENTS,
                         SERVE_EXPERIMENTS, &found, &count, &err);
    if (r < 0)
        return failure(out, r, &err);
    if (!serve_page_exists(page, count, SERVE_EXPERIMENTS))
        return trouble(out, 404, "there are not that many experiments");
    report_list_json(out, &found);
    return 200;
}

static int one(struct store *store, int64_t id, struct strbuf *out)
{
    struct error err = {0};
    struct dataset d;
    int r = dataset_load(&d, store, id, &err);
    if (r < 0)
        return failure(out, r, &err);
    report_experiment_json(out, &d);
    dataset_done(&d);
    return 200;
}

static int runs(struct store *store, const struct serve_request *q, int64_t id, struct strbuf *out)
{
    struct error err = {0};
    uint64_t page;
    CLEANUP(store_experiment_done) struct store_experiment e = {0};
    CLEANUP(store_cursor_done) struct store_cursor rows = {0};
    if (!serve_page_number(q->page, &page))
        return trouble(out, 400, "the page number is not valid");
    int r = store_experiment(store, id, &e, &err);
    if (r < 0)
        return failure(out, r, &err);
    if (!serve_page_exists(page, e.run_count, SERVE_RUNS))
        return trouble(out, 404, "there are not that many runs");
    CLEANUP(memory_freep) char *metric = memory_strndup(e.headline, strcspn(e.headline, "\n"));
    int64_t first;
    r = serve_pages_find(q->pages, store, &e, page, &first, &err);
    if (r == 0)
        r = store_run_lines(store, id, metric, first, SERVE_RUNS, &rows, &err);
    struct json j = {.out = out};
    json_object(&j, NULL);
    json_u64(&j, "runs_count", e.run_count);
    json_u64(&j, "page", page);
    json_u64(&j, "page_size", SERVE_RUNS);
    json_string(&j, "metric", metric);
    json_array(&j, "runs");
    struct store_run_line run;
    while (r >= 0 && (r = store_next_run_line(&rows, &run, &err)) > 0) {
        json_object(&j, NULL);
        json_i64(&j, "id", run.id);
        json_string(&j, "cell", run.cell);
        json_u64(&j, "round", run.round);
        json_u64(&j, "started_at_ns", run.started_at_ns);
        json_u64(&j, "wall_ns", run.wall_ns);
        json_i64(&j, "status", run.status);
        json_bool(&j, "disturbed", run.disturbed);
        json_double(&j, "value", run.value);
        json_string(&j, "unit", run.unit);
        json_end(&j);
    }
    json_end(&j);
    json_end(&j);
    return r < 0 ? failure(out, r, &err) : 200;
}

static int compare(struct store *store, const struct serve_request *q, struct strbuf *out)
{
    struct error err = {0};
    const char *words[2] = {q->base ? q->base : "", q->new ? q->new : ""};
    struct dataset sets[2] = {0};
    int64_t ids[2] = {0};
    struct compare c = {0};
    size_t loaded = 0;
    int r = 0;
    for (size_t i = 0; i < 2 && r == 0; i++)
        r = *words[i] ? store_find(store, words[i], &ids[i], &err)
                      : error_set(&err, -EINVAL, "name two experiments: ?base=ID&new=ID");
    if (r == 0 && ids[0] == ids[1])
        r = error_set(&err, -EINVAL, "these are the same experiment");
    while (r == 0 && loaded < 2) {
        r = dataset_load(&sets[loaded], store, ids[loaded], &err);
        loaded += r == 0;
    }
    if (r == 0) {
        sparse_join(&sets[0], &sets[1]);
        r = compare_experiments(&c, &sets[0], &sets[1], &err);
        if (r == 0)
            report_compare_json(out, &(struct compare_view){.c = &c, .all = true});
        compare_done(&c);
    }
    while (loaded)
        dataset_done(&sets[--loaded]);
    return r < 0 ? failure(out, r, &err) : 200;
}

static int history(struct store *store, const struct serve_request *q, struct strbuf *out)
{
    struct error err = {0};
    CLEANUP(histories_done) struct histories h = {0};
    if (!q->metric || !*q->metric)
        return trouble(out, 400, "name a metric: ?metric=NAME, and ?name=EXPERIMENT for one name");
    struct history_options options = {
        .metric = q->metric, .name = q->name, .chance = 0.05, .seed = 1};
    int r = histories_load(&h, store, &options, &err);
    if (r < 0)
        return failure(out, r, &err);
    report_history_json(out, &h);
    return 200;
}

int serve_api(struct store *store, const struct serve_request *q, const char *rest,
              struct strbuf *out)
{
    int64_t id;
    const char *behind = serve_behind_id(rest, "experiments/", &id);
    if (str_eq(rest, "experiments"))
        return list(store, q, out);
    if (str_eq(rest, "running"))
        return serve_live(store, out);
    if (str_eq(rest, "compare"))
        return compare(store, q, out);
    if (str_eq(rest, "history"))
        return history(store, q, out);
    if (behind && !*behind)
        return one(store, id, out);
    if (behind && str_eq(behind, "/runs"))
        return runs(store, q, id, out);
    return trouble(out, 404, "there is no such resource");
}
