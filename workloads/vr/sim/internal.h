/* SPDX-License-Identifier: MIT */
/* What the simulator's files share. */
#ifndef ASSAY_VR_SIM_INTERNAL_H
#define ASSAY_VR_SIM_INTERNAL_H

#include "base/clock.h"
#include "vr/sim/sim.h"

#define SIM_CLIENTS_MAX 32
#define SIM_KEYS 12
#define SIM_SECTOR 512
#define SIM_TRACE_LINES 400
#define SIM_TRACE_WIDTH 160
#define SIM_OPS_MAX 60000
#define SIM_OLD_PACKETS 12
#define SIM_OLD_PIECES 5

enum sim_kind {
    SIM_PACKET,
    SIM_CLIENT_PACKET,
    SIM_TURN,
    SIM_DISK,
    SIM_CLIENT,
    SIM_FAULT,
    SIM_PLOT,
    SIM_MEND, /* life: which cut it was */
    SIM_CRASH,
    SIM_RESTART,
};

struct sim_event {
    uint64_t at_ns, order;
    enum sim_kind kind;
    uint8_t to, from;
    uint32_t life; /* of the replica that it is for: what came before a crash is gone */
    uint32_t size;
    unsigned char *bytes;
};

struct sim_write {
    struct vr_write write;
    unsigned char *content; /* copy of the write's bytes */
    unsigned char *phase_bytes;
    size_t phase_size;
    uint64_t phase_offset;
};

#define SIM_WRITES_MAX 512
enum { SIM_LANE_SUPERBLOCK, SIM_LANE_PAGES, SIM_LANES };

struct sim_replica {
    struct vr_replica *core;
    struct vr_store store;
    struct vr_packets packets;
    unsigned char *disk;
    bool up, bad_disk, joins, back_at_once;
    uint32_t incarnation; /* of its disk */
    uint32_t life;
    uint64_t paused_until_ns, turn_at_ns, turn_order, down_until_ns;
    uint64_t clock_offset_ns;
    double clock_rate;
    uint64_t disk_fails_until_ns, disk_slow_ns;
    /* Old packets to it, which the network may deliver again. */
    struct sim_old {
        uint8_t from, type, count; /* a message of several fragments is remembered whole */
        uint64_t fragment;
        uint32_t size[SIM_OLD_PIECES];
        unsigned char *bytes[SIM_OLD_PIECES];
    } old[SIM_OLD_PACKETS];
    uint32_t old_next;
    uint64_t view_changes_before, transfers_before, repaired_before;
    uint64_t checkpoint_seen;
    uint64_t newest_order[VR_NODES_MAX]; /* of the packets that came, by sender */
    /* Group commit: writes of one group go through their phases together. */
    struct sim_write group[SIM_WRITES_MAX], waiting[SIM_WRITES_MAX];
    uint32_t group_count, waiting_count;
    /* These go beside the groups, and may take longer than many of them: writes end in any order.
     */
    struct sim_lane {
        struct sim_write writes[VR_PAGES_OUT_MAX], waiting[VR_PAGES_OUT_MAX];
        uint32_t count, waiting_count;
        bool failed;
        unsigned phase;
    } lanes[SIM_LANES];
    uint64_t slow_ns[SIM_LANES];
    unsigned phase;
    bool group_failed;
    /* A copy of its disk, made at some time, and how often it had been started then. */
    struct {
        unsigned char *disk;
        bool *body_fault, *head_fault;
        uint32_t incarnation, start_count;
    } copy;
    bool restored; /* its disk is an old copy, since this epoch */
    uint64_t restored_epoch;
    bool lost_tail; /* its disk has lost the end of a log, and may look like an old copy */
    /* Which copies in each slot are damaged: never both. */
    bool *body_fault, *head_fault;
};

