/* SPDX-License-Identifier: MIT */
/*
 * The published errors of viewstamped replication and its implementations, each as the shortest
 * run of one replica in which the faulty rule does harm.  docs/VR.md tells where each comes from;
 * the same rules are broken on purpose in assay-vr-planted, which the simulator must catch.
 */
#include "lab.h"
#include "vr/core/core_internal.h"

/* specpaxos sends the view of its last entry as its last normal view.  Here (Raft's figure 8)
 * replica 0 committed an entry of view 0 in view 3, and replica 1, which leads view 4, has another
 * entry of view 1 in its place. */
TEST(the_last_normal_view_decides_not_the_last_entrys)
{
    struct lab lab = {.durable = {.view = 3, .log_view = 1}, .count = 1};
    lab.entries[0] = make_entry(1, 1, vr_genesis_checksum(1));
    lab.durable.view_op = 1;
    lab.durable.view_checksum = lab.entries[0].checksum;
    start(&lab, 1);
    struct log_end end = {.head = {.log_view = 3, .count = 1}};
    end.heads[0] = make_entry(1, 0, vr_genesis_checksum(1));
    end.head.head_checksum = end.heads[0].checksum;
    receive(&lab, view_message(VR_DO_VIEW_CHANGE, 0, 4, &end), &end);
    writes_end(&lab);
    CHECK(lab.r->install.active);
    CHECK_INT(lab.r->install.source, 0);
    step(&lab, (struct vr_event){.kind = VR_EVENT_TURN});
    CHECK(sent(&lab, VR_GET_PREPARE));
    /* Its own entry gives way; first the disk learns that the old log ends before it. */
    receive_prepare(&lab, 0, 4, &end.heads[0]);
    CHECK_INT(lab.r->slots[1].entry.view, 1);
    writes_end(&lab);
    receive_prepare(&lab, 0, 4, &end.heads[0]);
    CHECK_INT(lab.r->slots[1].entry.view, 0);
    writes_end(&lab);
    writes_end(&lab);
    CHECK(vr_is_primary(lab.r));
    CHECK(lab.r->slots[1].entry.checksum == end.heads[0].checksum);
    finish(&lab);
}

/* specpaxos keeps a pointer to the best log that it was sent, which is a copy of its loop's and
 * gone when the loop ends: a new primary that must adopt a peer's log crashes. */
TEST(a_new_primary_adopts_the_log_of_a_peer)
{
    struct lab lab = {
        .durable = {.view = 3, .log_view = 3, .view_checksum = vr_genesis_checksum(1)}};
    start(&lab, 1);
    struct log_end end = {.head = {.log_view = 3, .count = 2}};
    end.heads[0] = make_entry(1, 3, vr_genesis_checksum(1));
    end.heads[1] = make_entry(2, 3, end.heads[0].checksum);
    end.head.head_checksum = end.heads[1].checksum;
    receive(&lab, view_message(VR_DO_VIEW_CHANGE, 0, 4, &end), &end);
    writes_end(&lab);
    CHECK_INT(lab.r->install.end.op, 2);
    for (unsigned i = 0; i < 2; i++) {
        receive_prepare(&lab, 0, 4, &end.heads[i]);
        writes_end(&lab);
    }
    writes_end(&lab);
    CHECK(vr_is_primary(lab.r));
    CHECK_INT(lab.r->op, 2);
    CHECK(lab.r->slots[2].entry.checksum == end.heads[1].checksum);
    finish(&lab);
}

/* A promise that a crash forgets is none (VR Revisited without a disk; Michael et al., DISC'17). */
TEST(do_view_change_waits_until_the_view_is_on_disk)
{
    struct lab lab = {.durable = {.view_checksum = vr_genesis_checksum(1)}};
    start(&lab, 0);
    receive(&lab,
            (struct vr_header){
                .type = VR_START_VIEW_CHANGE, .replica = 1, .view = 1, .flags = VR_FLAG_ENTERED},
            NULL);
    CHECK_INT(lab.r->view, 1);
    CHECK(!sent(&lab, VR_DO_VIEW_CHANGE));
    CHECK_INT(lab.u->write_count, 1);
    writes_end(&lab);
    CHECK(sent(&lab, VR_DO_VIEW_CHANGE));
    finish(&lab);
}

