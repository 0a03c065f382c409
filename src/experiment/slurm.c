/* SPDX-License-Identifier: MIT */
/* See slurm.h. */
#include "experiment/slurm.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "experiment/command.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* A controller that is busy answers late; one that is gone never does. */
#define ANSWER_NS (120 * NS_PER_S)
#define ARRAY_MOST_DEFAULT 1000

/* ---- running the programs ---- */

static void read_all(int fd, struct strbuf *out)
{
    char block[65536];
    off_t at = 0;
    ssize_t got;
    while ((got = pread(fd, block, sizeof(block), at)) > 0) {
        strbuf_append(out, block, (size_t)got);
        at += got;
    }
}

/* What to do about what Slurm's programs say; "" when there is nothing to be added. */
const char *slurm_remedy(const char *words)
{
    static const struct {
        const char *symptom, *remedy;
    } known[] = {
        {"Unable to contact slurm controller",
         "; no controller answers: 'scontrol ping' must say UP here; start slurmctld on the host "
         "that SlurmctldHost in slurm.conf names, or let SLURM_CONF name the right slurm.conf"},
        {"configuration source",
         "; this host does not know its cluster: it needs the cluster's slurm.conf in /etc/slurm, "
         "or SLURM_CONF with its path"},
        {"slurm.conf", "; this host needs the cluster's slurm.conf in /etc/slurm, or SLURM_CONF "
                       "with its path"},
        {"unge", "; munged must run here with the cluster's key: try 'munge -n | unmunge'"},
        {"uthentication",
         "; munged must run here with the cluster's key: try 'munge -n | unmunge'"},
        {"nvalid partition", "; 'sinfo' lists the partitions, --partition takes one"},
        {"nvalid feature", "; 'sinfo -o \"%N %f\"' lists the features, --constraint takes them"},
        {"nvalid account", "; --slurm-args --account=NAME names yours"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(known); i++)
        if (strstr(words, known[i].symptom))
            return known[i].remedy;
    return "";
}

/* What the program said on both streams, in one line, for an error. */
static int failed(struct error *err, const char *program, int status, struct strbuf *said)
{
    CLEANUP(strbuf_done) struct strbuf words = {0};
    for (size_t i = 0; i < said->length; i++)
        if (said->data[i] == '\n')
            said->data[i] = ' ';
    strbuf_put_safe(&words, strbuf_text(said), said->length, 400);
    while (words.length && words.data[words.length - 1] == ' ')
        words.data[--words.length] = '\0';
    return error_set(err, -EIO, "%s ended with %d: %s%s", program, process_exit_code(status),
                     words.length ? words.data : "it said nothing",
                     slurm_remedy(strbuf_text(&words)));
}

/* Whatever signals come for assay meanwhile. */
static bool has_ended_by(pid_t pid, uint64_t deadline_ns)
{
    siginfo_t info = {0};
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | WNOHANG) == 0 && !info.si_pid) {
        if (clock_now_ns() >= deadline_ns)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = (long)(5 * NS_PER_MS)}, NULL);
    }
    return true;
}

/* In a group of its own: Ctrl-C is for assay, which then wants an answer of these. */
static int run_tool(char *const *argv, struct strbuf *out, struct error *err)
{
    CLEANUP(fd_closep) int out_fd = memfd_create("assay-slurm", MFD_CLOEXEC);
    CLEANUP(fd_closep) int err_fd = memfd_create("assay-slurm", MFD_CLOEXEC);
    CLEANUP(fd_closep) int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct process_spec spec = {.argv = argv,
                                .stdin_fd = null_fd,
                                .stdout_fd = out_fd,
                                .stderr_fd = err_fd,
                                .own_group = true};
    pid_t pid;
    struct process_result result;
    int r = process_spawn(&spec, &pid, err);
    if (r == -ENOENT)
        return error_set(err, r, "%s is not installed: --on slurm needs Slurm's own programs",
                         argv[0]);
    if (r < 0)
        return r;
    bool ended = has_ended_by(pid, clock_now_ns() + ANSWER_NS);
    if (!ended)
        kill(pid, SIGKILL);
    r = process_wait(pid, &result, err);
    if (r < 0)
        return r;
    if (!ended)
        return error_set(err, -ETIMEDOUT, "%s has not answered within two minutes", argv[0]);
    read_all(out_fd, out);
    if (result.status == 0)
        return 0;
    CLEANUP(strbuf_done) struct strbuf said = {0};
    read_all(err_fd, &said);
    return failed(err, argv[0], result.status, said.length ? &said : out);
}

struct words {
    char **items;
    size_t count, capacity;
};

