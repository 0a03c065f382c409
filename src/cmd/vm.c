/* SPDX-License-Identifier: MIT */
/* `assay vm run|sweep|fetch|prepare|list`: commands in emulated machines, and kernels for them. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "cmd/vm_sweep.h"
#include "exact/machine.h"
#include "exact/tool.h"
#include "run/metrics.h"
#include "vm/fetch.h"
#include "vm/machine.h"
#include "vm/snapshot.h"

#include <errno.h>
#include <stddef.h>
#include <sys/wait.h>

struct vm_options {
    const char *kernel, *arch, *accel, *guest, *append, *events, *json, *suite, *mirror, *threshold;
    struct option_list files, kernels;
    uint64_t repeat_count, memory_bytes, cpus, uid, timeout_ns, boot_timeout_ns;
    bool refresh, offers, cached;
};

#define O(field) offsetof(struct vm_options, field)

static const struct option options[] = {
    {0, NULL, OPTION_HEADING, 0, NULL, "The machine (run)", NULL},
    {'k', "kernel", OPTION_STRING, O(kernel), "KERNEL",
     "an image (a path), or a fetched package (linux-image-arm64)", "file"},
    {0, "arch", OPTION_STRING, O(arch), "ARCH",
     "aarch64 or x86_64 (default: the kernel's, else aarch64)", "aarch64 x86_64"},
    {0, "accel", OPTION_STRING, O(accel), "HOW",
     "kvm or tcg (default: KVM where available; it does not count exactly)", "kvm tcg"},
    {'m', "memory", OPTION_BYTES, O(memory_bytes), "SIZE", "memory of the machine (1G)", NULL},
    {0, "cpus", OPTION_U64, O(cpus), "N", "number of CPUs (1)", NULL},
    {'f', "file", OPTION_LIST, O(files), "HOST[:GUEST]",
     "copy a file into the machine (default: as /bin/NAME); may be repeated", "file"},
    {0, "append", OPTION_STRING, O(append), "ARGS", "add to the kernel's command line", NULL},
    {0, "guest", OPTION_STRING, O(guest), "FILE", "the static assay binary to run in the machine",
     "file"},
    {0, "boot-timeout", OPTION_SECONDS, O(boot_timeout_ns), "TIME",
     "how long booting may take (2m)", NULL},
    {0, NULL, OPTION_HEADING, 0, NULL, "The command (run)", NULL},
    {'e', "event", OPTION_STRING, O(events), "LIST",
     "count these events; the command's output then appears at the end", "event"},
    {0, "uid", OPTION_U64, O(uid), "N", "run it as this user instead of root", NULL},
    {0, "timeout", OPTION_SECONDS, O(timeout_ns), "TIME",
     "stop it after this long (default: never)", NULL},
    {'j', "json", OPTION_OPTIONAL, O(json), "FILE", "print JSON (run, sweep and list)", NULL},
    {0, NULL, OPTION_HEADING, 0, NULL, "One command under many kernels (sweep)", NULL},
    {0, "kernels", OPTION_LIST, O(kernels), "LIST",
     "packages, patterns ('linux-image-6.1*-amd64') or paths; those of Debian are fetched", NULL},
    {0, "cached", OPTION_FLAG, O(cached), NULL, "only kernels that have been fetched", NULL},
    {'r', "repeat", OPTION_U64, O(repeat_count), "N", "runs under each kernel (2)", NULL},
    {0, "threshold", OPTION_STRING, O(threshold), "PERCENT",
     "smaller changes of the kernel's instructions are not shown (1%)", NULL},
    {0, NULL, OPTION_HEADING, 0, NULL, "Getting kernels (fetch)", NULL},
    {0, "suite", OPTION_STRING, O(suite), "NAME",
     "also look in this Debian release, e.g. bookworm-backports or sid", NULL},
    {0, "mirror", OPTION_STRING, O(mirror), "URL", "mirror for that release (deb.debian.org)",
     NULL},
    {0, "list", OPTION_FLAG, O(offers), NULL,
     "list the kernels that there are instead; arguments are patterns, e.g. '*-6.12*'", NULL},
    {0, "refresh", OPTION_FLAG, O(refresh), NULL,
     "get the newest version even if one was fetched before", NULL},
    {0},
};

/* ---- fetch ---- */

