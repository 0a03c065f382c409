/* SPDX-License-Identifier: MIT */
/* See guests.h. */
#include "session/guests.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "vm/guest.h"
#include "vm/symbols.h"

#include <errno.h>
#include <stdio.h>

#define RECORDING "/tmp/assay.data"
#define RECORDING_PERIOD "50021"
enum { ROUNDS_PER_BOOT = 5 };

const char *guests_image(const struct spec_level *level)
{
    for (size_t i = 0; i < level->attributes.count; i++)
        if (str_eq(level->attributes.items[i].name, "image"))
            return level->attributes.items[i].value;
    return level->name;
}

static size_t level_index(const struct guests *g, const struct matrix *matrix, size_t cell)
{
    const struct spec_factor *f = &g->spec->factors[g->spec->kernel_factor];
    return (size_t)(matrix->cells[cell].levels[g->spec->kernel_factor] - f->levels);
}

static int open_kernel(struct guests *g, struct guest *guest, const struct spec_level *level,
                       struct error *err)
{
    const struct spec_vm *vm = &g->spec->vm;
    const char *word = guests_image(level);
    CLEANUP(memory_freep)
    char *path = strchr(word, '/') && word[0] != '/' ? memory_printf("%s/%s", g->spec->folder, word)
                                                     : memory_strdup(word);
    int r = vm_kernel_find(&guest->kernel, path, err);
    if (r == 0 && vm->arch)
        r = vm_arch_named(vm->arch, &guest->settings.arch, err);
    if (r < 0)
        return error_wrap(err, r, "%s:%zu: kernel", g->spec->file, level->line);
    if (!vm->arch)
        guest->settings.arch = guest->kernel.arch ? guest->kernel.arch : vm_arch_find("aarch64");
    for (size_t i = 0; r == 0 && i < vm->file_count; i++)
        r = vm_files_add(&guest->files, vm->files[i], g->spec->folder, err);
    if (r < 0)
        return error_wrap(err, r, "%s: vm.files", g->spec->file);
    return vm_machine_check(guest->settings.arch, err);
}

static void on_tick(void *context, const char *what)
{
    struct guests *g = context;
    if (g->on_tick)
        g->on_tick(g->context, what);
}

static int finish_settings(struct guests *g, struct guest *guest, struct error *err)
{
    const struct spec_vm *vm = &g->spec->vm;
    struct vm_settings *s = &guest->settings;
    s->kernel = &guest->kernel;
    s->files = &guest->files;
    s->memory_bytes = vm->memory_bytes;
    s->cpu_count = (unsigned)vm->cpus;
    s->append = vm->append;
    s->accel = vm->accel;
    s->boot_timeout_ns = vm->boot_timeout_ns;
    s->on_tick = on_tick;
    s->context = g;
    int r = g->program ? 0 : vm_guest_find(s->arch, vm->guest, &g->program, err);
    if (r == 0)
        r = vm_arch_check_program(s->arch, g->program, err);
    s->guest = g->program;
    return r;
}

/* The program of a cell, and what it reads. */
static int place_cell(struct guests *g, struct guest *guest, size_t index,
                      const struct guest_cell *cell, struct error *err)
{
    const char *word = cell->argv[0];
    if (str_eq(word, "/bin/sh") && !vm_files_have(&guest->files, "/bin/sh"))
        return error_set(
            err, -ENOTSUP,
            "%s: the command needs a shell, but the emulated machine has none: write the command "
            "without shell syntax, or add a static shell to vm.files as FILE:/bin/sh",
            g->spec->file);
    int r = 0;
    if (strchr(word, '/') && !vm_files_have(&guest->files, word)) {
        CLEANUP(memory_freep)
        char *path =
            word[0] == '/' ? memory_strdup(word) : memory_printf("%s/%s", cell->folder, word);
        r = vm_files_add_program(&guest->files, guest->settings.arch, path, &g->commands[index],
                                 err);
    }
    if (r == 0 && cell->input) {
        g->inputs[index] = memory_printf("/input/%zu", index + 1);
        CLEANUP(memory_freep) char *both = memory_printf("%s:%s", cell->input, g->inputs[index]);
        r = vm_files_add(&guest->files, both, NULL, err);
    }
    return r;
}

