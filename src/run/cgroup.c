/* SPDX-License-Identifier: MIT */
/* See cgroup.h. */
#include "run/cgroup.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether a comma-separated list has the word. */
static bool has_word(const char *list, size_t length, const char *word, size_t word_length)
{
    for (size_t at = 0; at < length;) {
        size_t end = at;
        while (end < length && list[end] != ',' && list[end] != ' ' && list[end] != '\n')
            end++;
        if (end - at == word_length && memcmp(list + at, word, word_length) == 0)
            return true;
        at = end + 1;
    }
    return false;
}

struct hierarchy {
    char mount[256];
    bool is_v2;
};

/* Lines as "31 23 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu". */
static bool find_hierarchy(const char *text, const char *controller, size_t length,
                           struct hierarchy *ret)
{
    bool found = false;
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
        char mount[256], type[32], options[256];
        const char *tail = strstr(line, " - ");
        if (!tail || tail > line + strcspn(line, "\n") ||
            sscanf(line, "%*s %*s %*s %*s %255s", mount) != 1 ||
            sscanf(tail, " - %31s %*s %255s", type, options) != 2)
            continue;
        bool is_v1 =
            str_eq(type, "cgroup") && has_word(options, strlen(options), controller, length);
        if (is_v1 || (!found && str_eq(type, "cgroup2"))) {
            snprintf(ret->mount, sizeof(ret->mount), "%s", mount);
            ret->is_v2 = !is_v1;
            found = true;
        }
        if (is_v1 || !line[strcspn(line, "\n")])
            break;
    }
    return found;
}

/* Lines as "1:cpu,cpuacct:/path"; version 2 has "0::/path". */
static char *own_path(const char *text, const struct hierarchy *h, const char *controller,
                      size_t length)
{
    for (const char *line = text; *line;) {
        size_t line_length = strcspn(line, "\n");
        const char *first = memchr(line, ':', line_length);
        const char *second =
            first ? memchr(first + 1, ':', line_length - (size_t)(first + 1 - line)) : NULL;
        if (second) {
            size_t list_length = (size_t)(second - first - 1);
            if (h->is_v2 ? list_length == 0 : has_word(first + 1, list_length, controller, length))
                return memory_printf("%.*s", (int)(line + line_length - second - 1), second + 1);
        }
        line += line_length + (line[line_length] == '\n');
    }
    return NULL;
}

static int write_setting(const char *folder, const char *name, const char *value, struct error *err)
{
    CLEANUP(memory_freep) char *path = memory_printf("%s/%s", folder, name);
    CLEANUP(fd_closep) int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, value, strlen(value)) < 0)
        return error_errno(err, -errno, "cgroup: writing %s to %s", value, path);
    return 0;
}

/* A new cpuset is empty, and nothing may enter it so. */
static int fill_cpuset(const char *parent, const char *folder, struct error *err)
{
    static const char *const names[] = {"cpuset.cpus", "cpuset.mems"};
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_COUNT(names); i++) {
        CLEANUP(memory_freep) char *path = memory_printf("%s/%s", parent, names[i]);
        CLEANUP(strbuf_done) struct strbuf text = {0};
        r = file_read(path, &text, err);
        if (r >= 0)
            r = write_setting(folder, names[i], strbuf_text(&text), err);
    }
    return r < 0 ? r : 0;
}

/* In version 2 each group on the way down must hand the controller on. */
static int hand_down(const char *mount, const char *folder, const char *controller, size_t length,
                     struct error *err)
{
    CLEANUP(memory_freep) char *list = memory_printf("%s/cgroup.controllers", folder);
    CLEANUP(memory_freep) char *word = memory_printf("+%.*s", (int)length, controller);
    CLEANUP(strbuf_done) struct strbuf text = {0};
    int r = file_read(list, &text, err);
    if (r < 0 || has_word(strbuf_text(&text), text.length, controller, length))
        return r < 0 ? r : 0;
    r = 0;
    for (size_t end = strlen(mount); r == 0 && folder[end] == '/';) {
        CLEANUP(memory_freep) char *group = memory_printf("%.*s", (int)end, folder);
        r = write_setting(group, "cgroup.subtree_control", word, err);
        end += 1 + strcspn(folder + end + 1, "/");
    }
    if (r < 0)
        r = error_set(err, r,
                      "cgroup: the controller '%.*s' is not available in %s; try as root, or under "
                      "systemd-run --scope -p Delegate=yes",
                      (int)length, controller, folder);
    return r;
}