static void show_fetch(void *context, const char *what)
{
    progress_show(context, "%s", what);
}

static int fetch_all(const struct vm_options *o, char **packages, struct error *err)
{
    struct progress progress;
    struct vm_fetch how = {.suite = o->suite,
                           .mirror = o->mirror,
                           .refresh = o->refresh,
                           .progress = show_fetch,
                           .context = &progress};
    int r = o->arch ? vm_arch_named(o->arch, &how.arch, err) : 0;
    for (; r == 0 && *packages; packages++) {
        CLEANUP(memory_freep) char *name = NULL;
        progress_start(&progress);
        r = vm_fetch(&how, *packages, &name, err);
        progress_end(&progress);
        if (r == 0)
            printf("%s\n", name);
    }
    return r;
}

static int list_offers(const struct vm_options *o, char **patterns, struct error *err)
{
    struct progress progress;
    struct vm_fetch how = {
        .suite = o->suite, .mirror = o->mirror, .progress = show_fetch, .context = &progress};
    CLEANUP(strbuf_done) struct strbuf out = {0};
    int r = o->arch ? vm_arch_named(o->arch, &how.arch, err) : 0;
    if (r < 0)
        return r;
    progress_start(&progress);
    r = vm_fetch_list(&how, patterns, &out, err);
    progress_end(&progress);
    fputs(strbuf_text(&out), stdout);
    return r;
}

static int fetch(const struct vm_options *o, char **packages, struct error *err)
{
    if (!*packages && !o->offers) {
        error_set(err, -EINVAL, "give one or more packages, e.g. assay vm fetch linux-image-arm64");
        return cmd_usage(&verb_vm, err);
    }
    process_signals_catch();
    int r = o->offers ? list_offers(o, packages, err) : fetch_all(o, packages, err);
    int code = r == -EINTR ? 128 + process_signals_caught()
               : r < 0     ? cmd_fail(&verb_vm, err, EXIT_TROUBLE)
                           : EXIT_DONE;
    process_signals_restore();
    return code;
}

/* ---- prepare ---- */

static int prepare_exact(const struct vm_options *o, struct error *err)
{
    CLEANUP(exact_tool_done) struct exact_tool tool = {0};
    const char *named = getenv("ASSAY_EXACT_KERNEL");
    char *packages[] = {(char *)EXACT_KERNEL, NULL};
    uint64_t start_ns = clock_now_ns();
    char text[32];
    int r = named && *named ? 0 : fetch_all(o, packages, err);
    if (r == 0)
        r = cmd_find_exact(&tool, EXACT_MACHINE, err);
    if (r == 0)
        printf("ready for --exact after %s: %s\n",
               format_duration((double)(clock_now_ns() - start_ns), text, sizeof(text)), tool.name);
    return r;
}

static int prepare(const struct vm_options *o, char **words, struct error *err)
{
    if (*words) {
        error_set(err, -EINVAL, "prepare takes no arguments");
        return cmd_usage(&verb_vm, err);
    }
    process_signals_catch();
    int r = prepare_exact(o, err);
    int code = r == -EINTR ? 128 + process_signals_caught()
               : r < 0     ? cmd_fail(&verb_vm, err, EXIT_TROUBLE)
                           : EXIT_DONE;
    process_signals_restore();
    return code;
}

/* ---- list ---- */

static void put_list_json(const struct vm_kernel_list *list,
                          const struct vm_snapshot_list *snapshots)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    struct json j = {.out = &out};
    json_array(&j, NULL);
    for (size_t i = 0; i < list->count; i++) {
        const struct vm_kernel_entry *e = &list->items[i];
        json_object(&j, NULL);
        json_string(&j, "package", e->package);
        json_string(&j, "names", e->names);
        json_string(&j, "arch", e->arch ? e->arch->name : NULL);
        json_u64(&j, "size_bytes", e->size_bytes);
        json_i64(&j, "fetched", e->fetched);
        json_end(&j);
    }
    for (size_t i = 0; i < snapshots->count; i++) {
        const struct vm_snapshot_entry *e = &snapshots->items[i];
        json_object(&j, NULL);
        json_string(&j, "package", e->kernel);
        json_string(&j, "names", "");
        json_string(&j, "arch", "x86_64");
        json_u64(&j, "size_bytes", e->size_bytes);
        json_i64(&j, "fetched", e->used);
        json_string(&j, "snapshot", e->name);
        json_end(&j);
    }
    json_end(&j);
    printf("%s\n", strbuf_text(&out));
}

