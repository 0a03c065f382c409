/* SPDX-License-Identifier: MIT */
/* See run.h. */
#include "exact/run.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/strings.h"
#include "elf/image.h"
#include "exact/machine.h"
#include "vm/exits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define COLLECT_NS (50 * NS_PER_MS)

/* ---- the directory that the plugin counts in ---- */

/* Files in memory are quicker, where there is room for them. */
int exact_make_folder(char **ret_path, struct error *err)
{
    const char *given = getenv("TMPDIR");
    const char *bases[] = {given && *given ? given : "/dev/shm", "/tmp", NULL};
    int code = 0;
    for (size_t i = 0; bases[i]; i++) {
        CLEANUP(memory_freep) char *whole = realpath(bases[i], NULL);
        char *path = memory_printf("%s/assay-exact-XXXXXX", whole ? whole : bases[i]);
        if (whole && mkdtemp(path)) {
            *ret_path = path;
            return 0;
        }
        code = -errno;
        free(path);
    }
    return error_errno(err, code, "creating a temporary directory in %s (TMPDIR)", bases[0]);
}

void exact_remove_folder(const char *path)
{
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
    rmdir(path);
}

/* ---- QEMU ---- */

struct emulation {
    const struct exact_tool *tool;
    char *const *argv;
    struct exact_program program;
    const char *libraries; /* their directory, or NULL for the host's */
    char *plugin_option;
    char **words; /* the list is ours, its words are others' */
    char **variables;
};

/* A comma separates QEMU's options; two of them are one. */
static char *make_plugin_option(const char *plugin, const char *folder)
{
    struct strbuf text = {0};
    for (; *plugin; plugin++)
        strbuf_puts(&text, *plugin == ',' ? ",," : (char[]){*plugin, '\0'});
    strbuf_puts(&text, ",dir=");
    for (; *folder; folder++)
        strbuf_puts(&text, *folder == ',' ? ",," : (char[]){*folder, '\0'});
    return text.data;
}

static bool is_for_loader(const char *variable)
{
    return (str_has_prefix(variable, "LD_") || str_has_prefix(variable, "GLIBC_TUNABLES=")) &&
           !strchr(variable, ',');
}

static void make_words(struct emulation *e)
{
    extern char **environ;
    size_t arguments = 0, variables = 0, count = 0, kept = 0;
    while (e->argv[arguments])
        arguments++;
    while (environ[variables])
        variables++;
    e->words = memory_zalloc(arguments + 2 * variables + EXACT_WORDS_MAX + 16, sizeof(char *));
    e->variables = memory_zalloc(variables + 1, sizeof(char *));
    char *const head[] = {e->tool->emulator, "-cpu", EXACT_CPU, "-seed", "1"};
    for (size_t i = 0; i < ARRAY_COUNT(head); i++)
        e->words[count++] = head[i];
    if (e->libraries) {
        e->words[count++] = "-L";
        e->words[count++] = (char *)(uintptr_t)e->libraries;
    }
    e->words[count++] = "-plugin"; /* the last one that programs which are executed get, too */
    e->words[count++] = e->plugin_option;
    for (size_t i = 0; i < variables; i++) {
        bool for_loader = is_for_loader(environ[i]);
        if (for_loader) {
            e->words[count++] = "-E";
            e->words[count++] = environ[i];
        } else {
            e->variables[kept++] = environ[i];
        }
    }
    e->words[count++] = "-0";
    e->words[count++] = e->program.word_count ? e->program.words[0] : e->argv[0];
    e->words[count++] = e->program.path;
    for (int i = 1; i < e->program.word_count; i++)
        e->words[count++] = e->program.words[i];
    for (size_t i = 1; i < arguments; i++)
        e->words[count++] = e->argv[i];
}

/* In the child: what makes runs repeat, then QEMU. */
static _Noreturn void execute(const struct emulation *e, pid_t parent, int error_fd)
{
    cpu_set_t cpus;
    struct rlimit core;
    int cpu = sched_getcpu();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(125);
    if (cpu >= 0 && cpu < CPU_SETSIZE) {
        CPU_ZERO(&cpus);
        CPU_SET(cpu, &cpus);
        sched_setaffinity(0, sizeof(cpus), &cpus);
    }
    sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0}); /* threads switch less often */
    int persona = personality(0xffffffff);
    if (persona != -1)
        personality((unsigned long)persona | ADDR_NO_RANDOMIZE);
    if (getrlimit(RLIMIT_CORE, &core) == 0) { /* QEMU would write one into the current directory */
        core.rlim_cur = 0;
        setrlimit(RLIMIT_CORE, &core);
    }
    const int back_to_default[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    for (size_t i = 0; i < ARRAY_COUNT(back_to_default); i++)
        signal(back_to_default[i], SIG_DFL);
    execve(e->tool->emulator, e->words, e->variables);
    int code = errno;
    if (write(error_fd, &code, sizeof(code)) < 0)
        _exit(126);
    _exit(127);
}

