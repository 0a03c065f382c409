/* SPDX-License-Identifier: MIT */
/* See report.h. */
#include "report.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "calls.h"
#include "tests.h"

#include <math.h>

enum { EACH_MAX = 64, METRICS_MAX = 200 };
#define DOUBT_MIN_NS (NS_PER_S / 2)

static const char *mode_word(bool threads)
{
    return threads ? "threads" : "processes";
}

void report_list(struct strbuf *out, bool json)
{
    const struct scale_test *const *tests;
    size_t count = tests_list(&tests);
    struct json j = {.out = out};
    if (json)
        json_array(&j, NULL);
    for (size_t i = 0; i < count; i++) {
        if (!json) {
            strbuf_printf(out, "%-17s %s\n", tests[i]->name, tests[i]->summary);
            continue;
        }
        json_object(&j, NULL);
        json_string(&j, "name", tests[i]->name);
        json_string(&j, "summary", tests[i]->summary);
        json_string(&j, "calls", tests[i]->calls);
        json_string(&j, "note", tests[i]->note);
        json_end(&j);
    }
    if (json) {
        json_end(&j);
        strbuf_putc(out, '\n');
    }
}

void report_head(struct strbuf *out, const struct settings *s)
{
    char time[32], warmup[32];
    if (s->test_count == 1)
        strbuf_printf(out, "%s: %s\n", s->tests[0]->name, s->tests[0]->summary);
    if (s->calls) {
        strbuf_puts(out, "system calls of one operation, counted; '?': optional\n\n");
        strbuf_printf(out, "%-17s %-9s %5s %10s  %s\n", "test", "as", "tasks", "operations",
                      "calls");
        return;
    }
    if (s->has_ops)
        strbuf_printf(out, "%llu operations in each task", (unsigned long long)s->ops);
    else
        strbuf_printf(out, "%s measured after %s of warm-up",
                      format_duration((double)s->duration_ns, time, sizeof(time)),
                      format_duration((double)s->warmup_ns, warmup, sizeof(warmup)));
    strbuf_printf(out, "; one task on each CPU, core by core; %zu CPU%s\n\n", s->cpus.count,
                  s->cpus.count == 1 ? "" : "s");
    strbuf_printf(out, "%-17s %-9s %5s %14s %14s %14s %8s %6s  %s\n", "test", "as", "tasks", "op/s",
                  "op/s per task", "if linear", "of that", "idle", "spread");
}

static void put_share(struct strbuf *out, double share, int width, int digits)
{
    if (isnan(share))
        strbuf_printf(out, " %*s", width, "-");
    else
        strbuf_printf(out, " %*.*f%%", width - 1, digits, 100 * share);
}

static void put_spread(struct strbuf *out, const struct measure_result *one)
{
    double low = INFINITY, high = 0;
    for (size_t i = 0; i < one->interval_count; i++) {
        low = one->intervals[i] < low ? one->intervals[i] : low;
        high = one->intervals[i] > high ? one->intervals[i] : high;
    }
    if (one->interval_count > 1)
        strbuf_printf(out, "  -%.1f%% +%.1f%%", 100 * (1 - low / one->ops_per_second),
                      100 * (high / one->ops_per_second - 1));
}

/* "read 1, lseek 1/256": each call as so many in an operation or one in so many. */
static void put_calls(struct strbuf *out, const struct measure_result *one)
{
    bool any = false;
    for (unsigned i = 0; calls_name(i); i++) {
        uint64_t count = one->calls[i];
        if (!count)
            continue;
        strbuf_printf(out, "%s%s ", any ? ", " : "", calls_name(i));
        if (count % one->ops == 0)
            strbuf_printf(out, "%llu", (unsigned long long)(count / one->ops));
        else if (one->ops % count == 0)
            strbuf_printf(out, "1/%llu", (unsigned long long)(one->ops / count));
        else
            strbuf_printf(out, "%.4g", (double)count / (double)one->ops);
        any = true;
    }
    struct error difference;
    if (!any)
        strbuf_puts(out, "none");
    if (!calls_match(one->test->calls, one->calls, one->ops, &difference))
        strbuf_printf(out, "  NOT as declared: %s", difference.message);
    strbuf_putc(out, '\n');
}

