/* SPDX-License-Identifier: MIT */
/*
 * Reconfiguration, rules 7 and 8 of core.h: the shortest run of one replica in which each part of
 * the rule matters.  assay-vr-planted breaks the same ones, and the simulator must notice.
 */
#include "lab.h"

#define VIEW(epoch, number) ((uint64_t)(epoch) << VR_EPOCH_SHIFT | (number))

static void submit(struct lab *lab, uint64_t client, uint64_t session, uint64_t number,
                   uint32_t opcode, uint32_t members, uint32_t epoch)
{
    struct {
        struct vr_request request;
        struct vr_reconfiguration wish;
    } message = {{client, session, number, opcode, 0}, {.members = members, .epoch = epoch}};
    if (opcode == VR_OP_RECONFIGURE)
        message.request.size = sizeof(message.wish);
    struct vr_header h = {.type = VR_REQUEST,
                          .client = client,
                          .number = number,
                          .size = (uint32_t)vr_request_bytes(message.request.size)};
    receive(lab, h, &message);
    step(lab, (struct vr_event){.kind = VR_EVENT_TURN});
}

/* Replica 0 leads view 3 of a group of three, and client 9 has session 1 << 16. */
static void lead(struct lab *lab)
{
    *lab = (struct lab){.durable = {.view = 3, .log_view = 3}};
    start(lab, 0);
    lab->r->state = VR_NORMAL;
    submit(lab, 9, 0, 0, VR_OP_REGISTER, 0, 0);
    writes_end(lab);
    receive(lab, (struct vr_header){.type = VR_PREPARE_OK, .replica = 1, .view = 3, .op = 1}, NULL);
    CHECK_INT(lab->r->commit, 1);
}

static void acknowledge(struct lab *lab, uint8_t from, uint64_t op)
{
    uint64_t view = lab->r->view;
    receive(lab,
            (struct vr_header){.type = VR_PREPARE_OK,
                               .replica = from,
                               .view = view,
                               .epoch = (uint16_t)vr_epoch_of(view),
                               .op = op},
            NULL);
}

TEST(nothing_follows_the_entry_that_ends_an_epoch)
{
    struct lab lab;
    lead(&lab);
    submit(&lab, 9, 1 << 16, 1, VR_OP_RECONFIGURE, 0xf, 0);
    CHECK_INT(lab.r->op, 2);
    writes_end(&lab);
    submit(&lab, 9, 1 << 16, 2, VR_OP_NULL, 0, 0);
    CHECK_INT(lab.r->op, 2); /* it waits */
    acknowledge(&lab, 1, 2);
    CHECK_INT(vr_epoch_of(lab.r->view), 1);
    CHECK(sent(&lab, VR_REPLY));
    finish(&lab);
}

TEST(the_primary_leads_the_next_epoch_if_it_stays)
{
    struct lab lab;
    lead(&lab);
    submit(&lab, 9, 1 << 16, 1, VR_OP_RECONFIGURE, 0xd, 0);
    writes_end(&lab);
    acknowledge(&lab, 1, 2);
    step(&lab, (struct vr_event){.kind = VR_EVENT_TURN}); /* the superblock is on its way */
    CHECK(!vr_is_primary(lab.r));
    writes_end(&lab);
    step(&lab, (struct vr_event){.kind = VR_EVENT_TURN});
    writes_end(&lab);
    CHECK(vr_is_primary(lab.r));
    CHECK_INT(lab.r->group.members, 0xd);
    CHECK_INT(lab.r->log_view, VIEW(1, 0));
    finish(&lab);
}

TEST(a_wish_for_a_past_epoch_changes_nothing)
{
    struct lab lab;
    lead(&lab);
    submit(&lab, 9, 1 << 16, 1, VR_OP_RECONFIGURE, 0xf, 4);
    writes_end(&lab);
    acknowledge(&lab, 1, 2);
    CHECK_INT(lab.r->commit, 2);
    CHECK_INT(vr_epoch_of(lab.r->view), 0);
    submit(&lab, 9, 1 << 16, 2, VR_OP_NULL, 0, 0);
    CHECK_INT(lab.r->op, 3); /* and the epoch goes on */
    finish(&lab);
}

static struct vr_header epoch_message(uint8_t from, const struct vr_group *group, uint8_t flags)
{
    return (struct vr_header){.type = VR_EPOCH,
                              .flags = flags,
                              .replica = from,
                              .epoch = (uint16_t)vr_epoch_of(group->first_view),
                              .view = group->first_view,
                              .op = group->op,
                              .size = sizeof(*group)};
}

/* Who is added, with nothing on its disk. */
static void added(struct lab *lab, struct vr_group *group, struct vr_entry *entry)
{
    *lab = (struct lab){.durable = {.fresh = 1, .view_checksum = vr_genesis_checksum(1)}};
    lab->durable.group.members = VR_GROUP_NONE;
    start(lab, 3);
    CHECK_INT(lab->r->state, VR_RETIRED);
    *entry = make_entry(1, 0, vr_genesis_checksum(1));
    *group = (struct vr_group){.first_view = VIEW(1, 0),
                               .op = 1,
                               .checksum = entry->checksum,
                               .members = 0xe,
                               .prior = 0x7};
    step(lab, (struct vr_event){.kind = VR_EVENT_TURN});
    writes_end(lab);
}

