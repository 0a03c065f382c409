/* SPDX-License-Identifier: MIT */
/* `assay doctor`: what can be measured on this machine, how well, and what to change. */
#include "base/memory.h"
#include "cmd/cmd.h"
#include "machine/machine.h"

struct doctor_options {
    bool json, quick;
};

static int run(int argc, char **argv)
{
    struct error err;
    struct doctor_options o = {0};
    int first = options_parse(verb_doctor.options, &o, argc, argv, &err);
    if (first < 0)
        return cmd_usage(&verb_doctor, &err);
    if (first == OPTIONS_HELP)
        return cmd_help(&verb_doctor);
    struct machine m;
    machine_probe(&m, o.quick ? MACHINE_QUICK : MACHINE_FULL);
    CLEANUP(strbuf_done) struct strbuf out = {0};
    struct json j = {.out = &out};
    machine_write_json(&m, &j, NULL);
    fputs(strbuf_text(&out), stdout);
    machine_done(&m);
    return EXIT_DONE;
}

static const struct option options[] = {
    {0, "json", OPTION_FLAG, offsetof(struct doctor_options, json), NULL, "print JSON", NULL},
    {0, "quick", OPTION_FLAG, offsetof(struct doctor_options, quick), NULL,
     "leave the slower trials out", NULL},
    {0},
};

const struct verb verb_doctor = {
    .name = "doctor",
    .summary = "what can be measured here, how well, and what to change",
    .synopsis = "[options]",
    .options = options,
    .run = run,
};
