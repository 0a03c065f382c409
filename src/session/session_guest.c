/* SPDX-License-Identifier: MIT */
/* Cells that run in emulated machines: see guests.h. */
#include "base/json.h"
#include "base/memory.h"
#include "base/process.h"
#include "run/command.h"
#include "session/git.h"
#include "session/guests.h"
#include "session/session_internal.h"
#include "vm/describe.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#define PATH_LENGTH "perf-stat.overall.path-length"
#define INSTRUCTIONS "perf-stat.total.instructions"
#define BOOT_INSTRUCTIONS "boot-time.instructions"
#define STARTUP_WORDS "; start-up, as a run with --ops 0 counts it, is subtracted from path-length"

/* More mappings than a program has by itself: more than a leaf of the kernel's tree of them holds.
 */
enum { MAPPINGS_MAX = 32, MAPPINGS_STEP = 13 };

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
        strbuf_printf(&s->notes, "%s\n", guests_words(s->guests));
    return r;
}

void session_close_guests(struct session *s)
{
    if (s->guests)
        guests_done(s->guests);
    free(s->guests);
    s->guests = NULL;
}

/* Each number once in so many rounds, in no order: neighbours would resemble each other. */
static unsigned mappings_of(uint64_t round)
{
    return (unsigned)(round * MAPPINGS_STEP % MAPPINGS_MAX);
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

/* The number behind --ops, which a command of a given number of operations has; NULL for none. */
static char **find_operations(char **argv)
{
    for (size_t i = 1; argv[0] && argv[i]; i++) {
        const char *text = argv[i + 1];
        if (str_eq(argv[i], "--ops") && text && *text && !text[strspn(text, "0123456789")])
            return &argv[i + 1];
    }
    return NULL;
}

static int take_operations_away(char **argv)
{
    char **number = find_operations(argv);
    if (!number)
        return -ENOENT;
    free(*number);
    *number = memory_strdup("0");
    return 0;
}

bool session_subtracts_startup(const struct session *s)
{
    bool wants = s->spec.work && !s->spec.vm.keeps_startup && !s->guests->startup_failed;
    for (size_t c = 0; wants && c < s->matrix.count; c++)
        if (s->kept[c] && !find_operations(s->cells[c].argv))
            wants = false;
    return wants;
}

int session_measure_in_guest(struct session *s, size_t cell, const struct hole_values *values,
                             size_t padding_bytes, struct run_result *result, struct error *err)
{
    struct guests *g = s->guests;
    int r = 0;
    g->has_startup = false;
    if (session_subtracts_startup(s)) {
        const struct guest_again none = {.padding_bytes = padding_bytes, .is_startup = true};
        r = session_run_in_guest(s, cell, values, &none, result, err);
        if (r == 0 && !run_failed(result) && guests_is_first(g, &s->matrix, cell))
            r = session_run_in_guest(s, cell, values, &none, result, err);
        if (r == 0 && result->signal)
            return 0;
        g->has_startup = r == 0 && !run_failed(result);
        g->startup_failed = r == 0 && !g->has_startup;
        if (g->has_startup)
            vm_counts_move(&g->startup, &g->result.counts);
    }
    const struct guest_again once = {.padding_bytes = padding_bytes, .is_watched = true};
    return r < 0 ? r : session_run_in_guest(s, cell, values, &once, result, err);
}

int session_run_in_guest(struct session *s, size_t cell, const struct hole_values *values,
                         const struct guest_again *how, struct run_result *result,
                         struct error *err)
{
    char **argv = NULL;
    CLEANUP(memory_freep) char *events = name_events(how);
    int r = holes_command(&s->spec.command, values, &argv, err);
    if (r == 0 && how->is_startup)
        r = take_operations_away(argv);
    if (r == 0)
        r = steps_before(&s->steps, values, false, err);
    if (r == 0) {
        struct guest_job job = {.cell = cell,
                                .round = values->round,
                                .argv = argv,
                                .before = how->before,
                                .variables = s->cells[cell].environment,
                                .padding_bytes = how->padding_bytes,
                                .has_layout = s->spec.vary_layout,
                                .mapping_count = mappings_of(values->round),
                                .events = events,
                                .monitors = how->is_watched ? &s->monitors : NULL,
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

bool session_drops_time(const struct session *s, size_t cell, const char *name, const char *unit)
{
    if (!s->guests || guests_times_count(s->guests, &s->matrix, cell))
        return false;
    struct strbuf *left_out = &s->guests->left_out;
    CLEANUP(memory_freep) char *word = memory_printf("%s (%s)", name, unit);
    if (!left_out->length || !strstr(left_out->data, word))
        strbuf_printf(left_out, "%s%s", left_out->length ? ", " : "", word);
    return true;
}

bool session_drops_unit(const struct session *s, size_t cell, const char *name, const char *unit)
{
    return guest_unit_is_time(unit) && session_drops_time(s, cell, name, unit);
}

/* The commit that an image was built from, where it stands in a git tree. */
static void put_commit(struct json *j, const struct vm_kernel *k)
{
    CLEANUP(strbuf_done) struct strbuf said = {0};
    struct error ignored;
    if (!strchr(k->name, '/') ||
        GIT(k->folder, &said, &ignored, "log", "-1", "--format=%H %s", "HEAD") < 0)
        return;
    char *blank = said.length ? strchr(said.data, ' ') : NULL;
    if (!blank)
        return;
    *blank = '\0';
    json_string(j, "git_commit", said.data);
    json_string(j, "git_subject", blank + 1);
}

static void put_kernel(struct json *j, const struct spec_level *level, const struct vm_kernel *k)
{
    struct vm_kernel_facts facts = {0};
    vm_kernel_describe(k, &facts);
    json_object(j, level->name);
    json_string(j, "image", guests_image(level));
    json_string(j, "kernel", k->name);
    json_string(j, "release", facts.release);
    json_string(j, "version", facts.version);
    json_string(j, "compiler", facts.compiler);
    put_commit(j, k);
    json_end(j);
}

void session_put_guests(const struct session *s, struct json *j)
{
    const struct guests *g = s->guests;
    const struct spec_factor *f = &s->spec.factors[s->spec.kernel_factor];
    const struct vm_settings *settings = NULL;
    CLEANUP(memory_freep)
    char *words =
        memory_printf("%s%s", guests_words(g), session_subtracts_startup(s) ? STARTUP_WORDS : "");
    json_string(j, "emulated", words);
    if (s->spec.vary_layout)
        json_string(j, "layouts", "rounds");
    json_object(j, "kernels");
    for (size_t i = 0; i < g->count; i++)
        if (g->items[i].kernel.name) {
            settings = &g->items[i].settings;
            put_kernel(j, &f->levels[i], &g->items[i].kernel);
        }
    json_end(j);
    json_object(j, "vm");
    if (settings) {
        json_string(j, "arch", settings->arch->name);
        json_string(j, "cpu", settings->arch->cpu);
        json_u64(j, "memory_bytes",
                 settings->memory_bytes ? settings->memory_bytes : VM_MEMORY_BYTES);
        json_u64(j, "cpus", settings->cpu_count ? settings->cpu_count : 1);
        json_string(j, "kernel_words", VM_FIXED_WORDS);
        json_string(j, "append", settings->append);
    }
    json_end(j);
}

void session_note_left_out(struct session *s)
{
    if (s->guests && s->guests->left_out.length)
        strbuf_printf(&s->notes,
                      "left out, because times in an emulated machine mean nothing: %s\n",
                      strbuf_text(&s->guests->left_out));
    for (size_t i = 0; s->guests && i < s->spec.monitor_count; i++)
        if (monitor_class(monitor_find(s->spec.monitors[i])) == MONITOR_TRACES)
            strbuf_printf(&s->notes,
                          "left out, because it watches this machine, not the emulated ones: %s\n",
                          s->spec.monitors[i]);
    CLEANUP(strbuf_done) struct strbuf unread = {0};
    if (s->guests && s->monitors_open && s->guests->watched)
        monitors_put_unread(&s->monitors, &unread);
    if (unread.length)
        strbuf_printf(&s->notes, "not available in the emulated machines: %s\n",
                      strbuf_text(&unread));
}

/* instructions:u of perf-stat.total.instructions:u, for each unit of work. */
static void put_path_length(const struct vm_count *count, double startup, double work,
                            session_value_fn *put, void *context)
{
    static const struct {
        const char *event, *name;
    } names[] = {{"instructions", PATH_LENGTH},
                 {"instructions:u", PATH_LENGTH ":u"},
                 {"instructions:k", PATH_LENGTH ":k"}};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        if (str_eq(count->name, names[i].event))
            put(context, names[i].name, "", (counter_scaled(&count->value) - startup) / work);
}

void session_give_counts(struct session *s, size_t cell, session_value_fn *put, void *context)
{
    const struct vm_counts *counts = guests_counts(s->guests);
    const struct metric *work =
        s->spec.work ? metrics_find(&s->result.metrics, s->spec.work) : NULL;
    bool times = guests_times_count(s->guests, &s->matrix, cell);
    uint64_t boot = guests_new_boot(s->guests, &s->matrix, cell);
    if (boot)
        put(context, BOOT_INSTRUCTIONS, "", (double)boot);
    for (size_t i = 0; i < counts->count; i++) {
        const struct vm_count *c = &counts->items[i];
        bool is_time = strstr(c->name, "clock") || str_has_prefix(c->name, "cycles") ||
                       str_has_prefix(c->name, "cpu-cycles");
        if (c->why || !counter_was_counted(&c->value) || (is_time && !times))
            continue;
        CLEANUP(memory_freep) char *name = memory_printf("perf-stat.total.%s", c->name);
        put(context, name, "", counter_scaled(&c->value));
        if (!work || work->value <= 0)
            continue;
        const struct vm_count *start =
            s->guests->has_startup ? vm_counts_find(&s->guests->startup, c->name) : NULL;
        bool has_start = start && !start->why;
        double startup = has_start ? counter_scaled(&start->value) : 0;
        if (has_start) {
            CLEANUP(memory_freep) char *at_start = memory_printf("perf-stat.startup.%s", c->name);
            put(context, at_start, "", startup);
        }
        put_path_length(c, startup, work->value, put, context);
    }
}