int guests_open(struct guests *g, const struct matrix *matrix, const struct guest_cell *cells,
                struct error *err)
{
    const struct spec *spec = matrix->spec;
    const struct spec_factor *factor = &spec->factors[spec->kernel_factor];
    g->spec = spec;
    g->count = factor->level_count;
    g->items = memory_zalloc(g->count, sizeof(*g->items));
    g->cell_count = matrix->count;
    g->inputs = memory_zalloc(matrix->count, sizeof(*g->inputs));
    g->commands = memory_zalloc(matrix->count, sizeof(*g->commands));
    g->boots_seen = memory_zalloc(matrix->count, sizeof(*g->boots_seen));
    g->boots_told = memory_zalloc(matrix->count, sizeof(*g->boots_told));
    g->events = memory_strdup(
        spec->counters[0] && !str_eq(spec->counters, "default") ? spec->counters : GUEST_EVENTS);
    int r = 0;
    for (size_t c = 0; r == 0 && c < matrix->count; c++) {
        if (!cells[c].argv)
            continue;
        size_t level = level_index(g, matrix, c);
        struct guest *guest = &g->items[level];
        if (!guest->kernel.name)
            r = open_kernel(g, guest, &factor->levels[level], err);
        if (r == 0)
            r = place_cell(g, guest, c, &cells[c], err);
    }
    for (size_t i = 0; r == 0 && i < g->count; i++)
        if (g->items[i].kernel.name)
            r = finish_settings(g, &g->items[i], err);
    return r;
}

void guests_done(struct guests *g)
{
    for (size_t i = 0; i < g->count; i++) {
        struct guest *guest = &g->items[i];
        if (guest->has_booted)
            vm_machine_stop(&guest->machine);
        vm_kernel_done(&guest->kernel);
        vm_files_done(&guest->files);
    }
    for (size_t i = 0; i < g->cell_count; i++)
        free(g->inputs[i]);
    free(g->items);
    free(g->inputs);
    free(g->commands);
    free(g->boots_seen);
    free(g->boots_told);
    free(g->program);
    free(g->events);
    vm_result_done(&g->result);
    vm_counts_done(&g->startup);
    strbuf_done(&g->left_out);
    *g = (struct guests){0};
}

static int boot(struct guest *guest, uint64_t epoch, struct error *err)
{
    if (guest->has_booted)
        vm_machine_stop(&guest->machine);
    guest->has_booted = true;
    guest->epoch = epoch;
    guest->boot_count++;
    int r = vm_machine_start(&guest->machine, &guest->settings, err);
    if (r == 0)
        r = vm_machine_await(&guest->machine, err);
    if (guest->machine.kvm_failed)
        guest->settings.accel = VM_ACCEL_TCG; /* not tried again at the next boot */
    return r;
}

/* Up, and not for longer than it may be. */
static int make_ready(const struct guests *g, struct guest *guest, uint64_t round,
                      struct error *err)
{
    uint64_t per_boot = g->spec->vm.rounds_per_boot ? g->spec->vm.rounds_per_boot : ROUNDS_PER_BOOT;
    uint64_t epoch = round / per_boot;
    if (guest->has_booted && guest->epoch == epoch && vm_machine_alive(&guest->machine))
        return 0;
    return boot(guest, epoch, err);
}

static bool has_word(char *const *words, const char *word)
{
    for (size_t i = 0; words[i]; i++)
        if (str_eq(words[i], word))
            return true;
    return false;
}

