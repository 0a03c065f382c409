/* SPDX-License-Identifier: MIT */
/* assay-vr reconfigure: another group of replicas, while the service goes on. */
#include "base/clock.h"
#include "base/memory.h"
#include "vr/client/client.h"
#include "vr/cmd/cmd.h"

#include <errno.h>
#include <stdio.h>

struct settings {
    const char *config, *members, *replace;
    uint64_t timeout_ns;
    bool force, cancel;
};

static const struct option options[] = {
    {'c', "config", OPTION_STRING, offsetof(struct settings, config), "FILE",
     "the cluster's configuration (cluster.conf)", "file"},
    {'m', "members", OPTION_STRING, offsetof(struct settings, members), "LIST",
     "replicas of the next group, e.g. 0,1,3 (default: the current ones)", NULL},
    {0, "replace", OPTION_STRING, offsetof(struct settings, replace), "LIST",
     "members whose disk was lost and that were formatted again: accept their new disks", NULL},
    {0, "force", OPTION_FLAG, offsetof(struct settings, force), NULL,
     "proceed even if a majority of the next group does not answer: the service stops until it "
     "does",
     NULL},
    {0, "cancel", OPTION_FLAG, offsetof(struct settings, cancel), NULL,
     "keep the current group, in a new epoch: an earlier, undecided change no longer has any "
     "effect",
     NULL},
    {0, "timeout", OPTION_SECONDS, offsetof(struct settings, timeout_ns), "T",
     "give up after this time (5 s)", NULL},
    {0},
};

/* What the replicas say: the newest group, and who is there. */
struct view_of_group {
    struct vr_status statuses[VR_NODES_MAX];
    bool there[VR_NODES_MAX];
    uint32_t epoch, members;
    const uint32_t *incarnations;
};

static int parse_members(const char *option, const char *text, uint8_t nodes, uint32_t *ret_members,
                         struct error *err)
{
    int *list = NULL;
    size_t count = 0;
    uint32_t members = 0;
    int result = parse_cpu_list(text, &list, &count, NULL);
    if (result)
        return error_set(err, result, "--%s '%s': write e.g. 0,1,3", option, text);
    for (size_t i = 0; i < count && !result; i++) {
        if (list[i] < 0 || list[i] >= nodes)
            result = error_set(err, -EINVAL, "the configuration has no replica %d", list[i]);
        else
            members |= 1u << list[i];
    }
    free(list);
    *ret_members = members;
    return result;
}

/* The newest epoch that anybody tells. */
static int look(struct vr_client *c, uint64_t timeout_ns, struct view_of_group *g,
                struct error *err)
{
    uint64_t wait_ns = timeout_ns < NS_PER_S ? timeout_ns : NS_PER_S, newest = 0;
    int result = vr_client_status(c, wait_ns, g->statuses, g->there, err);
    for (unsigned i = 0; i < VR_NODES_MAX && !result; i++) {
        const struct vr_status *s = &g->statuses[i];
        if (!g->there[i] || s->fresh || s->members & VR_GROUP_NONE ||
            (g->incarnations && s->view < newest))
            continue;
        newest = s->view;
        g->epoch = (uint32_t)vr_epoch_of(newest);
        g->members = s->members;
        g->incarnations = s->incarnations;
    }
    if (!result && !g->incarnations)
        result = error_set(err, -ENOENT,
                           "no replica that answers is in a group yet: a cluster starts when all "
                           "of its replicas have been started once");
    return result;
}

/* By which disk a member of the next group is named. */
static int name_disk(const struct view_of_group *g, uint32_t replace, uint8_t i, uint32_t *ret_disk,
                     struct error *err)
{
    bool present = g->members >> i & 1, there = g->there[i];
    uint32_t known = present ? g->incarnations[i] : 0;
    uint32_t own = there ? g->statuses[i].incarnation : 0;
    if (!there && (!present || replace >> i & 1))
        return error_set(err, -EHOSTUNREACH,
                         "replica %u does not answer; it can be added only while it is running", i);
    if (present && there && own != known && !(replace >> i & 1))
        return error_set(err, -EINVAL,
                         "replica %u has a different disk than the group knows; if the old one is "
                         "lost, use --replace %u",
                         i, i);
    *ret_disk = there ? own : known;
    return 0;
}

/* Who of the next group does not answer, and whether those are too many. */
static int check_answers(const struct settings *o, const struct view_of_group *g, uint32_t members,
                         struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf silent = {0};
    unsigned count = 0, answered = 0;
    for (uint8_t i = 0; i < VR_NODES_MAX; i++) {
        if (!(members >> i & 1))
            continue;
        count++;
        answered += g->there[i];
        if (!g->there[i])
            strbuf_printf(&silent, "%s%u", silent.length ? ", " : "", i);
    }
    if (count % 2 == 0 || count > VR_REPLICAS_MAX)
        return error_set(err, -EINVAL, "a group must have 1, 3, 5 or 7 members, not %u", count);
    if (answered > count / 2 || o->force)
        return 0;
    return error_set(err, -EHOSTUNREACH,
                     "of the next group's %u members only %u answer (not %s): without a majority "
                     "it could not serve anyone or be changed again; start them, or use --force",
                     count, answered, strbuf_text(&silent));
}

