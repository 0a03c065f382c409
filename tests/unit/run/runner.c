/* SPDX-License-Identifier: MIT */
/* One command run once: its end, its output, its metrics, its limits, what it leaves behind. */
#include "run/runner.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

struct fixture {
    struct event_list events;
    struct runner runner;
    struct run_result result;
    struct error err;
};

static void fixture_init(struct fixture *f, const char *events)
{
    *f = (struct fixture){0};
    if (events)
        CHECK_INT(event_list_parse(&f->events, events, &f->err), 0);
    process_adopt_orphans();
    process_signals_catch();
    int r = runner_open(&f->runner, &f->events, &f->err);
    if (r < 0)
        test_fail(__FILE__, __LINE__, "%s", f->err.message);
}

static void fixture_done(struct fixture *f)
{
    run_result_done(&f->result);
    runner_done(&f->runner);
    event_list_done(&f->events);
    process_signals_restore();
}

static int run_shell(struct fixture *f, const char *text, struct run_spec spec)
{
    char *argv[] = {"sh", "-c", (char *)text, NULL};
    spec.argv = argv;
    return runner_run(&f->runner, &spec, &f->result, &f->err);
}

TEST(the_end_of_a_command_is_told)
{
    CLEANUP(fixture_done) struct fixture f;
    fixture_init(&f, NULL);
    CLEANUP(strbuf_done) struct strbuf words = {0};
    CHECK_INT(run_shell(&f, "exit 0", (struct run_spec){0}), 0);
    CHECK(!run_failed(&f.result));
    CHECK(f.result.wall_ns > 0);
    CHECK(f.result.usage.ru_maxrss > 0);
    CHECK_INT(run_shell(&f, "exit 3", (struct run_spec){0}), 0);
    CHECK(run_failed(&f.result));
    run_describe_end(&f.result, &words);
    CHECK_STR(strbuf_text(&words), "exit code 3");
    strbuf_clear(&words);
    CHECK_INT(run_shell(&f, "kill -SEGV $$", (struct run_spec){0}), 0);
    run_describe_end(&f.result, &words);
    CHECK_CONTAINS(strbuf_text(&words), "signal 11");
}

TEST(what_cannot_be_started_is_an_error)
{
    CLEANUP(fixture_done) struct fixture f;
    fixture_init(&f, NULL);
    char *argv[] = {"/nonexistent/program", NULL};
    struct run_spec spec = {.argv = argv};
    CHECK_INT(runner_run(&f.runner, &spec, &f.result, &f.err), -ENOENT);
    spec.input_path = "/nonexistent/input";
    CHECK(runner_run(&f.runner, &spec, &f.result, &f.err) < 0);
    CHECK_CONTAINS(f.err.message, "/nonexistent/input");
}

TEST(output_is_kept_to_its_end)
{
    CLEANUP(fixture_done) struct fixture f;
    fixture_init(&f, NULL);
    struct run_spec keep = {.stdout_to = RUN_KEEP, .stderr_to = RUN_KEEP};
    CHECK_INT(run_shell(&f, "echo out; echo err >&2", keep), 0);
    CHECK_STR(strbuf_text(&f.result.kept_stdout), "out\n");
    CHECK_STR(strbuf_text(&f.result.kept_stderr), "err\n");
    /* The next run starts empty. */
    CHECK_INT(run_shell(&f, "echo x", keep), 0);
    CHECK_STR(strbuf_text(&f.result.kept_stdout), "x\n");
    CHECK_STR(strbuf_text(&f.result.kept_stderr), "");
    keep.keep_bytes = 8;
    CHECK_INT(run_shell(&f, "seq 100000", keep), 0);
    CHECK_STR(strbuf_text(&f.result.kept_stdout), "\n100000\n");
}

