/* SPDX-License-Identifier: MIT */
/* What `assay sched` and `assay locks` share: one traced run of a command. */
#ifndef ASSAY_CMD_TRACED_H
#define ASSAY_CMD_TRACED_H

#include "base/json.h"
#include "bill/bill.h"
#include "cmd/cmd.h"

struct traced_cli {
    const char *shell, *output;
    uint64_t timeout_ns;
    bool no_shell, all, json;
};

extern const struct option traced_options[];

/* Parses, runs the command once, and calls `print` with the run: an exit code of the verb. */
int traced_run(const struct verb *verb, int argc, char **argv,
               void (*print)(const struct traced_cli *cli, const struct bill *b));

#endif
