/* SPDX-License-Identifier: MIT */
/* A signal to oneself, and back from its handler. */
#include "scale.h"

#include <signal.h>

static void on_signal(int number)
{
    (void)number;
}

static int run(struct task *t, struct error *err)
{
    if (sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_signal}, NULL) < 0)
        return task_failed(err, "sigaction");
    task_start(t);
    do {
        if (raise(SIGUSR1) != 0)
            return task_failed(err, "raise");
    } while (task_count(t, 1));
    return 0;
}

SCALE_TEST(signal1, .summary = "raise a signal that has a handler",
           .calls = "tgkill rt_sigreturn getpid? gettid? rt_sigprocmask?", .run = run);
