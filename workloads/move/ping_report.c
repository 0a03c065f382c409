/* SPDX-License-Identifier: MIT */
/* What round trips took: a table with a histogram, JSON, and metrics for assay. */
#include "base/json.h"
#include "base/memory.h"
#include "ping.h"
#include "report.h"

#include <math.h>
#include <stdio.h>

static void list_figures(const struct settings *s, const struct ping_result *r, struct figures *f)
{
    const struct ping_times *t = &r->times;
    double wall_s = (double)r->wall_ns / 1e9;
    const struct figure all[] = {
        {"ping_p50_us", "us", ping_times_quantile(t, 0.5) / 1e3, "round trip, median"},
        {"ping_p90_us", "us", ping_times_quantile(t, 0.9) / 1e3, "90 %"},
        {"ping_p99_us", "us", ping_times_quantile(t, 0.99) / 1e3, "99 %"},
        {"ping_p999_us", "us", ping_times_quantile(t, 0.999) / 1e3, "99.9 %"},
        {"ping_max_us", "us", t->count ? (double)t->max_ns / 1e3 : NAN, "longest"},
        {"ping_mean_us", "us", (double)t->sum_ns / (double)t->count / 1e3, "mean"},
        {"ping_per_second", "1/s", (double)t->count / wall_s, "answers per second"},
        {"ping_unanswered", "messages", (double)r->unanswered, "not answered"},
        {"ping_late", "messages", s->rate ? (double)r->late : NAN,
         "sent more than an interval late"},
        {"ping_client_cpu_us", "us", (double)r->client_cpu_ns / 1e3,
         "CPU per round trip, asking side"},
        {"ping_echo_cpu_us", "us", (double)r->echo_cpu_ns / 1e3,
         "CPU per round trip, answering side"},
    };
    f->count = 0;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (isfinite(all[i].value))
            f->list[f->count++] = all[i];
}

/* A line for each power of two in which there is something. */
static void put_histogram(const struct ping_times *t)
{
    uint64_t sums[64] = {0}, most = 0;
    size_t first = 64, last = 0;
    for (size_t b = 0; b < PING_BUCKETS; b++) {
        size_t line = b < 64 ? 0 : b / 64;
        sums[line] += t->buckets[b];
        most = sums[line] > most ? sums[line] : most;
        if (t->buckets[b]) {
            first = line < first ? line : first;
            last = line;
        }
    }
    for (size_t line = first; line <= last && most; line++) {
        char bar[41] = "";
        size_t length = (size_t)(40 * sums[line] / most);
        memset(bar, '#', length ? length : sums[line] > 0);
        printf("  from %9.2f us %12llu  %s\n", ping_bucket_ns(line ? line * 64 : 0) / 1e3,
               (unsigned long long)sums[line], bar);
    }
}

static void put_json(const struct settings *s, const struct ping_result *r, const struct figures *f)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    struct json j = {.out = &out};
    json_object(&j, NULL);
    json_object(&j, "settings");
    json_string(&j, "ping", s->ping);
    json_string(&j, "transport", transport_text(s->transport));
    json_u64(&j, "size", s->size);
    json_u64(&j, "rate", s->rate);
    json_string(&j, "pin", s->pin);
    json_end(&j);
    json_object(&j, "metrics");
    for (size_t i = 0; i < f->count; i++)
        json_double(&j, f->list[i].name, f->list[i].value);
    json_end(&j);
    json_array(&j, "histogram");
    for (size_t b = 0; b < PING_BUCKETS; b++) {
        if (!r->times.buckets[b])
            continue;
        json_object(&j, NULL);
        json_double(&j, "from_ns", ping_bucket_ns(b));
        json_double(&j, "to_ns", ping_bucket_ns(b + 1));
        json_u64(&j, "count", r->times.buckets[b]);
        json_end(&j);
    }
    json_end(&j);
    json_end(&j);
    fputs(strbuf_text(&out), stdout);
    putchar('\n');
}

void ping_report(const struct settings *s, const struct ping_result *r)
{
    struct figures f;
    list_figures(s, r, &f);
    report_metrics(&f);
    if (s->json) {
        put_json(s, r, &f);
        return;
    }
    printf("ping over %s%s%s, %llu bytes, ", transport_text(s->transport), *s->ping ? ", " : "",
           s->ping, (unsigned long long)s->size);
    if (s->rate)
        printf("%llu per second, on a schedule\n", (unsigned long long)s->rate);
    else
        printf("each after the previous one\n");
    for (size_t i = 0; i < f.count; i++)
        printf("  %-36s %12.*f %s\n", f.list[i].words, f.list[i].value < 1000 ? 2 : 0,
               f.list[i].value, f.list[i].unit);
    put_histogram(&r->times);
}