static void put_list(const struct vm_kernel_list *list, const char *folder)
{
    size_t width = 0;
    for (size_t i = 0; i < list->count; i++)
        width = strlen(list->items[i].package) > width ? strlen(list->items[i].package) : width;
    for (size_t i = 0; i < list->count; i++) {
        const struct vm_kernel_entry *e = &list->items[i];
        char size[32], day[32] = "";
        struct tm local;
        if (localtime_r(&e->fetched, &local))
            strftime(day, sizeof(day), "%Y-%m-%d", &local);
        printf("%-*s  %-7s  %8s  %s  %s\n", (int)width, e->package, e->arch ? e->arch->name : "?",
               format_bytes((double)e->size_bytes, size, sizeof(size)), day, e->names);
    }
    if (list->count == 0)
        printf("no kernels in %s yet; 'assay vm fetch linux-image-arm64' gets one\n", folder);
}

/* Machines that have booted. */
static void put_snapshots(const struct vm_snapshot_list *list)
{
    if (list->count)
        printf("\nbooted machines for --exact (the last %d stay):\n", SNAPSHOTS_MAX);
    for (size_t i = 0; i < list->count; i++) {
        char size[32], day[32] = "";
        struct tm local;
        if (localtime_r(&list->items[i].used, &local))
            strftime(day, sizeof(day), "%Y-%m-%d", &local);
        printf("%s  %8s  used %s\n", list->items[i].name,
               format_bytes((double)list->items[i].size_bytes, size, sizeof(size)), day);
    }
}

static int list(const struct vm_options *o, char **words, struct error *err)
{
    struct vm_kernel_list kernels;
    CLEANUP(vm_snapshot_list_done) struct vm_snapshot_list snapshots = {0};
    CLEANUP(memory_freep) char *folder = vm_cache_path("kernels");
    if (*words) {
        error_set(err, -EINVAL, "list takes no arguments");
        return cmd_usage(&verb_vm, err);
    }
    if (vm_kernels_list(&kernels, err) < 0)
        return cmd_fail(&verb_vm, err, EXIT_TROUBLE);
    vm_snapshots_list(&snapshots);
    if (o->json) {
        put_list_json(&kernels, &snapshots);
    } else {
        put_list(&kernels, folder ? folder : "the cache");
        put_snapshots(&snapshots);
    }
    vm_kernel_list_done(&kernels);
    return EXIT_DONE;
}

/* ---- run ---- */

/* All that a run needs, made of the options. */
struct plan {
    struct vm_kernel kernel;
    struct vm_files files;
    struct vm_settings settings;
    char *guest;
    char **argv;
    struct progress progress;
    uint64_t started_ns;
};

static void plan_done(struct plan *p)
{
    vm_kernel_done(&p->kernel);
    vm_files_done(&p->files);
    free(p->guest);
    free(p->argv);
}

static void show_run(void *context, const char *what)
{
    struct plan *p = context;
    char text[32];
    progress_show(&p->progress, "%s %s: %s", what, p->kernel.name,
                  format_duration((double)(clock_now_ns() - p->started_ns), text, sizeof(text)));
}

static int choose_arch(const struct vm_options *o, struct plan *p, struct error *err)
{
    if (o->arch)
        return vm_arch_named(o->arch, &p->settings.arch, err);
    p->settings.arch = p->kernel.arch ? p->kernel.arch : vm_arch_find("aarch64");
    return 0;
}

static int choose_accel(const struct vm_options *o, struct plan *p, struct error *err)
{
    bool kvm = o->accel && str_eq(o->accel, "kvm"), tcg = o->accel && str_eq(o->accel, "tcg");
    if (o->accel && !kvm && !tcg)
        return error_set(err, -EINVAL, "--accel: '%s' is not kvm or tcg", o->accel);
    p->settings.accel = kvm ? VM_ACCEL_KVM : tcg ? VM_ACCEL_TCG : VM_ACCEL_AUTO;
    return 0;
}

