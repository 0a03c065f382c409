/* SPDX-License-Identifier: MIT */
/* What Slurm's programs print, and a task's plan. */
#include "cluster/slurm.h"
#include "base/json_read.h"
#include "base/memory.h"
#include "session/cluster_files.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(memory_freep) char *text = memory_strndup((const char *)data, size);
    struct slurm_tasks tasks = {0};
    struct slurm_nodes nodes = {0};
    struct task_plan plan;
    struct error err;
    slurm_parse_tasks(text, '|', &tasks);
    slurm_parse_tasks(text, '_', &tasks);
    slurm_parse_jobs(text, &tasks);
    slurm_parse_nodes(text, &nodes);
    slurm_tasks_done(&tasks);
    slurm_nodes_done(&nodes);
    if (task_plan_parse(&plan, "fuzz", text, 100, &err) == 0)
        task_plan_done(&plan);
    free(json_member_text(text, "cpu"));
    return 0;
}
