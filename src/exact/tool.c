/* SPDX-License-Identifier: MIT */
/* See tool.h. */
#include "exact/tool.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/strings.h"
#include "elf/machine.h"
#include "exact/machine.h"
#include "exact/model.h"
#include "exact/run.h"
#include "monitors/syscalls.h"
#include "vm/arch.h"
#include "vm/exits.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

#if defined(__x86_64__)
#define EMULATOR "qemu-x86_64"
#elif defined(__aarch64__)
#define EMULATOR "qemu-aarch64"
#else
#define EMULATOR "qemu-user"
#endif

enum { HELP_BYTES = 64 << 10 };

const char *exact_word(const char *word)
{
    static const char *const words[] = {EXACT_USER, EXACT_ARM64, EXACT_MODEL};
    if (!*word || str_eq(word, EXACT_MACHINE) || str_eq(word, "true"))
        return EXACT_MACHINE;
    for (size_t i = 0; i < ARRAY_COUNT(words); i++)
        if (str_eq(word, words[i]))
            return words[i];
    return NULL;
}

int exact_check_word(const char *word, struct error *err)
{
    if (exact_word(word))
        return 0;
    return error_set(err, -EINVAL,
                     "--exact=%s: use --exact for an emulated machine, or --exact=user, "
                     "--exact=arm64 or --exact=model",
                     word);
}

static uint64_t all_of(const struct exact_counts *c)
{
    return c->instructions;
}

static uint64_t user_of(const struct exact_counts *c)
{
    return c->user;
}

static uint64_t kernel_of(const struct exact_counts *c)
{
    return c->kernel;
}

static uint64_t calls_of(const struct exact_counts *c)
{
    return c->calls;
}

static uint64_t faults_of(const struct exact_counts *c)
{
    return c->faults;
}

static uint64_t switches_of(const struct exact_counts *c)
{
    return c->switches;
}

static uint64_t cycles_of(const struct exact_counts *c)
{
    return exact_model_cycles(&c->modelled);
}

static uint64_t mispredicted_of(const struct exact_counts *c)
{
    return c->modelled.branch_misses;
}

static uint64_t first_level_of(const struct exact_counts *c)
{
    return c->modelled.l1_misses;
}

static uint64_t last_level_of(const struct exact_counts *c)
{
    return c->modelled.llc_misses;
}

const struct exact_metric *exact_tool_metrics(const struct exact_tool *t)
{
    static const struct exact_metric of_cachegrind[] = {{SIMULATED_INSTRUCTIONS, all_of},
                                                        {NULL, NULL}};
    static const struct exact_metric of_model[] = {
        {EXACT_MODEL_CYCLES, cycles_of},        {SIMULATED_INSTRUCTIONS, all_of},
        {"sim:branch-misses", mispredicted_of}, {"sim:L1-misses", first_level_of},
        {"sim:LLC-misses", last_level_of},      {NULL, NULL}};
    static const struct exact_metric of_user[] = {
        {EXACT_INSTRUCTIONS, all_of}, {"exact:syscalls", calls_of}, {NULL, NULL}};
    static const struct exact_metric of_arm64[] = {
        {EXACT_ARM64_INSTRUCTIONS, all_of}, {"exact:arm64-syscalls", calls_of}, {NULL, NULL}};
    static const struct exact_metric of_machine[] = {{"exact:instructions:uk", all_of},
                                                     {"exact:instructions:u", user_of},
                                                     {"exact:instructions:k", kernel_of},
                                                     {"exact:machine-syscalls", calls_of},
                                                     {"exact:machine-faults", faults_of},
                                                     {"exact:machine-switches", switches_of},
                                                     {NULL, NULL}};
    return t->is_model                                   ? of_model
           : t->is_cachegrind                            ? of_cachegrind
           : t->machine                                  ? of_machine
           : str_eq(t->metric, EXACT_ARM64_INSTRUCTIONS) ? of_arm64
                                                         : of_user;
}

/* What a program prints with an option, as far as there is room. */
static void ask(char *program, char *option, char *line, size_t size)
{
    int fds[2];
    pid_t pid;
    struct process_result result;
    line[0] = '\0';
    if (pipe2(fds, O_CLOEXEC) < 0)
        return;
    char *const argv[] = {program, option, NULL};
    struct process_spec command = {
        .argv = argv, .stdin_fd = -1, .stdout_fd = fds[1], .stderr_fd = -1};
    bool started = process_spawn(&command, &pid, NULL) == 0;
    close(fds[1]);
    size_t length = 0;
    for (ssize_t got; started && length < size - 1; length += (size_t)got)
        if ((got = read(fds[0], line + length, size - 1 - length)) <= 0)
            break;
    line[length] = '\0';
    close(fds[0]);
    if (started)
        process_wait(pid, &result, NULL);
}

static void ask_version(char *program, char *line, size_t size)
{
    ask(program, "--version", line, size);
    line[strcspn(line, "\n")] = '\0';
}

/* "qemu-x86_64 version 7.2.22 (Debian …)": 7.2.22.  A machine's QEMU says that with its help, too,
 * which saves a start.  It may be built without plugins, as Debian 13's qemu-user is. */
static bool takes_plugins(char *emulator, char version[32])
{
    CLEANUP(memory_freep) char *help = memory_alloc(HELP_BYTES);
    char line[256];
    ask(emulator, "-h", help, HELP_BYTES);
    bool says = str_has_prefix(help, "QEMU emulator version ");
    if (!says)
        ask_version(emulator, line, sizeof(line));
    const char *at = strstr(says ? help : line, "version ");
    version[0] = '\0';
    if (at)
        sscanf(at + 8, "%31[0-9.]", version);
    return strstr(help, "-plugin") != NULL;
}

