/* SPDX-License-Identifier: MIT */
#include "vr/net/cluster.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "vr/core/fragment.h"
#include "vr/core/packet.h"
#include "vr/net/transport.h"

#include <errno.h>

#define HEARTBEAT_MOST_NS (45 * NS_PER_MS)

struct setting {
    const char *name;
    size_t offset; /* in vr_cluster */
    uint64_t least, most;
    bool is_time, is_wide; /* in nanoseconds; of 64 bits */
};

#define U32(name, field, least, most)                                              \
    {                                                                              \
        name, offsetof(struct vr_cluster, config.field), least, most, false, false \
    }

static const struct setting settings[] = {
    U32("cluster", cluster, 1, UINT32_MAX),
    U32("slots", slots, 64, 65536),
    U32("checkpoint-every", checkpoint_every, 16, 32768),
    U32("pipeline", pipeline, 1, VR_HEADS_MAX - 1),
    U32("batch-bytes", batch_bytes, 4096, 1 << 18),
    U32("sessions", sessions, 1, 65536),
    U32("keys", kv_capacity, 0, 1 << 24),
    {"heartbeat", offsetof(struct vr_cluster, config.heartbeat_ns), NS_PER_MS, 60 * NS_PER_S, true,
     true},
    {"timeout", offsetof(struct vr_cluster, config.timeout_ns), 5 * NS_PER_MS, 600 * NS_PER_S, true,
     true},
    {"datagram", offsetof(struct vr_cluster, datagram_bytes), 576, 65507, false, true},
};

static int set_number(struct vr_cluster *c, const struct setting *s, const char *value,
                      struct error *err)
{
    uint64_t number;
    int result = s->is_time ? parse_duration_ns(value, NS_PER_MS, &number, err)
                            : parse_size_bytes(value, &number, err);
    if (result)
        return result;
    if (number < s->least || number > s->most)
        return error_set(err, -ERANGE, "%s must be between %lu and %lu%s", s->name,
                         (unsigned long)(s->is_time ? s->least / NS_PER_MS : s->least),
                         (unsigned long)(s->is_time ? s->most / NS_PER_MS : s->most),
                         s->is_time ? " ms" : "");
    if (s->is_wide)
        memcpy((char *)c + s->offset, &number, sizeof(number));
    else
        memcpy((char *)c + s->offset, &(uint32_t){(uint32_t)number}, sizeof(uint32_t));
    return 0;
}

/* A name in the file is meant from the folder of the file. */
static char *beside(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    if (name[0] == '/' || !slash)
        return memory_strdup(name);
    return memory_printf("%.*s/%s", (int)(slash - path), path, name);
}

static bool yes_or_no(const char *value, bool *ret_yes)
{
    *ret_yes = str_eq(value, "yes");
    return *ret_yes || str_eq(value, "no");
}

/* A setting that is a text; false: it is none of these. */
static bool set_text(struct vr_cluster *c, const char *path, const char *name, const char *value)
{
    char **place = str_eq(name, "data")              ? &c->data
                   : str_eq(name, "key-file")        ? &c->key_path
                   : str_eq(name, "accept-key-file") ? &c->accept_path
                                                     : NULL;
    if (place) {
        free(*place);
        *place = beside(path, value);
    }
    return place;
}