struct sim_client {
    uint64_t id, session, number;
    uint64_t last_session; /* under this id: only a later one is its own */
    bool registered, waiting;
    uint8_t primary;
    uint64_t invoked_place; /* how much of the history had been answered when this began */
    uint64_t sent_ns, due_ns;
    uint32_t size;
    bool oversized; /* to be refused */
    unsigned char request[1280];
};

struct sim_answer { /* what the model says of one request */
    uint64_t client, session, number, place;
    uint32_t status, size;
    uint64_t hash;
};

struct sim_model {
    struct {
        bool there;
        uint32_t size;
        unsigned char value[64];
    } keys[SIM_KEYS];
    struct {
        uint64_t client, session, number;
    } sessions[64];
    uint32_t session_count, session_capacity;
    struct vr_group group;
    uint64_t place;
    uint64_t entry_count;
    uint64_t *entry_checksums; /* by op */
    uint64_t *checkpoints;     /* by op: checksum of the state, 0 unknown */
    struct sim_answer *answers;
    uint32_t answer_mask;
};

enum sim_plot_kind {
    SIM_PLOT_NONE,
    SIM_PLOT_ACKS,
    SIM_PLOT_LONG,
    SIM_PLOT_PROMISE,
    SIM_PLOT_REJOIN,
    SIM_PLOT_JOIN,
    SIM_PLOT_DOUBT,
    SIM_PLOT_REUSE,
    SIM_PLOT_STATE,
    SIM_PLOT_SUPERBLOCK,
    SIM_PLOT_DRAWN_END,
    SIM_PLOT_HALF = SIM_PLOT_DRAWN_END, /* not drawn: in every sixteenth seed */
    SIM_PLOT_KINDS,
};

struct sim_plot {
    enum sim_plot_kind kind;
    unsigned step, runs; /* step 0: waits until since_ns, and for its moment */
    uint64_t since_ns, limit_ns;
    uint8_t primary, second, third;
    uint64_t view, op;
    uint32_t wish; /* the group that clients are to ask for */
};

struct sim {
    struct sim_options options;
    struct sim_result *result;
    uint64_t random[4];
    uint64_t now_ns, order, newest_view;
    struct sim_event *heap;
    size_t heap_count, heap_capacity;
    struct vr_config config;
    struct vr_key key;  /* of packets: without rounds in a run that corrupts none */
    uint8_t node_count; /* replicas at the beginning, and spare ones */
    struct sim_replica replicas[VR_NODES_MAX];
    struct sim_client clients[SIM_CLIENTS_MAX];
    uint32_t client_count;
    uint64_t next_client_id, completed_place, value_counter;
    struct sim_model model;
    bool healing, stopped;
    unsigned danger, crash_in_write, replay; /* chances in thousandths */
    bool reconfigures;                       /* this seed changes its group */
    bool same_sizes;                         /* half of all values have one size */
    bool loses_disks;                        /* members lose their disks, and are formatted again */
    uint32_t incarnations;                   /* that were given so far */
    /* Chances in thousandths. */
    unsigned loss, duplicate, corrupt, late;
    unsigned turn;           /* that nothing more waits for a replica which has got something */
    uint64_t delay_ns, calm; /* how much longer than in a storm it takes to the next fault */
    bool cut[VR_NODES_MAX + 1][VR_NODES_MAX + 1]; /* from, to; the last is all clients */
    uint32_t cut_count;
    uint64_t press_ns; /* not before */
    struct sim_plot plot;
    struct vr_update update;
    char (*lines)[SIM_TRACE_WIDTH];
    uint64_t line_count;
};

