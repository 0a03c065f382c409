/* SPDX-License-Identifier: MIT */
/* The command line of a load: settings, checks, and the report. */
#include "base/completion.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/options.h"
#include "load.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ITEMS_DEFAULT 10000000
#define CAPACITY_DEFAULT 4096
#define CAPACITY_MAX (1ULL << 30)
#define BACKLOG_DEFAULT 1000000

struct arguments {
    struct load_settings s;
    const char *json, *completion;
};

static const struct option options[] = {
    {'q', "queue", OPTION_STRING, offsetof(struct arguments, s.queue), "Q", "the queue to use",
     NULL},
    {'n', "nodes", OPTION_STRING, offsetof(struct arguments, s.nodes), "N",
     "ms: where nodes come from: malloc, pool, cache (default)", "malloc pool cache"},
    {'r', "reclaim", OPTION_STRING, offsetof(struct arguments, s.reclaim), "R",
     "ms: when they may be used again: hazard (default), epoch, tagged", "hazard epoch tagged"},
    {'p', "producers", OPTION_U64, offsetof(struct arguments, s.producers), "P",
     "threads that push (default 1)", NULL},
    {'c', "consumers", OPTION_U64, offsetof(struct arguments, s.consumers), "C",
     "threads that pop (default 1)", NULL},
    {'i', "items", OPTION_U64, offsetof(struct arguments, s.items), "N",
     "items that all producers push together (default 10,000,000)", NULL},
    {'b', "batch", OPTION_U64, offsetof(struct arguments, s.batch), "B",
     "items in each operation (default 1, at most 512)", NULL},
    {0, "payload", OPTION_BYTES, offsetof(struct arguments, s.payload_bytes), "BYTES",
     "size of an item: a multiple of 8 (default 8, at most 1024)", NULL},
    {0, "capacity", OPTION_U64, offsetof(struct arguments, s.capacity), "N",
     "bounded queues: number of items they hold (default 4096)", NULL},
    {0, "backlog", OPTION_U64, offsetof(struct arguments, s.backlog), "N",
     "unbounded queues: producers wait while it holds this many items (default 1,000,000)", NULL},
    {0, "pin", OPTION_STRING, offsetof(struct arguments, s.pin), "CPUS",
     "pin threads to these CPUs: producers from the first, consumers from the last", NULL},
    {'w', "wait", OPTION_STRING, offsetof(struct arguments, s.wait), "HOW",
     "how to wait for the queue: adaptive (default), spin, pause, yield, sleep; "
     "adaptive:N, pause:N",
     "adaptive spin pause yield sleep"},
    {0, "burst", OPTION_FLAG, offsetof(struct arguments, s.burst), NULL,
     "unbounded queues: push all items before the first pop", NULL},
    {0, "latency", OPTION_FLAG, offsetof(struct arguments, s.latency), NULL,
     "measure how long items are in transit", NULL},
    {0, "round-trip", OPTION_FLAG, offsetof(struct arguments, s.round_trip), NULL,
     "pass one item back and forth through two queues", NULL},
    {0, "full-fence", OPTION_FLAG, offsetof(struct arguments, s.full_fence), NULL,
     "ms: use fences in each operation instead of membarrier(2)", NULL},
    {0, "json", OPTION_OPTIONAL, offsetof(struct arguments, json), "FILE",
     "print the result as JSON, or write it to a file", "file"},
    {0, "completion", OPTION_STRING, offsetof(struct arguments, completion), "SHELL",
     "print the completion script for a shell", "bash zsh fish"},
    {0}};

static const struct load_driver *
find_driver(const char *name, const struct load_driver *const *drivers, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf names = {0};
    for (size_t i = 0; drivers[i]; i++) {
        if (name && str_eq(drivers[i]->name, name))
            return drivers[i];
        strbuf_printf(&names, "%s%s", i ? ", " : "", drivers[i]->name);
    }
    error_set(err, -EINVAL, "%s%s%s; available: %s", name ? "no queue '" : "--queue is missing",
              name ? name : "", name ? "'" : "", strbuf_text(&names));
    return NULL;
}