/* One replica's wish moves nobody: a link broken in one direction must not stop the service. */
TEST(a_view_is_left_by_a_quorum_only)
{
    struct lab lab = {.durable = {.view_checksum = vr_genesis_checksum(1)}};
    start(&lab, 2);
    receive(&lab, (struct vr_header){.type = VR_START_VIEW_CHANGE, .replica = 1, .view = 1}, NULL);
    CHECK_INT(lab.r->view, 0);
    CHECK_INT(lab.r->state, VR_NORMAL);
    receive(&lab, (struct vr_header){.type = VR_START_VIEW_CHANGE, .replica = 0, .view = 1}, NULL);
    CHECK_INT(lab.r->view, 1);
    finish(&lab);
}

/* A replica that lost its log takes only the answer to its own question: an old start_view lacks
 * what it acknowledged since. */
TEST(a_lost_log_comes_back_only_by_a_fresh_answer)
{
    struct lab lab = {.durable = {.view = 1, .log_view = 1}, .uncertain = true};
    start(&lab, 0);
    struct log_end end = {.head = {.log_view = 1}};
    end.head.head_checksum = vr_genesis_checksum(1);
    struct vr_header h = view_message(VR_START_VIEW, 1, 1, &end);
    receive(&lab, h, &end);
    CHECK_INT(lab.r->state, VR_RECOVERING);
    h.nonce = 1234;
    receive(&lab, h, &end);
    CHECK(lab.r->state != VR_RECOVERING);
    finish(&lab);
}

/* Found by the simulator (seed 35): with half of its lost log back, a replica voted in the next
 * view change and an acknowledged entry was gone. */
TEST(half_a_log_has_no_vote)
{
    struct lab lab = {.durable = {.view = 1, .log_view = 1}, .uncertain = true};
    start(&lab, 0);
    struct log_end end = {.head = {.log_view = 1, .count = 1}};
    end.heads[0] = make_entry(1, 1, vr_genesis_checksum(1));
    end.head.head_checksum = end.heads[0].checksum;
    struct vr_header h = view_message(VR_START_VIEW, 1, 1, &end);
    h.nonce = 1234;
    receive(&lab, h, &end);
    CHECK(lab.r->install.active);
    receive(&lab,
            (struct vr_header){
                .type = VR_START_VIEW_CHANGE, .replica = 2, .view = 2, .flags = VR_FLAG_ENTERED},
            NULL);
    writes_end(&lab);
    CHECK(!sent(&lab, VR_DO_VIEW_CHANGE));
    CHECK_INT(lab.r->view, 1);
    finish(&lab);
}

/* VR Revisited's state transfer cuts the log to the commit number first: if the new log then does
 * not arrive, acknowledged entries are gone. */
TEST(nothing_is_cut_before_the_new_log_is_there)
{
    struct lab lab = {.durable = {.view_checksum = vr_genesis_checksum(1)}, .count = 2};
    lab.entries[0] = make_entry(1, 0, vr_genesis_checksum(1));
    lab.entries[1] = make_entry(2, 0, lab.entries[0].checksum);
    start(&lab, 0);
    struct log_end end = {.head = {.log_view = 1, .count = 1}};
    struct vr_entry other = make_entry(1, 1, vr_genesis_checksum(1));
    end.heads[0] = other;
    end.head.head_checksum = other.checksum;
    receive(&lab, view_message(VR_START_VIEW, 1, 1, &end), &end);
    CHECK(lab.r->install.active);
    CHECK_INT(lab.r->op, 2);
    CHECK_INT(lab.r->log_view, 0);
    finish(&lab);
}

/* Seed 973361: the end of the old log was on disk before the log up to there was, and a crash in
 * between left a replica in doubt that had lost nothing. */
