/* SPDX-License-Identifier: MIT */
/* floor N COMMAND…: the least that running a command N times can cost: posix_spawn and wait4. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

extern char **environ;

int main(int argc, char **argv)
{
    long count = argc > 2 ? atol(argv[1]) : 0;
    for (long i = 0; i < count; i++) {
        pid_t pid;
        int status;
        struct rusage usage;
        if (posix_spawn(&pid, argv[2], NULL, NULL, argv + 2, environ)) {
            perror(argv[2]);
            return 1;
        }
        if (wait4(pid, &status, 0, &usage) < 0)
            return 1;
    }
    return 0;
}
