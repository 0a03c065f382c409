/* SPDX-License-Identifier: MIT */
/* See settings.h. */
#include "settings.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "tests.h"

#include <errno.h>
#include <unistd.h>

enum { MAPPINGS_MAX = 60000 };
#define OPS_NOT_GIVEN UINT64_MAX

#define DURATION_DEFAULT_NS (5 * NS_PER_S)
#define DURATION_MIN_NS (10 * NS_PER_MS)
#define DURATION_MAX_NS (24 * 3600 * NS_PER_S)

static const struct option options[] = {
    {'t', "tasks", OPTION_STRING, offsetof(struct settings, tasks), "TASKS",
     "how many tasks: 4, 50% of the CPUs, N (all), 1..N, 1,2,4 (default 1)", NULL},
    {0, "processes", OPTION_FLAG, offsetof(struct settings, processes), NULL,
     "run each task as a process (default)", NULL},
    {0, "threads", OPTION_FLAG, offsetof(struct settings, threads), NULL,
     "run each task as a thread of one process; with --processes: first one, then the other", NULL},
    {'s', "seconds", OPTION_SECONDS, offsetof(struct settings, duration_ns), "TIME",
     "measure for this long (default 5s)", NULL},
    {'w', "warmup", OPTION_SECONDS, offsetof(struct settings, warmup_ns), "TIME",
     "warm up for this long (default 1s)", NULL},
    {0, "interval", OPTION_SECONDS, offsetof(struct settings, interval_ns), "TIME",
     "read the counters this often, to see the spread (default 1s)", NULL},
    {'n', "ops", OPTION_U64, offsetof(struct settings, ops), "N",
     "run exactly N operations in each task, instead of for a time; 0: only start up", NULL},
    {0, "mappings", OPTION_U64, offsetof(struct settings, mappings), "N",
     "add this many mappings to each process, as larger programs have (default 0)", NULL},
    {0, "calls", OPTION_FLAG, offsetof(struct settings, calls), NULL,
     "count the system calls of an operation instead of timing it (needs root)", NULL},
    {0, "oversubscribe", OPTION_FLAG, offsetof(struct settings, oversubscribe), NULL,
     "allow more tasks than CPUs", NULL},
    {0, "folder", OPTION_STRING, offsetof(struct settings, folder), "DIR",
     "where to create the temporary directory (default TMPDIR, else /tmp)", "file"},
    {'l', "list", OPTION_FLAG, offsetof(struct settings, list), NULL,
     "list the tests, one per line", NULL},
    {0, "json", OPTION_OPTIONAL, offsetof(struct settings, json), "FILE",
     "print the result as JSON, or write it to a file", "file"},
    {0, "completion", OPTION_STRING, offsetof(struct settings, completion), "SHELL",
     "print the completion script for a shell", "bash zsh fish"},
    {0}};

const struct verb scale_verb = {
    .name = "scale",
    .summary =
        "Measure how many operations per second the kernel does, and how that scales with tasks",
    .synopsis = "TEST…|all [-t TASKS] [--threads|--processes] [options]",
    .examples = "  assay-scale brk2                      one task, five seconds\n"
                "  assay-scale page_fault1 -t 1..N --threads\n"
                "                                        how it scales with threads\n"
                "  assay-scale all -t 1,100% -s 1        every test, one task and all CPUs\n"
                "  assay-scale open1 open2 --calls       which system calls an operation makes\n"
                "  assay-scale --list\n",
    .options = options,
};

static int check_numbers(const struct settings *s, struct error *err)
{
    if (s->duration_ns < DURATION_MIN_NS || s->duration_ns > DURATION_MAX_NS)
        return error_set(err, -EINVAL, "-s: must be between 10ms and 24h");
    if (s->interval_ns < DURATION_MIN_NS)
        return error_set(err, -EINVAL, "--interval: must be at least 10ms");
    if (s->warmup_ns > DURATION_MAX_NS)
        return error_set(err, -EINVAL, "-w: must be at most 24h");
    if (s->calls && s->has_ops && !s->ops)
        return error_set(err, -EINVAL, "--calls needs at least one operation, not --ops 0");
    if (s->mappings > MAPPINGS_MAX)
        return error_set(err, -EINVAL,
                         "--mappings: must be at most %d; Linux allows 65,530 in total",
                         MAPPINGS_MAX);
    return 0;
}

static int choose_tests(struct settings *s, char **words, struct error *err)
{
    const struct scale_test *const *all;
    size_t all_count = tests_list(&all), capacity = 0;
    if (!words[0])
        return error_set(err, -EINVAL, "give one or more tests, or all; --list shows them");
    for (; *words; words++) {
        if (str_eq(*words, "all")) {
            for (size_t i = 0; i < all_count; i++)
                ARRAY_PUSH(s->tests, s->test_count, capacity) = all[i];
            continue;
        }
        const struct scale_test *test = tests_find(*words, err);
        if (!test)
            return -EINVAL;
        ARRAY_PUSH(s->tests, s->test_count, capacity) = test;
    }
    return 0;
}

static int check_folder(struct settings *s, struct error *err)
{
    if (!s->folder || !s->folder[0])
        s->folder = temporary_folder();
    if (access(s->folder, W_OK | X_OK) < 0)
        return error_errno(err, -errno,
                           "%s: cannot create files there; choose another directory with --folder",
                           s->folder);
    return 0;
}

int settings_parse(struct settings *s, int argc, char **argv, struct error *err)
{
    *s = (struct settings){.duration_ns = DURATION_DEFAULT_NS,
                           .warmup_ns = NS_PER_S,
                           .interval_ns = NS_PER_S,
                           .ops = OPS_NOT_GIVEN};
    int first = options_parse_mixed(options, s, argc, argv, err);
    if (first <= 0)
        return first == OPTIONS_HELP ? 1 : first;
    s->has_ops = s->ops != OPS_NOT_GIVEN;
    if (!s->has_ops)
        s->ops = 0;
    if (s->list || s->completion)
        return 0;
    s->modes[0] = s->processes || !s->threads;
    s->modes[1] = s->threads;
    int code = choose_tests(s, argv + first, err);
    if (code == 0)
        code = check_numbers(s, err);
    if (code == 0)
        code = check_folder(s, err);
    if (code == 0)
        code = cpus_init(&s->cpus, err);
    if (code < 0)
        return code;
    unsigned cpu_count = (unsigned)s->cpus.count;
    return counts_parse(s->tasks ? s->tasks : "1", cpu_count,
                        s->oversubscribe && cpu_count < SCALE_TASKS_MAX ? SCALE_TASKS_MAX
                                                                        : cpu_count,
                        &s->counts, err);
}

void settings_done(struct settings *s)
{
    free(s->tests);
    counts_done(&s->counts);
    cpus_done(&s->cpus);
}
