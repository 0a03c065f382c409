/* SPDX-License-Identifier: MIT */
/* A recording from start to end: see recording.h. */
#include "sampler/recording.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "counters/online.h"
#include "sampler/facts.h"
#include "sampler/pack.h"
#include "sampler/stacks.h"
#include "sampler/synthesize.h"
#include "sampler/tracing_data.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define TICK_NS NS_PER_S /* how often rings are emptied even when they are not half full */

struct recording {
    const struct recording_spec *spec;
    struct recording_result *result;
    struct sampling parts[RECORDING_PARTS_MAX]; /* the main one, then those beside it */
    size_t part_count;
    struct perfdata_writer writer;
    struct perfdata_writer_event *events;
    size_t event_count, ring_count; /* of all parts */
    struct mapped_files files;
    struct packer packer;
    bool is_packing;
    struct strbuf packed;
    size_t pack_chunk_max;

    struct process_held held;
    pid_t *tasks; /* what is sampled, when not whole CPUs */
    size_t task_count, task_capacity;
    int *all_cpus;
    const int *cpus;
    size_t cpu_count;

    struct pollfd *polls; /* the rings, then the processes */
    size_t process_count;
    uint64_t start_ns, tick_ns, checkpoint_ns;
    uint64_t wall_clock_ns, record_clock_ns; /* the same moment */
};

/* Each event takes a descriptor on each CPU.  The command keeps the limit that it had. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static int choose_targets(struct recording *r, struct error *err)
{
    const struct recording_spec *spec = r->spec;
    if (spec->cpus) {
        r->cpus = spec->cpus;
        r->cpu_count = spec->cpu_count;
    } else {
        int code = online_cpus(&r->all_cpus, &r->cpu_count, err);
        if (code < 0)
            return code;
        r->cpus = r->all_cpus;
    }
    for (size_t i = 0; i < spec->pid_count; i++) {
        int code = online_threads(spec->pids[i], &r->tasks, &r->task_count, &r->task_capacity, err);
        if (code < 0)
            return code;
    }
    if (r->held.pid > 0 && !spec->pid_count)
        ARRAY_PUSH(r->tasks, r->task_count, r->task_capacity) = r->held.pid;
    return 0;
}

/* Takes a part that is open; what it notes is for the user. */
static void add_part(struct recording *r)
{
    struct sampling *s = &r->parts[r->part_count++];
    s->rings.files = &r->files;
    for (size_t i = 0; i < s->rings.count; i++)
        if (s->rings.items[i].size > r->result->ring_bytes)
            r->result->ring_bytes = s->rings.items[i].size;
    r->event_count += s->event_count;
    r->ring_count += s->rings.count;
    r->pack_chunk_max = r->result->ring_bytes;
    strbuf_puts(&r->result->notes, strbuf_text(&s->notes));
}

static int open_beside(struct recording *r, struct error *err)
{
    const struct recording_spec *spec = r->spec;
    for (size_t i = 0; i < spec->beside_count && r->part_count < RECORDING_PARTS_MAX; i++) {
        const struct recording_part *p = &spec->beside[i];
        struct sampling_spec s = {
            .events = p->events,
            .stacks = p->kernel_stacks ? SAMPLING_FRAME_POINTERS : SAMPLING_NO_STACKS,
            .kernel_stacks = true,
            .no_tracking = true,
            .whole_cpus = p->whole_cpus,
            .on_exec = !p->whole_cpus,
            .beside_others = true,
            .tasks = r->tasks,
            .task_count = r->task_count,
            .cpus = r->cpus,
            .cpu_count = r->cpu_count,
            .ring_bytes = p->ring_bytes,
        };
        int code = sampling_open(&r->parts[r->part_count], &s, err);
        if (code < 0)
            return code;
        add_part(r);
    }
    return 0;
}

