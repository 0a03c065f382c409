/* SPDX-License-Identifier: MIT */
/* Settings: defaults, names resolved, and what does not go together refused in words. */
#include "settings.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cc.h"
#include "config.h"

#include <errno.h>
#include <sched.h>

static const struct {
    const char *name;
    enum transport transport;
} transports[] = {
    {"tcp", TRANSPORT_TCP},   {"unix", TRANSPORT_UNIX}, {"udp", TRANSPORT_UDP},
    {"pipe", TRANSPORT_PIPE}, {"shm", TRANSPORT_SHM},   {"veth", TRANSPORT_VETH},
    {"none", TRANSPORT_NONE},
};

const char *transport_text(enum transport t)
{
    for (size_t i = 0; i < ARRAY_COUNT(transports); i++)
        if (transports[i].transport == t)
            return transports[i].name;
    return "?";
}

enum transport transport_named(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(transports); i++)
        if (str_eq(transports[i].name, name))
            return transports[i].transport;
    return 0;
}

void settings_defaults(struct settings *s)
{
    *s = (struct settings){.size = 4096,
                           .threads = 1,
                           .fields = 8,
                           .batch = 16,
                           .pieces = 1000,
                           .seconds_ns = 2 * NS_PER_S,
                           .warmup_ns = 300 * NS_PER_MS};
}

void settings_done(struct settings *s)
{
    free(s->send_cpus);
    free(s->receive_cpus);
    free(s->split_name);
    s->split_name = NULL;
    s->send_cpus = s->receive_cpus = NULL;
}

static void names_of(unsigned bits, struct strbuf *out)
{
    for (size_t i = 0; i < ARRAY_COUNT(transports); i++)
        if (bits & transports[i].transport)
            strbuf_printf(out, "%s%s", out->length ? ", " : "", transports[i].name);
}

static int no_variant(const char *name, struct error *err)
{
    const char *names[128];
    size_t count = 0;
    for (size_t i = 0; variants[i] && count < ARRAY_COUNT(names); i++)
        if (!variants[i]->hidden)
            names[count++] = variants[i]->name;
    if (!HAVE_LIBURING && strstr(name, "uring"))
        return error_set(err, -EOPNOTSUPP, "assay-move was built without liburing and has no %s",
                         name);
    CLEANUP(strbuf_done) struct strbuf near = {0};
    str_nearest(name, names, count, 3, &near);
    return error_set(err, -EINVAL, "there is no variant '%s'%s%s; --list shows them all", name,
                     near.length ? "; did you mean " : "", strbuf_text(&near));
}

static int find_transport(struct settings *s, struct error *err)
{
    if (!s->transport_name) {
        /* The first that the variant takes, in the order above: tcp wherever it can. */
        unsigned bits = s->send->transports;
        if (s->receive)
            bits &= s->receive->transports;
        s->transport = (enum transport)(bits & -bits);
        return bits ? 0
                    : error_set(err, -EINVAL, "%s and %s share no transport", s->send->name,
                                s->receive->name);
    }
    s->transport = transport_named(s->transport_name);
    if (s->transport)
        return 0;
    return error_set(err, -EINVAL,
                     "there is no transport '%s'; use tcp, unix, udp, pipe, shm or veth",
                     s->transport_name);
}

static int check_takes(const struct variant *v, enum transport t, struct error *err)
{
    if (v->transports & t)
        return 0;
    CLEANUP(strbuf_done) struct strbuf list = {0};
    names_of(v->transports, &list);
    return error_set(err, -EINVAL, "%s does not support %s; it supports: %s", v->name,
                     transport_text(t), strbuf_text(&list));
}

/* "SEND/RECEIVE" names both at once. */
static int split_name(struct settings *s, struct error *err)
{
    const char *slash = s->variant_name ? strchr(s->variant_name, '/') : NULL;
    if (!slash)
        return 0;
    if (s->receive_name)
        return error_set(err, -EINVAL,
                         "--variant %s names a receive side, and so does --receive %s",
                         s->variant_name, s->receive_name);
    free(s->split_name);
    s->split_name = memory_strndup(s->variant_name, (size_t)(slash - s->variant_name));
    s->receive_name = slash + 1;
    s->variant_name = s->split_name;
    return 0;
}

/* The only sender that a receive side serves; NULL when it serves any. */
static const struct variant *sender_of(const struct variant *receive)
{
    for (size_t i = 0; variants[i]; i++)
        if (variants[i]->partner && str_eq(variants[i]->partner, receive->name))
            return variants[i];
    return NULL;
}

