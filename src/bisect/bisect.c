/* SPDX-License-Identifier: MIT */
/* The bisect of a repository: see bisect.h. */
#include "bisect/bisect.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "bisect/bisect_internal.h"
#include "exact/run.h"
#include "session/git.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <sys/file.h>
#include <sys/stat.h>

#define BISECT_CLOSED ((struct bisect){.journal_fd = -1, .lock_fd = -1})

enum {
    STOLEN_MAX = 3, /* in a row: then this is what the machine is like */
    ROUND_COMMITS = 3,
};

int bisect_default_folder(char **ret_folder, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    int r = GIT(".", &out, err, "rev-parse", "--path-format=absolute", "--git-common-dir");
    if (r < 0)
        return error_wrap(err, r, "bisect needs a git repository");
    *ret_folder = memory_printf("%s/assay-bisect", strbuf_text(&out));
    return 0;
}

/* Makes the folder and takes its lock. */
static int open_folder(struct bisect *b, const char *folder, struct error *err)
{
    static const char *const inside[] = {"", "/trees", "/logs"};
    for (size_t i = 0; i < ARRAY_COUNT(inside); i++) {
        CLEANUP(memory_freep) char *path = memory_printf("%s%s", folder, inside[i]);
        if (mkdir(path, 0777) < 0 && errno != EEXIST)
            return error_errno(err, -errno, "%s", path);
    }
    char absolute[PATH_MAX];
    if (!realpath(folder, absolute))
        return error_errno(err, -errno, "%s", folder);
    b->folder = memory_strdup(absolute);
    CLEANUP(memory_freep) char *lock = memory_printf("%s/lock", absolute);
    b->lock_fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (b->lock_fd < 0)
        return error_errno(err, -errno, "%s", lock);
    if (flock(b->lock_fd, LOCK_EX | LOCK_NB) < 0)
        return error_set(err, -EBUSY, "another assay is working in %s", absolute);
    CLEANUP(strbuf_done) struct strbuf out = {0};
    int r = GIT(".", &out, err, "rev-parse", "--path-format=absolute", "--git-common-dir");
    if (r == 0)
        b->repository = memory_strdup(strbuf_text(&out));
    return r < 0 ? error_wrap(err, r, "bisect needs a git repository") : 0;
}

static void copy_settings(struct bisect_settings *to, const struct bisect_settings *from)
{
    *to = *from;
    for (const struct bisect_setting *s = bisect_setting_table; s->name; s++) {
        char **at = (char **)((char *)to + s->offset);
        if (s->kind == SETTING_TEXT)
            *at = memory_strdup(*at ? *at : "");
    }
}

static void free_settings(struct bisect_settings *settings)
{
    for (const struct bisect_setting *s = bisect_setting_table; s->name; s++)
        if (s->kind == SETTING_TEXT)
            free(*(char **)((char *)settings + s->offset));
}

#define COMMIT_FORMAT "--format=%H%x09%P%x09%an <%ae>%x09%s"

/* A line of that format; the subject may hold tabs. */
static void add_commit(struct bisect *b, const char *line)
{
    const char *ends[3];
    const char *at = line;
    for (size_t i = 0; i < ARRAY_COUNT(ends); i++) {
        ends[i] = at + strcspn(at, "\t\n");
        at = ends[i] + (*ends[i] == '\t');
    }
    struct bisect_commit c = {
        .hash = memory_strndup(line, (size_t)(ends[0] - line)),
        .is_merge = memchr(ends[0], ' ', (size_t)(ends[1] - ends[0])) != NULL,
        .author = memory_strndup(ends[1] + 1, (size_t)(ends[2] - ends[1] - 1)),
        .subject = memory_strndup(at, strcspn(at, "\n")),
    };
    ARRAY_PUSH(b->commits, b->commit_count, b->commit_capacity) = c;
}

static int resolve(const char *option, const char *ref, struct strbuf *out, struct error *err)
{
    CLEANUP(memory_freep) char *name = memory_printf("%s^{commit}", ref);
    int r = GIT(".", out, err, "rev-parse", "--verify", "--quiet", "--end-of-options", name);
    return r < 0 ? error_set(err, -ENOENT, "%s %s: no such commit", option, ref) : 0;
}

