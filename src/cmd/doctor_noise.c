/* SPDX-License-Identifier: MIT */
/*
 * The noise test of `assay doctor`: the same short program against itself.
 *
 * A round runs it twice, once as "first" and once as "second", in an order drawn anew each round so
 * that drift and the warmth of caches favour neither.  Nothing differs between the two, so whatever
 * the comparison calls a change is a false alarm.  The program is assay itself, spinning a fixed
 * number of iterations (about 4 ms), so that the test needs nothing installed.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "cmd/doctor.h"
#include "numbers/random.h"
#include "numbers/sort.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <sys/wait.h>

#define SPIN_NS (4 * NS_PER_MS)

static void spin(uint64_t iterations)
{
    uint64_t state = 88172645463325252u;
    for (uint64_t i = 0; i < iterations; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        __asm__ volatile("" : "+r"(state));
    }
}

int noise_worker(const char *iterations)
{
    uint64_t count;
    struct error err;
    if (parse_u64(iterations, &count, &err) < 0)
        return cmd_usage(&verb_doctor, &err);
    spin(count);
    return EXIT_DONE;
}

/* How many iterations take SPIN_NS here: the quickest of a few trials decides, since whatever
 * disturbs a trial makes it slower. */
static uint64_t calibrate(void)
{
    uint64_t iterations = 20000, least_ns = UINT64_MAX;
    for (int trial = 0; trial < 64; trial++) {
        uint64_t start_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
        spin(iterations);
        uint64_t took_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
        if (took_ns < SPIN_NS / 8) {
            iterations *= 2;
            least_ns = UINT64_MAX;
            continue;
        }
        if (took_ns < least_ns)
            least_ns = took_ns;
        if (trial >= 10)
            break;
    }
    if (least_ns == UINT64_MAX)
        return iterations;
    return (uint64_t)((double)iterations * (double)SPIN_NS / (double)least_ns);
}

struct run {
    double ns[NOISE_MEASURES];
    long involuntary_switches;
};

static int run_once(const struct process_spec *spec, struct run *ret_run, struct error *err)
{
    struct process_result result = {0};
    pid_t pid;
    uint64_t start_ns = clock_now_ns();
    int r = process_spawn(spec, &pid, err);
    if (r < 0)
        return r;
    process_signals_target(pid);
    r = process_wait(pid, &result, err);
    uint64_t end_ns = clock_now_ns();
    process_signals_target(0);
    if (r < 0)
        return r;
    if (process_signals_caught())
        return -EINTR;
    if (result.status)
        return error_set(err, -EIO, "a run of the noise test ended with code %d",
                         process_exit_code(result.status));
    ret_run->ns[NOISE_WALL] = (double)(end_ns - start_ns);
    ret_run->ns[NOISE_CPU] =
        (double)(timeval_ns(result.usage.ru_utime) + timeval_ns(result.usage.ru_stime));
    ret_run->involuntary_switches = result.usage.ru_nivcsw;
    return 0;
}

static void keep_round(struct noise_test *t, const struct run runs[2])
{
    if (t->round_count == t->round_capacity) {
        t->round_capacity = t->round_capacity ? 2 * t->round_capacity : 1024;
        for (int measure = 0; measure < NOISE_MEASURES; measure++) {
            t->first_ns[measure] =
                memory_resize(t->first_ns[measure], t->round_capacity, sizeof(double));
            t->second_ns[measure] =
                memory_resize(t->second_ns[measure], t->round_capacity, sizeof(double));
        }
    }
    for (int measure = 0; measure < NOISE_MEASURES; measure++) {
        t->first_ns[measure][t->round_count] = runs[0].ns[measure];
        t->second_ns[measure][t->round_count] = runs[1].ns[measure];
    }
    for (int i = 0; i < 2; i++)
        t->involuntary_switches += (uint64_t)runs[i].involuntary_switches;
    t->round_count++;
}

/* Rounds until the time is over or a signal came.  One round comes before, uncounted, so that the
 * program's file is in memory. */
