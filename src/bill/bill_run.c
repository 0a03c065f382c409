/* SPDX-License-Identifier: MIT */
/* Runs a command for its bill: see bill_run.h. */
#include "bill/bill_run.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "run/runner.h"
#include "sampler/recording.h"
#include "timeline/timeline_read.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    ROUNDS_DEFAULT = 5,
    ROUNDS_LEAST = 3,
    ROUNDS_SECONDS = 40, /* fewer rounds when they would take longer than this */
    FREQUENCY_DEFAULT = 1999,
    FREQUENCY_MOST = 9999,
    SAMPLES_WANTED = 1000, /* of a run */
    CALLS_MOST = 15000,    /* in a second: more of them, and only samples tell of system calls */
    SWITCHES_MOST = 20000, /* in a second: more of them, and no stack is copied at each */
};
#define RING_BYTES ((uint64_t)16 << 20)       /* for each CPU and kind of event */
#define RINGS_BYTES_MAX ((uint64_t)256 << 20) /* of one kind, over all CPUs */
#define STACK_BYTES 4096

struct bill_plan {
    uint64_t frequency_hz;
    bool off_cpu, calls;
    bool files; /* it reads or writes storage: see which files */
    uint64_t rounds;
};

struct bill_events {
    struct event_list sampled, calls, scheduler;
};

static int parse_events(struct bill_events *e, struct error *err)
{
    int r = event_list_parse(&e->sampled, "cpu-clock", err);
    if (r == 0)
        r = event_list_parse(&e->calls, TIMELINE_OWN_EVENTS, err);
    return r == 0 ? event_list_parse(&e->scheduler, TIMELINE_CPU_EVENTS, err) : r;
}

static void events_done(struct bill_events *e)
{
    event_list_done(&e->sampled);
    event_list_done(&e->calls);
    event_list_done(&e->scheduler);
}

/* By a first run, in which system calls were counted. */
static struct bill_plan plan_runs(const struct bill_settings *s, const struct run_result *first)
{
    double seconds = (double)first->wall_ns / 1e9;
    double calls = first->value_count ? (double)first->values[0].raw : 0;
    double switches = (double)(first->usage.ru_nvcsw + first->usage.ru_nivcsw);
    struct bill_plan plan = {.frequency_hz = s->frequency_hz,
                             .rounds = s->rounds,
                             .calls = calls < CALLS_MOST * fmax(seconds, 0.02),
                             .off_cpu = switches < SWITCHES_MOST * fmax(seconds, 0.05),
                             .files = first->usage.ru_inblock || first->usage.ru_oublock};
    if (!plan.frequency_hz) {
        double wanted = seconds > 0 ? SAMPLES_WANTED / seconds : FREQUENCY_MOST;
        plan.frequency_hz = (uint64_t)fmin(fmax(wanted, FREQUENCY_DEFAULT), FREQUENCY_MOST);
    }
    if (plan.frequency_hz > sampling_frequency_max())
        plan.frequency_hz = sampling_frequency_max();
    if (!plan.rounds)
        plan.rounds = 2 * seconds * ROUNDS_DEFAULT > ROUNDS_SECONDS ? ROUNDS_LEAST : ROUNDS_DEFAULT;
    return plan;
}

static int run_plain(struct runner *runner, const struct bill_settings *s,
                     struct run_result *result, struct error *err)
{
    const struct command *c = s->command;
    struct run_spec spec = {.argv = c->argv,
                            .program = c->program,
                            .stdout_to = output_parse(s->output),
                            .output_path = s->output,
                            .stderr_to = RUN_KEEP,
                            .timeout_ns = s->timeout_ns};
    int r = runner_run(runner, &spec, result, err);
    return r < 0 ? r : run_check(result, c->text, err);
}

