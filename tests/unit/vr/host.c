/* SPDX-License-Identifier: MIT */
/* Replies reach who asked, and only who asked is answered: a client's side of the protocol, and a
 * replica as a process with clients at sockets. */
#include "vr/host/host.h"
#include "base/clock.h"
#include "base/memory.h"
#include "test.h"
#include "vr/client/caller.h"
#include "vr/client/client.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

TEST(a_caller_understands_answers_to_its_request_only)
{
    struct vr_caller c;
    struct vr_reply reply;
    const void *data;
    uint64_t session = 77;
    unsigned char body[sizeof(reply) + sizeof(session)];
    vr_caller_init(&c, 1, 5);
    vr_caller_register(&c);
    reply = (struct vr_reply){VR_OK, sizeof(session), session};
    memcpy(body, &reply, sizeof(reply));
    memcpy(body + sizeof(reply), &session, sizeof(session));
    struct vr_header h = {.type = VR_REPLY, .client = 6, .replica = 2};
    CHECK_INT(vr_caller_receive(&c, &h, body, &reply, &data), VR_ANSWER_NONE);
    h.client = 5;
    CHECK_INT(vr_caller_receive(&c, &h, body, &reply, &data), VR_ANSWER_REGISTERED);
    CHECK_INT(c.session, 77);
    CHECK_INT(c.primary, 2);
    vr_caller_request(&c, VR_OP_NULL, "abc", 3);
    CHECK_INT(c.message.first_size, sizeof(struct vr_request) + 8);
    CHECK_INT(vr_caller_receive(&c, &h, body, &reply, &data), VR_ANSWER_NONE); /* number 0: late */
    h.number = 1;
    struct vr_reply other = {VR_OK, sizeof(session), 76}; /* of an earlier session */
    CHECK_INT(vr_caller_receive(&c, &h, &other, &reply, &data), VR_ANSWER_NONE);
    CHECK_INT(vr_caller_receive(&c, &h, body, &reply, &data), VR_ANSWER_REPLY);
    CHECK_INT(vr_caller_receive(&c, &h, body, &reply, &data), VR_ANSWER_NONE); /* twice */
    vr_caller_request(&c, VR_OP_NULL, NULL, 0);
    h.type = VR_EVICTION;
    h.op = 76;
    CHECK_INT(vr_caller_receive(&c, &h, NULL, &reply, &data), VR_ANSWER_NONE);
    h.op = 77;
    CHECK_INT(vr_caller_receive(&c, &h, NULL, &reply, &data), VR_ANSWER_EVICTED);
    CHECK(!c.registered);
}

/* One replica in memory, in a thread, and two sockets of which it knows nothing. */
struct lab {
    char folder[32];
    struct vr_cluster cluster;
    struct vr_host host;
    volatile sig_atomic_t stop;
    pthread_t thread;
    struct vr_packets packets;
    struct vr_caller caller;
    int sockets[2], from;
};

static void *run_host(void *context)
{
    struct lab *l = context;
    struct error err = {0};
    CHECK_INT(vr_host_run(&l->host, &l->stop, &err), 0);
    return NULL;
}

static int bound_socket(union vr_address *ret_address)
{
    union vr_address any = vr_address_any(AF_INET, true);
    struct error err = {0};
    socklen_t size = sizeof(*ret_address);
    int fd = vr_socket_open(&any, &err);
    CHECK(fd >= 0 && getsockname(fd, &ret_address->any, &size) == 0);
    return fd;
}

static void lab_open(struct lab *l)
{
    union vr_address address, other;
    struct error err = {0};
    *l = (struct lab){.folder = "/tmp/assay-vr-unit-XXXXXX"};
    CHECK(mkdtemp(l->folder) != NULL);
    int fd = bound_socket(&address);
    CLEANUP(memory_freep)
    char *text = memory_printf(
        "cluster 9\nopen yes\nreplica 127.0.0.1:%u\nin-memory yes\ndata %s\nslots 64\n"
        "checkpoint-every 16\nkeys 8\nsessions 8\nbatch-bytes 4096\n",
        ntohs(address.v4.sin_port), l->folder);
    CHECK_INT(vr_cluster_parse(&l->cluster, text, "lab", &err), 0);
    CLEANUP(memory_freep) char *file = vr_cluster_file(&l->cluster, 0);
    CHECK_INT(vr_disk_format(file, &l->cluster.config, &err), 0);
    CHECK_INT(vr_host_open(&l->host, &l->cluster, 0, vr_io_find("epoll", &err), fd, &err), 0);
    unlink(file);
    rmdir(l->folder);
    l->sockets[0] = bound_socket(&other);
    l->sockets[1] = bound_socket(&other);
    struct vr_config config = l->cluster.config;
    config.index = VR_TO_CLIENT;
    vr_packets_init(&l->packets, &config, &l->cluster.key.keys, l->cluster.datagram_bytes, 1);
    vr_caller_init(&l->caller, config.cluster, 5);
    pthread_create(&l->thread, NULL, run_host, l);
}

