/* SPDX-License-Identifier: MIT */
/* `assay history METRIC`: how it went from experiment to experiment, and where it changed. */
#include "report/text/history.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "cmd/history_backfill.h"
#include "report/text/stat.h"
#include "session/git.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Alarms look at a history again and again, so a single look must be surer: as sure as the
 * permutations of fits/changepoint.c can be. */
#define ALARM_CHANCE 0.0025

struct history_verb_options {
    const char *db, *name, *cell, *branch, *accept, *alarm, *build, *run;
    int64_t at;
    const char *at_word;
    double chance;
    uint64_t rows;
    bool by_commit, spark, backfill;
    const char *json;
};

#define O(field) offsetof(struct history_verb_options, field)

static const struct option options[] = {
    {0, "db", OPTION_STRING, O(db), "PATH", CMD_DB_HELP, "file"},
    {0, "name", OPTION_STRING, O(name), "NAME", "only experiments with this name", NULL},
    {0, "cell", OPTION_STRING, O(cell), "TEXT",
     "only cells whose labels contain this, e.g. size=64", NULL},
    {0, "branch", OPTION_STRING, O(branch), "BRANCH", "only results of this branch", NULL},
    {0, "accept", OPTION_STRING, O(accept), "NOTE",
     "accept the changes shown, with a note: they no longer alarm", NULL},
    {0, "at", OPTION_STRING, O(at_word), "ID",
     "--accept: only the change at this experiment, which is named with the change", NULL},
    {0, "alarm", OPTION_STRING, O(alarm), "CMD",
     "run this for each new change, with the change as JSON on standard input", NULL},
    {0, "backfill", OPTION_FLAG, O(backfill), NULL,
     "search for the commit of each new change, and say why", NULL},
    {0, "build", OPTION_STRING, O(build), "COMMAND",
     "with --backfill: the command that builds a commit, in a worktree of it", NULL},
    {0, "run", OPTION_STRING, O(run), "COMMAND",
     "with --backfill: the command to measure (default: what the store has)", NULL},
    {0, "by-commit", OPTION_FLAG, O(by_commit), NULL, "order by git history instead of time", NULL},
    {0, "chance", OPTION_DOUBLE, O(chance), "P",
     "the probability of a false change (0.05; with --alarm 0.0025)", NULL},
    {0, "rows", OPTION_U64, O(rows), "N", "height of each plot in lines (8)", NULL},
    {0, "spark", OPTION_FLAG, O(spark), NULL, "draw each history on one line", NULL},
    {'j', "json", OPTION_OPTIONAL, O(json), "FILE", CMD_JSON_HELP, "file"},
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

static int print(const struct history_verb_options *o, const struct histories *h, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    bool is_terminal = isatty(STDOUT_FILENO);
    struct history_view view = {.h = h,
                                .columns = is_terminal ? term_columns(STDOUT_FILENO) : 100,
                                .rows = o->rows,
                                .colour = term_has_colour(STDOUT_FILENO),
                                .spark = o->spark};
    if (o->json) {
        report_history_json(&out, h);
        int r = cmd_write(o->json, &out, err);
        if (r < 0 || !cmd_wants_text(o->json))
            return r;
        strbuf_clear(&out);
    }
    report_history_text(&out, &view);
    strbuf_fit_lines(&out, is_terminal ? view.columns : 0);
    return cmd_write(NULL, &out, err);
}

/* Accepts every change, or the one at an experiment; says which. */
static int accept_changes(const struct history_verb_options *o, struct store *store,
                          const struct histories *h, struct error *err)
{
    size_t meant = 0;
    int r = 0;
    for (size_t i = 0; i < h->count && r == 0; i++)
        for (size_t c = 0; c < h->items[i].changes.count && r == 0; c++) {
            const struct history *one = &h->items[i];
            int64_t at = one->points[one->changes.points[c].index].experiment;
            bool added;
            if (o->at_word && at != o->at)
                continue;
            meant++;
            r = history_accept(store, one, c, o->accept, &added, err);
            if (r == 0)
                fprintf(stderr, "assay history: %s the change at experiment %lld\n",
                        added ? "accepted" : "already accepted", (long long)at);
        }
    if (r == 0 && !meant)
        r = error_set(err, -ENOENT,
                      o->at_word ? "there is no change at experiment %s"
                                 : "there is no change to accept",
                      o->at_word);
    return r;
}

/* Runs the command for one change; its standard input is the change. */
static int tell(const char *command, const struct history *one, size_t change, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    CLEANUP(fd_closep) int fd = memfd_create("alarm", MFD_CLOEXEC);
    char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)command, NULL};
    struct process_spec spec = {.argv = argv, .stdin_fd = fd, .stdout_fd = -1, .stderr_fd = -1};
    struct process_result result;
    pid_t pid;
    report_history_alarm(&text, one, change);
    if (fd < 0 || fd_write_all(fd, strbuf_text(&text), text.length) < 0 ||
        lseek(fd, 0, SEEK_SET) < 0)
        return error_errno(err, -errno, "the change could not be written");
    int r = process_spawn(&spec, &pid, err);
    if (r == 0)
        r = process_wait(pid, &result, err);
    if (r == 0 && result.status != 0)
        r = error_set(
            err, -ECANCELED, "--alarm: the command failed (%s %d); it is run again next time",
            WIFEXITED(result.status) ? "exit code" : "signal",
            WIFEXITED(result.status) ? WEXITSTATUS(result.status) : WTERMSIG(result.status));
    return r;
}

