/* SPDX-License-Identifier: MIT */
/* Congestion control: see cc.h. */
#include "cc.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

static bool choose(int fd, const char *name)
{
    return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) == 0;
}

void cc_resolve(struct settings *s)
{
    if (s->cc && str_eq(s->cc, "system"))
        s->cc = NULL;
    if (!s->cc || !str_eq(s->cc, "fair"))
        return;
    CLEANUP(fd_closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    s->cc_fair = true;
    s->cc = fd >= 0 && choose(fd, CC_FAIR) ? CC_FAIR : NULL;
}

const char *cc_in_force(const struct settings *s, char name[CC_NAME_BYTES])
{
    CLEANUP(fd_closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t length = CC_NAME_BYTES;
    name[0] = 0;
    if (fd < 0 || (s->cc && !choose(fd, s->cc)) ||
        getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length) < 0)
        name[0] = 0;
    name[CC_NAME_BYTES - 1] = 0;
    return name;
}