/* The commits from good to bad, along first parents. */
static int list_commits(struct bisect *b, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf good = {0}, bad = {0}, out = {0};
    int r = resolve("--good", b->settings.good, &good, err);
    if (r == 0)
        r = resolve("--bad", b->settings.bad, &bad, err);
    if (r < 0)
        return r;
    const char *from = strbuf_text(&good), *to = strbuf_text(&bad);
    if (str_eq(from, to))
        return error_set(err, -EINVAL, "--good and --bad are both %.12s", from);
    if (git_is_ancestor(".", to, from))
        return error_set(err, -EINVAL,
                         "--bad %s is older than --good %s: give the older one as --good; "
                         "improvements are found, too",
                         b->settings.bad, b->settings.good);
    if (!git_is_ancestor(".", from, to))
        return error_set(err, -EINVAL,
                         "--good %s is not in the history of --bad %s; use their merge base: git "
                         "merge-base %s %s",
                         b->settings.good, b->settings.bad, b->settings.good, b->settings.bad);
    r = GIT(".", &out, err, "log", "-1", COMMIT_FORMAT, from);
    if (r == 0)
        add_commit(b, strbuf_text(&out));
    CLEANUP(memory_freep) char *range = memory_printf("%s..%s", from, to);
    if (r == 0)
        r = GIT(".", &out, err, "log", "--first-parent", "--reverse", COMMIT_FORMAT, range);
    for (const char *line = strbuf_text(&out); r == 0 && *line;) {
        add_commit(b, line);
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return r;
}

/* What the settings' texts mean. */
static int prepare(struct bisect *b, struct error *err)
{
    const struct bisect_settings *s = &b->settings;
    if (*s->better)
        b->better = str_eq(s->better, "higher") ? METRIC_HIGHER : METRIC_LOWER;
    struct bisection_action action;
    bisection_next(&b->search, &action);
    b->ended = action.kind == BISECTION_END;
    int r = *s->events ? event_list_parse(&b->event_list, s->events, err) : 0;
    if (r < 0)
        return error_wrap(err, r, "--event");
    r = *s->cpus ? parse_cpu_list(s->cpus, &b->cpu_list, &b->cpu_count, err) : 0;
    if (r < 0)
        return error_wrap(err, r, "--cpus");
    struct command command;
    bool shell;
    r = command_needs_shell(s->run, &shell, err);
    if (r == 0 && (r = command_init(&command, s->run, shell ? "/bin/sh" : NULL, err)) == 0)
        command_done(&command);
    return r < 0 ? error_wrap(err, r, "--run") : 0;
}

static void init_search(struct bisect *b)
{
    const struct bisect_settings *s = &b->settings;
    struct bisection_options options = {.error = s->error,
                                        .min_change = s->min_change,
                                        .rounds_first = s->rounds_first,
                                        .rounds_max = s->rounds_max,
                                        .stride = s->stride,
                                        .all = s->all != 0};
    bisection_init(&b->search, b->commit_count, &options);
}

/* -EBUSY when a search that has not ended lies in the folder. */
static int check_old(const char *folder, struct error *err)
{
    CLEANUP(memory_freep) char *journal = memory_printf("%s/journal", folder);
    if (access(journal, F_OK) < 0)
        return 0;
    struct bisect old = BISECT_CLOSED;
    int r = open_folder(&old, folder, err);
    if (r == 0 && bisect_journal_read(&old, init_search, NULL) == 0) {
        struct bisection_action action;
        bisection_next(&old.search, &action);
        if (action.kind != BISECTION_END)
            r = error_set(err, -EBUSY,
                          "a bisect of %s..%s is already in progress in %s: --continue resumes it, "
                          "--abort discards it",
                          old.settings.good, old.settings.bad, old.folder);
    }
    bisect_close(&old);
    return r;
}

int bisect_start(struct bisect *b, const struct bisect_settings *settings, const char *folder,
                 struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    *b = BISECT_CLOSED;
    copy_settings(&b->settings, settings);
    int r = GIT(".", &out, err, "rev-parse", "--show-prefix");
    if (r < 0)
        return error_wrap(err, r, "bisect needs a git repository");
    free(b->settings.prefix);
    b->settings.prefix = memory_strdup(strbuf_text(&out));
    r = list_commits(b, err);
    if (r < 0)
        return r;
    init_search(b);
    r = prepare(b, err);
    if (r == 0)
        r = check_old(folder, err);
    if (r == 0)
        r = open_folder(b, folder, err);
    return r < 0 ? r : bisect_journal_create(b, err);
}

int bisect_continue(struct bisect *b, const char *folder, struct error *err)
{
    *b = BISECT_CLOSED;
    CLEANUP(memory_freep) char *journal = memory_printf("%s/journal", folder);
    if (access(journal, R_OK) < 0)
        return error_set(err, -ENOENT, "there is no bisect to resume: no %s", journal);
    int r = open_folder(b, folder, err);
    if (r == 0)
        r = bisect_journal_read(b, init_search, err);
    b->continued = true;
    return r < 0 ? r : prepare(b, err);
}

static void remove_recordings(const struct bisect *b)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    CLEANUP(memory_freep) char *path = memory_printf("%s/recordings", b->folder);
    if (access(path, F_OK) == 0)
        capture_in("/", (const char *const[]){"rm", "-rf", "--", path, NULL}, &out, NULL);
}

