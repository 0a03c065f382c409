/* SPDX-License-Identifier: MIT */
/* Addresses of replicas and clients, IPv4 or IPv6, and sockets that are bound to them. */
#ifndef ASSAY_VR_ADDRESS_H
#define ASSAY_VR_ADDRESS_H

#include "base/error.h"

#include <netinet/in.h>
#include <stdbool.h>

union vr_address {
    struct sockaddr any; /* sa_family 0: none */
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static inline socklen_t vr_address_size(const union vr_address *a)
{
    return a->any.sa_family == AF_INET6 ? sizeof(a->v6) : sizeof(a->v4);
}

/* HOST:PORT, where HOST is an IPv4 address, an IPv6 address in brackets, or a name, which is looked
 * up.  A name is taken as an address of this family, or, if that is AF_UNSPEC, as IPv4 if it has
 * such an address, else as IPv6. */
int vr_address_parse(const char *text, int family, union vr_address *ret_address,
                     struct error *err);
#define VR_ADDRESS_TEXT_MAX 72
char *vr_address_format(const union vr_address *address, char *text);
bool vr_address_is_loopback(const union vr_address *address);
bool vr_address_same(const union vr_address *a, const union vr_address *b);
/* An address of the same family with any port: the loopback's, or whichever the machine has. */
union vr_address vr_address_any(int family, bool loopback);

/* A UDP socket bound to the address, with room for bursts; or a negative errno. */
int vr_socket_open(const union vr_address *address, struct error *err);

#endif
