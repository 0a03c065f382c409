/* SPDX-License-Identifier: MIT */
/* Tables of symbols on disk: see cache.h. */
#include "symbols/tables/cache.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define SYMBOLS_ENDING ".symtab"
#define TEMPORARY_SUFFIX ".tmp"
#define DAY_S 86400

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] && !str_eq(value, "0");
}

char *cache_folder(const char *given)
{
    if (is_set("ASSAY_NO_CACHE"))
        return NULL;
    if (given)
        return memory_strdup(given);
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (base && base[0] == '/')
        return memory_printf("%s/assay/symbols", base);
    return home && home[0] == '/' ? memory_printf("%s/.cache/assay/symbols", home) : NULL;
}

static char *entry_path(const char *folder, const struct build_id *id, const char *ending)
{
    char hex[BUILD_ID_TEXT];
    return memory_printf("%s/%s%s", folder, build_id_format(id, hex), ending);
}

int cache_map(const char *folder, const struct build_id *id, const char *ending,
              struct sealed_block *ret_block, struct error *err)
{
    CLEANUP(memory_freep) char *path = entry_path(folder, id, ending);
    CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return error_errno(err, -errno, "%s", path);
    /* Somebody else's file could give anything any name. */
    if (!S_ISREG(st.st_mode) || st.st_size <= 0 || (st.st_uid != geteuid() && st.st_uid != 0))
        return error_set(err, -EPERM, "%s: not owned by this user", path);
    void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return error_errno(err, -errno, "%s", path);
    *ret_block = (struct sealed_block){.bytes = bytes, .size = (size_t)st.st_size, .mapped = true};
    if (clock_read_ns(CLOCK_REALTIME) / NS_PER_S > (uint64_t)st.st_mtime + DAY_S)
        futimens(fd, NULL);
    return 0;
}

int cache_load(const char *folder, const struct build_id *id, const char *source,
               struct symtab *ret_table, struct error *err)
{
    struct sealed_block block;
    int r = cache_map(folder, id, SYMBOLS_ENDING, &block, err);
    return r < 0 ? r : symtab_unseal(ret_table, block, id, source, err);
}

static int make_folders(const char *folder)
{
    CLEANUP(memory_freep) char *path = memory_strdup(folder);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return -errno;
        *slash = '/';
    }
    return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

struct cache_file {
    char name[2 * BUILD_ID_MAX + 32];
    uint64_t size;
    time_t used;
};

static int by_use(const void *a, const void *b)
{
    const struct cache_file *x = a, *y = b;
    return x->used < y->used ? -1 : x->used > y->used;
}

/* Removes the files that were used longest ago until there is room for one more. */
static void make_room(const char *folder, uint64_t wanted)
{
    DIR *directory = opendir(folder);
    if (!directory)
        return;
    struct cache_file *files = NULL;
    size_t count = 0, capacity = 0;
    uint64_t total = wanted;
    for (struct dirent *entry; (entry = readdir(directory));) {
        struct stat st;
        struct cache_file file;
        bool left_over = str_has_suffix(entry->d_name, TEMPORARY_SUFFIX);
        if ((!left_over && !str_has_suffix(entry->d_name, SYMBOLS_ENDING) &&
             !str_has_suffix(entry->d_name, CACHE_LINES)) ||
            strlen(entry->d_name) >= sizeof(file.name) ||
            fstatat(dirfd(directory), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (left_over && st.st_mtime + DAY_S < time(NULL))
            unlinkat(dirfd(directory), entry->d_name, 0);
        strcpy(file.name, entry->d_name);
        file.size = (uint64_t)st.st_size;
        file.used = st.st_mtime;
        total += file.size;
        ARRAY_PUSH(files, count, capacity) = file;
    }
    if (total > CACHE_BYTES_MAX) {
        qsort(files, count, sizeof(*files), by_use);
        for (size_t i = 0; i < count && total > CACHE_BYTES_MAX; i++)
            if (unlinkat(dirfd(directory), files[i].name, 0) == 0)
                total -= files[i].size;
    }
    free(files);
    closedir(directory);
}

/* Without a wait for the disk: the checksum finds what a crash leaves half-written. */
static int write_entry(const char *path, const void *bytes, size_t size, struct error *err)
{
    CLEANUP(memory_freep) char *temporary = memory_printf("%s.XXXXXX" TEMPORARY_SUFFIX, path);
    CLEANUP(fd_closep) int fd = mkostemps(temporary, sizeof(TEMPORARY_SUFFIX) - 1, O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, -errno, "%s", path);
    int r = fd_write_all(fd, bytes, size);
    if (r == 0 && rename(temporary, path) < 0)
        r = -errno;
    if (r < 0)
        unlink(temporary);
    return r < 0 ? error_errno(err, r, "%s", path) : 0;
}

int cache_write(const char *folder, const struct build_id *id, const char *ending,
                const struct sealed_block *block, struct error *err)
{
    if (block->size > CACHE_BYTES_MAX / 4)
        return error_set(err, -EFBIG, "a table of %zu bytes is not cached", block->size);
    int r = make_folders(folder);
    if (r < 0)
        return error_errno(err, r, "%s", folder);
    make_room(folder, block->size);
    CLEANUP(memory_freep) char *path = entry_path(folder, id, ending);
    return write_entry(path, block->bytes, block->size, err);
}

int cache_store(const char *folder, const struct build_id *id, const char *source,
                struct symtab *table, struct error *err)
{
    symtab_seal(table, id, source);
    return cache_write(folder, id, SYMBOLS_ENDING, &table->block, err);
}
