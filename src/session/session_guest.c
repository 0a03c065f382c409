/* SPDX-License-Identifier: MIT */
/* Cells that run in emulated machines: see guests.h. */
#include "base/memory.h"
#include "base/process.h"
#include "run/command.h"
#include "session/guests.h"
#include "session/session_internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#define PATH_LENGTH "perf-stat.overall.path-length"
#define INSTRUCTIONS "perf-stat.total.instructions"

const char *session_default_headline(const struct spec *spec)
{
    if (spec->exact)
        return spec->exact_metric ? spec->exact_metric : EXACT_INSTRUCTIONS;
    if (spec->kernel_factor == SPEC_NO_FACTOR)
        return "wall";
    return spec->work ? PATH_LENGTH : INSTRUCTIONS;
}

static void show_tick(void *context, const char *what)
{
    (void)what;
    struct session *s = context;
    session_show_progress(s);
}

int session_open_guests(struct session *s, struct error *err)
{
    if (s->spec.kernel_factor == SPEC_NO_FACTOR)
        return 0;
    s->guests = memory_zalloc(1, sizeof(*s->guests));
    s->guests->on_tick = show_tick;
    s->guests->context = s;
    struct guest_cell *cells = memory_zalloc(s->matrix.count, sizeof(*cells));
    for (size_t c = 0; c < s->matrix.count; c++)
        if (s->kept[c])
            cells[c] =
                (struct guest_cell){.argv = s->cells[c].argv,
                                    .folder = spec_folder(&s->spec, s->matrix.cells[c].levels),
                                    .input = s->cells[c].input};
    int r = guests_open(s->guests, &s->matrix, cells, err);
    free(cells);
    if (r == 0)
        strbuf_puts(&s->notes, VM_EMULATED_WORDS "\n");
    return r;
}

void session_close_guests(struct session *s)
{
    if (s->guests)
        guests_done(s->guests);
    free(s->guests);
    s->guests = NULL;
}

/* As -e takes them. */
static char *name_events(const struct guest_again *how)
{
    struct strbuf names = {0};
    if (!how->before && !how->events)
        return NULL;
    strbuf_puts(&names, "");
    for (size_t i = 0; !how->before && i < how->events->count; i++)
        strbuf_printf(&names, "%s%s", i ? "," : "", how->events->items[i].name);
    return names.data;
}

/* Values in the order of the list, as a runner gives them. */
static void take_values(const struct session *s, const struct event_list *events,
                        struct run_result *result)
{
    if (result->value_count != events->count)
        result->values = memory_resize(result->values, events->count + 1, sizeof(*result->values));
    result->value_count = events->count;
    for (size_t i = 0; i < events->count; i++) {
        const struct vm_count *c = vm_counts_find(guests_counts(s->guests), events->items[i].name);
        result->values[i] = c && !c->why ? c->value : (struct counter_value){.failed = true};
    }
}

int session_run_in_guest(struct session *s, size_t cell, const struct hole_values *values,
                         const struct guest_again *how, struct run_result *result,
                         struct error *err)
{
    char **argv = NULL;
    CLEANUP(memory_freep) char *events = name_events(how);
    int r = holes_command(&s->spec.command, values, &argv, err);
    if (r == 0)
        r = steps_before(&s->steps, values, false, err);
    if (r == 0) {
        struct guest_job job = {.cell = cell,
                                .round = values->round,
                                .argv = argv,
                                .before = how->before,
                                .variables = s->cells[cell].environment,
                                .padding_bytes = how->padding_bytes,
                                .events = events,
                                .timeout_ns = s->options->timeout_ns ? s->options->timeout_ns
                                                                     : s->spec.timeout_ns};
        r = guests_run(s->guests, &s->matrix, &job, result, err);
        if (r == 0 && how->events)
            take_values(s, how->events, result);
        if (r == 0)
            r = steps_check(&s->steps, err);
        struct error ignored;
        int after = steps_after(&s->steps, values, false, r < 0 ? &ignored : err);
        r = r < 0 ? r : after;
    }
    command_free_words(argv);
    return r;
}

bool session_drops_unit(const struct session *s, size_t cell, const char *name, const char *unit)
{
    if (!s->guests || guests_times_count(s->guests, &s->matrix, cell) || !guest_unit_is_time(unit))
        return false;
    struct strbuf *left_out = &s->guests->left_out;
    CLEANUP(memory_freep) char *word = memory_printf("%s (%s)", name, unit);
    if (!left_out->length || !strstr(left_out->data, word))
        strbuf_printf(left_out, "%s%s", left_out->length ? ", " : "", word);
    return true;
}

void session_note_left_out(struct session *s)
{
    if (s->guests && s->guests->left_out.length)
        strbuf_printf(&s->notes,
                      "left out, because times in an emulated machine mean nothing: %s\n",
                      strbuf_text(&s->guests->left_out));
    for (size_t i = 0; s->guests && i < s->spec.monitor_count; i++)
        if (!str_eq(s->spec.monitors[i], "perf-profile"))
            strbuf_printf(&s->notes,
                          "left out, because it watches this machine, not the emulated ones: %s\n",
                          s->spec.monitors[i]);
}

/* instructions:u of perf-stat.total.instructions:u, for each unit of work. */
static void put_path_length(const struct vm_count *count, double work, session_value_fn *put,
                            void *context)
{
    static const struct {
        const char *event, *name;
    } names[] = {{"instructions", PATH_LENGTH},
                 {"instructions:u", PATH_LENGTH ":u"},
                 {"instructions:k", PATH_LENGTH ":k"}};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        if (str_eq(count->name, names[i].event))
            put(context, names[i].name, "", counter_scaled(&count->value) / work);
}

void session_give_counts(struct session *s, size_t cell, session_value_fn *put, void *context)
{
    const struct vm_counts *counts = guests_counts(s->guests);
    const struct metric *work =
        s->spec.work ? metrics_find(&s->result.metrics, s->spec.work) : NULL;
    bool times = guests_times_count(s->guests, &s->matrix, cell);
    for (size_t i = 0; i < counts->count; i++) {
        const struct vm_count *c = &counts->items[i];
        bool is_time = strstr(c->name, "clock") || str_has_prefix(c->name, "cycles") ||
                       str_has_prefix(c->name, "cpu-cycles");
        if (c->why || !counter_was_counted(&c->value) || (is_time && !times))
            continue;
        CLEANUP(memory_freep) char *name = memory_printf("perf-stat.total.%s", c->name);
        put(context, name, "", counter_scaled(&c->value));
        if (work && work->value > 0)
            put_path_length(c, work->value, put, context);
    }
}
