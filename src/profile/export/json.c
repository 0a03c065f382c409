/* SPDX-License-Identifier: MIT */
/*
 * Profiles as JSON for speedscope and for the Firefox profiler.
 *
 * speedscope: https://www.speedscope.app/file-format-schema.json; one profile for each thread, its
 * samples in order of time.
 * Firefox: the "processed profile format", version 60, in which all threads share the tables of
 * stacks, frames and functions; newer readers upgrade it.
 */
#include "base/json.h"
#include "base/memory.h"
#include "profile/export/export.h"

#include <stdio.h>
#include <string.h>

#define FIREFOX_VERSION 60
#define FIREFOX_GECKO_VERSION 30
#define NS_PER_MS_DOUBLE 1e6

static void begin_array(struct export_out *out, const char *key, bool first)
{
    strbuf_printf(&out->text, "%s\"%s\":[", first ? "" : ",", key);
}

static void comma(struct export_out *out, size_t index)
{
    if (index > 0)
        strbuf_putc(&out->text, ',');
    export_spill(out);
}

static void put_text(struct export_out *out, const char *text)
{
    strbuf_put_json(&out->text, text, strlen(text));
}

static void put_name(struct export_out *out, uint32_t symbol, struct strbuf *name)
{
    strbuf_clear(name);
    calls_put_name(&out->profile->calls, symbol, name);
    strbuf_put_json(&out->text, strbuf_text(name), name->length);
}

static void put_thread_name(struct export_out *out, uint32_t event, uint32_t task)
{
    const struct profile *p = out->profile;
    CLEANUP(strbuf_done) struct strbuf name = {0};
    if (p->event_count > 1)
        strbuf_printf(&name, "%s: ", p->events[event].name);
    strbuf_printf(&name, "%s (%u/%u)", tasks_comm(&p->tasks, task), p->tasks.items[task].pid,
                  p->tasks.items[task].tid);
    strbuf_put_json(&out->text, strbuf_text(&name), name.length);
}

/* Frames are functions here: the line is where the function is declared. */
static void put_speedscope_frames(struct export_out *out)
{
    const struct calls *calls = &out->profile->calls;
    CLEANUP(strbuf_done) struct strbuf name = {0};
    strbuf_puts(&out->text, "\"shared\":{\"frames\":[");
    for (uint32_t i = 0; i < calls->symbol_count; i++) {
        const struct profile_symbol *s = &calls->symbols[i];
        comma(out, i);
        strbuf_puts(&out->text, "{\"name\":");
        put_name(out, i, &name);
        strbuf_puts(&out->text, ",\"file\":");
        if (s->function && s->function->declared_file) {
            put_text(out, s->function->declared_file);
            strbuf_printf(&out->text, ",\"line\":%u", s->function->declared_line);
        } else {
            put_text(out, calls->dsos.items[s->dso]);
        }
        strbuf_putc(&out->text, '}');
    }
    strbuf_puts(&out->text, "]}");
}

static void put_path(struct export_out *out, uint32_t node)
{
    const struct calls *calls = &out->profile->calls;
    uint32_t path[4096];
    size_t depth = 0;
    for (; node && depth < ARRAY_COUNT(path); node = calls->nodes[node].parent)
        path[depth++] = calls->frames[calls->nodes[node].frame].symbol;
    strbuf_putc(&out->text, '[');
    for (size_t i = depth; i-- > 0;)
        strbuf_printf(&out->text, i ? "%u," : "%u", path[i]);
    strbuf_putc(&out->text, ']');
}

/* One step of a speedscope profile: a stack and how long it lasted. */
struct step {
    uint32_t node;
    uint64_t weight;
};

