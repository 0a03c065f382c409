/* SPDX-License-Identifier: MIT */
#include "tracepoints/waking.h"
#include "test.h"

#include <sys/syscall.h>

enum { HARDIRQ = 0x08, SOFTIRQ = 0x10, NEED_RESCHED = 0x04, NMI = 0x40 };

TEST(a_thread_that_no_interrupt_stopped_did_it)
{
    CHECK(waking_is_by_thread(7, 0, WAKING_NO_CALL));
    CHECK(waking_is_by_thread(7, NEED_RESCHED, SYS_futex));
}

TEST(an_interrupt_has_nothing_to_do_with_the_thread_it_stopped)
{
    CHECK(!waking_is_by_thread(7, HARDIRQ, SYS_write));
    CHECK(!waking_is_by_thread(7, NMI, SYS_write));
    CHECK(!waking_is_by_thread(7, HARDIRQ | SOFTIRQ, SYS_write));
    CHECK(!waking_is_by_thread(0, 0, WAKING_NO_CALL));
}

TEST(what_is_sent_over_loopback_arrives_in_a_softirq_of_the_sender)
{
    CHECK(waking_is_by_thread(7, SOFTIRQ, SYS_sendto));
    CHECK(!waking_is_by_thread(7, SOFTIRQ, SYS_getppid));
    CHECK(!waking_is_by_thread(7, SOFTIRQ, WAKING_NO_CALL));
}
