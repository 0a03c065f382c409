/* SPDX-License-Identifier: MIT */
/* See runner.h. */
#include "bench/runner.h"
#include "assay.h"

#include <dlfcn.h>
#include <limits.h>
#include <unistd.h>

bool bench_runner_is(int argc, char *const *argv)
{
    return argc == 2 && getenv(BENCH_RUNNER_VARIABLE) && argv[1][0];
}

const char *bench_runner_path(void)
{
    static char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[length > 0 ? length : 0] = '\0';
    return path;
}

/* The words go where the answers would. */
static int refuse(int out, const char *path, const char *why)
{
    dprintf(out, "x %s%s%s\n", path ? path : "", path ? ": " : "", why);
    return 1;
}

int bench_runner_serve(char *const *argv)
{
    const char *worker = getenv("ASSAY_WORKER"), *once = getenv("ASSAY_ONCE"), *path = argv[1];
    int in = -1, out = STDERR_FILENO;
    if (worker && sscanf(worker, "%d,%d", &in, &out) != 2)
        return refuse(STDERR_FILENO, NULL, "ASSAY_WORKER is not set as assay sets it");
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!object)
        return refuse(out, NULL, dlerror());
    const struct assay_registry *registry = dlsym(object, "assay_registry");
    if (!registry)
        return refuse(out, path,
                      "this shared object has no benchmarks of assay.h in it: ASSAY_BENCH(…) "
                      "defines one; with a version script, export assay_registry");
    if (registry->abi != ASSAY_ABI || registry->size != sizeof(struct assay_benchmark))
        return refuse(out, path,
                      "built with another version of assay.h; rebuild it with the assay.h of this "
                      "assay");
    unsetenv(BENCH_RUNNER_VARIABLE);
    if (once && *once)
        return assay_run_once(registry, once);
    return assay_serve(registry, in, out, getenv("ASSAY_COUNTERS"));
}