static int open_events(struct recording *r, struct error *err)
{
    const struct recording_spec *spec = r->spec;
    struct sampling_spec s = {
        .events = spec->events,
        .frequency_hz = spec->frequency_hz,
        .period = spec->period,
        .stacks = spec->stacks,
        .stack_bytes = spec->stack_bytes ? spec->stack_bytes : SAMPLING_STACK_BYTES_DEFAULT,
        .off_cpu = spec->off_cpu,
        .whole_cpus = spec->whole_cpus,
        .on_exec = spec->command && !spec->whole_cpus && !spec->pid_count,
        .tasks = r->tasks,
        .task_count = r->task_count,
        .cpus = r->cpus,
        .cpu_count = r->cpu_count,
        .ring_bytes = spec->ring_bytes,
        .beside_others = spec->beside_count,
    };
    if (spec->stacks == SAMPLING_CHOSEN)
        stacks_choose(spec, &s, &r->result->notes);
    bool sized_here = spec->stacks == SAMPLING_CHOSEN && s.stacks == SAMPLING_DWARF;
    int code = sized_here ? stacks_open(&r->parts[0], spec, &s, err)
                          : sampling_open(&r->parts[0], &s, err);
    if (code < 0)
        return code;
    r->result->stacks = s.stacks;
    r->result->stack_bytes = s.stack_bytes;
    add_part(r);
    return open_beside(r, err);
}

/* The event at this place, counted through all parts. */
static const struct sampling_event *event_at(const struct recording *r, size_t index)
{
    size_t part = 0;
    while (index >= r->parts[part].event_count)
        index -= r->parts[part++].event_count;
    return &r->parts[part].events[index];
}

static int open_file(struct recording *r, struct error *err)
{
    r->events = memory_zalloc(r->event_count, sizeof(*r->events));
    for (size_t i = 0; i < r->event_count; i++) {
        const struct sampling_event *e = event_at(r, i);
        r->events[i] = (struct perfdata_writer_event){
            .attr = e->attr, .name = e->name, .ids = e->ids, .id_count = e->id_count};
        if (e->attr.config == PERF_COUNT_SW_DUMMY && e->attr.type == PERF_TYPE_SOFTWARE)
            continue;
        if (r->result->events.length)
            strbuf_puts(&r->result->events, ", ");
        strbuf_puts(&r->result->events, e->name);
    }
    return perfdata_writer_open(&r->writer, r->spec->output, r->events, r->event_count, err);
}

/* In a stream the formats of tracepoints must come before their samples. */
static int write_tracing_data(struct recording *r, struct error *err)
{
    CLEANUP(memory_freep) const char **names = memory_zalloc(r->event_count, sizeof(*names));
    CLEANUP(arena_done) struct arena arena = {0};
    size_t count = 0;
    for (size_t i = 0; i < r->event_count; i++) {
        const struct sampling_event *e = event_at(r, i);
        char probe[128];
        snprintf(probe, sizeof(probe), DYNAMIC_SYSTEM ":%s",
                 e->dynamic.name ? e->dynamic.name : "");
        if (e->attr.type == PERF_TYPE_TRACEPOINT)
            names[count++] = e->dynamic.name ? arena_strdup(&arena, probe) : e->name;
    }
    CLEANUP(strbuf_done) struct strbuf data = {0};
    int code = tracing_data_write(&data, names, count, err);
    if (code < 0 || !data.length)
        return code;
    if (!r->writer.is_pipe) {
        struct strbuf *feature = perfdata_writer_feature(&r->writer, PERFDATA_FEATURE_TRACING_DATA);
        strbuf_append(feature, data.data, data.length);
        return 0;
    }
    strbuf_pad(&data, '\0', -data.length & 7);
    struct {
        struct perf_event_header header;
        uint32_t size;
    } head = {{.type = PERFDATA_HEADER_TRACING_DATA, .size = 12}, (uint32_t)data.length};
    code = perfdata_writer_append(&r->writer, &head, 12, err);
    return code < 0 ? code : perfdata_writer_append(&r->writer, data.data, data.length, err);
}

/* What is there already: the kernel, and the processes that are not started by us. */
static int write_past(struct recording *r, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    uint64_t type = r->parts[0].events[0].attr.sample_type;
    uint64_t id_bits =
        PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
    struct synthesis s = {.out = &out,
                          .sample_id_size = 8 * (size_t)__builtin_popcountll(type & id_bits),
                          .files = &r->files};
    if (r->parts[0].kernel_sampled && !synthesize_kernel(&s))
        strbuf_puts(&r->result->notes,
                    "the kernel hides its addresses, so its functions will have no names; to show "
                    "them: sudo sysctl kernel.kptr_restrict=0\n");
    if (r->spec->whole_cpus) {
        synthesize_all_processes(&s);
        synthesize_bpf(&s);
    }
    for (size_t i = 0; i < r->spec->pid_count; i++)
        synthesize_process(&s, r->spec->pids[i]);
    return out.length ? perfdata_writer_append(&r->writer, out.data, out.length, err) : 0;
}

