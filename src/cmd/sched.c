/* SPDX-License-Identifier: MIT */
/* `assay sched CMD`: what the scheduler did to the threads of a command. */
#include "base/memory.h"
#include "bill/schedule.h"
#include "cmd/traced.h"
#include "report/bill/threads.h"

static void put_json(struct json *j, const struct bill *b)
{
    CLEANUP(schedule_done) struct schedule s;
    schedule_make(&s, &b->runs[0].timeline);
    report_schedule_json(j, &s, &b->runs[0].timeline);
}

static void put_text(struct strbuf *out, const struct bill *b, bool all)
{
    CLEANUP(schedule_done) struct schedule s;
    schedule_make(&s, &b->runs[0].timeline);
    report_schedule_text(out, &s, &b->runs[0].timeline, all);
}

static int run(int argc, char **argv)
{
    static const struct traced_show show = {"assay-sched-1", put_json, put_text};
    return traced_run(&verb_sched, argc, argv, &show);
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
