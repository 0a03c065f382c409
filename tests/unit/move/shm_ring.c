/* SPDX-License-Identifier: MIT */
#include "shm_ring.h"
#include "test.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RING_BYTES = 4096, LIMIT_MS = 20000 };

static void *shared_for(size_t message_bytes)
{
    return mmap(NULL, shm_ring_shared_bytes(RING_BYTES, message_bytes), PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void unmap(void *shared, size_t message_bytes)
{
    munmap(shared, shm_ring_shared_bytes(RING_BYTES, message_bytes));
}

TEST(what_is_not_published_is_not_seen)
{
    void *shared = shared_for(8);
    struct shm_ring_end writer, reader;
    shm_ring_open(&writer, shared, RING_BYTES, 8, true);
    shm_ring_open(&reader, shared, RING_BYTES, 8, false);
    CHECK(shm_ring_peek(&reader, 1) == NULL);
    memcpy(shm_ring_claim(&writer, 1), "message", 8);
    shm_ring_wrote(&writer);
    CHECK(shm_ring_peek(&reader, 1) == NULL);
    shm_ring_publish(&writer);
    const char *found = shm_ring_peek(&reader, 1);
    CHECK(found != NULL);
    if (found)
        CHECK_STR(found, "message");
    unmap(shared, 8);
}

TEST(a_full_ring_has_room_again_when_messages_are_taken)
{
    void *shared = shared_for(1024);
    struct shm_ring_end writer, reader;
    shm_ring_open(&writer, shared, RING_BYTES, 1024, true);
    shm_ring_open(&reader, shared, RING_BYTES, 1024, false);
    for (int i = 0; i < 4; i++) {
        CHECK(shm_ring_claim(&writer, 1) != NULL);
        shm_ring_wrote(&writer);
    }
    CHECK(shm_ring_claim(&writer, 1) == NULL);
    CHECK(!shm_ring_drained(&writer, 1));
    /* The failed claim published: nobody waits for ever. */
    for (int i = 0; i < 4; i++) {
        CHECK(shm_ring_peek(&reader, 1) != NULL);
        shm_ring_took(&reader);
    }
    CHECK(shm_ring_drained(&writer, 1));
    CHECK(shm_ring_claim(&writer, 1) != NULL);
    unmap(shared, 1024);
}

TEST(a_closed_ring_gives_what_it_holds_and_then_nothing)
{
    void *shared = shared_for(8);
    struct shm_ring_end writer, reader;
    shm_ring_open(&writer, shared, RING_BYTES, 8, true);
    shm_ring_open(&reader, shared, RING_BYTES, 8, false);
    shm_ring_claim(&writer, 1);
    shm_ring_wrote(&writer);
    shm_ring_publish(&writer);
    shm_ring_close(&writer);
    CHECK(shm_ring_is_closed(&reader));
    CHECK(shm_ring_peek(&reader, LIMIT_MS) != NULL);
    shm_ring_took(&reader);
    CHECK(shm_ring_peek(&reader, LIMIT_MS) == NULL);
    unmap(shared, 8);
}

/* Numbers in order through a small ring, by two processes. */
static void count_through(size_t message_bytes, uint64_t count, bool on_one_processor)
{
    void *shared = shared_for(message_bytes);
    if (on_one_processor) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET((size_t)sched_getcpu(), &one);
        CHECK_INT(sched_setaffinity(0, sizeof(one), &one), 0);
    }
    pid_t pid = fork();
    if (pid == 0) {
        struct shm_ring_end writer;
        shm_ring_open(&writer, shared, RING_BYTES, message_bytes, true);
        for (uint64_t i = 0; i < count; i++) {
            uint64_t *to = shm_ring_claim(&writer, LIMIT_MS);
            if (!to)
                _exit(1);
            to[0] = i;
            to[message_bytes / 8 - 1] = ~i;
            shm_ring_wrote(&writer);
            if (i % 7 == 0)
                shm_ring_publish(&writer);
        }
        shm_ring_flush(&writer);
        shm_ring_close(&writer);
        _exit(0);
    }
    struct shm_ring_end reader;
    shm_ring_open(&reader, shared, RING_BYTES, message_bytes, false);
    uint64_t seen = 0;
    const uint64_t *from;
    while ((from = shm_ring_peek(&reader, LIMIT_MS))) {
        if (from[0] != seen || from[message_bytes / 8 - 1] != ~seen)
            break;
        seen++;
        shm_ring_took(&reader);
    }
    shm_ring_close(&reader);
    int status = -1;
    waitpid(pid, &status, 0);
    CHECK_INT(seen, count);
    CHECK_INT(status, 0);
    unmap(shared, message_bytes);
}

TEST(messages_arrive_in_order_and_whole)
{
    count_through(16, 200000, false);
    count_through(1000, 20000, false);
    count_through(8192, 2000, false);
}

TEST(two_ends_on_one_processor_do_not_wait_for_ever)
{
    cpu_set_t before;
    sched_getaffinity(0, sizeof(before), &before);
    count_through(16, 200000, true);
    count_through(8192, 2000, true);
    sched_setaffinity(0, sizeof(before), &before);
}