int bisect_abort(const char *folder, struct error *err)
{
    struct bisect b = BISECT_CLOSED;
    CLEANUP(memory_freep) char *journal = memory_printf("%s/journal", folder);
    if (access(journal, F_OK) < 0)
        return error_set(err, -ENOENT, "there is no bisect to abort: no %s", journal);
    int r = open_folder(&b, folder, err);
    if (r == 0) {
        CLEANUP(strbuf_done) struct strbuf out = {0};
        CLEANUP(memory_freep) char *logs = memory_printf("%s/logs", b.folder);
        CLEANUP(memory_freep) char *lock = memory_printf("%s/lock", b.folder);
        bisect_trees_remove(&b);
        remove_recordings(&b);
        capture_in("/", (const char *const[]){"rm", "-rf", "--", logs, NULL}, &out, NULL);
        unlink(journal);
        unlink(lock);
        rmdir(b.folder);
    }
    bisect_close(&b);
    return r;
}

void bisect_close(struct bisect *b)
{
    for (size_t i = 0; i < b->commit_count; i++) {
        free(b->commits[i].hash);
        free(b->commits[i].author);
        free(b->commits[i].subject);
        free(b->commits[i].reasons);
        free(b->commits[i].kernel);
    }
    for (size_t i = 0; i < b->table_count; i++)
        dataset_done(&b->tables[i].data);
    free(b->commits);
    free(b->tables);
    bisection_done(&b->search);
    free_settings(&b->settings);
    event_list_done(&b->event_list);
    free(b->cpu_list);
    free(b->folder);
    free(b->repository);
    free(b->unit);
    strbuf_done(&b->notes);
    fd_closep(&b->journal_fd);
    fd_closep(&b->lock_fd);
    *b = BISECT_CLOSED;
}

const struct bisect_table *bisect_table(const struct bisect *b, size_t step)
{
    for (size_t i = 0; i < b->table_count; i++)
        if (b->tables[i].step == step)
            return &b->tables[i];
    return NULL;
}

static struct bisect_table *table_for(struct bisect *b, size_t step)
{
    static const struct participant sides[] = {
        {.name = (char *)"before",
         .command = (char *)"",
         .parameters = (char *)"",
         .is_reference = true},
        {.name = (char *)"after", .command = (char *)"", .parameters = (char *)""},
    };
    struct bisect_table *table = (struct bisect_table *)bisect_table(b, step);
    if (table)
        return table;
    table = &ARRAY_PUSH(b->tables, b->table_count, b->table_capacity);
    *table = (struct bisect_table){.step = step};
    outcome_start(&table->data, sides, ARRAY_COUNT(sides));
    return table;
}

void bisect_keep_values(struct bisect *b, size_t step, uint32_t round,
                        const struct store_metric *metric, const bool is_bound[2],
                        const double values[2])
{
    struct bisect_table *table = table_for(b, step);
    struct dataset *d = &table->data;
    size_t m = dataset_add_metric(d, metric->name, metric->unit, metric->kind, metric->facts);
    table->round_count = round + 1;
    for (size_t side = 0; side < 2; side++) {
        size_t before = d->loose_count;
        dataset_put(d, m, side, round, values[side]);
        if (d->loose_count > before)
            d->loose[before].is_bound = is_bound[side];
    }
}

void bisect_set_unit(struct bisect *b, const char *unit, enum metric_better better)
{
    free(b->unit);
    b->unit = memory_strdup(unit);
    if (!*b->settings.better)
        b->better = better;
}

static double only_value(const struct dataset *d, size_t metric, size_t cell)
{
    struct dataset_column column = dataset_column(d, metric, cell);
    return column.count ? column.values[0] : NAN;
}