static int make_group(struct cgroup_stays *stays, const struct hierarchy *h, const char *path,
                      const char *controller, size_t length, struct error *err)
{
    if (stays->count == CGROUP_STAYS_MAX)
        return error_set(err, -E2BIG, "cgroup: settings for more than %d controllers",
                         CGROUP_STAYS_MAX);
    /* In version 2 a group that holds processes has no groups with controllers below it: the new
     * one stands beside assay's, not in it. */
    size_t parent_length = strlen(path);
    while (h->is_v2 && parent_length > 0 && path[--parent_length] != '/')
        ;
    if (parent_length == 1)
        parent_length = 0; /* "/" */
    struct cgroup_stay *stay = &stays->items[stays->count];
    *stay = (struct cgroup_stay){
        .mount = memory_strdup(h->mount),
        .before = memory_printf("%s%s", h->mount, path),
        .folder = memory_printf("%s%.*s/assay-%d", h->mount, (int)parent_length, path, getpid())};
    stays->count++;
    if (mkdir(stay->folder, 0755) < 0) {
        int r = error_errno(err, -errno, "cgroup: creating %s", stay->folder);
        free(stay->folder);
        stay->folder = NULL;
        return r;
    }
    if (!h->is_v2 && length == strlen("cpuset") && memcmp(controller, "cpuset", length) == 0)
        return fill_cpuset(stay->before, stay->folder, err);
    return 0;
}

static struct cgroup_stay *find_stay(struct cgroup_stays *stays, const char *mount)
{
    for (size_t i = 0; i < stays->count; i++)
        if (str_eq(stays->items[i].mount, mount))
            return &stays->items[i];
    return NULL;
}

static int apply(struct cgroup_stays *stays, const char *mounts, const char *paths,
                 const struct text_pair *setting, struct error *err)
{
    size_t length = strcspn(setting->name, ".");
    struct hierarchy h;
    if (!setting->name[length] || strchr(setting->name, '/'))
        return error_set(err, -EINVAL, "cgroup: '%s' is not a setting such as memory.max",
                         setting->name);
    if (!find_hierarchy(mounts, setting->name, length, &h))
        return error_set(err, -ENOENT, "cgroup: no control groups are mounted here");
    if (!find_stay(stays, h.mount)) {
        CLEANUP(memory_freep) char *path = own_path(paths, &h, setting->name, length);
        if (!path)
            return error_set(err, -ENOENT, "cgroup: /proc/self/cgroup has no line for '%.*s'",
                             (int)length, setting->name);
        int r = make_group(stays, &h, path, setting->name, length, err);
        if (r < 0)
            return r;
    }
    struct cgroup_stay *stay = find_stay(stays, h.mount);
    int r = h.is_v2 ? hand_down(h.mount, stay->folder, setting->name, length, err) : 0;
    return r < 0 ? r : write_setting(stay->folder, setting->name, setting->value, err);
}

int cgroup_enter(struct cgroup_stays *stays, const struct text_pairs *settings, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf mounts = {0}, paths = {0};
    char pid[24];
    *stays = (struct cgroup_stays){0};
    snprintf(pid, sizeof(pid), "%d", getpid());
    int r = file_read("/proc/self/mountinfo", &mounts, err);
    if (r >= 0)
        r = file_read("/proc/self/cgroup", &paths, err);
    r = r < 0 ? r : 0;
    for (size_t i = 0; r == 0 && i < settings->count; i++)
        r = apply(stays, strbuf_text(&mounts), strbuf_text(&paths), &settings->items[i], err);
    for (size_t i = 0; r == 0 && i < stays->count; i++)
        r = write_setting(stays->items[i].folder, "cgroup.procs", pid, err);
    if (r < 0)
        cgroup_leave(stays);
    return r;
}

void cgroup_leave(struct cgroup_stays *stays)
{
    char pid[24];
    snprintf(pid, sizeof(pid), "%d", getpid());
    for (size_t i = 0; i < stays->count; i++) {
        struct cgroup_stay *stay = &stays->items[i];
        if (stay->folder) {
            write_setting(stay->before, "cgroup.procs", pid, NULL);
            rmdir(stay->folder);
        }
        free(stay->mount);
        free(stay->before);
        free(stay->folder);
    }
    *stays = (struct cgroup_stays){0};
}