TEST(a_log_is_closed_where_it_is_on_disk)
{
    struct lab lab = {.durable = {.view_checksum = vr_genesis_checksum(1)}, .count = 1};
    lab.entries[0] = make_entry(1, 0, vr_genesis_checksum(1));
    struct vr_entry second = make_entry(2, 0, lab.entries[0].checksum);
    struct vr_entry third = make_entry(3, 0, second.checksum);
    start(&lab, 1);
    receive_prepare(&lab, 0, 0, &second);
    struct vr_write late[VR_UPDATE_WRITES];
    uint32_t late_count = lab.u->write_count;
    memcpy(late, lab.u->writes, late_count * sizeof(late[0]));
    CHECK_INT(late_count, 1);
    receive_prepare(&lab, 0, 0, &third);
    CHECK_INT(lab.r->op, 3);
    /* The next view has another third entry; the second is not on disk yet. */
    struct vr_entry other = make_entry(3, 2, second.checksum);
    struct log_end end = {.head = {.log_view = 2, .count = 3}};
    end.heads[0] = lab.entries[0];
    end.heads[1] = second;
    end.heads[2] = other;
    end.head.head_checksum = other.checksum;
    receive(&lab, view_message(VR_START_VIEW, 2, 2, &end), &end);
    CHECK(lab.r->install.active);
    receive_prepare(&lab, 2, 2, &other);
    CHECK(!lab.r->closed);
    CHECK_INT(lab.r->op, 3);
    for (uint32_t i = 0; i < late_count; i++)
        step(&lab, (struct vr_event){.kind = VR_EVENT_WRITTEN, .write = &late[i]});
    CHECK_INT(lab.r->durable_op, 2);
    receive_prepare(&lab, 2, 2, &other);
    CHECK(lab.r->closed);
    CHECK_INT(lab.r->view_op, 2);
    finish(&lab);
}

/* A primary that restarts may have sent entries that it never wrote: others may have committed
 * them, and it would give their numbers away again. */
TEST(a_restarted_primary_does_not_go_on)
{
    struct lab lab = {.durable = {.view_checksum = vr_genesis_checksum(1)}};
    start(&lab, 0);
    CHECK_INT(lab.r->state, VR_VIEW_CHANGE);
    finish(&lab);
}

/* Found by the simulator (seed 109): a start_view of the same view that the network said again
 * ended the program, because this replica had meanwhile come further. */
TEST(an_old_start_view_said_again_is_dropped)
{
    struct lab lab = {.durable = {.view = 1, .view_checksum = vr_genesis_checksum(1)}, .count = 2};
    lab.entries[0] = make_entry(1, 0, vr_genesis_checksum(1));
    lab.entries[1] = make_entry(2, 0, lab.entries[0].checksum);
    start(&lab, 0);
    lab.r->commit = lab.r->commit_max = 2; /* as a checkpoint that arrived leaves it */
    struct log_end end = {.head = {.log_view = 1, .count = 1}};
    end.heads[0] = lab.entries[0];
    end.head.head_checksum = end.heads[0].checksum;
    receive(&lab, view_message(VR_START_VIEW, 1, 1, &end), &end);
    CHECK(!lab.r->install.active);
    CHECK_INT(lab.r->counters.dropped[VR_DROP_STALE], 1);
    finish(&lab);
}

/* specpaxos resends the last prepare only: who misses more waits for ever. */
TEST(all_that_is_missing_is_sent_again)
{
    struct lab lab = {.durable = {.view = 1, .log_view = 1}, .count = 3};
    uint64_t parent = vr_genesis_checksum(1);
    for (unsigned i = 0; i < 3; i++) {
        lab.entries[i] = make_entry(i + 1, 1, parent);
        parent = lab.entries[i].checksum;
    }
    start(&lab, 0);
    receive(
        &lab,
        (struct vr_header){.type = VR_GET_PREPARE, .replica = 2, .view = 1, .op = 1, .commit = 3},
        NULL);
    unsigned count = 0;
    for (uint32_t i = 0; i < lab.u->message_count; i++)
        count += lab.u->messages[i].header.type == VR_PREPARE;
    CHECK_INT(count, 3);
    finish(&lab);
}

/* Found by seed 535694: who had only the head of an entry when a checkpoint took its place sent
 * neither, and who asked waited for ever. */
TEST(a_head_before_the_checkpoint_is_answered_with_the_state)
{
    struct lab lab = {.durable = {.view = 1, .log_view = 1}, .count = 2};
    lab.entries[0] = make_entry(1, 1, vr_genesis_checksum(1));
    lab.entries[1] = make_entry(2, 1, lab.entries[0].checksum);
    lab.entries[0].flags = 0;
    start(&lab, 0);
    lab.r->newest.op = 2;
    lab.r->newest.size = 8;
    receive(
        &lab,
        (struct vr_header){.type = VR_GET_PREPARE, .replica = 2, .view = 1, .op = 1, .commit = 2},
        NULL);
    CHECK(sent(&lab, VR_STATE_CHUNK));
    CHECK(!sent(&lab, VR_PREPARE));
    finish(&lab);
}

