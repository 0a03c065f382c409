/* SPDX-License-Identifier: MIT */
#include "vr/net/address.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>

#define HOST_MAX 256

/* Divides HOST:PORT or [HOST]:PORT. */
static int divide(const char *text, char *host, const char **ret_port, bool *ret_brackets,
                  struct error *err)
{
    const char *colon = strrchr(text, ':'), *begin = text, *end = colon;
    *ret_brackets = text[0] == '[';
    if (*ret_brackets && colon && colon > text + 1 && colon[-1] == ']') {
        begin++;
        end--;
    } else if (*ret_brackets || (colon && memchr(text, ':', (size_t)(colon - text)))) {
        return error_set(err, -EINVAL, "'%s' is not an address; write IPv6 as [::1]:4701", text);
    }
    if (!colon || end == begin || (size_t)(end - begin) >= HOST_MAX)
        return error_set(err, -EINVAL,
                         "'%s' is not an address; write e.g. 127.0.0.1:4701, [::1]:4701 or "
                         "host.example:4701",
                         text);
    memcpy(host, begin, (size_t)(end - begin));
    host[end - begin] = '\0';
    *ret_port = colon + 1;
    return 0;
}

static int look_up(const char *host, int family, int flags, union vr_address *ret_address)
{
    struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_DGRAM, .ai_flags = flags};
    struct addrinfo *found;
    int result = getaddrinfo(host, NULL, &hints, &found);
    if (result)
        return result;
    *ret_address = (union vr_address){.any.sa_family = AF_UNSPEC};
    memcpy(ret_address, found->ai_addr,
           found->ai_addrlen < sizeof(*ret_address) ? found->ai_addrlen : sizeof(*ret_address));
    freeaddrinfo(found);
    return 0;
}

/* Digits and dots alone are an address or a mistake; nobody is asked about them. */
static bool looks_numeric(const char *host)
{
    return host[strspn(host, "0123456789.")] == '\0';
}

static int find_host(const char *host, bool brackets, int family, union vr_address *ret_address)
{
    if (brackets)
        return look_up(host, AF_INET6, AI_NUMERICHOST, ret_address);
    struct in_addr v4;
    if (inet_pton(AF_INET, host, &v4) == 1) {
        *ret_address = (union vr_address){.v4 = {.sin_family = AF_INET, .sin_addr = v4}};
        return 0;
    }
    if (looks_numeric(host))
        return EAI_NONAME;
    int result = look_up(host, family == AF_INET6 ? AF_INET6 : AF_INET, 0, ret_address);
    if (result && family == AF_UNSPEC)
        result = look_up(host, AF_INET6, 0, ret_address);
    return result;
}

int vr_address_parse(const char *text, int family, union vr_address *ret_address, struct error *err)
{
    char host[HOST_MAX];
    const char *port_text = "";
    uint64_t port = 0;
    bool brackets;
    int result = divide(text, host, &port_text, &brackets, err);
    if (result)
        return result;
    if (parse_u64(port_text, &port, NULL) || port == 0 || port > UINT16_MAX)
        return error_set(err, -EINVAL, "'%s' is not a port (in '%s')", port_text, text);
    result = find_host(host, brackets, family, ret_address);
    if (result && (brackets || looks_numeric(host)))
        return error_set(err, -EINVAL, "'%s' is not an %s address (in '%s')", host,
                         brackets ? "IPv6" : "IPv4", text);
    if (result)
        return error_set(err, result == EAI_AGAIN ? -EAGAIN : -EINVAL,
                         "'%s' has no address (in '%s'): %s", host, text, gai_strerror(result));
    if (ret_address->any.sa_family == AF_INET6)
        ret_address->v6.sin6_port = htons((uint16_t)port);
    else
        ret_address->v4.sin_port = htons((uint16_t)port);
    return 0;
}

char *vr_address_format(const union vr_address *address, char *text)
{
    char host[INET6_ADDRSTRLEN] = "?", zone[IF_NAMESIZE + 1] = "";
    if (address->any.sa_family != AF_INET6) {
        inet_ntop(AF_INET, &address->v4.sin_addr, host, sizeof(host));
        snprintf(text, VR_ADDRESS_TEXT_MAX, "%s:%u", host, ntohs(address->v4.sin_port));
        return text;
    }
    inet_ntop(AF_INET6, &address->v6.sin6_addr, host, sizeof(host));
    if (address->v6.sin6_scope_id)
        snprintf(zone, sizeof(zone), "%%%u", address->v6.sin6_scope_id);
    snprintf(text, VR_ADDRESS_TEXT_MAX, "[%s%s]:%u", host, zone, ntohs(address->v6.sin6_port));
    return text;
}

bool vr_address_is_loopback(const union vr_address *address)
{
    return address->any.sa_family == AF_INET6 ? IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr)
                                              : ntohl(address->v4.sin_addr.s_addr) >> 24 == 127;
}

bool vr_address_same(const union vr_address *a, const union vr_address *b)
{
    if (a->any.sa_family != b->any.sa_family)
        return false;
    if (a->any.sa_family == AF_INET6)
        return a->v6.sin6_port == b->v6.sin6_port &&
               IN6_ARE_ADDR_EQUAL(&a->v6.sin6_addr, &b->v6.sin6_addr) &&
               a->v6.sin6_scope_id == b->v6.sin6_scope_id;
    return a->v4.sin_port == b->v4.sin_port && a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
}

union vr_address vr_address_any(int family, bool loopback)
{
    if (family == AF_INET6)
        return (union vr_address){.v6 = {.sin6_family = AF_INET6,
                                         .sin6_addr = loopback ? in6addr_loopback : in6addr_any}};
    return (union vr_address){
        .v4 = {.sin_family = AF_INET,
               .sin_addr.s_addr = htonl(loopback ? INADDR_LOOPBACK : INADDR_ANY)}};
}

int vr_socket_open(const union vr_address *address, struct error *err)
{
    char text[VR_ADDRESS_TEXT_MAX];
    CLEANUP(fd_closep)
    int fd = socket(address->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_errno(err, -errno, "opening a UDP socket");
    /* As much as is allowed: a burst of all clients must find room. */
    int bytes = 4 << 20;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    if (bind(fd, &address->any, vr_address_size(address)))
        return error_errno(err, -errno, "binding %s", vr_address_format(address, text));
    int result = fd;
    fd = -1;
    return result;
}