/* The plugin is installed beside this program, or built in its tree. */
static char *find_plugin(int version)
{
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(self, '/');
    int folder = slash ? (int)(slash - self) : 0;
    static const char *const places[] = {"../lib/assay", "../exact"};
    for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
        char *path = memory_printf("%.*s/%s/assay-exact-%d.so", folder, self, places[i], version);
        char *whole = realpath(path, NULL);
        free(path);
        if (whole)
            return whole;
    }
    return NULL;
}

static int find_qemu(struct exact_tool *t, const char *emulator, const char *package)
{
    char version[32];
    unsigned major = 0;
    if (process_find(emulator, &t->emulator, NULL) < 0) {
        snprintf(t->why, sizeof(t->why), "%s is not installed (Debian's package: %s).", emulator,
                 package);
        return -ENOENT;
    }
    bool has_plugins = takes_plugins(t->emulator, version);
    sscanf(version, "%u", &major);
    if (major && !has_plugins) {
        snprintf(t->why, sizeof(t->why), "%s %s is built without plugins.", emulator, version);
        return -ENOENT;
    }
    t->plugin = major ? find_plugin(major < 9 ? 1 : 2) : NULL;
    if (!t->plugin) {
        if (major)
            snprintf(t->why, sizeof(t->why), "assay's plugin for QEMU is not installed.");
        else
            snprintf(t->why, sizeof(t->why), "the version of %s is not known.", emulator);
        return -ENOENT;
    }
    snprintf(t->name, sizeof(t->name), "%s %s, CPU model %s", emulator, version, EXACT_CPU);
    return 0;
}

/* User and kernel. */
static int find_machine(struct exact_tool *t, void (*progress)(const char *what), struct error *err)
{
    if (vm_arch_host() != vm_arch_find("x86_64")) {
        error_set(err, -ENOTSUP,
                  "--exact: machines are emulated for programs of x86_64 only; --exact=user counts "
                  "user mode");
        return error_end_with(err, VM_EXIT_OTHER_ARCH, -ENOTSUP);
    }
    int r = find_qemu(t, "qemu-system-x86_64", "qemu-system-x86");
    if (r < 0) {
        error_set(err, r, "--exact: %s --exact=user counts user mode without a machine", t->why);
        return error_end_with(err, VM_EXIT_NO_QEMU, r);
    }
    r = exact_machine_open(&t->machine, progress, err);
    if (r < 0)
        return r;
    size_t length = strlen(t->name);
    snprintf(t->name + length, sizeof(t->name) - length, ", Linux %s, 1 CPU, %llu MiB",
             exact_machine_release(t->machine), EXACT_MEMORY_BYTES >> 20);
    t->metric = exact_tool_metrics(t)->name;
    return 0;
}

static int find_cachegrind(struct exact_tool *t, struct error *err)
{
    struct simulator s;
    char line[64];
    int r = simulator_open(&s, err);
    if (r < 0)
        return r;
    ask_version(s.valgrind, line, sizeof(line));
    simulator_done(&s);
    t->is_cachegrind = true;
    t->metric = SIMULATED_INSTRUCTIONS;
    snprintf(t->name, sizeof(t->name), "cachegrind of %s", line);
    return 0;
}

static int find_user(struct exact_tool *t, struct error *err)
{
    t->metric = EXACT_INSTRUCTIONS;
    if (find_qemu(t, EMULATOR, "qemu-user") == 0)
        return 0;
    int r = find_cachegrind(t, err);
    if (r == 0) {
        snprintf(t->note, sizeof(t->note), "--exact=user counts with %s: %s", t->name, t->why);
        return 0;
    }
    error_set(err, r,
              "--exact=user: %s install qemu-user (or valgrind): sudo apt-get install qemu-user",
              t->why);
    return error_end_with(err, VM_EXIT_NO_QEMU, r);
}

static int find_arm64(struct exact_tool *t, struct error *err)
{
    int r = find_qemu(t, "qemu-aarch64", "qemu-user");
    t->processor = EM_AARCH64;
    t->metric = EXACT_ARM64_INSTRUCTIONS;
    if (r == 0)
        return 0;
    error_set(err, r, "--exact=arm64: %s", t->why);
    return error_end_with(err, VM_EXIT_NO_QEMU, r);
}

static int find_model(struct exact_tool *t, struct error *err)
{
    int r = find_cachegrind(t, err);
    if (r < 0) {
        error_set(err, r,
                  "--exact=model needs Valgrind; install it: sudo apt-get install valgrind");
        return error_end_with(err, VM_EXIT_NO_QEMU, r);
    }
    t->is_model = true;
    t->metric = EXACT_MODEL_CYCLES;
    snprintf(t->note, sizeof(t->note), "%s", EXACT_MODEL_WORDS);
    return 0;
}

const char *exact_call_name(const struct exact_tool *t, uint64_t number, char *buffer, size_t size)
{
    return t->processor == EM_AARCH64 ? syscall_name_arm64(number, buffer, size)
                                      : syscall_name(number, buffer, size);
}

const char *exact_tool_note(const struct exact_tool *t)
{
    return *t->note ? t->note : NULL;
}

int exact_tool_find(struct exact_tool *t, const char *word, void (*progress)(const char *what),
                    struct error *err)
{
    *t = (struct exact_tool){.processor = image_own_machine()};
    const char *what = exact_word(word);
    return str_eq(what, EXACT_USER)    ? find_user(t, err)
           : str_eq(what, EXACT_ARM64) ? find_arm64(t, err)
           : str_eq(what, EXACT_MODEL) ? find_model(t, err)
                                       : find_machine(t, progress, err);
}

void exact_tool_done(struct exact_tool *t)
{
    exact_machine_close(t->machine);
    free(t->emulator);
    free(t->plugin);
    *t = (struct exact_tool){0};
}
