/* SPDX-License-Identifier: MIT */
/* assay-vr status: how each replica is. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/memory.h"
#include "vr/client/client.h"
#include "vr/cmd/cmd.h"

#include <errno.h>
#include <stdio.h>

struct settings {
    const char *config;
    uint64_t timeout_ns;
    bool json, metrics;
};

static const struct option options[] = {
    {'c', "config", OPTION_STRING, offsetof(struct settings, config), "FILE",
     "the cluster's configuration (cluster.conf)", "file"},
    {0, "timeout", OPTION_SECONDS, offsetof(struct settings, timeout_ns), "T",
     "wait this long for answers (0.5 s)", NULL},
    {0, "json", OPTION_FLAG, offsetof(struct settings, json), NULL, "print JSON", NULL},
    {0, "metrics", OPTION_FLAG, offsetof(struct settings, metrics), NULL,
     "print OpenMetrics, for Prometheus and others", NULL},
    {0},
};

/* Formatted, and not in the group, or the group knows another disk under its number. */
static bool is_new(const struct vr_status *s)
{
    bool named = !(s->members & VR_GROUP_NONE) && s->members >> s->replica & 1;
    return s->fresh || (named && s->incarnations[s->replica] != s->incarnation);
}

static const char *state_name(const struct vr_status *s)
{
    static const char *const names[] = {"backup", "view change", "recovering", "retired", "new"};
    if (is_new(s))
        return "new";
    if (s->state == VR_NORMAL && vr_status_primary(s) == s->replica)
        return "primary";
    return s->state <= VR_NEW ? names[s->state] : "?";
}

/* Whether those that are in a group count this number among them. */
static bool is_member_of_others(const struct vr_cluster *c, const struct vr_status *s,
                                const bool *there, uint8_t index)
{
    for (uint8_t i = 0; i < c->node_count; i++)
        if (there[i] && !is_new(&s[i]) && !(s[i].members & VR_GROUP_NONE) &&
            s[i].members >> index & 1)
            return true;
    return false;
}

static uint64_t dropped(const struct vr_status *s)
{
    uint64_t sum = s->strangers;
    for (unsigned i = 0; i < VR_DROP_COUNT; i++)
        sum += s->dropped[i];
    return sum;
}

static void put_text(const struct vr_cluster *c, const struct vr_status *s, const bool *there,
                     uint64_t newest, struct strbuf *out)
{
    strbuf_printf(out, "%-8s%-22s%-12s%6s%8s%12s%12s%10s%12s%10s\n", "replica", "address", "state",
                  "epoch", "view", "op", "commit", "lag", "checkpoint", "dropped");
    for (uint8_t i = 0; i < c->node_count; i++) {
        char text[VR_ADDRESS_TEXT_MAX];
        strbuf_printf(out, "%-8u%-22s", i, vr_address_format(&c->addresses[i], text));
        if (there[i])
            strbuf_printf(out, "%-12s%6lu%8lu%12lu%12lu%10lu%12lu%10lu\n", state_name(&s[i]),
                          vr_epoch_of(s[i].view), vr_number_of(s[i].view), s[i].op, s[i].commit,
                          newest - s[i].commit, s[i].checkpoint_op, dropped(&s[i]));
        else
            strbuf_puts(out, "no answer\n");
    }
    for (uint8_t i = 0; i < c->node_count; i++)
        if (there[i] && is_new(&s[i]) && is_member_of_others(c, s, there, i))
            strbuf_printf(
                out,
                "replica %u has no vote: the group knows a different disk under its number; if "
                "that one is lost, 'assay-vr reconfigure --replace %u' accepts this one\n",
                i, i);
}