/* The values of the metric that is searched for, from one round. */
static int take_values(struct bisect *b, const struct dataset *d, struct bisect_round *round,
                       struct error *err)
{
    size_t metric = dataset_metric(d, b->settings.metric);
    if (metric == DATASET_NONE && *b->settings.bench)
        return error_set(err, -ENOENT,
                         "--bench %s: not the name of one benchmark of %s; 'assay bench --list' "
                         "shows them",
                         b->settings.bench, b->settings.program);
    if (metric == DATASET_NONE) {
        CLEANUP(strbuf_done) struct strbuf names = {0};
        for (size_t i = 0; i < d->metric_count; i++)
            strbuf_printf(&names, "%s%s", i ? ", " : "", d->metrics[i].name);
        return error_set(err, -ENOENT,
                         "--metric %s: the runs have no such metric; they have %s (--event counts "
                         "events; programs report others with ASSAY_METRICS_FD)",
                         b->settings.metric, strbuf_text(&names));
    }
    const struct store_metric *m = &d->metrics[metric];
    for (size_t i = 0; i < d->cell_count; i++) {
        round->values[i] = only_value(d, metric, i);
        if (!isfinite(round->values[i]))
            return error_set(err, -ENOENT, "a run of one commit did not report the metric %s",
                             m->name);
    }
    round->count = d->cell_count;
    if (b->unit)
        return 0;
    bisect_set_unit(b, m->unit, m->facts.better);
    return bisect_journal_unit(b, m, err);
}

/* One round as a table: a cell for each commit. */
static void make_table(const struct bisect *b, const struct rounds *done, struct dataset *d)
{
    struct participant commits[3] = {0};
    for (size_t i = 0; i < ARRAY_COUNT(commits); i++)
        commits[i] = (struct participant){
            .name = (char *)"", .command = (char *)"", .parameters = (char *)""};
    outcome_start(d, commits, done->contestant_count);
    outcome_add_rounds(d, done, &b->event_list, bisect_only(b));
}

static void keep_table(struct bisect *b, const struct dataset *d)
{
    size_t step = b->search.step_count - 1;
    const struct bisect_table *table = bisect_table(b, step);
    uint32_t round = table ? table->round_count : 0;
    for (size_t m = 0; m < d->metric_count; m++) {
        const bool bounds[] = {dataset_is_bound(d, m, 0), dataset_is_bound(d, m, 1)};
        const double values[] = {only_value(d, m, 0), only_value(d, m, 1)};
        bisect_keep_values(b, step, round, &d->metrics[m], bounds, values);
    }
}

static int keep_round(struct bisect *b, const struct bisection_action *a, const struct rounds *done,
                      struct error *err)
{
    CLEANUP(dataset_done) struct dataset d;
    struct bisect_round round = {0};
    make_table(b, done, &d);
    int r = take_values(b, &d, &round, err);
    if (r < 0)
        return r;
    bool is_confirm = a->step->kind == BISECTION_CONFIRM;
    round.all = is_confirm ? &d : NULL;
    r = bisect_journal_round(b, &round, err);
    if (r < 0)
        return r;
    if (is_confirm)
        keep_table(b, &d);
    for (size_t i = 0; r == 0 && i < a->commit_count; i++)
        r = bisect_journal_kernel(b, a->commits[i], err);
    if (r < 0)
        return r;
    b->run_count += round.count;
    b->stolen_in_row = 0;
    bisection_round(&b->search, round.values);
    return 0;
}

/* The host took time from the round: it does not count, and the next one stands in for it. */
static int drop_round(struct bisect *b, struct error *err)
{
    b->stolen_in_row++;
    b->stolen_count++;
    return bisect_journal_stolen(b, err);
}

static void show_round(struct bisect *b, const struct bisection_action *a)
{
    static const char *const kinds[] = {"are the ends different?", "which half?", "confirming"};
    if (!b->on_progress)
        return;
    CLEANUP(memory_freep)
    char *what = memory_printf(
        "%s round %zu of %zu, %.12s, %zu %s left", kinds[a->step->kind], a->step->round_count + 1,
        a->step->wanted, b->commits[a->commits[a->commit_count - 1]].hash,
        a->step->hi - a->step->lo, plural(a->step->hi - a->step->lo, "commit", "commits"));
    b->on_progress(b, what, b->context);
}

/* The commands of a round: the same text, each in its commit's tree. */
static int make_contestants(struct bisect *b, const struct bisection_action *a,
                            struct contestant *contestants, char **folders, struct error *err)
{
    bool shell = false;
    int r = command_needs_shell(b->settings.run, &shell, err);
    for (size_t i = 0; i < a->commit_count && r == 0; i++) {
        bool ok;
        r = bisect_tree_make(b, a->commits[i], &ok, err);
        if (r == 0 && !ok)
            r = error_set(err, -ECANCELED, "%.12s was built before and cannot be built again",
                          b->commits[a->commits[i]].hash);
        folders[i] = bisect_tree_folder(b, a->commits[i]);
        contestants[i].working_dir = folders[i];
        if (r == 0)
            r = command_init(&contestants[i].command, b->settings.run, shell ? "/bin/sh" : NULL,
                             err);
        if (r == 0 && *b->settings.exact)
            exact_emulate(&contestants[i].command, b->settings.exact, NULL);
    }
    return r;
}