/* The variant that was named may be of either side; the other side is then the plain one. */
static int find_variants(struct settings *s, struct error *err)
{
    const char *name = s->variant_name ? s->variant_name : "send";
    const struct variant *v = variant_find(name);
    if (!v)
        return no_variant(name, err);
    if (v->role == ROLE_RECEIVE) {
        if (s->receive_name)
            return error_set(err, -EINVAL, "%s is a receive side, and so is --receive %s", name,
                             s->receive_name);
        s->receive = v;
        s->send = sender_of(v) ? sender_of(v) : variant_find("send");
        return 0;
    }
    s->send = v;
    if (v->role == ROLE_ALONE) {
        if (s->receive_name)
            return error_set(err, -EINVAL, "%s has no receiver; omit --receive", name);
        return 0;
    }
    if (v->partner && s->receive_name && !str_eq(v->partner, s->receive_name))
        return error_set(err, -EINVAL, "%s needs the receive side %s", name, v->partner);
    const char *other = s->receive_name ? s->receive_name : v->partner ? v->partner : "recv-big";
    s->receive = variant_find(other);
    if (!s->receive)
        return no_variant(other, err);
    if (s->receive->role == ROLE_RECEIVE && sender_of(s->receive) && !v->partner)
        return error_set(err, -EINVAL, "%s is the receive side of %s only", other,
                         sender_of(s->receive)->name);
    if (s->receive->role != ROLE_RECEIVE)
        return error_set(err, -EINVAL, "--receive %s: not a receive side; --list shows them",
                         other);
    return 0;
}

static int check_range(const char *option, uint64_t value, uint64_t low, uint64_t high,
                       struct error *err)
{
    if (value >= low && value <= high)
        return 0;
    return error_set(err, -EINVAL, "--%s %llu: must be between %llu and %llu", option,
                     (unsigned long long)value, (unsigned long long)low, (unsigned long long)high);
}

/* From here on the size is that of a whole message. */
static int join_pieces(struct settings *s, struct error *err)
{
    if (!s->send->pieces)
        return 0;
    if (s->size > SIZE_MAX_BYTES || s->pieces > PIECES_MAX || s->size * s->pieces > SIZE_MAX_BYTES)
        return error_set(
            err, -EINVAL,
            "--pieces %llu of --size %llu: a message holds %llu bytes at most, in %d pieces",
            (unsigned long long)s->pieces, (unsigned long long)s->size, SIZE_MAX_BYTES, PIECES_MAX);
    s->size *= s->pieces;
    return 0;
}

static int check_times(const struct settings *s, struct error *err)
{
    if (s->seconds_ns < NS_PER_MS || s->seconds_ns > 24 * 3600 * NS_PER_S)
        return error_set(err, -EINVAL, "--seconds: must be between 0.001 and 86400");
    if (s->warmup_ns > 3600 * NS_PER_S)
        return error_set(err, -EINVAL, "--warmup: more than an hour");
    if (s->transport == TRANSPORT_UDP && s->size > 65507)
        return error_set(err, -EINVAL, "--size %llu: a UDP datagram holds 65507 bytes at most",
                         (unsigned long long)s->size);
    return 0;
}

static int check_numbers(const struct settings *s, struct error *err)
{
    int r = check_range("size", s->size, 1, SIZE_MAX_BYTES, err);
    r = r ? r : check_range("threads", s->threads, 1, THREADS_MAX, err);
    r = r ? r : check_range("fields", s->fields, 1, FIELDS_MAX, err);
    r = r ? r : check_range("batch", s->batch, 1, BATCH_MAX, err);
    r = r ? r : check_range("pieces", s->pieces, 1, PIECES_MAX, err);
    r = r ? r : check_range("receive-size", s->receive_bytes, 0, SIZE_MAX_BYTES, err);
    r = r ? r : check_range("buffer", s->buffer_bytes, 0, 1ULL << 30, err);
    if (r)
        return r;
    if (check_times(s, err) < 0)
        return err->code;
    if (s->verify && s->size < 16)
        return error_set(err, -EINVAL,
                         "--verify needs messages of 16 bytes or more (sequence and checksum)");
    if (s->send->fields && s->fields > s->size)
        return error_set(err, -EINVAL, "--fields %llu: more than the message's %llu bytes",
                         (unsigned long long)s->fields, (unsigned long long)s->size);
    return 0;
}

