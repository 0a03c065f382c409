/* SPDX-License-Identifier: MIT */
/* `assay locks CMD`: which locks the threads of a command waited for. */
#include "base/memory.h"
#include "bill/contention.h"
#include "cmd/traced.h"
#include "report/bill/threads.h"

static void put_json(struct json *j, const struct bill *b)
{
    CLEANUP(contention_done) struct contention c;
    contention_make(&c, b);
    report_contention_json(j, &c);
}

static void put_text(struct strbuf *out, const struct bill *b, bool all)
{
    CLEANUP(contention_done) struct contention c;
    contention_make(&c, b);
    report_contention_text(out, &c, all);
}

static int run(int argc, char **argv)
{
    static const struct traced_show show = {"assay-locks-1", put_json, put_text};
    return traced_run(&verb_locks, argc, argv, &show);
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
