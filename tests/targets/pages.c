/* SPDX-License-Identifier: MIT */
/* pages N [CHILDREN [THREADS]]: touches N fresh pages, in CHILDREN processes and THREADS threads of
 * each as well (default none). */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static long page_count;

static void touch(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (size_t)page_count * page;
    if (!size)
        return;
    char *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED || madvise(block, size, MADV_NOHUGEPAGE) < 0)
        exit(1);
    for (size_t at = 0; at < size; at += page)
        ((volatile char *)block)[at] = 1;
}

static void *thread_main(void *name)
{
    prctl(PR_SET_NAME, name);
    touch();
    return NULL;
}

static void touch_in_threads(int count)
{
    pthread_t threads[64];
    char names[64][16];
    for (int i = 0; i < count && i < 64; i++) {
        snprintf(names[i], sizeof(names[i]), "worker%d", i);
        pthread_create(&threads[i], NULL, thread_main, names[i]);
    }
    for (int i = 0; i < count && i < 64; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    page_count = argc > 1 ? atol(argv[1]) : 0;
    int children = argc > 2 ? atoi(argv[2]) : 0, threads = argc > 3 ? atoi(argv[3]) : 0;
    touch();
    touch_in_threads(threads);
    for (int i = 0; i < children; i++)
        if (fork() == 0) {
            touch();
            touch_in_threads(threads);
            _exit(0);
        }
    while (wait(NULL) > 0)
        ;
    return 0;
}
