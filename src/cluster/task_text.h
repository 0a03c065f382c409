/* SPDX-License-Identifier: MIT */
/* What a task is told to do, as text; session/cluster_files.h reads it. */
#ifndef ASSAY_CLUSTER_TASK_TEXT_H
#define ASSAY_CLUSTER_TASK_TEXT_H

#include "base/strings.h"
#include "cluster/ledger.h"
#include "session/cluster_files.h"

/* What is written of some units. */
struct task_text {
    const struct ledger *ledger;
    const struct ledger_unit *units;
    size_t unit_count;
    const char *uuid;
    enum task_mode mode;
    const bool *only; /* per cell of the matrix: the others are left out; NULL for none */
};
/* The text of T.task. */
void task_plan_write(struct strbuf *out, const struct task_text *text);

#endif
