/* SPDX-License-Identifier: MIT */
/* See vm_sweep.h. */
#include "cmd/vm_sweep.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "exact/machine.h"
#include "exact/run.h"
#include "exact/sweep.h"
#include "report/exact/sweep.h"
#include "vm/kernels.h"

#include <errno.h>
#include <fnmatch.h>

/* ---- which kernels ---- */

static bool is_pattern(const char *word)
{
    return strpbrk(word, "*?[") != NULL;
}

/* linux-image-6.12-amd64 stands for another package: it has no third number. */
static bool is_version(const char *package)
{
    const char *digit = strpbrk(package, "0123456789");
    const char *dot = digit ? strchr(digit, '.') : NULL, *end = digit ? strchr(digit, '-') : NULL;
    const char *second = dot ? strchr(dot + 1, '.') : NULL;
    return second && (!end || second < end);
}

static int fetch_one(const struct vm_sweep_options *o, struct sweep *s, const char *package,
                     struct error *err)
{
    struct vm_kernel there;
    CLEANUP(memory_freep) char *name = NULL;
    int r = vm_kernel_find(&there, package, err);
    if (r == 0) {
        sweep_add(s, strchr(package, '/') ? package : there.name);
        vm_kernel_done(&there);
        return 0;
    }
    if (o->cached || strchr(package, '/'))
        return r;
    r = vm_fetch(o->fetch, package, &name, err);
    if (r == 0)
        sweep_add(s, name);
    return r;
}

static void add_cached(struct sweep *s, const char *pattern)
{
    struct vm_kernel_list list;
    if (vm_kernels_list(&list, NULL) < 0)
        return;
    for (size_t i = 0; i < list.count; i++) {
        const char *name = list.items[i].package;
        CLEANUP(memory_freep) char *package = memory_strndup(name, strcspn(name, "_"));
        if (fnmatch(pattern, package, 0) == 0 && list.items[i].arch == vm_arch_find("x86_64"))
            sweep_add(s, name);
    }
    vm_kernel_list_done(&list);
}

/* Those that are there and those that Debian has. */
static int add_pattern(const struct vm_sweep_options *o, struct sweep *s, const char *pattern,
                       struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf offers = {0};
    char *const patterns[] = {(char *)(uintptr_t)pattern, NULL};
    size_t before = s->count;
    char *save = NULL;
    add_cached(s, pattern);
    int r = o->cached ? 0 : vm_fetch_list(o->fetch, patterns, &offers, err);
    for (char *line = r < 0 || !offers.length ? NULL : strtok_r(offers.data, "\n", &save);
         line && r >= 0; line = strtok_r(NULL, "\n", &save)) {
        line[strcspn(line, " ")] = '\0';
        if (is_version(line))
            r = fetch_one(o, s, line, err);
    }
    if (r < 0 && (r == -EINTR || s->count == before))
        return r;
    if (r < 0)
        fprintf(stderr, "assay vm: using only kernels in the cache: %s\n", err->message);
    return s->count > before
               ? 0
               : error_set(err, -ENOENT, "no x86_64 kernel in the cache is called '%s'", pattern);
}

static int choose(const struct vm_sweep_options *o, struct sweep *s, struct error *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < o->kernels->count; i++) {
        CLEANUP(memory_freep) char *words = memory_strdup(o->kernels->items[i]);
        char *save = NULL;
        for (char *word = strtok_r(words, ",", &save); word && r == 0;
             word = strtok_r(NULL, ",", &save))
            r = is_pattern(word) && !strchr(word, '/') ? add_pattern(o, s, word, err)
                                                       : fetch_one(o, s, word, err);
    }
    if (r == 0 && !s->count)
        r = error_set(err, -EINVAL, "--kernels names no kernel");
    sweep_sort(s);
    return r;
}

/* ---- the runs ---- */

static int run_kernel(const struct vm_sweep_options *o, struct sweep_kernel *k, char **argv,
                      struct error *err)
{
    CLEANUP(exact_tool_done) struct exact_tool tool = {0};
    setenv("ASSAY_EXACT_KERNEL", k->name, 1);
    int r = cmd_find_exact(&tool, EXACT_MACHINE, err);
    tool.is_quiet = true;
    for (uint64_t i = 0; r == 0 && i < o->run_count; i++) {
        struct exact_result result;
        int start_code = 0;
        r = exact_run(&tool, argv, &result, &start_code, err);
        if (r == 0 && (result.was_stopped || process_signals_caught()))
            r = error_set(err, -EINTR, "interrupted");
        if (r == 0 && result.ran_out)
            r = error_set(err, -ENOMEM, EXACT_RAN_OUT, EXACT_MEMORY_BYTES >> 20);
        if (r == 0 && result.status)
            r = error_set(err, -ECHILD, "the command ended with exit code %d",
                          process_exit_code(result.status));
        if (r == 0)
            sweep_take(k, &result.counts);
        exact_result_done(&result);
    }
    return r;
}

/* A kernel that does not boot is no reason to give up the others. */
static int run_all(const struct vm_sweep_options *o, struct sweep *s, char **argv,
                   size_t *ret_failed, struct error *err)
{
    struct progress progress;
    *ret_failed = 0;
    progress_start(&progress);
    for (size_t i = 0; i < s->count; i++) {
        struct sweep_kernel *k = &s->items[i];
        progress_show(&progress, "kernel %zu of %zu: %s", i + 1, s->count, k->name);
        int r = run_kernel(o, k, argv, err);
        if (r == -EINTR || process_signals_caught()) {
            progress_end(&progress);
            return -EINTR;
        }
        if (r < 0) {
            k->why = memory_strdup(err->message);
            ++*ret_failed;
        }
    }
    progress_end(&progress);
    return 0;
}

static int show(const struct vm_sweep_options *o, const struct sweep *s, char **argv,
                struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf text = {0}, data = {0};
    struct sweep_view view = {.sweep = s, .argv = argv, .threshold = o->threshold};
    if (cmd_wants_text(o->json)) {
        report_sweep_text(&text, &view);
        fputs(strbuf_text(&text), stdout);
    }
    if (o->json)
        report_sweep_json(&data, &view);
    return o->json ? cmd_write(o->json, &data, err) : 0;
}

int vm_sweep(const struct vm_sweep_options *o, char **argv, struct error *err)
{
    struct sweep s = {0};
    struct exact_program program = {0};
    CLEANUP(memory_freep) char *path = NULL;
    size_t failed = 0;
    int r = exact_find_program(NULL, argv, &program, &path, err);
    exact_program_done(&program);
    if (r < 0)
        return cmd_fail(&verb_vm, err, EXIT_MEASURE_FAILED);
    process_signals_catch();
    r = choose(o, &s, err);
    if (r == 0)
        r = run_all(o, &s, argv, &failed, err);
    int signal = process_signals_caught();
    if (r == 0)
        r = show(o, &s, argv, err);
    int code = signal   ? cmd_interrupted(&verb_vm, signal, "nothing is kept of the sweep")
               : r < 0  ? cmd_fail(&verb_vm, err, EXIT_MEASURE_FAILED)
               : failed ? EXIT_TROUBLE
                        : EXIT_DONE;
    process_signals_restore();
    sweep_done(&s);
    return code;
}