static void words_done(struct words *w)
{
    ARRAY_PUSH(w->items, w->count, w->capacity) = NULL;
    command_free_words(w->items);
}

__attribute__((format(printf, 2, 3))) static void add(struct words *w, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        abort();
    va_end(arguments);
    ARRAY_PUSH(w->items, w->count, w->capacity) = text;
}

static int run_words(struct words *w, struct strbuf *out, struct error *err)
{
    ARRAY_PUSH(w->items, w->count, w->capacity) = NULL;
    w->count--;
    return run_tool(w->items, out, err);
}

static void add_jobs(struct words *w, const char *before, const uint64_t *jobs, size_t count)
{
    CLEANUP(strbuf_done) struct strbuf list = {0};
    for (size_t i = 0; i < count; i++)
        strbuf_printf(&list, "%s%llu", i ? "," : "", (unsigned long long)jobs[i]);
    add(w, "%s%s", before, strbuf_text(&list));
}

/* ---- what they print ---- */

static enum slurm_state state_of(const char *word)
{
    static const struct {
        const char *word;
        enum slurm_state state;
    } known[] = {
        {"PENDING", SLURM_WAITS},         {"REQUEUED", SLURM_WAITS},
        {"REQUEUE_HOLD", SLURM_WAITS},    {"REQUEUE_FED", SLURM_WAITS},
        {"SPECIAL_EXIT", SLURM_WAITS},    {"RUNNING", SLURM_RUNS},
        {"COMPLETING", SLURM_RUNS},       {"CONFIGURING", SLURM_RUNS},
        {"SUSPENDED", SLURM_RUNS},        {"STOPPED", SLURM_RUNS},
        {"STAGE_OUT", SLURM_RUNS},        {"SIGNALING", SLURM_RUNS},
        {"RESIZING", SLURM_RUNS},         {"COMPLETED", SLURM_COMPLETED},
        {"CANCELLED", SLURM_CANCELLED},   {"NODE_FAIL", SLURM_NODE_FAILED},
        {"BOOT_FAIL", SLURM_NODE_FAILED}, {"REVOKED", SLURM_CANCELLED},
    };
    for (size_t i = 0; i < ARRAY_COUNT(known); i++)
        if (str_eq(word, known[i].word))
            return known[i].state;
    return SLURM_FAILED;
}

static void copy_word(char *to, size_t size, const char *from, const char *stop)
{
    snprintf(to, size, "%.*s", (int)strcspn(from, stop), from);
}

static void add_task(struct slurm_tasks *tasks, uint64_t job, uint64_t index, const char *word,
                     const char *node)
{
    struct slurm_task task = {.job = job, .index = index};
    copy_word(task.word, sizeof(task.word), word, " +|\n");
    copy_word(task.node, sizeof(task.node), node, ",|\n ");
    if (str_eq(task.node, "None") || str_eq(task.node, "(null)") || task.node[0] == '(')
        task.node[0] = '\0';
    task.state = state_of(task.word);
    ARRAY_PUSH(tasks->items, tasks->count, tasks->capacity) = task;
}

/* A whole number at the text's beginning, followed by `end`; where it goes on, NULL for none. */
static const char *number_before(const char *text, char end, uint64_t *ret)
{
    char *rest;
    if (!isdigit((unsigned char)*text))
        return NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &rest, 10);
    if (errno || *rest != end)
        return NULL;
    *ret = value;
    return rest + 1;
}

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end ? end + 1 : line + strlen(line);
}

void slurm_parse_tasks(const char *text, char separator, struct slurm_tasks *tasks)
{
    for (const char *line = text; *line; line = next_line(line)) {
        uint64_t job, index;
        const char *p = number_before(line, separator, &job);
        p = p ? number_before(p, '|', &index) : NULL;
        const char *bar = p ? strchr(p, '|') : NULL;
        if (bar && bar < p + strcspn(p, "\n"))
            add_task(tasks, job, index, p, bar + 1);
    }
}

/* The value of " Key=" in a line. */
static const char *value_in(const char *line, const char *key)
{
    const char *end = line + strcspn(line, "\n");
    const char *found = line;
    while ((found = strstr(found, key)) && found < end) {
        if (found == line || found[-1] == ' ')
            return found + strlen(key);
        found++;
    }
    return NULL;
}

void slurm_parse_jobs(const char *text, struct slurm_tasks *tasks)
{
    for (const char *line = text; *line; line = next_line(line)) {
        const char *job = value_in(line, "ArrayJobId="), *index = value_in(line, "ArrayTaskId="),
                   *state = value_in(line, "JobState="), *node = value_in(line, "NodeList=");
        uint64_t job_number, index_number;
        if (job && index && state && number_before(job, ' ', &job_number) &&
            number_before(index, ' ', &index_number))
            add_task(tasks, job_number, index_number, state, node ? node : "");
    }
}

