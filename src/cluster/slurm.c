/* SPDX-License-Identifier: MIT */
/* See slurm.h. */
#include "cluster/slurm.h"
#include "base/memory.h"
#include "run/command.h"
#include "session/slurm_tool.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ARRAY_MOST_DEFAULT 1000

static void add_jobs(struct slurm_words *w, const char *before, const uint64_t *jobs, size_t count)
{
    CLEANUP(strbuf_done) struct strbuf list = {0};
    for (size_t i = 0; i < count; i++)
        strbuf_printf(&list, "%s%llu", i ? "," : "", (unsigned long long)jobs[i]);
    slurm_words_add(w, "%s%s", before, strbuf_text(&list));
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
                     const char *node, const char *limit)
{
    struct slurm_task task = {.job = job, .index = index};
    copy_word(task.limit, sizeof(task.limit), limit, "|\n ");
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
        if (!bar || bar >= p + strcspn(p, "\n"))
            continue;
        size_t node = strcspn(bar + 1, "|\n");
        add_task(tasks, job, index, p, bar + 1, bar[1 + node] == '|' ? bar + node + 2 : "");
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
                   *state = value_in(line, "JobState="), *node = value_in(line, "NodeList="),
                   *limit = value_in(line, "TimeLimit=");
        uint64_t job_number, index_number;
        if (job && index && state && number_before(job, ' ', &job_number) &&
            number_before(index, ' ', &index_number))
            add_task(tasks, job_number, index_number, state, node ? node : "", limit ? limit : "");
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
        copy_word(node.state, sizeof(node.state), bar + 1, "| \n");
        const char *reason = bar + 1 + strcspn(bar + 1, "|\n");
        if (*reason == '|' && !str_has_prefix(reason, "|none\n"))
            copy_word(node.reason, sizeof(node.reason), reason + 1, "\n");
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

static int add_args(struct slurm_words *w, const char *args, struct error *err)
{
    char **words = NULL;
    bool needs_shell = false;
    if (!args || !args[strspn(args, " ")])
        return 0;
    int r = command_split(args, &words, &needs_shell, err);
    if (r < 0)
        return error_wrap(err, r, "--slurm-args");
    for (size_t i = 0; words[i]; i++)
        slurm_words_add(w, "%s", words[i]);
    command_free_words(words);
    return 0;
}

int slurm_submit(const struct slurm_settings *settings, const struct slurm_job *job,
                 uint64_t *ret_job, struct error *err)
{
    CLEANUP(slurm_words_done) struct slurm_words w = {0};
    CLEANUP(strbuf_done) struct strbuf out = {0};
    slurm_words_add(&w, "sbatch");
    slurm_words_add(&w, "--parsable");
    slurm_words_add(&w, "--no-requeue"); /* what is lost is planned anew, on another node */
    slurm_words_add(&w, "--job-name=%s", job->name);
    slurm_words_add(&w, "--output=%s", job->output);
    slurm_words_add(&w, "--nodes=%zu", settings->host_count ? settings->host_count : 1);
    slurm_words_add(&w, "--ntasks-per-node=1");
    if (settings->throttle)
        slurm_words_add(&w, "--array=0-%zu%%%llu", job->task_count - 1,
                        (unsigned long long)settings->throttle);
    else
        slurm_words_add(&w, "--array=0-%zu", job->task_count - 1);
    if (settings->partition)
        slurm_words_add(&w, "--partition=%s", settings->partition);
    if (settings->constraint)
        slurm_words_add(&w, "--constraint=%s", settings->constraint);
    if (settings->exclusive)
        slurm_words_add(&w, "--exclusive");
    if (job->exclude && *job->exclude)
        slurm_words_add(&w, "--exclude=%s", job->exclude);
    int r = add_args(&w, settings->args, err);
    slurm_words_add(&w, "%s", job->script);
    if (r == 0)
        r = slurm_words_run(&w, &out, err);
    if (r < 0)
        return r;
    char *rest;
    errno = 0;
    unsigned long long id = strtoull(strbuf_text(&out), &rest, 10);
    if (errno || !id || (*rest != '\n' && *rest != ';' && *rest))
        return error_set(err, -EPROTO, "sbatch printed no job number: %.60s", strbuf_text(&out));
    *ret_job = id;
    return 0;
}

int slurm_queue(const uint64_t *jobs, size_t job_count, struct slurm_tasks *ret_tasks,
                struct error *err)
{
    CLEANUP(slurm_words_done) struct slurm_words w = {0};
    CLEANUP(strbuf_done) struct strbuf out = {0};
    slurm_words_add(&w, "squeue");
    slurm_words_add(&w, "--noheader");
    slurm_words_add(&w, "--array");
    slurm_words_add(&w, "--states=all");
    slurm_words_add(&w, "--format=%%F|%%K|%%T|%%N|%%l");
    add_jobs(&w, "--jobs=", jobs, job_count);
    int r = slurm_words_run(&w, &out, err);
    if (r == -EIO && strstr(err->message, "Invalid job id")) /* none of them is known any more */
        return 0;
    if (r == 0)
        slurm_parse_tasks(strbuf_text(&out), '|', ret_tasks);
    return r;
}

void slurm_history(const uint64_t *jobs, size_t job_count, struct slurm_tasks *ret_tasks)
{
    CLEANUP(slurm_words_done) struct slurm_words w = {0};
    CLEANUP(strbuf_done) struct strbuf out = {0};
    struct error ignored;
    slurm_words_add(&w, "sacct");
    slurm_words_add(&w, "--noheader");
    slurm_words_add(&w, "--parsable2");
    slurm_words_add(
        &w, "--allocations"); /* --array is not known before 23.02; ended tasks have own lines */
    slurm_words_add(&w, "--format=JobID,State,NodeList,Timelimit");
    add_jobs(&w, "--jobs=", jobs, job_count);
    if (slurm_words_run(&w, &out, &ignored) == 0)
        slurm_parse_tasks(strbuf_text(&out), '_', ret_tasks);
    for (size_t i = 0; ret_tasks->count == 0 && i < job_count; i++) {
        CLEANUP(slurm_words_done) struct slurm_words show = {0};
        slurm_words_add(&show, "scontrol");
        slurm_words_add(&show, "--oneliner");
        slurm_words_add(&show, "show");
        slurm_words_add(&show, "job");
        slurm_words_add(&show, "%llu", (unsigned long long)jobs[i]);
        strbuf_clear(&out);
        if (slurm_words_run(&show, &out, &ignored) == 0)
            slurm_parse_jobs(strbuf_text(&out), ret_tasks);
    }
}

int slurm_cancel(const uint64_t *jobs, size_t job_count, struct error *err)
{
    CLEANUP(slurm_words_done) struct slurm_words w = {0};
    CLEANUP(strbuf_done) struct strbuf out = {0};
    slurm_words_add(&w, "scancel");
    slurm_words_add(&w, "--quiet");
    for (size_t i = 0; i < job_count; i++)
        slurm_words_add(&w, "%llu", (unsigned long long)jobs[i]);
    return job_count ? slurm_words_run(&w, &out, err) : 0;
}

int slurm_list_nodes(const struct slurm_settings *settings, struct slurm_nodes *ret_nodes,
                     struct error *err)
{
    CLEANUP(slurm_words_done) struct slurm_words w = {0};
    CLEANUP(strbuf_done) struct strbuf out = {0};
    slurm_words_add(&w, "sinfo");
    slurm_words_add(&w, "--noheader");
    slurm_words_add(&w, "--Node");
    slurm_words_add(&w, "--format=%%N|%%T|%%E");
    if (settings->partition)
        slurm_words_add(&w, "--partition=%s", settings->partition);
    int r = slurm_words_run(&w, &out, err);
    if (r == 0)
        slurm_parse_nodes(strbuf_text(&out), ret_nodes);
    return r;
}

int slurm_check(const struct slurm_settings *settings, struct error *err)
{
    const char *conf = getenv("SLURM_CONF");
    if (conf && access(conf, R_OK) < 0) /* else each program tries for a minute */
        return error_errno(
            err, -errno,
            "SLURM_CONF=%s: it must name a copy of the cluster's slurm.conf on this host", conf);
    CLEANUP(slurm_nodes_done) struct slurm_nodes nodes = {0};
    return slurm_list_nodes(settings, &nodes, err);
}

size_t slurm_array_most(void)
{
    char *argv[] = {(char *)"scontrol", (char *)"show", (char *)"config", NULL};
    CLEANUP(strbuf_done) struct strbuf out = {0};
    struct error ignored;
    if (slurm_run(argv, &out, &ignored) < 0)
        return ARRAY_MOST_DEFAULT;
    const char *found = strstr(strbuf_text(&out), "MaxArraySize");
    const char *equals = found ? strchr(found, '=') : NULL;
    unsigned long long size = equals ? strtoull(equals + 1, NULL, 10) : 0; /* one above the last */
    return size > 1 ? (size_t)size - 1 : ARRAY_MOST_DEFAULT;
}
