/* SPDX-License-Identifier: MIT */
/* Making the connections of a run: before the processes part (wires), or after (sockets). */
#ifndef ASSAY_MOVE_LINK_H
#define ASSAY_MOVE_LINK_H

#include "settings.h"

#include <sys/socket.h>

/* What two processes of one parent share from the start. */
struct wire {
    int send_fd, receive_fd; /* -1 when the transport makes them later */
    void *shared;
    size_t shared_bytes;
};

/* `settings->threads` wires; wires_free closes what is still open. */
int wires_new(const struct settings *s, struct wire **ret_wires, struct error *err);
void wires_free(const struct settings *s, struct wire *wires);

struct endpoint {
    struct sockaddr_storage address;
    socklen_t length;
};

/* "HOST:PORT", "[V6]:PORT", "PORT"; for_listening: no host means all of this host's. */
int endpoint_parse(const char *text, bool for_listening, struct endpoint *ret, struct error *err);
void endpoint_set_port(struct endpoint *e, uint16_t port);
uint16_t endpoint_port(const struct endpoint *e);

/* Sockets with the settings' congestion control and buffers. */
int link_listen(const struct settings *s, const struct endpoint *at, struct error *err);
int link_bind_udp(const struct settings *s, const struct endpoint *at, struct error *err);
/* Connects within timeout_ms; no answer says what may be the matter. */
int link_connect(const struct settings *s, const struct endpoint *to, int type, int timeout_ms,
                 struct error *err);
int link_apply(const struct settings *s, int fd, struct error *err);

/* What TCP tells of a connection; false when it is none. */
struct link_tcp {
    uint64_t segments, segment_bytes, retransmits;
};
bool link_tcp_read(int fd, struct link_tcp *ret);

#endif