static bool is_usable(const char *state)
{
    static const char *const bad[] = {"down",    "drain", "fail",   "unk",  "no_respond",
                                      "invalid", "maint", "reboot", "power"};
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
        if (strstr(state, bad[i]))
            return false;
    return !strchr(state, '*'); /* it does not answer */
}

void slurm_parse_nodes(const char *text, struct slurm_nodes *nodes)
{
    for (const char *line = text; *line; line = next_line(line)) {
        struct slurm_node node = {0};
        const char *bar = strchr(line, '|');
        if (!bar || bar == line || bar > line + strcspn(line, "\n"))
            continue;
        copy_word(node.name, sizeof(node.name), line, "|");
        copy_word(node.state, sizeof(node.state), bar + 1, " \n");
        node.usable = is_usable(node.state);
        bool there = false; /* a node stands there once for each of its partitions */
        for (size_t i = 0; i < nodes->count && !there; i++)
            there = str_eq(nodes->items[i].name, node.name);
        if (!there)
            ARRAY_PUSH(nodes->items, nodes->count, nodes->capacity) = node;
    }
}

void slurm_tasks_done(struct slurm_tasks *tasks)
{
    free(tasks->items);
    *tasks = (struct slurm_tasks){0};
}

void slurm_nodes_done(struct slurm_nodes *nodes)
{
    free(nodes->items);
    *nodes = (struct slurm_nodes){0};
}

/* ---- the calls ---- */

static int add_args(struct words *w, const char *args, struct error *err)
{
    char **words = NULL;
    bool needs_shell = false;
    if (!args || !args[strspn(args, " ")])
        return 0;
    int r = command_split(args, &words, &needs_shell, err);
    if (r < 0)
        return error_wrap(err, r, "--slurm-args");
    for (size_t i = 0; words[i]; i++)
        add(w, "%s", words[i]);
    command_free_words(words);
    return 0;
}

int slurm_submit(const struct slurm_settings *settings, const struct slurm_job *job,
                 uint64_t *ret_job, struct error *err)
{
    CLEANUP(words_done) struct words w = {0};
    CLEANUP(strbuf_done) struct strbuf out = {0};
    add(&w, "sbatch");
    add(&w, "--parsable");
    add(&w, "--no-requeue"); /* what is lost is planned anew, on another node */
    add(&w, "--job-name=%s", job->name);
    add(&w, "--output=%s", job->output);
    add(&w, "--nodes=%zu", settings->host_count ? settings->host_count : 1);
    add(&w, "--ntasks-per-node=1");
    if (settings->throttle)
        add(&w, "--array=0-%zu%%%llu", job->task_count - 1, (unsigned long long)settings->throttle);
    else
        add(&w, "--array=0-%zu", job->task_count - 1);
    if (settings->partition)
        add(&w, "--partition=%s", settings->partition);
    if (settings->constraint)
        add(&w, "--constraint=%s", settings->constraint);
    if (settings->exclusive)
        add(&w, "--exclusive");
    if (job->exclude && *job->exclude)
        add(&w, "--exclude=%s", job->exclude);
    int r = add_args(&w, settings->args, err);
    add(&w, "%s", job->script);
    if (r == 0)
        r = run_words(&w, &out, err);
    if (r < 0)
        return r;
    char *rest;
    errno = 0;
    unsigned long long id = strtoull(strbuf_text(&out), &rest, 10);
    if (errno || !id || (*rest != '\n' && *rest != ';' && *rest))
        return error_set(err, -EPROTO, "sbatch gave no job's number: %.60s", strbuf_text(&out));
    *ret_job = id;
    return 0;
}

int slurm_queue(const uint64_t *jobs, size_t job_count, struct slurm_tasks *ret_tasks,
                struct error *err)
{
    CLEANUP(words_done) struct words w = {0};
    CLEANUP(strbuf_done) struct strbuf out = {0};
    add(&w, "squeue");
    add(&w, "--noheader");
    add(&w, "--array");
    add(&w, "--states=all");
    add(&w, "--format=%%F|%%K|%%T|%%N");
    add_jobs(&w, "--jobs=", jobs, job_count);
    int r = run_words(&w, &out, err);
    if (r == -EIO && strstr(err->message, "Invalid job id")) /* none of them is known any more */
        return 0;
    if (r == 0)
        slurm_parse_tasks(strbuf_text(&out), '|', ret_tasks);
    return r;
}