static int run_rounds(struct noise_test *t, const struct process_spec *spec, uint64_t duration_ns,
                      struct error *err)
{
    struct rng rng;
    struct run runs[2];
    struct progress progress;
    rng_seed(&rng, t->seed);
    int r = run_once(spec, &runs[0], err);
    progress_start(&progress);
    uint64_t start_ns = clock_now_ns(), now_ns = start_ns;
    while (r == 0 && now_ns - start_ns < duration_ns) {
        size_t first = (size_t)rng_below(&rng, 2);
        r = run_once(spec, &runs[first], err);
        if (r == 0)
            r = run_once(spec, &runs[1 - first], err);
        if (r == 0)
            keep_round(t, runs);
        now_ns = clock_now_ns();
        progress_show(&progress, "noise test: %zu %s, %.0f of %.0f s", t->round_count,
                      plural(t->round_count, "round", "rounds"), (double)(now_ns - start_ns) / 1e9,
                      (double)duration_ns / 1e9);
    }
    progress_end(&progress);
    t->elapsed_seconds = (double)(now_ns - start_ns) / 1e9;
    return r;
}

int noise_test_run(struct noise_test *t, uint64_t duration_ns, uint64_t seed, struct error *err)
{
    *t = (struct noise_test){.seed = seed, .iterations = calibrate()};
    CLEANUP(fd_closep) int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    char count[32];
    snprintf(count, sizeof(count), "%" PRIu64, t->iterations);
    char program[] = "/proc/self/exe", verb[] = "doctor", worker[] = NOISE_WORKER;
    char *argv[] = {program, verb, worker, count, NULL};
    /* Only the steps after the spawn matter; the worker neither reads nor writes. */
    struct process_spec spec = {
        .argv = argv, .stdin_fd = null_fd, .stdout_fd = null_fd, .stderr_fd = -1};
    uint64_t steal_before_ns, steal_after_ns;
    bool has_steal = machine_steal_ns(&steal_before_ns);
    process_signals_catch();
    int r = run_rounds(t, &spec, duration_ns, err);
    t->signal = process_signals_caught();
    process_signals_restore();
    has_steal = has_steal && machine_steal_ns(&steal_after_ns);
    t->steal_seconds = has_steal ? (double)(steal_after_ns - steal_before_ns) / 1e9 : -1;
    if (r < 0 && !t->signal) {
        noise_test_done(t);
        return error_wrap(err, r, "noise test");
    }
    double round_seconds = t->round_count ? t->elapsed_seconds / (double)t->round_count : 1;
    for (int measure = 0; measure < NOISE_MEASURES; measure++)
        stats_noise(t->first_ns[measure], t->second_ns[measure], t->round_count, round_seconds,
                    NOISE_BUDGET_SECONDS, &t->noise[measure]);
    return 0;
}

void noise_test_done(struct noise_test *t)
{
    for (int measure = 0; measure < NOISE_MEASURES; measure++) {
        free(t->first_ns[measure]);
        free(t->second_ns[measure]);
    }
    *t = (struct noise_test){0};
}

/* The median over both runs of all rounds. */
static double median_ns(const struct noise_test *t, int measure)
{
    size_t count = 2 * t->round_count;
    if (!count)
        return NAN;
    CLEANUP(memory_freep) double *all = memory_zalloc(count, sizeof(double));
    memcpy(all, t->first_ns[measure], t->round_count * sizeof(double));
    memcpy(all + t->round_count, t->second_ns[measure], t->round_count * sizeof(double));
    return select_double(all, count, count / 2);
}

static void write_runs(struct json *j, const char *key, const double *values, size_t count)
{
    bool compact = j->compact;
    json_array(j, key);
    j->compact = true;
    for (size_t i = 0; i < count; i++)
        json_double(j, NULL, values[i]);
    json_end(j);
    j->compact = compact;
}

static void write_measure(const struct noise_test *t, int measure, struct json *j, const char *key)
{
    const struct noise *n = &t->noise[measure];
    json_object(j, key);
    json_double(j, "median_ns", median_ns(t, measure));
    json_u64(j, "sitting_rounds", n->sitting_rounds);
    json_u64(j, "sitting_count", n->sitting_count);
    json_u64(j, "false_alarm_count", n->false_alarm_count);
    json_double(j, "false_alarm_rate", n->false_alarm_rate);
    json_double(j, "false_alarm_low", n->false_alarm_low);
    json_double(j, "false_alarm_high", n->false_alarm_high);
    json_double(j, "smallest_change", n->smallest_change);
    write_runs(j, "first_ns", t->first_ns[measure], t->round_count);
    write_runs(j, "second_ns", t->second_ns[measure], t->round_count);
    json_end(j);
}

