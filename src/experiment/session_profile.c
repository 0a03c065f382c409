/* SPDX-License-Identifier: MIT */
/*
 * Profiles of cells, after the measured rounds, so that sampling disturbs none of them: each chosen
 * cell runs once more under `assay record`.  What cannot be recorded is a note, no failure: the
 * measurements stand.
 */
#include "base/memory.h"
#include "base/process.h"
#include "experiment/command.h"
#include "experiment/session_internal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

/* The file of a cell's profile, in a folder that is made. */
static char *profile_path(const struct session *s, size_t cell)
{
    char absolute[PATH_MAX];
    if (!realpath(s->spec.folder, absolute))
        return NULL;
    CLEANUP(memory_freep) char *parent = memory_printf("%s/.assay", absolute);
    CLEANUP(memory_freep) char *folder = memory_printf("%s/profiles", parent);
    if ((mkdir(parent, 0777) < 0 && errno != EEXIST) ||
        (mkdir(folder, 0777) < 0 && errno != EEXIST))
        return NULL;
    return memory_printf("%s/experiment-%lld-cell-%zu.data", folder, (long long)s->experiment,
                         cell + 1);
}

/* assay itself, recording the cell's command. */
static char **record_words(char **argv, const char *path)
{
    size_t count = 0, capacity = 0;
    char **words = NULL;
    const char *const head[] = {"assay", "record", "-q", "-g", "-o", path, "--"};
    for (size_t i = 0; i < ARRAY_COUNT(head); i++)
        ARRAY_PUSH(words, count, capacity) = memory_strdup(head[i]);
    for (size_t i = 0; argv[i]; i++)
        ARRAY_PUSH(words, count, capacity) = memory_strdup(argv[i]);
    ARRAY_PUSH(words, count, capacity) = NULL;
    return words;
}

static int record_cell(struct session *s, size_t cell, const char *path, struct error *err)
{
    struct hole_values values = {.spec = &s->spec,
                                 .levels = s->matrix.cells[cell].levels,
                                 .builds = s->cells[cell].build_folders,
                                 .cell = cell + 1};
    char **argv = NULL;
    int r = holes_command(&s->spec.command, &values, &argv, err);
    if (r == 0)
        r = steps_before(&s->steps, &values, false, err);
    if (r == 0) {
        char **words = record_words(argv, path);
        struct run_spec spec = {
            .argv = words,
            .program = "/proc/self/exe",
            .environment_added = s->cells[cell].environment,
            .working_dir = spec_folder(&s->spec, s->matrix.cells[cell].levels),
            .input_path = s->cells[cell].input,
            .stdout_to = RUN_DISCARD,
            .stderr_to = RUN_KEEP,
            .cpus = s->cpus,
            .cpu_count = s->cpu_count,
            .timeout_ns = s->spec.timeout_ns,
            .beside_others = steps_running(&s->steps),
        };
        r = runner_run(&s->runner, &spec, &s->result, err);
        command_free_words(words);
        struct error ignored;
        steps_after(&s->steps, &values, false, &ignored);
    }
    command_free_words(argv);
    if (r == 0 && run_failed(&s->result)) {
        CLEANUP(strbuf_done) struct strbuf end = {0};
        run_describe_end(&s->result, &end);
        r = error_set(err, -ECANCELED, "%s: %.300s", strbuf_text(&end),
                      strbuf_text(&s->result.kept_stderr));
    }
    return r;
}

void session_profile(struct session *s)
{
    for (size_t c = 0; c < s->matrix.count && !process_signals_caught(); c++) {
        bool wanted = s->spec.profile == PROFILE_ALL;
        for (size_t o = 0; s->spec.profile == PROFILE_CHANGED && o < s->matrix.count; o++)
            wanted |= s->kept[o] && (o == c || s->matrix.cells[o].baseline == c) &&
                      session_cell_changed(s, o);
        if (!s->kept[c] || !wanted)
            continue;
        struct error err = {0};
        CLEANUP(memory_freep) char *path = profile_path(s, c);
        s->current = s->matrix.cells[c].label;
        int r = path ? record_cell(s, c, path, &err)
                     : error_errno(&err, -errno, "making a folder for profiles");
        CLEANUP(memory_freep) char *kind = memory_printf("profile %zu", c + 1);
        if (r == 0)
            r = store_add_document(s->store, s->experiment, kind, path, &err);
        if (r == 0)
            strbuf_printf(&s->notes, "profile of %s: %s\n", s->matrix.cells[c].label, path);
        else
            strbuf_printf(&s->notes, "no profile of %s: %s\n", s->matrix.cells[c].label,
                          err.message);
    }
}