/* An acknowledgement of an older view says nothing about the log of this one. */
TEST(acknowledgements_of_an_older_view_do_not_count)
{
    struct lab lab = {.durable = {.view = 3, .log_view = 3}, .count = 1};
    lab.entries[0] = make_entry(1, 3, vr_genesis_checksum(1));
    start(&lab, 0);
    lab.r->state = VR_NORMAL; /* the primary of view 3 */
    receive(&lab, (struct vr_header){.type = VR_PREPARE_OK, .replica = 1, .view = 2, .op = 1},
            NULL);
    CHECK_INT(lab.r->commit_max, 0);
    receive(&lab, (struct vr_header){.type = VR_PREPARE_OK, .replica = 1, .view = 3, .op = 1},
            NULL);
    CHECK_INT(lab.r->commit_max, 1);
    finish(&lab);
}

static void five_replicas(struct vr_config *config)
{
    config->replica_count = 5;
}

/* It led view 5, and two others acknowledged op 2 there; the log of view 6 ends before it.  When it
 * leads view 10, another op 2 is on its own disk only. */
TEST(who_leads_again_counts_no_old_acknowledgements)
{
    struct lab lab = {
        .durable = {.view = 5, .log_view = 5, .view_checksum = vr_genesis_checksum(1)},
        .count = 2,
        .config = five_replicas};
    lab.entries[0] = make_entry(1, 5, vr_genesis_checksum(1));
    lab.entries[1] = make_entry(2, 5, lab.entries[0].checksum);
    start(&lab, 0);
    lab.r->state = VR_NORMAL;
    receive(&lab, (struct vr_header){.type = VR_PREPARE_OK, .replica = 1, .view = 5, .op = 1},
            NULL);
    receive(&lab, (struct vr_header){.type = VR_PREPARE_OK, .replica = 2, .view = 5, .op = 2},
            NULL);
    CHECK_INT(lab.r->commit, 1);
    struct log_end end = {
        .head = {.log_view = 6, .count = 1, .head_checksum = lab.entries[0].checksum}};
    end.heads[0] = lab.entries[0];
    for (uint8_t from = 3; from <= 4; from++) {
        receive(&lab,
                (struct vr_header){.type = VR_START_VIEW_CHANGE,
                                   .replica = from,
                                   .view = 10,
                                   .flags = VR_FLAG_ENTERED},
                NULL);
        writes_end(&lab);
    }
    for (uint8_t from = 3; from <= 4; from++) {
        receive(&lab, view_message(VR_DO_VIEW_CHANGE, from, 10, &end), &end);
        for (unsigned i = 0; i < 4; i++)
            writes_end(&lab);
    }
    CHECK(vr_is_primary(lab.r));
    CHECK_INT(lab.r->view, 10);
    CHECK_INT(lab.r->op, 1);
    struct vr_request request = {.client = 9, .opcode = VR_OP_REGISTER};
    receive(&lab, (struct vr_header){.type = VR_REQUEST, .client = 9, .size = sizeof(request)},
            &request);
    step(&lab, (struct vr_event){.kind = VR_EVENT_TURN});
    writes_end(&lab);
    CHECK_INT(lab.r->op, 2);
    CHECK_INT(lab.r->durable_op, 2);
    /* With one more it would be a quorum of three, if the old one counted. */
    receive(&lab, (struct vr_header){.type = VR_PREPARE_OK, .replica = 3, .view = 10, .op = 2},
            NULL);
    CHECK_INT(lab.r->commit, 1);
    receive(&lab, (struct vr_header){.type = VR_PREPARE_OK, .replica = 4, .view = 10, .op = 2},
            NULL);
    CHECK_INT(lab.r->commit, 2);
    finish(&lab);
}