struct round_context {
    struct bisect *b;
    const struct bisection_action *action;
};

static bool note_kernel(const struct rounds *r, const struct rounds_spec *spec,
                        struct run_result *result, size_t contestant, void *context)
{
    (void)r;
    (void)spec;
    const struct round_context *c = context;
    struct bisect_commit *commit = &c->b->commits[c->action->commits[contestant]];
    if (!commit->kernel && result->metrics.kernel[0])
        commit->kernel = memory_strdup(result->metrics.kernel);
    return true;
}

static int run_round(struct bisect *b, const struct bisection_action *a,
                     const struct contestant *contestants, struct error *err)
{
    size_t step = b->search.step_count - 1;
    bool warm = b->warm && b->warm_step == step;
    struct round_context context = {b, a};
    struct rounds_spec spec = {.contestants = contestants,
                               .contestant_count = a->commit_count,
                               .events = &b->event_list,
                               .warmup_count = warm ? 0 : b->settings.warmup,
                               .rounds_min = 1,
                               .rounds_max = 1,
                               .seed = b->settings.seed + step * 10007,
                               .round_first = a->step->round_count,
                               .timeout_ns = b->settings.timeout_ns,
                               .stdout_to = output_parse(b->settings.output),
                               .output_path = b->settings.output,
                               .hook_shell = "/bin/sh",
                               .cpus = b->cpu_list,
                               .no_padding = *b->settings.exact,
                               .cpu_count = b->cpu_count,
                               .on_result = note_kernel,
                               .context = &context};
    int chosen = *b->settings.metric ? 0 : bisect_choose_metric(b, &spec, err);
    if (chosen < 0)
        return chosen;
    b->warm = true;
    b->warm_step = step;
    size_t failures[ROUND_COMMITS] = {0};
    bool is_warm = false;
    for (;;) {
        struct rounds rounds;
        int r = rounds_run(&spec, &rounds, err);
        bool cannot_start = r < 0 && rounds.start_code < 0;
        if (spec.warmup_count && rounds.warmup_done >= spec.warmup_count) {
            is_warm = true;
            spec.warmup_count = 0; /* also where the round is tried again */
        }
        bool failed = cannot_start || (r == 0 && rounds.end == ROUNDS_FAILURE);
        if (r == 0 && rounds.signal)
            r = error_set(err, -EINTR, "stopped");
        else if (failed)
            r = bisect_after_failure(b, a, &rounds, failures, is_warm, err);
        else if (r == 0 && b->stolen_in_row < STOLEN_MAX && !bisect_only(b) &&
                 bisect_was_stolen(&rounds))
            r = drop_round(b, err);
        else if (r == 0)
            r = keep_round(b, a, &rounds, err);
        rounds_done(&rounds);
        bool dropped = !b->search.step_open;
        if (r < 0 || !failed || dropped)
            return r;
    }
}

static int measure(struct bisect *b, const struct bisection_action *a, struct error *err)
{
    struct contestant contestants[ROUND_COMMITS] = {0};
    char *folders[ROUND_COMMITS] = {0};
    show_round(b, a);
    int r = make_contestants(b, a, contestants, folders, err);
    if (r == 0)
        r = run_round(b, a, contestants, err);
    for (size_t i = 0; i < a->commit_count; i++) {
        command_done(&contestants[i].command);
        free(folders[i]);
    }
    return r;
}

static int build(struct bisect *b, size_t commit, struct error *err)
{
    bool ok;
    int r = bisect_tree_make(b, commit, &ok, err);
    if (r == 0)
        r = bisect_journal_build(b, commit, ok ? "built" : "failed", err);
    if (r == 0)
        bisection_built(&b->search, commit, ok);
    return r;
}

int bisect_run(struct bisect *b, struct error *err)
{
    struct bisection_action action;
    for (;;) {
        bisection_next(&b->search, &action);
        if (action.kind == BISECTION_END)
            break;
        int r = action.kind == BISECTION_BUILD ? build(b, action.commits[0], err)
                                               : measure(b, &action, err);
        if (r == 0 && process_signals_caught())
            r = error_set(err, -EINTR, "stopped");
        if (r < 0)
            return r;
    }
    b->ended = true;
    return 0;
}

void bisect_finish(struct bisect *b)
{
    if (b->settings.keep)
        return;
    bisect_trees_remove(b);
    remove_recordings(b);
}
