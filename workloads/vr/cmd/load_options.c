/* SPDX-License-Identifier: MIT */
#include "vr/cmd/load_options.h"
#include "base/memory.h"
#include "vr/client/caller.h"
#include "vr/cmd/cmd.h"
#include "vr/load/history.h"

#include <errno.h>
#include <unistd.h>

/* uring where this machine has it. */
static const struct vr_io_way *choose_way(const char *name, struct error *err)
{
    if (name)
        return vr_io_find(name, err);
    const struct vr_io_way *way = vr_io_find("uring", NULL);
    struct vr_io io;
    struct vr_io_handler handler = {0};
    if (way && vr_io_open(&io, way, NULL, 0, 2048, false, handler, NULL) == 0) {
        vr_io_close(&io);
        return way;
    }
    return vr_io_find("epoll", err);
}

static int in_range(const char *name, uint64_t value, uint64_t least, uint64_t most,
                    struct error *err)
{
    if (value >= least && value <= most)
        return 0;
    return error_set(err, -EINVAL, "--%s must be between %lu and %lu, not %lu", name, least, most,
                     value);
}

int vr_load_options_check(const struct vr_load_options *o, struct vr_load_settings *ret_settings,
                          struct error *err)
{
    struct vr_load_settings s = {.clients = o->clients,
                                 .requests = o->requests,
                                 .warmup = o->warmup,
                                 .payload_bytes = o->payload_bytes,
                                 .keys = o->keys,
                                 .fill = o->fill,
                                 .seed = o->seed,
                                 .time_ns = o->time_ns,
                                 .patience_ns = o->patience_ns,
                                 .rate = o->rate};
    int result = in_range("clients", o->clients, 1, 4096, err);
    if (!result)
        result = in_range("requests", o->requests, 1, UINT64_MAX / 2, err);
    if (!result)
        result = in_range("payload", o->payload_bytes, 0, VR_CALLER_DATA_MAX, err);
    if (!result)
        result = in_range("keys", o->keys, 1, 1 << 24, err);
    if (!result && o->rate < 0)
        result = error_set(err, -EINVAL, "--rate must not be negative");
    if (!result)
        result = vr_load_kind_parse(o->op, &s.kind, err);
    if (result)
        return result;
    s.way = choose_way(o->client_transport, err);
    if (!s.way)
        return -EINVAL;
    enum vr_history_form form;
    if ((result = vr_history_form_parse(o->history_format, &form, err)) != 0)
        return result;
    if (o->history && !(s.history = form == VR_HISTORY_TEXT ? fopen(o->history, "we") : tmpfile()))
        return error_errno(err, -errno, "%s", o->history);
    *ret_settings = s;
    return 0;
}

/* In the form that was asked for; what was written so far is in a file without a name. */
static int convert(const struct vr_load_options *o, FILE *in, struct error *err)
{
    enum vr_history_form form;
    int result = vr_history_form_parse(o->history_format, &form, err);
    if (result || form == VR_HISTORY_TEXT)
        return result;
    FILE *out = fopen(o->history, "we");
    if (!out)
        return error_errno(err, -errno, "%s", o->history);
    result = vr_history_convert(in, out, form, err);
    bool cut = ferror(out);
    if ((fclose(out) || cut) && !result)
        result = error_errno(err, errno ? -errno : -EIO, "%s", o->history);
    return result;
}

int vr_load_end(const struct verb *verb, const struct vr_load_options *o,
                struct vr_load_settings *s, int result, int signal, struct error *err)
{
    if (s->history) {
        int converted = convert(o, s->history, err);
        bool cut = ferror(s->history);
        result = result ? result : converted;
        if ((fclose(s->history) || cut) && !result)
            result = error_errno(err, errno ? -errno : -EIO, "%s", o->history);
        s->history = NULL;
    }
    if (result)
        return vr_fail(verb, err, result == -EINTR ? 128 + signal : 1);
    if (signal)
        fprintf(stderr, "assay-vr %s: interrupted; these are the figures up to then\n", verb->name);
    return signal ? 128 + signal : 0;
}