TEST(who_is_added_has_no_vote_before_it_has_the_log)
{
    struct lab lab;
    struct vr_group group;
    struct vr_entry entry;
    added(&lab, &group, &entry);
    receive(&lab, epoch_message(1, &group, VR_FLAG_HAS), &group);
    CHECK(lab.r->install.active);
    writes_end(&lab);
    receive(&lab,
            (struct vr_header){.type = VR_START_VIEW_CHANGE,
                               .replica = 2,
                               .epoch = 1,
                               .view = VIEW(1, 1),
                               .flags = VR_FLAG_ENTERED},
            NULL);
    writes_end(&lab);
    step(&lab, (struct vr_event){.kind = VR_EVENT_TURN});
    CHECK(!sent(&lab, VR_DO_VIEW_CHANGE));
    CHECK_INT(lab.r->view, VIEW(1, 0));
    /* With the log on its disk it is in the group. */
    struct vr_header prepare = {.type = VR_PREPARE,
                                .replica = 1,
                                .epoch = 1,
                                .view = VIEW(1, 0),
                                .op = 1,
                                .flags = VR_FLAG_REPAIR,
                                .size = sizeof(entry)};
    entry.flags = 0;
    receive(&lab, prepare, &entry);
    writes_end(&lab);
    writes_end(&lab);
    CHECK_INT(lab.r->state, VR_NORMAL);
    CHECK_INT(lab.r->durable.log_view, VIEW(1, 0));
    finish(&lab);
}

/* Found by the simulator (seed 517): a replica that was removed and came back with an empty disk
 * joined the epoch that it had been in before, and what it had acknowledged there was gone. */
TEST(who_comes_back_with_an_empty_disk_joins_no_old_epoch)
{
    struct lab lab = {.durable = {.fresh = VR_FRESH_NEW,
                                  .incarnation = 8,
                                  .view_checksum = vr_genesis_checksum(1),
                                  .group = {.members = VR_GROUP_NONE}}};
    start(&lab, 0);
    /* The group knows another disk under its number. */
    struct vr_group group = {
        .first_view = VIEW(1, 0), .op = 1, .checksum = 9, .members = 7, .incarnations = {7, 5, 6}};
    receive(&lab, epoch_message(1, &group, VR_FLAG_HAS), &group);
    CHECK_INT(lab.r->state, VR_RETIRED);
    CHECK(!lab.r->install.active);
    /* And then this one. */
    group.first_view = VIEW(2, 0);
    group.incarnations[0] = 8;
    receive(&lab, epoch_message(1, &group, VR_FLAG_HAS), &group);
    CHECK_INT(lab.r->view, VIEW(2, 0));
    CHECK(lab.r->install.active);
    finish(&lab);
}

TEST(who_is_removed_stays_until_a_quorum_of_the_new_group_has_the_log)
{
    struct lab lab;
    lead(&lab);
    submit(&lab, 9, 1 << 16, 1, VR_OP_RECONFIGURE, 0xe, 0);
    writes_end(&lab);
    acknowledge(&lab, 1, 2);
    for (unsigned i = 0; i < 3; i++) {
        step(&lab, (struct vr_event){.kind = VR_EVENT_TURN});
        writes_end(&lab);
    }
    CHECK_INT(lab.r->state, VR_RETIRED);
    CHECK(!vr_may_leave(lab.r));
    lab.r->resend_due_ns = 0;
    step(&lab, (struct vr_event){.kind = VR_EVENT_TURN});
    CHECK(sent(&lab, VR_EPOCH)); /* it tells those who do not know */
    struct vr_group group = lab.r->group;
    receive(&lab, epoch_message(1, &group, VR_FLAG_HAS | VR_FLAG_STARTED), &group);
    CHECK(!vr_may_leave(lab.r));
    receive(&lab, epoch_message(3, &group, VR_FLAG_HAS | VR_FLAG_STARTED), &group);
    CHECK(vr_may_leave(lab.r));
    finish(&lab);
}

TEST(who_speaks_of_an_old_epoch_is_told_of_the_new_one)
{
    struct lab lab;
    lead(&lab);
    submit(&lab, 9, 1 << 16, 1, VR_OP_RECONFIGURE, 0xd, 0);
    writes_end(&lab);
    acknowledge(&lab, 1, 2);
    receive(&lab, (struct vr_header){.type = VR_START_VIEW_CHANGE, .replica = 1, .view = 9}, NULL);
    CHECK(sent(&lab, VR_EPOCH));
    CHECK_INT(vr_epoch_of(lab.r->view), 1);
    finish(&lab);
}

/* Found by the simulator (seed 509665): a replica that joined had executed entries of a later view
 * than its epoch's first, and said that the epoch began with them; its restart then took its whole
 * log for lost. */
TEST(an_epoch_begins_with_no_entry_of_a_later_view)
{
    struct lab lab = {.durable = {.view = VIEW(1, 2)}, .count = 2};
    lab.entries[0] = make_entry(1, 0, vr_genesis_checksum(1));
    lab.entries[1] = make_entry(2, VIEW(1, 2), lab.entries[0].checksum);
    lab.durable.group = (struct vr_group){.first_view = VIEW(1, 1),
                                          .op = 1,
                                          .checksum = lab.entries[0].checksum,
                                          .members = 0xe,
                                          .prior = 0x7};
    start(&lab, 1);
    lab.r->commit = lab.r->commit_max = 2;
    step(&lab, (struct vr_event){.kind = VR_EVENT_TURN});
    CHECK_INT(lab.r->log_view, VIEW(1, 1));
    CHECK_INT(lab.r->view_op, 1);
    CHECK(lab.r->view_checksum == lab.entries[0].checksum);
    finish(&lab);
}