/* Where the traced command's output goes: a file in memory, unless it is wanted elsewhere. */
static int open_output(const struct bill_settings *s, struct error *err)
{
    int fd = -1;
    switch (output_parse(s->output)) {
    case RUN_SHOW:
        return -1;
    case RUN_DISCARD:
        fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
        break;
    case RUN_FILE:
        fd = open(s->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        break;
    default:
        fd = memfd_create("output", MFD_CLOEXEC);
        break;
    }
    return fd < 0 ? error_errno(err, -errno, "opening the command's standard output") : fd;
}

struct traced_run {
    struct recording_result result;
    char *path;
};

static int check_end(const struct bill_settings *s, const struct recording_result *r,
                     struct error *err)
{
    if (r->signal)
        return error_set(err, -EINTR, "interrupted");
    int code = process_exit_code(r->command.status);
    return code ? error_set(err, -EIO, "%s: exit code %d in a traced run", s->command->text, code)
                : 0;
}

static uint64_t ring_bytes(void)
{
    uint64_t size = RING_BYTES, cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
    while (size > 65536 && size * cpus > RINGS_BYTES_MAX)
        size /= 2;
    return size;
}

static int record(const struct bill_settings *s, const struct bill_plan *plan,
                  const struct bill_events *events, const char *path,
                  struct recording_result *result, struct error *err)
{
    CLEANUP(fd_closep) int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct error output_error = {0};
    CLEANUP(fd_closep) int output_fd = open_output(s, &output_error);
    if (output_fd < -1) {
        *err = output_error;
        return output_fd;
    }
    struct process_spec command = {.argv = s->command->argv,
                                   .stdin_fd = null_fd,
                                   .stdout_fd = output_fd,
                                   .stderr_fd = null_fd};
    const struct recording_part beside[] = {
        {.events = &events->scheduler,
         .whole_cpus = true,
         .kernel_stacks = true,
         .ring_bytes = ring_bytes()},
        {.events = &events->calls, .ring_bytes = ring_bytes()},
    };
    struct recording_spec spec = {.events = &events->sampled,
                                  .frequency_hz = plan->frequency_hz,
                                  .stacks = SAMPLING_DWARF,
                                  .stack_bytes = STACK_BYTES,
                                  .off_cpu = plan->off_cpu,
                                  .beside = beside,
                                  .beside_count = plan->calls ? 2 : 1,
                                  .command = &command,
                                  .output = path,
                                  .command_line = s->command->argv};
    int r = recording_run(&spec, result, err);
    return r < 0 ? r : check_end(s, result, err);
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int read_traced(const struct bill_settings *s, const struct bill_plan *plan,
                       const char *path, const struct recording_result *result,
                       struct timeline *ret_timeline, struct profile **ret_profile,
                       struct error *err)
{
    struct timeline_recording recording = {.path = path,
                                           .pid = (uint32_t)result->pid,
                                           .name = last_part(s->command->argv[0]),
                                           .start_ns = result->start_ns,
                                           .without_calls = !plan->calls};
    return timeline_read(ret_timeline, ret_profile, &recording, err);
}

int bill_trace(const struct bill_settings *s, struct timeline *ret_timeline,
               struct profile **ret_profile, struct error *err)
{
    struct bill_events events = {0};
    struct recording_result result = {0};
    struct bill_plan plan = {
        .frequency_hz = s->frequency_hz, .off_cpu = true, .calls = s->with_calls};
    CLEANUP(memory_freep) char *path = memory_printf("%s/trace.data", s->folder);
    int r = parse_events(&events, err);
    if (r == 0)
        r = record(s, &plan, &events, path, &result, err);
    if (r == 0)
        r = read_traced(s, &plan, path, &result, ret_timeline, ret_profile, err);
    unlink(path);
    recording_result_done(&result);
    events_done(&events);
    return r;
}

static double seconds_ns(struct timeval t)
{
    return (double)t.tv_sec * 1e9 + (double)t.tv_usec * 1e3;
}

static double cpu_ns(const struct rusage *u)
{
    return seconds_ns(u->ru_utime) + seconds_ns(u->ru_stime);
}

static int run_traced(struct bill *b, struct bill_doubts *doubts, const struct bill_settings *s,
                      const struct bill_plan *plan, const struct bill_events *events, size_t round,
                      struct error *err)
{
    CLEANUP(memory_freep) char *path = memory_printf("%s/bill-%zu.data", s->folder, round + 1);
    struct recording_result result = {0};
    struct timeline timeline = {0};
    struct profile *profile = NULL;
    struct files *files = plan->files ? files_watch() : NULL;
    int r = record(s, plan, events, path, &result, err);
    files_stop(files);
    if (r == 0)
        r = read_traced(s, plan, path, &result, &timeline, &profile, err);
    if (r == 0) {
        doubts->lost += result.lost;
        doubts->records += result.samples;
        doubts->unseen += timeline.unseen;
        doubts->strange += timeline.strange;
        doubts->is_full |= timeline.is_full;
        if (round == 0)
            strbuf_puts(&doubts->notes, strbuf_text(&result.notes));
        bill_add_run(b, &timeline, profile, files, cpu_ns(&result.command.usage));
    } else {
        timeline_done(&timeline);
    }
    files_free(files);
    recording_result_done(&result);
    return r;
}

/* One run that nothing is kept of but how long it took and how many calls it made. */
static int try_out(const struct bill_settings *s, struct bill_plan *ret_plan, struct error *err)
{
    struct event_list events = {0};
    struct runner runner;
    struct run_result result = {0};
    s->progress(s->context, "trying", 0, 1);
    int r = event_list_parse(&events, "raw_syscalls:sys_enter", err);
    if (r == 0)
        r = runner_open(&runner, &events, err);
    if (r == 0) {
        r = run_plain(&runner, s, &result, err);
        *ret_plan = plan_runs(s, &result);
        runner_done(&runner);
    }
    run_result_done(&result);
    event_list_done(&events);
    return r;
}

static int run_rounds(struct bill *b, struct bill_doubts *doubts, const struct bill_settings *s,
                      const struct bill_plan *plan, struct runner *runner, struct error *err)
{
    struct bill_events events = {0};
    struct run_result result = {0};
    int r = parse_events(&events, err);
    for (size_t round = 0; round < plan->rounds && r == 0; round++) {
        s->progress(s->context, "measuring", round, plan->rounds);
        r = run_plain(runner, s, &result, err);
        if (r < 0)
            break;
        bill_add_wall(b, (double)result.wall_ns, cpu_ns(&result.usage));
        s->progress(s->context, "tracing", round, plan->rounds);
        r = run_traced(b, doubts, s, plan, &events, round, err);
    }
    run_result_done(&result);
    events_done(&events);
    return r;
}

/* Without permission to trace: what the kernel tells everybody about a run. */
static int run_untraced(struct bill *b, struct bill_doubts *d, const struct bill_settings *s,
                        struct runner *runner, struct error *err)
{
    struct run_result result = {0};
    size_t rounds = s->rounds ? s->rounds : ROUNDS_DEFAULT;
    CLEANUP(memory_freep) double *user = memory_zalloc(rounds + 1, sizeof(*user));
    CLEANUP(memory_freep) double *system = memory_zalloc(rounds + 1, sizeof(*system));
    int r = 0;
    for (size_t round = 0; round < rounds && r == 0; round++) {
        s->progress(s->context, "measuring", round, rounds);
        r = run_plain(runner, s, &result, err);
        const struct rusage *u = &result.usage;
        user[round] = seconds_ns(u->ru_utime);
        system[round] = seconds_ns(u->ru_stime);
        d->major_faults += (double)u->ru_majflt / (double)rounds;
        d->switches_own += (double)u->ru_nvcsw / (double)rounds;
        d->switches_forced += (double)u->ru_nivcsw / (double)rounds;
        bill_add_wall(b, (double)result.wall_ns, cpu_ns(u));
    }
    d->user = bill_estimate(user, rounds);
    d->system = bill_estimate(system, rounds);
    run_result_done(&result);
    return r;
}

int bill_run(struct bill *b, struct bill_doubts *doubts, const struct bill_settings *s,
             struct error *err)
{
    struct event_list none = {0};
    struct runner runner;
    struct bill_plan plan = {0};
    *doubts = (struct bill_doubts){0};
    int r = try_out(s, &plan, err);
    doubts->is_denied = r == -EACCES || r == -EPERM;
    if (doubts->is_denied)
        strbuf_printf(&doubts->notes, "%s\n", err->message);
    if (r == 0 || doubts->is_denied)
        r = runner_open(&runner, &none, err);
    if (r < 0)
        return r;
    doubts->sampled_calls = !doubts->is_denied && !plan.calls;
    r = doubts->is_denied ? run_untraced(b, doubts, s, &runner, err)
                          : run_rounds(b, doubts, s, &plan, &runner, err);
    if (r == 0)
        bill_sum(b);
    runner_done(&runner);
    return r;
}

void bill_doubts_done(struct bill_doubts *d)
{
    strbuf_done(&d->notes);
}
