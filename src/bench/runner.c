/* SPDX-License-Identifier: MIT */
/* See runner.h. */
#include "bench/runner.h"
#define ASSAY_STATE_ static _Thread_local
#include "assay.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <unistd.h>

bool bench_runner_is(int argc, char *const *argv)
{
    return (argc == 2 || argc == 3) && getenv(BENCH_RUNNER_VARIABLE) && argv[1][0];
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

/* One shared object, and the descriptors over which it is asked. */
struct served {
    const char *path;
    int in, out;
    const struct assay_registry *registry;
};

static int load(struct served *s)
{
    void *object = dlopen(s->path, RTLD_NOW | RTLD_LOCAL);
    if (!object)
        return refuse(s->out, NULL, dlerror());
    const struct assay_registry *registry = dlsym(object, "assay_registry");
    if (!registry)
        return refuse(s->out, s->path,
                      "this shared object has no benchmarks of assay.h in it: ASSAY_BENCH(…) "
                      "defines one; with a version script, export assay_registry");
    if (registry->abi != ASSAY_ABI || registry->size != sizeof(struct assay_benchmark))
        return refuse(s->out, s->path,
                      "built with another version of assay.h; rebuild it with the assay.h of this "
                      "assay");
    s->registry = registry;
    return 0;
}

static void *serve(void *argument)
{
    const struct served *s = argument;
    assay_serve(s->registry, s->in, s->out, NULL);
    return NULL;
}

/* Both in one process, each in a thread: neither has the stack of the first thread. */
static int serve_both(struct served *both)
{
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, serve, &both[i]) != 0)
            return refuse(both[i].out, both[i].path, "a thread could not be started");
    for (size_t i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

int bench_runner_serve(char *const *argv)
{
    const char *worker = getenv("ASSAY_WORKER"), *once = getenv("ASSAY_ONCE");
    struct served both[2] = {{.path = argv[1], .in = -1, .out = STDERR_FILENO},
                             {.path = argv[2], .in = -1, .out = STDERR_FILENO}};
    int want = argv[2] ? 4 : 2;
    if (worker &&
        sscanf(worker, "%d,%d,%d,%d", &both[0].in, &both[0].out, &both[1].in, &both[1].out) != want)
        return refuse(STDERR_FILENO, NULL, "ASSAY_WORKER is not set as assay sets it");
    int code = load(&both[0]);
    if (code == 0 && argv[2])
        code = load(&both[1]);
    if (code)
        return code;
    unsetenv(BENCH_RUNNER_VARIABLE);
    if (argv[2])
        return serve_both(both);
    if (once && *once)
        return assay_run_once(both[0].registry, once);
    return assay_serve(both[0].registry, both[0].in, both[0].out, getenv("ASSAY_COUNTERS"));
}
