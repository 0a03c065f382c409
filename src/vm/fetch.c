/* SPDX-License-Identifier: MIT */
/* See fetch.h. */
#include "vm/fetch.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "vm/kernels.h"
#include "vm/tool.h"
#include "vm/unpack.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#define MIRROR "http://deb.debian.org/debian"
#define KEYRING "/usr/share/keyrings/debian-archive-keyring.gpg"

/* A private apt. */
struct apt {
    const struct vm_fetch *how;
    char *folder;        /* of its state */
    char *variable;      /* APT_CONFIG=… */
    struct strbuf wrong; /* its first complaint */
};

static void say(const struct vm_fetch *f, const char *what)
{
    if (f->progress)
        f->progress(f->context, what);
}

static int make_folders(const char *path, struct error *err)
{
    CLEANUP(memory_freep) char *copy = memory_strdup(path);
    for (char *at = copy + 1;; at++) {
        char end = *at;
        if (end && end != '/')
            continue;
        *at = '\0';
        if (mkdir(copy, 0777) < 0 && errno != EEXIST)
            return error_errno(err, -errno, "the cache directory %s", copy);
        *at = end;
        if (!end)
            return 0;
    }
}

/* A folder below the apt's own. */
static int apt_folder(const struct apt *a, const char *below, struct error *err)
{
    CLEANUP(memory_freep) char *path = memory_printf("%s/%s", a->folder, below);
    return make_folders(path, err);
}

/* How the host downloads (proxies, certificates), but not which indexes and languages. */
static bool is_taken_over(const char *line)
{
    return str_has_prefix(line, "Acquire::") && !str_has_prefix(line, "Acquire::IndexTargets") &&
           !str_has_prefix(line, "Acquire::Languages");
}

static void take_setting(void *context, const char *line)
{
    if (is_taken_over(line))
        strbuf_printf(context, "%s\n", line);
}

/* The host's lists of sources, and one more for the suite that was asked for. */
static int write_sources(const struct apt *a, struct error *err)
{
    CLEANUP(memory_freep) char *folder = memory_printf("%s/sources", a->folder);
    file_remove_tree(folder);
    int r = make_folders(folder, err);
    DIR *dir = r < 0 ? NULL : opendir("/etc/apt/sources.list.d");
    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (!str_has_suffix(e->d_name, ".list") && !str_has_suffix(e->d_name, ".sources"))
            continue;
        CLEANUP(memory_freep) char *from = memory_printf("/etc/apt/sources.list.d/%s", e->d_name);
        CLEANUP(memory_freep) char *to = memory_printf("%s/%s", folder, e->d_name);
        if (symlink(from, to) < 0)
            r = error_errno(err, -errno, "%s", to);
    }
    if (dir)
        closedir(dir);
    if (r < 0 || !a->how->suite)
        return r;
    CLEANUP(memory_freep) char *path = memory_printf("%s/assay.list", folder);
    CLEANUP(memory_freep)
    char *line = memory_printf("deb [signed-by=" KEYRING "] %s %s main\n",
                               a->how->mirror ? a->how->mirror : MIRROR, a->how->suite);
    return file_write(path, line, strlen(line), err);
}