static void put_speedscope_steps(struct export_out *out, uint32_t event, const struct step *steps,
                                 size_t count)
{
    const struct profile_event *e = &out->profile->events[event];
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += steps[i].weight;
    strbuf_printf(&out->text,
                  ",\"type\":\"sampled\",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%llu,"
                  "\"samples\":[",
                  e->is_time && !out->options->count_samples ? "nanoseconds" : "none",
                  (unsigned long long)total);
    for (size_t i = 0; i < count; i++) {
        comma(out, i);
        put_path(out, steps[i].node);
    }
    strbuf_puts(&out->text, "],\"weights\":[");
    for (size_t i = 0; i < count; i++) {
        comma(out, i);
        strbuf_printf(&out->text, "%llu", (unsigned long long)steps[i].weight);
    }
    strbuf_puts(&out->text, "]}");
}

static void put_speedscope_merged(struct export_out *out, uint32_t event, size_t *profile_count)
{
    const struct calls *calls = &out->profile->calls;
    struct step *steps = memory_zalloc(calls->cell_count + 1, sizeof(*steps));
    size_t count = 0;
    for (size_t i = 0; i < calls->cell_count; i++)
        if (calls->cells[i].event == event)
            steps[count++] =
                (struct step){calls->cells[i].node,
                              export_weight(out, calls->cells[i].samples, calls->cells[i].weight)};
    comma(out, (*profile_count)++);
    strbuf_puts(&out->text, "{\"name\":");
    put_text(out, out->profile->events[event].name);
    put_speedscope_steps(out, event, steps, count);
    free(steps);
}

static void put_speedscope_threads(struct export_out *out, uint32_t event, size_t *profile_count)
{
    const struct profile *p = out->profile;
    struct export_threads threads;
    export_threads_init(&threads, p, event);
    struct step *steps = memory_zalloc(p->sample_count + 1, sizeof(*steps));
    for (size_t t = 0; t < threads.count; t++) {
        size_t count = 0;
        for (uint32_t i = 0; i < threads.items[t].count; i++) {
            const struct profile_sample *s = &p->samples[threads.order[threads.items[t].first + i]];
            uint32_t node = p->call_nodes[s->node];
            if (!count || steps[count - 1].node != node)
                steps[count++] = (struct step){node, 0};
            steps[count - 1].weight += export_weight(out, 1, s->weight);
        }
        comma(out, (*profile_count)++);
        strbuf_puts(&out->text, "{\"name\":");
        put_thread_name(out, event, threads.items[t].task);
        put_speedscope_steps(out, event, steps, count);
    }
    free(steps);
    export_threads_done(&threads);
}

void export_speedscope(struct export_out *out)
{
    const struct profile *p = out->profile;
    size_t profile_count = 0;
    strbuf_puts(&out->text, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
                            "\"exporter\":\"assay\",\"name\":");
    put_text(out, p->path);
    strbuf_puts(&out->text, ",\"activeProfileIndex\":0,");
    put_speedscope_frames(out);
    strbuf_puts(&out->text, ",\"profiles\":[");
    for (uint32_t i = 0; i < p->event_count; i++) {
        if (!p->events[i].samples)
            continue;
        if (out->options->merged)
            put_speedscope_merged(out, i, &profile_count);
        else
            put_speedscope_threads(out, i, &profile_count);
    }
    strbuf_puts(&out->text, "]}\n");
}

/* Columns of the Firefox profiler's tables. */
static void put_numbers(struct export_out *out, const char *key, size_t count,
                        int64_t (*value)(const struct calls *calls, size_t index), bool first)
{
    begin_array(out, key, first);
    for (size_t i = 0; i < count; i++) {
        comma(out, i);
        int64_t number = value ? value(&out->profile->calls, i) : INT64_MIN;
        if (number == INT64_MIN)
            strbuf_puts(&out->text, "null");
        else
            strbuf_printf(&out->text, "%lld", (long long)number);
    }
    strbuf_putc(&out->text, ']');
}

static int64_t zero(const struct calls *calls, size_t index)
{
    (void)calls;
    (void)index;
    return 0;
}

static int64_t minus_one(const struct calls *calls, size_t index)
{
    return zero(calls, index) - 1;
}

