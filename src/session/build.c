/* SPDX-License-Identifier: MIT */
/* See build.h.  The folder holds what the build made, its log and, when it is complete, a marker.
 */
#include "session/build.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/sha256.h"
#include "base/strings.h"
#include "run/command.h"
#include "spec/holes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define LOG_NAME "assay-build.log"
#define MARK_NAME "assay-build.done"
#define LOG_SHOWN_BYTES 600

static int hash_file(struct sha256 *h, const char *path, struct error *err)
{
    CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, -errno, "%s", path);
    char bytes[65536];
    ssize_t got;
    while ((got = read(fd, bytes, sizeof(bytes))) > 0)
        sha256_add(h, bytes, (size_t)got);
    return got < 0 ? error_errno(err, -errno, "%s", path) : 0;
}

/* The files that the patterns name, relative to the spec's folder. */
static int hash_inputs(struct sha256 *h, const struct spec *s, const struct spec_build *b,
                       const char *folder, struct error *err)
{
    for (size_t i = 0; b->inputs[i]; i++) {
        CLEANUP(memory_freep)
        char *pattern = b->inputs[i][0] == '/' ? memory_strdup(b->inputs[i])
                                               : memory_printf("%s/%s", folder, b->inputs[i]);
        glob_t found = {0};
        int code = glob(pattern, 0, NULL, &found);
        int r = code == 0 ? 0
                          : error_set(err, -ENOENT, "%s:%zu: build.inputs: no file matches %s",
                                      s->file, b->line, pattern);
        for (size_t k = 0; r == 0 && k < found.gl_pathc; k++) {
            struct stat st;
            if (stat(found.gl_pathv[k], &st) < 0 || !S_ISREG(st.st_mode))
                continue;
            sha256_add_text(h, found.gl_pathv[k]);
            r = hash_file(h, found.gl_pathv[k], err);
        }
        globfree(&found);
        if (r < 0)
            return r;
    }
    return 0;
}

/* A compiler that was updated makes something else. */
static void hash_program(struct sha256 *h, const char *name)
{
    CLEANUP(memory_freep) char *path = NULL;
    struct stat st;
    if (process_find(name, &path, NULL) < 0 || stat(path, &st) < 0)
        return;
    sha256_add_text(h, path);
    sha256_add(h, &st.st_size, sizeof(st.st_size));
    sha256_add(h, &st.st_mtim, sizeof(st.st_mtim));
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names and contents of everything in a folder, in order; links by their targets. */
static int hash_folder(struct sha256 *h, const char *folder, unsigned depth, struct error *err)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return error_errno(err, -errno, "%s", folder);
    char **names = NULL;
    size_t count = 0, capacity = 0;
    for (struct dirent *entry; (entry = readdir(dir));)
        if (!str_eq(entry->d_name, ".") && !str_eq(entry->d_name, "..") &&
            !str_eq(entry->d_name, LOG_NAME) && !str_eq(entry->d_name, MARK_NAME))
            ARRAY_PUSH(names, count, capacity) = memory_strdup(entry->d_name);
    closedir(dir);
    if (count)
        qsort(names, count, sizeof(*names), compare_names);
    int r = 0;
    for (size_t i = 0; i < count; i++) {
        CLEANUP(memory_freep) char *path = memory_printf("%s/%s", folder, names[i]);
        struct stat st;
        if (r == 0 && lstat(path, &st) == 0) {
            sha256_add_text(h, names[i]);
            if (S_ISDIR(st.st_mode) && depth < 32)
                r = hash_folder(h, path, depth + 1, err);
            else if (S_ISREG(st.st_mode))
                r = hash_file(h, path, err);
        }
        free(names[i]);
    }
    free(names);
    return r;
}

static int make_folders(const char *path, struct error *err)
{
    CLEANUP(memory_freep) char *copy = memory_strdup(path);
    for (char *slash = copy + 1;; slash++) {
        slash += strcspn(slash, "/");
        char end = *slash;
        *slash = '\0';
        if (mkdir(copy, 0777) < 0 && errno != EEXIST)
            return error_errno(err, -errno, "creating the directory %s", copy);
        if (!end)
            return 0;
        *slash = end;
    }
}

static int open_log(const char *folder, int *ret_fd, struct error *err)
{
    CLEANUP(memory_freep) char *path = memory_printf("%s/" LOG_NAME, folder);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return error_errno(err, -errno, "%s", path);
    *ret_fd = fd;
    return 0;
}

/* The end of what the build said, for the error. */
static void read_end(int fd, struct strbuf *out)
{
    char bytes[LOG_SHOWN_BYTES];
    off_t size = lseek(fd, 0, SEEK_END);
    off_t from = size > (off_t)sizeof(bytes) ? size - (off_t)sizeof(bytes) : 0;
    ssize_t got = pread(fd, bytes, sizeof(bytes), from);
    if (got > 0)
        strbuf_append(out, bytes, (size_t)got);
    while (out->length && out->data[out->length - 1] == '\n')
        out->data[--out->length] = '\0';
}