static int make_wish(const struct settings *o, const struct view_of_group *g, uint8_t nodes,
                     struct vr_reconfiguration *ret_wish, struct error *err)
{
    struct vr_reconfiguration wish = {.members = g->members, .epoch = g->epoch, .renew = o->cancel};
    uint32_t replace = 0;
    int result = o->members ? parse_members("members", o->members, nodes, &wish.members, err) : 0;
    if (!result && o->replace)
        result = parse_members("replace", o->replace, nodes, &replace, err);
    if (!result && replace & ~wish.members)
        result = error_set(err, -EINVAL, "--replace names a replica that is not a member");
    for (uint8_t i = 0; i < VR_NODES_MAX && !result; i++)
        if (wish.members >> i & 1)
            result = name_disk(g, replace, i, &wish.incarnations[i], err);
    if (!result)
        result = check_answers(o, g, wish.members, err);
    *ret_wish = wish;
    return result;
}

static int tell(enum vr_result outcome, const struct vr_reconfiguration *now, struct error *err)
{
    if (outcome == VR_CONFLICT)
        return error_set(err, -EAGAIN, "someone else changed the group; it is now in epoch %u",
                         now->epoch);
    if (outcome != VR_OK)
        return error_set(err, -EINVAL, "the group was refused");
    printf("epoch %u has begun; stop the replicas that left once 'assay-vr status' shows the new "
           "members running\n",
           now->epoch);
    return 0;
}

static int perform(const struct settings *o, const struct vr_cluster *cluster, struct error *err)
{
    struct vr_client *c;
    struct vr_reconfiguration wish, now;
    struct view_of_group g = {0};
    enum vr_result outcome;
    int result = vr_client_open_cluster(&c, cluster, err);
    if (result)
        return result;
    vr_client_set_timeout(c, o->timeout_ns);
    result = look(c, o->timeout_ns, &g, err);
    if (!result)
        result = make_wish(o, &g, cluster->node_count, &wish, err);
    bool same = !result && wish.members == g.members && !o->cancel &&
                memcmp(wish.incarnations, g.incarnations, sizeof(wish.incarnations)) == 0;
    if (same)
        printf("the group already has these members, in epoch %u\n", g.epoch);
    else if (!result)
        result = vr_client_reconfigure(c, &wish, &outcome, &now, err);
    vr_client_close(c);
    if (result == -ETIMEDOUT)
        return error_set(err, result,
                         "no answer from the cluster, and it is undecided whether the group will "
                         "change; 'assay-vr status' shows the epoch (now %u), --cancel undoes it",
                         g.epoch);
    return result || same ? result : tell(outcome, &now, err);
}

static int run(int argc, char **argv)
{
    struct settings o = {.config = "cluster.conf", .timeout_ns = 5 * NS_PER_S};
    struct vr_cluster cluster;
    struct error err = {0};
    int code;
    if (!vr_options(&vr_verb_reconfigure, &o, argc, argv, NULL, &code))
        return code;
    if (!o.members && !o.replace && !o.cancel) {
        error_set(&err, -EINVAL, "--members, --replace or --cancel is missing");
        return vr_fail(&vr_verb_reconfigure, &err, 2);
    }
    if (o.cancel && (o.members || o.replace)) {
        error_set(&err, -EINVAL, "--cancel cannot be used with --members or --replace");
        return vr_fail(&vr_verb_reconfigure, &err, 2);
    }
    if (vr_cluster_read(&cluster, o.config, &err))
        return vr_fail(&vr_verb_reconfigure, &err, 2);
    int result = perform(&o, &cluster, &err);
    vr_cluster_done(&cluster);
    return result ? vr_fail(&vr_verb_reconfigure, &err,
                            result == -ETIMEDOUT ? 3
                            : result == -EINVAL  ? 2
                                                 : 1)
                  : 0;
}

const struct verb vr_verb_reconfigure = {
    "reconfigure",
    "add, remove or replace replicas while the service keeps running",
    "--members LIST | --replace LIST | --cancel [--config FILE]",
    "  assay-vr replica -c cluster.conf -i 3 --format &      a spare from the configuration\n"
    "  assay-vr reconfigure -c cluster.conf --members 0,1,3  3 takes the place of 2\n"
    "  assay-vr reconfigure -c cluster.conf --replace 1      the disk of 1 was lost\n",
    options,
    run,
    NULL};
