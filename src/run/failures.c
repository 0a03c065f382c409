/* SPDX-License-Identifier: MIT */
/* Commands that fail in rounds: see failures.h. */
#include "run/failures.h"
#include "base/memory.h"
#include "base/process.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

enum {
    TRIES_FIRST = 2, /* failures after which one that never succeeded is not tried again */
    TRIES_ROW = 5,   /* the same for one that did succeed, in a row */
    WORDS_BYTES = 160,
};

int failure_codes_parse(struct failure_codes *codes, const char *text, struct error *err)
{
    *codes = (struct failure_codes){.all = !*text || str_eq(text, "all-non-zero")};
    while (!codes->all && *text) {
        size_t length = strcspn(text, ",");
        CLEANUP(memory_freep) char *word = memory_strndup(text, length);
        uint64_t code;
        if (parse_u64(word, &code, NULL) < 0 || code > 255 ||
            codes->count == ARRAY_COUNT(codes->items))
            return error_set(err, -EINVAL,
                             "--ignore-failure=%s: write exit codes from 1 to 255, e.g. 1,3, or "
                             "nothing for all",
                             text);
        codes->items[codes->count++] = (int)code;
        text += length + (text[length] == ',');
    }
    return 0;
}

bool failure_is_allowed(const struct failure_codes *codes, const struct run_result *result)
{
    if (codes->all)
        return true;
    bool plain = WIFEXITED(result->status) && !result->timed_out && !result->not_preloaded;
    for (size_t i = 0; plain && i < codes->count; i++)
        if (codes->items[i] == WEXITSTATUS(result->status))
            return true;
    return false;
}

void failure_done(struct rounds_failure *f)
{
    free(f->what);
    free(f->text);
    strbuf_done(&f->end);
    strbuf_done(&f->output_stdout);
    strbuf_done(&f->output_stderr);
    *f = (struct rounds_failure){0};
}

void failure_keep(struct rounds_failure *f, const char *what, const char *text,
                  const struct run_result *result, bool stdout_was_discarded)
{
    failure_done(f);
    f->what = memory_strdup(what);
    f->text = memory_strdup(text);
    run_describe_end(result, &f->end);
    strbuf_append(&f->output_stdout, strbuf_text(&result->kept_stdout), result->kept_stdout.length);
    strbuf_append(&f->output_stderr, strbuf_text(&result->kept_stderr), result->kept_stderr.length);
    f->stdout_was_discarded = stdout_was_discarded;
    f->exit_code = result->timed_out                          ? 124
                   : result->not_preloaded && !result->status ? 126
                                                              : process_exit_code(result->status);
}

void failure_last_words(const struct rounds_failure *f, struct strbuf *out)
{
    const struct strbuf *text = f->output_stderr.length ? &f->output_stderr : &f->output_stdout;
    const char *data = strbuf_text(text);
    size_t end = text->length;
    while (end && (data[end - 1] == '\n' || data[end - 1] == ' '))
        end--;
    size_t start = end;
    while (start && data[start - 1] != '\n')
        start--;
    strbuf_put_safe(out, data + start, end - start, WORDS_BYTES);
}

void contestant_state_note(struct contestant_state *state, bool failed)
{
    state->run_count++;
    state->failed_count += failed;
    state->failed_in_row = failed ? state->failed_in_row + 1 : 0;
    bool never = state->failed_count == state->run_count;
    state->is_out = state->failed_in_row >= (never ? TRIES_FIRST : TRIES_ROW);
}
