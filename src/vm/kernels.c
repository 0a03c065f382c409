/* SPDX-License-Identifier: MIT */
/* See kernels.h. */
#include "vm/kernels.h"
#include "base/fd.h"
#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

char *vm_cache_path(const char *name)
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const char *slash = *name ? "/" : "";
    if (base && *base)
        return memory_printf("%s/assay/vm%s%s", base, slash, name);
    return home && *home ? memory_printf("%s/.cache/assay/vm%s%s", home, slash, name) : NULL;
}

static const struct vm_arch *arch_of_file(const char *path)
{
    char head[1024];
    CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : pread(fd, head, sizeof(head), 0);
    return got > 0 ? vm_arch_of_image(head, (size_t)got) : NULL;
}

/* QEMU expands an arm64 image that is compressed so. */
static bool is_gzip(const char *path)
{
    unsigned char head[2];
    CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && pread(fd, head, sizeof(head), 0) == sizeof(head) && head[0] == 0x1f &&
           head[1] == 0x8b;
}

/* modules/order has one name a line. */
static void read_modules(struct vm_kernel *k)
{
    CLEANUP(memory_freep) char *path = memory_printf("%s/modules/order", k->folder);
    CLEANUP(strbuf_done) struct strbuf text = {0};
    size_t capacity = 0;
    if (file_read(path, &text, NULL) < 0 || !text.length)
        return;
    char *save = NULL;
    for (char *line = strtok_r(text.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        ARRAY_PUSH(k->modules, k->module_count, capacity) =
            memory_printf("%s/modules/%s", k->folder, line);
}

static int find_image(struct vm_kernel *k, const char *path, struct error *err)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return error_errno(err, -errno, "the kernel %s", path);
    bool is_folder = S_ISDIR(st.st_mode);
    k->name = memory_strdup(path);
    k->image = is_folder ? memory_printf("%s/vmlinuz", path) : memory_strdup(path);
    if (access(k->image, R_OK) < 0)
        return error_errno(err, -errno, "the kernel %s", k->image);
    /* Beside an image of this layout stand its modules. */
    const char *slash = strrchr(k->image, '/');
    k->folder = slash ? memory_strndup(k->image, (size_t)(slash - k->image)) : memory_strdup(".");
    read_modules(k);
    k->arch = arch_of_file(k->image);
    if (!k->arch && !is_gzip(k->image))
        return error_set(err, -ENOEXEC,
                         "%s is not a kernel: it has neither the header of an arm64 Image nor that "
                         "of an x86_64 bzImage, and it is no ELF file",
                         k->image);
    return 0;
}

static int find_package(struct vm_kernel *k, const char *package, struct error *err)
{
    CLEANUP(memory_freep) char *below = memory_printf("kernels/%s", package);
    CLEANUP(memory_freep) char *path = vm_cache_path(below);
    char real[PATH_MAX];
    if (!path)
        return error_set(err, -ENOENT,
                         "no cache directory: neither XDG_CACHE_HOME nor HOME is set");
    if (!realpath(path, real))
        return error_set(err, -ENOENT,
                         "no kernel '%s' in the cache; 'assay vm fetch %s' gets it from Debian; a "
                         "path needs a slash, e.g. ./%s",
                         package, package, package);
    k->folder = memory_strdup(real);
    k->name = memory_strdup(strrchr(real, '/') + 1);
    k->image = memory_printf("%s/vmlinuz", real);
    if (access(k->image, R_OK) < 0)
        return error_errno(err, -errno, "%s", k->image);
    read_modules(k);
    k->arch = arch_of_file(k->image);
    if (!k->arch)
        k->arch = vm_arch_of_package(k->name);
    return 0;
}

int vm_kernel_find(struct vm_kernel *k, const char *word, struct error *err)
{
    *k = (struct vm_kernel){0};
    int r = strchr(word, '/') ? find_image(k, word, err) : find_package(k, word, err);
    if (r < 0)
        vm_kernel_done(k);
    return r;
}

void vm_kernel_done(struct vm_kernel *k)
{
    for (size_t i = 0; i < k->module_count; i++)
        free(k->modules[i]);
    free(k->modules);
    free(k->name);
    free(k->image);
    free(k->folder);
    *k = (struct vm_kernel){0};
}

static uint64_t folder_bytes(const char *path)
{
    uint64_t sum = 0;
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        struct stat st;
        if (e->d_name[0] == '.' || fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        CLEANUP(memory_freep) char *below = memory_printf("%s/%s", path, e->d_name);
        sum += S_ISDIR(st.st_mode) ? folder_bytes(below) : (uint64_t)st.st_size;
    }
    if (dir)
        closedir(dir);
    return sum;
}

static void add_entry(struct vm_kernel_list *list, const char *folder, const char *name)
{
    CLEANUP(memory_freep) char *path = memory_printf("%s/%s", folder, name);
    CLEANUP(memory_freep) char *image = memory_printf("%s/vmlinuz", path);
    struct stat st;
    if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || access(image, R_OK) < 0)
        return;
    ARRAY_PUSH(list->items, list->count, list->capacity) = (struct vm_kernel_entry){
        .package = memory_strdup(name),
        .names = memory_strdup(""),
        .arch = vm_arch_of_package(name),
        .size_bytes = folder_bytes(path),
        .fetched = st.st_mtime,
    };
}

static void add_name(struct vm_kernel_list *list, const char *folder, const char *name)
{
    CLEANUP(memory_freep) char *path = memory_printf("%s/%s", folder, name);
    char target[NAME_MAX + 1];
    ssize_t length = readlink(path, target, sizeof(target) - 1);
    if (length <= 0)
        return;
    target[length] = '\0';
    for (size_t i = 0; i < list->count; i++) {
        struct vm_kernel_entry *e = &list->items[i];
        if (!str_eq(e->package, target))
            continue;
        char *names = memory_printf("%s%s%s", e->names, *e->names ? " " : "", name);
        free(e->names);
        e->names = names;
    }
}

int vm_kernels_list(struct vm_kernel_list *list, struct error *err)
{
    *list = (struct vm_kernel_list){0};
    CLEANUP(memory_freep) char *folder = vm_cache_path("kernels");
    struct dirent **entries = NULL;
    int count = folder ? scandir(folder, &entries, NULL, alphasort) : 0;
    if (count < 0 && errno != ENOENT)
        return error_errno(err, -errno, "%s", folder);
    for (int i = 0; i < count; i++)
        if (entries[i]->d_name[0] != '.')
            add_entry(list, folder, entries[i]->d_name);
    for (int i = 0; i < count; i++) {
        add_name(list, folder, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return 0;
}

void vm_kernel_list_done(struct vm_kernel_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].package);
        free(list->items[i].names);
    }
    free(list->items);
    *list = (struct vm_kernel_list){0};
}
