/* SPDX-License-Identifier: MIT */
/* See traced.h. */
#include "cmd/traced.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/term.h"
#include "bill/bill_run.h"
#include "run/command.h"
#include "run/output.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#define O(field) offsetof(struct traced_cli, field)
#define FREQUENCY_HZ 997

const struct option traced_options[] = {
    {0, "shell", OPTION_STRING, O(shell), "SHELL", "run the command with this shell", NULL},
    {'N', "no-shell", OPTION_FLAG, O(no_shell), NULL, "run the command without a shell", NULL},
    {0, "timeout", OPTION_SECONDS, O(timeout_ns), "TIME", "treat a run that takes longer as failed",
     NULL},
    {0, "output", OPTION_STRING, O(output), OUTPUT_VALUE, OUTPUT_HELP, OUTPUT_WORDS},
    {'a', "all", OPTION_FLAG, O(all), NULL, "show every row", NULL},
    {'j', "json", OPTION_OPTIONAL, O(json), "FILE", CMD_JSON_HELP, "file"},
    {0},
};

static int trace(const struct traced_cli *cli, const struct command *command, struct bill *b,
                 struct error *err)
{
    CLEANUP(memory_freep)
    char *folder = memory_printf("%s/assay-trace-XXXXXX", temporary_folder());
    if (!mkdtemp(folder))
        return error_errno(err, -errno, "creating the directory %s for the recording", folder);
    struct bill_settings settings = {.command = command,
                                     .frequency_hz = FREQUENCY_HZ,
                                     .timeout_ns = cli->timeout_ns,
                                     .output = cli->output,
                                     .folder = folder,
                                     .with_calls = true};
    struct timeline timeline = {0};
    struct profile *profile = NULL;
    int r = bill_trace(&settings, &timeline, &profile, err);
    if (r == 0)
        bill_add_run(b, &timeline, profile, NULL, 0);
    else
        timeline_done(&timeline);
    rmdir(folder);
    return r;
}

static int start(const struct traced_cli *cli, char **words, int count, struct command *ret,
                 struct error *err)
{
    if (count > 1) {
        CLEANUP(strbuf_done) struct strbuf text = {0};
        strbuf_put_command(&text, words);
        return command_init(ret, strbuf_text(&text), cli->shell, err);
    }
    bool needs_shell = false;
    int r = command_needs_shell(words[0], &needs_shell, err);
    const char *shell = cli->shell ? cli->shell : needs_shell && !cli->no_shell ? "/bin/sh" : NULL;
    return r < 0 ? r : command_init(ret, words[0], shell, err);
}

static int print(const struct traced_cli *cli, const struct traced_show *show, const struct bill *b,
                 struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    int r = 0;
    if (cli->json) {
        struct json j = {.out = &out};
        json_object(&j, NULL);
        json_string(&j, "format", show->format);
        show->put_json(&j, b);
        json_end(&j);
        strbuf_putc(&out, '\n');
        r = cmd_write(cli->json, &out, err);
        strbuf_clear(&out);
    }
    if (r == 0 && cmd_wants_text(cli->json)) {
        show->put_text(&out, b, cli->all);
        r = cmd_write(NULL, &out, err);
    }
    return r;
}

int traced_run(const struct verb *verb, int argc, char **argv, const struct traced_show *show)
{
    struct error err = {0};
    struct traced_cli cli = {0};
    struct command command = {0};
    struct bill b;
    struct progress progress;
    int first = options_parse(traced_options, &cli, argc, argv, &err);
    if (first == OPTIONS_HELP)
        return cmd_help(verb);
    if (first > 0 && first >= argc)
        first = error_set(&err, -EINVAL, "give the command to run");
    if (first > 0 && cli.shell && cli.no_shell)
        first = error_set(&err, -EINVAL, "--shell and --no-shell cannot be used together");
    if (first < 0)
        return cmd_usage(verb, &err);
    bill_init(&b);
    progress_start(&progress);
    progress_show(&progress, "running the command");
    process_signals_catch();
    int r = start(&cli, argv + first, argc - first, &command, &err);
    if (r == 0)
        r = trace(&cli, &command, &b, &err);
    int signal = process_signals_caught();
    process_signals_restore();
    progress_end(&progress);
    if (r == 0)
        r = print(&cli, show, &b, &err);
    bill_done(&b);
    command_done(&command);
    if (signal)
        return r < 0 ? cmd_interrupted(verb, signal,
                                       "the command had not ended, so there is no table")
                     : 128 + signal;
    return r < 0 ? cmd_fail(verb, &err, EXIT_MEASURE_FAILED) : EXIT_DONE;
}