static void lab_close(struct lab *l)
{
    l->stop = 1;
    pthread_join(l->thread, NULL);
    vr_host_close(&l->host);
    vr_packets_done(&l->packets);
    close(l->sockets[0]);
    close(l->sockets[1]);
    vr_cluster_done(&l->cluster);
}

static void send_datagram(void *context, uint8_t to, uint64_t client, const void *bytes,
                          size_t size)
{
    struct lab *l = context;
    const union vr_address *address = &l->cluster.addresses[0];
    (void)to, (void)client;
    CHECK(sendto(l->sockets[l->from], bytes, size, 0, &address->any, vr_address_size(address)) > 0);
}

/* Says the caller's request from one of the sockets until a datagram comes to either; the socket
 * that it came to, with what the caller makes of it. */
static int ask(struct lab *l, int from, enum vr_answer *ret_answer)
{
    uint64_t end_ns = clock_now_ns() + 20 * NS_PER_S;
    l->from = from;
    while (clock_now_ns() < end_ns) {
        struct pollfd ready[2] = {{l->sockets[0], POLLIN, 0}, {l->sockets[1], POLLIN, 0}};
        vr_packets_send(&l->packets, &l->caller.message, l->packets.own, send_datagram, l);
        poll(ready, 2, 500);
        for (int i = 0; i < 2; i++) {
            unsigned char bytes[2048];
            struct vr_header header;
            struct vr_reply reply;
            const void *body, *data;
            ssize_t size = recv(l->sockets[i], bytes, sizeof(bytes), MSG_DONTWAIT);
            if (size <= 0 || !vr_packets_receive(&l->packets, bytes, (size_t)size, &header, &body))
                continue;
            *ret_answer = vr_caller_receive(&l->caller, &header, body, &reply, &data);
            return i;
        }
    }
    return -1;
}

/* A client at the first socket that has a session, and a request to say. */
static struct lab *open_with_request(void)
{
    struct lab *l = memory_zalloc(1, sizeof(*l));
    enum vr_answer answer = VR_ANSWER_NONE;
    lab_open(l);
    vr_caller_register(&l->caller);
    while (answer != VR_ANSWER_REGISTERED && ask(l, 0, &answer) == 0)
        ;
    CHECK_INT(answer, VR_ANSWER_REGISTERED);
    vr_caller_request(&l->caller, VR_OP_NULL, "abc", 3);
    return l;
}

/* A request that somebody caught is said again from elsewhere: its reply goes to the client. */
TEST(a_replayed_request_does_not_turn_replies_away)
{
    struct lab *l = open_with_request();
    enum vr_answer answer = VR_ANSWER_NONE;
    while (answer != VR_ANSWER_REPLY && ask(l, 0, &answer) == 0)
        ;
    CHECK_INT(answer, VR_ANSWER_REPLY);
    CHECK_INT(ask(l, 1, &answer), 0);
    lab_close(l);
    free(l);
}

/* Who caught it may also be the first: then the client gets its reply all the same. */
TEST(a_replay_that_comes_first_does_not_turn_replies_away)
{
    struct lab *l = open_with_request();
    enum vr_answer answer = VR_ANSWER_NONE;
    CHECK_INT(ask(l, 1, &answer), 1);
    bool came = false;
    for (int i = 0; i < 20 && !came; i++)
        came = ask(l, 0, &answer) == 0;
    CHECK(came);
    lab_close(l);
    free(l);
}

/* What no entry of the log can hold is refused by words at once, at the client. */
TEST(a_request_that_is_too_large_is_refused_before_it_is_sent)
{
    static const char data[VR_CALLER_DATA_MAX];
    struct lab *l = memory_zalloc(1, sizeof(*l));
    struct vr_client *client;
    struct error err = {0};
    enum vr_result outcome = VR_INVALID;
    lab_open(l);
    CHECK_INT(vr_client_open_cluster(&client, &l->cluster, &err), 0);
    vr_client_set_timeout(client, 20 * NS_PER_S);
    uint32_t most = 4096 - sizeof(struct vr_request);
    CHECK_INT(vr_client_call(client, VR_OP_NULL, data, most + 1, &outcome, NULL, NULL, &err),
              -E2BIG);
    CHECK_CONTAINS(err.message, "batch-bytes");
    CHECK_INT(vr_client_call(client, VR_OP_NULL, data, most, &outcome, NULL, NULL, &err), 0);
    CHECK_INT(outcome, VR_OK);
    vr_client_close(client);
    lab_close(l);
    free(l);
}