static int check_range(const char *option, uint64_t value, uint64_t min, uint64_t max,
                       struct error *err)
{
    if (value >= min && value <= max)
        return 0;
    return error_set(err, -EINVAL, "--%s must be between %llu and %llu, not %llu", option,
                     (unsigned long long)min, (unsigned long long)max, (unsigned long long)value);
}

static int check(struct load_settings *s, const struct load_driver *driver, struct error *err)
{
    int code = check_range("producers", s->producers, 1, LOAD_THREADS_MAX, err);
    if (code == 0)
        code = check_range("consumers", s->consumers, 1, LOAD_THREADS_MAX, err);
    if (code == 0)
        code = check_range("producers and --consumers together", s->producers + s->consumers, 2, 60,
                           err);
    if (code == 0)
        code = check_range("items", s->items, 1, 1ULL << 40, err);
    if (code == 0)
        code = check_range("batch", s->batch, 1, LOAD_BATCH_MAX, err);
    if (code == 0 && !queue_item_bytes_valid(s->payload_bytes))
        code = error_set(err, -EINVAL, "--payload must be a multiple of 8 from 8 to %d, not %llu",
                         QUEUE_ITEM_BYTES_MAX, (unsigned long long)s->payload_bytes);
    if (code < 0)
        return code;
    if (s->items < s->producers)
        return error_set(err, -EINVAL, "--items: each of %llu producers needs at least one",
                         (unsigned long long)s->producers);
    if ((driver->producers_max && s->producers > driver->producers_max) ||
        (driver->consumers_max && s->consumers > driver->consumers_max))
        return error_set(err, -EINVAL,
                         "--queue %s is for one producer and one consumer, not %llu and %llu; "
                         "--queue mpmc supports any number",
                         s->queue, (unsigned long long)s->producers,
                         (unsigned long long)s->consumers);
    if (driver->is_bounded && s->backlog)
        return error_set(err, -EINVAL,
                         "--queue %s is bounded by --capacity; --backlog is for "
                         "unbounded queues",
                         s->queue);
    if (!driver->is_bounded && s->capacity)
        return error_set(err, -EINVAL, "--queue %s is unbounded; --backlog holds producers back",
                         s->queue);
    if (s->burst && (driver->is_bounded || s->backlog || s->round_trip))
        return error_set(err, -EINVAL,
                         "--burst is for unbounded queues, without --backlog or --round-trip");
    if (s->wait && queue_wait_parse(&s->waiter, s->wait) < 0)
        return error_set(err, -EINVAL,
                         "--wait must be adaptive, spin, pause, yield or sleep, or adaptive:N or "
                         "pause:N with up to 1000000 pauses, not '%s'",
                         s->wait);
    if (driver->is_bounded) {
        s->capacity = s->capacity ? s->capacity : CAPACITY_DEFAULT;
        code = check_range("capacity", s->capacity, 1, CAPACITY_MAX, err);
    } else {
        s->backlog = s->burst ? UINT64_MAX : s->backlog ? s->backlog : BACKLOG_DEFAULT;
    }
    if (code == 0 && s->round_trip &&
        (s->producers != 1 || s->consumers != 1 || s->batch != 1 || s->payload_bytes != 8 ||
         s->latency || s->waiter.kind == QUEUE_WAIT_SLEEP))
        code = error_set(err, -EINVAL,
                         "--round-trip is for one producer, one consumer, and single "
                         "8-byte items, without --latency or --wait sleep");
    return code == 0 && driver->check ? driver->check(s, err) : code;
}

/* Each number once: to assay's descriptor for metrics, the table, and JSON. */
struct metric {
    const char *name, *unit, *label;
    double value;
};

#define METRICS_MAX 16

