/* SPDX-License-Identifier: MIT */
/* The commands around an experiment: see hooks.h. */
#include "experiment/hooks.h"
#include "base/memory.h"
#include "base/process.h"
#include "experiment/command.h"

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
    const struct event_list none = {0};
    struct runner runner;
    CLEANUP(command_done) struct command command = {0};
    int r = command_init(&command, text, h->shell, err);
    if (r < 0)
        return r;
    r = runner_open(&runner, &none, err);
    if (r < 0)
        return r;
    struct run_spec spec = {.argv = command.argv,
                            .program = command.program,
                            .working_dir = h->working_dir,
                            .stdout_to = RUN_KEEP,
                            .stderr_to = RUN_KEEP,
                            .leave_others = true};
    r = runner_run(&runner, &spec, &h->result, err);
    runner_done(&runner);
    return r;
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

void hooks_done(struct hooks *h)
{
    if (h->started)
        worker_stop(&h->worker);
    h->started = false;
    run_result_done(&h->result);
}
