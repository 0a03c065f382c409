/* SPDX-License-Identifier: MIT */
/* `assay history METRIC`: how it went from experiment to experiment, and where it changed. */
#include "report/text/history.h"
#include "base/memory.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "session/git.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

struct history_verb_options {
    const char *db, *name, *cell;
    double chance;
    uint64_t rows;
    bool by_commit, spark, json;
};

#define O(field) offsetof(struct history_verb_options, field)

static const struct option options[] = {
    {0, "db", OPTION_STRING, O(db), "PATH", CMD_DB_HELP, "file"},
    {0, "name", OPTION_STRING, O(name), "NAME", "only experiments with this name", NULL},
    {0, "cell", OPTION_STRING, O(cell), "TEXT",
     "only cells whose labels contain this, e.g. size=64", NULL},
    {0, "by-commit", OPTION_FLAG, O(by_commit), NULL, "order by git history instead of time", NULL},
    {0, "chance", OPTION_DOUBLE, O(chance), "P", "the probability of a false change (0.05)", NULL},
    {0, "rows", OPTION_U64, O(rows), "N", "height of each plot in lines (8)", NULL},
    {0, "spark", OPTION_FLAG, O(spark), NULL, "draw each history on one line", NULL},
    {'j', "json", OPTION_FLAG, O(json), NULL, "print JSON", NULL},
    {0},
};

/* The commits of this repository, oldest first, in one text that the list points into. */
static int list_commits(struct strbuf *text, char ***ret_commits, size_t *ret_count,
                        struct error *err)
{
    int r = GIT(".", text, err, "rev-list", "--topo-order", "--reverse", "--all", "HEAD");
    if (r < 0)
        return error_wrap(err, r, "--by-commit needs the git repository");
    char **commits = NULL;
    size_t count = 0, capacity = 0;
    for (char *at = text->data; at && *at;) {
        ARRAY_PUSH(commits, count, capacity) = at;
        at += strcspn(at, "\n");
        if (*at)
            *at++ = '\0';
    }
    *ret_commits = commits;
    *ret_count = count;
    return 0;
}

static void print(const struct history_verb_options *o, const struct histories *h)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    bool is_terminal = isatty(STDOUT_FILENO);
    struct history_view view = {.h = h,
                                .columns = is_terminal ? term_columns(STDOUT_FILENO) : 100,
                                .rows = o->rows,
                                .colour = term_has_colour(STDOUT_FILENO),
                                .spark = o->spark};
    if (o->json)
        report_history_json(&out, h);
    else
        report_history_text(&out, &view);
    fwrite(strbuf_text(&out), 1, out.length, stdout);
}

static int show(const struct history_verb_options *o, const char *metric, struct error *err)
{
    CLEANUP(store_closep) struct store *store = NULL;
    CLEANUP(strbuf_done) struct strbuf text = {0};
    CLEANUP(memory_freep) char **commits = NULL;
    CLEANUP(histories_done) struct histories h = {0};
    size_t commit_count = 0;
    int r = store_open(&store, store_place(o->db), STORE_READ, err);
    if (r == 0 && o->by_commit)
        r = list_commits(&text, &commits, &commit_count, err);
    struct history_options ho = {.metric = metric,
                                 .name = o->name,
                                 .cell = o->cell,
                                 .chance = o->chance,
                                 .seed = 1,
                                 .commits = commits,
                                 .commit_count = commit_count};
    if (r == 0)
        r = histories_load(&h, store, &ho, err);
    if (r == 0)
        print(o, &h);
    return r;
}

static int run(int argc, char **argv)
{
    struct error err = {0};
    struct history_verb_options o = {.chance = 0.05, .rows = 8};
    int first = options_parse_mixed(options, &o, argc, argv, &err);
    if (first == OPTIONS_HELP)
        return cmd_help(&verb_history);
    if (first > 0 && argc - first != 1)
        first = error_set(&err, -EINVAL, "give one metric, e.g. assay history wall");
    if (first > 0 && !(o.chance >= 1.0 / 400 && o.chance < 1))
        first = error_set(&err, -EINVAL, "--chance must be between 0.0025 and 1");
    if (first > 0 && (o.rows < 2 || o.rows > 200))
        first = error_set(&err, -EINVAL, "--rows must be between 2 and 200");
    if (first < 0)
        return cmd_usage(&verb_history, &err);
    return show(&o, argv[first], &err) < 0 ? cmd_fail(&verb_history, &err, EXIT_TROUBLE)
                                           : EXIT_DONE;
}

const struct verb verb_history = {
    .name = "history",
    .summary = "show how a metric changed across experiments",
    .synopsis = "[options] METRIC",
    .examples = "  assay history wall\n"
                "  assay history ops --name queue-throughput --cell size=64\n"
                "  assay history wall --by-commit --json\n",
    .options = options,
    .run = run,
    .words = "!assay completion --list metrics",
};
