/* SPDX-License-Identifier: MIT */
/*
 * Who a replica is, rules 7 and 9 of core.h: the first group is founded by all of its members while
 * all are new, and a disk that the others know better than it knows itself has no voice.
 */
#include "lab.h"

static const uint32_t all[VR_NODES_MAX] = {11, 12, 13};

static struct lab formatted(void)
{
    return (struct lab){.durable = {.fresh = VR_FRESH_NEW,
                                    .incarnation = 11,
                                    .view_checksum = vr_genesis_checksum(1),
                                    .group = {.members = 7}}};
}

static void turns(struct lab *lab)
{
    for (unsigned i = 0; i < 4; i++) {
        step(lab, (struct vr_event){.kind = VR_EVENT_TURN});
        writes_end(lab);
    }
}

static void told_found(struct lab *lab, uint8_t from, uint8_t flags, const uint32_t *known)
{
    struct vr_founding body = {0};
    memcpy(body.incarnations, known, sizeof(body.incarnations));
    receive(
        lab,
        (struct vr_header){.type = VR_FOUND, .replica = from, .flags = flags, .size = sizeof(body)},
        &body);
    writes_end(lab);
}

static void told_hello(struct lab *lab, uint8_t from, uint8_t flags, struct vr_hello hello)
{
    receive(lab,
            (struct vr_header){.type = VR_HELLO,
                               .replica = from,
                               .view = lab->r->view,
                               .nonce = 1234,
                               .flags = flags,
                               .size = sizeof(hello)},
            &hello);
    writes_end(lab);
}

TEST(the_first_group_is_founded_when_all_have_agreed)
{
    struct lab lab = formatted();
    start(&lab, 0);
    CHECK_INT(lab.r->state, VR_NEW);
    turns(&lab);
    told_found(&lab, 1, 0, all);
    CHECK_INT(lab.r->fresh, VR_FRESH_NEW); /* nobody has heard of 2 */
    told_found(&lab, 2, 0, all);
    CHECK_INT(lab.r->durable.fresh, VR_FRESH_AGREED);
    told_found(&lab, 1, VR_FLAG_HAS, all);
    turns(&lab);
    CHECK_INT(lab.r->state, VR_NEW);
    told_found(&lab, 2, VR_FLAG_HAS, all);
    turns(&lab);
    CHECK_INT(lab.r->state, VR_NORMAL);
    CHECK_INT(lab.r->durable.fresh, VR_FRESH_NO);
    finish(&lab);
}

TEST(a_disk_formatted_under_a_founders_number_is_no_founder)
{
    static const uint32_t founders[VR_NODES_MAX] = {10, 12, 13};
    struct lab lab = formatted();
    start(&lab, 0);
    turns(&lab);
    for (uint8_t from = 1; from < 3; from++)
        told_found(&lab, from, VR_FLAG_STARTED, founders);
    turns(&lab);
    CHECK_INT(lab.r->state, VR_NEW);
    CHECK_INT(lab.r->durable.fresh, VR_FRESH_NEW);
    /* Nor is one of whom the others have another list. */
    for (uint8_t from = 1; from < 3; from++)
        told_found(&lab, from, 0, all);
    CHECK_INT(lab.r->durable.fresh, VR_FRESH_AGREED);
    for (uint8_t from = 1; from < 3; from++)
        told_found(&lab, from, VR_FLAG_HAS, founders);
    turns(&lab);
    CHECK_INT(lab.r->state, VR_NEW);
    /* It says no word but who it is. */
    for (uint32_t i = 0; i < lab.u->message_count; i++)
        CHECK_INT(lab.u->messages[i].header.type, VR_FOUND);
    finish(&lab);
}

/* Replica 1 of three, in view 3, which 0 leads, started twice before. */
static struct lab restarted(void)
{
    struct lab lab = {
        .durable = {.view = 3, .log_view = 3, .incarnation = 12, .starts = 2, .group = {0}}};
    lab.durable.group.members = 7;
    memcpy(lab.durable.group.incarnations, all, sizeof(all));
    return lab;
}

TEST(who_starts_has_a_voice_when_the_others_have_answered)
{
    struct lab lab = restarted();
    start(&lab, 1);
    turns(&lab);
    CHECK_INT(lab.r->durable.starts, 2); /* it has not asked */
    receive(&lab, (struct vr_header){.type = VR_COMMIT, .replica = 0, .view = 3}, NULL);
    step(&lab, (struct vr_event){.kind = VR_EVENT_TURN});
    CHECK(!sent(&lab, VR_PREPARE_OK));
    struct vr_hello known = {.incarnation = 12, .starts = 2, .view = 3};
    told_hello(&lab, 0, VR_FLAG_HAS, known);
    told_hello(&lab, 2, VR_FLAG_HAS, known);
    turns(&lab);
    CHECK_INT(lab.r->durable.starts, 3);
    CHECK(lab.r->hello.phase == VR_HELLO_COUNTS);
    for (uint8_t from = 0; from < 3; from += 2)
        told_hello(&lab, from, VR_FLAG_HAS | VR_FLAG_STARTED, known);
    CHECK(lab.r->hello.phase == VR_HELLO_DONE);
    receive(&lab, (struct vr_header){.type = VR_COMMIT, .replica = 0, .view = 3}, NULL);
    step(&lab, (struct vr_event){.kind = VR_EVENT_TURN});
    CHECK(sent(&lab, VR_PREPARE_OK));
    finish(&lab);
}

static void noticed(struct vr_hello known, bool is_old)
{
    struct lab lab = restarted();
    start(&lab, 1);
    turns(&lab);
    known.incarnation = 12;
    told_hello(&lab, 0, VR_FLAG_HAS, known);
    turns(&lab);
    CHECK_INT(lab.r->is_old_copy, is_old);
    CHECK_INT(lab.r->state, is_old ? VR_RETIRED : VR_NORMAL);
    CHECK(is_old == (lab.r->durable.incarnation != 12));
    finish(&lab);
}

TEST(an_old_copy_takes_another_incarnation)
{
    noticed((struct vr_hello){.starts = 3, .view = 3}, true);
    noticed((struct vr_hello){.starts = 2, .view = 4}, true);
    noticed((struct vr_hello){.starts = 2, .view = 3, .op = 1}, true);
    noticed((struct vr_hello){.starts = 2, .view = 3}, false);
    noticed((struct vr_hello){.starts = 0, .view = 2, .op = 9}, false);
}

TEST(starts_of_others_are_kept)
{
    struct lab lab = restarted();
    start(&lab, 1);
    struct vr_hello hello = {.incarnation = 13, .starts = 5, .view = 3};
    told_hello(&lab, 2, 0, hello); /* asks */
    CHECK(sent(&lab, VR_HELLO) || lab.u->message_count == 0);
    CHECK_INT(lab.r->known_starts[2], 0);
    told_hello(&lab, 2, VR_FLAG_STARTED, hello);
    turns(&lab);
    CHECK_INT(lab.r->durable.known_starts[2], 5);
    hello.starts = 4; /* an old word */
    told_hello(&lab, 2, VR_FLAG_STARTED, hello);
    CHECK_INT(lab.r->known_starts[2], 5);
    hello.incarnation = 99; /* another disk's */
    hello.starts = 9;
    told_hello(&lab, 2, VR_FLAG_STARTED, hello);
    CHECK_INT(lab.r->known_starts[2], 5);
    finish(&lab);
}
