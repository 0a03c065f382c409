/* SPDX-License-Identifier: MIT */
/* Fuzzes the packet decoder and the core behind it: checksums are made right, so that whatever a
 * member of the cluster might send reaches every reader of a body. */
#include "base/memory.h"
#include "packet.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct vr_config config = {.cluster = 1, .replica_count = 3, .batch_bytes = 1024};
    struct vr_packets p;
    struct vr_header h;
    const void *body;
    vr_packets_init(&p, &config, vr_key_public(1), 1400, 1);
    vr_packets_receive(&p, data, size, &h, &body);
    unsigned char packet[1400];
    while (size > sizeof(h)) {
        size_t length = size < sizeof(packet) ? size : sizeof(packet);
        memcpy(&h, data, sizeof(h));
        h.cluster = 1;
        h.type %= VR_TYPE_END;
        memcpy(packet + sizeof(h), data + sizeof(h), length - sizeof(h));
        vr_seal(&h, &p.key, packet + sizeof(h), length - sizeof(h), NULL, 0);
        memcpy(packet, &h, sizeof(h));
        if (vr_packets_receive(&p, packet, length, &h, &body))
            assert(h.type != VR_FRAGMENT && vr_body_valid(&h, body));
        data += length;
        size -= length;
    }
    vr_packets_done(&p);
    return 0;
}