TEST(input_pipes_files_and_folders)
{
    CLEANUP(fixture_done) struct fixture f;
    fixture_init(&f, NULL);
    struct run_spec spec = {.stdout_to = RUN_KEEP};
    CHECK_INT(run_shell(&f, "cat; pwd", spec), 0);
    CHECK(strbuf_text(&f.result.kept_stdout)[0] == '/');
    spec.input_path = "/proc/sys/kernel/ostype";
    spec.working_dir = "/";
    for (int i = 0; i < 2; i++) {
        CHECK_INT(run_shell(&f, "cat; pwd", spec), 0);
        CHECK_STR(strbuf_text(&f.result.kept_stdout), "Linux\n/\n");
    }
    spec = (struct run_spec){.stdout_to = RUN_PIPE};
    CHECK_INT(run_shell(&f, "test -p /dev/fd/1 && seq 200000", spec), 0);
    CHECK(!run_failed(&f.result));
    char path[] = "/tmp/assay-runner-XXXXXX";
    CLEANUP(fd_closep) int fd = mkstemp(path);
    CHECK(fd >= 0);
    spec = (struct run_spec){.stdout_to = RUN_FILE, .output_path = path};
    CHECK_INT(run_shell(&f, "echo first and longer", spec), 0);
    CHECK_INT(run_shell(&f, "echo second", spec), 0);
    CLEANUP(strbuf_done) struct strbuf text = {0};
    CHECK_INT(file_read(path, &text, NULL), 0);
    CHECK_STR(strbuf_text(&text), "second\n");
    unlink(path);
}

TEST(metrics_come_through_the_descriptor)
{
    CLEANUP(fixture_done) struct fixture f;
    fixture_init(&f, NULL);
    const char *script = "echo assay.metric ops 12.5 op/s >&$ASSAY_METRICS_FD; "
                         "(echo assay.metric child 1 >&$ASSAY_METRICS_FD); echo nonsense";
    CHECK_INT(run_shell(&f, script, (struct run_spec){0}), 0);
    CHECK_INT(f.result.metrics.count, 2);
    CHECK_NEAR(metrics_find(&f.result.metrics, "ops")->value, 12.5, 0);
    CHECK_INT(run_shell(&f, ":", (struct run_spec){0}), 0);
    CHECK_INT(f.result.metrics.count, 0);
    const char *hostile = "head -c 5000000 /dev/zero >&$ASSAY_METRICS_FD; "
                          "echo assay.metric late 1 >&$ASSAY_METRICS_FD";
    CHECK_INT(run_shell(&f, hostile, (struct run_spec){0}), 0);
    CHECK_INT(f.result.metrics.count, 0);
    CHECK(f.result.metrics.truncated);
    CHECK_INT(run_shell(&f, "echo assay.metric a 1 >&$ASSAY_METRICS_FD", (struct run_spec){0}), 0);
    CHECK_INT(f.result.metrics.count, 1);
    CHECK(!f.result.metrics.truncated);
}

TEST(the_environment_is_added_to_and_padded)
{
    CLEANUP(fixture_done) struct fixture f;
    fixture_init(&f, NULL);
    char *added[] = {"PATH=/x:/bin:/usr/bin", "NEW=1", NULL};
    struct run_spec spec = {
        .stdout_to = RUN_KEEP, .environment_added = added, .padding_bytes = 100};
    setenv("ASSAY_PADDING", "old", 1);
    CHECK_INT(run_shell(&f, "echo $PATH $NEW ${#ASSAY_PADDING}", spec), 0);
    CHECK_STR(strbuf_text(&f.result.kept_stdout), "/x:/bin:/usr/bin 1 100\n");
    spec.padding_bytes = 0;
    CHECK_INT(run_shell(&f, "echo ${#ASSAY_PADDING}", spec), 0);
    CHECK_STR(strbuf_text(&f.result.kept_stdout), "0\n");
    unsetenv("ASSAY_PADDING");
}