/* A program that is a path here goes into the machine; other names are looked up there. */
static int place_command(struct plan *p, char **argv, struct error *err)
{
    size_t count = 0;
    const char *guest = NULL;
    while (argv[count])
        count++;
    p->argv = memory_zalloc(count + 1, sizeof(*p->argv));
    memcpy(p->argv, argv, count * sizeof(*argv));
    if (!strchr(argv[0], '/') || vm_files_have(&p->files, argv[0]) || access(argv[0], F_OK) < 0)
        return 0;
    int r = vm_files_add_program(&p->files, p->settings.arch, argv[0], &guest, err);
    if (r == 0)
        p->argv[0] = (char *)(uintptr_t)guest;
    return r;
}

static int make_plan(const struct vm_options *o, char **argv, struct plan *p, struct error *err)
{
    int r = vm_kernel_find(&p->kernel, o->kernel ? o->kernel : "linux-image-arm64", err);
    if (r == 0)
        r = choose_arch(o, p, err);
    if (r == 0)
        r = choose_accel(o, p, err);
    if (r == 0 && (o->cpus > 64 || (o->memory_bytes && o->memory_bytes < (64 << 20))))
        r = error_set(err, -EINVAL, "a machine must have 1 to 64 CPUs and at least 64M of memory");
    for (size_t i = 0; r == 0 && i < o->files.count; i++)
        r = vm_files_add(&p->files, o->files.items[i], NULL, err);
    if (r == 0)
        r = place_command(p, argv, err);
    if (r == 0)
        r = vm_guest_find(p->settings.arch, o->guest, &p->guest, err);
    p->settings.kernel = &p->kernel;
    p->settings.guest = p->guest;
    p->settings.files = &p->files;
    p->settings.memory_bytes = o->memory_bytes;
    p->settings.cpu_count = (unsigned)o->cpus;
    p->settings.append = o->append;
    p->settings.boot_timeout_ns = o->boot_timeout_ns;
    p->settings.on_tick = show_run;
    p->settings.context = p;
    return r;
}

static void pass_on(void *context, bool is_error, const char *bytes, size_t length)
{
    struct plan *p = context;
    progress_end(&p->progress);
    progress_start(&p->progress);
    fd_write_all(is_error ? STDERR_FILENO : STDOUT_FILENO, bytes, length);
}

static void put_counts_json(struct json *j, const struct vm_counts *counts)
{
    json_array(j, "counts");
    for (size_t i = 0; i < counts->count; i++) {
        const struct vm_count *c = &counts->items[i];
        json_object(j, NULL);
        json_string(j, "event", c->name);
        if (c->why)
            json_string(j, "not_counted", c->why);
        else
            json_double(j, "value", counter_scaled(&c->value));
        json_end(j);
    }
    json_end(j);
}

static void put_json(struct strbuf *out, const struct plan *p, const struct vm_machine *m,
                     const struct vm_result *result)
{
    struct json j = {.out = out};
    json_object(&j, NULL);
    json_string(&j, "kernel", p->kernel.name);
    json_string(&j, "release", m->release);
    json_string(&j, "arch", p->settings.arch->name);
    json_string(&j, "accel", m->is_kvm ? "kvm" : "tcg");
    json_string(&j, "emulated", vm_machine_words(m));
    json_u64(&j, "boot_ns", m->boot_ns);
    json_u64(&j, "host_wall_ns", result->wall_ns);
    if (WIFSIGNALED(result->status))
        json_i64(&j, "signal", WTERMSIG(result->status));
    else
        json_i64(&j, "exit_code", WEXITSTATUS(result->status));
    json_string_n(&j, "stdout", strbuf_text(&result->out), result->out.length);
    json_string_n(&j, "stderr", strbuf_text(&result->err), result->err.length);
    json_string_n(&j, "metrics", strbuf_text(&result->metrics), result->metrics.length);
    put_counts_json(&j, &result->counts);
    json_end(&j);
    strbuf_putc(out, '\n');
}

