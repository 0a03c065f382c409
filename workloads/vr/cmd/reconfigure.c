/* SPDX-License-Identifier: MIT */
/* assay-vr reconfigure: another group of replicas, while the service goes on. */
#include "base/clock.h"
#include "base/memory.h"
#include "vr/client/client.h"
#include "vr/cmd/cmd.h"

#include <errno.h>
#include <stdio.h>

struct settings {
    const char *config, *members;
    uint64_t timeout_ns;
};

static const struct option options[] = {
    {'c', "config", OPTION_STRING, offsetof(struct settings, config), "FILE",
     "the cluster's configuration (cluster.conf)", "file"},
    {'m', "members", OPTION_STRING, offsetof(struct settings, members), "LIST",
     "replicas of the next group, as 0,1,3", NULL},
    {0, "timeout", OPTION_SECONDS, offsetof(struct settings, timeout_ns), "T",
     "give up after this time (5 s)", NULL},
    {0},
};

static int parse_members(const char *text, uint8_t nodes, uint32_t *ret_members, struct error *err)
{
    int *list = NULL;
    size_t count = 0;
    uint32_t members = 0;
    int result = parse_cpu_list(text, &list, &count, NULL);
    if (result)
        return error_set(err, result, "--members '%s': write 0,1,3", text);
    for (size_t i = 0; i < count && !result; i++) {
        if (list[i] < 0 || list[i] >= nodes)
            result = error_set(err, -EINVAL, "the configuration has no replica %d", list[i]);
        else
            members |= 1u << list[i];
    }
    free(list);
    count = (size_t)__builtin_popcount(members);
    if (!result && (count % 2 == 0 || count > VR_REPLICAS_MAX))
        result = error_set(err, -EINVAL, "a group has 1, 3, 5 or 7 members, not %zu", count);
    *ret_members = members;
    return result;
}

/* The newest epoch that anybody tells. */
static int find_epoch(struct vr_client *c, uint64_t timeout_ns, uint32_t *ret_epoch,
                      uint32_t *ret_members, struct error *err)
{
    struct vr_status statuses[VR_NODES_MAX];
    bool there[VR_NODES_MAX] = {0};
    uint64_t wait_ns = timeout_ns < NS_PER_S / 2 ? timeout_ns : NS_PER_S / 2, newest = 0;
    int result = vr_client_status(c, wait_ns, statuses, there, err);
    for (unsigned i = 0; i < VR_NODES_MAX && !result; i++)
        if (there[i] && !(statuses[i].members & VR_GROUP_NONE) && statuses[i].view >= newest) {
            newest = statuses[i].view;
            *ret_epoch = (uint32_t)vr_epoch_of(newest);
            *ret_members = statuses[i].members;
        }
    return result;
}

static int perform(const struct settings *o, const struct vr_cluster *cluster, struct error *err)
{
    struct vr_client *c;
    struct vr_reconfiguration now;
    enum vr_result outcome;
    uint32_t members = 0, epoch = 0, present = 0;
    int result = parse_members(o->members, cluster->node_count, &members, err);
    if (result || (result = vr_client_open_cluster(&c, cluster, err)) != 0)
        return result;
    vr_client_set_timeout(c, o->timeout_ns);
    result = find_epoch(c, o->timeout_ns, &epoch, &present, err);
    if (!result && present == members)
        printf("the group is that already, in epoch %u\n", epoch);
    else if (!result)
        result = vr_client_reconfigure(c, members, epoch, &outcome, &now, err);
    vr_client_close(c);
    if (result || present == members)
        return result;
    if (outcome == VR_CONFLICT)
        return error_set(err, -EAGAIN, "somebody else changed the group; it is in epoch %u now",
                         now.epoch);
    if (outcome != VR_OK)
        return error_set(err, -EINVAL, "the group was refused");
    printf("epoch %u has begun; who left may be switched off when 'assay-vr status' shows the new "
           "members at work\n",
           now.epoch);
    return 0;
}

static int run(int argc, char **argv)
{
    struct settings o = {.config = "cluster.conf", .timeout_ns = 5 * NS_PER_S};
    struct vr_cluster cluster;
    struct error err = {0};
    int code;
    if (!vr_options(&vr_verb_reconfigure, &o, argc, argv, NULL, &code))
        return code;
    if (!o.members) {
        error_set(&err, -EINVAL, "--members is missing");
        return vr_fail(&vr_verb_reconfigure, &err, 2);
    }
    if (vr_cluster_read(&cluster, o.config, &err))
        return vr_fail(&vr_verb_reconfigure, &err, 2);
    int result = perform(&o, &cluster, &err);
    vr_cluster_done(&cluster);
    return result ? vr_fail(&vr_verb_reconfigure, &err, 1) : 0;
}

const struct verb vr_verb_reconfigure = {
    "reconfigure",
    "add, remove or replace replicas while the service goes on",
    "--members LIST [--config FILE]",
    "  assay-vr replica -c cluster.conf -i 3 --format &      a spare of the configuration\n"
    "  assay-vr reconfigure -c cluster.conf --members 0,1,3  3 takes the place of 2\n",
    options,
    run};
