/* SPDX-License-Identifier: MIT */
/*
 * Which file on this machine is the one that was recorded.
 *
 * A path proves little: packages are updated, containers have their own file systems, binaries are
 * rebuilt while they run.  So each candidate is compared with the build-id (or, where there was
 * none, the inode) that was recorded; the first that agrees is taken.  One that disagrees is not
 * used, and said.
 */
#include "symbols/internal.h"

#include "base/fd.h"
#include "base/memory.h"
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#if HAVE_DEBUGINFOD
#include "symbols/libdebuginfod.h"
#endif

#define DELETED " (deleted)"
#define CRC_BYTES_MAX (1ull << 30)

/* The path without what the kernel appends to the name of a deleted file; the caller frees it. */
static char *plain_path(const char *path)
{
    size_t length = strlen(path);
    if (str_has_suffix(path, DELETED))
        length -= sizeof(DELETED) - 1;
    return memory_strndup(path, length);
}

enum agreement {
    AGREES,
    UNPROVEN, /* nothing was recorded to compare with */
    DIFFERS,
};

static enum agreement compare(const struct module *module, const struct image *image)
{
    if (module->recorded_id.size)
        return build_id_equal(&module->recorded_id, &image->build_id) ? AGREES : DIFFERS;
    struct stat st;
    if (module->inode && image->fd >= 0 && fstat(image->fd, &st) == 0)
        return st.st_ino == module->inode ? AGREES : DIFFERS;
    return UNPROVEN;
}

/* What the candidates tried so far have shown. */
struct search {
    struct module *module;
    struct image best; /* of those that exist but could not be proven */
    bool has_best;
    bool best_differs;    /* by inode only: may serve when nothing else does */
    bool mismatched;      /* an existing file has another build-id */
    struct build_id seen; /* that one */
    char *mismatched_path;
    struct error malformed;
};

static void search_done(struct search *s)
{
    if (s->has_best)
        image_close(&s->best);
    free(s->mismatched_path);
}

static void note_mismatch(struct search *s, const struct image *image)
{
    if (s->mismatched)
        return;
    s->mismatched = true;
    s->seen = image->build_id;
    s->mismatched_path = memory_strdup(image->path);
}

/* True when this candidate is the file. */
static bool try_code(struct search *s, const char *path, struct image *ret_image)
{
    struct image image;
    struct error err;
    int r = image_open(&image, path, &err);
    if (r < 0) {
        if (r == -EBADMSG && !s->malformed.code)
            s->malformed = err;
        return false;
    }
    enum agreement agreement = compare(s->module, &image);
    if (agreement == AGREES) {
        *ret_image = image;
        return true;
    }
    bool by_id = s->module->recorded_id.size > 0;
    if (agreement == DIFFERS && by_id) {
        note_mismatch(s, &image);
        image_close(&image);
        return false;
    }
    if (!s->has_best || (s->best_differs && agreement == UNPROVEN)) {
        if (s->has_best)
            image_close(&s->best);
        s->best = image;
        s->has_best = true;
        s->best_differs = agreement == DIFFERS;
        return false;
    }
    image_close(&image);
    return false;
}

static bool try_code_format(struct search *s, struct image *ret_image, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool try_code_format(struct search *s, struct image *ret_image, const char *format, ...)
{
    char *path = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&path, format, args);
    va_end(args);
    bool found = length >= 0 && try_code(s, path, ret_image);
    free(path);
    return found;
}

/* What came from an emulated machine with its recordings: see vm/symbols.h. */
static char *locate_in_vm_cache(const char *hex, const char *name)
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    bool has_base = base && *base;
    if (!has_base && !home)
        return NULL;
    char *path = memory_printf("%s%s/assay/vm/symbols/.build-id/%.2s/%s/%s", has_base ? base : home,
                               has_base ? "" : "/.cache", hex, hex + 2, name);
    if (access(path, R_OK) == 0)
        return path;
    free(path);
    return NULL;
}

