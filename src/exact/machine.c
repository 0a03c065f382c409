/* SPDX-License-Identifier: MIT */
/* See machine.h. */
#include "exact/machine.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "vm/exits.h"
#include "vm/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

enum { GROUPS_MAX = 64 };

struct exact_machine {
    struct vm_kernel kernel;
    struct vm_snapshot snapshot;
    char *guest;
    void (*progress)(const char *what);
};

static void on_tick(void *context, const char *what)
{
    struct exact_machine *m = context;
    if (m->progress)
        m->progress(what);
}

static struct vm_settings settings_of(struct exact_machine *m)
{
    return (struct vm_settings){.arch = vm_arch_find("x86_64"),
                                .kernel = &m->kernel,
                                .guest = m->guest,
                                .memory_bytes = EXACT_MEMORY_BYTES,
                                .accel = VM_ACCEL_TCG,
                                .is_exact = true,
                                .shares_files = true,
                                .on_tick = on_tick,
                                .context = m};
}

int exact_machine_open(struct exact_machine **ret, void (*progress)(const char *what),
                       struct error *err)
{
    struct exact_machine *m = memory_zalloc(1, sizeof(*m));
    const char *named = getenv("ASSAY_EXACT_KERNEL");
    m->progress = progress;
    int r = vm_guest_find(vm_arch_find("x86_64"), NULL, &m->guest, err);
    if (r == 0)
        r = vm_kernel_find(&m->kernel, named && *named ? named : EXACT_KERNEL, err);
    struct vm_settings settings = settings_of(m);
    if (r == 0)
        r = vm_snapshot_find(&m->snapshot, &settings, true, err);
    if (r < 0) {
        exact_machine_close(m);
        return error_wrap(err, r, "--exact");
    }
    *ret = m;
    return 0;
}

void exact_machine_close(struct exact_machine *m)
{
    if (!m)
        return;
    vm_kernel_done(&m->kernel);
    vm_snapshot_done(&m->snapshot);
    free(m->guest);
    free(m);
}

const char *exact_machine_release(const struct exact_machine *m)
{
    return m->snapshot.release;
}

/* ---- what the command gets of this process ---- */

struct given {
    char **variables;
    char folder[PATH_MAX], input[PATH_MAX], groups[GROUPS_MAX * 12];
    char *input_file; /* one made of what a pipe gave; to be removed */
    char *pwd, *tree, *seen_as;
};

static void given_done(struct given *g)
{
    if (g->input_file)
        unlink(g->input_file);
    free(g->input_file);
    free(g->variables);
    free(g->pwd);
    free(g->tree);
    free(g->seen_as);
}

static void take_variables(struct given *g)
{
    extern char **environ;
    size_t count = 0, capacity = 0;
    bool has_metrics = false;
    for (char **v = environ; *v; v++)
        if (str_has_prefix(*v, "ASSAY_METRICS_FD="))
            has_metrics = true;
        else if (str_has_prefix(*v, "PWD="))
            ARRAY_PUSH(g->variables, count, capacity) = g->pwd;
        else if (!str_has_prefix(*v, EXACT_TREE "="))
            ARRAY_PUSH(g->variables, count, capacity) = *v;
    if (has_metrics)
        ARRAY_PUSH(g->variables, count, capacity) = (char *)"ASSAY_METRICS_FD=9";
    ARRAY_PUSH(g->variables, count, capacity) = NULL;
}

static void take_groups(struct given *g)
{
    gid_t groups[GROUPS_MAX];
    int count = getgroups(GROUPS_MAX, groups);
    size_t at = (size_t)snprintf(g->groups, sizeof(g->groups), "%u", getegid());
    for (int i = 0; i < count; i++)
        at += (size_t)snprintf(g->groups + at, sizeof(g->groups) - at, ",%u", groups[i]);
}