/* ---- a replica that does not answer at once */

struct mute {
    int socket;
    struct vr_packets packets;
    unsigned char first[512]; /* of the request */
    size_t first_size;
    unsigned heard;
    bool same;
    volatile bool stop;
};

struct mute_answer {
    struct mute *mute;
    union vr_address to;
};

static void send_answer(void *context, uint8_t to, uint64_t client, const void *bytes, size_t size)
{
    struct mute_answer *a = context;
    (void)to, (void)client;
    sendto(a->mute->socket, bytes, size, 0, &a->to.any, vr_address_size(&a->to));
}

static void mute_reply(struct mute *m, const struct vr_header *h, const union vr_address *to)
{
    uint64_t session = 77;
    bool registers = h->number == 0;
    struct vr_reply reply = {
        .status = VR_OK, .size = registers ? sizeof(session) : 0, .session = session};
    struct vr_message answer = {
        .to = VR_TO_CLIENT,
        .header = {.type = VR_REPLY, .cluster = 9, .client = h->client, .number = h->number},
        .first = &reply,
        .first_size = sizeof(reply),
        .second = &session,
        .second_size = registers ? sizeof(session) : 0};
    struct mute_answer a = {m, *to};
    vr_packets_send(&m->packets, &answer, m->packets.from, send_answer, &a);
}

static void mute_hears(struct mute *m, const unsigned char *bytes, size_t size,
                       const union vr_address *from)
{
    struct vr_header h;
    const void *body;
    if (!vr_packets_receive(&m->packets, bytes, size, &h, &body) || h.type != VR_REQUEST)
        return;
    struct vr_request request;
    memcpy(&request, body, sizeof(request));
    if (request.opcode == VR_OP_REGISTER) {
        mute_reply(m, &h, from);
        return;
    }
    m->heard++;
    if (m->heard == 1) {
        memcpy(m->first, bytes, size);
        m->first_size = size;
        return; /* as if it were lost */
    }
    if (m->heard == 2)
        m->same = size == m->first_size && memcmp(bytes, m->first, size) == 0;
    mute_reply(m, &h, from);
}

static void *be_mute(void *context)
{
    struct mute *m = context;
    while (!m->stop) {
        unsigned char bytes[512];
        struct pollfd ready = {m->socket, POLLIN, 0};
        union vr_address from;
        socklen_t length = sizeof(from);
        poll(&ready, 1, 50);
        ssize_t size = recvfrom(m->socket, bytes, sizeof(bytes), MSG_DONTWAIT, &from.any, &length);
        if (size > 0)
            mute_hears(m, bytes, (size_t)size, &from);
    }
    return NULL;
}

/* The library's request is sent again, to the last byte: with another number it would be another
 * operation, and run twice. */
TEST(a_request_is_sent_again_as_it_was)
{
    union vr_address any = vr_address_any(AF_INET, true), at;
    struct mute *m = memory_zalloc(1, sizeof(*m));
    struct error err = {0};
    struct vr_cluster cluster;
    struct vr_client *client;
    enum vr_result outcome = VR_INVALID;
    socklen_t length = sizeof(at);
    pthread_t thread;
    m->socket = vr_socket_open(&any, &err);
    getsockname(m->socket, &at.any, &length);
    CLEANUP(memory_freep)
    char *text = memory_printf("cluster 9\nopen yes\nreplica 127.0.0.1:%u\n",
                               (unsigned)ntohs(at.v4.sin_port));
    CHECK_INT(vr_cluster_parse(&cluster, text, "mute", &err), 0);
    vr_packets_init(&m->packets, &cluster.config, &cluster.key.keys, cluster.datagram_bytes, 1);
    pthread_create(&thread, NULL, be_mute, m);
    CHECK_INT(vr_client_open_cluster(&client, &cluster, &err), 0);
    vr_client_set_timeout(client, 20 * NS_PER_S);
    vr_client_call(client, VR_OP_NULL, "abc", 3, &outcome, NULL, NULL, &err);
    CHECK_INT(outcome, VR_OK);
    m->stop = true;
    pthread_join(thread, NULL);
    CHECK(m->heard >= 2);
    CHECK(m->same);
    vr_client_close(client);
    vr_packets_done(&m->packets);
    vr_cluster_done(&cluster);
    close(m->socket);
    free(m);
}
