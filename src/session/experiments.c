/* SPDX-License-Identifier: MIT */
/* The experiments and programs that come with assay: see experiments.h. */
#include "session/experiments.h"

#include "base/memory.h"
#include "base/strings.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUILD_TREE "/src/cmd" /* where a build folder has assay */

/* The folder of the running program; false when /proc does not tell. */
static bool own_folder(char folder[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    if (length <= 0)
        return false;
    folder[length] = '\0';
    char *slash = strrchr(folder, '/');
    if (!slash)
        return false;
    *slash = '\0';
    return true;
}

static bool is_build_tree(const char *folder)
{
    return str_has_suffix(folder, BUILD_TREE);
}

/* A folder named from the program's own, in its shortest form; NULL when it is not there. */
static char *beside(const char *folder, const char *relative)
{
    CLEANUP(memory_freep) char *path = memory_printf("%s/%s", folder, relative);
    return realpath(path, NULL);
}

char *experiments_folder(void)
{
    char own[PATH_MAX];
    if (!own_folder(own))
        return NULL;
    return beside(own, is_build_tree(own) ? "../../../experiments" : "../share/assay/experiments");
}

static int is_spec(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && str_has_suffix(entry->d_name, ".yaml");
}

int experiments_names(char ***ret_names, size_t *ret_count, struct error *err)
{
    CLEANUP(memory_freep) char *folder = experiments_folder();
    struct dirent **entries = NULL;
    int count = folder ? scandir(folder, &entries, is_spec, alphasort) : -1;
    if (count < 0)
        return error_set(err, -ENOENT,
                         "no experiments came with this assay; on Debian: apt install "
                         "assay-workloads");
    char **names = memory_zalloc((size_t)count + 1, sizeof(*names));
    for (int i = 0; i < count; i++) {
        names[i] = memory_strndup(entries[i]->d_name, strlen(entries[i]->d_name) - strlen(".yaml"));
        free(entries[i]);
    }
    free(entries);
    *ret_names = names;
    *ret_count = (size_t)count;
    return 0;
}

static int not_found(const char *word, struct error *err)
{
    char **names = NULL;
    size_t count = 0;
    int r = experiments_names(&names, &count, err);
    if (r < 0)
        return error_set(err, -ENOENT,
                         "there is no file '%s', and no experiments came with this assay "
                         "(on Debian: apt install assay-workloads)",
                         word);
    CLEANUP(strbuf_done) struct strbuf near = {0};
    bool has_near = str_nearest(word, (const char *const *)names, count, 3, &near);
    r = error_set(err, -ENOENT, "there is no file '%s' and no experiment of that name%s%s%s", word,
                  has_near ? "; did you mean " : "; 'assay run --list' shows them",
                  has_near ? strbuf_text(&near) : "", has_near ? "?" : "");
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return r;
}

int experiments_find(const char *word, char **ret_path, struct error *err)
{
    if (strchr(word, '/') || str_has_suffix(word, ".yaml") || access(word, F_OK) == 0) {
        *ret_path = memory_strdup(word);
        return 0;
    }
    CLEANUP(memory_freep) char *folder = experiments_folder();
    CLEANUP(memory_freep)
    char *path = folder ? memory_printf("%s/%s.yaml", folder, word) : NULL;
    if (!path || access(path, F_OK) < 0)
        return not_found(word, err);
    *ret_path = memory_strdup(path);
    return 0;
}

static void add_folder(struct strbuf *path, const char *own, const char *relative)
{
    CLEANUP(memory_freep) char *folder = beside(own, relative);
    if (folder)
        strbuf_printf(path, "%s%s", path->length ? ":" : "", folder);
}

static bool is_own_experiment(const char *spec_folder)
{
    CLEANUP(memory_freep) char *own = experiments_folder();
    CLEANUP(memory_freep) char *given = realpath(spec_folder, NULL);
    return own && given && str_eq(own, given);
}

void experiments_find_programs(const char *spec_folder)
{
    static const char *const installed[] = {".", "../libexec/assay"};
    static const char *const built[] = {"../../workloads/demo", "../../workloads/move",
                                        "../../workloads/queue", "../../workloads/scale",
                                        "../../workloads/vr"};
    char own[PATH_MAX];
    CLEANUP(strbuf_done) struct strbuf folders = {0};
    if (!own_folder(own))
        return;
    if (is_build_tree(own))
        for (size_t i = 0; i < ARRAY_COUNT(built); i++)
            add_folder(&folders, own, built[i]);
    else
        for (size_t i = 0; i < ARRAY_COUNT(installed); i++)
            add_folder(&folders, own, installed[i]);
    const char *before = getenv("PATH");
    if (!folders.length || (before && strstr(before, strbuf_text(&folders))))
        return; /* assay was started by an assay that did this */
    bool first = is_own_experiment(spec_folder) || !before;
    CLEANUP(memory_freep)
    char *path = memory_printf("%s%s%s", first ? strbuf_text(&folders) : before, before ? ":" : "",
                               !before ? ""
                               : first ? before
                                       : strbuf_text(&folders));
    setenv("PATH", path, 1);
}