static int run_build(char **argv, const char *working_dir, const char *folder, struct error *err)
{
    CLEANUP(fd_closep) int log_fd = -1;
    int r = open_log(folder, &log_fd, err);
    if (r < 0)
        return r;
    struct process_spec spec = {.argv = argv,
                                .stdin_fd = -1,
                                .stdout_fd = log_fd,
                                .stderr_fd = log_fd,
                                .working_dir = working_dir};
    pid_t pid;
    struct process_result result;
    r = process_spawn(&spec, &pid, err);
    if (r == 0) {
        process_signals_target(pid);
        r = process_wait(pid, &result, err);
        process_signals_target(0);
    }
    if (r < 0 || result.status == 0)
        return r;
    CLEANUP(strbuf_done) struct strbuf end = {0};
    read_end(log_fd, &end);
    return error_set(err, -ECANCELED, "it exited with %d; its output:\n%s",
                     process_exit_code(result.status), strbuf_text(&end));
}

/* One thing to build. */
struct job {
    const struct spec *spec;
    const struct spec_build *build;
    size_t build_index;
    const struct spec_level *const *levels;
    const char *working_dir;
    const struct build_place *place;
    char **argv; /* with the folder filled in */
    char *folder;
};

static void job_done(struct job *j)
{
    command_free_words(j->argv);
    free(j->folder);
}

static struct hole_values values_of(const struct job *j, const char *folder)
{
    return (struct hole_values){
        .spec = j->spec, .levels = j->levels, .own_build = j->build_index, .build_folder = folder};
}

/* The folder's name: what is built, from what, by what. */
static int name_job(struct job *j, const char *root, struct error *err)
{
    struct sha256 h;
    char hex[65];
    char **plain = NULL;
    struct hole_values values = values_of(j, "{build}");
    int r = holes_command(&j->build->command, &values, &plain, err);
    if (r < 0)
        return r;
    sha256_start(&h);
    sha256_add_text(&h, "assay build 1");
    for (size_t i = 0; plain[i]; i++)
        sha256_add_text(&h, plain[i]);
    hash_program(&h, plain[0]);
    if (j->working_dir != j->spec->folder)
        sha256_add_text(&h, j->working_dir);
    command_free_words(plain);
    if (j->build->inputs)
        r = hash_inputs(&h, j->spec, j->build, j->working_dir, err);
    if (r < 0)
        return r;
    sha256_end(&h, hex);
    j->folder = memory_printf("%s/%.20s", root, hex);
    values = values_of(j, j->folder);
    return holes_command(&j->build->command, &values, &j->argv, err);
}

static int make_job(const struct job *j, bool *ret_cached, struct error *err)
{
    CLEANUP(memory_freep) char *lock_path = memory_printf("%s.lock", j->folder);
    CLEANUP(memory_freep) char *mark = memory_printf("%s/" MARK_NAME, j->folder);
    CLEANUP(fd_closep) int lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock < 0)
        return error_errno(err, -errno, "%s", lock_path);
    while (flock(lock, LOCK_EX) < 0)
        if (errno != EINTR)
            return error_errno(err, -errno, "locking %s", lock_path);
    *ret_cached = (j->build->inputs || j->place) && access(mark, F_OK) == 0;
    if (*ret_cached)
        return 0;
    unlink(mark);
    int r = make_folders(j->folder, err);
    if (r == 0)
        r = run_build(j->argv, j->working_dir, j->folder, err);
    if (r < 0) {
        CLEANUP(strbuf_done) struct strbuf text = {0};
        strbuf_put_command(&text, j->argv);
        return error_wrap(err, r, "%s:%zu: building with %s", j->spec->file, j->build->line,
                          strbuf_text(&text));
    }
    return file_write(mark, "", 0, err);
}

static int add_built(struct builds *b, const struct job *j, size_t *ret_index, struct error *err)
{
    for (size_t i = 0; i < b->count; i++)
        if (str_eq(b->items[i].folder, j->folder)) {
            *ret_index = i;
            return 0;
        }
    struct built built = {0};
    if (j->place && j->place->only_named) {
        const char *name = strrchr(j->folder, '/');
        *ret_index = b->count;
        ARRAY_PUSH(b->items, b->count, b->capacity) =
            (struct built){.folder = memory_strdup(j->folder), .id = memory_strdup(name + 1)};
        return 0;
    }
    int r = make_job(j, &built.was_cached, err);
    if (r < 0)
        return r;
    struct sha256 h;
    char hex[65];
    sha256_start(&h);
    r = hash_folder(&h, j->folder, 0, err);
    if (r < 0)
        return r;
    sha256_end(&h, hex);
    built.folder = memory_strdup(j->folder);
    built.id = memory_strndup(hex, 20);
    *ret_index = b->count;
    ARRAY_PUSH(b->items, b->count, b->capacity) = built;
    return 0;
}

/* Beside the spec; in the user's cache for one that is installed where he may not write. */
static char *root_for(const char *folder)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (access(folder, W_OK) == 0 || ((!cache || !*cache) && !home))
        return memory_printf("%s/.assay/build", folder);
    return cache && *cache ? memory_printf("%s/assay/build", cache)
                           : memory_printf("%s/.cache/assay/build", home);
}