void report_line(struct strbuf *out, const struct settings *s, const struct results *r,
                 const struct measure_result *one)
{
    char total[32], each[32], line[32];
    strbuf_printf(out, "%-17s %-9s %5u ", one->test->name, mode_word(one->threads),
                  one->task_count);
    if (s->calls) {
        strbuf_printf(out, "%10llu  ", (unsigned long long)one->ops);
        put_calls(out, one);
        return;
    }
    double linear, share = results_linear(r, one, &linear);
    strbuf_printf(
        out, "%14s %14s",
        format_thousands((uint64_t)(one->ops_per_second + 0.5), total, sizeof(total)),
        format_thousands((uint64_t)(one->ops_per_second_per_task + 0.5), each, sizeof(each)));
    strbuf_printf(out, " %14s", format_thousands((uint64_t)(linear + 0.5), line, sizeof(line)));
    put_share(out, share, 8, 1);
    put_share(out, one->idle_share, 6, 1);
    put_spread(out, one);
    strbuf_putc(out, '\n');
}

void report_failure(struct strbuf *out, const struct failed *f)
{
    strbuf_printf(out, "%-17s %-9s %5u  failed: ", f->test, mode_word(f->threads), f->task_count);
    strbuf_put_safe(out, f->reason, strlen(f->reason), SIZE_MAX);
    strbuf_putc(out, '\n');
}

static void put_each(struct strbuf *out, const struct measure_result *one)
{
    char number[32];
    strbuf_printf(out, "\n%5s %5s %14s %9s\n", "task", "CPU", "op/s", "CPU time");
    for (unsigned i = 0; i < one->task_count && i < EACH_MAX; i++) {
        strbuf_printf(out, "%5u %5d %14s", i, one->each[i].cpu,
                      format_thousands((uint64_t)(one->each[i].ops_per_second + 0.5), number,
                                       sizeof(number)));
        put_share(out, one->each[i].cpu_share, 9, 1);
        strbuf_putc(out, '\n');
    }
    if (one->task_count > EACH_MAX)
        strbuf_printf(out, "… and %u more (--json has them all)\n", one->task_count - EACH_MAX);
}

/* Whether others ran on the tasks' CPUs.  /proc/stat counts in hundredths of a second: of a short
 * measurement it does not tell. */
static bool is_disturbed(const struct measure_result *one, size_t cpu_count)
{
    return one->task_count <= cpu_count && one->elapsed_ns >= DOUBT_MIN_NS &&
           !str_has_prefix(one->test->name, "context_switch") && /* the partner is one of us */
           1 - one->cpu_share - one->idle_share > 0.05;
}

static void put_doubts(struct strbuf *out, const struct results *r, size_t cpu_count)
{
    double steal = 0;
    size_t disturbed = 0;
    for (size_t i = 0; i < r->count; i++) {
        steal = r->items[i].steal_share > steal ? r->items[i].steal_share : steal;
        disturbed += is_disturbed(&r->items[i], cpu_count);
    }
    if (steal > 0.01)
        strbuf_printf(
            out, "note: up to %.1f %% of the CPUs' time went to other virtual machines (steal)\n",
            100 * steal);
    if (disturbed)
        strbuf_printf(out,
                      "note: in %zu of %zu measurements other processes took more than 5 %% of the "
                      "tasks' CPUs; do not compare figures from a busy machine\n",
                      disturbed, r->count);
}

static void put_beyond_linear(struct strbuf *out, const struct results *r)
{
    for (size_t i = 0; i < r->count; i++) {
        CLEANUP(strbuf_done) struct strbuf why = {0};
        const struct measure_result *one = &r->items[i];
        if (results_explain_linear(r, one, &why))
            strbuf_printf(out, "%s with %u %s: %s\n", one->test->name, one->task_count,
                          mode_word(one->threads), strbuf_text(&why));
    }
}

void report_tail(struct strbuf *out, const struct settings *s, const struct results *r)
{
    if (s->calls)
        return;
    if (r->count == 1 && !s->has_ops)
        put_each(out, &r->items[0]);
    size_t before = out->length;
    strbuf_putc(out, '\n');
    for (size_t i = 0; i < s->test_count; i++)
        if (s->tests[i]->note)
            strbuf_printf(out, "%s: %s\n", s->tests[i]->name, s->tests[i]->note);
    put_beyond_linear(out, r);
    put_doubts(out, r, s->cpus.count);
    if (out->length == before + 1)
        out->data[out->length = before] = '\0';
}

