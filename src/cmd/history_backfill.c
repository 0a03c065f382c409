/* SPDX-License-Identifier: MIT */
/*
 * See history_backfill.h.  Each change is a search of `assay bisect` between the commit of the last
 * result before it and that of the first one after it, in a directory of its own beside the
 * repository's data.  A search that was stopped is resumed, if it is still the one that is due.
 */
#include "cmd/history_backfill.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/term.h"
#include "cmd/bisect_search.h"
#include "report/text/bisect.h"
#include "report/text/history.h"
#include "session/git.h"
#include "store/store_rows.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

static const double least_change = 0.01; /* as assay bisect has it */

struct backfill {
    const struct history_backfill *o;
    struct store *store;
    char *folder;
    struct progress progress;
    size_t failed; /* changes that could not be searched */
};

bool history_is_news(const struct history *one, size_t change)
{
    return !one->remarks[change].note &&
           !str_eq(report_history_kind(one, &one->changes.points[change]), "possible change");
}

/* What the cell ran, as the store has it; the caller frees it. */
static int command_of(struct backfill *f, const struct history *one, int64_t experiment,
                      char **ret_command, struct error *err)
{
    CLEANUP(store_cursor_done) struct store_cursor rows = {0};
    struct store_cell_row cell;
    *ret_command = f->o->run ? memory_strdup(f->o->run) : NULL;
    int r = f->o->run ? 0 : store_cells(f->store, experiment, &rows, err);
    while (r >= 0 && !*ret_command && (r = store_next_cell(&rows, &cell, err)) > 0)
        if (str_eq(cell.label, one->cell) && *cell.command)
            *ret_command = memory_strdup(cell.command);
    if (r >= 0 && !*ret_command)
        return error_set(err, -EINVAL,
                         "the store does not say what was run; give the command to measure: --run "
                         "COMMAND");
    return r < 0 ? r : 0;
}

/* A commit of this repository, from which it can be built again. */
static int check_commit(const struct history_point *p, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    CLEANUP(memory_freep) char *name = memory_printf("%s^{commit}", p->commit);
    if (!*p->commit)
        return error_set(err, -ENOENT, "experiment %lld has no commit", (long long)p->experiment);
    if (str_has_suffix(p->commit, "-dirty"))
        return error_set(err, -ENOENT,
                         "experiment %lld was measured with uncommitted changes (%.18s)",
                         (long long)p->experiment, p->commit);
    if (GIT(".", &out, NULL, "rev-parse", "--verify", "--quiet", "--end-of-options", name) < 0)
        return error_set(err, -ENOENT, "commit %.12s of experiment %lld is not in this repository",
                         p->commit, (long long)p->experiment);
    return 0;
}

static bool is_same_text(const char *a, const char *b)
{
    return str_eq(a ? a : "", b ? b : "");
}

/* Takes up the search that was stopped here, where it is this one; else starts it. */
static int open_search(struct bisect *b, const struct bisect_settings *s, const char *folder,
                       struct error *err)
{
    CLEANUP(memory_freep) char *journal = memory_printf("%s/journal", folder);
    if (access(journal, F_OK) == 0) {
        struct error ignored;
        int r = bisect_continue(b, folder, &ignored);
        if (r == 0 && is_same_text(b->settings.good, s->good) &&
            is_same_text(b->settings.bad, s->bad) && is_same_text(b->settings.run, s->run) &&
            is_same_text(b->settings.build, s->build) &&
            is_same_text(b->settings.metric, s->metric))
            return 0;
        bisect_close(b);
        bisect_abort(folder, &ignored);
    }
    return bisect_start(b, s, folder, err);
}

static void show_progress(const struct bisect *b, const char *what, void *context)
{
    progress_show(context, "%.12s..%.12s: %zu built, %llu %s: %s", b->settings.good,
                  b->settings.bad, bisection_build_count(&b->search),
                  (unsigned long long)b->run_count, plural(b->run_count, "run", "runs"), what);
}

static const char *verdict_word(const struct bisect *b)
{
    switch (b->search.verdict) {
    case BISECTION_FOUND:
        return "found";
    case BISECTION_NO_CHANGE:
        return "no-change";
    case BISECTION_BAD_END:
        return "bad-end";
    case BISECTION_CANNOT_TELL:
    case BISECTION_SEARCHING:
        break;
    }
    return "cannot-tell";
}

/* The largest change of those that were found is the one that the history shows. */
static const struct bisection_change *largest(const struct bisect *b)
{
    const struct bisection_change *best = NULL;
    for (size_t i = 0; i < b->search.found_count; i++) {
        const struct bisection_change *c = &b->search.found[i];
        if (!best || fabs(log(c->change.estimate)) > fabs(log(best->change.estimate)))
            best = c;
    }
    return best;
}

