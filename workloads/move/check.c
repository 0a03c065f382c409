/* SPDX-License-Identifier: MIT */
/* Verifying what arrives: numbers in order, checksums right, nothing in between. */
#include "check.h"
#include "base/memory.h"

#include <errno.h>
#include <string.h>

struct check *check_new(const struct link *l, bool verify)
{
    struct check *c = memory_zalloc(1, sizeof(*c));
    c->verify = verify;
    c->datagrams = l->transport == TRANSPORT_UDP;
    c->partial = memory_alloc(l->message_bytes);
    return c;
}

void check_free(struct check *c)
{
    if (c)
        free(c->partial);
    free(c);
}

static int check_message(struct check *c, const struct link *l, const char *message,
                         struct error *err)
{
    uint64_t sequence, sum;
    memcpy(&sequence, message, 8);
    memcpy(&sum, message + 8, 8);
    if (sum != message_checksum(message, l->message_bytes))
        return error_set(
            err, -EBADMSG,
            "connection %u: message %llu arrived altered (its number says %llu): the buffer was "
            "overwritten while the kernel was still reading it, or was damaged",
            l->index, (unsigned long long)c->expected, (unsigned long long)sequence);
    bool gap = c->datagrams && sequence > c->expected;
    if (sequence != c->expected && !gap)
        return error_set(err, -EBADMSG,
                         "connection %u: message %llu arrived where %llu was expected: a buffer "
                         "was reused too early, or messages were reordered",
                         l->index, (unsigned long long)sequence, (unsigned long long)c->expected);
    if (gap)
        count_add(&l->counts->lost, sequence - c->expected);
    c->expected = sequence + 1;
    c->verified++;
    return 0;
}

/* A stream: messages lie anywhere in it. */
static int check_stream(struct check *c, const struct link *l, const char *data, size_t bytes,
                        struct error *err)
{
    while (bytes) {
        size_t take = l->message_bytes - c->partial_bytes;
        if (take > bytes)
            take = bytes;
        const char *message = data;
        if (take < l->message_bytes) {
            memcpy(c->partial + c->partial_bytes, data, take);
            c->partial_bytes += take;
            message = c->partial;
        }
        data += take;
        bytes -= take;
        if (message == c->partial && c->partial_bytes < l->message_bytes)
            return 0;
        c->partial_bytes = 0;
        int r = check_message(c, l, message, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int check_bytes(struct check *c, struct link *l, const void *data, size_t bytes, struct error *err)
{
    if (!c->verify) {
        const unsigned char *at = data;
        if (!c->view) {
            c->view = at;
            c->view_bytes = bytes;
        }
        for (size_t i = 0; i < bytes; i++)
            c->painted[at[i]]++;
        return 0;
    }
    if (!c->datagrams)
        return check_stream(c, l, data, bytes, err);
    if (bytes != l->message_bytes)
        return error_set(err, -EBADMSG, "connection %u: a datagram of %zu bytes, not %zu", l->index,
                         bytes, l->message_bytes);
    return check_message(c, l, data, err);
}
