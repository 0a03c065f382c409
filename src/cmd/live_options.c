/* SPDX-License-Identifier: MIT */
/* Whom to watch: see live_options.h. */
#include "cmd/live_options.h"
#include "base/memory.h"

#include <errno.h>
#include <inttypes.h>

int live_parse_pids(const char *list, pid_t **ret_pids, size_t *ret_count, struct error *err)
{
    size_t capacity = 0;
    while (list && *list) {
        size_t length = strcspn(list, ",");
        CLEANUP(memory_freep) char *word = memory_strndup(list, length);
        uint64_t pid;
        int r = parse_u64(word, &pid, err);
        if (r < 0 || !pid || pid > INT32_MAX)
            return error_set(err, -EINVAL, "option -p: '%s' is not a process ID", word);
        ARRAY_PUSH(*ret_pids, *ret_count, capacity) = (pid_t)pid;
        list += length + (list[length] == ',');
    }
    return 0;
}

int live_plan_make(struct live_plan *p, const struct live_cli *cli, int argc, char **argv,
                   struct error *err)
{
    int r = live_parse_pids(cli->pids, &p->pids, &p->spec.pid_count, err);
    p->spec.pids = p->pids;
    if (r < 0)
        return r;
    p->spec.whole_machine = cli->all;
    p->spec.duration_ns = cli->duration_ns;
    if ((cli->pids != NULL) + cli->all + (argc > 0) > 1)
        return error_set(err, -EINVAL, "give a command, -p or -a: one of them");
    if (!cli->pids && !cli->all && argc == 0)
        return error_set(err, -EINVAL, "nothing to watch: give a command, -p PID, or -a");
    if (argc == 0)
        return 0;
    p->command =
        (struct process_spec){.argv = argv, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    p->spec.command = &p->command;
    return 0;
}

void live_plan_done(struct live_plan *p)
{
    free(p->pids);
}

int live_plan_fail(const struct live_plan *p, const struct verb *verb, int code,
                   const struct error *err)
{
    if (p->exec_failed)
        return cmd_fail(verb, err, process_exit_code_for(code));
    return cmd_fail(verb, err, p->spec.command ? EXIT_MEASURE_FAILED : EXIT_TROUBLE);
}

void live_say_losses(const char *verb, const struct follow *f)
{
    if (f->trace.lost)
        fprintf(stderr,
                "assay %s: %" PRIu64 " %s lost because the buffers were full: what is shown is "
                "not complete\n",
                verb, f->trace.lost, plural(f->trace.lost, "record was", "records were"));
}
