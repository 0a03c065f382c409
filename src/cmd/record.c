/* SPDX-License-Identifier: MIT */
/* `assay record`: samples a command, processes or CPUs into a perf.data file. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "cmd/export_portable.h"
#include "counters/filter.h"
#include "sampler/recording.h"

#include <errno.h>
#include <inttypes.h>

struct arguments {
    struct option_list events, filters;
    const char *frequency;
    uint64_t period;
    bool call_graphs;
    const char *call_graph;
    bool off_cpu, wakers;
    bool all_cpus;
    const char *pids, *cpus;
    const char *output;
    const char *pack;
    uint64_t buffer_bytes;
    uint64_t duration_ns;
    bool portable;
    bool quiet;
};

#define WAKERS_RING_BYTES ((uint64_t)4 << 20) /* of each CPU: all wake-ups of the machine */

#define O(field) offsetof(struct arguments, field)

static const struct option options[] = {
    {0, NULL, OPTION_HEADING, 0, NULL, "What to sample", NULL},
    {'e', "event", OPTION_LIST, O(events), "EVENT,…",
     "sample on these events (default: cycles, or cpu-clock without a PMU)", "event"},
    {0, "filter", OPTION_LIST, O(filters), "EXPR",
     "sample only tracepoints whose fields meet this, e.g. 'prev_pid == 7'", NULL},
    {'F', "freq", OPTION_STRING, O(frequency), "HZ",
     "samples per second on each CPU, or 'max' (default 999)", NULL},
    {'c', "count", OPTION_U64, O(period), "N", "take a sample every N events", NULL},
    {'g', NULL, OPTION_FLAG, O(call_graphs), NULL,
     "call graphs, by what fits the program; or '-g fp', '-g dwarf'", NULL},
    {0, "call-graph", OPTION_STRING, O(call_graph), "MODE",
     "call graphs: auto, fp, or dwarf[,BYTES] with a copy of the stack (default 8192)",
     "auto fp dwarf"},
    {0, "off-cpu", OPTION_FLAG, O(off_cpu), NULL,
     "also record where threads wait and for how long (implies -g)", NULL},
    {0, "wakers", OPTION_FLAG, O(wakers), NULL,
     "also record who ends the waits of a command (implies --off-cpu)", NULL},
    {0, NULL, OPTION_HEADING, 0, NULL, "Whom", NULL},
    {'a', "all-cpus", OPTION_FLAG, O(all_cpus), NULL, "sample everything that runs", NULL},
    {'p', "pid", OPTION_STRING, O(pids), "PID,…", "sample these running processes", NULL},
    {'C', "cpu", OPTION_STRING, O(cpus), "LIST", "sample only these CPUs, e.g. 0-3,7", NULL},
    {0, "duration", OPTION_SECONDS, O(duration_ns), "SECONDS", "stop recording after this time",
     NULL},
    {0, NULL, OPTION_HEADING, 0, NULL, "Output", NULL},
    {'o', "output", OPTION_STRING, O(output), "FILE",
     "the output file, '-' for a pipe (default perf.data)", "file"},
    {'z', "compress", OPTION_OPTIONAL, O(pack), "LEVEL", "compress with zstd (default level 1)",
     NULL},
    {0, "portable", OPTION_FLAG, O(portable), NULL,
     "store the names in the file, so that it can be read without the binaries", NULL},
    {0, "buffer", OPTION_BYTES, O(buffer_bytes), "BYTES",
     "size of each CPU's buffer (default 512k, 4M with DWARF)", NULL},
    {'q', "quiet", OPTION_FLAG, O(quiet), NULL, "print only warnings and errors", NULL},
    {0},
};

/* What the arguments come to. */
struct plan {
    struct event_list events, wake_events;
    struct recording_part wakers;
    struct recording_spec spec;
    struct process_spec command;
    int *cpus;
    pid_t *pids;
    struct progress progress;
};

static void plan_done(struct plan *p)
{
    event_list_done(&p->events);
    event_list_done(&p->wake_events);
    free(p->cpus);
    free(p->pids);
}