static size_t list_metrics(const struct load_result *r, struct metric metrics[METRICS_MAX])
{
    struct metric all[] = {
        {"mops", "Mops/s", "throughput, wall", r->mops},
        {"cpu_ns_per_op", "ns", "CPU per item", r->cpu_ns_per_op},
        {"wall_s", "s", "wall time", r->wall_s},
        {"peak_bytes", "B", "peak memory", (double)r->peak_bytes},
        {"peak_growth_bytes", "B", "growth since the start",
         (double)(r->peak_bytes > r->base_bytes ? r->peak_bytes - r->base_bytes : 0)},
        {"after_growth_bytes", "B", "growth left when empty again",
         (double)(r->after_bytes > r->base_bytes ? r->after_bytes - r->base_bytes : 0)},
        {"round_trip_ns", "ns", "round trip", r->round_trip_ns},
        {"latency_p50_ns", "ns", "latency, median", r->latency_ns[0]},
        {"latency_p90_ns", "ns", "latency, 90 %", r->latency_ns[1]},
        {"latency_p99_ns", "ns", "latency, 99 %", r->latency_ns[2]},
        {"latency_p999_ns", "ns", "latency, 99.9 %", r->latency_ns[3]},
        {"latency_max_ns", "ns", "latency, longest", r->latency_max_ns},
        {"core_to_core_before_ns", "ns", "core to core and back, before", r->core_before_ns},
        {"core_to_core_after_ns", "ns", "core to core and back, after", r->core_after_ns},
    };
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_COUNT(all); i++)
        if (isfinite(all[i].value))
            metrics[count++] = all[i];
    return count;
}

static void put_json(struct strbuf *out, const struct load_settings *s,
                     const struct metric *metrics, size_t count)
{
    struct json j = {.out = out};
    json_object(&j, NULL);
    json_object(&j, "settings");
    json_string(&j, "queue", s->queue);
    json_string(&j, "nodes", s->nodes);
    json_string(&j, "reclaim", s->reclaim);
    json_u64(&j, "producers", s->producers);
    json_u64(&j, "consumers", s->consumers);
    json_u64(&j, "items", s->items);
    json_u64(&j, "batch", s->batch);
    json_u64(&j, "payload_bytes", s->payload_bytes);
    json_u64(&j, "capacity", s->capacity);
    json_u64(&j, "backlog", s->burst ? s->items : s->backlog);
    json_string(&j, "pin", s->pin);
    json_string(&j, "wait", s->wait ? s->wait : "adaptive");
    json_bool(&j, "burst", s->burst);
    json_end(&j);
    json_bool(&j, "verified", true);
    json_object(&j, "metrics");
    for (size_t i = 0; i < count; i++)
        json_double(&j, metrics[i].name, metrics[i].value);
    json_end(&j);
    json_end(&j);
    strbuf_putc(out, '\n');
}

static void put_table(struct strbuf *out, const struct load_settings *s,
                      const struct metric *metrics, size_t count)
{
    char number[32];
    strbuf_printf(out, "%s%s%s%s%s: %llu producer%s, %llu consumer%s, ", s->queue,
                  s->nodes ? " " : "", s->nodes ? s->nodes : "", s->reclaim ? " " : "",
                  s->reclaim ? s->reclaim : "", (unsigned long long)s->producers,
                  s->producers == 1 ? "" : "s", (unsigned long long)s->consumers,
                  s->consumers == 1 ? "" : "s");
    strbuf_printf(out, "%s %s\n", format_thousands(s->items, number, sizeof(number)),
                  s->round_trip ? "round trips" : "items, each once and in order");
    for (size_t i = 0; i < count; i++) {
        strbuf_printf(out, "  %-32s", metrics[i].label);
        if (str_eq(metrics[i].unit, "B"))
            strbuf_printf(out, "%12s\n", format_bytes(metrics[i].value, number, sizeof(number)));
        else
            strbuf_printf(out, "%12.*f %s\n", metrics[i].value < 100 ? 2 : 0, metrics[i].value,
                          metrics[i].unit);
    }
}

