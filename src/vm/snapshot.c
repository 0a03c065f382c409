/* SPDX-License-Identifier: MIT */
/* See snapshot.h. */
#include "vm/snapshot.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "vm/machine_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#define HOLD_TIMEOUT_NS (120 * NS_PER_S)
#define SAVE_TIMEOUT_NS (60 * NS_PER_S)

/* ---- its name ---- */

/* FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/ */
static void mix(uint64_t *hash, const void *bytes, size_t length)
{
    const unsigned char *b = bytes;
    for (size_t i = 0; i < length; i++)
        *hash = (*hash ^ b[i]) * 0x100000001b3ULL;
}

static void mix_text(uint64_t *hash, const char *text)
{
    mix(hash, text, strlen(text) + 1);
}

/* A file is the same as long as its place, size and date are. */
static void mix_file(uint64_t *hash, const char *path)
{
    struct stat st = {0};
    mix_text(hash, path);
    if (stat(path, &st) < 0)
        return;
    mix(hash, &st.st_size, sizeof(st.st_size));
    mix(hash, &st.st_mtim, sizeof(st.st_mtim));
}

static char *name_of(const struct vm_settings *s)
{
    uint64_t hash = 0xcbf29ce484222325ULL;
    uint64_t bytes = s->memory_bytes ? s->memory_bytes : VM_MEMORY_BYTES;
    CLEANUP(memory_freep) char *emulator = NULL;
    process_find(s->arch->qemu, &emulator, NULL);
    mix_file(&hash, emulator ? emulator : "");
    mix_file(&hash, s->kernel->image);
    mix_file(&hash, s->guest);
    for (size_t i = 0; i < s->kernel->module_count; i++)
        mix_file(&hash, s->kernel->modules[i]);
    mix_text(&hash, s->append ? s->append : "");
    mix_text(&hash, VM_EXACT_WORDS);
    mix(&hash, &bytes, sizeof(bytes));
    const char *slash = strrchr(s->kernel->name, '/');
    return memory_printf("%.80s-%016llx", slash ? slash + 1 : s->kernel->name,
                         (unsigned long long)hash);
}

/* ---- the cache ---- */

static int open_cache(char **ret_path, struct error *err)
{
    char *path = vm_cache_path("snapshots");
    int r = path ? 0
                 : error_set(err, -ENOENT,
                             "no cache directory: neither XDG_CACHE_HOME nor HOME is set");
    for (char *at = path ? path + 1 : NULL; r == 0 && at && *at; at++)
        if (*at == '/') {
            *at = '\0';
            mkdir(path, 0777);
            *at = '/';
        }
    if (r == 0 && mkdir(path, 0777) < 0 && errno != EEXIST)
        r = error_errno(err, -errno, "the cache directory %s", path);
    if (r < 0) {
        free(path);
        path = NULL;
    }
    *ret_path = path;
    return r;
}

static uint64_t disk_bytes(const char *folder)
{
    uint64_t sum = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        struct stat st;
        if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
            sum += (uint64_t)st.st_blocks * 512;
    }
    if (dir)
        closedir(dir);
    return sum;
}

static int by_use(const void *a, const void *b)
{
    const struct vm_snapshot_entry *x = a, *y = b;
    return x->used != y->used ? (x->used < y->used ? 1 : -1) : strcmp(x->name, y->name);
}

/* The text behind a name in the lines of a file; the caller frees it. */
static char *read_about(const char *folder, const char *name)
{
    CLEANUP(memory_freep) char *path = memory_printf("%s/about", folder);
    CLEANUP(strbuf_done) struct strbuf text = {0};
    size_t length = strlen(name);
    if (file_read(path, &text, NULL) < 0)
        return memory_strdup("");
    for (const char *line = strbuf_text(&text); line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) == 0 && line[length] == ' ')
            return memory_strndup(line + length + 1, strcspn(line + length + 1, "\n"));
    }
    return memory_strdup("");
}

