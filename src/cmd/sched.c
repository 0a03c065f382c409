/* SPDX-License-Identifier: MIT */
/* `assay sched CMD`: what the scheduler did to the threads of a command. */
#include "base/memory.h"
#include "bill/schedule.h"
#include "cmd/traced.h"
#include "report/bill/threads.h"

static void print(const struct traced_cli *cli, const struct bill *b)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    CLEANUP(schedule_done) struct schedule s;
    const struct timeline *t = &b->runs[0].timeline;
    schedule_make(&s, t);
    if (cli->json) {
        struct json j = {.out = &out};
        json_object(&j, NULL);
        json_string(&j, "format", "assay-sched-1");
        report_schedule_json(&j, &s, t);
        json_end(&j);
        strbuf_putc(&out, '\n');
    } else {
        report_schedule_text(&out, &s, t, cli->all);
    }
    fwrite(strbuf_text(&out), 1, out.length, stdout);
}

static int run(int argc, char **argv)
{
    return traced_run(&verb_sched, argc, argv, print);
}

const struct verb verb_sched = {
    .name = "sched",
    .summary = "show how long a command's threads ran, waited and were delayed, and by whom",
    .synopsis = "[options] [--] CMD…",
    .examples = "  assay sched make -j4\n"
                "  assay sched --json ./server-test | jq '.threads[0].delayed_by'\n",
    .options = traced_options,
    .run = run,
};