static int report(const struct arguments *a, const struct load_result *r, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf out = {0}, lines = {0};
    struct metric metrics[METRICS_MAX];
    size_t count = list_metrics(r, metrics);
    const char *number = getenv("ASSAY_METRICS_FD");
    for (size_t i = 0; i < count; i++)
        strbuf_printf(&lines, "assay.metric %s %.9g %s\n", metrics[i].name, metrics[i].value,
                      metrics[i].unit);
    if (number)
        fd_write_all(atoi(number), strbuf_text(&lines), lines.length);
    int code = 0;
    if (a->json) {
        put_json(&out, &a->s, metrics, count);
        if (a->json[0])
            return file_write(a->json, strbuf_text(&out), out.length, err);
    } else {
        put_table(&out, &a->s, metrics, count);
    }
    code = fd_write_all(STDOUT_FILENO, strbuf_text(&out), out.length);
    return code < 0 ? error_errno(err, code, "standard output") : 0;
}

static void put_help(const char *program, const struct load_driver *const *drivers)
{
    CLEANUP(strbuf_done) struct strbuf help = {0}, names = {0};
    for (size_t i = 0; drivers[i]; i++)
        strbuf_printf(&names, "%s%s", i ? ", " : "", drivers[i]->name);
    CLEANUP(memory_freep)
    char *examples =
        memory_printf("queues: %s\n  %s --queue mpmc --producers 2 --consumers 2\n"
                      "  %s --queue ms --nodes cache --reclaim hazard --items 100000000\n"
                      "  %s --queue spsc --batch 32 --capacity 262144 --pin 0,1 --latency",
                      strbuf_text(&names), program, program, program);
    struct verb verb = {.name = "queue",
                        .summary = "move numbered items through a queue; check and time them",
                        .synopsis = "--queue Q [options]",
                        .examples = examples,
                        .options = options};
    options_help(&verb, &help);
    /* Its first line is that of a verb of assay. */
    const char *rest = strchr(strbuf_text(&help), '\n');
    dprintf(STDOUT_FILENO, "usage: %s %s%s", program, verb.synopsis, rest ? rest : "\n");
}

/* The names of queues are known only here. */
static int put_completion(const char *program, const struct load_driver *const *drivers,
                          const char *shell)
{
    CLEANUP(strbuf_done) struct strbuf names = {0}, out = {0};
    struct option table[sizeof(options) / sizeof(options[0])];
    struct error err = {0};
    for (size_t i = 0; drivers[i]; i++)
        strbuf_printf(&names, "%s%s", i ? " " : "", drivers[i]->name);
    memcpy(table, options, sizeof(options));
    table[0].complete = strbuf_text(&names);
    struct verb verb = {.name = "queue", .options = table};
    struct completion completion = {.program = program, .only = &verb, .words = ""};
    if (completion_write(&out, &completion, shell, &err) < 0) {
        fprintf(stderr, "%s: --completion: %s\n", program, err.message);
        return 2;
    }
    fputs(strbuf_text(&out), stdout);
    return 0;
}

int load_main(int argc, char **argv, const char *program, const struct load_driver *const *drivers)
{
    struct arguments a = {.s = {.producers = 1,
                                .consumers = 1,
                                .items = ITEMS_DEFAULT,
                                .batch = 1,
                                .payload_bytes = 8,
                                .waiter = QUEUE_WAITER}};
    struct error err = {0};
    struct load_result result;
    int first = options_parse(options, &a, argc, argv, &err);
    if (first == OPTIONS_HELP) {
        put_help(program, drivers);
        return 0;
    }
    if (first > 0 && a.completion)
        return put_completion(program, drivers, a.completion);
    if (first > 0 && first < argc)
        error_set(&err, -EINVAL, "unexpected argument '%s'; --help lists the options", argv[first]);
    const struct load_driver *driver = err.code < 0 ? NULL : find_driver(a.s.queue, drivers, &err);
    if (!driver || check(&a.s, driver, &err) < 0) {
        fprintf(stderr, "%s: %s\n", program, err.message);
        return 2;
    }
    if (load_run(&a.s, driver, &result, &err) < 0 || report(&a, &result, &err) < 0) {
        fprintf(stderr, "%s: %s\n", program, err.message);
        return 1;
    }
    return 0;
}