static int write_settings(struct apt *a, const struct vm_arch *arch, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    const char *const dump[] = {"apt-config", "dump", NULL};
    struct vm_tool tool = {.argv = dump, .on_line = take_setting, .context = &text};
    int r = vm_tool_run(&tool, err);
    if (r < 0)
        return error_wrap(err, r, "kernels come from Debian's packages");
    strbuf_printf(&text,
                  "APT::Architecture \"%s\";\nAPT::Architectures \"%s\";\n"
                  "APT::Sandbox::User \"root\";\n" /* no other can write to the cache folder */
                  "Acquire::Languages \"none\";\nAcquire::Retries \"3\";\n"
                  "Acquire::http::Timeout \"30\";\nAcquire::https::Timeout \"30\";\n"
                  "Dir::Cache \"%s/cache\";\nDir::State \"%s/state\";\n"
                  "Dir::State::status \"%s/state/status\";\n"
                  "Dir::Etc::sourceparts \"%s/sources\";\n"
                  /* The host's own settings would bring its hooks with them. */
                  "Dir::Etc::main \"/dev/null\";\nDir::Etc::parts \"/dev/null\";\n",
                  arch->debian, arch->debian, a->folder, a->folder, a->folder, a->folder);
    if (a->how->suite) /* its packages, also where apt would prefer the release's own */
        strbuf_printf(&text, "APT::Default-Release \"%s\";\n", a->how->suite);
    CLEANUP(memory_freep) char *path = memory_printf("%s/apt.conf", a->folder);
    CLEANUP(memory_freep) char *status = memory_printf("%s/state/status", a->folder);
    a->variable = memory_printf("APT_CONFIG=%s", path);
    r = file_write(path, strbuf_text(&text), text.length, err);
    return r < 0 ? r : file_write(status, "", 0, err);
}

static int apt_open(struct apt *a, const struct vm_fetch *how, const struct vm_arch *arch,
                    struct error *err)
{
    CLEANUP(memory_freep)
    char *name = memory_printf("apt-%s%s%s", arch->debian, how->suite ? "-" : "",
                               how->suite ? how->suite : "");
    *a = (struct apt){.how = how, .folder = vm_cache_path(name)};
    int r = apt_folder(a, "state/lists/partial", err);
    if (r == 0)
        r = apt_folder(a, "cache/archives/partial", err);
    if (r == 0)
        r = apt_folder(a, "downloads/partial", err);
    if (r == 0)
        r = write_sources(a, err);
    if (r == 0)
        r = write_settings(a, arch, err);
    return r;
}

static void apt_done(struct apt *a)
{
    free(a->folder);
    free(a->variable);
    strbuf_done(&a->wrong);
}

/* "dlstatus:1:42.7:Retrieving file 1 of 1 (…)" comes with APT::Status-Fd. */
static void hear(void *context, const char *line)
{
    struct apt *a = context;
    unsigned item;
    double percent;
    if (sscanf(line, "dlstatus:%u:%lf:", &item, &percent) == 2) {
        char text[64];
        snprintf(text, sizeof(text), "apt: %.0f %%", percent);
        say(a->how, text);
        return;
    }
    if (str_has_prefix(line, "Get:"))
        say(a->how, line);
    bool complains = str_has_prefix(line, "E:") || str_has_prefix(line, "W:");
    if (complains && !a->wrong.length)
        strbuf_puts(&a->wrong, line);
}

static int apt_run(struct apt *a, const char *const *argv, const char *folder,
                   struct strbuf *output, struct error *err)
{
    const char *const environment[] = {a->variable, "LC_ALL=C.UTF-8", NULL};
    struct vm_tool tool = {.argv = argv,
                           .environment = environment,
                           .folder = folder,
                           .on_line = hear,
                           .context = a,
                           .output = output};
    return vm_tool_run(&tool, err);
}

/* The text behind "KEY: " at the start of a line; NULL when there is none. */
static const char *field(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) == 0 && line[length] == ':')
            return line + length + 1 + strspn(line + length + 1, " ");
    }
    return NULL;
}

char *vm_fetch_concrete(const char *package, const char *shown)
{
    const char *depends = field(shown, "Depends"), *version = field(shown, "Version");
    size_t end = depends ? strcspn(depends, "\n") : 0;
    static const char start[] = "linux-image-";
    for (const char *at = depends; at && at < depends + end; at++) {
        if (strncmp(at, start, sizeof(start) - 1) != 0 ||
            !isdigit((unsigned char)at[sizeof(start) - 1]))
            continue;
        size_t name = strcspn(at, " ,\n");
        const char *exact = at + name;
        if (strncmp(exact, " (= ", 4) == 0)
            return memory_printf("%.*s=%.*s", (int)name, at, (int)strcspn(exact + 4, ")\n"),
                                 exact + 4);
    }
    if (!version)
        return NULL;
    return memory_printf("%.*s=%.*s", (int)strcspn(package, "="), package,
                         (int)strcspn(version, " \n"), version);
}