void vm_snapshots_list(struct vm_snapshot_list *list)
{
    *list = (struct vm_snapshot_list){0};
    CLEANUP(memory_freep) char *cache = vm_cache_path("snapshots");
    DIR *dir = cache ? opendir(cache) : NULL;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        CLEANUP(memory_freep) char *folder = memory_printf("%s/%s", cache, e->d_name);
        struct stat st;
        if (e->d_name[0] == '.' || stat(folder, &st) < 0 || !S_ISDIR(st.st_mode))
            continue;
        ARRAY_PUSH(list->items, list->count, list->capacity) =
            (struct vm_snapshot_entry){.name = memory_strdup(e->d_name),
                                       .kernel = read_about(folder, "kernel"),
                                       .size_bytes = disk_bytes(folder),
                                       .used = st.st_mtime};
    }
    if (dir)
        closedir(dir);
    if (list->count)
        qsort(list->items, list->count, sizeof(*list->items), by_use);
}

void vm_snapshot_list_done(struct vm_snapshot_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].name);
        free(list->items[i].kernel);
    }
    free(list->items);
    *list = (struct vm_snapshot_list){0};
}

/* Runs that map the memory of one that is removed keep it until they end. */
static void remove_old(const char *cache)
{
    CLEANUP(vm_snapshot_list_done) struct vm_snapshot_list list;
    vm_snapshots_list(&list);
    for (size_t i = SNAPSHOTS_MAX; i < list.count; i++) {
        CLEANUP(memory_freep) char *folder = memory_printf("%s/%s", cache, list.items[i].name);
        file_remove_tree(folder);
    }
}

/* ---- making one ---- */

static int await_saved(struct vm_machine *m, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf answer = {0};
    uint64_t deadline_ns = clock_now_ns() + SAVE_TIMEOUT_NS;
    for (;;) {
        int r = vm_monitor_ask(m, "{\"execute\":\"query-migrate\"}", &answer, err);
        if (r < 0)
            return r;
        if (strstr(strbuf_text(&answer), "\"completed\""))
            return 0;
        if (strstr(strbuf_text(&answer), "\"failed\"") || clock_now_ns() >= deadline_ns)
            return vm_machine_broken(m, -EIO, "could not be kept", err);
        struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
        nanosleep(&pause, NULL);
    }
}

/* It stops by itself when all is written, and the copy then goes on by itself: had it been stopped
 * before, so would the copy be.  QEMU hands it to a shell, which is told the file's name without
 * interpreting it. */
static int save_state(struct vm_machine *m, const char *path, struct error *err)
{
    if (strpbrk(path, "'\"\\"))
        return error_set(err, -EINVAL, "%s: a quote in the cache directory's name", path);
    CLEANUP(memory_freep)
    char *command = memory_printf("{\"execute\":\"migrate\",\"arguments\":{\"uri\":"
                                  "\"exec:cat > '%s'\"}}",
                                  path);
    int r = vm_monitor_open(m, err);
    if (r == 0)
        r = vm_monitor_ask(m, command, NULL, err);
    return r == 0 ? await_saved(m, err) : r;
}

static int keep(struct vm_machine *m, const struct vm_snapshot *s, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf symbols = {0};
    int r = vm_machine_await(m, err);
    if (r == 0)
        r = vm_machine_get(m, "/proc/kallsyms", &symbols, err);
    if (r == 0)
        r = file_write(s->symbols, strbuf_text(&symbols), symbols.length, err);
    if (r == 0)
        r = vm_machine_ask(m, "hold", HOLD_TIMEOUT_NS, err);
    return r == 0 ? save_state(m, s->state, err) : r;
}

