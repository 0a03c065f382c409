/* SPDX-License-Identifier: MIT */
/* What the sides say to each other, and what strangers say. */
#include "control.h"
#include "link.h"
#include "test.h"
#include "wire_settings.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

static void pair(int ends[2])
{
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
}

static void unpair(int ends[2])
{
    close(ends[0]);
    close(ends[1]);
}

TEST(numbers_arrive)
{
    struct error err = {0};
    int ends[2];
    uint64_t sent[3] = {1, UINT64_MAX, 77}, got[3] = {0};
    pair(ends);
    CHECK_INT(control_send_numbers(ends[0], CONTROL_MARK, sent, 3, &err), 0);
    CHECK_INT(control_expect_numbers(ends[1], CONTROL_MARK, got, 3, 1000, &err), 0);
    CHECK(memcmp(sent, got, sizeof(sent)) == 0);
    unpair(ends);
}

TEST(a_failure_is_told_in_words)
{
    struct error err = {0};
    int ends[2];
    pair(ends);
    CHECK_INT(control_send(ends[0], CONTROL_FAILED, "no such thing", 13, &err), 0);
    CHECK_INT(control_expect(ends[1], CONTROL_GO, NULL, 0, 1000, &err), -ECANCELED);
    CHECK_STR(err.message, "no such thing");
    unpair(ends);
}

TEST(what_is_out_of_turn_or_of_another_length_is_refused)
{
    struct error err = {0};
    int ends[2];
    uint64_t number = 1, two[2];
    pair(ends);
    CHECK_INT(control_send(ends[0], CONTROL_STOP, NULL, 0, &err), 0);
    CHECK_INT(control_expect(ends[1], CONTROL_GO, NULL, 0, 1000, &err), -EPROTO);
    CHECK_INT(control_send_numbers(ends[0], CONTROL_HELLO, &number, 1, &err), 0);
    CHECK_INT(control_expect_numbers(ends[1], CONTROL_HELLO, two, 2, 1000, &err), -EPROTO);
    unpair(ends);
}

TEST(strangers_the_silent_and_the_gone)
{
    struct error err = {0};
    struct control_message m;
    int ends[2];
    pair(ends);
    CHECK_INT(control_receive(ends[1], &m, 10, &err), -ETIMEDOUT);
    CHECK_INT(write(ends[0], "GET / HTTP/1.1", 14), 14);
    CHECK_INT(control_receive(ends[1], &m, 1000, &err), -EPROTO);
    unpair(ends);
    pair(ends);
    CHECK_INT(write(ends[0], "MOVE", 4), 4);
    close(ends[0]);
    CHECK_INT(control_receive(ends[1], &m, 1000, &err), -EPIPE);
    close(ends[1]);
}

TEST(settings_travel_and_are_checked)
{
    struct error err = {0};
    struct settings s, got;
    struct wire_names names;
    int ends[2];
    settings_defaults(&s);
    s.variant_name = "sendmsg";
    s.receive_name = "recv";
    s.threads = 5;
    s.size = 999;
    s.verify = true;
    CHECK_INT(settings_check(&s, &err), 0);
    pair(ends);
    CHECK_INT(wire_settings_send(ends[0], &s, &err), 0);
    CHECK_INT(wire_settings_receive(ends[1], &got, &names, &err), 0);
    CHECK_INT(got.threads, 5);
    CHECK_INT(got.size, 999);
    CHECK(got.verify);
    CHECK_STR(got.send->name, "sendmsg");
    CHECK_STR(got.receive->name, "recv");
    settings_done(&got);
    s.threads = 1000000;
    CHECK_INT(wire_settings_send(ends[0], &s, &err), 0);
    CHECK_INT(wire_settings_receive(ends[1], &got, &names, &err), -EINVAL);
    unpair(ends);
    settings_done(&s);
}

TEST(addresses)
{
    struct error err = {0};
    struct endpoint e;
    CHECK_INT(endpoint_parse("127.0.0.1:5300", false, &e, &err), 0);
    CHECK_INT(endpoint_port(&e), 5300);
    endpoint_set_port(&e, 80);
    CHECK_INT(endpoint_port(&e), 80);
    CHECK_INT(endpoint_parse("5300", true, &e, &err), 0);
    CHECK_INT(endpoint_port(&e), 5300);
    CHECK_INT(endpoint_parse("[::1]:99", false, &e, &err), 0);
    CHECK_INT(e.address.ss_family, AF_INET6);
    CHECK_INT(endpoint_port(&e), 99);
    CHECK_INT(endpoint_parse("localhost", false, &e, &err), -EINVAL);
    CHECK_INT(endpoint_parse("127.0.0.1:notaport", false, &e, &err), -EINVAL);
}