/* The words for the machine; what they record goes into a file there. */
static const char **make_words(const struct guests *g, const struct guest_job *job,
                               const char *mappings, const char **ret_recording)
{
    const char **words = NULL;
    size_t count = 0, capacity = 0;
    *ret_recording = NULL;
    for (size_t i = 0; job->before && job->before[i]; i++) {
        bool is_file = i && str_eq(job->before[i - 1], "-o") && str_eq(job->before[1], "record");
        if (is_file)
            *ret_recording = job->before[i];
        ARRAY_PUSH(words, count, capacity) = is_file ? RECORDING : job->before[i];
        if (i == 1 && str_eq(job->before[i], "record") && !has_word(job->before, "-F")) {
            /* Of the machine's clock, two for each instruction: not by the second. */
            ARRAY_PUSH(words, count, capacity) = "-c";
            ARRAY_PUSH(words, count, capacity) = RECORDING_PERIOD;
        }
    }
    if (job->before && job->has_layout) {
        ARRAY_PUSH(words, count, capacity) = VM_WITH_MAPPINGS;
        ARRAY_PUSH(words, count, capacity) = mappings;
    }
    const char *command = g->commands[job->cell];
    for (size_t i = 0; job->argv[i]; i++)
        ARRAY_PUSH(words, count, capacity) = i == 0 && command ? command : job->argv[i];
    ARRAY_PUSH(words, count, capacity) = NULL;
    return words;
}

static char **make_variables(const struct guest_job *job)
{
    char **all = NULL;
    size_t count = 0, capacity = 0;
    for (size_t i = 0; job->variables && job->variables[i]; i++)
        ARRAY_PUSH(all, count, capacity) = memory_strdup(job->variables[i]);
    if (job->padding_bytes) {
        struct strbuf padding = {0};
        strbuf_puts(&padding, "ASSAY_PADDING=");
        strbuf_pad(&padding, 'x', job->padding_bytes);
        ARRAY_PUSH(all, count, capacity) = padding.data;
    }
    ARRAY_PUSH(all, count, capacity) = NULL;
    return all;
}

static void clear_result(struct run_result *result)
{
    metrics_clear(&result->metrics);
    strbuf_clear(&result->kept_stdout);
    strbuf_clear(&result->kept_stderr);
    for (size_t i = 0; i < result->value_count; i++)
        result->values[i] = (struct counter_value){.failed = true};
    *result = (struct run_result){.values = result->values,
                                  .value_count = result->value_count,
                                  .metrics = result->metrics,
                                  .kept_stdout = result->kept_stdout,
                                  .kept_stderr = result->kept_stderr,
                                  .start_ns = clock_now_ns()};
}

static void fill_result(const struct vm_result *from, bool times, struct run_result *to)
{
    const struct vm_usage *u = &from->usage;
    to->wall_ns = times ? u->wall_ns : from->wall_ns;
    to->status = from->status;
    to->timed_out = from->timed_out;
    to->usage.ru_maxrss = (long)u->rss_kib_max;
    to->usage.ru_minflt = (long)u->minor_faults;
    to->usage.ru_majflt = (long)u->major_faults;
    to->usage.ru_nvcsw = (long)u->voluntary_switches;
    to->usage.ru_nivcsw = (long)u->involuntary_switches;
    if (times) {
        struct timespec user = timespec_from_ns(u->user_ns), sys = timespec_from_ns(u->sys_ns);
        to->usage.ru_utime = (struct timeval){user.tv_sec, user.tv_nsec / 1000};
        to->usage.ru_stime = (struct timeval){sys.tv_sec, sys.tv_nsec / 1000};
    }
    metrics_parse(&to->metrics, strbuf_text(&from->metrics), from->metrics.length);
    strbuf_append(&to->kept_stdout, strbuf_text(&from->out), from->out.length);
    strbuf_append(&to->kept_stderr, strbuf_text(&from->err), from->err.length);
}

/* Sampling must not be slowed down because it takes long by a clock that means nothing. */
static void free_sampling(struct guest *guest)
{
    struct error ignored;
    vm_machine_put(&guest->machine, "/proc/sys/kernel/perf_cpu_time_max_percent", "0", 1, &ignored);
    vm_machine_put(&guest->machine, "/proc/sys/kernel/perf_event_max_sample_rate", "1000000", 7,
                   &ignored);
}