static int write_packed(struct recording *r, struct rings *rings, struct error *err)
{
    strbuf_clear(&r->packed);
    for (size_t i = 0; i < rings->vector_count; i++) {
        int code = packer_add(&r->packer, rings->vector[i].iov_base, rings->vector[i].iov_len,
                              &r->packed, err);
        if (code < 0)
            return code;
    }
    return perfdata_writer_append(&r->writer, r->packed.data, r->packed.length, err);
}

/* Carries what is in the rings of one part to the file. */
static int drain_part(struct recording *r, struct rings *rings, bool *ret_any, struct error *err)
{
    if (!rings_collect(rings))
        return 0;
    *ret_any = true;
    int code = r->is_packing ? write_packed(r, rings, err)
                             : perfdata_writer_append_vector(&r->writer, rings->vector,
                                                             rings->vector_count, err);
    rings_release(rings);
    return code;
}

/* Empties all rings once.  The mark behind them lets readers put the records in order. */
static int drain(struct recording *r, struct error *err)
{
    static const struct perf_event_header round = {.type = PERFDATA_FINISHED_ROUND,
                                                   .size = sizeof(round)};
    bool any = false;
    int code = 0;
    for (size_t i = 0; i < r->part_count && code == 0; i++)
        code = drain_part(r, &r->parts[i].rings, &any, err);
    if (!any)
        return code;
    if (code == 0)
        code = perfdata_writer_append(&r->writer, &round, sizeof(round), err);
    r->result->rounds++;
    r->result->samples = code == 0 ? sampling_totals(r->parts, r->part_count).samples
                                   : r->result->samples + r->writer.kept_samples;
    return code;
}

/* A descriptor that becomes readable when the process ends; -1 when it has ended already. */
static int watch_process(pid_t pid, int *ret_fd, struct error *err)
{
    *ret_fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (*ret_fd < 0 && errno != ESRCH)
        return error_errno(err, -errno, "waiting for process %d (pidfd_open, Linux 5.3)", (int)pid);
    return 0;
}

/* The rings, then the command or the processes. */
static int prepare_polls(struct recording *r, struct error *err)
{
    bool has_command = r->spec->command;
    size_t process_count = has_command ? 1 : r->spec->pid_count;
    r->polls = memory_zalloc(r->ring_count + process_count, sizeof(*r->polls));
    for (size_t part = 0, place = 0; part < r->part_count; part++)
        for (size_t i = 0; i < r->parts[part].rings.count; i++)
            r->polls[place++] =
                (struct pollfd){.fd = r->parts[part].rings.items[i].fd, .events = POLLIN};
    while (r->process_count < process_count) {
        struct pollfd *p = &r->polls[r->ring_count + r->process_count];
        pid_t pid = has_command ? r->held.pid : r->spec->pids[r->process_count];
        int code = watch_process(pid, &p->fd, err);
        if (code < 0)
            return code;
        p->events = POLLIN;
        r->process_count++;
    }
    return 0;
}

/* Whether all that was waited for has ended. */
static bool look_at_processes(struct recording *r)
{
    struct pollfd *processes = r->polls + r->ring_count;
    size_t alive = 0;
    for (size_t i = 0; i < r->process_count; i++) {
        if (processes[i].fd >= 0 && processes[i].revents)
            fd_closep(&processes[i].fd);
        alive += processes[i].fd >= 0;
    }
    return r->process_count && !alive;
}

static void forget_hung_up(struct recording *r)
{
    for (size_t i = 0; i < r->ring_count; i++)
        if (r->polls[i].revents & (POLLHUP | POLLERR))
            r->polls[i].fd = -1;
}

/* Whether the recording is over for a reason of its own. */
static bool is_over(struct recording *r, uint64_t now_ns)
{
    r->result->signal = process_signals_caught();
    if (r->result->signal && !r->spec->command)
        return true;
    return r->spec->duration_ns && now_ns - r->start_ns >= r->spec->duration_ns;
}

static uint64_t next_wake_ns(const struct recording *r)
{
    uint64_t wake_ns = r->tick_ns + TICK_NS;
    uint64_t end_ns = r->start_ns + r->spec->duration_ns;
    return r->spec->duration_ns && end_ns < wake_ns ? end_ns : wake_ns;
}

