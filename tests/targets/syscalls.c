/* SPDX-License-Identifier: MIT */
/* syscalls N: asks the kernel for the parent's id N times. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 0;
    for (long i = 0; i < count; i++)
        syscall(SYS_getppid);
    return 0;
}
