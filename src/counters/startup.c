/* SPDX-License-Identifier: MIT */
/* What it costs to start a program: see startup.h. */
#include "counters/startup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/strings.h"
#include "counters/counters.h"
#include "elf/image.h"

#include <fcntl.h>
#include <sys/wait.h>

#define TRIALS 3

/* The loader that the program names (PT_INTERP); NULL when there is none. */
static char *find_loader(const char *path)
{
    struct image image;
    if (image_open(&image, path, NULL) < 0)
        return NULL;
    char *loader = image_interpreter(&image);
    image_close(&image);
    return loader;
}

/* One trial; the CPU time from exec to exit, 0 when the loader did not do it. */
static uint64_t try_once(char *const *argv, char *const *environment, int null_fd,
                         const struct counters *c, uint64_t *total_ns)
{
    struct process_spec spec = {.argv = argv,
                                .environment = environment,
                                .stdin_fd = null_fd,
                                .stdout_fd = null_fd,
                                .stderr_fd = null_fd};
    struct process_result result;
    struct counter_value value;
    pid_t pid;
    if (process_spawn(&spec, &pid, NULL) < 0 || process_wait(pid, &result, NULL) < 0)
        return 0;
    if (counters_read(c, &value, NULL) < 0)
        return 0;
    uint64_t spent_ns = value.raw - *total_ns;
    *total_ns = value.raw;
    bool loaded = WIFEXITED(result.status) && WEXITSTATUS(result.status) == 0;
    return loaded ? spent_ns : 0;
}

uint64_t startup_cpu_ns(const char *program)
{
    CLEANUP(memory_freep) char *path = NULL;
    if (process_find(program, &path, NULL) < 0)
        return 0;
    CLEANUP(memory_freep) char *loader = find_loader(path);
    CLEANUP(fd_closep) int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (!loader || null_fd < 0 || !strstr(loader, "/ld-"))
        return 0;
    CLEANUP(event_list_done) struct event_list list = {0};
    CLEANUP(counters_done) struct counters c = {.guard_fds = {-1, -1}};
    const struct counter_target target = {.kind = TARGET_CHILDREN};
    if (event_list_parse(&list, "task-clock", NULL) < 0 ||
        counters_open(&c, &list, &target, NULL) < 0 || c.items[0].why)
        return 0;
    char *argv[] = {loader, "--list", path, NULL};
    /* With LD_WARN the loader relocates, too, as it does before a real start. */
    char *environment[] = {"LD_WARN=1", NULL};
    uint64_t total_ns = 0, least_ns = 0;
    for (int i = 0; i < TRIALS; i++) {
        uint64_t ns = try_once(argv, environment, null_fd, &c, &total_ns);
        if (ns && (!least_ns || ns < least_ns))
            least_ns = ns;
    }
    return least_ns;
}
