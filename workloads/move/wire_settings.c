/* SPDX-License-Identifier: MIT */
/* Settings between hosts: fixed fields, little-endian, names cut to their room. */
#include "wire_settings.h"
#include "control.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { NUMBERS = 12, VERSION = 1 };

struct wire {
    uint64_t numbers[NUMBERS];
    struct wire_names names;
};

int wire_settings_send(int fd, const struct settings *s, struct error *err)
{
    const uint64_t numbers[NUMBERS] = {
        VERSION,         s->size,       s->threads,   s->fields, s->batch,     s->receive_bytes,
        s->buffer_bytes, s->seconds_ns, s->warmup_ns, s->verify, s->transport, s->no_trace};
    struct wire w = {0};
    for (size_t i = 0; i < NUMBERS; i++)
        w.numbers[i] = htole64(numbers[i]);
    snprintf(w.names.send, sizeof(w.names.send), "%s", s->send->name);
    snprintf(w.names.receive, sizeof(w.names.receive), "%s", s->receive->name);
    snprintf(w.names.cc, sizeof(w.names.cc), "%s", s->cc_fair ? "fair" : s->cc ? s->cc : "");
    return control_send(fd, CONTROL_SETTINGS, &w, sizeof(w), err);
}

int wire_settings_receive(int fd, struct settings *ret, struct wire_names *names, struct error *err)
{
    struct wire w;
    int r = control_expect(fd, CONTROL_SETTINGS, &w, sizeof(w), 10000, err);
    if (r < 0)
        return r;
    uint64_t n[NUMBERS];
    for (size_t i = 0; i < NUMBERS; i++)
        n[i] = le64toh(w.numbers[i]);
    if (n[0] != VERSION)
        return error_set(err, -EPROTO, "the sender is a different version of assay-move");
    *names = w.names;
    names->send[sizeof(names->send) - 1] = 0;
    names->receive[sizeof(names->receive) - 1] = 0;
    names->cc[sizeof(names->cc) - 1] = 0;
    settings_defaults(ret);
    ret->size = n[1];
    ret->threads = n[2];
    ret->fields = n[3];
    ret->batch = n[4];
    ret->receive_bytes = n[5];
    ret->buffer_bytes = n[6];
    ret->seconds_ns = n[7];
    ret->warmup_ns = n[8];
    ret->verify = n[9] == 1;
    ret->transport_name = n[10] == TRANSPORT_UDP ? "udp" : "tcp";
    ret->no_trace = n[11] == 1;
    ret->variant_name = names->send;
    ret->receive_name = names->receive;
    ret->cc = names->cc[0] ? names->cc : NULL;
    r = settings_check(ret, err);
    if (r == 0 && !ret->receive)
        r = error_set(err, -EINVAL, "%s needs no receiver", names->send);
    return r;
}
