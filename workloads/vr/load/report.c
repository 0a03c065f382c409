/* SPDX-License-Identifier: MIT */
#include "vr/load/report.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>

void vr_figures_add(struct vr_figures *f, const char *name, const char *unit, const char *words,
                    double value)
{
    assert(f->count < VR_FIGURES_MAX);
    struct vr_figure *item = &f->items[f->count++];
    *item = (struct vr_figure){.unit = unit, .words = words, .value = value};
    snprintf(item->name, sizeof(item->name), "%s", name);
}

void vr_figures_load(struct vr_figures *f, const struct vr_load_settings *s,
                     const struct vr_load_result *r)
{
    static const struct {
        const char *name, *corrected, *words, *corrected_words;
        double share;
    } points[] = {{"p50", "corrected_p50", "p50", NULL, 0.5},
                  {"p90", "corrected_p90", "p90", NULL, 0.9},
                  {"p99", "corrected_p99", "p99", "p99, corrected", 0.99},
                  {"p999", "corrected_p999", "p99.9", "p99.9, corrected", 0.999},
                  {"p9999", "corrected_p9999", "p99.99", "p99.99, corrected", 0.9999}};
    double seconds = (double)r->elapsed_ns / 1e9;
    vr_figures_add(f, "throughput", "ops/s", "throughput",
                   seconds > 0 ? (double)r->done / seconds : 0);
    for (size_t i = 0; i < ARRAY_COUNT(points); i++)
        vr_figures_add(f, points[i].name, "us", points[i].words,
                       (double)vr_hist_at(&r->hist, points[i].share) / 1e3);
    vr_figures_add(f, "latency_mean", "us", "mean", vr_hist_mean(&r->hist) / 1e3);
    vr_figures_add(f, "latency_max", "us", "slowest", (double)r->hist.max / 1e3);
    if (s->rate <= 0 && r->done) {
        struct vr_hist *corrected = memory_alloc(sizeof(*corrected));
        vr_hist_correct(&r->hist, r->elapsed_ns / (r->done / s->clients + 1), corrected);
        for (size_t i = 0; i < ARRAY_COUNT(points); i++)
            vr_figures_add(f, points[i].corrected, "us", points[i].corrected_words,
                           (double)vr_hist_at(corrected, points[i].share) / 1e3);
        free(corrected);
    }
    vr_figures_add(f, "requests", "ops", "answered", (double)r->done);
    vr_figures_add(f, "elapsed", "s", "time", seconds);
    vr_figures_add(f, "longest_gap", "ms", "longest gap", (double)r->gap_ns / 1e6);
    vr_figures_add(f, "resends", "packets", r->resends ? "requests resent" : NULL,
                   (double)r->resends);
    vr_figures_add(f, "evictions", "sessions", r->evictions ? "sessions evicted" : NULL,
                   (double)r->evictions);
    vr_figures_add(f, "unanswered", "ops", r->unanswered ? "never answered" : NULL,
                   (double)r->unanswered);
    vr_figures_add(f, "failed", "ops", NULL, (double)r->failed);
}

static void put_json(const struct vr_figures *f, struct strbuf *out)
{
    struct json j = {.out = out};
    json_object(&j, NULL);
    for (size_t i = 0; i < f->count; i++)
        json_double(&j, f->items[i].name, f->items[i].value);
    json_end(&j);
    strbuf_putc(out, '\n');
}

static void put_table(const struct vr_figures *f, const char *head, struct strbuf *out)
{
    strbuf_printf(out, "%s\n", head);
    for (size_t i = 0; i < f->count; i++) {
        const struct vr_figure *item = &f->items[i];
        char number[32];
        if (!item->words)
            continue;
        if (item->value >= 10000)
            format_thousands((uint64_t)item->value, number, sizeof(number));
        else
            snprintf(number, sizeof(number), "%.*f", item->value < 100 ? 2 : 0, item->value);
        strbuf_printf(out, "  %-23s%14s %s\n", item->words, number,
                      str_eq(item->unit, "us") ? "µs" : item->unit);
    }
}

int vr_figures_print(const struct vr_figures *f, const char *head, bool json, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf out = {0}, lines = {0};
    const char *number = getenv("ASSAY_METRICS_FD");
    for (size_t i = 0; i < f->count; i++)
        strbuf_printf(&lines, "assay.metric %s %.9g %s\n", f->items[i].name, f->items[i].value,
                      f->items[i].unit);
    int code = number ? fd_write_all(atoi(number), strbuf_text(&lines), lines.length) : 0;
    if (code < 0)
        return error_errno(err, code, "the metrics' descriptor (ASSAY_METRICS_FD=%s)", number);
    if (json)
        put_json(f, &out);
    else
        put_table(f, head, &out);
    code = fd_write_all(STDOUT_FILENO, strbuf_text(&out), out.length);
    return code < 0 ? error_errno(err, code, "standard output") : 0;
}