/* apt fails as a whole when one source of many fails; what counts is the package. */
static int update(struct apt *a, struct error *err)
{
    const char *const argv[] = {"apt-get", "-q", "update", NULL};
    say(a->how, "apt: reading the lists of packages");
    return apt_run(a, argv, NULL, NULL, err);
}

static int resolve(struct apt *a, const char *package, const struct vm_arch *arch,
                   char **ret_concrete, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf shown = {0};
    const char *const show[] = {"apt-cache", "show", "--no-all-versions", package, NULL};
    int r = update(a, err);
    if (r >= 0)
        r = apt_run(a, show, NULL, &shown, err);
    if (r < 0)
        return r;
    *ret_concrete = vm_fetch_concrete(package, strbuf_text(&shown));
    if (*ret_concrete)
        return 0;
    return error_set(err, -ENOENT, "no package %s for %s in apt's sources%s%s%s", package,
                     arch->debian,
                     a->how->suite ? "" : " (to look in another release, use --suite)",
                     a->wrong.length ? "; apt printed: " : "", strbuf_text(&a->wrong));
}

/* The one .deb of a folder. */
static char *find_deb(const char *folder)
{
    DIR *dir = opendir(folder);
    char *found = NULL;
    for (struct dirent *e; dir && !found && (e = readdir(dir));)
        if (str_has_suffix(e->d_name, ".deb"))
            found = memory_printf("%s/%s", folder, e->d_name);
    if (dir)
        closedir(dir);
    return found;
}

static int download(struct apt *a, const char *concrete, char **ret_deb, struct error *err)
{
    CLEANUP(memory_freep) char *folder = memory_printf("%s/downloads", a->folder);
    const char *const argv[] = {"apt-get",  "-q",     "-o", "APT::Status-Fd=1",
                                "download", concrete, NULL};
    CLEANUP(memory_freep) char *what = memory_printf("fetching %s", concrete);
    char *old;
    while ((old = find_deb(folder))) { /* of an unpacking that was stopped */
        unlink(old);
        free(old);
    }
    say(a->how, what);
    strbuf_clear(&a->wrong);
    int r = apt_run(a, argv, folder, NULL, err);
    if (r < 0)
        return r;
    *ret_deb = find_deb(folder);
    return *ret_deb ? 0
                    : error_set(err, -ENONET,
                                "%s could not be downloaded; apt printed: %s; run the same command "
                                "again to resume",
                                concrete, a->wrong.length ? strbuf_text(&a->wrong) : "nothing");
}

/* linux-image-6.1.0-54-arm64_6.1.190-1_arm64.deb -> linux-image-6.1.0-54-arm64_6.1.190-1 */
static char *name_of_deb(const char *deb)
{
    const char *base = strrchr(deb, '/') ? strrchr(deb, '/') + 1 : deb;
    size_t length = strlen(base) - strlen(".deb");
    for (size_t i = length; i-- > 0;)
        if (base[i] == '_') {
            length = i;
            break;
        }
    char *name = memory_strndup(base, length);
    char *colon = strstr(name, "%3a"); /* an epoch */
    if (colon) {
        *colon = ':';
        memmove(colon + 1, colon + 3, strlen(colon + 3) + 1);
    }
    return name;
}