void noise_test_json(const struct noise_test *t, struct json *j, const char *key)
{
    json_object(j, key);
    json_u64(j, "seed", t->seed);
    json_u64(j, "iterations", t->iterations);
    json_double(j, "elapsed_seconds", t->elapsed_seconds);
    json_double(j, "budget_seconds", NOISE_BUDGET_SECONDS);
    json_u64(j, "round_count", t->round_count);
    if (t->signal)
        json_i64(j, "ended_by_signal", t->signal);
    json_u64(j, "involuntary_switches", t->involuntary_switches);
    if (t->steal_seconds >= 0)
        json_double(j, "steal_seconds", t->steal_seconds);
    else
        json_null(j, "steal_seconds");
    write_measure(t, NOISE_WALL, j, "wall");
    write_measure(t, NOISE_CPU, j, "cpu");
    json_end(j);
}

/* A share as per cent, "?" when there was too little to tell. */
static const char *percent(double share, char *text, size_t size)
{
    if (isfinite(share))
        snprintf(text, size, share < 0.0995 ? "%.2f %%" : "%.1f %%", 100 * share);
    else
        snprintf(text, size, "?");
    return text;
}

static void put_row(struct strbuf *out, const char *what, const char *wall, const char *cpu)
{
    strbuf_printf(out, "  %-28s %20s %20s\n", what, wall, cpu);
}

static void put_rates(const struct noise_test *t, struct strbuf *out)
{
    char cells[NOISE_MEASURES][80], text[2][32];
    for (int i = 0; i < NOISE_MEASURES; i++)
        snprintf(cells[i], sizeof(cells[i]), "%s",
                 format_duration(median_ns(t, i), text[0], sizeof(text[0])));
    put_row(out, "one run (median)", cells[0], cells[1]);
    for (int i = 0; i < NOISE_MEASURES; i++)
        percent(t->noise[i].false_alarm_rate, cells[i], sizeof(cells[i]));
    put_row(out, "false alarms", cells[0], cells[1]);
    for (int i = 0; i < NOISE_MEASURES; i++)
        snprintf(cells[i], sizeof(cells[i]), "%s to %s",
                 percent(t->noise[i].false_alarm_low, text[0], sizeof(text[0])),
                 percent(t->noise[i].false_alarm_high, text[1], sizeof(text[1])));
    put_row(out, "  95 % interval", cells[0], cells[1]);
    for (int i = 0; i < NOISE_MEASURES; i++)
        percent(t->noise[i].smallest_change, cells[i], sizeof(cells[i]));
    put_row(out, "smallest change in 10 s", cells[0], cells[1]);
}

void noise_test_text(const struct noise_test *t, struct strbuf *out, size_t columns, bool colour)
{
    const struct noise *n = &t->noise[NOISE_WALL];
    CLEANUP(strbuf_done) struct strbuf line = {0};
    strbuf_printf(out, "\n%snoise%s\n", colour ? "\033[1m" : "", colour ? "\033[0m" : "");
    strbuf_printf(&line,
                  "The same program against itself, %zu %s in %.1f s%s (seed %" PRIu64 "; %" PRIu64
                  " involuntary %s",
                  t->round_count, plural(t->round_count, "round", "rounds"), t->elapsed_seconds,
                  t->signal ? ", interrupted" : "", t->seed, t->involuntary_switches,
                  plural(t->involuntary_switches, "switch", "switches"));
    if (t->steal_seconds >= 0)
        strbuf_printf(&line, ", %.2f s stolen", t->steal_seconds);
    strbuf_puts(&line, "):");
    strbuf_puts(out, "  ");
    doctor_wrap(out, strbuf_text(&line), 2, 2, columns);
    if (!t->round_count) {
        strbuf_puts(out, "  Too short to draw a conclusion.\n");
        return;
    }
    put_row(out, "", "wall time", "CPU time");
    put_rates(t, out);
    strbuf_clear(&line);
    strbuf_printf(
        &line,
        "False alarms: the share of %zu comparisons of %zu rounds each, with nothing changed, that "
        "reported a change; 5 %% is expected by chance. The last line: measuring such a program "
        "for ten seconds finds a change of this size nine times in ten.",
        n->sitting_count, n->sitting_rounds);
    strbuf_puts(out, "  ");
    doctor_wrap(out, strbuf_text(&line), 2, 2, columns);
}