static int spawn(const struct emulation *e, pid_t *ret_pid, struct error *err)
{
    int ends[2], code = 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_errno(err, -errno, "pipe");
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        execute(e, parent, ends[1]);
    close(ends[1]);
    if (pid > 0 && read(ends[0], &code, sizeof(code)) < 0)
        code = 0;
    close(ends[0]);
    if (pid < 0)
        return error_errno(err, -errno, "fork");
    if (code) {
        waitpid(pid, NULL, 0);
        return error_errno(err, -code, "%s", e->tool->emulator);
    }
    *ret_pid = pid;
    return 0;
}

/* ---- what it left ---- */

static void add_once(char ***list, size_t *count, size_t *capacity, const char *text)
{
    for (size_t i = 0; i < *count; i++)
        if (str_eq((*list)[i], text))
            return;
    ARRAY_PUSH(*list, *count, *capacity) = memory_strdup(text);
}

static void add_foreign(struct exact_result *r, const char *path)
{
    add_once(&r->foreign, &r->foreign_count, &r->foreign_capacity, path);
}

static void add_set_id(struct exact_result *r, const char *path)
{
    add_once(&r->set_id, &r->set_id_count, &r->set_id_capacity, path);
}

static void read_notes(struct exact_result *r, const char *folder)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    CLEANUP(memory_freep) char *path = memory_printf("%s/notes", folder);
    char *save = NULL;
    if (access(path, F_OK) < 0 || file_read(path, &text, NULL) < 0)
        return;
    for (char *line = strtok_r(text.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (str_has_prefix(line, "foreign "))
            add_foreign(r, line + 8);
        else if (str_has_prefix(line, "set-id "))
            add_set_id(r, line + 7);
    }
}

/* Waits for its end, and takes the counts of processes that end before. */
static int await(pid_t pid, const char *folder, struct exact_result *result, struct error *err)
{
    struct process_result ended;
    uint64_t start_ns = clock_now_ns();
    int r = 0;
    process_signals_target(pid);
    while (r == 0 && !process_signals_caught() && !process_poll(pid, clock_now_ns() + COLLECT_NS))
        r = exact_counts_collect(&result->counts, folder, false, err);
    if (r < 0)
        kill(pid, SIGKILL);
    int waited = process_wait(pid, &ended, r < 0 ? NULL : err);
    process_signals_target(0);
    result->wall_ns = clock_now_ns() - start_ns;
    result->status = ended.status;
    result->left_behind = process_orphans_alive();
    if (r == 0)
        r = waited;
    return r == 0 ? exact_counts_collect(&result->counts, folder, true, err) : r;
}

static int run_in_folder(struct emulation *e, const char *folder, struct exact_result *result,
                         struct error *err)
{
    pid_t pid = -1;
    e->plugin_option = make_plugin_option(e->tool->plugin, folder);
    make_words(e);
    if (e->program.is_set_id)
        add_set_id(result, e->argv[0]);
    int r = spawn(e, &pid, err);
    if (r == 0)
        r = await(pid, folder, result, err);
    if (r < 0)
        return r;
    read_notes(result, folder);
    result->was_stopped = !result->counts.process_count && process_signals_caught();
    if (!result->counts.process_count && !result->was_stopped)
        return error_set(err, -EIO,
                         "%s counted nothing; does this QEMU support plugins? (%s -plugin help)",
                         e->tool->name, e->tool->emulator);
    return 0;
}

/* A program for another processor that could be counted in another way. */
static int wrong_processor(const struct exact_tool *tool, const char *name,
                           const struct exact_program *p, struct error *err)
{
    bool is_machine = !tool || tool->machine;
    error_set(err, -ENOEXEC, "%s is for %s; %s", p->word_count ? p->path : name,
              p->is_arm64 ? "arm64" : "x86_64",
              !p->is_arm64 ? "--exact and --exact=user count such programs on an x86_64 machine"
              : is_machine ? "--exact=arm64 counts its user mode, and 'assay vm run -e "
                             "instructions' runs static programs under a kernel for arm64"
                           : "--exact=arm64 counts it");
    return error_end_with(err, VM_EXIT_OTHER_ARCH, -ENOEXEC);
}