static int plan_rate(struct plan *p, const struct arguments *a, struct error *err)
{
    p->spec.period = a->period;
    if (a->frequency && a->period)
        return error_set(err, -EINVAL, "-F and -c cannot be used together");
    if (!a->frequency)
        return 0;
    if (str_eq(a->frequency, "max")) {
        p->spec.frequency_hz = sampling_frequency_max();
        return 0;
    }
    int r = parse_u64(a->frequency, &p->spec.frequency_hz, err);
    if (r < 0)
        return error_wrap(err, r, "option -F");
    if (!p->spec.frequency_hz)
        return error_set(err, -EINVAL, "option -F: must be at least one sample per second");
    return 0;
}

static int plan_stacks(struct plan *p, const struct arguments *a, struct error *err)
{
    const char *mode = a->call_graph;
    if (a->call_graphs || a->off_cpu || a->wakers)
        p->spec.stacks = SAMPLING_CHOSEN;
    if (!mode)
        return 0;
    if (str_eq(mode, "auto")) {
        p->spec.stacks = SAMPLING_CHOSEN;
        return 0;
    }
    if (str_eq(mode, "fp")) {
        p->spec.stacks = SAMPLING_FRAME_POINTERS;
        return 0;
    }
    size_t length = strcspn(mode, ",");
    if (length != 5 || strncmp(mode, "dwarf", 5) != 0)
        return error_set(err, -EINVAL, "--call-graph takes auto, fp or dwarf[,BYTES], not '%s'",
                         mode);
    p->spec.stacks = SAMPLING_DWARF;
    if (mode[5] == '\0')
        return 0;
    uint64_t bytes;
    int r = parse_size_bytes(mode + 6, &bytes, err);
    if (r < 0)
        return error_wrap(err, r, "--call-graph dwarf");
    bytes = (bytes + 7) & ~(uint64_t)7;
    if (!bytes || bytes > SAMPLING_STACK_BYTES_MAX)
        return error_set(err, -EINVAL,
                         "--call-graph dwarf: the size of the stack copy must be 8 to %d bytes",
                         SAMPLING_STACK_BYTES_MAX);
    p->spec.stack_bytes = (uint32_t)bytes;
    return 0;
}

static int plan_pids(struct plan *p, const char *list, struct error *err)
{
    size_t capacity = 0;
    while (list && *list) {
        size_t length = strcspn(list, ",");
        CLEANUP(memory_freep) char *word = memory_strndup(list, length);
        uint64_t pid;
        int r = parse_u64(word, &pid, err);
        if (r < 0 || !pid || pid > INT32_MAX)
            return error_set(err, -EINVAL, "option -p: '%s' is not a process ID", word);
        ARRAY_PUSH(p->pids, p->spec.pid_count, capacity) = (pid_t)pid;
        list += length + (list[length] == ',');
    }
    p->spec.pids = p->pids;
    return 0;
}

static int plan_output(struct plan *p, const struct arguments *a, struct error *err)
{
    uint64_t level = 1;
    p->spec.output = a->output ? a->output : "perf.data";
    if (a->portable && str_eq(p->spec.output, "-"))
        return error_set(err, -EINVAL, "--portable writes a file; it cannot be used with -o -");
    if (a->pack && *a->pack) {
        int r = parse_u64(a->pack, &level, err);
        if (r < 0 || level < 1 || level > 22)
            return error_set(err, -EINVAL, "option -z: the level must be between 1 and 22");
    }
    p->spec.pack_level = a->pack ? (int)level : 0;
    p->spec.ring_bytes = 4096;
    while (p->spec.ring_bytes < a->buffer_bytes && p->spec.ring_bytes < (uint64_t)1 << 40)
        p->spec.ring_bytes *= 2;
    if (!a->buffer_bytes)
        p->spec.ring_bytes = 0;
    return 0;
}

