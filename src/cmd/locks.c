/* SPDX-License-Identifier: MIT */
/* `assay locks CMD`: which locks the threads of a command waited for. */
#include "base/memory.h"
#include "bill/contention.h"
#include "cmd/traced.h"
#include "report/bill/threads.h"

static void print(const struct traced_cli *cli, const struct bill *b)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    CLEANUP(contention_done) struct contention c;
    contention_make(&c, b);
    if (cli->json) {
        struct json j = {.out = &out};
        json_object(&j, NULL);
        json_string(&j, "format", "assay-locks-1");
        report_contention_json(&j, &c);
        json_end(&j);
        strbuf_putc(&out, '\n');
    } else {
        report_contention_text(&out, &c, cli->all);
    }
    fwrite(strbuf_text(&out), 1, out.length, stdout);
}

static int run(int argc, char **argv)
{
    return traced_run(&verb_locks, argc, argv, print);
}

const struct verb verb_locks = {
    .name = "locks",
    .summary = "show which locks a command's threads waited for, where, and who held them",
    .synopsis = "[options] [--] CMD…",
    .examples = "  assay locks ./server-test\n"
                "  assay locks --json ./server-test | jq '.locks[0]'\n",
    .options = traced_options,
    .run = run,
};