static void put_counts(const struct vm_machine *m, const struct vm_result *result)
{
    char text[32];
    fputc('\n', stderr);
    for (size_t i = 0; i < result->counts.count; i++) {
        const struct vm_count *c = &result->counts.items[i];
        if (c->why)
            fprintf(stderr, "%20s  %s: %s\n", "not counted", c->name, c->why);
        else
            fprintf(stderr, "%20s  %s\n",
                    format_thousands((uint64_t)counter_scaled(&c->value), text, sizeof(text)),
                    c->name);
    }
    if (vm_machine_words(m))
        fprintf(stderr, "%s\n", vm_machine_words(m));
}

/* To a program that runs 'assay vm run' as its command (ab, gate, bisect, run): what the command in
 * the machine reported, and what was counted there. */
static void tell_metrics(const struct vm_machine *m, const struct vm_result *result)
{
    const char *text = getenv("ASSAY_METRICS_FD");
    uint64_t fd;
    if (!text || parse_u64(text, &fd, NULL) < 0 || fd > 1 << 20)
        return;
    fd_write_all((int)fd, strbuf_text(&result->metrics), result->metrics.length);
    dprintf((int)fd, "assay.kernel %s\n", m->release);
    for (size_t i = 0; i < result->counts.count; i++) {
        const struct vm_count *c = &result->counts.items[i];
        if (!c->why)
            dprintf((int)fd, "assay.metric " METRICS_OF_MACHINE "%s %.17g\n", c->name,
                    counter_scaled(&c->value));
    }
}

/* What was kept until the end. */
static int show_result(const struct vm_options *o, const struct plan *p, const struct vm_machine *m,
                       const struct vm_result *result, struct error *err)
{
    if (o->json) {
        CLEANUP(strbuf_done) struct strbuf out = {0};
        put_json(&out, p, m, result);
        return file_write(*o->json ? o->json : "-", out.data, out.length, err);
    }
    fwrite(strbuf_text(&result->out), 1, result->out.length, stdout);
    fflush(stdout);
    fwrite(strbuf_text(&result->err), 1, result->err.length, stderr);
    if (o->events)
        put_counts(m, result);
    return 0;
}

/* What the machine did not do, although the command has ended. */
static int check_machine(const struct vm_machine *m, const struct vm_result *result,
                         struct error *err)
{
    const struct vm_counts *counts = &result->counts;
    size_t refused = 0;
    if (vm_machine_ran_out(m)) {
        error_set(err, -ENOMEM,
                  "the machine has no more memory, and its kernel killed a process; -m gives it "
                  "more");
        return error_end_with(err, VM_EXIT_NO_MEMORY, -ENOMEM);
    }
    while (refused < counts->count && counts->items[refused].why)
        refused++;
    if (!refused || refused < counts->count || result->status)
        return 0;
    error_set(err, -ENOTSUP, "the machine (%s) counts none of these events: %s: %s",
              m->settings->kernel->name, counts->items[0].name, counts->items[0].why);
    return error_end_with(err, VM_EXIT_NO_EVENTS, -ENOTSUP);
}

static int run_in(const struct vm_options *o, struct plan *p, struct vm_machine *m,
                  struct vm_result *result, struct error *err)
{
    p->started_ns = clock_now_ns();
    int r = vm_machine_start(m, &p->settings, err);
    if (r == 0)
        r = vm_machine_await(m, err);
    if (r < 0)
        return r;
    struct vm_run run = {.argv = p->argv,
                         .events = o->events,
                         .uid = (unsigned)o->uid,
                         .timeout_ns = o->timeout_ns,
                         .context = p};
    if (!o->json && !o->events)
        run.on_output = pass_on;
    p->started_ns = clock_now_ns();
    if (m->kvm_failed)
        fprintf(stderr, "assay vm: /dev/kvm exists but cannot boot a machine; emulating instead\n");
    r = vm_machine_run(m, &run, result, err);
    progress_end(&p->progress);
    if (result->timed_out)
        error_set(err, r, "the command took longer than --timeout allows; the machine was stopped");
    if (r < 0)
        return r;
    tell_metrics(m, result);
    r = show_result(o, p, m, result, err);
    return r == 0 ? check_machine(m, result, err) : r;
}