/* The name appears only with everything behind it. */
static int keep(const struct vm_arch *arch, const char *kernels, const char *deb,
                const char *package, char **ret_name, struct error *err)
{
    CLEANUP(memory_freep) char *name = name_of_deb(deb);
    CLEANUP(memory_freep) char *scratch = memory_printf("%s/fetching-XXXXXX", kernels);
    CLEANUP(memory_freep) char *final = memory_printf("%s/%s", kernels, name);
    if (!mkdtemp(scratch))
        return error_errno(err, -errno, "%s", scratch);
    chmod(scratch, 0755);
    int r = vm_unpack(arch, deb, scratch, err);
    if (r == 0) {
        file_remove_tree(final);
        if (rename(scratch, final) < 0)
            r = error_errno(err, -errno, "%s", final);
    }
    if (r < 0) {
        file_remove_tree(scratch);
        return r;
    }
    if (package && !str_eq(package, name)) {
        CLEANUP(memory_freep) char *link = memory_printf("%s/%s", kernels, package);
        CLEANUP(memory_freep) char *new = memory_printf("%s/fetching-link", kernels);
        unlink(new);
        if (symlink(name, new) < 0 || rename(new, link) < 0)
            return error_errno(err, -errno, "%s", link);
    }
    *ret_name = memory_strdup(name);
    return 0;
}

/* Folders of a fetch that was killed. */
static void clear_left_overs(const char *kernels)
{
    DIR *dir = opendir(kernels);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (str_has_prefix(e->d_name, "fetching-")) {
            CLEANUP(memory_freep) char *path = memory_printf("%s/%s", kernels, e->d_name);
            file_remove_tree(path);
        }
    if (dir)
        closedir(dir);
}

static int fetch_package(const struct vm_fetch *f, const struct vm_arch *arch, const char *kernels,
                         const char *package, const char *called, char **ret_name,
                         struct error *err)
{
    struct apt apt;
    CLEANUP(memory_freep) char *concrete = NULL, *deb = NULL;
    int r = apt_open(&apt, f, arch, err);
    if (r == 0)
        r = resolve(&apt, package, arch, &concrete, err);
    if (r == 0)
        r = download(&apt, concrete, &deb, err);
    if (r == 0) {
        say(f, "unpacking");
        r = keep(arch, kernels, deb, called, ret_name, err);
        unlink(deb);
    }
    apt_done(&apt);
    return r;
}

