/* SPDX-License-Identifier: MIT */
/* Experiments whose runs are emulated, so that their instructions are counted exactly
 * (exact/run.h). Times are not kept: an emulator's mean nothing. */
#include "base/fd.h"
#include "base/memory.h"
#include "exact/functions.h"
#include "session/session_internal.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

int session_open_exact(struct session *s, struct error *err)
{
    struct spec *spec = &s->spec;
    if (s->options->exact)
        spec->exact = s->options->exact;
    if (!spec->exact)
        return 0;
    spec->exact = exact_word(spec->exact);
    if (spec->kernel_factor != SPEC_NO_FACTOR)
        return error_set(err, -EINVAL,
                         "%s: exact counts and a factor of kernels cannot be used together",
                         spec->file);
    int r = exact_tool_find(&s->exact, spec->exact, NULL, err);
    if (r < 0)
        return r;
    /* Counts of another tool have another name, and are not compared with these. */
    if (exact_tool_note(&s->exact))
        strbuf_printf(&s->notes, "%s\n", exact_tool_note(&s->exact));
    s->exact_words = exact_words(spec->exact, NULL);
    spec->exact_metric = s->exact.metric;
    return 0;
}

void session_close_exact(struct session *s)
{
    exact_words_free(s->exact_words);
    if (s->exact_words)
        exact_tool_done(&s->exact);
}

static size_t find_cell(const struct session *s, const char *label)
{
    for (size_t c = 0; c < s->matrix.count; c++)
        if (str_eq(s->matrix.cells[c].label, label))
            return c;
    return s->matrix.count;
}

int session_exact_functions(struct session *s, const char *label, struct exact_functions *ret,
                            struct error *err)
{
    size_t cell = find_cell(s, label);
    if (!s->exact_words || s->exact.is_cachegrind || cell == s->matrix.count)
        return error_set(err, -ENOTSUP, "functions are not known");
    CLEANUP(memory_freep)
    char *path = memory_printf("%s/assay-functions-XXXXXX", temporary_folder());
    CLEANUP(fd_closep) int fd = mkstemp(path);
    if (fd < 0)
        return error_errno(err, -errno, "%s", path);
    char **words = exact_words(s->spec.exact, path);
    struct session_again again = {.before = words};
    int r = session_run_again(s, cell, 0, &s->runner, &again, &s->watched, err);
    if (r == 0)
        r = exact_functions_read(ret, path, err);
    exact_words_free(words);
    unlink(path);
    return r;
}
