/* SPDX-License-Identifier: MIT */
/*
 * Profiles of cells, after the measured rounds, so that sampling disturbs none of them: the chosen
 * cells run some more times, interleaved, under `assay record`.  What cannot be recorded is a note,
 * no failure: the measurements stand.
 */
#include "analysis/profiles.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "run/command.h"
#include "session/extract.h"
#include "session/session_internal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* So many profiled runs of a cell tell how much its profile varies. */
enum { PROFILED_RUNS = 5 };

/* Metrics that the spec finds in the output, added to what the program reported. */
static void add_metrics(struct session *s, const struct hole_values *values,
                        struct run_result *result)
{
    for (size_t i = 0; i < s->spec.metric_count; i++) {
        const struct spec_metric *m = &s->spec.metrics[i];
        struct error ignored;
        double value;
        if (!metrics_find(&result->metrics, m->name) && !session_is_simulated(m) &&
            extract_metric(m, &result->metrics, strbuf_text(&result->kept_stdout), values, &value,
                           &ignored) == 0)
            metrics_set(&result->metrics, m->name, value, m->unit);
    }
}

int session_run_again(struct session *s, size_t cell, uint64_t round, struct runner *runner,
                      const struct session_again *again, struct run_result *result,
                      struct error *err)
{
    struct hole_values values = {.spec = &s->spec,
                                 .levels = s->matrix.cells[cell].levels,
                                 .builds = s->cells[cell].build_folders,
                                 .cell = cell + 1,
                                 .round = round,
                                 .seed = (s->seed ^ (round * 1000003 + cell)) & INT32_MAX};
    if (s->guests) {
        struct guest_again in = {.before = again->before, .events = runner->events};
        int r = session_run_in_guest(s, cell, &values, &in, result, err);
        if (r == 0)
            r = run_check(result, s->cells[cell].command, err);
        if (r == 0)
            add_metrics(s, &values, result);
        return r;
    }
    char **argv = NULL;
    int r = holes_command(&s->spec.command, &values, &argv, err);
    if (r == 0)
        r = steps_before(&s->steps, &values, false, err);
    if (r == 0) {
        char **words = command_join_words(again->before, argv);
        struct run_spec spec = {
            .argv = words,
            .program = again->before && !again->program ? "/proc/self/exe" : again->program,
            .environment_added = s->cells[cell].environment,
            .working_dir = spec_folder(&s->spec, s->matrix.cells[cell].levels),
            .input_path = s->cells[cell].input,
            .stdout_to = output_parse(s->options->output),
            .output_path = s->options->output,
            .stderr_to = RUN_KEEP,
            .keep_bytes = (size_t)16 << 20,
            .cpus = s->cpus,
            .cpu_count = s->cpu_count,
            .timeout_ns = s->options->timeout_ns ? s->options->timeout_ns : s->spec.timeout_ns,
            .beside_others = steps_running(&s->steps),
            .on_ready = again->on_ready,
            .context = again->context,
        };
        r = runner_run(runner, &spec, result, err);
        free(words);
        struct error ignored;
        steps_after(&s->steps, &values, false, &ignored);
    }
    command_free_words(argv);
    if (r == 0)
        r = run_check(result, s->cells[cell].command, err);
    if (r == 0)
        add_metrics(s, &values, result);
    return r;
}

char *session_profile_path(const struct session *s, size_t cell, size_t run)
{
    char absolute[PATH_MAX];
    if (!realpath(s->spec.folder, absolute))
        return NULL;
    CLEANUP(memory_freep) char *parent = memory_printf("%s/.assay", absolute);
    CLEANUP(memory_freep) char *folder = memory_printf("%s/profiles", parent);
    if ((mkdir(parent, 0777) < 0 && errno != EEXIST) ||
        (mkdir(folder, 0777) < 0 && errno != EEXIST))
        return NULL;
    return memory_printf("%s/experiment-%lld-cell-%zu-run-%zu.data", folder,
                         (long long)s->experiment, cell + 1, run + 1);
}

static int record_cell(struct session *s, size_t cell, size_t run, const char *path,
                       struct error *err)
{
    const char *const before[] = {"assay", "record", "-q", "--call-graph=fp",
                                  "-o",    path,     "--", NULL};
    struct session_again again = {.before = (char *const *)before};
    return session_run_again(s, cell, run, &s->runner, &again, &s->result, err);
}

bool session_profile_wanted(const struct session *s, size_t cell)
{
    bool wanted = s->spec.profile == PROFILE_ALL;
    for (size_t o = 0; s->spec.profile == PROFILE_CHANGED && o < s->matrix.count; o++)
        wanted |= s->kept[o] && (o == cell || s->matrix.cells[o].baseline == cell) &&
                  session_cell_changed(s, o);
    return s->kept[cell] && wanted;
}