static int set(struct vr_cluster *c, const char *path, const char *name, const char *value,
               struct error *err)
{
    if (str_eq(name, "replica") || str_eq(name, "spare")) {
        bool spare = str_eq(name, "spare");
        if (!spare && c->config.replica_count == VR_REPLICAS_MAX)
            return error_set(err, -EINVAL, "more than %u replicas", VR_REPLICAS_MAX);
        if (!spare && c->node_count > c->config.replica_count)
            return error_set(err, -EINVAL, "spares must come after all replicas");
        if (c->node_count == VR_NODES_MAX)
            return error_set(err, -EINVAL, "more than %u replicas and spares", VR_NODES_MAX);
        c->config.replica_count += !spare;
        int family = c->node_count ? c->addresses[0].any.sa_family : AF_UNSPEC;
        return vr_address_parse(value, family, &c->addresses[c->node_count++], err);
    }
    if (set_text(c, path, name, value))
        return 0;
    if (str_eq(name, "transport")) {
        free(c->transport);
        c->transport = memory_strdup(value);
        return vr_transport_check(value, err);
    }
    if ((str_eq(name, "in-memory") && yes_or_no(value, &c->config.in_memory)) ||
        (str_eq(name, "encrypt") && yes_or_no(value, &c->encrypt)) ||
        (str_eq(name, "open") && yes_or_no(value, &c->open)))
        return 0;
    for (size_t i = 0; i < ARRAY_COUNT(settings); i++)
        if (str_eq(name, settings[i].name))
            return set_number(c, &settings[i], value, err);
    return error_set(err, -EINVAL,
                     "'%s' is not a setting; the settings are cluster, replica, spare, data, "
                     "transport, key-file, accept-key-file, open (yes or no), encrypt (yes or no), "
                     "in-memory (yes or no), "
                     "heartbeat, timeout, datagram, "
                     "slots, checkpoint-every, pipeline, batch-bytes, sessions, keys",
                     name);
}

static char *trim(char *text)
{
    while (*text == ' ' || *text == '\t')
        text++;
    char *end = text + strlen(text);
    while (end > text && strchr(" \t\r", end[-1]))
        *--end = '\0';
    return text;
}

/* What was not set.  On loopback nothing is gained by small packets; an idle replica wakes up as
 * rarely as it can, and one heartbeat may be lost. */
static void complete(struct vr_cluster *c)
{
    if (c->config.heartbeat_ns == 0) {
        c->config.heartbeat_ns = c->config.timeout_ns * 45 / 100;
        if (c->config.heartbeat_ns > HEARTBEAT_MOST_NS)
            c->config.heartbeat_ns = HEARTBEAT_MOST_NS;
    }
    bool local = true;
    for (uint8_t i = 0; i < c->node_count; i++)
        local = local && vr_address_is_loopback(&c->addresses[i]);
    if (c->datagram_bytes == 0)
        c->datagram_bytes = local ? 16384 : 1400;
}

static int check(const struct vr_cluster *c, struct error *err)
{
    const struct vr_config *v = &c->config;
    if (v->replica_count == 0)
        return error_set(err, -EINVAL, "no replica is configured");
    if (c->open && (c->key_path || c->accept_path))
        return error_set(err, -EINVAL, "'open yes' and a key cannot be used together");
    if (c->open && c->encrypt)
        return error_set(err, -EINVAL, "'open yes' and 'encrypt yes' cannot be used together");
    if (v->replica_count % 2 == 0)
        return error_set(err, -EINVAL,
                         "%u replicas: use an odd number; one more does not tolerate more failures",
                         v->replica_count);
    for (uint8_t i = 1; i < c->node_count; i++)
        if (c->addresses[i].any.sa_family != c->addresses[0].any.sa_family)
            return error_set(
                err, -EINVAL,
                "replicas %u and 0 have addresses of different kinds; use IPv4 or IPv6 "
                "for all",
                i);
    if (v->batch_bytes % 8)
        return error_set(err, -EINVAL, "batch-bytes must be a multiple of 8");
    if (v->checkpoint_every * 2 > v->slots)
        return error_set(err, -EINVAL, "checkpoint-every must be at most half of slots");
    if (v->timeout_ns < 2 * v->heartbeat_ns)
        return error_set(err, -EINVAL, "timeout must be at least twice the heartbeat");
    if (v->slots % 64)
        return error_set(err, -EINVAL, "slots must be a multiple of 64");
    uint64_t room =
        c->datagram_bytes - sizeof(struct vr_header) - (c->encrypt ? VR_CIPHER_BYTES : 0);
    uint32_t pieces = vr_fragment_count(vr_message_bytes_max(v), room);
    if (pieces > VR_FRAGMENTS_MAX)
        return error_set(err, -EINVAL,
                         "batch-bytes %u needs %u datagrams of %lu bytes, but the maximum is %u: "
                         "lower batch-bytes or raise datagram",
                         v->batch_bytes, pieces, c->datagram_bytes, VR_FRAGMENTS_MAX);
    return 0;
}

