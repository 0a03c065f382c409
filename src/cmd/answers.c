/* SPDX-License-Identifier: MIT */
/* `assay answers`: what a matrix says, in sentences. */
#include "report/text/answers.h"
#include "base/memory.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "report/text/stat.h"
#include "spec/spec.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

struct answers_options {
    const char *db, *variant, *work;
    bool all;
    const char *json;
};

#define O(field) offsetof(struct answers_options, field)

static const struct option options[] = {
    {0, "db", OPTION_STRING, O(db), "PATH", CMD_DB_HELP, "file"},
    {0, "variant", OPTION_STRING, O(variant), "FACTOR", "the factor whose values compete", NULL},
    {0, "work", OPTION_STRING, O(work), "METRIC", "the metric that counts the work done", NULL},
    {'a', "all", OPTION_FLAG, O(all), NULL, "show every answer, not only the first of each kind",
     NULL},
    {'j', "json", OPTION_OPTIONAL, O(json), "FILE", CMD_JSON_HELP, "file"},
    {0},
};

static int answer(const struct answers_options *o, const char *word, struct error *err)
{
    CLEANUP(store_closep) struct store *store = NULL;
    int64_t id;
    struct dataset d;
    int r = store_open(&store, store_place(o->db), STORE_READ, err);
    if (r == 0)
        r = store_find(store, word, &id, err);
    if (r == 0)
        r = dataset_load(&d, store, id, err);
    if (r < 0)
        return r;
    CLEANUP(memory_freep) char *text = NULL;
    struct spec spec;
    bool has_spec = store_document(store, id, "spec", &text, NULL) == 0 &&
                    spec_parse(&spec, "spec", text, strlen(text), false, NULL) == 0;
    struct answers a;
    r = answers_find(&a, &d, has_spec ? &spec : NULL, o->variant, o->work, err);
    if (has_spec)
        spec_done(&spec);
    if (r == 0) {
        CLEANUP(strbuf_done) struct strbuf out = {0};
        if (o->json)
            report_answers_json(&out, &a);
        r = o->json ? cmd_write(o->json, &out, err) : 0;
        strbuf_clear(&out);
        if (r == 0 && cmd_wants_text(o->json)) {
            report_answers_text(&out, &a, o->all, term_has_colour(STDOUT_FILENO));
            strbuf_fit_lines(&out, isatty(STDOUT_FILENO) ? term_columns(STDOUT_FILENO) : 0);
            r = cmd_write(NULL, &out, err);
        }
    }
    answers_done(&a);
    dataset_done(&d);
    return r;
}

static int run(int argc, char **argv)
{
    struct error err = {0};
    struct answers_options o = {0};
    int first = options_parse_mixed(options, &o, argc, argv, &err);
    if (first == OPTIONS_HELP)
        return cmd_help(&verb_answers);
    if (first > 0 && argc - first > 1)
        first = error_set(&err, -EINVAL, "give one experiment at most");
    if (first < 0)
        return cmd_usage(&verb_answers, &err);
    int r = answer(&o, first < argc ? argv[first] : "last", &err);
    return r < 0 ? cmd_fail(&verb_answers, &err, EXIT_TROUBLE) : EXIT_DONE;
}

const struct verb verb_answers = {
    .name = "answers",
    .summary = "summarize an experiment: the best, crossovers, saturation, surprises",
    .synopsis = "[options] [EXPERIMENT]",
    .examples = "  assay answers\n  assay answers 12 --variant allocator --json\n",
    .options = options,
    .run = run,
    .words = "!assay completion --list experiments",
};
