/* SPDX-License-Identifier: MIT */
/* Counts without a PMU: see simulated.h. */
#include "counters/simulated.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/strings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

enum { WORDS_MAX = 14 }; /* that go before a command */

/* Sums of cachegrind's columns (documented in the Valgrind manual, chapter 5.9). */
static const struct {
    struct simulated_event event;
    const char *columns[3];
} definitions[] = {
    [SIM_INSTRUCTIONS] = {{"sim:instructions", "instructions executed in user mode", false, 0},
                          {"Ir"}},
    [SIM_BRANCHES] = {{"sim:branches", "conditional and indirect branches", false, 0},
                      {"Bc", "Bi"}},
    [SIM_BRANCH_MISSES] = {{"sim:branch-misses", "mispredicted by the simulated predictor", true,
                            SIM_BRANCHES},
                           {"Bcm", "Bim"}},
    [SIM_L1I_MISSES] = {{"sim:L1-icache-load-misses", "of the simulated level 1 instruction cache",
                         true, SIM_INSTRUCTIONS},
                        {"I1mr"}},
    [SIM_L1D_LOADS] = {{"sim:L1-dcache-loads", "data reads", false, 0}, {"Dr"}},
    [SIM_L1D_LOAD_MISSES] = {{"sim:L1-dcache-load-misses", "of the simulated level 1 data cache",
                              true, SIM_L1D_LOADS},
                             {"D1mr"}},
    [SIM_L1D_STORES] = {{"sim:L1-dcache-stores", "data writes", false, 0}, {"Dw"}},
    [SIM_L1D_STORE_MISSES] = {{"sim:L1-dcache-store-misses", "of the simulated level 1 data cache",
                               true, SIM_L1D_STORES},
                              {"D1mw"}},
    [SIM_LLC_MISSES] = {{"sim:LLC-misses", "reads and writes that missed the simulated last level",
                         false, 0},
                        {"ILmr", "DLmr", "DLmw"}},
};

const struct simulated_event *simulated_event(size_t index)
{
    return &definitions[index].event;
}

static size_t event_count(bool full)
{
    return full ? ARRAY_COUNT(definitions) : 1;
}

/* The line of the text that starts with the key, behind it; NULL when there is none. */
static const char *find_line(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = text; line && *line;) {
        if (strncmp(line, key, length) == 0)
            return line + length;
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return NULL;
}

/* The number in summary that stands where events has the column. */
static int column_value(const char *events, const char *summary, const char *column,
                        uint64_t *ret_value, struct error *err)
{
    size_t wanted = strlen(column);
    for (;;) {
        events += strspn(events, " ");
        summary += strspn(summary, " ");
        size_t name = strcspn(events, " \n"), number = strcspn(summary, " \n");
        if (!name || !number)
            return error_set(err, -EINVAL, "the column %s is missing", column);
        if (name == wanted && strncmp(events, column, name) == 0) {
            CLEANUP(memory_freep) char *text = memory_strndup(summary, number);
            return parse_u64(text, ret_value, err);
        }
        events += name;
        summary += number;
    }
}

int simulated_parse(const char *text, bool full, uint64_t *values, struct error *err)
{
    const char *events = find_line(text, "events:"), *summary = find_line(text, "summary:");
    if (!events || !summary)
        return error_set(err, -EINVAL, "no events: and summary: lines (was it cut short?)");
    uint64_t sums[ARRAY_COUNT(definitions)] = {0};
    for (size_t i = 0; i < event_count(full); i++)
        for (size_t j = 0; j < ARRAY_COUNT(definitions[i].columns); j++) {
            uint64_t value;
            if (!definitions[i].columns[j])
                break;
            int r = column_value(events, summary, definitions[i].columns[j], &value, err);
            if (r < 0)
                return r;
            sums[i] += value;
        }
    for (size_t i = 0; i < event_count(full); i++)
        values[i] += sums[i];
    return 0;
}

/* The numbers of one or two columns in the line "events:", as bits. */
static uint32_t find_columns(const char *events, const char *one, const char *other)
{
    uint32_t found = 0;
    for (unsigned i = 0; i < 32; i++) {
        events += strspn(events, " ");
        size_t length = strcspn(events, " \n");
        if ((length == strlen(one) && strncmp(events, one, length) == 0) ||
            (length == strlen(other) && strncmp(events, other, length) == 0))
            found |= 1u << i;
        events += length;
    }
    return found;
}