static int64_t same(const struct calls *calls, size_t index)
{
    (void)calls;
    return (int64_t)index;
}

static int64_t stack_frame(const struct calls *calls, size_t index)
{
    return calls->nodes[index + 1].frame;
}

static int64_t stack_prefix(const struct calls *calls, size_t index)
{
    uint32_t parent = calls->nodes[index + 1].parent;
    return parent ? (int64_t)parent - 1 : INT64_MIN;
}

static int64_t frame_function(const struct calls *calls, size_t index)
{
    return calls->frames[index].symbol;
}

static int64_t frame_depth(const struct calls *calls, size_t index)
{
    return calls->frames[index].inlined;
}

static int64_t frame_line(const struct calls *calls, size_t index)
{
    uint32_t line = calls->srclines[calls->frames[index].srcline].line;
    return line ? (int64_t)line : INT64_MIN;
}

/* Categories: 0 other, 1 user, 2 kernel. */
static int64_t frame_category(const struct calls *calls, size_t index)
{
    return calls_symbol(calls, (uint32_t)index)->is_kernel ? 2 : 1;
}

static int64_t function_resource(const struct calls *calls, size_t index)
{
    return calls->symbols[index].dso;
}

static int64_t function_line(const struct calls *calls, size_t index)
{
    const struct function *f = calls->symbols[index].function;
    return f && f->declared_line ? (int64_t)f->declared_line : INT64_MIN;
}

static int64_t resource_name(const struct calls *calls, size_t index)
{
    return (int64_t)(calls->symbol_count + index);
}

static int64_t resource_type(const struct calls *calls, size_t index)
{
    return zero(calls, index) + 1; /* a library */
}

static void put_false(struct export_out *out, const char *key, size_t count)
{
    begin_array(out, key, false);
    for (size_t i = 0; i < count; i++) {
        comma(out, i);
        strbuf_puts(&out->text, "false");
    }
    strbuf_putc(&out->text, ']');
}

static void end_table(struct export_out *out, size_t count)
{
    strbuf_printf(&out->text, ",\"length\":%zu}", count);
}

/* The strings are the functions' names, then the binaries' names. */
static void put_firefox_tables(struct export_out *out)
{
    const struct calls *calls = &out->profile->calls;
    CLEANUP(strbuf_done) struct strbuf name = {0};
    size_t stacks = calls->node_count - 1, frames = calls->frame_count;
    size_t functions = calls->symbol_count, dsos = calls->dsos.count;
    strbuf_puts(&out->text, "\"shared\":{\"stackTable\":{");
    put_numbers(out, "frame", stacks, stack_frame, true);
    put_numbers(out, "prefix", stacks, stack_prefix, false);
    end_table(out, stacks);
    strbuf_puts(&out->text, ",\"frameTable\":{");
    put_numbers(out, "address", frames, minus_one, true);
    put_numbers(out, "inlineDepth", frames, frame_depth, false);
    put_numbers(out, "category", frames, frame_category, false);
    put_numbers(out, "subcategory", frames, zero, false);
    put_numbers(out, "func", frames, frame_function, false);
    put_numbers(out, "nativeSymbol", frames, NULL, false);
    put_numbers(out, "innerWindowID", frames, zero, false);
    put_numbers(out, "line", frames, frame_line, false);
    put_numbers(out, "column", frames, NULL, false);
    end_table(out, frames);
    strbuf_puts(&out->text, ",\"funcTable\":{");
    put_numbers(out, "name", functions, same, true);
    put_false(out, "isJS", functions);
    put_false(out, "relevantForJS", functions);
    put_numbers(out, "resource", functions, function_resource, false);
    put_numbers(out, "source", functions, NULL, false);
    put_numbers(out, "lineNumber", functions, function_line, false);
    put_numbers(out, "columnNumber", functions, NULL, false);
    end_table(out, functions);
    strbuf_puts(&out->text, ",\"resourceTable\":{");
    put_numbers(out, "lib", dsos, same, true);
    put_numbers(out, "name", dsos, resource_name, false);
    put_numbers(out, "host", dsos, NULL, false);
    put_numbers(out, "type", dsos, resource_type, false);
    end_table(out, dsos);
    strbuf_puts(&out->text,
                ",\"nativeSymbols\":{\"libIndex\":[],\"address\":[],\"name\":[],"
                "\"functionSize\":[],\"length\":0},"
                "\"sources\":{\"uuid\":[],\"filename\":[],\"length\":0},\"stringArray\":[");
    for (uint32_t i = 0; i < functions; i++) {
        comma(out, i);
        put_name(out, i, &name);
    }
    for (size_t i = 0; i < dsos; i++) {
        comma(out, functions + i);
        put_text(out, calls->dsos.items[i]);
    }
    strbuf_puts(&out->text, "]}");
}