/* Adds one run's profile to a list. */
static int profile_cell(struct session *s, size_t cell, size_t run, const char *path,
                        struct strbuf *list, struct error *err)
{
    s->current = s->matrix.cells[cell].label;
    session_show_progress(s);
    int r = path ? record_cell(s, cell, run, path, err)
                 : error_errno(err, -errno, "creating a directory for profiles");
    if (r < 0) {
        if (path)
            unlink(path); /* half of one is none */
        return r;
    }
    const struct metric *work =
        s->spec.work ? metrics_find(&s->result.metrics, s->spec.work) : NULL;
    strbuf_printf(list, "%.17g %s\n", work && work->value > 0 ? work->value : 1.0, path);
    return 0;
}

void session_keep_profiles(struct session *s, size_t cell, const struct strbuf *list)
{
    struct error err = {0};
    CLEANUP(memory_freep) char *kind = profile_document_kind(s->matrix.cells[cell].label);
    if (store_add_document(s->store, s->experiment, kind, strbuf_text(list), &err) < 0)
        strbuf_printf(&s->notes, "no profile of %s: %s\n", s->matrix.cells[cell].label,
                      err.message);
    else
        strbuf_printf(&s->notes, "profiles of %s: .assay/profiles/experiment-%lld-cell-%zu-*\n",
                      s->matrix.cells[cell].label, (long long)s->experiment, cell + 1);
}

/* What an earlier sitting has recorded of the cell; returns the number of its runs. */
static size_t read_list(const struct session *s, size_t cell, struct strbuf *ret_list)
{
    struct error ignored;
    CLEANUP(memory_freep) char *kind = profile_document_kind(s->matrix.cells[cell].label);
    CLEANUP(memory_freep) char *text = NULL;
    size_t runs = 0;
    if (store_document(s->store, s->experiment, kind, &text, &ignored) < 0)
        return 0;
    for (const char *c = text; *c; c++)
        runs += *c == '\n';
    strbuf_puts(ret_list, text);
    return runs;
}

bool session_profiles_left(const struct session *s)
{
    bool left = false;
    for (size_t c = 0; c < s->matrix.count && !left; c++) {
        CLEANUP(strbuf_done) struct strbuf list = {0};
        left = session_profile_wanted(s, c) && read_list(s, c, &list) < PROFILED_RUNS;
    }
    return left;
}

int session_profile(struct session *s)
{
    struct strbuf *lists = memory_zalloc(s->matrix.count + 1, sizeof(*lists));
    size_t *had = memory_zalloc(s->matrix.count + 1, sizeof(*had));
    bool *wanted = memory_zalloc(s->matrix.count + 1, sizeof(*wanted));
    size_t *lengths = memory_zalloc(s->matrix.count + 1, sizeof(*lengths));
    for (size_t c = 0; c < s->matrix.count; c++) {
        wanted[c] = session_profile_wanted(s, c);
        had[c] = wanted[c] ? read_list(s, c, &lists[c]) : 0;
        lengths[c] = lists[c].length;
    }
    for (size_t run = 0; run < PROFILED_RUNS; run++)
        for (size_t c = 0; c < s->matrix.count && !process_signals_caught(); c++) {
            struct error err = {0};
            if (!wanted[c] || run < had[c])
                continue;
            CLEANUP(memory_freep) char *path = session_profile_path(s, c, run);
            if (profile_cell(s, c, run, path, &lists[c], &err) == 0 || process_signals_caught())
                continue;
            strbuf_printf(&s->notes, "no profile of %s: %s\n", s->matrix.cells[c].label,
                          err.message);
            wanted[c] = false;
        }
    for (size_t c = 0; c < s->matrix.count; c++) {
        if (lists[c].length > lengths[c])
            session_keep_profiles(s, c, &lists[c]);
        strbuf_done(&lists[c]);
    }
    free(lists);
    free(had);
    free(wanted);
    free(lengths);
    return process_signals_caught() ? -EINTR : 0;
}

/* A line "CELL WORK PATH" for each recording, "CELL - WORDS" for one that could not be made. */
int session_profile_task(struct session *s, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf list = {0};
    CLEANUP(memory_freep) bool *failed = memory_zalloc(s->matrix.count + 1, sizeof(*failed));
    for (size_t run = 0; run < PROFILED_RUNS; run++)
        for (size_t c = 0; c < s->matrix.count; c++) {
            struct error why = {0};
            if (!s->kept[c] || failed[c])
                continue;
            if (process_signals_caught() || access(s->stop_path, F_OK) == 0)
                return error_set(err, -EINTR, "stopped by a signal");
            CLEANUP(memory_freep)
            char *path =
                memory_printf("%s.cell-%zu-run-%zu.data", s->options->task, c + 1, run + 1);
            strbuf_printf(&list, "%zu ", c + 1);
            failed[c] = profile_cell(s, c, run, path, &list, &why) < 0;
            if (failed[c])
                strbuf_printf(&list, "- %.*s\n", (int)strcspn(why.message, "\n"), why.message);
        }
    CLEANUP(memory_freep) char *path = memory_printf("%s.profiles", s->options->task);
    return file_write(path, list.data, list.length, err);
}
