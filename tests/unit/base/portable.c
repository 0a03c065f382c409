/* SPDX-License-Identifier: MIT */
#include "base/portable.h"
#include "base/error.h"
#include "base/process.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

TEST(errors_and_signals_have_their_names)
{
    CHECK_STR(errno_name(ENOENT), "ENOENT");
    CHECK_STR(errno_name(EAGAIN), "EAGAIN");
    CHECK_STR(signal_name(SIGTERM), "TERM");
    CHECK_STR(signal_name(SIGSYS), "SYS");
    CHECK(!errno_name(0));
    CHECK(!errno_name(-1));
    CHECK(!errno_name(4000));
    CHECK(!signal_name(0));
    CHECK(!signal_name(SIGRTMAX));
}

#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 32)
TEST(names_are_the_c_librarys)
{
    for (int code = 1; code < 200; code++)
        if (strerrorname_np(code) || errno_name(code))
            CHECK_STR(errno_name(code), strerrorname_np(code));
    for (int number = 1; number < 64; number++)
        if (sigabbrev_np(number) || signal_name(number))
            CHECK_STR(signal_name(number), sigabbrev_np(number));
}
#endif
#endif

static int is_self(const struct dirent *e)
{
    return !strcmp(e->d_name, "self");
}

TEST(a_folder_in_a_folder_is_listed)
{
    struct dirent **list;
    int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int count = scan_folder(fd, "proc", &list, is_self, alphasort);
    CHECK_INT(count, 1);
    CHECK_STR(list[0]->d_name, "self");
    free(list[0]);
    free(list);
    CHECK_INT(scan_folder(fd, "no-such-folder", &list, is_self, alphasort), -1);
    close(fd);
}

TEST(a_range_of_descriptors_is_closed)
{
    int low = fcntl(0, F_DUPFD_CLOEXEC, 500), high = fcntl(0, F_DUPFD_CLOEXEC, 510);
    int beyond = fcntl(0, F_DUPFD_CLOEXEC, high + 1);
    close_fds((unsigned)low, (unsigned)high);
    bool has_call = fcntl(low, F_GETFD) < 0;
    if (!has_call) {
        test_skip("this kernel has no close_range");
        return;
    }
    CHECK(fcntl(high, F_GETFD) < 0);
    CHECK(fcntl(beyond, F_GETFD) >= 0);
    close(beyond);
}