char *locate_in_perf_cache(const struct symbols *symbols, const struct build_id *id,
                           const char *name)
{
    char hex[BUILD_ID_TEXT];
    const char *home = getenv("HOME");
    if (id->size < 2 || (!symbols->options.perf_cache && !home))
        return NULL;
    build_id_format(id, hex);
    char *path = symbols->options.perf_cache
                     ? memory_printf("%s/.build-id/%.2s/%s/%s", symbols->options.perf_cache, hex,
                                     hex + 2, name)
                     : memory_printf("%s/.debug/.build-id/%.2s/%s/%s", home, hex, hex + 2, name);
    if (access(path, R_OK) == 0)
        return path;
    free(path);
    return symbols->options.perf_cache ? NULL : locate_in_vm_cache(hex, name);
}

static bool try_perf_cache(struct search *s, const char *name, struct image *ret_image)
{
    CLEANUP(memory_freep)
    char *path = locate_in_perf_cache(s->module->symbols, &s->module->recorded_id, name);
    return path && try_code(s, path, ret_image);
}

/* Whether the user named servers, and the file can be asked for. */
static bool may_fetch(const struct module *module, const struct build_id *id)
{
    const char *servers = getenv("DEBUGINFOD_URLS");
    return !module->symbols->options.no_debuginfod && servers && servers[0] && id->size > 0;
}

#if HAVE_DEBUGINFOD
/* Asks the servers that DEBUGINFOD_URLS names; the caller frees the path. */
static char *fetch(struct module *module, const struct build_id *id, bool executable)
{
    const struct symbols_options *options = &module->symbols->options;
    if (!may_fetch(module, id))
        return NULL;
    if (options->waiting) {
        CLEANUP(memory_freep)
        char *what = memory_printf("asking debuginfod for %s of %s",
                                   executable ? "the code" : "debug data", module->name);
        options->waiting(options->waiting_context, what);
    }
    struct error err;
    if (library_load(&debuginfod_library, &err) < 0) {
        symbols_diagnose(module->symbols, module, DIAGNOSTIC_DEBUGINFOD, "%s: %s", module->name,
                         err.message);
        return NULL;
    }
    debuginfod_client *client = debuginfod_begin();
    char *path = NULL;
    int fd = -ENOSYS;
    if (client) {
        fd = executable ? debuginfod_find_executable(client, id->bytes, id->size, &path)
                        : debuginfod_find_debuginfo(client, id->bytes, id->size, &path);
        debuginfod_end(client);
    }
    if (fd < 0) {
        free(path);
        symbols_diagnose(module->symbols, module, DIAGNOSTIC_DEBUGINFOD,
                         "%s: the debuginfod servers (DEBUGINFOD_URLS) returned nothing: %s",
                         module->name, strerror(-fd));
        return NULL;
    }
    close(fd);
    symbols_diagnose(module->symbols, module, DIAGNOSTIC_DEBUGINFOD,
                     "%s: %s from debuginfod, kept as %s", module->name,
                     executable ? "code" : "debug data", path);
    return path;
}
#else
static char *fetch(struct module *module, const struct build_id *id, bool executable)
{
    (void)executable;
    if (may_fetch(module, id))
        symbols_diagnose(module->symbols, module, DIAGNOSTIC_DEBUGINFOD,
                         "%s: assay was built without libdebuginfod and asks no server "
                         "(DEBUGINFOD_URLS)",
                         module->name);
    return NULL;
}
#endif

static bool search_code(struct search *s, struct image *ret_image)
{
    const struct module *m = s->module;
    const struct symbols_options *options = &m->symbols->options;
    CLEANUP(memory_freep) char *path = plain_path(m->path);
    bool deleted = strlen(path) != strlen(m->path);
    if (options->file_root && try_code_format(s, ret_image, "%s%s", options->file_root, path))
        return true;
    if (deleted && m->pid > 0 &&
        (try_code_format(s, ret_image, "/proc/%d/map_files/%llx-%llx", (int)m->pid,
                         (unsigned long long)m->map_start, (unsigned long long)m->map_end) ||
         (m->recorded_id.size && try_code_format(s, ret_image, "/proc/%d/exe", (int)m->pid))))
        return true;
    if (try_code(s, path, ret_image))
        return true;
    /* The process may have its own file system, if that number still is the same process. */
    if (m->pid > 0 && try_code_format(s, ret_image, "/proc/%d/root%s", (int)m->pid, path))
        return true;
    if (try_perf_cache(s, "elf", ret_image))
        return true;
    if (!s->has_best && m->recorded_id.size) {
        CLEANUP(memory_freep) char *fetched = fetch(s->module, &m->recorded_id, true);
        if (fetched && try_code(s, fetched, ret_image))
            return true;
    }
    return false;
}

