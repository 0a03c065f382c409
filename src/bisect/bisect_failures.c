/* SPDX-License-Identifier: MIT */
/* Runs of a bisect that fail: now and then, or always.  See bisect_internal.h. */
#include "base/memory.h"
#include "bisect/bisect_internal.h"
#include "exact/run.h"

#include <errno.h>

enum {
    FAILURES_MAX = 10,    /* of a commit that has run, in one round */
    NEW_FAILURES_MAX = 4, /* of one that has not: then it cannot */
    TIMED_OUT = 124,
};

/* Whether a commit that has never run may have failed by chance.  Waiting for it to hang again
 * takes too long. */
static bool may_be_chance(const struct bisect *b, const struct rounds *done)
{
    return done->start_code >= 0 && done->failure.exit_code != TIMED_OUT && !*b->settings.exact;
}

int bisect_after_failure(struct bisect *b, const struct bisection_action *a,
                         const struct rounds *done, size_t *failures, bool is_warm,
                         struct error *err)
{
    size_t which = done->last_started, commit = a->commits[which];
    bool has_run = which < 2 && b->run_count > 0; /* an end of the range, in an earlier step */
    bool is_new = a->step->round_count == 0 && !has_run && !is_warm;
    CLEANUP(strbuf_done) struct strbuf safe = {0};
    const struct strbuf *said = &done->failure.output_stderr;
    size_t from = said->length > 300 ? said->length - 300 : 0;
    if (said->length)
        strbuf_put_safe(&safe, said->data + from, said->length - from, 300);
    const char *how =
        done->failure.end.length ? strbuf_text(&done->failure.end) : "it cannot be started";
    size_t most = may_be_chance(b, done) ? (is_new ? NEW_FAILURES_MAX : FAILURES_MAX)
                                         : (is_new ? 1 : NEW_FAILURES_MAX);
    if (++failures[which] < most)
        return bisect_journal_retry(b, commit, err);
    if (which < 2) {
        int code = done->failure.exit_code;
        error_set(err, -ECANCELED, "%.12s (%s) fails to run: %s%s%s", b->commits[commit].hash,
                  b->commits[commit].subject, how, safe.length ? "; its output: " : "",
                  strbuf_text(&safe));
        bool is_machines = b->settings.exact && exact_machine_failed(code);
        return error_end_with(err, is_machines ? code : 0, -ECANCELED);
    }
    strbuf_printf(&b->notes, "skipping %.12s, which fails to run: %s\n", b->commits[commit].hash,
                  how);
    int r = bisect_journal_build(b, commit, "unusable", err);
    if (r == 0)
        bisection_unusable(&b->search, commit);
    return r;
}
