/* SPDX-License-Identifier: MIT */
/* Packets: what is let in, what is dropped and why, fragments in any order. */
#include "test.h"
#include "vr/core/packet.h"

#include <stdlib.h>

static const struct vr_config config = {.cluster = 9, .replica_count = 3, .batch_bytes = 8192};

static size_t status_packet(unsigned char *out, const struct vr_key *key, uint32_t cluster)
{
    struct vr_header h = {.type = VR_STATUS, .replica = VR_TO_CLIENT, .cluster = cluster};
    vr_seal(&h, key, NULL, 0, NULL, 0);
    memcpy(out, &h, sizeof(h));
    return sizeof(h);
}

TEST(siphash_gives_the_published_value)
{
    /* Appendix A of the SipHash paper: key 00..0f, input 00..0e, 2-4 rounds. */
    struct vr_key key = {{0x0706050403020100, 0x0f0e0d0c0b0a0908}, 2, 4};
    unsigned char input[15];
    for (unsigned i = 0; i < sizeof(input); i++)
        input[i] = (unsigned char)i;
    CHECK(vr_hash_keyed(&key, input, sizeof(input)) == 0xa129ca6149be45e5);
}

TEST(every_flipped_bit_is_noticed)
{
    struct vr_key key = vr_key_public(9);
    struct vr_request request = {.client = 5, .number = 1, .opcode = VR_OP_NULL, .size = 8};
    unsigned char body[sizeof(request) + 8] = {0}, packet[64 + sizeof(body)];
    memcpy(body, &request, sizeof(request));
    struct vr_header h = {.type = VR_REQUEST, .cluster = 9, .number = 1, .client = 5}, out;
    vr_seal(&h, &key, body, sizeof(body), NULL, 0);
    memcpy(packet, &h, 64);
    memcpy(packet + 64, body, sizeof(body));
    CHECK_INT(vr_open_packet(packet, sizeof(packet), &key, 9, &out), VR_DROP_NONE);
    CHECK(vr_body_valid(&out, packet + 64));
    for (unsigned bit = 0; bit < 8 * sizeof(packet); bit++) {
        packet[bit / 8] ^= (unsigned char)(1u << bit % 8);
        CHECK(vr_open_packet(packet, sizeof(packet), &key, 9, &out) != VR_DROP_NONE);
        packet[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
}

TEST(strangers_are_not_obeyed)
{
    unsigned char packet[64];
    struct vr_header h;
    struct vr_key ours = vr_key_secret(9, "open sesame", 11), theirs = vr_key_public(9);
    size_t size = status_packet(packet, &theirs, 9);
    CHECK_INT(vr_open_packet(packet, size, &ours, 9, &h), VR_DROP_CHECKSUM);
    size = status_packet(packet, &ours, 10);
    CHECK_INT(vr_open_packet(packet, size, &ours, 9, &h), VR_DROP_CLUSTER);
    size = status_packet(packet, &ours, 9);
    CHECK_INT(vr_open_packet(packet, size, &ours, 9, &h), VR_DROP_NONE);
    CHECK_INT(vr_open_packet(packet, size - 1, &ours, 9, &h), VR_DROP_SHORT);
    packet[2]++;
    CHECK_INT(vr_open_packet(packet, size, &ours, 9, &h), VR_DROP_VERSION);
}

TEST(forged_lengths_inside_a_batch_are_refused)
{
    struct vr_request request = {.client = 5, .size = 4};
    unsigned char batch[80] = {0};
    memcpy(batch, &request, sizeof(request));
    CHECK(vr_batch_valid(batch, 40, 1));
    CHECK(!vr_batch_valid(batch, 40, 2));
    CHECK(!vr_batch_valid(batch, 48, 1));
    request.size = UINT32_MAX;
    memcpy(batch, &request, sizeof(request));
    CHECK(!vr_batch_valid(batch, 80, 1));
}

struct pieces {
    unsigned char bytes[16][512];
    size_t sizes[16], count;
};

static void collect(void *context, uint8_t to, uint64_t client, const void *bytes, size_t size)
{
    struct pieces *p = context;
    (void)to;
    (void)client;
    memcpy(p->bytes[p->count], bytes, size);
    p->sizes[p->count++] = size;
}

TEST(fragments_meet_in_any_order)
{
    struct vr_packets from, to;
    struct vr_keys keys = vr_keys_same(vr_key_public(9));
    vr_packets_init(&from, &config, &keys, 512, 100);
    vr_packets_init(&to, &config, &keys, 512, 200);
    static unsigned char requests[3000];
    struct vr_request request = {.client = 1, .size = sizeof(requests) - sizeof(request)};
    memcpy(requests, &request, sizeof(request));
    struct vr_entry entry = {.op = 7, .view = 2, .size = sizeof(requests), .count = 1};
    entry.body_checksum = vr_hash(requests, sizeof(requests));
    entry.checksum = vr_entry_checksum(&entry);
    struct vr_message m = {.to = 1, .first = &entry, .second = requests};
    m.header = (struct vr_header){.type = VR_PREPARE, .cluster = 9, .view = 2, .op = 7};
    m.first_size = sizeof(entry);
    m.second_size = sizeof(requests);
    struct pieces pieces = {.count = 0};
    vr_packets_send(&from, &m, (struct vr_seal_choice){0}, collect, &pieces);
    CHECK(pieces.count > 5);
    struct vr_header h;
    const void *body;
    unsigned whole = 0;
    for (size_t i = 0; i < 2 * pieces.count; i++) { /* backwards, and each piece twice */
        size_t at = pieces.count - 1 - i / 2;
        if (!vr_packets_receive(&to, pieces.bytes[at], pieces.sizes[at], &h, &body))
            continue;
        whole++;
        CHECK_INT(h.type, VR_PREPARE);
        CHECK(memcmp((const char *)body + sizeof(entry), requests, sizeof(requests)) == 0);
    }
    CHECK_INT(whole, 1);
    vr_packets_done(&from);
    vr_packets_done(&to);
}