static void put_json(const struct vr_cluster *c, const struct vr_status *s, const bool *there,
                     uint64_t newest, struct strbuf *out)
{
    struct json j = {.out = out};
    json_array(&j, NULL);
    for (uint8_t i = 0; i < c->node_count; i++) {
        char text[VR_ADDRESS_TEXT_MAX];
        json_object(&j, NULL);
        json_u64(&j, "replica", i);
        json_string(&j, "address", vr_address_format(&c->addresses[i], text));
        json_string(&j, "state", there[i] ? state_name(&s[i]) : NULL);
        if (there[i]) {
            json_u64(&j, "epoch", vr_epoch_of(s[i].view));
            json_u64(&j, "view", vr_number_of(s[i].view));
            json_u64(&j, "log_view", vr_number_of(s[i].log_view));
            json_u64(&j, "members", s[i].members);
            json_u64(&j, "incarnation", s[i].incarnation);
            json_u64(&j, "op", s[i].op);
            json_u64(&j, "durable_op", s[i].durable_op);
            json_u64(&j, "commit", s[i].commit);
            json_u64(&j, "lag", newest - s[i].commit);
            json_u64(&j, "checkpoint_op", s[i].checkpoint_op);
            json_u64(&j, "executed", s[i].executed);
            json_u64(&j, "dropped", dropped(&s[i]));
            json_object(&j, "dropped_because");
            for (unsigned why = VR_DROP_NONE + 1; why < VR_DROP_COUNT; why++)
                json_u64(&j, vr_drop_names[why], s[i].dropped[why]);
            json_u64(&j, "stranger", s[i].strangers);
            json_end(&j);
            json_u64(&j, "packets_sent", s[i].packets_sent);
            json_u64(&j, "packets_received", s[i].packets_received);
            json_u64(&j, "send_failures", s[i].send_failures);
            json_u64(&j, "waits", s[i].waits);
            json_u64(&j, "waits_empty", s[i].waits_empty);
            json_u64(&j, "disk_cycles", s[i].disk_cycles);
            json_u64(&j, "disk_failures", s[i].disk_failures);
            json_u64(&j, "early_acks", s[i].early_acks);
            json_bool(&j, "fell_back", s[i].fell_back);
            json_bool(&j, "direct", s[i].direct);
        }
        json_end(&j);
    }
    json_end(&j);
    strbuf_putc(out, '\n');
}

/* ---- OpenMetrics */

struct metric {
    const char *name, *type, *help;
    size_t offset; /* of a uint64_t in vr_status */
};

static const struct metric metrics[] = {
    {"log_operations", "counter", "Last operation of the log.", offsetof(struct vr_status, op)},
    {"durable_operations", "counter", "Last operation of the log on disk.",
     offsetof(struct vr_status, durable_op)},
    {"committed_operations", "counter", "Last operation that was executed.",
     offsetof(struct vr_status, commit)},
    {"checkpoint_operations", "counter", "Operation of the newest checkpoint.",
     offsetof(struct vr_status, checkpoint_op)},
    {"executed_requests", "counter", "Requests executed since the start.",
     offsetof(struct vr_status, executed)},
    {"packets_sent", "counter", "Packets sent.", offsetof(struct vr_status, packets_sent)},
    {"packets_received", "counter", "Packets received.",
     offsetof(struct vr_status, packets_received)},
    {"send_failures", "counter", "Packets that could not be sent.",
     offsetof(struct vr_status, send_failures)},
    {"disk_cycles", "counter", "Groups of writes with one sync.",
     offsetof(struct vr_status, disk_cycles)},
    {"disk_failures", "counter", "Groups of writes that failed.",
     offsetof(struct vr_status, disk_failures)},
};

static void put_family(struct strbuf *out, const char *name, const char *type, const char *help)
{
    strbuf_printf(out, "# TYPE assay_vr_%s %s\n# HELP assay_vr_%s %s\n", name, type, name, help);
}

static void put_metric(const struct vr_cluster *c, const struct vr_status *s, const bool *there,
                       const struct metric *m, struct strbuf *out)
{
    put_family(out, m->name, m->type, m->help);
    for (uint8_t i = 0; i < c->node_count; i++) {
        uint64_t value;
        memcpy(&value, (const char *)&s[i] + m->offset, sizeof(value));
        if (there[i])
            strbuf_printf(out, "assay_vr_%s_total{replica=\"%u\"} %lu\n", m->name, i,
                          (unsigned long)value);
    }
}

