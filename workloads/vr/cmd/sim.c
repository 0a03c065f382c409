/* SPDX-License-Identifier: MIT */
/*
 * assay-vr sim: seeds of the simulator.  Each of the jobs is a process of its own that runs every
 * n-th seed and sends what happened through a pipe; results are taken in the order of the seeds, so
 * sums and digests do not depend on the number of jobs, and "all seeds up to here" is always true.
 */
#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/term.h"
#include "vr/cmd/cmd.h"
#include "vr/core/planted.h"
#include "vr/sim/jobs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct settings {
    uint64_t seed, operations, view_changes, time_ns, jobs;
    bool trace, json;
    const char *seeds, *planted, *resume;
};

static const struct option options[] = {
    {'s', "seed", OPTION_U64, offsetof(struct settings, seed), "N", "the first seed (1)", NULL},
    {'n', "seeds", OPTION_STRING, offsetof(struct settings, seeds), "N",
     "number of seeds (1), or a range: A..B", NULL},
    {'j', "jobs", OPTION_U64, offsetof(struct settings, jobs), "N",
     "seeds to run at once (1); 0: one for each CPU", NULL},
    {'t', "time", OPTION_SECONDS, offsetof(struct settings, time_ns), "T",
     "start no more seeds after this time", NULL},
    {0, "resume", OPTION_STRING, offsetof(struct settings, resume), "FILE",
     "keep the count in FILE, and resume from there", "file"},
    {'o', "operations", OPTION_U64, offsetof(struct settings, operations), "N",
     "minimum client operations in each seed (1000)", NULL},
    {0, "view-changes", OPTION_U64, offsetof(struct settings, view_changes), "N",
     "minimum view changes in each seed (3)", NULL},
    {0, "trace", OPTION_FLAG, offsetof(struct settings, trace), NULL,
     "print everything that happens to standard error", NULL},
#ifdef VR_PLANTED
    {0, "planted", OPTION_STRING, offsetof(struct settings, planted), "BUG",
     "run with this planted bug; 'list' names them", NULL},
#endif
    {0, "json", OPTION_FLAG, offsetof(struct settings, json), NULL, "print JSON", NULL},
    {0},
};

static void print_json(const struct sim_sum *sum)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    struct json j = {.out = &out};
    json_object(&j, NULL);
    json_u64(&j, "first", sum->first);
    json_u64(&j, "seeds", sum->next - sum->first);
    json_bool(&j, "failed", sum->failed);
    if (sum->failed)
        json_u64(&j, "failed_seed", sum->failed_seed);
    json_string(&j, "reason", sum->failed ? sum->reason : NULL);
    for (unsigned i = 0; i < SIM_COUNTS; i++)
        json_u64(&j, sim_count_names[i], sum->count[i]);
    json_u64(&j, "digest", sum->digest);
    json_end(&j);
    puts(strbuf_text(&out));
}

static void print_text(const struct sim_sum *sum)
{
    char text[32];
    printf("%s seeds, %" PRIu64 " to %" PRIu64 ", no error found\n",
           format_thousands(sum->next - sum->first, text, sizeof(text)), sum->first, sum->next - 1);
    for (unsigned i = 0; i < SIM_COUNTS; i++) {
        char name[32];
        snprintf(name, sizeof(name), "%s", sim_count_names[i]);
        for (char *at = name; *at; at++)
            *at = *at == '_' ? ' ' : *at;
        printf("  %-20s %18s\n", name, format_thousands(sum->count[i], text, sizeof(text)));
    }
    printf("  digest               %18" PRIx64 "\n", sum->digest);
}

#ifdef VR_PLANTED
static int plant(const char *name)
{
    for (int i = 0; i < PLANTED_COUNT; i++) {
        if (str_eq(name, "list")) {
            if (i < PLANTED_SAFETY_END)
                puts(vr_planted_names[i]);
        } else if (str_eq(name, vr_planted_names[i])) {
            vr_planted = (enum vr_planted)i;
            return 0;
        }
    }
    return -1;
}
#endif

/* "A..B" or a number of seeds. */
static bool parse_seeds(const struct settings *o, uint64_t *ret_first, uint64_t *ret_end)
{
    *ret_first = o->seed;
    *ret_end = o->seed + 1;
    if (!o->seeds)
        return true;
    char *end;
    errno = 0;
    uint64_t number = strtoull(o->seeds, &end, 10);
    if (errno || end == o->seeds)
        return false;
    if (*end == 0) {
        *ret_end = o->seed + number;
        return true;
    }
    if (strncmp(end, "..", 2) != 0)
        return false;
    const char *last = end + 2;
    *ret_first = number;
    *ret_end = strtoull(last, &end, 10) + 1;
    return !errno && end != last && *end == 0 && *ret_end > number;
}

static int run(int argc, char **argv)
{
    struct settings o = {.seed = 1, .operations = 1000, .view_changes = 3, .jobs = 1};
    struct error err = {0};
    int code;
    if (!vr_options(&vr_verb_sim, &o, argc, argv, NULL, &code))
        return code;
#ifdef VR_PLANTED
    if (o.planted && plant(o.planted))
        return str_eq(o.planted, "list") ? 0 : 2;
#endif
    struct sim_jobs jobs = {
        .one = {.operations = o.operations,
                .view_changes = (uint32_t)o.view_changes,
                .trace = o.trace},
        .jobs = (unsigned)(o.jobs ? o.jobs : (uint64_t)sysconf(_SC_NPROCESSORS_ONLN)),
        .resume = o.resume};
    if (!parse_seeds(&o, &jobs.sum.first, &jobs.end)) {
        error_set(&err, -EINVAL, "--seeds must be a number or A..B, not '%s'", o.seeds);
        return vr_fail(&vr_verb_sim, &err, 2);
    }
    if (o.jobs > 1024) {
        error_set(&err, -EINVAL, "--jobs %lu: the maximum is 1024", o.jobs);
        return vr_fail(&vr_verb_sim, &err, 2);
    }
    jobs.until_ns = o.time_ns ? clock_now_ns() + o.time_ns : 0;
    if (sim_jobs_run(&jobs, &err))
        return vr_fail(&vr_verb_sim, &err, 2);
    if (o.json)
        print_json(&jobs.sum);
    else if (!jobs.sum.failed)
        print_text(&jobs.sum);
    return jobs.sum.failed ? 1 : 0;
}

const struct verb vr_verb_sim = {
    "sim",
    "run seeds of the deterministic simulator",
    "[--seed N] [--seeds N|A..B]",
    "  assay-vr sim --seeds 100          seeds 1 to 100\n"
    "  assay-vr sim --seed 7 --trace     everything that happens in seed 7\n"
    "  assay-vr sim --seeds 1..1000000 --jobs 0 --resume seeds.count\n"
    "                                    a million seeds, resumed as often as needed\n",
    options,
    run,
    NULL};