static void put_firefox_samples(struct export_out *out, const struct export_threads *threads,
                                const struct export_thread *thread)
{
    const struct profile *p = out->profile;
    bool is_time = p->events[out->options->event].is_time && !out->options->count_samples;
    const uint32_t *order = threads->order + thread->first;
    begin_array(out, "stack", true);
    for (uint32_t i = 0; i < thread->count; i++) {
        uint32_t node = p->call_nodes[p->samples[order[i]].node];
        comma(out, i);
        if (node)
            strbuf_printf(&out->text, "%u", node - 1);
        else
            strbuf_puts(&out->text, "null");
    }
    strbuf_puts(&out->text, "],\"time\":[");
    for (uint32_t i = 0; i < thread->count; i++) {
        comma(out, i);
        strbuf_printf(&out->text, "%.6f",
                      (double)(p->samples[order[i]].time_ns - p->first_ns) / NS_PER_MS_DOUBLE);
    }
    strbuf_puts(&out->text, "],\"weight\":[");
    for (uint32_t i = 0; i < thread->count; i++) {
        uint64_t weight = export_weight(out, 1, p->samples[order[i]].weight);
        comma(out, i);
        if (is_time)
            strbuf_printf(&out->text, "%.6f", (double)weight / NS_PER_MS_DOUBLE);
        else
            strbuf_printf(&out->text, "%llu", (unsigned long long)weight);
    }
    if (p->events[out->options->event].is_time && !p->events[out->options->event].is_off_cpu) {
        strbuf_puts(&out->text, "],\"threadCPUDelta\":[");
        for (uint32_t i = 0; i < thread->count; i++) {
            comma(out, i);
            strbuf_printf(&out->text, "%llu", (unsigned long long)p->samples[order[i]].weight);
        }
    }
    strbuf_printf(&out->text, "],\"weightType\":\"%s\",\"length\":%u}",
                  is_time ? "tracing-ms" : "samples", thread->count);
}

static void put_firefox_thread(struct export_out *out, const struct export_threads *threads,
                               const struct export_thread *thread)
{
    const struct profile *p = out->profile;
    const struct profile_task *task = &p->tasks.items[thread->task];
    const char *comm = tasks_comm(&p->tasks, thread->task);
    uint64_t first = p->samples[threads->order[thread->first]].time_ns - p->first_ns;
    strbuf_puts(&out->text, "{\"processType\":\"default\",\"processStartupTime\":0,"
                            "\"processShutdownTime\":null,\"registerTime\":");
    strbuf_printf(&out->text,
                  "%.6f,\"unregisterTime\":null,\"pausedRanges\":[],\"isMainThread\":%s,"
                  "\"pid\":\"%u\",\"tid\":%u,\"name\":",
                  (double)first / NS_PER_MS_DOUBLE, task->pid == task->tid ? "true" : "false",
                  task->pid, task->tid);
    put_text(out, comm);
    strbuf_puts(&out->text, ",\"processName\":");
    put_text(out, comm);
    strbuf_puts(&out->text, ",\"markers\":{\"data\":[],\"name\":[],\"startTime\":[],"
                            "\"endTime\":[],\"phase\":[],\"category\":[],\"length\":0},"
                            "\"samples\":{");
    put_firefox_samples(out, threads, thread);
    strbuf_putc(&out->text, '}');
}

