/* SPDX-License-Identifier: MIT */
/* The program that acknowledges at the device, run by the kernel on packets made here. */
#include "config.h"
#include "test.h"
#include "vr/core/packet.h"
#include "vr/net/io_xdp.h"

#if HAVE_VR_XDP

#include "base/memory.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/udp.h>

#define FRAME_BYTES 2048
#define BODY_AT (sizeof(struct ethhdr) + sizeof(struct iphdr) + sizeof(struct udphdr))

struct lab {
    struct vr_cluster cluster;
    struct vr_xdp xdp;
    struct vr_expected expected;
    unsigned char frame[FRAME_BYTES], answer[FRAME_BYTES];
    uint32_t size, answer_size;
    uint64_t entry_checksum;
    unsigned delivered;
    uint64_t delivered_op;
};

static bool lab_init(struct lab *l, bool secret)
{
    struct error err = {0};
    *l = (struct lab){
        .expected = {
            .view = 3, .op = 7, .last_op = 100, .parent = 0x1234, .commit = 6, .primary = 0}};
    l->cluster.config = (struct vr_config){
        .cluster = 9, .replica_count = 3, .batch_bytes = 8192, .in_memory = true};
    l->cluster.key.keys =
        vr_keys_same(secret ? vr_key_secret(9, "open sesame", 11) : vr_key_public(9));
    for (unsigned i = 0; i < 3; i++)
        l->cluster.addresses[i].v4 = (struct sockaddr_in){.sin_family = AF_INET,
                                                          .sin_port = htons((uint16_t)(4701 + i)),
                                                          .sin_addr.s_addr = htonl(0x0a4d0001 + i)};
    if (vr_xdp_load(&l->xdp, &err) == 0)
        return true;
    test_skip(memory_printf("%s", err.message));
    return false;
}

/* A prepare of op from the primary, with so many bytes of data. */
static void make_prepare(struct lab *l, uint64_t view, uint64_t op, uint64_t parent, uint32_t data)
{
    unsigned char requests[1600] = {0};
    struct vr_request request = {.client = 5, .number = 1, .opcode = VR_OP_NULL, .size = data};
    memcpy(requests, &request, sizeof(request));
    struct vr_entry entry = {.op = op,
                             .view = view,
                             .parent = parent,
                             .count = 1,
                             .size = (uint32_t)vr_request_bytes(data)};
    entry.body_checksum = vr_hash(requests, entry.size);
    entry.checksum = l->entry_checksum = vr_entry_checksum(&entry);
    struct vr_header h = {
        .type = VR_PREPARE, .cluster = 9, .view = view, .op = op, .commit = 6, .parent = parent};
    vr_seal(&h, &l->cluster.key.keys.replica, &entry, sizeof(entry), requests, entry.size);
    uint32_t payload = (uint32_t)(sizeof(h) + sizeof(entry) + entry.size);
    struct ethhdr eth = {.h_dest = {1}, .h_source = {2}, .h_proto = htons(ETH_P_IP)};
    struct iphdr ip = {.version = 4,
                       .ihl = 5,
                       .ttl = 64,
                       .protocol = IPPROTO_UDP,
                       .tot_len = htons((uint16_t)(28 + payload)),
                       .saddr = l->cluster.addresses[0].v4.sin_addr.s_addr,
                       .daddr = l->cluster.addresses[1].v4.sin_addr.s_addr};
    struct udphdr udp = {.source = l->cluster.addresses[0].v4.sin_port,
                         .dest = l->cluster.addresses[1].v4.sin_port,
                         .len = htons((uint16_t)(8 + payload))};
    unsigned char *at = l->frame;
    at = (unsigned char *)memcpy(at, &eth, sizeof(eth)) + sizeof(eth);
    at = (unsigned char *)memcpy(at, &ip, sizeof(ip)) + sizeof(ip);
    at = (unsigned char *)memcpy(at, &udp, sizeof(udp)) + sizeof(udp);
    at = (unsigned char *)memcpy(at, &h, sizeof(h)) + sizeof(h);
    at = (unsigned char *)memcpy(at, &entry, sizeof(entry)) + sizeof(entry);
    memcpy(at, requests, entry.size);
    l->size = (uint32_t)BODY_AT + payload;
}

static unsigned run(struct lab *l)
{
    DECLARE_LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = l->frame, .data_size_in = l->size,
                        .data_out = l->answer, .data_size_out = FRAME_BYTES);
    if (bpf_prog_test_run_opts(vr_xdp_program_fd(&l->xdp), &options)) {
        test_fail(__FILE__, __LINE__, "the kernel does not run the program");
        return 0;
    }
    l->answer_size = options.data_size_out;
    return options.retval;
}