/* The primary answers nobody before f + 1 have the entry on disk, itself counted by its disk. */
TEST(an_entry_counts_when_a_quorum_has_it_on_disk)
{
    struct lab lab = {.durable = {.view = 3, .log_view = 3}};
    start(&lab, 0);
    lab.r->state = VR_NORMAL;
    lab.r->view_checksum = lab.r->durable.view_checksum;
    struct vr_request request = {.client = 9, .opcode = VR_OP_REGISTER};
    receive(&lab, (struct vr_header){.type = VR_REQUEST, .client = 9, .size = sizeof(request)},
            &request);
    step(&lab, (struct vr_event){.kind = VR_EVENT_TURN});
    CHECK(sent(&lab, VR_PREPARE));
    CHECK_INT(lab.u->write_count, 1);
    struct vr_write write = lab.u->writes[0];
    receive(&lab, (struct vr_header){.type = VR_PREPARE_OK, .replica = 1, .view = 3, .op = 1},
            NULL);
    CHECK_INT(lab.r->commit, 0);
    step(&lab, (struct vr_event){.kind = VR_EVENT_WRITTEN, .write = &write});
    CHECK_INT(lab.r->commit, 1);
    CHECK(sent(&lab, VR_REPLY));
    finish(&lab);
}

static void three_at_once(struct vr_config *config)
{
    config->pipeline = 3;
}

static void ask_and_turn(struct lab *lab, uint64_t client)
{
    struct vr_request request = {.client = client, .opcode = VR_OP_REGISTER};
    receive(lab, (struct vr_header){.type = VR_REQUEST, .client = client, .size = sizeof(request)},
            &request);
    step(lab, (struct vr_event){.kind = VR_EVENT_TURN});
}

/* Batches leave while earlier ones are under way, as many as the pipeline holds; what came
 * meanwhile is one batch. */
TEST(several_batches_are_under_way_at_once)
{
    struct lab lab = {.durable = {.view = 3, .log_view = 3}, .config = three_at_once};
    start(&lab, 0);
    lab.r->state = VR_NORMAL;
    lab.r->view_checksum = lab.r->durable.view_checksum;
    struct vr_write first = {0};
    for (uint64_t client = 1; client <= 3; client++) {
        ask_and_turn(&lab, client);
        CHECK(sent(&lab, VR_PREPARE));
        CHECK_INT(lab.r->op, client);
        CHECK_INT(lab.u->write_count, 1);
        if (client == 1)
            first = lab.u->writes[0];
    }
    ask_and_turn(&lab, 4);
    ask_and_turn(&lab, 5);
    CHECK(!sent(&lab, VR_PREPARE));
    CHECK_INT(lab.r->op, 3);
    CHECK_INT(lab.r->commit, 0);
    step(&lab, (struct vr_event){.kind = VR_EVENT_WRITTEN, .write = &first});
    receive(&lab, (struct vr_header){.type = VR_PREPARE_OK, .replica = 1, .view = 3, .op = 1},
            NULL);
    CHECK_INT(lab.r->commit, 1);
    step(&lab, (struct vr_event){.kind = VR_EVENT_TURN});
    CHECK_INT(lab.r->op, 4);
    CHECK_INT(vr_slot(lab.r, 4)->entry.count, 2);
    finish(&lab);
}

/* Found by the simulator (seed 195): a primary that the others had left told a client that its
 * session, of which it had not heard, was over. */
TEST(a_session_that_is_not_known_is_a_matter_for_the_log)
{
    struct lab lab = {.durable = {.view = 3, .log_view = 3}};
    start(&lab, 0);
    lab.r->state = VR_NORMAL;
    struct vr_request request = {.client = 9, .session = 77, .number = 5, .opcode = VR_OP_NULL};
    receive(
        &lab,
        (struct vr_header){.type = VR_REQUEST, .client = 9, .number = 5, .size = sizeof(request)},
        &request);
    CHECK(!sent(&lab, VR_EVICTION));
    step(&lab, (struct vr_event){.kind = VR_EVENT_TURN});
    CHECK(sent(&lab, VR_PREPARE));
    finish(&lab);
}

/* The same as the first, seen from who sends: an entry of view 0 that it took over in view 3. */
TEST(do_view_change_names_the_last_normal_view)
{
    struct lab lab = {.durable = {.view = 3, .log_view = 3}, .count = 1};
    lab.entries[0] = make_entry(1, 0, vr_genesis_checksum(1));
    lab.durable.view_op = 1;
    lab.durable.view_checksum = lab.entries[0].checksum;
    start(&lab, 2);
    receive(&lab,
            (struct vr_header){
                .type = VR_START_VIEW_CHANGE, .replica = 1, .view = 4, .flags = VR_FLAG_ENTERED},
            NULL);
    writes_end(&lab);
    CHECK(sent(&lab, VR_DO_VIEW_CHANGE));
    for (uint32_t i = 0; i < lab.u->message_count; i++) {
        struct vr_view_head head;
        if (lab.u->messages[i].header.type != VR_DO_VIEW_CHANGE)
            continue;
        memcpy(&head, lab.u->messages[i].first, sizeof(head));
        CHECK_INT(head.log_view, 3);
    }
    finish(&lab);
}