static void tick(struct recording *r, uint64_t now_ns)
{
    if (now_ns - r->tick_ns < TICK_NS)
        return;
    r->tick_ns = now_ns;
    perfdata_writer_checkpoint(&r->writer, NULL);
    if (r->spec->progress)
        r->spec->progress(r->spec->progress_context,
                          sampling_totals(r->parts, r->part_count).samples, r->writer.data_size,
                          now_ns - r->start_ns);
}

/* Carries records to the file until the recording is over. */
static int carry(struct recording *r, struct error *err)
{
    size_t poll_count = r->ring_count + r->process_count;
    r->tick_ns = clock_now_ns();
    for (;;) {
        uint64_t now_ns = clock_now_ns();
        if (is_over(r, now_ns))
            return 0;
        uint64_t wake_ns = next_wake_ns(r);
        struct timespec left = timespec_from_ns(wake_ns > now_ns ? wake_ns - now_ns : 0);
        int ready = ppoll(r->polls, poll_count, &left, NULL);
        if (ready < 0 && errno != EINTR)
            return error_errno(err, -errno, "waiting for samples");
        if (ready < 0)
            continue;
        bool over = look_at_processes(r);
        forget_hung_up(r);
        int code = drain(r, err);
        if (code < 0 || over)
            return code;
        tick(r, clock_now_ns());
    }
}

/* What was lost at the very end is in no LOST record; nor is what did not fit onto the disk.  As
 * perf does, the sum stands at the end without a time: see perfdata_lost. */
static int write_losses(struct recording *r, struct error *err)
{
    struct ring_totals t = sampling_totals(r->parts, r->part_count);
    uint64_t counted = 0, unsaid = t.samples - r->result->samples;
    for (size_t i = 0; i < r->part_count; i++)
        counted += sampling_lost(&r->parts[i]);
    if (counted > t.lost)
        unsaid += counted - t.lost;
    r->result->lost = t.lost + unsaid;
    if (!r->result->lost)
        return 0;
    uint64_t type = r->parts[0].events[0].attr.sample_type;
    uint64_t id_bits =
        PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
    size_t id_size = 8 * (size_t)__builtin_popcountll(type & id_bits);
    uint64_t record[2 + 4] = {0};
    struct perf_event_header head = {.type = PERF_RECORD_LOST_SAMPLES,
                                     .size = (uint16_t)(16 + id_size)};
    memcpy(record, &head, sizeof(head));
    record[1] = r->result->lost;
    return perfdata_writer_append(&r->writer, record, head.size, err);
}

static int finish_file(struct recording *r, struct error *err)
{
    struct ring_totals t = sampling_totals(r->parts, r->part_count);
    struct facts facts = {
        .events = r->events,
        .event_count = r->event_count,
        .command_line = r->spec->command_line,
        .files = &r->files,
        .first_sample_ns = t.first_sample_ns,
        .last_sample_ns = t.last_sample_ns,
        .has_clock = r->parts[0].kernel.has_clock,
        .wall_clock_ns = r->wall_clock_ns,
        .record_clock_ns = r->record_clock_ns,
        .pack_level = r->is_packing ? r->spec->pack_level : 0,
        .pack_chunk_max = r->pack_chunk_max,
        .pack_ratio =
            r->packer.bytes_out ? (uint32_t)(r->packer.bytes_in / r->packer.bytes_out) : 0,
    };
    facts_write(&r->writer, &facts);
    return perfdata_writer_finish(&r->writer, err);
}

/* After the end: the last records, the losses, the features.  The first failure counts, but what
 * can still be saved is. */
static int finish(struct recording *r, int code, struct error *err)
{
    struct error later;
    for (size_t i = 0; i < r->part_count; i++)
        sampling_disable(&r->parts[i]);
    if (code == 0)
        code = drain(r, err);
    int last = write_losses(r, code ? &later : err);
    if (last == 0)
        last = finish_file(r, code ? &later : err);
    r->result->throttled = sampling_totals(r->parts, r->part_count).throttled;
    r->result->copies = sampling_stack_totals(r->parts, r->part_count);
    struct stat st;
    bool is_file = !r->writer.is_pipe && fstat(r->writer.fd, &st) == 0;
    r->result->bytes = is_file ? (uint64_t)st.st_size : r->writer.data_size;
    return code ? code : last;
}

static int release_command(struct recording *r, struct error *err)
{
    if (!r->spec->command)
        return 0;
    process_signals_target(r->held.pid);
    int code = process_release(&r->held, err);
    if (code == 0)
        r->result->has_started = true;
    else
        r->held.pid = 0; /* awaited by process_release */
    r->result->exec_failed = code < 0;
    return code;
}