static void explain_missing(const struct search *s)
{
    struct module *m = s->module;
    char recorded[BUILD_ID_TEXT], seen[BUILD_ID_TEXT];
    if (s->mismatched)
        symbols_diagnose(
            m->symbols, m, DIAGNOSTIC_BUILD_ID_MISMATCH,
            "%s is not the file that was recorded (build-id %s, recorded %s): not used; record "
            "again, or keep the old file in another directory and name it with --symfs",
            s->mismatched_path, s->seen.size ? build_id_format(&s->seen, seen) : "none",
            build_id_format(&m->recorded_id, recorded));
    else if (s->malformed.code)
        symbols_diagnose(m->symbols, m, DIAGNOSTIC_FILE_MALFORMED, "%s", s->malformed.message);
    else if (m->recorded_id.size)
        symbols_diagnose(m->symbols, m, DIAGNOSTIC_FILE_MISSING,
                         "%s was not found, nor any file with its build-id %s", m->path,
                         build_id_format(&m->recorded_id, recorded));
    else
        symbols_diagnose(m->symbols, m, DIAGNOSTIC_FILE_MISSING,
                         "%s was not found; its functions appear as addresses", m->path);
}

static bool open_own_vdso(struct search *s, struct image *ret_image)
{
    if (image_open_own_vdso(ret_image, NULL) < 0)
        return false;
    if (compare(s->module, ret_image) != DIFFERS)
        return true;
    note_mismatch(s, ret_image);
    image_close(ret_image);
    return false;
}

bool locate_code(struct module *module, struct image *ret_image)
{
    CLEANUP(search_done) struct search s = {.module = module};
    bool found = module->kind == MODULE_VDSO
                     ? open_own_vdso(&s, ret_image) || try_perf_cache(&s, "vdso", ret_image)
                     : search_code(&s, ret_image);
    if (found)
        return true;
    if (!s.has_best) {
        explain_missing(&s);
        return false;
    }
    if (s.best_differs)
        symbols_diagnose(module->symbols, module, DIAGNOSTIC_FILE_REPLACED,
                         "%s was replaced after the recording (different inode, no build-id to "
                         "compare): names may be wrong",
                         module->path);
    *ret_image = s.best;
    s.has_best = false;
    return true;
}

/* The checksum that .gnu_debuglink wants: CRC-32 as in zlib. */
static uint32_t file_crc(const struct image *image)
{
    uint32_t table[256];
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++)
            value = value & 1 ? value >> 1 ^ 0xedb88320u : value >> 1;
        table[i] = value;
    }
    uint32_t crc = UINT32_MAX;
    uint8_t block[65536];
    for (uint64_t at = 0; at < image->size; at += sizeof(block)) {
        size_t got = image_read(image, at, block, sizeof(block));
        for (size_t i = 0; i < got; i++)
            crc = table[(crc ^ block[i]) & 0xff] ^ crc >> 8;
    }
    return ~crc;
}

struct debug_search {
    struct module *module;
    const struct build_id *id; /* of the code */
    uint32_t crc;
    bool has_crc; /* the candidates come from the debuglink */
};

static bool try_debug(struct debug_search *s, char *path, struct image *ret_image)
{
    CLEANUP(memory_freep) char *owned = path;
    struct image image;
    if (image_open(&image, owned, NULL) < 0)
        return false;
    bool same = s->id->size && image.build_id.size          ? build_id_equal(s->id, &image.build_id)
                : s->has_crc && image.size <= CRC_BYTES_MAX ? file_crc(&image) == s->crc
                                                            : false;
    if (same) {
        *ret_image = image;
        return true;
    }
    symbols_diagnose(s->module->symbols, s->module, DIAGNOSTIC_DEBUG_MISMATCH,
                     "%s is the debug file of a different build of %s: not used", owned,
                     s->module->name);
    image_close(&image);
    return false;
}