int exact_find_program(const struct exact_tool *tool, char *const *argv,
                       struct exact_program *ret_program, char **ret_path, struct error *err)
{
    uint16_t processor = tool ? tool->processor : image_own_machine();
    int r = process_find(argv[0], ret_path, err);
    enum exact_kind kind = r == 0 ? exact_resolve(ret_program, *ret_path, processor) : EXACT_RUNS;
    if (r < 0 || kind == EXACT_RUNS)
        return r;
    if (ret_program->is_arm64 || ret_program->is_x86)
        return wrong_processor(tool, argv[0], ret_program, err);
    return error_set(err, kind == EXACT_FOREIGN ? -ENOEXEC : -EACCES, "%s: %s", argv[0],
                     kind == EXACT_FOREIGN
                         ? "not a program for this processor, and not a script that names one"
                         : "cannot be executed");
}

/* Where Debian's cross libraries for arm64 are. */
#define ARM64_FOLDER "/usr/aarch64-linux-gnu"

/* The directory below which QEMU looks for the libraries of a dynamic program first; NULL for none.
 */
static int find_libraries(const char *path, const char **ret_folder, struct error *err)
{
    struct image image;
    const char *given = getenv("QEMU_LD_PREFIX");
    int r = image_open(&image, path, err);
    if (r < 0)
        return r;
    CLEANUP(memory_freep) char *loader = image_interpreter(&image);
    image_close(&image);
    bool is_given = given && *given;
    if (!loader || (!is_given && access(loader, X_OK) == 0))
        return 0;
    CLEANUP(memory_freep)
    char *cross = memory_printf("%s%s", is_given ? given : ARM64_FOLDER, loader);
    if (access(cross, F_OK) < 0) {
        error_set(err, -ENOENT,
                  "%s needs %s, which is not here: install Debian's package libc6-arm64-cross, "
                  "name the directory that has it with QEMU_LD_PREFIX, or link it with -static",
                  path, loader);
        return error_end_with(err, VM_EXIT_OTHER_ARCH, -ENOENT);
    }
    if (!is_given)
        *ret_folder = ARM64_FOLDER;
    return 0;
}

static int run_emulated(const struct exact_tool *tool, char *const *argv,
                        struct exact_result *result, int *ret_start_code, struct error *err)
{
    CLEANUP(memory_freep) char *path = NULL;
    CLEANUP(memory_freep) char *folder = NULL;
    struct emulation e = {.tool = tool, .argv = argv};
    int r = exact_find_program(tool, argv, &e.program, &path, err);
    if (r == 0 && tool->processor != image_own_machine())
        r = find_libraries(e.program.path, &e.libraries, err);
    if (r < 0)
        *ret_start_code = r;
    if (r == 0)
        r = exact_make_folder(&folder, err);
    if (r == 0) {
        r = run_in_folder(&e, folder, result, err);
        exact_remove_folder(folder);
    }
    exact_program_done(&e.program);
    free(e.plugin_option);
    free(e.words);
    free(e.variables);
    return r;
}

/* Without QEMU. */
static int run_cachegrind(const struct exact_tool *tool, char *const *argv,
                          struct exact_result *result, int *ret_start_code, struct error *err)
{
    struct simulate_spec spec = {
        .argv = argv, .repeat_count = 1, .full = tool->is_model, .same_caches = tool->is_model};
    CLEANUP(simulation_done) struct simulation s;
    int r = simulate(&spec, &s, ret_start_code, err);
    if (r < 0)
        return r;
    result->was_stopped = !s.run_count;
    if (s.run_count) {
        const uint64_t *values = s.runs[0].values;
        result->counts.instructions = values[SIM_INSTRUCTIONS];
        result->counts.modelled = (struct exact_modelled){
            .instructions = values[SIM_INSTRUCTIONS],
            .branch_misses = values[SIM_BRANCH_MISSES],
            .l1_misses =
                values[SIM_L1I_MISSES] + values[SIM_L1D_LOAD_MISSES] + values[SIM_L1D_STORE_MISSES],
            .llc_misses = values[SIM_LLC_MISSES]};
        result->counts.process_count = s.runs[0].process_count;
        result->status = s.runs[0].status;
        result->wall_ns = s.runs[0].wall_ns;
        result->left_behind = s.runs[0].left_behind;
    }
    return 0;
}

int exact_run(const struct exact_tool *tool, char *const *argv, struct exact_result *result,
              int *ret_start_code, struct error *err)
{
    *result = (struct exact_result){0};
    return tool->is_cachegrind ? run_cachegrind(tool, argv, result, ret_start_code, err)
           : tool->machine     ? exact_machine_run(tool, argv, result, ret_start_code, err)
                               : run_emulated(tool, argv, result, ret_start_code, err);
}

static void free_list(char **list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(list[i]);
    free(list);
}

void exact_result_done(struct exact_result *r)
{
    exact_counts_done(&r->counts);
    strbuf_done(&r->metrics);
    free_list(r->foreign, r->foreign_count);
    free_list(r->set_id, r->set_id_count);
    *r = (struct exact_result){0};
}