static void put_gauges(const struct vr_cluster *c, const struct vr_status *s, const bool *there,
                       uint64_t newest, struct strbuf *out)
{
    put_family(out, "up", "gauge", "Whether the replica answers.");
    for (uint8_t i = 0; i < c->node_count; i++)
        strbuf_printf(out, "assay_vr_up{replica=\"%u\"} %d\n", i, there[i]);
    put_family(out, "view", "gauge", "View, in this epoch.");
    for (uint8_t i = 0; i < c->node_count; i++)
        if (there[i])
            strbuf_printf(out, "assay_vr_view{replica=\"%u\"} %lu\n", i, vr_number_of(s[i].view));
    put_family(out, "epoch", "gauge", "How often the group was changed.");
    for (uint8_t i = 0; i < c->node_count; i++)
        if (there[i])
            strbuf_printf(out, "assay_vr_epoch{replica=\"%u\"} %lu\n", i, vr_epoch_of(s[i].view));
    put_family(out, "lag_operations", "gauge", "Operations behind the replica that is furthest.");
    for (uint8_t i = 0; i < c->node_count; i++)
        if (there[i])
            strbuf_printf(out, "assay_vr_lag_operations{replica=\"%u\"} %lu\n", i,
                          newest - s[i].commit);
}

static void put_metrics(const struct vr_cluster *c, const struct vr_status *s, const bool *there,
                        uint64_t newest, struct strbuf *out)
{
    static const char *const states[] = {"primary",    "backup",  "view change",
                                         "recovering", "retired", "new"};
    put_gauges(c, s, there, newest, out);
    put_family(out, "state", "stateset", "What the replica is.");
    for (uint8_t i = 0; i < c->node_count; i++)
        for (size_t k = 0; there[i] && k < ARRAY_COUNT(states); k++)
            strbuf_printf(out, "assay_vr_state{replica=\"%u\",assay_vr_state=\"%s\"} %d\n", i,
                          states[k], str_eq(state_name(&s[i]), states[k]));
    for (size_t k = 0; k < ARRAY_COUNT(metrics); k++)
        put_metric(c, s, there, &metrics[k], out);
    put_family(out, "dropped_packets", "counter", "Packets dropped, by reason.");
    for (uint8_t i = 0; i < c->node_count; i++)
        for (unsigned why = VR_DROP_NONE + 1; there[i] && why < VR_DROP_COUNT; why++)
            strbuf_printf(out, "assay_vr_dropped_packets_total{replica=\"%u\",reason=\"%s\"} %lu\n",
                          i, vr_drop_names[why], (unsigned long)s[i].dropped[why]);
    strbuf_puts(out, "# EOF\n");
}

static int run(int argc, char **argv)
{
    struct settings o = {.config = "cluster.conf", .timeout_ns = NS_PER_S / 2};
    struct vr_cluster cluster;
    struct vr_client *client;
    struct vr_status statuses[VR_NODES_MAX];
    bool there[VR_NODES_MAX];
    struct error err = {0};
    int code;
    if (!vr_options(&vr_verb_status, &o, argc, argv, NULL, &code))
        return code;
    if (o.json && o.metrics) {
        error_set(&err, -EINVAL, "--json and --metrics cannot be used together");
        return vr_fail(&vr_verb_status, &err, 2);
    }
    if (vr_cluster_read(&cluster, o.config, &err))
        return vr_fail(&vr_verb_status, &err, 2);
    int result = vr_client_open_cluster(&client, &cluster, &err);
    if (!result) {
        CLEANUP(strbuf_done) struct strbuf out = {0};
        /* Nobody there is an answer, too. */
        int found = vr_client_status(client, o.timeout_ns, statuses, there, &err);
        uint64_t newest = 0, leaders = 0;
        for (uint8_t i = 0; i < cluster.node_count; i++) {
            leaders +=
                there[i] && statuses[i].state == VR_NORMAL && vr_status_primary(&statuses[i]) == i;
            if (there[i] && statuses[i].commit > newest)
                newest = statuses[i].commit;
        }
        (o.metrics ? put_metrics
         : o.json  ? put_json
                   : put_text)(&cluster, statuses, there, newest, &out);
        int written = fd_write_all(STDOUT_FILENO, strbuf_text(&out), out.length);
        if (written < 0)
            result = error_errno(&err, written, "standard output");
        vr_client_close(client);
        code = found || leaders == 0 ? 1 : 0;
    }
    vr_cluster_done(&cluster);
    return result ? vr_fail(&vr_verb_status, &err, 2) : code;
}

const struct verb vr_verb_status = {
    "status",
    "show view, operation, commit and lag of each replica",
    "[--config FILE]",
    "  assay-vr status -c cluster.conf     exits with 1 if there is no leader\n",
    options,
    run,
    NULL};