static int keep(struct backfill *f, const struct bisect *b, struct history *one, size_t change,
                struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf commit = {0}, reasons = {0};
    const struct bisection_change *c = largest(b);
    struct history_search s = {.verdict = (char *)verdict_word(b), .subject = (char *)""};
    if (c) {
        const struct bisect_commit *found = &b->commits[c->hi];
        if (bisect_is_range(c))
            strbuf_printf(&commit, "%.12s..", b->commits[c->lo].hash);
        strbuf_puts(&commit, found->hash);
        strbuf_puts(&reasons, found->reasons ? found->reasons : "");
        s.subject = found->subject;
    } else {
        bisect_put_verdict(&reasons, b);
    }
    s.commit = (char *)strbuf_text(&commit);
    s.reasons = (char *)strbuf_text(&reasons);
    return history_search_keep(f->store, one, change, &s, err);
}

static void say(struct backfill *f, const struct history *one, size_t change,
                const struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf safe = {0};
    const struct history_point *p = &one->points[one->changes.points[change].index];
    strbuf_put_safe(&safe, one->name, strlen(one->name), 100);
    strbuf_puts(&safe, *one->cell ? ": " : "");
    strbuf_put_safe(&safe, one->cell, strlen(one->cell), 200);
    progress_end(&f->progress);
    fprintf(stderr, "assay history: %s: the change at experiment %lld was not searched: %s\n",
            strbuf_text(&safe), (long long)p->experiment, err->message);
}

static void fill_settings(struct bisect_settings *s, struct backfill *f, const struct history *one,
                          size_t change)
{
    static const char *const betters[] = {"lower", "higher", ""};
    const struct change_point *c = &one->changes.points[change];
    double size = c->change.scale == COMPARISON_RATIO ? fabs(log(c->change.estimate)) : INFINITY;
    *s = (struct bisect_settings){.good = one->points[c->index - 1].commit,
                                  .bad = one->points[c->index].commit,
                                  .build = (char *)f->o->build,
                                  .metric = one->metric,
                                  .better = (char *)betters[one->better],
                                  .seed = clock_now_ns(),
                                  .warmup = 1,
                                  .min_change = fmin(least_change, size / 2),
                                  .explain = 1};
}

/* 0 also where this change cannot be searched: that is said. */
static int search_change(struct backfill *f, struct history *one, size_t change, struct error *err)
{
    CLEANUP(memory_freep) char *command = NULL;
    struct bisect_settings s;
    struct bisect b = {.journal_fd = -1, .lock_fd = -1};
    fill_settings(&s, f, one, change);
    const struct history_point *after = &one->points[one->changes.points[change].index];
    int r = check_commit(after - 1, err);
    if (r == 0)
        r = check_commit(after, err);
    if (r == 0 && str_eq(s.good, s.bad))
        r = error_set(err, -ENOENT,
                      "both results are of commit %.12s; something else changed: the machine, its "
                      "settings, or libraries",
                      s.good);
    if (r == 0)
        r = command_of(f, one, after->experiment, &command, err);
    s.run = command;
    if (r == 0)
        r = open_search(&b, &s, f->folder, err);
    bool opened = r == 0;
    if (opened && !f->o->quiet) {
        b.on_progress = show_progress;
        b.context = &f->progress;
    }
    if (opened)
        r = bisect_search(&b, err);
    bool measured = r == 0;
    if (measured)
        r = keep(f, &b, one, change, err);
    bisect_close(&b);
    struct error ignored;
    if (opened && r != -EINTR)
        bisect_abort(f->folder, &ignored);
    if (r == -EINTR || process_signals_caught())
        return error_set(err, -EINTR, "stopped; run the same command again to resume");
    if (r < 0 && !measured) {
        say(f, one, change, err);
        f->failed++;
        return 0;
    }
    return r;
}

/* One at a time in this repository. */
static int take_lock(const char *folder, int *ret_fd, struct error *err)
{
    CLEANUP(memory_freep) char *path = memory_printf("%s.lock", folder);
    *ret_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (*ret_fd < 0)
        return error_errno(err, -errno, "%s", path);
    if (flock(*ret_fd, LOCK_EX | LOCK_NB) < 0)
        return error_set(err, -EBUSY,
                         "another 'assay history --backfill' is running in this repository (%s)",
                         path);
    return 0;
}

int history_backfill(const struct history_backfill *o, struct store *store, struct histories *h,
                     struct error *err)
{
    struct backfill f = {.o = o, .store = store};
    CLEANUP(strbuf_done) struct strbuf out = {0};
    CLEANUP(fd_closep) int lock = -1;
    int r = GIT(".", &out, err, "rev-parse", "--path-format=absolute", "--git-common-dir");
    if (r < 0)
        return error_wrap(err, r, "--backfill needs the git repository");
    CLEANUP(memory_freep) char *folder = memory_printf("%s/assay-backfill", strbuf_text(&out));
    f.folder = folder;
    r = take_lock(folder, &lock, err);
    if (r < 0)
        return r;
    process_signals_catch();
    progress_start(&f.progress);
    for (size_t i = 0; i < h->count && r == 0; i++)
        for (size_t c = 0; c < h->items[i].changes.count && r == 0; c++)
            if (history_is_news(&h->items[i], c) && !h->items[i].remarks[c].search)
                r = search_change(&f, &h->items[i], c, err);
    progress_end(&f.progress);
    process_signals_restore();
    if (r == 0 && f.failed)
        r = error_set(err, -ECANCELED, "%zu %s not searched", f.failed,
                      plural(f.failed, "change was", "changes were"));
    return r;
}