/* VR Revisited's other cut: the log goes when the first piece of a state comes. */
TEST(nothing_is_cut_before_the_new_state_is_there)
{
    struct lab lab = {.durable = {.view_checksum = vr_genesis_checksum(1)}, .count = 2};
    lab.entries[0] = make_entry(1, 0, vr_genesis_checksum(1));
    lab.entries[1] = make_entry(2, 0, lab.entries[0].checksum);
    start(&lab, 1);
    CHECK_INT(lab.r->state, VR_NORMAL);
    struct {
        struct vr_state_head head;
        unsigned char bytes[64];
    } chunk = {.head = {.checksum = 5, .size = 9, .kind = VR_STATE_GROUPS, .count = 8}};
    receive(&lab, (struct vr_header){.type = VR_STATE_CHUNK, .op = 16, .size = sizeof(chunk)},
            &chunk);
    CHECK(lab.r->arriving_active);
    CHECK_INT(lab.r->op, 2);
    finish(&lab);
}

/* A view begins with the logs of f + 1, so that whatever was committed is in one of them. */
TEST(a_view_begins_with_a_quorum_of_logs)
{
    struct lab lab = {
        .durable = {.view = 3, .log_view = 3, .view_checksum = vr_genesis_checksum(1)}};
    start(&lab, 1);
    receive(&lab,
            (struct vr_header){
                .type = VR_START_VIEW_CHANGE, .replica = 2, .view = 4, .flags = VR_FLAG_ENTERED},
            NULL);
    writes_end(&lab);
    CHECK_INT(lab.r->view, 4);
    CHECK(!lab.r->install.active);
    struct log_end end = {.head = {.log_view = 3, .head_checksum = vr_genesis_checksum(1)}};
    receive(&lab, view_message(VR_DO_VIEW_CHANGE, 2, 4, &end), &end);
    writes_end(&lab);
    CHECK(vr_is_primary(lab.r));
    finish(&lab);
}

/* A request that no entry can hold: silence would make its client ask for ever. */
TEST(a_request_that_no_entry_can_hold_is_refused)
{
    struct lab lab = {.durable = {.view = 3, .log_view = 3}};
    start(&lab, 0);
    lab.r->state = VR_NORMAL;
    struct {
        struct vr_request request;
        char data[512];
    } message = {.request = {.client = 9, .session = 77, .number = 5, .size = 512}};
    struct vr_header h = {.type = VR_REQUEST, .client = 9, .number = 5, .size = sizeof(message)};
    receive(&lab, h, &message);
    CHECK(sent(&lab, VR_REPLY));
    struct vr_reply reply = {0};
    if (lab.u->message_count)
        memcpy(&reply, lab.u->messages[0].first, sizeof(reply));
    CHECK_INT(reply.status, VR_TOO_LARGE);
    CHECK_INT(reply.session, 77);
    CHECK_INT(lab.u->messages[0].header.number, 5);
    step(&lab, (struct vr_event){.kind = VR_EVENT_TURN});
    CHECK(!sent(&lab, VR_PREPARE));
    finish(&lab);
}

/* A new primary owes nobody an acknowledgement, and who waits for its disk wakes by it: neither
 * has a reason to wake before its next heartbeat. */
TEST(nobody_wakes_for_an_acknowledgement_that_it_cannot_send)
{
    struct lab lab = {
        .durable = {.view = 3, .log_view = 3, .view_checksum = vr_genesis_checksum(1)}};
    start(&lab, 1);
    receive(&lab,
            (struct vr_header){
                .type = VR_START_VIEW_CHANGE, .replica = 2, .view = 4, .flags = VR_FLAG_ENTERED},
            NULL);
    writes_end(&lab);
    struct log_end end = {.head = {.log_view = 3, .head_checksum = vr_genesis_checksum(1)}};
    receive(&lab, view_message(VR_DO_VIEW_CHANGE, 2, 4, &end), &end);
    writes_end(&lab);
    CHECK(vr_is_primary(lab.r));
    step(&lab, (struct vr_event){.kind = VR_EVENT_TURN});
    CHECK(vr_deadline_ns(lab.r) > lab.r->now_ns + lab.r->config.heartbeat_ns / 2);
    finish(&lab);
}