static int start(struct recording *r, struct error *err)
{
    int code = choose_targets(r, err);
    if (code == 0)
        code = open_events(r, err);
    if (code == 0)
        code = open_file(r, err);
    if (code == 0)
        code = write_tracing_data(r, err);
    if (code == 0)
        code = write_past(r, err);
    if (code == 0 && r->spec->pack_level) {
        code = packer_init(&r->packer, r->spec->pack_level, err);
        r->is_packing = code == 0;
    }
    if (code == 0)
        code = prepare_polls(r, err);
    if (code < 0)
        return code;
    r->wall_clock_ns = clock_read_ns(CLOCK_REALTIME);
    r->record_clock_ns = clock_now_ns();
    r->start_ns = r->record_clock_ns;
    r->result->pid = r->held.pid;
    if (r->spec->whole_cpus)
        code = sampling_enable(&r->parts[0], err);
    for (size_t i = 0; i < r->spec->beside_count && code == 0; i++)
        if (r->spec->beside[i].whole_cpus)
            code = sampling_enable(&r->parts[1 + i], err);
    r->result->start_ns = clock_now_ns();
    return code < 0 ? code : release_command(r, err);
}

/* A command that is not there is noticed before anything is opened or written. */
static int find_command(struct recording *r, struct error *err)
{
    const struct process_spec *command = r->spec->command;
    if (!command || command->environment)
        return 0;
    CLEANUP(memory_freep) char *path = NULL;
    int code = process_find(command->argv[0], &path, err);
    r->result->exec_failed = code < 0;
    return code;
}

static int hold_command(struct recording *r, struct error *err)
{
    int code = r->spec->command ? process_hold(r->spec->command, &r->held, err) : 0;
    /* From here on for assay alone, since the command is forked off: a limit of file sizes or a
     * pipe that nobody reads gives an errno, not a death. */
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGXFSZ, &ignore, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
    raise_descriptor_limit();
    return code;
}

/* Waits for the command, which runs on when the recording ended before it. */
static int await_command(struct recording *r, struct error *err)
{
    if (!r->result->has_started)
        return 0;
    int code = process_wait(r->held.pid, &r->result->command, err);
    if (code < 0)
        return code;
    r->result->command.wall_ns = clock_now_ns() - r->start_ns;
    r->result->has_ended = true;
    return 0;
}

static void recording_done(struct recording *r)
{
    for (size_t i = 0; i < r->process_count; i++)
        fd_closep(&r->polls[r->ring_count + i].fd);
    if (r->held.pid > 0 && !r->result->has_started) {
        fd_closep(&r->held.go_fd);
        fd_closep(&r->held.error_fd);
        struct process_result unused;
        process_wait(r->held.pid, &unused, NULL);
    }
    free(r->polls);
    free(r->events);
    free(r->tasks);
    free(r->all_cpus);
    strbuf_done(&r->packed);
    if (r->is_packing)
        packer_done(&r->packer);
    perfdata_writer_done(&r->writer);
    for (size_t i = 0; i < r->part_count; i++)
        sampling_done(&r->parts[i]);
    mapped_files_done(&r->files);
}

static int run(struct recording *r, struct error *err)
{
    int code = find_command(r, err);
    if (code == 0)
        code = hold_command(r, err);
    if (code == 0)
        code = start(r, err);
    if (code < 0)
        return code;
    code = carry(r, err);
    code = finish(r, code, err);
    r->result->wall_ns = clock_now_ns() - r->start_ns;
    int waited = await_command(r, code ? NULL : err);
    return code ? code : waited;
}

int recording_run(const struct recording_spec *spec, struct recording_result *ret_result,
                  struct error *err)
{
    *ret_result = (struct recording_result){0};
    struct recording r = {.spec = spec,
                          .result = ret_result,
                          .writer = {.fd = -1},
                          .held = {.go_fd = -1, .error_fd = -1}};
    struct sigaction old_size, old_pipe;
    sigaction(SIGXFSZ, NULL, &old_size);
    sigaction(SIGPIPE, NULL, &old_pipe);
    process_signals_catch();
    int code = run(&r, err);
    process_signals_restore();
    sigaction(SIGXFSZ, &old_size, NULL);
    sigaction(SIGPIPE, &old_pipe, NULL);
    recording_done(&r);
    return code;
}

void recording_result_done(struct recording_result *r)
{
    strbuf_done(&r->notes);
    strbuf_done(&r->events);
}
