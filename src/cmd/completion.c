/* SPDX-License-Identifier: MIT */
/* `assay completion SHELL`: prints the completion script for bash or zsh, made from the verbs'
 * own tables of options, so that it cannot fall behind them. */
#include "base/completion.h"
#include "base/memory.h"
#include "cmd/cmd.h"

#include <errno.h>

static int run(int argc, char **argv)
{
    struct error err;
    int first = options_parse(verb_completion.options, NULL, argc, argv, &err);
    if (first < 0)
        return cmd_usage(&verb_completion, &err);
    if (first == OPTIONS_HELP)
        return cmd_help(&verb_completion);
    CLEANUP(strbuf_done) struct strbuf out = {0};
    struct completion completion = {.program = "assay", .verbs = verbs, .words = "--version help"};
    int r = first == argc - 1 ? completion_write(&out, &completion, argv[first], &err)
                              : error_set(&err, -EINVAL, "name one shell: bash or zsh");
    if (r < 0)
        return cmd_usage(&verb_completion, &err);
    fputs(strbuf_text(&out), stdout);
    return EXIT_DONE;
}

static const struct option options[] = {{0}};

const struct verb verb_completion = {
    .name = "completion",
    .summary = "print the completion script for a shell",
    .synopsis = "bash|zsh",
    .options = options,
    .run = run,
};