/* An entry behind a state that came from the primary is found after a crash only when the
 * superblock names that state: before, it is not acknowledged. */
TEST(a_state_counts_when_the_superblock_names_it)
{
    struct lab lab = {.durable = {.view_checksum = vr_genesis_checksum(1)}};
    start(&lab, 1);
    struct vr_replica *r = lab.r;
    /* As if a state at op 16 had come and its area was written. */
    r->newest.op = r->commit = r->commit_max = r->op = 16;
    r->newest.entry_checksum = 99;
    r->newest.size = 1;
    struct vr_entry entry = make_entry(17, 0, 99);
    receive_prepare(&lab, 0, 0, &entry);
    bool superblock = false;
    for (uint32_t i = 0; i < lab.u->write_count; i++) {
        struct vr_write write = lab.u->writes[i];
        superblock |= write.kind == VR_WRITE_DURABLE && write.durable.checkpoint_op == 16;
    }
    CHECK(superblock);
    struct vr_write writes[4];
    uint32_t count = lab.u->write_count;
    memcpy(writes, lab.u->writes, count * sizeof(writes[0]));
    for (uint32_t i = 0; i < count; i++)
        if (writes[i].kind == VR_WRITE_ENTRY)
            step(&lab, (struct vr_event){.kind = VR_EVENT_WRITTEN, .write = &writes[i]});
    CHECK(r->durable_op < 17);
    for (uint32_t i = 0; i < count; i++)
        if (writes[i].kind == VR_WRITE_DURABLE)
            step(&lab, (struct vr_event){.kind = VR_EVENT_WRITTEN, .write = &writes[i]});
    CHECK_INT(r->durable_op, 17);
    finish(&lab);
}

/* VR Revisited's recovery asks others who are at work; after a crash of all nobody is.  Who has its
 * log on disk needs none of them. */
TEST(a_cluster_that_crashed_whole_goes_on)
{
    struct lab lab = {
        .durable = {.view = 1, .log_view = 1, .view_checksum = vr_genesis_checksum(1)}};
    start(&lab, 2);
    CHECK_INT(lab.r->state, VR_NORMAL);
    struct log_end end = {.head = {.log_view = 1, .head_checksum = vr_genesis_checksum(1)}};
    receive(&lab, view_message(VR_DO_VIEW_CHANGE, 1, 2, &end), &end);
    writes_end(&lab);
    writes_end(&lab);
    CHECK(vr_is_primary(lab.r));
    finish(&lab);
}

/* Others paid for counters that wrapped: here all are of 64 bits. */
TEST(numbers_pass_32_bits)
{
    struct lab lab = {.durable = {.view = 3, .log_view = 3, .checkpoint_op = UINT32_MAX}};
    start(&lab, 0);
    struct vr_replica *r = lab.r;
    r->state = VR_NORMAL;
    r->uncertain = false;
    r->newest.op = r->op = r->durable_op = r->commit = r->commit_max = UINT32_MAX;
    r->newest.entry_checksum = 99;
    struct vr_request request = {.client = 9, .opcode = VR_OP_REGISTER};
    receive(&lab, (struct vr_header){.type = VR_REQUEST, .client = 9, .size = sizeof(request)},
            &request);
    step(&lab, (struct vr_event){.kind = VR_EVENT_TURN});
    CHECK(r->op == 1ULL << 32);
    writes_end(&lab);
    receive(&lab,
            (struct vr_header){.type = VR_PREPARE_OK, .replica = 1, .view = 3, .op = 1ULL << 32},
            NULL);
    CHECK(r->commit == 1ULL << 32);
    CHECK(r->sessions.items[0].session == 1ULL << 48);
    finish(&lab);
}

/* Found by the simulator (seed 31343): a replica that was taking over a log had no room for the
 * rest of it.  A checkpoint would have made some, but it did not hear that entries it had were
 * committed meanwhile, and asked for another view for ever. */