static void put_json_calls(struct json *j, const struct measure_result *one)
{
    struct error difference;
    bool match = calls_match(one->test->calls, one->calls, one->ops, &difference);
    json_object(j, "calls");
    for (unsigned i = 0; calls_name(i); i++)
        if (one->calls[i])
            json_u64(j, calls_name(i), one->calls[i]);
    json_end(j);
    json_bool(j, "calls_as_announced", match);
    if (!match)
        json_string(j, "calls_difference", difference.message);
}

static void put_json_result(struct json *j, const struct results *r,
                            const struct measure_result *one)
{
    double linear, share = results_linear(r, one, &linear);
    json_object(j, NULL);
    json_string(j, "test", one->test->name);
    json_string(j, "mode", mode_word(one->threads));
    json_u64(j, "tasks", one->task_count);
    json_double(j, "elapsed_s", (double)one->elapsed_ns / 1e9);
    json_u64(j, "ops", one->ops);
    if (one->has_calls) { /* counting slows the tasks down: no rates */
        put_json_calls(j, one);
        json_end(j);
        return;
    }
    json_double(j, "ops_per_second", one->ops_per_second);
    json_double(j, "ops_per_second_per_task", one->ops_per_second_per_task);
    json_double(j, "linear_ops_per_second", linear);
    json_double(j, "of_linear", share);
    CLEANUP(strbuf_done) struct strbuf why = {0};
    if (results_explain_linear(r, one, &why))
        json_string(j, "of_linear_why", strbuf_text(&why));
    json_double(j, "idle_share", one->idle_share);
    json_double(j, "steal_share", one->steal_share);
    json_double(j, "cpu_share", one->cpu_share);
    json_array(j, "interval_ops_per_second");
    for (size_t i = 0; i < one->interval_count; i++)
        json_double(j, NULL, one->intervals[i]);
    json_end(j);
    json_array(j, "each");
    for (unsigned i = 0; i < one->task_count; i++) {
        json_object(j, NULL);
        json_i64(j, "cpu", one->each[i].cpu);
        json_u64(j, "ops", one->each[i].ops);
        json_double(j, "ops_per_second", one->each[i].ops_per_second);
        json_double(j, "cpu_share", one->each[i].cpu_share);
        json_end(j);
    }
    json_end(j);
    json_end(j);
}

void report_json(struct strbuf *out, const struct settings *s, const struct results *r)
{
    struct json j = {.out = out};
    json_object(&j, NULL);
    json_double(&j, "warmup_s", s->has_ops || s->calls ? 0 : (double)s->warmup_ns / 1e9);
    json_u64(&j, "cpus", s->cpus.count);
    json_array(&j, "results");
    for (size_t i = 0; i < r->count; i++)
        put_json_result(&j, r, &r->items[i]);
    json_end(&j);
    json_array(&j, "failures");
    for (size_t i = 0; i < r->failure_count; i++) {
        json_object(&j, NULL);
        json_string(&j, "test", r->failures[i].test);
        json_string(&j, "mode", mode_word(r->failures[i].threads));
        json_u64(&j, "tasks", r->failures[i].task_count);
        json_string(&j, "reason", r->failures[i].reason);
        json_end(&j);
    }
    json_end(&j);
    json_end(&j);
    strbuf_putc(out, '\n');
}

void report_metrics(struct strbuf *out, const struct results *r)
{
    /* As the kernel test robot names them; a sweep names the test and the tasks, too. */
    for (size_t i = 0; i < r->count && i < METRICS_MAX; i++) {
        const struct measure_result *one = &r->items[i];
        if (one->has_calls)
            continue;
        if (r->count > 1) {
            strbuf_printf(out, "assay.metric %s.%u.%s %.9g op/s\n", one->test->name,
                          one->task_count, mode_word(one->threads), one->ops_per_second);
            continue;
        }
        if (one->interval_count == 0) /* a given number of operations */
            strbuf_printf(out, "assay.metric operations %llu\n", (unsigned long long)one->ops);
        strbuf_printf(out, "assay.metric workload %.9g op/s\n", one->ops_per_second);
        strbuf_printf(out, "assay.metric per_%s_ops %.9g op/s\n",
                      one->threads ? "thread" : "process", one->ops_per_second_per_task);
        if (!isnan(one->idle_share))
            strbuf_printf(out, "assay.metric idle %.6g %%\n", 100 * one->idle_share);
    }
}
