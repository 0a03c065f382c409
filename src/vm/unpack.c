/* SPDX-License-Identifier: MIT */
/* See unpack.h. */
#include "vm/unpack.h"
#include "base/fd.h"
#include "base/memory.h"
#include "vm/tool.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

enum { MODULES_MAX = 32 };

char *vm_module_depends(const char *bytes, size_t length)
{
    static const char key[] = "\0depends=";
    const char *found = memmem(bytes, length, key, sizeof(key) - 1);
    if (!found)
        return memory_strdup("");
    const char *text = found + sizeof(key) - 1;
    return memory_strndup(text, strnlen(text, (size_t)(bytes + length - text)));
}

/* Names of files begin with `start`; the first that is found, or NULL. */
static char *find_file(const char *folder, const char *start)
{
    DIR *dir = opendir(folder);
    char *found = NULL;
    for (struct dirent *e; dir && !found && (e = readdir(dir));)
        if (str_has_prefix(e->d_name, start))
            found = memory_printf("%s/%s", folder, e->d_name);
    if (dir)
        closedir(dir);
    return found;
}

/* All in one folder, without the folders that the package has. */
static int extract(const char *deb, const char *folder, struct error *err)
{
    static const char script[] =
        "dpkg-deb --fsys-tarfile \"$1\" |"
        " tar -x -C \"$2\" --no-same-owner --no-same-permissions --transform 's,^.*/,,' --wildcards"
        " '*/vmlinuz-*' '*/config-*' '*/virtio*.ko*' '*/9p*.ko*' '*/netfs.ko*' '*/fscache.ko*'"
        " '*/overlay.ko*'";
    const char *const argv[] = {"sh", "-c", script, "sh", deb, folder, NULL};
    CLEANUP(strbuf_done) struct strbuf said = {0};
    struct vm_tool tool = {.argv = argv, .output = &said};
    int r = vm_tool_run(&tool, err); /* a kernel may have no such modules: tar then fails */
    CLEANUP(memory_freep) char *image = r < 0 ? NULL : find_file(folder, "vmlinuz-");
    if (r < 0 || image)
        return r < 0 ? r : 0;
    return error_set(err, -ENOENT, "%s holds no kernel%s%.300s", deb, said.length ? ": " : "",
                     strbuf_text(&said));
}

/* Ways in which releases compress modules, and what undoes it. */
static const struct packing {
    const char *suffix, *program, *package;
} packings[] = {
    {".ko.xz", "xz", "xz-utils"}, {".ko.zst", "zstd", "zstd"}, {".ko.gz", "gzip", "gzip"}};

/* What is still compressed: a machine without its modules would be one without the host's files. */
static int find_packed(const char *folder, const char *deb, struct error *err)
{
    DIR *dir = opendir(folder);
    int r = 0;
    for (struct dirent *e; dir && r == 0 && (e = readdir(dir));)
        for (size_t i = 0; r == 0 && i < ARRAY_COUNT(packings); i++)
            if (str_has_suffix(e->d_name, packings[i].suffix))
                r = error_set(err, -ENOENT,
                              "the modules of %s are compressed: '%s' cannot expand %s; is it "
                              "installed? (Debian's package: %s)",
                              deb, packings[i].program, e->d_name, packings[i].package);
    if (dir)
        closedir(dir);
    return r;
}

static int expand(const char *folder, const char *deb, struct error *err)
{
    static const char script[] =
        "cd \"$1\" || exit 1; set --;"
        "for f in *.ko.xz; do [ -e \"$f\" ] && xz -d -f \"$f\"; done;"
        "for f in *.ko.zst; do [ -e \"$f\" ] && zstd -q -d --rm \"$f\"; done;"
        "for f in *.ko.gz; do [ -e \"$f\" ] && gzip -d -f \"$f\"; done; :";
    const char *const argv[] = {"sh", "-c", script, "sh", folder, NULL};
    CLEANUP(strbuf_done) struct strbuf said = {0};
    struct vm_tool tool = {.argv = argv, .output = &said};
    int r = vm_tool_run(&tool, err);
    return r < 0 ? r : find_packed(folder, deb, err);
}