TEST(who_takes_over_a_log_runs_what_is_committed_of_it)
{
    struct lab lab = {.durable = {.view_checksum = vr_genesis_checksum(1)}};
    start(&lab, 0);
    struct log_end end = {.head = {.log_view = 1, .count = 2}};
    end.heads[0] = make_entry(1, 0, vr_genesis_checksum(1));
    end.heads[1] = make_entry(2, 0, end.heads[0].checksum);
    end.head.head_checksum = end.heads[1].checksum;
    receive(&lab, view_message(VR_START_VIEW, 1, 1, &end), &end);
    writes_end(&lab);
    receive_prepare(&lab, 1, 1, &end.heads[0]);
    writes_end(&lab);
    CHECK(lab.r->install.active);
    CHECK_INT(lab.r->install.matched, 1);
    CHECK_INT(lab.r->commit, 0);
    /* Of somebody else's word nothing follows. */
    struct vr_header h = {.type = VR_COMMIT, .replica = 2, .view = 1, .op = 7, .commit = 7};
    receive(&lab, h, NULL);
    CHECK_INT(lab.r->commit, 0);
    h.replica = 1;
    receive(&lab, h, NULL);
    CHECK_INT(lab.r->commit, 1);
    CHECK(lab.r->install.active);
    finish(&lab);
}

/* A faulty member that led said that more is committed than there is.  In the next view that is
 * forgotten: who leads it serves, and nobody runs what is not committed. */
TEST(a_faulty_primarys_commits_end_with_its_view)
{
    struct lab lab = {.durable = {.view_checksum = vr_genesis_checksum(1)}};
    start(&lab, 1);
    struct vr_header h = {.type = VR_COMMIT, .replica = 0, .op = 1u << 20, .commit = 1u << 20};
    receive(&lab, h, NULL);
    CHECK_INT(lab.r->commit_max, 1 << 20);
    struct log_end end = {.head = {.log_view = 2, .count = 1}};
    end.heads[0] = make_entry(1, 0, vr_genesis_checksum(1));
    end.head.head_checksum = end.heads[0].checksum;
    receive(&lab, view_message(VR_START_VIEW, 2, 2, &end), &end);
    writes_end(&lab);
    receive_prepare(&lab, 2, 2, &end.heads[0]);
    for (int i = 0; i < 3; i++)
        writes_end(&lab);
    CHECK_INT(lab.r->state, VR_NORMAL);
    CHECK_INT(lab.r->commit_max, 1);
    struct vr_entry next = make_entry(2, 2, end.heads[0].checksum);
    receive_prepare(&lab, 2, 2, &next);
    writes_end(&lab);
    CHECK_INT(lab.r->op, 2);
    CHECK_INT(lab.r->commit, 1);
    finish(&lab);
}

/* Found by the simulator (seed 15411): a checkpoint was due while the one before was still being
 * written, nothing more could be executed, and without it the log had no room for what was missing.
 */
TEST(a_checkpoint_that_had_to_wait_is_taken)
{
    struct lab lab = {.durable = {.view_checksum = vr_genesis_checksum(1)}};
    start(&lab, 1);
    struct vr_replica *r = lab.r;
    r->op = r->durable_op = r->commit = r->commit_max = 32;
    r->commit = 16;
    step(&lab, (struct vr_event){.kind = VR_EVENT_MESSAGE,
                                 .header = &(struct vr_header){.type = VR_EVICTION}});
    CHECK(r->pending_there);
    step(&lab, (struct vr_event){.kind = VR_EVENT_TURN});
    struct vr_write writes[VR_UPDATE_WRITES];
    uint32_t count = 0;
    for (uint32_t i = 0; i < lab.u->write_count; i++)
        if (lab.u->writes[i].kind == VR_WRITE_PAGE)
            writes[count++] = lab.u->writes[i];
    CHECK(count > 0);
    r->commit = 32;
    for (uint32_t i = 0; i < count; i++)
        step(&lab, (struct vr_event){.kind = VR_EVENT_WRITTEN, .write = &writes[i]});
    CHECK_INT(r->pending.op, 16);
    step(&lab, (struct vr_event){.kind = VR_EVENT_TURN});
    CHECK_INT(r->newest.op, 16);
    CHECK(r->pending_there);
    CHECK_INT(r->pending.op, 32);
    finish(&lab);
}