static int plan_targets(struct plan *p, const struct arguments *a, int argc, char **argv,
                        struct error *err)
{
    p->spec.whole_cpus = a->all_cpus;
    p->spec.off_cpu = a->off_cpu || a->wakers;
    p->spec.duration_ns = a->duration_ns;
    int r = plan_pids(p, a->pids, err);
    if (r < 0)
        return r;
    if (a->pids && a->all_cpus)
        return error_set(err, -EINVAL, "-a and -p cannot be used together");
    if (a->cpus) {
        r = parse_cpu_list(a->cpus, &p->cpus, &p->spec.cpu_count, err);
        if (r < 0)
            return error_wrap(err, r, "option -C");
        p->spec.cpus = p->cpus;
        p->spec.whole_cpus = !a->pids && (a->all_cpus || argc == 0);
    }
    if (argc > 0) {
        p->command =
            (struct process_spec){.argv = argv, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
        if (str_eq(p->spec.output, "-"))
            p->command.stdout_fd = 2; /* the pipe is for the samples alone */
        p->spec.command = &p->command;
    } else if (!p->spec.whole_cpus && !a->pids) {
        return error_set(err, -EINVAL, "nothing to record: give a command, -a, or -p PID");
    }
    return 0;
}

/* Wake-ups are those of the whole machine: whoever ends a wait of the command may be elsewhere. */
static int plan_wakers(struct plan *p, const struct arguments *a, struct error *err)
{
    if (!a->wakers)
        return 0;
    if (!p->spec.command || p->spec.whole_cpus || p->spec.pid_count)
        return error_set(err, -EINVAL, "--wakers needs a command, without -a, -p and -C");
    int r = event_list_parse(&p->wake_events, "sched:sched_waking", err);
    p->wakers = (struct recording_part){.events = &p->wake_events,
                                        .whole_cpus = true,
                                        .ring_bytes = p->spec.ring_bytes ? p->spec.ring_bytes
                                                                         : WAKERS_RING_BYTES};
    p->spec.beside = &p->wakers;
    p->spec.beside_count = 1;
    return r;
}

static int make_plan(struct plan *p, const struct arguments *a, int argc, char **argv,
                     struct error *err)
{
    int r = filter_parse_events(&p->events, a->events.items, a->events.count, a->filters.items,
                                a->filters.count, err);
    if (r < 0)
        return r;
    p->spec.events = &p->events;
    r = plan_rate(p, a, err);
    if (r == 0)
        r = plan_stacks(p, a, err);
    if (r == 0)
        r = plan_output(p, a, err);
    if (r == 0)
        r = plan_targets(p, a, argc, argv, err);
    if (r == 0)
        r = plan_wakers(p, a, err);
    return r;
}

static bool is_mode(const char *word)
{
    return word && (str_eq(word, "auto") || str_eq(word, "fp") || str_eq(word, "dwarf") ||
                    str_has_prefix(word, "dwarf,"));
}

/* As options_parse, but a call-graph mode may stand behind -g. */
static int parse(struct arguments *a, int argc, char **argv, struct error *err)
{
    int start = 0;
    for (;;) {
        int first = options_parse(options, a, argc - start, argv + start, err);
        if (first <= 0)
            return first;
        first += start;
        bool behind_g = first < argc && first > 0 && str_eq(argv[first - 1], "-g");
        if (!behind_g || !is_mode(argv[first]))
            return first;
        a->call_graph = argv[first];
        start = first;
    }
}

static void show_progress(void *context, uint64_t samples, uint64_t bytes, uint64_t elapsed_ns)
{
    char count[32], size[32];
    progress_show(context, "recording: %" PRIu64 " s, %s samples, %s; Ctrl-C stops",
                  (uint64_t)(elapsed_ns / NS_PER_S),
                  format_thousands(samples, count, sizeof(count)),
                  format_bytes((double)bytes, size, sizeof(size)));
}

static void say_notes(const struct recording_result *result)
{
    for (const char *line = strbuf_text(&result->notes); *line;) {
        size_t length = strcspn(line, "\n");
        fprintf(stderr, "assay record: %.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
}

/* How long the stacks were, and which of them the copies were too short for. */
static void say_copies(const struct recording_result *result, bool quiet)
{
    const struct trim_totals *t = &result->copies;
    char longest[32], most[32];
    if (!t->stacks)
        return;
    format_bytes((double)t->bytes_max, longest, sizeof(longest));
    format_bytes((double)result->stack_bytes, most, sizeof(most));
    double share = 100.0 * (double)t->cut / (double)t->stacks;
    if (t->cut)
        fprintf(stderr,
                "assay record: %.1f %% of the stacks are longer than the copies (%s), so their "
                "outermost callers may be missing%s\n",
                share, most,
                result->stack_bytes < SAMPLING_STACK_BYTES_MAX - 4096
                    ? "; copy more with --call-graph dwarf,65528"
                    : "");
    else if (!quiet)
        fprintf(stderr, "assay record: stacks of up to %s were copied, all of them whole\n",
                longest);
}

static void say_result(const struct plan *p, const struct recording_result *result, bool quiet)
{
    char count[32], lost[32], size[32];
    format_thousands(result->samples, count, sizeof(count));
    format_thousands(result->lost, lost, sizeof(lost));
    format_bytes((double)result->bytes, size, sizeof(size));
    if (!quiet)
        fprintf(stderr, "assay record: %s samples of %s, %s -> %s; %s lost\n", count,
                strbuf_text(&result->events), size, p->spec.output, lost);
    say_copies(result, quiet);
    if (result->lost) {
        double share = 100.0 * (double)result->lost / (double)(result->lost + result->samples);
        fprintf(stderr,
                "assay record: %s records (%.1f %%) were lost because the buffers were full; use "
                "larger ones with --buffer (now %s), or take fewer samples with -F\n",
                lost, share, format_bytes((double)result->ring_bytes, size, sizeof(size)));
    }
    if (result->throttled)
        fprintf(stderr,
                "assay record: the kernel throttled sampling %" PRIu64
                " %s because it took too much time, so the profile has gaps; take fewer samples "
                "with -F\n",
                result->throttled, plural(result->throttled, "time", "times"));
    if (!result->samples && !quiet)
        fprintf(stderr, "assay record: no samples: the time on the CPU was too short, or the event "
                        "did not occur\n");
}

static int finish(const struct plan *p, const struct recording_result *result, int code,
                  const struct error *err, bool quiet)
{
    if (!quiet)
        say_notes(result);
    if (code < 0 && result->exec_failed)
        return cmd_fail(&verb_record, err, process_exit_code_for(code));
    if (code < 0)
        return cmd_fail(&verb_record, err, p->spec.command ? EXIT_MEASURE_FAILED : EXIT_TROUBLE);
    say_result(p, result, quiet);
    return result->has_ended ? process_exit_code(result->command.status) : EXIT_DONE;
}

/* Puts the names in; the recording stays as it is when that fails. */
static int make_portable(const struct plan *p)
{
    struct error err;
    struct profile_cli cli = {0};
    struct profile_options needs = {0};
    int r = export_portable(&cli, p->spec.output, p->spec.output, &needs, &err);
    profile_cli_done(&cli);
    return r < 0 ? cmd_fail(&verb_record, &err, EXIT_TROUBLE) : EXIT_DONE;
}

static int run(int argc, char **argv)
{
    struct error err;
    struct arguments a = {0};
    CLEANUP(plan_done) struct plan plan = {0};
    int first = parse(&a, argc, argv, &err);
    int r = first < 0 ? first : 0;
    if (r == 0 && first == OPTIONS_HELP) {
        free(a.events.items);
        free(a.filters.items);
        return cmd_help(&verb_record);
    }
    if (r == 0)
        r = make_plan(&plan, &a, argc - first, argv + first, &err);
    free(a.events.items);
    free(a.filters.items);
    if (r < 0)
        return cmd_usage(&verb_record, &err);
    CLEANUP(memory_freep) char **words = memory_zalloc((size_t)argc + 2, sizeof(*words));
    words[0] = "assay";
    memcpy(words + 1, argv, (size_t)argc * sizeof(*words));
    plan.spec.command_line = words;
    if (!plan.spec.command && !a.quiet) {
        progress_start(&plan.progress);
        plan.spec.progress = show_progress;
        plan.spec.progress_context = &plan.progress;
    }
    struct recording_result result;
    r = recording_run(&plan.spec, &result, &err);
    if (plan.spec.progress)
        progress_end(&plan.progress);
    int code = finish(&plan, &result, r, &err, a.quiet);
    int named = r == 0 && a.portable ? make_portable(&plan) : EXIT_DONE;
    if (named != EXIT_DONE && code == EXIT_DONE)
        code = plan.spec.command ? EXIT_MEASURE_FAILED : named;
    recording_result_done(&result);
    return code;
}

const struct verb verb_record = {
    .name = "record",
    .summary = "sample a command, processes or CPUs into a perf.data file",
    .synopsis = "[options] [--] CMD…",
    .examples = "  assay record -g -- ./server          call graphs\n"
                "  assay record -g fp -- ./server       call graphs by frame pointers\n"
                "  assay record --off-cpu -- ./server   also where it waits\n"
                "  assay record -a -- sleep 10          the whole machine for ten seconds\n"
                "  assay record -p 1234 --duration 5    a running process\n",
    .options = options,
    .run = run,
};
