/* SPDX-License-Identifier: MIT */
/* See walk.h. */
#include "harness/walk.h"
#include "base/memory.h"
#include "base/strings.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

enum { DEPTH_MAX = 16 };

static int is_below(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void free_list(struct dirent **list, int count)
{
    for (int i = 0; i < count; i++)
        free(list[i]);
    free(list);
}

static int walk_deep(const char *path, int depth,
                     int (*visit)(void *context, const char *directory, struct error *err),
                     void *context, struct error *err)
{
    struct dirent **list = NULL;
    int code = visit(context, path, err);
    if (code != 0 || depth >= DEPTH_MAX)
        return code;
    int count = scandir(path, &list, is_below, alphasort);
    if (count < 0)
        return error_errno(err, -errno, "%s", path);
    for (int i = 0; i < count && code == 0; i++) {
        CLEANUP(memory_freep) char *child = memory_printf("%s/%s", path, list[i]->d_name);
        struct stat status;
        if (lstat(child, &status) == 0 && S_ISDIR(status.st_mode))
            code = walk_deep(child, depth + 1, visit, context, err);
    }
    free_list(list, count);
    return code;
}

int walk(const char *path, int (*visit)(void *context, const char *directory, struct error *err),
         void *context, struct error *err)
{
    return walk_deep(path, 0, visit, context, err);
}

struct search {
    bool (*is_one)(const char *directory);
    bool found;
};

static int look(void *context, const char *directory, struct error *err)
{
    struct search *s = context;
    (void)err;
    s->found = s->is_one(directory);
    return s->found; /* ends the walk */
}

bool walk_has(const char *path, bool (*is_one)(const char *directory))
{
    struct search s = {.is_one = is_one};
    struct error ignored;
    walk(path, look, &s, &ignored);
    return s.found;
}
