/* SPDX-License-Identifier: MIT */
/* What `assay sched` and `assay locks` share: one traced run of a command. */
#ifndef ASSAY_CMD_TRACED_H
#define ASSAY_CMD_TRACED_H

#include "base/json.h"
#include "bill/bill.h"
#include "cmd/cmd.h"

struct traced_cli {
    const char *shell, *output, *json;
    uint64_t timeout_ns;
    bool no_shell, all;
};

extern const struct option traced_options[];

/* How a verb shows the run. */
struct traced_show {
    const char *format; /* of the JSON */
    void (*put_json)(struct json *j, const struct bill *b);
    void (*put_text)(struct strbuf *out, const struct bill *b, bool all);
};

/* Parses, runs the command once and shows it; an exit code of the verb. */
int traced_run(const struct verb *verb, int argc, char **argv, const struct traced_show *show);

#endif