static int run_planned(const struct vm_options *o, struct plan *p, struct error *err)
{
    struct vm_machine m = {.pid = -1, .port = -1, .monitor = -1, .console = -1, .errors = -1};
    struct vm_result result = {0};
    process_signals_catch();
    progress_start(&p->progress);
    int r = run_in(o, p, &m, &result, err);
    progress_end(&p->progress);
    int code = r == -EINTR        ? 128 + process_signals_caught()
               : result.timed_out ? cmd_fail(&verb_vm, err, 124)
               : r < 0            ? cmd_fail(&verb_vm, err, EXIT_MEASURE_FAILED)
                                  : process_exit_code(result.status);
    vm_machine_stop(&m);
    process_signals_restore();
    vm_result_done(&result);
    return code;
}

static int run_command(const struct vm_options *o, char **argv, struct error *err)
{
    struct plan p = {0};
    if (!*argv) {
        error_set(err, -EINVAL, "give a command, e.g. assay vm run -- ./program");
        return cmd_usage(&verb_vm, err);
    }
    int r = make_plan(o, argv, &p, err);
    int code = r < 0 ? cmd_fail(&verb_vm, err, EXIT_MEASURE_FAILED) : run_planned(o, &p, err);
    plan_done(&p);
    return code;
}

static int sweep(const struct vm_options *o, char **argv, struct error *err)
{
    struct vm_fetch fetch = {.suite = o->suite,
                             .mirror = o->mirror,
                             .refresh = o->refresh,
                             .arch = vm_arch_find("x86_64")};
    struct vm_sweep_options how = {.kernels = &o->kernels,
                                   .fetch = &fetch,
                                   .json = o->json,
                                   .run_count = o->repeat_count ? o->repeat_count : 2,
                                   .threshold = 0.01,
                                   .cached = o->cached};
    int r = o->threshold ? option_share("threshold", o->threshold, 1, &how.threshold, err) : 0;
    if (r == 0 && !*argv)
        r = error_set(err, -EINVAL, "give a command: assay vm sweep --kernels LIST -- COMMAND");
    if (r == 0 && !o->kernels.count)
        r = error_set(err, -EINVAL, "--kernels says which kernels, e.g. 'linux-image-6.1*-amd64'");
    return r < 0 ? cmd_usage(&verb_vm, err) : vm_sweep(&how, argv, err);
}

static int run(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(const struct vm_options *o, char **words, struct error *err);
    } parts[] = {{"run", run_command},
                 {"sweep", sweep},
                 {"fetch", fetch},
                 {"prepare", prepare},
                 {"list", list}};
    struct error err = {0};
    struct vm_options o = {0};
    size_t part = 0;
    if (argc > 1 && (str_eq(argv[1], "--help") || str_eq(argv[1], "-h")))
        return cmd_help(&verb_vm);
    while (part < ARRAY_COUNT(parts) && (argc < 2 || !str_eq(argv[1], parts[part].name)))
        part++;
    if (part == ARRAY_COUNT(parts)) {
        error_set(&err, -EINVAL, "expected run, sweep, fetch, prepare or list");
        return cmd_usage(&verb_vm, &err);
    }
    int first = part < 2 ? options_parse(options, &o, argc - 1, argv + 1, &err)
                         : options_parse_mixed(options, &o, argc - 1, argv + 1, &err);
    int code = first == OPTIONS_HELP ? cmd_help(&verb_vm)
               : first < 0           ? cmd_usage(&verb_vm, &err)
                                     : parts[part].run(&o, argv + 1 + first, &err);
    free(o.files.items);
    free(o.kernels.items);
    return code;
}

const struct verb verb_vm = {
    .name = "vm",
    .summary = "run a command in an emulated machine, under any kernel",
    .synopsis = "run [options] -- COMMAND | sweep --kernels LIST -- COMMAND | fetch PACKAGE… | "
                "prepare | list",
    .examples = "  assay vm fetch linux-image-arm64 linux-image-6.12-arm64\n"
                "  assay vm list\n"
                "  assay vm run -k linux-image-6.12-arm64 -- assay doctor\n"
                "  assay vm run -e instructions:u -- ./static-arm64-program\n"
                "  assay vm sweep --kernels 'linux-image-6.1*-amd64' -- gzip -c FILE\n",
    .options = options,
    .run = run,
    .words = "run sweep fetch prepare list",
};