static int open_root(const struct spec *s, const struct build_place *place, bool lasting,
                     char **ret_root, struct error *err)
{
    char absolute[PATH_MAX];
    if (place && place->only_named) {
        *ret_root = memory_strdup("{build}");
        return 0;
    }
    if (place) {
        *ret_root = memory_strdup(lasting ? place->lasting : place->own);
        return make_folders(*ret_root, err);
    }
    if (!realpath(s->folder, absolute))
        return error_errno(err, -errno, "%s", s->folder);
    char *root = root_for(absolute);
    int r = make_folders(root, err);
    if (r < 0)
        free(root);
    else
        *ret_root = root;
    return r;
}

/* Whether the cell's build is the same as an earlier cell's: it uses the same factors' values. */
static size_t same_build(const struct builds *b, const struct matrix *m, const bool *kept,
                         const bool *used, size_t cell, size_t build)
{
    for (size_t c = 0; c < cell; c++) {
        bool same = kept[c];
        for (size_t f = 0; same && f < m->spec->factor_count; f++)
            same = !used[f] || m->cells[c].levels[f] == m->cells[cell].levels[f];
        same = same && spec_folder(m->spec, m->cells[c].levels) ==
                           spec_folder(m->spec, m->cells[cell].levels);
        if (same)
            return b->of_cell[c * b->build_count + build];
    }
    return (size_t)-1;
}

static void factors_used(const struct spec *s, const struct spec_command *c, bool *used)
{
    if (c->text)
        holes_factors(s, c->text, used);
    for (size_t i = 0; c->words && c->words[i]; i++)
        holes_factors(s, c->words[i], used);
}

int builds_make(struct builds *b, const struct matrix *m, const bool *kept,
                const struct build_place *place,
                void (*on_build)(const char *command, size_t done, size_t total, void *context),
                void *context, struct error *err)
{
    const struct spec *s = m->spec;
    *b = (struct builds){.build_count = s->build_count};
    if (!s->build_count)
        return 0;
    int r = 0;
    b->of_cell = memory_zalloc(m->count * s->build_count, sizeof(*b->of_cell));
    for (size_t k = 0; r == 0 && k < s->build_count; k++) {
        bool used[SPEC_FACTORS_MAX] = {false};
        CLEANUP(memory_freep) char *root = NULL;
        r = open_root(s, place, s->builds[k].inputs, &root, err);
        factors_used(s, &s->builds[k].command, used);
        for (size_t c = 0; r == 0 && c < m->count; c++) {
            size_t *index = &b->of_cell[c * s->build_count + k];
            if (!kept[c] || (*index = same_build(b, m, kept, used, c, k)) != (size_t)-1)
                continue;
            struct job job = {.working_dir = spec_folder(s, m->cells[c].levels),
                              .spec = s,
                              .build = &s->builds[k],
                              .place = place,
                              .build_index = k,
                              .levels = m->cells[c].levels};
            r = name_job(&job, root, err);
            CLEANUP(strbuf_done) struct strbuf text = {0};
            if (r == 0 && on_build && !(place && place->only_named)) {
                strbuf_put_command(&text, job.argv);
                on_build(strbuf_text(&text), b->count, 0, context);
            }
            if (r == 0)
                r = add_built(b, &job, index, err);
            job_done(&job);
            if (r == 0 && process_signals_caught())
                r = error_set(err, -EINTR, "interrupted while building");
        }
    }
    if (r < 0)
        builds_done(b);
    return r;
}

void builds_done(struct builds *b)
{
    for (size_t i = 0; i < b->count; i++) {
        free(b->items[i].folder);
        free(b->items[i].id);
    }
    free(b->items);
    free(b->of_cell);
    *b = (struct builds){0};
}

const char **builds_folders(const struct builds *b, size_t cell)
{
    if (!b->build_count)
        return NULL;
    const char **folders = memory_zalloc(b->build_count, sizeof(*folders));
    for (size_t k = 0; k < b->build_count; k++)
        folders[k] = b->items[b->of_cell[cell * b->build_count + k]].folder;
    return folders;
}

char *builds_identity(const struct builds *b, size_t cell, const char *program, const char *folder)
{
    struct strbuf id = {0};
    for (size_t k = 0; k < b->build_count; k++)
        strbuf_printf(&id, "%s%s", k ? "+" : "",
                      b->items[b->of_cell[cell * b->build_count + k]].id);
    if (id.data)
        return id.data;
    CLEANUP(memory_freep) char *path = NULL;
    if (strchr(program, '/'))
        path = program[0] == '/' ? memory_strdup(program) : memory_printf("%s/%s", folder, program);
    else if (process_find(program, &path, NULL) < 0)
        return NULL;
    struct sha256 h;
    char hex[65];
    sha256_start(&h);
    if (hash_file(&h, path, NULL) < 0)
        return NULL;
    sha256_end(&h, hex);
    return memory_strndup(hex, 20);
}