static int boot_and_keep(const struct vm_settings *like, const struct vm_snapshot *s,
                         struct error *err)
{
    struct vm_settings settings = *like;
    struct vm_files none = {0};
    struct vm_machine m;
    settings.files = &none;
    settings.keeps = settings.is_exact = settings.shares_files = true;
    settings.memory_file = s->memory;
    settings.state_file = settings.plugin = NULL;
    settings.accel = VM_ACCEL_TCG;
    int r = vm_machine_start(&m, &settings, err);
    if (r < 0)
        return r;
    r = keep(&m, s, err);
    CLEANUP(memory_freep)
    char *about = memory_printf(
        "kernel %s\nrelease %s\nmemory %llu\n", like->kernel->name, m.release,
        (unsigned long long)(like->memory_bytes ? like->memory_bytes : VM_MEMORY_BYTES));
    CLEANUP(memory_freep) char *path = memory_printf("%s/about", s->folder);
    vm_machine_stop(&m);
    return r == 0 ? file_write(path, about, strlen(about), err) : r;
}

static void set_paths(struct vm_snapshot *s, char *folder)
{
    *s = (struct vm_snapshot){.folder = folder,
                              .memory = memory_printf("%s/memory", folder),
                              .state = memory_printf("%s/state", folder),
                              .symbols = memory_printf("%s/kallsyms", folder)};
}

void vm_snapshot_done(struct vm_snapshot *s)
{
    free(s->folder);
    free(s->memory);
    free(s->state);
    free(s->symbols);
    *s = (struct vm_snapshot){0};
}

static int has_modules(const struct vm_kernel *k, struct error *err)
{
    CLEANUP(memory_freep)
    char *config = k->folder ? memory_printf("%s/config", k->folder) : NULL;
    if (!config || access(config, R_OK) < 0) /* one of the user's, which may have all built in */
        return 0;
    for (size_t i = 0; i < k->module_count; i++)
        if (str_has_suffix(k->modules[i], "/9p.ko"))
            return 0;
    return error_set(
        err, -ENOENT,
        "the kernel %s was fetched without the modules for the host's files; 'assay vm "
        "fetch --refresh' gets it again",
        k->name);
}

static int make(const struct vm_settings *like, const char *cache, const char *final,
                struct error *err)
{
    CLEANUP(memory_freep) char *lock_path = memory_printf("%s/.lock", cache);
    CLEANUP(fd_closep) int lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock < 0)
        return error_errno(err, -errno, "%s", lock_path);
    while (flock(lock, LOCK_EX) < 0)
        if (errno != EINTR || process_signals_caught())
            return error_errno(err, -errno, "%s", lock_path);
    if (access(final, F_OK) == 0) /* another process has made it meanwhile */
        return 0;
    CLEANUP(vm_snapshot_done) struct vm_snapshot new;
    set_paths(&new, memory_printf("%s/.new", cache));
    file_remove_tree(new.folder);
    int r = mkdir(new.folder, 0777) < 0 ? error_errno(err, -errno, "%s", new.folder) : 0;
    if (r == 0)
        r = has_modules(like->kernel, err);
    if (r == 0)
        r = boot_and_keep(like, &new, err);
    if (r == 0 && rename(new.folder, final) < 0)
        r = error_errno(err, -errno, "%s", final);
    file_remove_tree(new.folder);
    if (r == 0)
        remove_old(cache);
    return r < 0 ? error_wrap(err, r, "preparing an emulated machine") : 0;
}

int vm_snapshot_find(struct vm_snapshot *s, const struct vm_settings *like, bool may_make,
                     struct error *err)
{
    CLEANUP(memory_freep) char *name = name_of(like);
    CLEANUP(memory_freep) char *cache = NULL;
    *s = (struct vm_snapshot){0};
    int r = open_cache(&cache, err);
    if (r < 0)
        return r;
    CLEANUP(memory_freep) char *folder = memory_printf("%s/%s", cache, name);
    bool is_there = access(folder, F_OK) == 0;
    if (!is_there && !may_make)
        return error_set(err, -ENOENT, "no machine is prepared; run 'assay vm prepare'");
    if (!is_there)
        r = make(like, cache, folder, err);
    if (r < 0)
        return r;
    utimensat(AT_FDCWD, folder, NULL, 0); /* used now */
    set_paths(s, memory_strdup(folder));
    CLEANUP(memory_freep) char *release = read_about(folder, "release");
    snprintf(s->release, sizeof(s->release), "%s", release);
    return 0;
}
