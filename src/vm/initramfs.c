/* SPDX-License-Identifier: MIT */
/* See initramfs.h. */
#include "vm/initramfs.h"
#include "base/fd.h"
#include "base/memory.h"
#include "vm/guest.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int vm_files_add(struct vm_files *files, const char *word, const char *folder, struct error *err)
{
    const char *colon = strrchr(word, ':');
    size_t length = colon ? (size_t)(colon - word) : strlen(word);
    CLEANUP(memory_freep) char *name = memory_strndup(word, length);
    CLEANUP(memory_freep)
    char *host =
        folder && name[0] != '/' ? memory_printf("%s/%s", folder, name) : memory_strdup(name);
    struct stat st;
    if (stat(host, &st) < 0)
        return error_errno(err, -errno, "a file for the machine, %s", host);
    if (!S_ISREG(st.st_mode))
        return error_set(err, -EINVAL,
                         "%s is not a regular file; add files to the machine one by one", host);
    char *guest =
        colon && colon[1] ? memory_strdup(colon + 1) : memory_printf("/bin/%s", base_name(name));
    ARRAY_PUSH(files->items, files->count, files->capacity) =
        (struct vm_file){.host = memory_strdup(host), .guest = guest};
    return 0;
}

int vm_files_add_program(struct vm_files *files, const struct vm_arch *arch, const char *path,
                         const char **ret_guest, struct error *err)
{
    int r = vm_arch_check_program(arch, path, err);
    if (r < 0)
        return r;
    /* Another program of that name gets a folder of its own. */
    size_t found = 0;
    for (unsigned turn = 1;; turn++) {
        CLEANUP(memory_freep)
        char *guest = turn == 1 ? memory_printf("/bin/%s", base_name(path))
                                : memory_printf("/bin/%u/%s", turn, base_name(path));
        found = 0;
        while (found < files->count && !str_eq(files->items[found].guest, guest))
            found++;
        if (found == files->count)
            ARRAY_PUSH(files->items, files->count, files->capacity) =
                (struct vm_file){.host = memory_strdup(path), .guest = memory_strdup(guest)};
        if (str_eq(files->items[found].host, path))
            break;
    }
    if (ret_guest)
        *ret_guest = files->items[found].guest;
    return 0;
}

bool vm_files_have(const struct vm_files *files, const char *guest)
{
    for (size_t i = 0; i < files->count; i++)
        if (str_eq(files->items[i].guest, guest))
            return true;
    return false;
}

void vm_files_done(struct vm_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        free(files->items[i].host);
        free(files->items[i].guest);
    }
    free(files->items);
    *files = (struct vm_files){0};
}

/* The named file when it is a fitting program; else NULL. */
static char *fitting(const struct vm_arch *arch, char *path)
{
    char real[PATH_MAX];
    char *found =
        path && realpath(path, real) && vm_arch_check_program(arch, real, &(struct error){0}) == 0
            ? memory_strdup(real)
            : NULL;
    free(path);
    return found;
}

static int check_given(const struct vm_arch *arch, const char *path, char **ret_path,
                       struct error *err)
{
    int r = vm_arch_check_program(arch, path, err);
    if (r < 0)
        return error_wrap(err, r, "assay for the machine");
    *ret_path = memory_strdup(path);
    return 0;
}

int vm_guest_find(const struct vm_arch *arch, const char *given, char **ret_path, struct error *err)
{
    char variable[64], self[PATH_MAX];
    snprintf(variable, sizeof(variable), "ASSAY_GUEST_%s", arch->name);
    for (char *c = variable; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    if (!given && getenv(variable) && *getenv(variable))
        given = getenv(variable);
    if (given)
        return check_given(arch, given, ret_path, err);
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(self, '/');
    int folder = slash ? (int)(slash - self) : 0;
    char *found =
        fitting(arch, memory_printf("%.*s/../lib/assay/assay-%s", folder, self, arch->name));
    if (!found)
        found = fitting(arch,
                        memory_printf("%.*s/../../../%s/src/cmd/assay", folder, self, arch->build));
    if (!found)
        found = fitting(arch, memory_strdup(self));
    *ret_path = found;
    return found ? 0
                 : error_set(err, -ENOENT,
                             "no static assay for %s machines is installed; './dev guests' in the "
                             "source tree builds it; --guest or %s names one",
                             arch->name, variable);
}

static int add_modules(struct cpio *c, const struct vm_kernel *kernel, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf order = {0};
    int r = 0;
    for (size_t i = 0; r == 0 && i < kernel->module_count; i++) {
        CLEANUP(memory_freep)
        char *path = memory_printf("/modules/%s", base_name(kernel->modules[i]));
        strbuf_printf(&order, "%s\n", path);
        r = cpio_copy(c, path, 0644, kernel->modules[i], err);
    }
    return r < 0 ? r : cpio_file(c, "/modules/order", 0644, strbuf_text(&order), order.length, err);
}

static int add_files(struct cpio *c, const struct vm_files *files, struct error *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < files->count; i++) {
        const struct vm_file *f = &files->items[i];
        unsigned mode = access(f->host, X_OK) == 0 ? 0755 : 0644;
        r = cpio_copy(c, f->guest, mode, f->host, err);
    }
    return r;
}

int vm_initramfs_build(struct cpio *c, const struct vm_kernel *kernel, const char *guest,
                       const struct vm_files *files, struct error *err)
{
    static const char *const folders[] = {"/proc", "/sys", "/dev", "/tmp", "/etc", "/bin"};
    static const char users[] = "root:x:0:0::/:\nuser:x:1000:1000::/tmp:\n";
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_COUNT(folders); i++)
        r = cpio_folder(c, folders[i], err);
    if (r == 0)
        r = cpio_file(c, "/etc/passwd", 0644, users, sizeof(users) - 1, err);
    if (r == 0)
        r = cpio_copy(c, "/init", 0755, guest, err);
    if (r == 0)
        r = cpio_link(c, "/bin/assay", "/init", err);
    if (r == 0)
        r = cpio_link(c, VM_WITH_MAPPINGS, "/init", err);
    if (r == 0)
        r = add_modules(c, kernel, err);
    if (r == 0)
        r = add_files(c, files, err);
    if (r < 0)
        return error_wrap(err, r, "the machine's file system");
    cpio_finish(c);
    return 0;
}
