/* SPDX-License-Identifier: MIT */
/* A thread holds a lock for 3 ms at a time, twenty times; another wants it all the while. */
#include <pthread.h>
#include <stddef.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t start;

static void sleep_us(long us)
{
    struct timespec t = {0, us * 1000};
    nanosleep(&t, NULL);
}

static void *hold(void *unused)
{
    pthread_setname_np(pthread_self(), "holder");
    pthread_barrier_wait(&start);
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&mutex);
        sleep_us(3000);
        pthread_mutex_unlock(&mutex);
        sleep_us(100);
    }
    return unused;
}

__attribute__((noinline)) static void want_it(void)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

static void *want(void *unused)
{
    pthread_setname_np(pthread_self(), "wanter");
    pthread_barrier_wait(&start);
    for (int i = 0; i < 20; i++) {
        want_it();
        sleep_us(500);
    }
    return unused;
}

int main(void)
{
    pthread_t holder, wanter;
    pthread_barrier_init(&start, NULL, 2);
    if (pthread_create(&holder, NULL, hold, NULL) || pthread_create(&wanter, NULL, want, NULL))
        return 1;
    pthread_join(holder, NULL);
    pthread_join(wanter, NULL);
    return 0;
}