/* What comes through a pipe is put into a file, which the machine can see. */
static int take_pipe(struct given *g, struct error *err)
{
    const char *base = getenv("TMPDIR");
    char *path = memory_printf("%s/assay-input-XXXXXX", base && *base ? base : "/tmp");
    CLEANUP(fd_closep) int fd = mkstemp(path);
    if (fd < 0) {
        int code = -errno;
        error_errno(err, code, "%s", path);
        free(path);
        return code;
    }
    g->input_file = path;
    snprintf(g->input, sizeof(g->input), "%s", path);
    char bytes[65536];
    for (ssize_t got; (got = read(STDIN_FILENO, bytes, sizeof(bytes))) > 0;)
        if (fd_write_all(fd, bytes, (size_t)got) < 0)
            return error_errno(err, -errno, "%s", path);
    return 0;
}

static int take_input(struct given *g, struct error *err)
{
    struct stat st;
    if (fstat(STDIN_FILENO, &st) < 0)
        return 0;
    if (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))
        return take_pipe(g, err);
    if (S_ISREG(st.st_mode)) {
        ssize_t length = readlink("/proc/self/fd/0", g->input, sizeof(g->input) - 1);
        g->input[length > 0 ? length : 0] = '\0';
        if (access(g->input, R_OK) < 0)
            return take_pipe(g, err); /* a file without a name */
    }
    return 0;
}

const char *exact_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && (!path[length] || path[length] == '/')
               ? path + length
               : NULL;
}

/* The directory of the other side is mounted in its own place: both sides are mounts. */
static int take_tree(struct given *g, struct error *err)
{
    const char *told = getenv(EXACT_TREE), *end = told ? strchr(told, '\n') : NULL;
    if (!end)
        return 0;
    CLEANUP(memory_freep) char *tree = memory_strndup(told, (size_t)(end - told));
    const char *seen_as = end + 1, *rest = exact_below(g->folder, tree);
    if (rest) {
        CLEANUP(memory_freep) char *folder = memory_printf("%s%s", seen_as, rest);
        if (strlen(folder) >= sizeof(g->folder))
            return error_set(err, -ENAMETOOLONG, "%s", folder);
        snprintf(g->folder, sizeof(g->folder), "%s", folder);
    }
    if (rest || exact_below(g->folder, seen_as)) {
        g->tree = memory_strdup(rest ? tree : seen_as);
        g->seen_as = memory_strdup(seen_as);
    }
    return 0;
}

void exact_see_as(const char *tree, const char *seen_as)
{
    CLEANUP(memory_freep) char *from = realpath(tree, NULL);
    CLEANUP(memory_freep) char *to = realpath(seen_as, NULL);
    CLEANUP(memory_freep) char *value = from && to ? memory_printf("%s\n%s", from, to) : NULL;
    if (value)
        setenv(EXACT_TREE, value, 1);
}

static int take_all(struct given *g, struct error *err)
{
    take_groups(g);
    if (!getcwd(g->folder, sizeof(g->folder)))
        return error_errno(err, -errno, "the current directory");
    int r = take_tree(g, err);
    if (r < 0)
        return r;
    g->pwd = memory_printf("PWD=%s", g->folder);
    take_variables(g);
    return take_input(g, err);
}

static bool drops_output(void)
{
    struct stat out, null;
    return fstat(STDOUT_FILENO, &out) == 0 && stat("/dev/null", &null) == 0 &&
           S_ISCHR(out.st_mode) && out.st_rdev == null.st_rdev;
}

/* ---- a run ---- */

static void pass_on(void *context, bool is_error, const char *bytes, size_t length)
{
    (void)context;
    fd_write_all(is_error ? STDERR_FILENO : STDOUT_FILENO, bytes, length);
}

static void drop(void *context, bool is_error, const char *bytes, size_t length)
{
    (void)context;
    (void)is_error;
    (void)bytes;
    (void)length;
}

