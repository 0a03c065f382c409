/* SPDX-License-Identifier: MIT */
/* See cluster_files.h. */
#include "session/cluster_files.h"
#include "base/fd.h"
#include "base/memory.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

int cluster_make_folder(const char *path, struct error *err)
{
    CLEANUP(memory_freep) char *part = memory_strdup(path);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(part, 0777); /* the last one tells */
        *slash = '/';
    }
    if (mkdir(path, 0777) < 0 && errno != EEXIST)
        return error_errno(err, -errno, "creating the directory %s", path);
    return 0;
}

/* ---- T.task ---- */

const char *const task_mode_words[] = {
    [TASK_ALL] = "all", [TASK_WAIVED] = "waived", [TASK_PROFILES] = "profiles"};

void task_plan_done(struct task_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        free(plan->units[i].cells);
    free(plan->units);
    free(plan->uuid);
    *plan = (struct task_plan){0};
}

static bool take_number(const char **text, uint64_t most, uint64_t *ret)
{
    uint64_t value = 0;
    const char *p = *text;
    if (!isdigit((unsigned char)*p))
        return false;
    for (; isdigit((unsigned char)*p); p++) {
        value = value * 10 + (uint64_t)(*p - '0');
        if (value > most)
            return false;
    }
    *text = p;
    *ret = value;
    return true;
}

/* "ROUND CELLS"; the text stands behind it afterwards. */
static bool take_unit(struct task_unit *u, const char **text, size_t cell_count)
{
    const char *p = *text;
    if (!take_number(&p, UINT32_MAX, &u->round) || *p++ != ' ')
        return false;
    do {
        uint64_t first, last;
        if (!take_number(&p, cell_count, &first) || first == 0)
            return false;
        last = first;
        if (*p == '-' && (p++, !take_number(&p, cell_count, &last)))
            return false;
        for (; first <= last; first++)
            ARRAY_PUSH(u->cells, u->count, u->capacity) = (size_t)first - 1;
    } while (*p == ',' && p++);
    *text = p;
    return *p == '\n' && u->count > 0;
}

/* The rest of the line; the text stands at its end afterwards. */
static bool take_mode(struct task_plan *plan, const char **text)
{
    size_t length = strcspn(*text, "\n");
    for (size_t i = 0; i < ARRAY_COUNT(task_mode_words); i++)
        if (strlen(task_mode_words[i]) == length &&
            memcmp(*text, task_mode_words[i], length) == 0) {
            plan->mode = (enum task_mode)i;
            *text += length;
            return **text == '\n';
        }
    return false;
}

int task_plan_parse(struct task_plan *plan, const char *file, const char *text, size_t cell_count,
                    struct error *err)
{
    *plan = (struct task_plan){0};
    size_t line = 2;
    const char *p = text;
    if (!str_has_prefix(p, TASK_FIRST_LINE))
        return error_set(err, -EINVAL, "%s: not a task file of this version of assay", file);
    p += strlen(TASK_FIRST_LINE);
    size_t length = strspn(p, "0123456789abcdef-");
    bool good = length == 36 && p[36] == ' ';
    if (good) {
        plan->uuid = memory_strndup(p, 36);
        p += 37;
        good = take_mode(plan, &p);
    }
    while (good && *++p) {
        line++;
        struct task_unit *u = &ARRAY_PUSH(plan->units, plan->count, plan->capacity);
        *u = (struct task_unit){0};
        good = take_unit(u, &p, cell_count);
    }
    if (good && plan->count)
        return 0;
    task_plan_done(plan);
    return error_set(err, -EINVAL, "%s:%zu: not a line of a task for this spec", file, line);
}

/* ---- T.end ---- */

static const char *const end_words[] = {[TASK_DONE] = "done",
                                        [TASK_STOPPED] = "stopped",
                                        [TASK_FAILED] = "failed",
                                        [TASK_UNFIT] = "unfit",
                                        [TASK_UNCOUNTED] = "uncounted"};

int task_end_write(const char *path, enum task_end end, const char *node, const char *words,
                   struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    strbuf_printf(&text, "%s %s\n%s", end_words[end], node, words ? words : "");
    return file_write(path, text.data, text.length, err);
}

int task_end_read(const char *path, enum task_end *ret_end, char *ret_node, char *ret_words,
                  struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    int r = file_read(path, &text, err);
    if (r < 0)
        return r;
    char word[16] = "", node[TASK_NODE_BYTES] = "";
    if (sscanf(strbuf_text(&text), "%15s %63s", word, node) < 1)
        return error_set(err, -EINVAL, "%s is empty", path);
    size_t i = 0;
    while (i < ARRAY_COUNT(end_words) && !str_eq(end_words[i], word))
        i++;
    if (i == ARRAY_COUNT(end_words))
        return error_set(err, -EINVAL, "%s: '%s' is not the end of a task", path, word);
    const char *line = strchr(strbuf_text(&text), '\n');
    *ret_end = (enum task_end)i;
    snprintf(ret_node, TASK_NODE_BYTES, "%s", node);
    snprintf(ret_words, TASK_WORDS_BYTES, "%s", line ? line + 1 : "");
    return 0;
}
