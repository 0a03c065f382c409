/* SPDX-License-Identifier: MIT */
/* What the verbs that watch something live (trace, top) share: whom, and for how long. */
#ifndef ASSAY_CMD_LIVE_OPTIONS_H
#define ASSAY_CMD_LIVE_OPTIONS_H

#include "cmd/cmd.h"
#include "live/follow.h"

struct live_cli {
    const char *pids;
    bool all;
    uint64_t duration_ns;
};

#define LIVE_CLI_OPTIONS(type, member)                                                             \
    {0, NULL, OPTION_HEADING, 0, NULL, "Whom", NULL}, {'p',           "pid",                       \
                                                       OPTION_STRING, offsetof(type, member.pids), \
                                                       "PID,…",       "these running processes",   \
                                                       NULL},                                      \
        {'a',         "all-cpus",                                                                  \
         OPTION_FLAG, offsetof(type, member.all),                                                  \
         NULL,        "everything that runs on the machine",                                       \
         NULL},                                                                                    \
    {                                                                                              \
        0, "duration", OPTION_SECONDS, offsetof(type, member.duration_ns), "SECONDS",              \
            "with -p or -a: stop after this time (default: Ctrl-C)", NULL                          \
    }

struct live_plan {
    struct follow_spec spec;
    struct process_spec command;
    pid_t *pids;
    bool exec_failed;
    int exit_code;
};

/* "12,34" of -p; the caller frees the list, also after a failure. */
int live_parse_pids(const char *list, pid_t **ret_pids, size_t *ret_count, struct error *err);
int live_plan_make(struct live_plan *p, const struct live_cli *cli, int argc, char **argv,
                   struct error *err);
void live_plan_done(struct live_plan *p);
/* Says why it failed; the exit code. */
int live_plan_fail(const struct live_plan *p, const struct verb *verb, int code,
                   const struct error *err);
void live_say_losses(const char *verb, const struct follow *f);

#endif