static char *plugin_option(const struct exact_tool *tool, const char *counts)
{
    CLEANUP(memory_freep) char *plugin = vm_qemu_quoted(tool->plugin);
    CLEANUP(memory_freep) char *file = vm_qemu_quoted(counts);
    CLEANUP(memory_freep) char *symbols = vm_qemu_quoted(tool->machine->snapshot.symbols);
    return memory_printf("%s,counts=%s,symbols=%s", plugin, file, symbols);
}

static int run_in(struct vm_machine *vm, const struct vm_run *run, struct vm_result *got,
                  struct exact_result *result, struct error *err)
{
    int r = vm_machine_run(vm, run, got, err);
    result->wall_ns = got->wall_ns;
    result->status = got->status;
    result->ran_out = r == 0 && vm_machine_ran_out(vm);
    strbuf_append(&result->metrics, strbuf_text(&got->metrics), got->metrics.length);
    return r;
}

/* The kernel records for perf which files are mapped: without that, no code has a name. */
static int check_maps(const struct vm_machine *vm, const struct vm_result *got, struct error *err)
{
    if (got->maps.length || got->status)
        return 0;
    error_set(err, -ENOTSUP,
              "the kernel %s does not tell which files the command maps; it needs support for perf "
              "(CONFIG_PERF_EVENTS)",
              vm->settings->kernel->name);
    return error_end_with(err, VM_EXIT_NO_EVENTS, -ENOTSUP);
}

/* The machine lives for this run only. */
static int run_once(const struct exact_tool *tool, const struct vm_run *run, const char *counts,
                    struct exact_result *result, struct error *err)
{
    struct exact_machine *m = tool->machine;
    CLEANUP(memory_freep) char *plugin = plugin_option(tool, counts);
    struct vm_settings settings = settings_of(m);
    struct vm_machine vm;
    struct vm_result got = {0};
    settings.memory_file = m->snapshot.memory;
    settings.state_file = m->snapshot.state;
    settings.plugin = plugin;
    settings.on_tick = NULL;
    int r = vm_machine_start(&vm, &settings, err);
    if (r == 0)
        r = run_in(&vm, run, &got, result, err);
    if (r == 0)
        r = check_maps(&vm, &got, err);
    if (r == 0)
        r = exact_machine_counts(&result->counts, counts,
                                 &(struct exact_machine_run){.maps = strbuf_text(&got.maps),
                                                             .symbols = m->snapshot.symbols,
                                                             .guest = m->guest,
                                                             .tree = run->tree,
                                                             .seen_as = run->seen_as},
                                 err);
    vm_machine_stop(&vm);
    vm_result_done(&got);
    return r;
}

int exact_machine_run(const struct exact_tool *tool, char *const *argv, struct exact_result *result,
                      int *ret_start_code, struct error *err)
{
    CLEANUP(memory_freep) char *program = NULL;
    CLEANUP(memory_freep) char *folder = NULL;
    struct given given = {0};
    struct exact_program resolved = {0};
    int r = exact_find_program(tool, argv, &resolved, &program, err);
    exact_program_done(&resolved);
    if (r < 0) {
        *ret_start_code = r;
        return r;
    }
    r = take_all(&given, err);
    if (r == 0)
        r = exact_make_folder(&folder, err);
    if (r == 0) {
        CLEANUP(memory_freep) char *counts = memory_printf("%s/counts", folder);
        struct vm_run run = {.argv = argv,
                             .variables = given.variables,
                             .folder = given.folder,
                             .input = *given.input ? given.input : NULL,
                             .program = program,
                             .groups = given.groups,
                             .tree = given.tree,
                             .seen_as = given.seen_as,
                             .drops_output = tool->is_quiet || drops_output(),
                             .uid = geteuid(),
                             .on_output = tool->is_quiet ? drop : pass_on};
        r = run_once(tool, &run, counts, result, err);
        exact_remove_folder(folder);
    }
    given_done(&given);
    result->was_stopped = r == -EINTR;
    return r == -EINTR ? 0 : r;
}