/* Columns as bits, for what they add to. */
struct function_columns {
    uint32_t instructions, mispredicted, first_level, last_level;
};

/* Adds a line of counts: a line number, then a number for each column. */
static void add_line(const char *line, const struct function_columns *c,
                     struct simulated_function *sum)
{
    char *end;
    strtoull(line, &end, 10);
    for (unsigned i = 0; i < 32 && *end == ' '; i++) {
        double value = (double)strtoull(end, &end, 10);
        sum->instructions += c->instructions >> i & 1 ? value : 0;
        sum->mispredicted += c->mispredicted >> i & 1 ? value : 0;
        sum->first_level += c->first_level >> i & 1 ? value : 0;
        sum->last_level += c->last_level >> i & 1 ? value : 0;
    }
}

void simulated_functions(const char *text, simulated_function_fn on_function, void *context)
{
    const char *events = find_line(text, "events:"), *name = NULL;
    size_t length = 0;
    struct simulated_function sum = {0};
    if (!events)
        return;
    const struct function_columns columns = {.instructions = find_columns(events, "Ir", "Ir"),
                                             .mispredicted = find_columns(events, "Bcm", "Bim"),
                                             .first_level = find_columns(events, "D1mr", "D1mw"),
                                             .last_level = find_columns(events, "DLmr", "DLmw")};
    for (const char *line = text; line && *line;) {
        bool starts = strncmp(line, "fn=", 3) == 0;
        if (*line >= '0' && *line <= '9')
            add_line(line, &columns, &sum);
        if (starts && name)
            on_function(name, length, &sum, context);
        if (starts) {
            name = line + 3;
            length = strcspn(name, "\n");
            sum = (struct simulated_function){0};
        }
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    if (name)
        on_function(name, length, &sum, context);
}

static void find_version(char *valgrind, struct simulation *s)
{
    char line[40] = "";
    int fds[2];
    pid_t pid;
    struct process_result result;
    if (pipe2(fds, O_CLOEXEC) == 0) {
        char *const argv[] = {valgrind, "--version", NULL};
        struct process_spec command = {
            .argv = argv, .stdin_fd = -1, .stdout_fd = fds[1], .stderr_fd = -1};
        bool started = process_spawn(&command, &pid, NULL) == 0;
        close(fds[1]);
        ssize_t got = started ? read(fds[0], line, sizeof(line) - 1) : 0;
        line[got > 0 ? got : 0] = '\0';
        line[strcspn(line, "\n")] = '\0';
        close(fds[0]);
        if (started)
            process_wait(pid, &result, NULL);
    }
    snprintf(s->tool, sizeof(s->tool), "cachegrind of %s",
             *line ? line : "valgrind of unknown version");
}

/* A run's own folder, so that what outlives one run cannot count into the next. */
static int make_folder(char **ret_path, struct error *err)
{
    const char *base = temporary_folder();
    /* The command may change its folder before it starts another program. */
    CLEANUP(memory_freep) char *whole = realpath(base, NULL);
    if (!whole)
        return error_errno(err, -errno, "the directory for temporary files (TMPDIR), %s", base);
    char *path = memory_printf("%s/assay-sim-XXXXXX", whole);
    if (!mkdtemp(path)) {
        int code = -errno;
        free(path);
        return error_errno(err, code, "creating a temporary directory in %s (TMPDIR)", whole);
    }
    *ret_path = path;
    return 0;
}

static void empty_folder(const char *path)
{
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
}

static void remove_folder(const char *path)
{
    empty_folder(path);
    rmdir(path);
}

/* "--option=FOLDER/name", as Valgrind takes it: % starts a pattern there. */
static char *folder_option(const char *option, const char *folder, const char *name)
{
    struct strbuf text = {0};
    strbuf_puts(&text, option);
    for (; *folder; folder++)
        strbuf_puts(&text, *folder == '%' ? "%%" : (char[]){*folder, '\0'});
    strbuf_printf(&text, "/%s", name);
    return text.data;
}

/* Adds up what each process left in the folder. */
static int collect(const char *path, const struct simulate_spec *spec, struct simulated_run *run,
                   struct error *err)
{
    struct dirent **list;
    int count = scandir(path, &list, NULL, NULL), r = 0;
    if (count < 0)
        return error_errno(err, -errno, "%s", path);
    for (int i = 0; i < count; i++) {
        CLEANUP(memory_freep) char *file = memory_printf("%s/%s", path, list[i]->d_name);
        CLEANUP(strbuf_done) struct strbuf text = {0};
        if (r == 0 && str_has_prefix(list[i]->d_name, "out.")) {
            r = file_read(file, &text, err);
            if (r == 0)
                r = simulated_parse(strbuf_text(&text), spec->full, run->values, err);
            if (r == 0 && spec->on_function)
                simulated_functions(strbuf_text(&text), spec->on_function, spec->context);
            if (r < 0)
                error_wrap(err, r, "cachegrind's output %s", list[i]->d_name);
            run->process_count++;
        }
        free(list[i]);
    }
    free(list);
    return r;
}

static int no_output(const char *path, struct error *err)
{
    /* Valgrind's own words tell why, a set-uid program or a foreign architecture for example. */
    CLEANUP(memory_freep) char *file = memory_printf("%s/log", path);
    CLEANUP(strbuf_done) struct strbuf log = {0}, safe = {0};
    file_read(file, &log, NULL);
    strbuf_put_safe(&safe, strbuf_text(&log), log.length, 400);
    return error_set(err, -EIO, "cachegrind counted nothing%s%s",
                     safe.length ? "; its output: " : "; is the disk of TMPDIR full?",
                     strbuf_text(&safe));
}

/* Valgrind's words; the number of them. */
static size_t make_words(char **words, char *valgrind, bool full, char *out_option,
                         char *log_option)
{
    char *head[] = {valgrind,
                    "--command-line-only=yes",
                    "--tool=cachegrind",
                    "--trace-children=yes",
                    "--vgdb=no", /* its pipes in TMPDIR outlive a process that is killed */
                    full ? "--cache-sim=yes" : "--cache-sim=no",
                    full ? "--branch-sim=yes" : "--branch-sim=no",
                    out_option,
                    log_option,
                    "--"};
    memcpy(words, head, sizeof(head));
    return ARRAY_COUNT(head);
}

/* Cachegrind takes those of the processor that it runs on otherwise. */
static size_t add_caches(char **words, size_t count)
{
    static const char *const caches[] = {"--I1=32768,8,64", "--D1=49152,12,64",
                                         "--LL=33554432,16,64"};
    memmove(words + 1 + ARRAY_COUNT(caches), words + 1, (count - 1) * sizeof(*words));
    for (size_t i = 0; i < ARRAY_COUNT(caches); i++)
        words[1 + i] = (char *)(uintptr_t)caches[i];
    return count + ARRAY_COUNT(caches);
}

/* The command line: Valgrind's words, then the command's.  The caller frees it. */
static char **make_argv(const struct simulate_spec *spec, char *valgrind, char *out_option,
                        char *log_option)
{
    size_t words = 0;
    while (spec->argv[words])
        words++;
    char **argv = memory_zalloc(WORDS_MAX + words + 1, sizeof(*argv));
    size_t count = make_words(argv, valgrind, spec->full, out_option, log_option);
    if (spec->same_caches)
        count = add_caches(argv, count);
    memcpy(argv + count, spec->argv, words * sizeof(*argv));
    return argv;
}

/* Runs the command with its output in the folder, up to its end. */
static int run_in(const struct simulate_spec *spec, char *valgrind, const char *folder,
                  struct simulated_run *run, struct error *err)
{
    CLEANUP(memory_freep)
    char *out_option = folder_option("--cachegrind-out-file=", folder, "out.%p");
    CLEANUP(memory_freep) char *log_option = folder_option("--log-file=", folder, "log");
    CLEANUP(memory_freep) char **argv = make_argv(spec, valgrind, out_option, log_option);
    CLEANUP(fd_closep)
    int null_fd = spec->discard_output ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;
    struct process_spec command = {
        .argv = argv, .stdin_fd = null_fd, .stdout_fd = null_fd, .stderr_fd = null_fd};
    struct process_result result;
    pid_t pid;
    uint64_t start_ns = clock_now_ns();
    int r = process_spawn(&command, &pid, err);
    if (r < 0)
        return r;
    process_signals_target(pid);
    bool is_late = spec->timeout_ns && !process_poll(pid, start_ns + spec->timeout_ns) &&
                   !process_signals_caught();
    if (is_late)
        kill(pid, SIGKILL);
    r = process_wait(pid, &result, err);
    process_signals_target(0);
    if (r == 0 && is_late)
        r = error_set(err, -ETIMEDOUT, "it took longer than %llu s",
                      (unsigned long long)(spec->timeout_ns / NS_PER_S));
    run->wall_ns = clock_now_ns() - start_ns;
    run->status = result.status;
    run->left_behind = process_orphans_alive();
    return r;
}

static int run_once(const struct simulate_spec *spec, struct simulation *s, char *valgrind,
                    struct error *err)
{
    CLEANUP(memory_freep) char *folder = NULL;
    struct simulated_run run = {0};
    int r = make_folder(&folder, err);
    if (r < 0)
        return r;
    r = run_in(spec, valgrind, folder, &run, err);
    if (r == 0)
        r = collect(folder, spec, &run, err);
    /* A signal may have ended it before Valgrind was ready to count: then there is no run. */
    bool cut_short = !run.process_count && process_signals_caught();
    if (r == 0 && !run.process_count && !cut_short)
        r = no_output(folder, err);
    /* Valgrind ends a process that cannot write there: the folder of those that go on stays. */
    if (!run.left_behind)
        remove_folder(folder);
    if (r < 0 || cut_short)
        return r;
    ARRAY_PUSH(s->runs, s->run_count, s->run_capacity) = run;
    if (spec->on_run)
        spec->on_run(s, spec->context);
    return 0;
}

static int find_valgrind(char **ret_path, struct error *err)
{
    return process_find("valgrind", ret_path, NULL) == 0
               ? 0
               : error_set(err, -ENOENT,
                           "--sim needs Valgrind; install it: sudo apt-get install valgrind");
}

int simulate(const struct simulate_spec *spec, struct simulation *s, int *ret_start_code,
             struct error *err)
{
    *s = (struct simulation){.full = spec->full, .event_count = event_count(spec->full)};
    CLEANUP(memory_freep) char *valgrind = NULL;
    CLEANUP(memory_freep) char *program = NULL;
    int r = find_valgrind(&valgrind, err);
    if (r < 0)
        return r;
    r = process_find(spec->argv[0], &program, err);
    if (r < 0) {
        *ret_start_code = r;
        return r;
    }
    find_version(valgrind, s);
    process_adopt_orphans();
    process_signals_catch();
    while (r == 0 && s->run_count < spec->repeat_count && !process_signals_caught())
        r = run_once(spec, s, valgrind, err);
    s->signal = process_signals_caught();
    process_signals_restore();
    return r;
}

void simulation_done(struct simulation *s)
{
    free(s->runs);
    *s = (struct simulation){0};
}

int simulator_open(struct simulator *s, struct error *err)
{
    *s = (struct simulator){0};
    int r = find_valgrind(&s->valgrind, err);
    if (r == 0)
        r = make_folder(&s->folder, err);
    if (r < 0)
        return r;
    s->out_option = folder_option("--cachegrind-out-file=", s->folder, "out.%p");
    s->log_option = folder_option("--log-file=", s->folder, "log");
    make_words(s->words, s->valgrind, false, s->out_option, s->log_option);
    return 0;
}

int simulator_take(struct simulator *s, uint64_t *ret_instructions, struct error *err)
{
    struct simulate_spec spec = {0};
    struct simulated_run run = {0};
    int r = collect(s->folder, &spec, &run, err);
    if (r == 0 && !run.process_count)
        r = no_output(s->folder, err);
    empty_folder(s->folder);
    if (r == 0)
        *ret_instructions = run.values[0];
    return r;
}

void simulator_done(struct simulator *s)
{
    if (s->folder)
        remove_folder(s->folder);
    free(s->valgrind);
    free(s->folder);
    free(s->out_option);
    free(s->log_option);
    *s = (struct simulator){0};
}

bool simulated_take_event(const char *list, char **ret_rest)
{
    struct strbuf rest = {0};
    bool found = false;
    while (*list) {
        size_t length = strcspn(list, ",");
        bool is_it = length == strlen(SIMULATED_INSTRUCTIONS) &&
                     strncmp(list, SIMULATED_INSTRUCTIONS, length) == 0;
        if (!is_it) {
            strbuf_puts(&rest, rest.length ? "," : "");
            strbuf_append(&rest, list, length);
        }
        found |= is_it;
        list += length + (list[length] == ',');
    }
    *ret_rest = memory_strdup(strbuf_text(&rest));
    strbuf_done(&rest);
    return found;
}