TEST(a_run_without_what_it_was_to_preload_has_failed)
{
    CLEANUP(fixture_done) struct fixture f;
    fixture_init(&f, NULL);
    CLEANUP(strbuf_done) struct strbuf words = {0};
    char *environment[] = {"LD_PRELOAD=libassay-is-not-there.so.9", NULL};
    struct run_spec spec = {.environment_added = environment, .stderr_to = RUN_KEEP};
    CHECK_INT(run_shell(&f, "exit 0", spec), 0);
    CHECK_INT(f.result.status, 0);
    CHECK(run_failed(&f.result));
    run_describe_end(&f.result, &words);
    CHECK(strstr(strbuf_text(&words), "LD_PRELOAD"));
    environment[0] = "LD_PRELOAD=libm.so.6";
    CHECK_INT(run_shell(&f, "exit 0", spec), 0);
    CHECK(!run_failed(&f.result));
}

TEST(a_time_limit_ends_the_whole_group)
{
    CLEANUP(fixture_done) struct fixture f;
    fixture_init(&f, NULL);
    struct run_spec spec = {.timeout_ns = 50 * NS_PER_MS, .stdout_to = RUN_KEEP};
    CHECK_INT(run_shell(&f, "sleep 1000 & sleep 1000 & echo $!; wait", spec), 0);
    CHECK(f.result.timed_out);
    CHECK(run_failed(&f.result));
    CHECK(!process_orphans_alive());
}

TEST(what_stays_behind_is_ended_and_told)
{
    CLEANUP(fixture_done) struct fixture f;
    fixture_init(&f, "page-faults");
    CHECK_INT(run_shell(&f, "sleep 1000 & true", (struct run_spec){0}), 0);
    CHECK(f.result.left_behind);
    CHECK(!process_orphans_alive());
    /* A daemon in a session of its own goes on, and does not count into later runs. */
    CHECK_INT(run_shell(&f, "setsid sleep 1000 & sleep 0.2", (struct run_spec){0}), 0);
    CHECK(f.result.left_behind);
    CHECK(process_orphans_alive());
    process_kill_orphans();
    CHECK(!process_orphans_alive());
    CHECK_INT(run_shell(&f, "true", (struct run_spec){0}), 0);
    CHECK(!f.result.left_behind);
}

TEST(a_signal_for_assay_ends_the_command)
{
    CLEANUP(fixture_done) struct fixture f;
    fixture_init(&f, NULL);
    CHECK_INT(run_shell(&f, "kill -TERM $PPID; sleep 1000", (struct run_spec){0}), 0);
    CHECK_INT(f.result.signal, SIGTERM);
    CHECK(WIFSIGNALED(f.result.status));
    CHECK_INT(process_signals_caught(), SIGTERM);
    process_signals_clear();
    CHECK_INT(run_shell(&f, "true", (struct run_spec){0}), 0);
    CHECK_INT(f.result.signal, 0);
}

TEST(counts_belong_to_one_run)
{
    CLEANUP(fixture_done) struct fixture f;
    fixture_init(&f, "page-faults:u,task-clock");
    if (f.runner.counters.items[0].why) {
        test_skip(f.runner.counters.items[0].why);
        return;
    }
    uint64_t least = UINT64_MAX, most = 0;
    for (int i = 0; i < 10; i++) {
        CHECK_INT(run_shell(&f, "true", (struct run_spec){0}), 0);
        uint64_t faults = f.result.values[0].raw;
        least = faults < least ? faults : least;
        most = faults > most ? faults : most;
        CHECK(f.result.values[1].raw > 0);
    }
    CHECK(least > 10);
    CHECK(most < 2 * least);
}

TEST(a_command_runs_where_it_is_told)
{
    CLEANUP(fixture_done) struct fixture f;
    fixture_init(&f, NULL);
    int cpu = sched_getcpu();
    struct run_spec spec = {.stdout_to = RUN_KEEP, .cpus = &cpu, .cpu_count = 1};
    CHECK_INT(run_shell(&f, "grep Cpus_allowed_list /proc/self/status", spec), 0);
    CLEANUP(memory_freep) char *expected = memory_printf("Cpus_allowed_list:\t%d\n", cpu);
    CHECK_STR(strbuf_text(&f.result.kept_stdout), expected);
    CHECK_INT(f.result.disturbance.migrations, 0);
    cpu = 8000;
    CHECK(run_shell(&f, "true", spec) < 0);
}
