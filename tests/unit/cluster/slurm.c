/* SPDX-License-Identifier: MIT */
/* What Slurm's programs print. */
#include "cluster/slurm.h"
#include "session/slurm_tool.h"
#include "test.h"

TEST(the_queue)
{
    struct slurm_tasks t = {0};
    slurm_parse_tasks(
        "12|0|RUNNING|n1|1-00:00:00\n12|3|PENDING||UNLIMITED\n12|4|NODE_FAIL|n2,n3\nrubbish\n"
        "9|N/A|RUNNING|n1\n12|5|CANCELLED by 0|\n12|6|OUT_OF_MEMORY|n4\n",
        '|', &t);
    CHECK_INT(t.count, 5);
    CHECK_INT(t.items[0].state, SLURM_RUNS);
    CHECK_STR(t.items[0].node, "n1");
    CHECK_STR(t.items[0].limit, "1-00:00:00");
    CHECK_INT(t.items[1].state, SLURM_WAITS);
    CHECK_STR(t.items[1].node, "");
    CHECK_STR(t.items[1].limit, "UNLIMITED");
    CHECK_STR(t.items[2].limit, "");
    CHECK_INT(t.items[2].state, SLURM_NODE_FAILED);
    CHECK_STR(t.items[2].node, "n2");
    CHECK_INT(t.items[3].state, SLURM_CANCELLED);
    CHECK_INT(t.items[4].state, SLURM_FAILED);
    CHECK_STR(t.items[4].word, "OUT_OF_MEMORY");
    CHECK_INT(t.items[4].index, 6);
    slurm_tasks_done(&t);
}

TEST(accounting)
{
    struct slurm_tasks t = {0};
    slurm_parse_tasks("12_0|COMPLETED|n1\n12_1|CANCELLED by 1000|n2|00:10:00\n13|RUNNING|n1\n"
                      "12_[2-5]|PENDING|None assigned\n12_7|NODE_FAIL|n3\n12_8|FAILED\n",
                      '_', &t);
    CHECK_INT(t.count, 3);
    CHECK_INT(t.items[0].state, SLURM_COMPLETED);
    CHECK_INT(t.items[1].state, SLURM_CANCELLED);
    CHECK_STR(t.items[1].word, "CANCELLED");
    CHECK_STR(t.items[1].limit, "00:10:00");
    CHECK_STR(t.items[2].node, "n3");
    slurm_tasks_done(&t);
}

TEST(jobs_of_scontrol)
{
    struct slurm_tasks t = {0};
    slurm_parse_jobs("JobId=2 ArrayJobId=1 ArrayTaskId=0 JobName=wrap JobState=COMPLETED "
                     "Reason=None TimeLimit=00:01:00"
                     " ReqNodeList=(null) ExcNodeList=(null) NodeList=n1 BatchHost=n1\n"
                     "JobId=3 ArrayJobId=1 ArrayTaskId=1-3%2 JobState=PENDING NodeList=\n"
                     "JobId=4 JobState=RUNNING NodeList=n2\n",
                     &t);
    CHECK_INT(t.count, 1);
    CHECK_INT(t.items[0].job, 1);
    CHECK_STR(t.items[0].node, "n1");
    CHECK_STR(t.items[0].limit, "00:01:00");
    slurm_tasks_done(&t);
}

TEST(nodes)
{
    struct slurm_nodes n = {0};
    slurm_parse_nodes("n1|idle|none\nn2|down*|Not responding\nn3|mixed\nn1|idle\nn4|drained|a disk "
                      "| fails\nn5|allocated\nn6|idle*\n",
                      &n);
    CHECK_INT(n.count, 6);
    CHECK(n.items[0].usable && n.items[2].usable && n.items[4].usable);
    CHECK(!n.items[1].usable && !n.items[3].usable && !n.items[5].usable);
    CHECK_STR(n.items[0].reason, "");
    CHECK_STR(n.items[1].reason, "Not responding");
    CHECK_STR(n.items[3].reason, "a disk | fails");
    slurm_nodes_done(&n);
}

TEST(what_to_do_about_it)
{
    CHECK(strstr(slurm_remedy("slurm_load_node error: Unable to contact slurm controller (connect "
                              "failure)"),
                 "scontrol ping"));
    CHECK(strstr(slurm_remedy("sinfo: error: fetch_config: DNS SRV lookup failed sinfo: fatal: "
                              "Could not establish a configuration source"),
                 "SLURM_CONF"));
    CHECK(strstr(slurm_remedy("error: Munge encode failed: Failed to access \"/run/munge\""),
                 "munged must run"));
    CHECK_STR(slurm_remedy("Job violates a limit"), "");
}