static int bring_recording(struct guest *guest, const char *path, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf bytes = {0};
    int r = vm_machine_get(&guest->machine, RECORDING, &bytes, err);
    if (r == 0)
        r = file_write(path, strbuf_text(&bytes), bytes.length, err);
    if (r == 0)
        r = vm_symbols_keep(&guest->machine, err);
    return r;
}

int guests_read_file(void *context, const char *path, struct strbuf *ret_text)
{
    struct guests *g = context;
    struct error ignored; /* what is not there is told of the monitor */
    return g->watched && vm_machine_alive(&g->watched->machine)
               ? vm_machine_get(&g->watched->machine, path, ret_text, &ignored)
               : -ENODEV;
}

int guests_run(struct guests *g, const struct matrix *matrix, const struct guest_job *job,
               struct run_result *result, struct error *err)
{
    struct guest *guest = &g->items[level_index(g, matrix, job->cell)];
    const char *recording;
    char mappings[16];
    snprintf(mappings, sizeof(mappings), "%u", job->mapping_count);
    CLEANUP(memory_freep) const char **words = make_words(g, job, mappings, &recording);
    clear_result(result);
    int r = make_ready(g, guest, job->round, err);
    if (r < 0) {
        result->signal = process_signals_caught();
        return r;
    }
    if (recording)
        free_sampling(guest);
    char **variables = make_variables(job);
    struct vm_run run = {.argv = (char *const *)words,
                         .variables = variables,
                         .events = job->events ? job->events : g->events,
                         .input = g->inputs[job->cell],
                         .has_layout = job->has_layout && !job->before,
                         .mapping_count = job->mapping_count,
                         .timeout_ns = job->timeout_ns};
    g->watched = guest;
    if (job->monitors)
        monitors_start(job->monitors);
    r = vm_machine_run(&guest->machine, &run, &g->result, err);
    if (job->monitors)
        monitors_stop(job->monitors);
    for (size_t i = 0; variables[i]; i++)
        free(variables[i]);
    free(variables);
    fill_result(&g->result, guest->machine.is_kvm, result);
    result->signal = process_signals_caught();
    if (g->result.timed_out)
        return 0; /* a run that failed, no failure of assay's; the machine boots anew */
    if (r == 0 && recording && result->status == 0)
        r = bring_recording(guest, recording, err);
    return r;
}

const char *guests_words(const struct guests *g)
{
    for (size_t i = 0; i < g->count; i++)
        if (g->items[i].kernel.name)
            return vm_settings_words(&g->items[i].settings);
    return VM_EMULATED_WORDS;
}

bool guests_is_first(struct guests *g, const struct matrix *matrix, size_t cell)
{
    uint64_t boot = g->items[level_index(g, matrix, cell)].boot_count;
    bool is_first = g->boots_seen[cell] != boot;
    g->boots_seen[cell] = boot;
    return is_first;
}

uint64_t guests_new_boot(struct guests *g, const struct matrix *matrix, size_t cell)
{
    const struct guest *guest = &g->items[level_index(g, matrix, cell)];
    bool is_new = g->boots_told[cell] != guest->boot_count;
    g->boots_told[cell] = guest->boot_count;
    return is_new ? guest->machine.boot_instructions : 0;
}

const struct vm_counts *guests_counts(const struct guests *g)
{
    return &g->result.counts;
}

bool guests_times_count(const struct guests *g, const struct matrix *matrix, size_t cell)
{
    return g->items[level_index(g, matrix, cell)].machine.is_kvm;
}

bool guest_unit_is_time(const char *unit)
{
    static const char *const units[] = {
        "ns", "us", "µs",  "ms",  "s",   "sec", "seconds", "min", "h",    "ops",  "rps",   "qps",
        "hz", "Hz", "kHz", "MHz", "GHz", "fps", "IOPS",    "bps", "Mbps", "Gbps", "cycles"};
    for (size_t i = 0; i < ARRAY_COUNT(units); i++)
        if (str_eq(unit, units[i]))
            return true;
    return strstr(unit, "/s") != NULL || str_has_prefix(unit, "ns/") ||
           str_has_prefix(unit, "us/") || str_has_prefix(unit, "ms/") || str_has_prefix(unit, "s/");
}
