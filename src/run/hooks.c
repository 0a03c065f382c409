/* SPDX-License-Identifier: MIT */
/* The commands around an experiment: see hooks.h. */
#include "run/hooks.h"
#include "base/memory.h"
#include "base/process.h"
#include "run/command.h"
#include "run/memfile.h"

static const struct event_list no_events;

struct job {
    struct hooks *h;
    const char *text;
    struct error *err;
    int result;
};

int hooks_open(struct hooks *h, const char *shell, const char *working_dir, struct error *err)
{
    *h = (struct hooks){.shell = shell, .working_dir = working_dir};
    int r = worker_start(&h->worker, err);
    h->started = r == 0;
    return r;
}

static int run_here(struct hooks *h, const char *text, struct error *err)
{
    CLEANUP(command_done) struct command command = {0};
    int r = command_init(&command, text, h->shell, err);
    if (r < 0)
        return r;
    if (!h->runner_opened) {
        r = runner_open(&h->runner, &no_events, err);
        h->runner_opened = r == 0;
        if (r < 0)
            return r;
    }
    struct run_spec spec = {.argv = command.argv,
                            .program = command.program,
                            .working_dir = h->working_dir,
                            .stdout_to = RUN_KEEP,
                            .stderr_to = RUN_KEEP,
                            .leave_others = true};
    return runner_run(&h->runner, &spec, &h->result, err);
}

static void do_job(void *context)
{
    struct job *job = context;
    job->result = run_here(job->h, job->text, job->err);
}

int hooks_run(struct hooks *h, const char *text, struct error *err)
{
    struct job job = {.h = h, .text = text, .err = err};
    /* A server that a hook starts is not assay's to end. */
    process_disown_orphans();
    worker_begin(&h->worker, do_job, &job);
    worker_wait(&h->worker);
    process_adopt_orphans();
    return job.result;
}

void hooks_trim(const struct hooks *h)
{
    if (!h->runner_opened)
        return;
    memfile_trim(h->runner.stdout_fd, 0, RUN_KEEP_BYTES);
    memfile_trim(h->runner.stderr_fd, 0, RUN_KEEP_BYTES);
}

void hooks_done(struct hooks *h)
{
    if (h->runner_opened)
        runner_done(&h->runner);
    h->runner_opened = false;
    if (h->started)
        worker_stop(&h->worker);
    h->started = false;
    run_result_done(&h->result);
}