static void on_delivered(void *context, const void *bytes, size_t size)
{
    struct lab *l = context;
    struct vr_header h;
    CHECK_INT(vr_open_packet(bytes, size, &l->cluster.key.keys.replica, 9, &h), VR_DROP_NONE);
    CHECK_INT(h.type, VR_PREPARE);
    CHECK(vr_body_valid(&h, (const char *)bytes + sizeof(h)));
    CHECK(l->delivered == 0 || h.op == l->delivered_op + 1);
    l->delivered_op = h.op;
    l->delivered++;
}

static void open_gate(struct lab *l)
{
    vr_xdp_open_gate(&l->xdp, &l->cluster, 1, &l->expected);
}

static void acknowledge(bool secret)
{
    struct lab *l = memory_zalloc(1, sizeof(*l));
    struct vr_header h;
    if (lab_init(l, secret)) {
        open_gate(l);
        for (uint64_t op = 7; op < 10; op++) {
            make_prepare(l, 3, op, op == 7 ? 0x1234 : l->entry_checksum, (uint32_t)op * 40);
            CHECK_INT(run(l), XDP_TX);
            CHECK_INT(l->answer_size, BODY_AT + 64);
            CHECK_INT(vr_open_packet(l->answer + BODY_AT, 64, &l->cluster.key.keys.replica, 9, &h),
                      VR_DROP_NONE);
            CHECK(vr_body_valid(&h, NULL));
            CHECK_INT(h.type, VR_PREPARE_OK);
            CHECK(h.op == op && h.view == 3 && h.replica == 1 && h.commit == 6);
            CHECK(l->answer[0] == 2 && l->answer[6] == 1);
        }
        CHECK_INT(vr_xdp_close_gate(&l->xdp, on_delivered, l), 9);
        CHECK_INT(l->delivered, 3);
        CHECK_INT(vr_xdp_acknowledged(&l->xdp), 3);
        vr_xdp_close(&l->xdp);
    }
    free(l);
}

TEST(the_next_prepares_are_answered_and_kept)
{
    acknowledge(false);
}

TEST(the_same_with_a_key)
{
    acknowledge(true);
}

TEST(everything_else_goes_on_to_the_replica)
{
    struct lab *l = memory_zalloc(1, sizeof(*l));
    if (lab_init(l, false)) {
        make_prepare(l, 3, 7, 0x1234, 8);
        CHECK_INT(run(l), XDP_PASS); /* closed */
        open_gate(l);
        for (unsigned bit = 0; bit < 8 * (l->size - BODY_AT); bit += 7) {
            unsigned char *byte = &l->frame[BODY_AT + bit / 8];
            *byte ^= (unsigned char)(1u << bit % 8);
            CHECK_INT(run(l), XDP_PASS); /* damaged */
            *byte ^= (unsigned char)(1u << bit % 8);
        }
        l->frame[BODY_AT - 8]++; /* from another port */
        CHECK_INT(run(l), XDP_PASS);
        make_prepare(l, 2, 7, 0x1234, 8); /* of an older view */
        CHECK_INT(run(l), XDP_PASS);
        make_prepare(l, 4, 7, 0x1234, 8);
        CHECK_INT(run(l), XDP_PASS);
        make_prepare(l, 3, 8, 0x1234, 8); /* one is missing */
        CHECK_INT(run(l), XDP_PASS);
        make_prepare(l, 3, 7, 0x4321, 8); /* behind another log */
        CHECK_INT(run(l), XDP_PASS);
        make_prepare(l, 3, 7, 0x1234, 1500); /* larger than a slot */
        CHECK_INT(run(l), XDP_PASS);
        CHECK_INT(vr_xdp_close_gate(&l->xdp, on_delivered, l), 0);
        make_prepare(l, 3, 7, 0x1234, 8);
        CHECK_INT(run(l), XDP_PASS); /* closed again */
        CHECK_INT(l->delivered, 0);
        vr_xdp_close(&l->xdp);
    }
    free(l);
}

TEST(one_opening_promises_a_bounded_number)
{
    struct lab *l = memory_zalloc(1, sizeof(*l));
    if (lab_init(l, false)) {
        unsigned promised = 0;
        uint64_t op = 7;
        l->entry_checksum = 0x1234;
        open_gate(l);
        for (make_prepare(l, 3, op, l->entry_checksum, 8); run(l) == XDP_TX && promised < 100;
             make_prepare(l, 3, op, l->entry_checksum, 8)) {
            promised++;
            op++;
        }
        CHECK(promised > 0 && promised <= VR_XDP_BURST);
        CHECK_INT(vr_xdp_close_gate(&l->xdp, on_delivered, l), op - 1);
        CHECK_INT(l->delivered, promised);
        vr_xdp_close(&l->xdp);
    }
    free(l);
}

#else

TEST(the_program_is_not_built)
{
    test_skip("built without clang, bpftool or libbpf");
}

#endif