uint64_t sim_random(struct sim *s);
uint64_t sim_below(struct sim *s, uint64_t limit);
bool sim_chance(struct sim *s, unsigned thousandths);
void sim_push(struct sim *s, struct sim_event event);
void sim_fail(struct sim *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Lines are made only in a run that is told: a seed that fails runs again for them. */
void sim_trace_line(struct sim *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define sim_trace(s, ...) ((s)->lines ? sim_trace_line(s, __VA_ARGS__) : (void)0)

/* sim_net.c */
void sim_replay(struct sim *s, uint8_t to);
void sim_forget_packets(struct sim *s, uint8_t to);
/* Packets under way are lost: of one replica to some of the others, or to one; VR_TO_CLIENT: any.
 */
void sim_lose(struct sim *s, uint8_t from, uint8_t to);
void sim_send(struct sim *s, uint8_t from, uint8_t to, const void *bytes, size_t size);

/* sim_disk.c */
void sim_disk_format(struct sim *s, uint8_t index);
void sim_disk_submit(struct sim *s, uint8_t index, const struct vr_write *write);
void sim_disk_done(struct sim *s, uint8_t index);
void sim_disk_crash(struct sim *s, uint8_t index);
void sim_disk_lane_done(struct sim *s, uint8_t index, unsigned lane);
void sim_disk_rot(struct sim *s, uint8_t index);
void sim_disk_repair_heads(struct sim *s, uint8_t index);
void sim_disk_rot_entry(struct sim *s, uint8_t index, uint64_t op);
/* From first to last: the first cannot be read, the others are as if never written. */
void sim_disk_lose_tail(struct sim *s, uint8_t index, uint64_t first, uint64_t last);
void sim_disk_free(struct sim *s, uint8_t index);
void sim_disk_done_with(struct sim *s, uint8_t index);

/* sim_replica.c */
void sim_replica_start(struct sim *s, uint8_t index);
void sim_replica_crash(struct sim *s, uint8_t index);
/* A replica that has left the group, with an empty disk: it may be added again. */
void sim_replica_renew(struct sim *s, uint8_t index);
/* A member whose disk is lost, formatted as at its first start. */
void sim_replica_lose_disk(struct sim *s, uint8_t index);
/* Copies of disks, and the mistake of bringing one back. */
void sim_disk_copy(struct sim *s, uint8_t index);
void sim_disk_restore(struct sim *s, uint8_t index);
/* Members that the group knows by a disk that is no more. */
uint32_t sim_lost_members(const struct sim *s);
void sim_replica_step(struct sim *s, uint8_t index, const struct vr_event *event);
void sim_replica_turn_soon(struct sim *s, uint8_t index);
uint64_t sim_local_ns(const struct sim *s, const struct sim_replica *r);

/* sim_client.c */
void sim_clients_start(struct sim *s);
void sim_client_timer(struct sim *s, uint8_t index);
void sim_client_packet(struct sim *s, const void *bytes, size_t size);

/* sim_oracle.c */
void sim_oracle_init(struct sim *s);
void sim_oracle_done(struct sim *s);
void sim_oracle_executed(struct sim *s, uint8_t index, const struct vr_entry *entry,
                         const void *requests);
void sim_oracle_answered(struct sim *s, const struct sim_client *c, const struct vr_header *h,
                         const void *body);
void sim_oracle_checkpoint(struct sim *s, uint8_t index);
/* Whether every replica has the model's state. */
bool sim_oracle_converged(struct sim *s);

/* sim_plots.c */
void sim_plot_begin(struct sim *s);
void sim_plot(struct sim *s);

/* sim_faults.c */
void sim_faults_begin(struct sim *s);
void sim_fault(struct sim *s);
void sim_heal(struct sim *s);
void sim_mend(struct sim *s, uint32_t cut);
/* Sees to it that views change while operations go on, where fate is too kind. */
void sim_press(struct sim *s);
void sim_crash_planned(struct sim *s, uint8_t index);
void sim_restart_planned(struct sim *s, uint8_t index);
/* Something happens just when a replica changes its state. */
void sim_danger(struct sim *s, uint8_t index);
/* Who was sending its state is gone before all of it has come. */
void sim_source_lost(struct sim *s, uint8_t index);
/* Another group that the faults leave alive; false when the present one had better stay. */
bool sim_next_group(struct sim *s, struct vr_reconfiguration *ret_wish);

#endif
