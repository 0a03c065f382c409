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
    bool json;
};

static const struct option options[] = {
    {'c', "config", OPTION_STRING, offsetof(struct settings, config), "FILE",
     "the cluster's configuration (cluster.conf)", "file"},
    {0, "timeout", OPTION_SECONDS, offsetof(struct settings, timeout_ns), "T",
     "wait this long for answers (0.5 s)", NULL},
    {0, "json", OPTION_FLAG, offsetof(struct settings, json), NULL, "print JSON", NULL},
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
        (o.json ? put_json : put_text)(&cluster, statuses, there, newest, &out);
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
