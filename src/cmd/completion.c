/* SPDX-License-Identifier: MIT */
/* `assay completion SHELL`: prints the completion script for a shell, made from the verbs'
 * own tables of options, so that it cannot fall behind them. */
#include "base/completion.h"
#include "base/memory.h"
#include "cmd/cmd.h"
#include "cmd/completion_words.h"

#include <errno.h>
#include <stddef.h>

struct completion_options {
    const char *list;
};

static int run(int argc, char **argv)
{
    struct error err;
    struct completion_options o = {0};
    int first = options_parse(verb_completion.options, &o, argc, argv, &err);
    if (first < 0)
        return cmd_usage(&verb_completion, &err);
    if (first == OPTIONS_HELP)
        return cmd_help(&verb_completion);
    if (o.list && completion_print_words(o.list))
        return EXIT_DONE;
    CLEANUP(strbuf_done) struct strbuf out = {0};
    struct completion completion = {.program = "assay", .verbs = verbs, .words = "--version help"};
    int r = first == argc - 1 ? completion_write(&out, &completion, argv[first], &err)
                              : error_set(&err, -EINVAL, "name one shell: bash, zsh or fish");
    if (r < 0)
        return cmd_usage(&verb_completion, &err);
    fputs(strbuf_text(&out), stdout);
    return EXIT_DONE;
}

static const struct option options[] = {
    {0, "list", OPTION_STRING, offsetof(struct completion_options, list), "KIND",
     "list words for the completion scripts: specs, monitors, experiments, cells, metrics or sides",
     "specs monitors experiments cells metrics sides"},
    {0},
};

const struct verb verb_completion = {
    .name = "completion",
    .summary = "print the completion script for a shell",
    .synopsis = "bash|zsh|fish",
    .words = "bash zsh fish",
    .options = options,
    .run = run,
};
