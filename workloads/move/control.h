/* SPDX-License-Identifier: MIT */
/*
 * What the two sides tell each other, over a socketpair or, between hosts, a TCP connection:
 *
 *   sender                      receiver
 *   HELLO pid              →  ← HELLO pid
 *   SETTINGS (hosts only)  →
 *   VETH (veth only)       →
 *                             ← READY nonce, ports
 *   (connects)             →    (accepts, opens)
 *   CONNECTED              →
 *                             ← GO
 *                             ← MARK 0…3, each at a moment of the receiver's clock
 *                             ← STOP
 *   RESULT                 →
 *                             ← RESULT
 *
 * Either may send FAILED with words instead and is then gone.
 */
#ifndef ASSAY_MOVE_CONTROL_H
#define ASSAY_MOVE_CONTROL_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum control_kind {
    CONTROL_HELLO = 1,
    CONTROL_SETTINGS,
    CONTROL_VETH,
    CONTROL_READY,
    CONTROL_CONNECTED,
    CONTROL_GO,
    CONTROL_MARK,
    CONTROL_STOP,
    CONTROL_RESULT,
    CONTROL_FAILED,
};

enum { CONTROL_PAYLOAD_MAX = 8192 };

struct control_message {
    enum control_kind kind;
    uint32_t length;
    unsigned char payload[CONTROL_PAYLOAD_MAX];
};

int control_send(int fd, enum control_kind kind, const void *payload, size_t length,
                 struct error *err);
/* The next message, whatever it is.  -EPIPE when the other side is gone, -ETIMEDOUT. */
int control_receive(int fd, struct control_message *ret_message, int timeout_ms, struct error *err);
/* The next message, which must be of the kind and hold `length` bytes; FAILED becomes an error. */
int control_expect(int fd, enum control_kind kind, void *ret_payload, size_t length, int timeout_ms,
                   struct error *err);
/* The words of a FAILED message as an error. */
int control_failure(const struct control_message *message, struct error *err);

/* Numbers as they travel. */
int control_send_numbers(int fd, enum control_kind kind, const uint64_t *numbers, size_t count,
                         struct error *err);
int control_expect_numbers(int fd, enum control_kind kind, uint64_t *ret_numbers, size_t count,
                           int timeout_ms, struct error *err);

#endif
