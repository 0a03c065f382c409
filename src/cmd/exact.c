/* SPDX-License-Identifier: MIT */
/* Finding what counts exactly, for the verbs with --exact: the first time, a machine boots. */
#include "base/clock.h"
#include "base/strings.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "exact/tool.h"

static struct progress progress;
static uint64_t started_ns;

static void show(const char *what)
{
    char text[32];
    progress_show(&progress, "preparing an emulated machine, once: %s, %s", what,
                  format_duration((double)(clock_now_ns() - started_ns), text, sizeof(text)));
}

int cmd_find_exact(struct exact_tool *tool, const char *word, struct error *err)
{
    started_ns = clock_now_ns();
    progress_start(&progress);
    int r = exact_tool_find(tool, word, show, err);
    progress_end(&progress);
    return r;
}