void slurm_history(const uint64_t *jobs, size_t job_count, struct slurm_tasks *ret_tasks)
{
    CLEANUP(words_done) struct words w = {0};
    CLEANUP(strbuf_done) struct strbuf out = {0};
    struct error ignored;
    add(&w, "sacct");
    add(&w, "--noheader");
    add(&w, "--parsable2");
    add(&w, "--allocations"); /* --array is not known before 23.02; ended tasks have own lines */
    add(&w, "--format=JobID,State,NodeList");
    add_jobs(&w, "--jobs=", jobs, job_count);
    if (run_words(&w, &out, &ignored) == 0)
        slurm_parse_tasks(strbuf_text(&out), '_', ret_tasks);
    for (size_t i = 0; ret_tasks->count == 0 && i < job_count; i++) {
        CLEANUP(words_done) struct words show = {0};
        add(&show, "scontrol");
        add(&show, "--oneliner");
        add(&show, "show");
        add(&show, "job");
        add(&show, "%llu", (unsigned long long)jobs[i]);
        strbuf_clear(&out);
        if (run_words(&show, &out, &ignored) == 0)
            slurm_parse_jobs(strbuf_text(&out), ret_tasks);
    }
}

int slurm_cancel(const uint64_t *jobs, size_t job_count, struct error *err)
{
    CLEANUP(words_done) struct words w = {0};
    CLEANUP(strbuf_done) struct strbuf out = {0};
    add(&w, "scancel");
    add(&w, "--quiet");
    for (size_t i = 0; i < job_count; i++)
        add(&w, "%llu", (unsigned long long)jobs[i]);
    return job_count ? run_words(&w, &out, err) : 0;
}

int slurm_list_nodes(const struct slurm_settings *settings, struct slurm_nodes *ret_nodes,
                     struct error *err)
{
    CLEANUP(words_done) struct words w = {0};
    CLEANUP(strbuf_done) struct strbuf out = {0};
    add(&w, "sinfo");
    add(&w, "--noheader");
    add(&w, "--Node");
    add(&w, "--format=%%N|%%T");
    if (settings->partition)
        add(&w, "--partition=%s", settings->partition);
    int r = run_words(&w, &out, err);
    if (r == 0)
        slurm_parse_nodes(strbuf_text(&out), ret_nodes);
    return r;
}

int slurm_check(const struct slurm_settings *settings, struct error *err)
{
    const char *conf = getenv("SLURM_CONF");
    if (conf && access(conf, R_OK) < 0) /* else each program tries for a minute */
        return error_errno(err, -errno,
                           "SLURM_CONF=%s: it must name the cluster's slurm.conf, which this host "
                           "needs a copy of",
                           conf);
    CLEANUP(slurm_nodes_done) struct slurm_nodes nodes = {0};
    return slurm_list_nodes(settings, &nodes, err);
}

int slurm_list_allocation(struct slurm_nodes *ret_nodes, struct error *err)
{
    CLEANUP(words_done) struct words w = {0};
    CLEANUP(strbuf_done) struct strbuf names = {0};
    add(&w, "scontrol");
    add(&w, "show");
    add(&w, "hostnames"); /* of SLURM_JOB_NODELIST */
    int r = run_words(&w, &names, err);
    for (const char *line = strbuf_text(&names); r == 0 && *line; line = next_line(line)) {
        struct slurm_node node = {.usable = true};
        CLEANUP(words_done) struct words show = {0};
        CLEANUP(strbuf_done) struct strbuf text = {0};
        copy_word(node.name, sizeof(node.name), line, "\n");
        add(&show, "scontrol");
        add(&show, "--oneliner");
        add(&show, "show");
        add(&show, "node");
        add(&show, "%s", node.name);
        r = run_words(&show, &text, err);
        const char *address = r == 0 ? value_in(strbuf_text(&text), "NodeAddr=") : NULL;
        copy_word(node.state, sizeof(node.state), address ? address : node.name, " \n");
        ARRAY_PUSH(ret_nodes->items, ret_nodes->count, ret_nodes->capacity) = node;
    }
    return r;
}

size_t slurm_array_most(void)
{
    char *argv[] = {(char *)"scontrol", (char *)"show", (char *)"config", NULL};
    CLEANUP(strbuf_done) struct strbuf out = {0};
    struct error ignored;
    if (run_tool(argv, &out, &ignored) < 0)
        return ARRAY_MOST_DEFAULT;
    const char *found = strstr(strbuf_text(&out), "MaxArraySize");
    const char *equals = found ? strchr(found, '=') : NULL;
    unsigned long long size = equals ? strtoull(equals + 1, NULL, 10) : 0; /* one above the last */
    return size > 1 ? (size_t)size - 1 : ARRAY_MOST_DEFAULT;
}
