/* SPDX-License-Identifier: MIT */
/* The process between a verb and a command that is counted: see run.h. */
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/strings.h"
#include "exact/functions.h"
#include "exact/machine.h"
#include "exact/run.h"
#include "vm/exits.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

char **exact_words(const char *word, const char *functions_path)
{
    char **words = memory_zalloc(6, sizeof(*words));
    words[0] = memory_strdup("assay");
    words[1] = memory_strdup(EXACT_CHILD);
    words[2] = memory_strdup(word);
    words[3] = memory_strdup(functions_path ? functions_path : "");
    words[4] = memory_strdup("--");
    return words;
}

void exact_words_free(char **words)
{
    for (size_t i = 0; words && words[i]; i++)
        free(words[i]);
    free(words);
}

void exact_emulate(struct command *c, const char *word, const char *functions_path)
{
    char **words = exact_words(word, functions_path);
    char **argv = command_join_words(words, c->argv);
    free(words);
    free(c->argv);
    free(c->program);
    c->argv = argv;
    c->program = memory_strdup("/proc/self/exe");
}

/* To whoever counts the runs. */
static void report(const struct exact_tool *tool, const struct exact_result *result)
{
    const char *number = getenv("ASSAY_METRICS_FD");
    if (!number || !*number)
        return;
    int fd = (int)strtol(number, NULL, 10);
    fd_write_all(fd, strbuf_text(&result->metrics), result->metrics.length);
    for (const struct exact_metric *m = exact_tool_metrics(tool); m->name; m++)
        dprintf(fd, "assay.metric %s %llu\n", m->name,
                (unsigned long long)m->value_of(&result->counts));
}

/* Ends as the command did. */
static _Noreturn void end_like(int status)
{
    if (WIFSIGNALED(status)) {
        sigset_t all;
        sigemptyset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    _exit(process_exit_code(status));
}

bool exact_machine_failed(int exit_code)
{
    return exit_code >= VM_EXIT_NO_QEMU && exit_code <= VM_EXIT_NO_EVENTS;
}

_Noreturn void exact_child(int argc, char **argv)
{
    struct error err = {0};
    struct exact_tool tool;
    struct exact_result result;
    struct exact_functions functions = {0};
    int start_code = 0;
    if (argc < 6)
        _exit(125);
    int r = exact_tool_find(&tool, argv[2], NULL, &err);
    process_adopt_orphans();
    process_signals_catch();
    if (r == 0)
        r = exact_run(&tool, argv + 5, &result, &start_code, &err);
    if (r == 0 && *argv[3] && !tool.is_cachegrind) {
        exact_functions_find(&functions, &result.counts);
        r = exact_functions_write(&functions, argv[3], &err);
    }
    process_signals_restore();
    if (r < 0) {
        fprintf(stderr, "assay: %s\n", err.message);
        _exit(err.exit_code    ? err.exit_code
              : start_code < 0 ? process_exit_code_for(start_code)
                               : 125);
    }
    if (result.ran_out) {
        fprintf(stderr, "assay: " EXACT_RAN_OUT "\n", EXACT_MEMORY_BYTES >> 20);
        _exit(VM_EXIT_NO_MEMORY);
    }
    report(&tool, &result);
    end_like(result.status);
}