/* Two fetches at once would write the same folders. */
static int take_lock(const struct vm_fetch *f, const char *path, int *ret_fd, struct error *err)
{
    *ret_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (*ret_fd < 0)
        return error_errno(err, -errno, "%s", path);
    while (flock(*ret_fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return error_errno(err, -errno, "%s", path);
        say(f, "waiting for another fetch");
        if (process_signals_caught())
            return error_set(err, -EINTR, "interrupted");
        usleep(100 * 1000);
    }
    return 0;
}

static bool is_package_name(const char *word)
{
    return *word && *word != '-' &&
           !word[strspn(word, "abcdefghijklmnopqrstuvwxyz"
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "0123456789.+-=~:")];
}

/* A name that is the newest of a release is another kernel in another release. */
static char *name_in_cache(const struct vm_fetch *f, const char *package)
{
    return f->suite ? memory_printf("%s@%s", package, f->suite) : memory_strdup(package);
}

int vm_fetch(const struct vm_fetch *f, const char *package, char **ret_name, struct error *err)
{
    bool is_file = str_has_suffix(package, ".deb");
    const char *base = strrchr(package, '/') ? strrchr(package, '/') + 1 : package;
    const struct vm_arch *arch = f->arch ? f->arch : vm_arch_of_package(is_file ? base : package);
    if (!is_file && !is_package_name(package))
        return error_set(err, -EINVAL, "'%s' is not the name of a Debian package", package);
    if (!arch)
        return error_set(err, -EINVAL,
                         "'%s' does not end in -arm64 or -amd64: give its architecture with --arch",
                         package);
    CLEANUP(memory_freep) char *kernels = vm_cache_path("kernels");
    CLEANUP(memory_freep) char *lock = vm_cache_path("lock");
    CLEANUP(fd_closep) int lock_fd = -1;
    if (!kernels)
        return error_set(err, -ENOENT,
                         "no cache directory: neither XDG_CACHE_HOME nor HOME is set");
    int r = make_folders(kernels, err);
    if (r == 0)
        r = take_lock(f, lock, &lock_fd, err);
    if (r < 0)
        return r;
    struct vm_kernel there;
    CLEANUP(memory_freep) char *called = name_in_cache(f, package);
    char *version = strchr(called, '='); /* the name of that very version, whatever the release */
    if (version)
        *version = '_';
    if (!is_file && !f->refresh && vm_kernel_find(&there, called, &(struct error){0}) == 0) {
        *ret_name = memory_strdup(there.name);
        vm_kernel_done(&there);
        return 0;
    }
    clear_left_overs(kernels);
    return is_file ? keep(arch, kernels, package, NULL, ret_name, err)
                   : fetch_package(f, arch, kernels, package, called, ret_name, err);
}

/* ---- what there is ---- */

static bool is_wanted(const char *name, char *const *patterns)
{
    if (str_has_suffix(name, "-dbg") || str_has_suffix(name, "-unsigned") ||
        str_has_suffix(name, "-signed-template"))
        return false;
    for (size_t i = 0; patterns[i]; i++)
        if (fnmatch(patterns[i], name, 0) == 0)
            return true;
    return !patterns[0];
}

static int compare_names(const void *a, const void *b)
{
    return strverscmp(*(const char *const *)a, *(const char *const *)b);
}

/* " linux-image-arm64 | 6.1.190-1 | http://… bookworm/main arm64 Packages" */
static void put_offer(struct strbuf *out, char *line)
{
    char *save = NULL, *name = strtok_r(line, " |", &save), *version = strtok_r(NULL, " |", &save);
    char *place = strtok_r(NULL, " |", &save), *suite = strtok_r(NULL, " |", &save);
    if (name && version && place && suite)
        strbuf_printf(out, "%-44s %-28s %s\n", name, version, suite);
}

static int put_offers(struct apt *a, char *const *patterns, struct strbuf *out, struct error *err)
{
    const char *const all[] = {"apt-cache", "pkgnames", "linux-image-", NULL};
    CLEANUP(strbuf_done) struct strbuf names = {0}, offers = {0};
    const char **argv = NULL;
    size_t count = 0, capacity = 0;
    char *save = NULL;
    int r = apt_run(a, all, NULL, &names, err);
    ARRAY_PUSH(argv, count, capacity) = "apt-cache";
    ARRAY_PUSH(argv, count, capacity) = "madison";
    for (char *line = r < 0 || !names.length ? NULL : strtok_r(names.data, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save))
        if (str_has_prefix(line, "linux-image-") && is_wanted(line, patterns))
            ARRAY_PUSH(argv, count, capacity) = line;
    qsort(argv + 2, count - 2, sizeof(*argv), compare_names);
    ARRAY_PUSH(argv, count, capacity) = NULL;
    if (r >= 0 && count > 3)
        r = apt_run(a, argv, NULL, &offers, err);
    free(argv);
    save = NULL;
    for (char *line = r < 0 || !offers.length ? NULL : strtok_r(offers.data, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save))
        put_offer(out, line);
    if (r >= 0 && !out->length)
        r = error_set(err, -ENOENT, "no such kernel in apt's sources%s%s",
                      a->wrong.length ? "; apt printed: " : "", strbuf_text(&a->wrong));
    return r < 0 ? r : 0;
}

int vm_fetch_list(const struct vm_fetch *f, char *const *patterns, struct strbuf *out,
                  struct error *err)
{
    const struct vm_arch *arch = f->arch ? f->arch : vm_arch_find("aarch64");
    CLEANUP(memory_freep) char *lock = vm_cache_path("lock");
    CLEANUP(memory_freep) char *folder = vm_cache_path("");
    CLEANUP(fd_closep) int lock_fd = -1;
    if (!folder)
        return error_set(err, -ENOENT,
                         "no cache directory: neither XDG_CACHE_HOME nor HOME is set");
    int r = make_folders(folder, err);
    if (r == 0)
        r = take_lock(f, lock, &lock_fd, err);
    if (r < 0)
        return r;
    struct apt apt;
    r = apt_open(&apt, f, arch, err);
    if (r == 0)
        r = update(&apt, err);
    if (r >= 0)
        r = put_offers(&apt, patterns, out, err);
    apt_done(&apt);
    return r;
}
