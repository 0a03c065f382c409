/* SPDX-License-Identifier: MIT */
/* `assay explain COMMAND`: the bill of one command. */
#ifndef ASSAY_CMD_EXPLAIN_BILL_H
#define ASSAY_CMD_EXPLAIN_BILL_H

#include "run/command.h"

#include <stdint.h>

struct explain_bill {
    const struct command *command;
    uint64_t rounds, frequency_hz, timeout_ns;
    const char *output, *folder, *html;
    const char *json; /* where to, as cmd_write has it; NULL: text only */
    bool all;
};

/* Runs, prints; an exit code of the verb. */
int explain_bill(const struct explain_bill *cli);

#endif