/* New: certain, not accepted, and nobody was told of it.  Whoever notes it first tells it, so that
 * two processes never give one alarm twice; an alarm that failed is taken back. */
static int alarm_changes(const struct history_verb_options *o, struct store *store,
                         const struct histories *h, struct error *err)
{
    int worst = 0;
    for (size_t i = 0; i < h->count; i++)
        for (size_t c = 0; c < h->items[i].changes.count; c++) {
            const struct history *one = &h->items[i];
            const struct history_remark *remark = &one->remarks[c];
            bool added;
            if (remark->is_told || !history_is_news(one, c))
                continue;
            int r = history_tell(store, one, c, &added, err);
            if (r < 0)
                return r;
            r = added ? tell(o->alarm, one, c, err) : 0;
            struct error ignored;
            if (r < 0)
                history_untell(store, one, c, &ignored);
            worst = r < 0 ? r : worst;
        }
    return worst;
}

static int show(const struct history_verb_options *o, const char *metric, struct error *err)
{
    CLEANUP(store_closep) struct store *store = NULL;
    CLEANUP(strbuf_done) struct strbuf text = {0};
    CLEANUP(memory_freep) char **commits = NULL;
    CLEANUP(histories_done) struct histories h = {0};
    size_t commit_count = 0;
    bool writes = o->accept || o->alarm || o->backfill;
    int r = store_open(&store, store_place(o->db), writes ? STORE_WRITE : STORE_READ, err);
    if (r == 0 && o->by_commit)
        r = list_commits(&text, &commits, &commit_count, err);
    struct history_options ho = {.metric = metric,
                                 .name = o->name,
                                 .cell = o->cell,
                                 .branch = o->branch,
                                 .chance = o->chance > 0             ? o->chance
                                           : o->alarm || o->backfill ? ALARM_CHANCE
                                                                     : 0.05,
                                 .seed = 1,
                                 .commits = commits,
                                 .commit_count = commit_count};
    if (r == 0)
        r = histories_load(&h, store, &ho, err);
    if (r == 0 && o->accept)
        return accept_changes(o, store, &h, err);
    int searched = 0;
    struct history_backfill hb = {.build = o->build, .run = o->run};
    struct error why = {0};
    if (r == 0 && o->backfill) {
        searched = history_backfill(&hb, store, &h, &why);
        r = searched == -EBUSY || searched == -EINTR ? searched : 0;
    }
    if (r == 0 && o->alarm)
        r = alarm_changes(o, store, &h, err);
    else if (r == 0)
        r = print(o, &h, err);
    if (searched < 0 && (r == 0 || r == searched)) {
        *err = why;
        r = searched;
    }
    return r;
}

/* Given, with nothing in it, as of a variable that is not set. */
static bool is_blank(const char *word)
{
    return word && !word[strspn(word, " \t\r\n")];
}

static int run(int argc, char **argv)
{
    struct error err = {0};
    struct history_verb_options o = {.chance = NAN, .rows = 8};
    int first = options_parse_mixed(options, &o, argc, argv, &err);
    if (first == OPTIONS_HELP)
        return cmd_help(&verb_history);
    if (first > 0 && argc - first != 1)
        first = error_set(&err, -EINVAL, "give one metric, e.g. assay history wall");
    if (first > 0 && !isnan(o.chance) && !(o.chance >= ALARM_CHANCE && o.chance < 1))
        first = error_set(&err, -EINVAL, "--chance must be between 0.0025 and 1");
    if (first > 0 && (o.rows < 2 || o.rows > 200))
        first = error_set(&err, -EINVAL, "--rows must be between 2 and 200");
    uint64_t at = 0;
    if (first > 0 && is_blank(o.accept))
        first = error_set(&err, -EINVAL, "--accept takes a note: why the change is wanted");
    if (first > 0 && (is_blank(o.alarm) || is_blank(o.run)))
        first =
            error_set(&err, -EINVAL, "%s takes a command", is_blank(o.run) ? "--run" : "--alarm");
    if (first > 0 && o.accept && o.alarm)
        first = error_set(&err, -EINVAL, "--accept and --alarm cannot be used together");
    if (first > 0 && o.accept && o.backfill)
        first = error_set(&err, -EINVAL, "--accept and --backfill cannot be used together");
    if (first > 0 && (o.build || o.run) && !o.backfill)
        first = error_set(&err, -EINVAL, "--build and --run go with --backfill");
    if (first > 0 && o.at_word && !o.accept)
        first = error_set(&err, -EINVAL, "--at goes with --accept");
    if (first > 0 && o.at_word && parse_u64(o.at_word, &at, &err) < 0)
        first = error_wrap(&err, -EINVAL, "--at");
    o.at = (int64_t)at;
    if (first < 0)
        return cmd_usage(&verb_history, &err);
    int r = show(&o, argv[first], &err);
    return r == 0 ? EXIT_DONE
                  : cmd_fail(&verb_history, &err, r == -EINTR ? 128 + SIGINT : EXIT_TROUBLE);
}

const struct verb verb_history = {
    .name = "history",
    .summary = "show how a metric changed across experiments",
    .synopsis = "[options] METRIC",
    .examples =
        "  assay history wall\n"
        "  assay history ops --name queue-throughput --cell size=64\n"
        "  assay history wall --by-commit --json\n"
        "  assay history wall --accept 'the new parser checks more' --at 41\n"
        "  assay history wall --backfill --build 'make -s' --run ./bench\n"
        "  assay history wall --branch main --alarm 'curl -fsS -d @- https://example.org/hook'\n",
    .options = options,
    .run = run,
    .words = "!assay completion --list metrics",
};
