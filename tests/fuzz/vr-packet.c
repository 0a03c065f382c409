/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes the packet decoder and the core behind it.  An input is several packets with time and
 * finished writes between them (vr-feed.h); packets are sealed in the pieces of their type and
 * their bodies made right where a bit asks for it, so that whatever a member of the cluster might
 * send reaches every reader of a body, fragments included, and then vr_step.  Nothing may break
 * there, the replica's numbers stay in order, and all that it sends is let in by a peer.
 *
 * What only a faulty member sends is dropped and counted: a do_view_change that lacks what is
 * committed, entries behind the end of an epoch, a state that is none, two groups for one epoch.
 *
 * With VR_FUZZ_COUNT set, the last line says what was obeyed, dropped and sent.
 */
#include "vr-feed.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
    uint64_t inputs, obeyed[VR_TYPE_END], sent[VR_TYPE_END], whole, entries, executed;
    uint64_t dropped[VR_DROP_COUNT], view_changes, state_transfers, epochs, led;
} counts;

static void say_counts(void)
{
    fprintf(stderr, "vr-packet: %lu inputs; obeyed:", counts.inputs);
    for (unsigned i = 1; i < VR_TYPE_END; i++)
        fprintf(stderr, " %s %lu", vr_type_names[i], counts.obeyed[i]);
    fprintf(stderr, " (%lu in pieces); dropped:", counts.whole);
    for (unsigned i = 1; i < VR_DROP_COUNT; i++)
        fprintf(stderr, " %s %lu", vr_drop_names[i], counts.dropped[i]);
    fprintf(stderr, "; sent:");
    for (unsigned i = 1; i < VR_TYPE_END; i++)
        fprintf(stderr, " %s %lu", vr_type_names[i], counts.sent[i]);
    fprintf(stderr,
            "; %lu entries, %lu requests run, %lu view changes, %lu state transfers; in a later "
            "epoch %lu, as primary %lu\n",
            counts.entries, counts.executed, counts.view_changes, counts.state_transfers,
            counts.epochs, counts.led);
}

static void count(const struct feed *f)
{
    const struct vr_replica *r = f->r;
    for (unsigned i = 0; i < VR_TYPE_END; i++) {
        counts.obeyed[i] += f->obeyed[i];
        counts.sent[i] += f->sent[i];
    }
    for (unsigned i = 0; i < VR_DROP_COUNT; i++)
        counts.dropped[i] += f->packets.dropped[i] + r->counters.dropped[i];
    counts.whole += f->whole;
    counts.entries += r->op - r->newest.op;
    counts.executed += r->counters.executed;
    counts.view_changes += r->counters.view_changes;
    counts.state_transfers += r->counters.state_transfers;
    counts.epochs += vr_epoch_of(r->view) > 0;
    counts.led += vr_leads(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed f;
    if (counts.inputs++ == 0 && getenv("VR_FUZZ_COUNT"))
        atexit(say_counts);
    if (size < 1)
        return 0;
    feed_init(&f, data[0]);
    feed_input(&f, data + 1, size - 1);
    count(&f);
    feed_done(&f);
    return 0;
}
