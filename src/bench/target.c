/* SPDX-License-Identifier: MIT */
/* See target.h. */
#include "bench/target.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"
#include "elf/image.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECTION "assay_benchmarks"

static void imagep_close(struct image *image)
{
    image_close(image);
}

/* A position-independent executable is a shared object in all but what starts it. */
static bool is_executable(const struct image *image)
{
    return image->type == ET_EXEC || image->interpreter.size ||
           (image->type == ET_DYN && !image_find(image, ".dynsym"));
}

static int look_at_elf(struct bench_target *t, struct error *err)
{
    CLEANUP(imagep_close) struct image image = {.fd = -1};
    int r = image_open(&image, t->path, err);
    if (r < 0)
        return r;
    if (image.type == ET_REL)
        return error_set(
            err, -EINVAL,
            "%s is an object file; link it: with ASSAY_MAIN in it as an executable, or "
            "with -shared as a shared object",
            t->path);
    t->kind = is_executable(&image) ? BENCH_EXECUTABLE : BENCH_SHARED;
    if (t->kind == BENCH_SHARED)
        return 0; /* it must export assay_registry, which its runner looks for */
    if (access(t->path, X_OK) < 0)
        return error_errno(err, -errno, "%s", t->path);
    if (image.section_count && !image_find(&image, SECTION))
        return error_set(err, -ENOTSUP,
                         "%s has no benchmarks of assay.h in it: ASSAY_BENCH(…) defines one, "
                         "ASSAY_MAIN the main function",
                         t->path);
    return 0;
}

int bench_target_open(struct bench_target *t, const char *path, struct error *err)
{
    struct stat st;
    char head[64] = "";
    uint16_t machine;
    *t = (struct bench_target){.path = strchr(path, '/') ? memory_strdup(path)
                                                         : memory_printf("./%s", path)};
    if (stat(t->path, &st) < 0)
        return error_errno(err, -errno, "%s", path);
    if (S_ISDIR(st.st_mode))
        return error_set(err, -EISDIR,
                         "%s is a directory; name an executable or a shared object with benchmarks",
                         path);
    CLEANUP(fd_closep) int fd = open(t->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return error_errno(err, -errno, "%s", path);
    if (read(fd, head, sizeof(head)) < 0)
        return error_errno(err, -errno, "%s", path);
    if (image_machine(head, sizeof(head), &machine))
        return look_at_elf(t, err);
    if (memcmp(head, "#!", 2) != 0)
        return error_set(err, -ENOEXEC,
                         "%s is neither an executable nor a shared object; name a compiled program",
                         path);
    if (access(t->path, X_OK) < 0)
        return error_errno(err, -errno, "%s", path);
    t->kind = BENCH_EXECUTABLE;
    return 0;
}

void bench_target_done(struct bench_target *t)
{
    free(t->path);
    *t = (struct bench_target){0};
}