struct order {
    char *names[MODULES_MAX];
    size_t count;
    const char *from;
};

static bool is_listed(const struct order *o, const char *name)
{
    for (size_t i = 0; i < o->count; i++)
        if (str_eq(o->names[i], name))
            return true;
    return false;
}

/* Puts a module behind what it depends on.  What is no module is built in. */
static int add_module(struct order *o, const char *module, unsigned depth, struct error *err)
{
    CLEANUP(memory_freep) char *name = memory_strdup(module);
    for (char *c = name; *c; c++)
        *c = *c == '-' ? '_' : *c;
    CLEANUP(memory_freep) char *path = memory_printf("%s/%s.ko", o->from, name);
    CLEANUP(strbuf_done) struct strbuf bytes = {0};
    if (is_listed(o, name) || access(path, R_OK) < 0)
        return 0;
    int r = depth > 8 ? -ELOOP : file_read(path, &bytes, err);
    if (r < 0)
        return r == -ELOOP ? error_set(err, r, "%s depends on itself", path) : r;
    CLEANUP(memory_freep) char *depends = vm_module_depends(strbuf_text(&bytes), bytes.length);
    char *save = NULL;
    for (char *word = strtok_r(depends, ",", &save); r == 0 && word;
         word = strtok_r(NULL, ",", &save))
        r = add_module(o, word, depth + 1, err);
    if (r == 0 && o->count == MODULES_MAX)
        r = error_set(err, -E2BIG, "%s: too many modules", o->from);
    if (r == 0)
        o->names[o->count++] = memory_strdup(name);
    return r;
}

static int move_file(const char *from, const char *folder, const char *name, struct error *err)
{
    CLEANUP(memory_freep) char *to = memory_printf("%s/%s", folder, name);
    return rename(from, to) < 0 ? error_errno(err, -errno, "%s", to) : 0;
}

static int keep_modules(const struct order *o, const char *folder, struct error *err)
{
    CLEANUP(memory_freep) char *modules = memory_printf("%s/modules", folder);
    CLEANUP(memory_freep) char *list = memory_printf("%s/order", modules);
    CLEANUP(strbuf_done) struct strbuf text = {0};
    int r = mkdir(modules, 0777) < 0 ? error_errno(err, -errno, "%s", modules) : 0;
    for (size_t i = 0; r == 0 && i < o->count; i++) {
        CLEANUP(memory_freep) char *name = memory_printf("%s.ko", o->names[i]);
        CLEANUP(memory_freep) char *from = memory_printf("%s/%s", o->from, name);
        strbuf_printf(&text, "%s\n", name);
        r = move_file(from, modules, name, err);
    }
    return r < 0 ? r : file_write(list, strbuf_text(&text), text.length, err);
}

static int sort_out(const struct vm_arch *arch, const char *all, const char *folder,
                    struct error *err)
{
    CLEANUP(memory_freep) char *image = find_file(all, "vmlinuz-");
    CLEANUP(memory_freep) char *config = find_file(all, "config-");
    struct order order = {.from = all};
    int r = move_file(image, folder, "vmlinuz", err);
    if (r == 0 && config)
        r = move_file(config, folder, "config", err);
    for (size_t i = 0; r == 0 && arch->modules[i]; i++)
        r = add_module(&order, arch->modules[i], 0, err);
    if (r == 0)
        r = keep_modules(&order, folder, err);
    for (size_t i = 0; i < order.count; i++)
        free(order.names[i]);
    return r;
}

int vm_unpack(const struct vm_arch *arch, const char *deb, const char *folder, struct error *err)
{
    CLEANUP(memory_freep) char *all = memory_printf("%s/all", folder);
    if (mkdir(all, 0777) < 0)
        return error_errno(err, -errno, "%s", all);
    int r = extract(deb, all, err);
    if (r == 0)
        r = expand(all, deb, err);
    if (r == 0)
        r = sort_out(arch, all, folder, err);
    file_remove_tree(all);
    return r;
}