int vr_cluster_parse(struct vr_cluster *c, const char *text, const char *path, struct error *err)
{
    *c = (struct vr_cluster){0};
    vr_config_default(&c->config);
    c->config.replica_count = 0;
    c->config.heartbeat_ns = 0;
    CLEANUP(memory_freep) char *copy = memory_strdup(text);
    int result = 0;
    unsigned number = 0;
    for (char *rest = copy, *line; !result && (line = strsep(&rest, "\n")) != NULL;) {
        number++;
        line[strcspn(line, "#")] = '\0';
        char *name = trim(line), *value = name + strcspn(name, " \t");
        if (!*name)
            continue;
        if (*value)
            *value++ = '\0';
        value = trim(value);
        result = *value ? set(c, path, name, value, err)
                        : error_set(err, -EINVAL, "'%s' has no value", name);
        if (result)
            error_wrap(err, result, "%s, line %u", path, number);
    }
    complete(c);
    if (!result && (result = check(c, err)) != 0)
        error_wrap(err, result, "%s", path);
    c->key.keys = vr_keys_same(vr_key_public(c->config.cluster));
    if (!c->data)
        c->data = beside(path, ".");
    if (!c->key_path)
        c->key_path = beside(path, "cluster.key");
    if (!c->transport)
        c->transport = memory_strdup("epoll");
    if (result)
        vr_cluster_done(c);
    return result;
}

int vr_cluster_read_settings(struct vr_cluster *c, const char *path, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    int result = file_read(path, &text, err);
    return result ? result : vr_cluster_parse(c, strbuf_text(&text), path, err);
}

int vr_cluster_read(struct vr_cluster *c, const char *path, struct error *err)
{
    int result = vr_cluster_read_settings(c, path, err);
    if (!result && (result = vr_cluster_read_keys(c, err)) != 0)
        vr_cluster_done(c);
    return result;
}

int vr_cluster_read_keys(struct vr_cluster *c, struct error *err)
{
    int result = c->open ? 0 : vr_key_file_read(&c->key, c->key_path, c->config.cluster, err);
    if (result == -ENOENT)
        error_set(err, result,
                  "%s: no such file; it is the cluster's key: copy it from where the replicas were "
                  "formatted, create one with 'assay-vr key', or write 'open yes' into the "
                  "configuration to do without",
                  c->key_path);
    if (!result && c->accept_path)
        result = vr_key_file_read(&c->accept, c->accept_path, c->config.cluster, err);
    if (!result && c->encrypt) {
        if (!c->crypt)
            c->crypt = memory_zalloc(1, sizeof(*c->crypt));
        result = vr_crypt_init(c->crypt, c->config.cluster, &c->key.keys,
                               c->accept_path ? &c->accept.keys : NULL, err);
    }
    return result;
}

void vr_cluster_use_keys(const struct vr_cluster *c, struct vr_packets *packets)
{
    packets->own.role = (uint8_t)c->key.role;
    if (c->accept_path)
        vr_packets_accept(packets, &c->accept.keys);
    if (c->crypt)
        vr_packets_encrypt(packets, &c->crypt->cipher);
}

void vr_cluster_done(struct vr_cluster *c)
{
    free(c->data);
    free(c->transport);
    free(c->key_path);
    free(c->accept_path);
    free(c->crypt);
    *c = (struct vr_cluster){0};
}

char *vr_cluster_file(const struct vr_cluster *c, uint32_t index)
{
    return memory_printf("%s/replica-%u.vr", c->data, index);
}