/* Calls for each folder in which debug files are kept, below the roots that apply. */
static bool search_folders(struct debug_search *s, const char *below, struct image *ret_image)
{
    const struct symbols_options *options = &s->module->symbols->options;
    const char *folders = options->debug_folders ? options->debug_folders : "/usr/lib/debug";
    while (*folders) {
        int length = (int)strcspn(folders, ":");
        if (length > 0) {
            if (options->file_root &&
                try_debug(s, memory_printf("%s%.*s%s", options->file_root, length, folders, below),
                          ret_image))
                return true;
            if (try_debug(s, memory_printf("%.*s%s", length, folders, below), ret_image))
                return true;
            if (s->module->pid > 0 &&
                try_debug(s,
                          memory_printf("/proc/%d/root%.*s%s", (int)s->module->pid, length, folders,
                                        below),
                          ret_image))
                return true;
        }
        folders += length + (folders[length] == ':');
    }
    return false;
}

static bool search_debuglink(struct debug_search *s, const struct image *code,
                             struct image *ret_image)
{
    CLEANUP(memory_freep) char *link = image_debuglink(code, &s->crc);
    if (!link)
        return false;
    s->has_crc = true;
    CLEANUP(memory_freep) char *real = realpath(code->path, NULL);
    const char *path = real ? real : code->path;
    const char *slash = strrchr(path, '/');
    int length = slash ? (int)(slash - path) : 0;
    CLEANUP(memory_freep) char *below = memory_printf("%.*s/%s", length, path, link);
    bool found = (!str_eq(below, path) && try_debug(s, memory_strdup(below), ret_image)) ||
                 try_debug(s, memory_printf("%.*s/.debug/%s", length, path, link), ret_image) ||
                 search_folders(s, below, ret_image);
    s->has_crc = false;
    return found;
}

bool locate_debug(struct module *module, const struct image *code, struct image *ret_image)
{
    struct debug_search s = {.module = module, .id = code ? &code->build_id : &module->build_id};
    char hex[BUILD_ID_TEXT];
    if (s.id->size >= 2) {
        build_id_format(s.id, hex);
        CLEANUP(memory_freep) char *below = memory_printf("/.build-id/%.2s/%s.debug", hex, hex + 2);
        if (search_folders(&s, below, ret_image))
            return true;
    }
    if (code && search_debuglink(&s, code, ret_image))
        return true;
    char *cached = locate_in_perf_cache(module->symbols, s.id, "debug");
    if (cached && try_debug(&s, cached, ret_image))
        return true;
    char *fetched = fetch(module, s.id, false);
    return fetched && try_debug(&s, fetched, ret_image);
}

bool locate_vmlinux(struct module *kernel, const struct build_id *id, struct image *ret_image)
{
    static const char *const formats[] = {"/usr/lib/debug/boot/vmlinux-%s",
                                          "/usr/lib/debug/lib/modules/%s/vmlinux",
                                          "/lib/modules/%s/build/vmlinux", "/boot/vmlinux-%s"};
    struct debug_search s = {.module = kernel, .id = id};
    char hex[BUILD_ID_TEXT];
    struct utsname host;
    if (id->size < 2)
        return false;
    build_id_format(id, hex);
    CLEANUP(memory_freep) char *below = memory_printf("/.build-id/%.2s/%s.debug", hex, hex + 2);
    if (search_folders(&s, below, ret_image))
        return true;
    for (size_t i = 0; i < ARRAY_COUNT(formats) && uname(&host) == 0; i++) {
        const char *gap = strstr(formats[i], "%s");
        char *path =
            memory_printf("%.*s%s%s", (int)(gap - formats[i]), formats[i], host.release, gap + 2);
        if (try_debug(&s, path, ret_image))
            return true;
    }
    char *cached = locate_in_perf_cache(kernel->symbols, id, "vmlinux");
    return cached && try_debug(&s, cached, ret_image);
}
