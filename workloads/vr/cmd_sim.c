/* SPDX-License-Identifier: MIT */
/* assay-vr sim: seeds of the simulator. */
#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/term.h"
#include "cmd.h"
#include "planted.h"
#include "sim.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

struct settings {
    uint64_t seed, seeds, operations, view_changes, time_ns;
    bool trace, json;
    const char *planted;
};

static const struct option options[] = {
    {'s', "seed", OPTION_U64, offsetof(struct settings, seed), "N", "the first seed (1)", NULL},
    {'n', "seeds", OPTION_U64, offsetof(struct settings, seeds), "N", "how many seeds (1)", NULL},
    {'t', "time", OPTION_SECONDS, offsetof(struct settings, time_ns), "T",
     "begin no further seed after this time", NULL},
    {'o', "operations", OPTION_U64, offsetof(struct settings, operations), "N",
     "client operations in each seed at least (1000)", NULL},
    {0, "view-changes", OPTION_U64, offsetof(struct settings, view_changes), "N",
     "view changes in each seed at least (3)", NULL},
    {0, "trace", OPTION_FLAG, offsetof(struct settings, trace), NULL,
     "print everything that happens on standard error", NULL},
#ifdef VR_PLANTED
    {0, "planted", OPTION_STRING, offsetof(struct settings, planted), "BUG",
     "run with this planted bug; 'list' names them", NULL},
#endif
    {0, "json", OPTION_FLAG, offsetof(struct settings, json), NULL, "print JSON", NULL},
    {0},
};

static void add(struct sim_result *sum, const struct sim_result *one)
{
    sum->operations += one->operations;
    sum->view_changes += one->view_changes;
    sum->crashes += one->crashes;
    sum->packets += one->packets;
    sum->lost_packets += one->lost_packets;
    sum->state_transfers += one->state_transfers;
    sum->entries_repaired += one->entries_repaired;
    sum->disk_faults += one->disk_faults;
    sum->evictions += one->evictions;
    sum->recoveries += one->recoveries;
    sum->virtual_ns += one->virtual_ns;
    sum->digest = sum->digest * 31 + one->digest;
}

static void print_json(uint64_t seeds, const struct sim_result *sum)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    struct json j = {.out = &out};
    json_object(&j, NULL);
    json_u64(&j, "seeds", seeds);
    json_bool(&j, "failed", sum->failed);
    json_string(&j, "reason", sum->failed ? sum->reason : NULL);
    json_u64(&j, "operations", sum->operations);
    json_u64(&j, "view_changes", sum->view_changes);
    json_u64(&j, "crashes", sum->crashes);
    json_u64(&j, "packets", sum->packets);
    json_u64(&j, "lost_packets", sum->lost_packets);
    json_u64(&j, "state_transfers", sum->state_transfers);
    json_u64(&j, "entries_repaired", sum->entries_repaired);
    json_u64(&j, "disk_faults", sum->disk_faults);
    json_u64(&j, "evictions", sum->evictions);
    json_u64(&j, "recoveries", sum->recoveries);
    json_double(&j, "virtual_s", (double)sum->virtual_ns / 1e9);
    json_u64(&j, "digest", sum->digest);
    json_end(&j);
    puts(strbuf_text(&out));
}

static void print_text(uint64_t seeds, const struct sim_result *sum)
{
    char text[32];
    printf("%lu seeds, no error found\n", seeds);
    printf("  %s client operations in %.0f s of simulated time\n",
           format_thousands(sum->operations, text, sizeof(text)), (double)sum->virtual_ns / 1e9);
    printf("  %lu views, %lu crashes, %lu starts without a sure log\n", sum->view_changes,
           sum->crashes, sum->recoveries);
    printf("  %lu packets, of them %lu lost\n", sum->packets, sum->lost_packets);
    printf("  %lu disk faults, %lu entries repaired, %lu states transferred, %lu evictions\n",
           sum->disk_faults, sum->entries_repaired, sum->state_transfers, sum->evictions);
    printf("  digest %016lx\n", sum->digest);
}

#ifdef VR_PLANTED
static int plant(const char *name)
{
    for (int i = 0; i < PLANTED_COUNT; i++) {
        if (str_eq(name, "list"))
            puts(vr_planted_names[i]);
        else if (str_eq(name, vr_planted_names[i])) {
            vr_planted = (enum vr_planted)i;
            return 0;
        }
    }
    return -1;
}
#endif

/* An assertion of the core failed: say in which seed. */
static volatile uint64_t running_seed;

static void on_abort(int signal)
{
    char text[64];
    int size = snprintf(text, sizeof(text), "assay-vr sim: seed %lu: aborted\n", running_seed);
    if (write(STDERR_FILENO, text, (size_t)size) < 0)
        _exit(signal);
    _exit(1);
}

static int run(int argc, char **argv)
{
    struct settings o = {.seed = 1, .seeds = 1, .operations = 1000, .view_changes = 3};
    int first, code;
    if (!vr_options(&vr_verb_sim, &o, argc, argv, &first, &code))
        return code;
#ifdef VR_PLANTED
    if (o.planted && plant(o.planted))
        return str_eq(o.planted, "list") ? 0 : 2;
#endif
    struct sim_result sum = {0};
    signal(SIGABRT, on_abort);
    struct progress progress;
    progress_start(&progress);
    uint64_t begun_ns = clock_now_ns(), done = 0;
    for (; done < o.seeds && !sum.failed; done++) {
        CLEANUP(strbuf_done) struct strbuf trace = {0};
        struct sim_options one = {o.seed + done, o.operations, (uint32_t)o.view_changes, o.trace};
        struct sim_result result;
        if (o.time_ns && clock_now_ns() - begun_ns > o.time_ns)
            break;
        progress_show(&progress, "seed %lu, %lu done", one.seed, done);
        running_seed = one.seed;
        sim_run(&one, &result, &trace);
        add(&sum, &result);
        if (!result.failed)
            continue;
        progress_end(&progress);
        sum.failed = true;
        memcpy(sum.reason, result.reason, sizeof(sum.reason));
        fputs(strbuf_text(&trace), stderr);
        fprintf(stderr, "assay-vr sim: seed %lu: %s\n", one.seed, result.reason);
    }
    progress_end(&progress);
    if (o.json)
        print_json(done, &sum);
    else if (!sum.failed)
        print_text(done, &sum);
    return sum.failed ? 1 : 0;
}

const struct verb vr_verb_sim = {
    "sim",
    "run seeds of the deterministic simulator",
    "[--seed N] [--seeds N]",
    "  assay-vr sim --seeds 100          a hundred seeds from 1 on\n"
    "  assay-vr sim --seed 7 --trace     everything that happens in seed 7\n",
    options,
    run};