/* "none", "spread", "same", or "SENDERS:RECEIVERS" as lists of CPUs. */
static int *cpus_from(const char *text, struct error *err)
{
    size_t count = 0;
    int *list = NULL;
    if (parse_cpu_list(text, &list, &count, err) < 0)
        return NULL;
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof(allowed), &allowed);
    for (size_t i = 0; i < count; i++)
        if (list[i] >= CPU_SETSIZE || !CPU_ISSET(list[i], &allowed)) {
            error_set(err, -EINVAL, "CPU %d does not exist or is not allowed", list[i]);
            free(list);
            return NULL;
        }
    if (!count) {
        error_set(err, -EINVAL, "an empty list of CPUs");
        free(list);
        return NULL;
    }
    list = memory_resize(list, count + 1, sizeof(*list));
    list[count] = -1;
    return list;
}

/* The CPUs this process may use, starting with the `first`th. */
static int *cpus_allowed(size_t first)
{
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof(allowed), &allowed);
    size_t count = (size_t)CPU_COUNT(&allowed), filled = 0;
    int *all = memory_zalloc(count + 1, sizeof(*all));
    for (int cpu = 0; cpu < CPU_SETSIZE && filled < count; cpu++)
        if (CPU_ISSET(cpu, &allowed))
            all[filled++] = cpu;
    int *list = memory_zalloc(count + 1, sizeof(*list));
    for (size_t i = 0; i < count; i++)
        list[i] = all[(i + first) % count];
    list[count] = -1;
    free(all);
    return list;
}

static int resolve_pin(struct settings *s, struct error *err)
{
    if (!s->pin || str_eq(s->pin, "none"))
        return 0;
    if (str_eq(s->pin, "spread") || str_eq(s->pin, "same")) {
        s->send_cpus = cpus_allowed(0);
        s->receive_cpus = cpus_allowed(str_eq(s->pin, "spread"));
        return 0;
    }
    CLEANUP(memory_freep) char *senders = memory_strdup(s->pin);
    char *colon = strchr(senders, ':');
    if (!colon)
        return error_set(
            err, -EINVAL,
            "--pin %s: use none, spread, same, or SENDERS:RECEIVERS such as 0:1 or 0-1:2-3",
            s->pin);
    *colon = 0;
    s->send_cpus = cpus_from(senders, err);
    s->receive_cpus = s->send_cpus ? cpus_from(colon + 1, err) : NULL;
    return s->receive_cpus ? 0 : error_wrap(err, -EINVAL, "--pin %s", s->pin);
}

int settings_check(struct settings *s, struct error *err)
{
    int r = split_name(s, err);
    r = r ? r : find_variants(s, err);
    r = r ? r : find_transport(s, err);
    r = r ? r : check_takes(s->send, s->transport, err);
    if (!r && s->receive)
        r = check_takes(s->receive, s->transport, err);
    r = r ? r : join_pieces(s, err);
    r = r ? r : check_numbers(s, err);
    if (!r && s->connect_address && !(s->transport & (TRANSPORT_TCP | TRANSPORT_UDP)))
        r = error_set(err, -EINVAL, "--connect supports tcp and udp, not %s",
                      transport_text(s->transport));
    if (!r && s->cc && !str_eq(s->cc, "system") && !(s->transport & TRANSPORT_STREAMS_TCP))
        r = error_set(err, -EINVAL, "--cc is for TCP; %s has no congestion control",
                      transport_text(s->transport));
    if (!r)
        cc_resolve(s);
    if (!r && s->verify && s->send->role == ROLE_ALONE)
        r = error_set(err, -EINVAL, "--verify: %s has no receiver that could check", s->send->name);
    return r ? r : resolve_pin(s, err);
}

int settings_check_ping(struct settings *s, struct error *err)
{
    unsigned takes =
        TRANSPORT_TCP | TRANSPORT_UNIX | TRANSPORT_UDP | TRANSPORT_PIPE | TRANSPORT_SHM;
    if (s->variant_name || s->receive_name || s->connect_address || s->threads != 1)
        return error_set(
            err, -EINVAL,
            "--ping uses one connection on this host; it cannot be used with --variant, "
            "--receive, --connect or --threads; --transport chooses the transport");
    s->transport = s->transport_name ? transport_named(s->transport_name) : TRANSPORT_TCP;
    if (!(s->transport & takes))
        return error_set(err, -EINVAL, "--ping supports tcp, unix, udp, pipe and shm, not '%s'",
                         s->transport_name);
    if (s->cc && !str_eq(s->cc, "system") && s->transport != TRANSPORT_TCP)
        return error_set(err, -EINVAL, "--cc is for TCP; %s has no congestion control",
                         transport_text(s->transport));
    int r = check_range("size", s->size, 16, 1 << 24, err);
    r = r ? r : check_range("rate", s->rate, 0, 10000000, err);
    r = r ? r : check_times(s, err);
    return r ? r : resolve_pin(s, err);
}