static void put_firefox_meta(struct export_out *out)
{
    const struct profile *p = out->profile;
    const struct profile_event *e = &p->events[out->options->event];
    double interval_ms = e->frequency_hz           ? 1e3 / (double)e->frequency_hz
                         : e->is_time && e->period ? (double)e->period / NS_PER_MS_DOUBLE
                                                   : 1;
    double start_ms = p->clock_wall_ns
                          ? ((double)p->clock_wall_ns - (double)p->clock_ns + (double)p->first_ns) /
                                NS_PER_MS_DOUBLE
                          : 0;
    struct json j = {.out = &out->text, .compact = true};
    json_object(&j, NULL);
    json_double(&j, "interval", interval_ms);
    json_double(&j, "startTime", start_ms);
    json_u64(&j, "processType", 0);
    json_string(&j, "product", p->command_line ? p->command_line : p->path);
    json_u64(&j, "stackwalk", 1);
    json_u64(&j, "version", FIREFOX_GECKO_VERSION);
    json_u64(&j, "preprocessedProfileVersion", FIREFOX_VERSION);
    json_bool(&j, "symbolicated", true);
    json_string(&j, "importedFrom", "assay");
    json_string(&j, "oscpu", p->os_release ? p->os_release : "Linux");
    if (p->cpu_description)
        json_string(&j, "CPUName", p->cpu_description);
    json_bool(&j, "usesOnlyOneStackType", true);
    json_bool(&j, "sourceCodeIsNotOnSearchfox", true);
    json_object(&j, "sampleUnits");
    json_string(&j, "time", "ms");
    json_string(&j, "eventDelay", "ms");
    json_string(&j, "threadCPUDelta", "ns");
    json_end(&j);
    json_array(&j, "markerSchema");
    json_end(&j);
    static const char *const categories[][2] = {
        {"Other", "grey"}, {"User", "yellow"}, {"Kernel", "orange"}};
    json_array(&j, "categories");
    for (size_t i = 0; i < ARRAY_COUNT(categories); i++) {
        json_object(&j, NULL);
        json_string(&j, "name", categories[i][0]);
        json_string(&j, "color", categories[i][1]);
        json_array(&j, "subcategories");
        json_string(&j, NULL, "Other");
        json_end(&j);
        json_end(&j);
    }
    json_end(&j);
    json_end(&j);
}

static void put_firefox_libs(struct export_out *out)
{
    const struct names *dsos = &out->profile->calls.dsos;
    strbuf_puts(&out->text, ",\"libs\":[");
    for (size_t i = 0; i < dsos->count; i++) {
        comma(out, i);
        struct json j = {.out = &out->text, .compact = true};
        json_object(&j, NULL);
        json_string(&j, "arch", out->profile->arch ? out->profile->arch : "");
        json_string(&j, "name", dsos->items[i]);
        json_string(&j, "path", dsos->items[i]);
        json_string(&j, "debugName", dsos->items[i]);
        json_string(&j, "debugPath", dsos->items[i]);
        json_string(&j, "breakpadId", "000000000000000000000000000000000");
        json_null(&j, "codeId");
        json_end(&j);
    }
    strbuf_puts(&out->text, "],");
}

void export_firefox(struct export_out *out)
{
    struct export_threads threads;
    export_threads_init(&threads, out->profile, out->options->event);
    strbuf_puts(&out->text, "{\"meta\":");
    put_firefox_meta(out);
    put_firefox_libs(out);
    put_firefox_tables(out);
    strbuf_puts(&out->text, ",\"threads\":[");
    for (size_t i = 0; i < threads.count; i++) {
        comma(out, i);
        put_firefox_thread(out, &threads, &threads.items[i]);
    }
    strbuf_puts(&out->text, "]}\n");
    export_threads_done(&threads);
}
