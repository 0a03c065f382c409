/* SPDX-License-Identifier: MIT */
#include "vr/net/transport.h"
#include "base/memory.h"
#include "base/strings.h"
#include "config.h"

#include <errno.h>

static const char *const names[] = {
    "epoll",    "spin",      "uring",         "uring-spin",
    "uring+tc", "uring+xdp", "uring-eventfd", "uring-eventfd-unread",
};

int vr_transport_check(const char *name, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf available = {0};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        bool built = HAVE_LIBURING || !str_has_prefix(names[i], "uring");
        if (str_eq(name, names[i]))
            return built
                       ? 0
                       : error_set(err, -EOPNOTSUPP,
                                   "assay-vr was built without liburing and has no transport '%s'",
                                   name);
        if (built)
            strbuf_printf(&available, "%s%s", i ? ", " : "", names[i]);
    }
    return error_set(err, -EINVAL, "there is no transport '%s'; available: %s", name,
                     strbuf_text(&available));
}
