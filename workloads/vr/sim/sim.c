/* SPDX-License-Identifier: MIT */
#include "vr/sim/sim.h"
#include "base/memory.h"
#include "vr/sim/internal.h"

#include <stdarg.h>
#include <stdio.h>

const char *const sim_count_names[SIM_COUNTS] = {"operations",
                                                 "views",
                                                 "epochs",
                                                 "joined",
                                                 "wiped",
                                                 "disks_lost",
                                                 "copies_restored",
                                                 "copies_noticed",
                                                 "replaced",
                                                 "packets",
                                                 "lost",
                                                 "doubled",
                                                 "replayed",
                                                 "late",
                                                 "reordered",
                                                 "corrupted",
                                                 "partitions",
                                                 "partitions_one_way",
                                                 "promises_tested",
                                                 "memories_tested",
                                                 "plots",
                                                 "pauses",
                                                 "skewed_clocks",
                                                 "crashes",
                                                 "restarts",
                                                 "crashes_of_all",
                                                 "torn_writes",
                                                 "lost_writes",
                                                 "misdirected_writes",
                                                 "rotten_sectors",
                                                 "lost_tails",
                                                 "late_checkpoints",
                                                 "full_disks",
                                                 "uncertain_starts",
                                                 "entries_repaired",
                                                 "states_transferred",
                                                 "evictions",
                                                 "refused",
                                                 "virtual_ms"};

static struct sim *under_way; /* for sim_dump alone */

static uint64_t rotate(uint64_t word, unsigned bits)
{
    return word << bits | word >> (64 - bits);
}

/* xoshiro256** by Blackman and Vigna. */
uint64_t sim_random(struct sim *s)
{
    uint64_t *r = s->random, result = rotate(r[1] * 5, 7) * 9, t = r[1] << 17;
    r[2] ^= r[0];
    r[3] ^= r[1];
    r[1] ^= r[2];
    r[0] ^= r[3];
    r[2] ^= t;
    r[3] = rotate(r[3], 45);
    return result;
}

uint64_t sim_below(struct sim *s, uint64_t limit)
{
    return limit ? (uint64_t)(((unsigned __int128)sim_random(s) * limit) >> 64) : 0;
}

bool sim_chance(struct sim *s, unsigned thousandths)
{
    return thousandths && sim_below(s, 1000) < thousandths;
}

void sim_trace_line(struct sim *s, const char *format, ...)
{
    char *line = s->lines[s->line_count++ % SIM_TRACE_LINES];
    int head = snprintf(line, SIM_TRACE_WIDTH, "%12.3f ms  ", (double)s->now_ns / 1e6);
    va_list args;
    va_start(args, format);
    vsnprintf(line + head, SIM_TRACE_WIDTH - (size_t)head, format, args);
    va_end(args);
    if (s->options.trace)
        fprintf(stderr, "%s\n", line);
}

void sim_fail(struct sim *s, const char *format, ...)
{
    if (s->result->failed)
        return;
    s->result->failed = true;
    va_list args;
    va_start(args, format);
    vsnprintf(s->result->reason, sizeof(s->result->reason), format, args);
    va_end(args);
    sim_trace(s, "FAILED: %s", s->result->reason);
}

static bool before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

void sim_push(struct sim *s, struct sim_event event)
{
    event.order = s->order++;
    ARRAY_PUSH(s->heap, s->heap_count, s->heap_capacity) = event;
    size_t at = s->heap_count - 1;
    while (at && before(&event, &s->heap[(at - 1) / 2])) {
        s->heap[at] = s->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    s->heap[at] = event;
}

static struct sim_event pop(struct sim *s)
{
    struct sim_event first = s->heap[0], last = s->heap[--s->heap_count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= s->heap_count)
            break;
        if (child + 1 < s->heap_count && before(&s->heap[child + 1], &s->heap[child]))
            child++;
        if (!before(&s->heap[child], &last))
            break;
        s->heap[at] = s->heap[child];
        at = child;
    }
    if (s->heap_count)
        s->heap[at] = last;
    return first;
}

static void deliver(struct sim *s, const struct sim_event *e)
{
    struct sim_replica *r = &s->replicas[e->to];
    struct vr_header header;
    const void *body;
    if (e->from < VR_NODES_MAX) {
        s->result->count[SIM_REORDERED] += e->order < r->newest_order[e->from];
        if (e->order > r->newest_order[e->from])
            r->newest_order[e->from] = e->order;
    }
    if (!r->up || !vr_packets_receive(&r->packets, e->bytes, e->size, &header, &body))
        return;
    struct vr_event event = {.kind = VR_EVENT_MESSAGE, .header = &header, .body = body};
    sim_replica_step(s, e->to, &event);
}

static void dispatch(struct sim *s, struct sim_event *e)
{
    struct sim_replica *r = &s->replicas[e->to % VR_NODES_MAX];
    bool to_replica = e->kind == SIM_PACKET || e->kind == SIM_TURN || e->kind == SIM_DISK;
    if (to_replica && r->up && r->paused_until_ns > s->now_ns) {
        e->at_ns = r->paused_until_ns;
        if (e->kind == SIM_TURN && r->turn_order == e->order) {
            r->turn_order = s->order;
            r->turn_at_ns = e->at_ns;
        }
        sim_push(s, *e);
        e->bytes = NULL;
        return;
    }
    switch (e->kind) {
    case SIM_PACKET:
        deliver(s, e);
        break;
    case SIM_CLIENT_PACKET:
        sim_client_packet(s, e->bytes, e->size);
        break;
    case SIM_TURN:
        if (r->up && r->life == e->life && r->turn_order == e->order)
            sim_replica_step(s, e->to, &(struct vr_event){.kind = VR_EVENT_TURN});
        break;
    case SIM_DISK:
        if (r->up && r->life == e->life)
            e->from ? sim_disk_lane_done(s, e->to, e->from - 1u) : sim_disk_done(s, e->to);
        break;
    case SIM_CLIENT:
        sim_client_timer(s, e->to);
        break;
    case SIM_FAULT:
        sim_fault(s);
        break;
    case SIM_PLOT:
        sim_plot(s);
        break;
    case SIM_MEND:
        sim_mend(s, e->life);
        break;
    case SIM_CRASH:
        if (r->life == e->life)
            sim_crash_planned(s, e->to);
        break;
    case SIM_RESTART:
        if (r->life == e->life)
            sim_restart_planned(s, e->to);
        break;
    }
}

static void setup(struct sim *s)
{
    uint64_t z = s->options.seed;
    for (unsigned i = 0; i < 4; i++) {
        z += 0x9e3779b97f4a7c15;
        uint64_t x = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        x = (x ^ x >> 27) * 0x94d049bb133111eb;
        s->random[i] = x ^ x >> 31;
    }
    static const uint8_t sizes[] = {3, 3, 3, 5, 3, 5, 7, 3};
    s->client_count = 4 + (uint32_t)sim_below(s, sim_chance(s, 300) ? 8 : SIM_CLIENTS_MAX - 3);
    s->turn = 300 + (unsigned)sim_below(s, 600);
    s->config = (struct vr_config){.cluster = 77,
                                   .replica_count = sizes[sim_below(s, 8)],
                                   .in_memory = sim_chance(s, 250),
                                   .slots = sim_chance(s, 500) ? 64 : 32,
                                   .checkpoint_every = sim_chance(s, 500) ? 16 : 8,
                                   .pipeline = 1 + (uint32_t)sim_below(s, 6),
                                   .batch_bytes = sim_chance(s, 300) ? 256 : 1024,
                                   .kv_capacity = 16,
                                   .page_bytes = SIM_SECTOR,
                                   .heartbeat_ns = 10 * NS_PER_MS,
                                   .timeout_ns = 60 * NS_PER_MS};
    s->config.sessions = sim_chance(s, 600) ? 40 : s->client_count - (uint32_t)sim_below(s, 2);
    s->reconfigures = sim_chance(s, 500);
    s->loses_disks = sim_chance(s, 300);
    s->same_sizes = s->options.seed % 2;
    s->node_count =
        (uint8_t)(s->config.replica_count + (s->reconfigures ? 1 + sim_below(s, 3) : 0));
    sim_oracle_init(s);
    /* A packet that nobody touched passes its checks: most seeds save the time of them. */
    s->corrupt = sim_chance(s, 250) ? 1 + (unsigned)sim_below(s, 80) : 0;
    s->key = s->corrupt ? vr_key_public(s->config.cluster) : (struct vr_key){0};
    for (uint8_t i = 0; i < s->node_count; i++) {
        s->replicas[i].clock_offset_ns = sim_below(s, NS_PER_S);
        s->replicas[i].clock_rate = 0.9 + (double)sim_below(s, 200) / 1000;
        s->result->count[SIM_SKEWED_CLOCKS] +=
            s->replicas[i].clock_rate < 0.99 || s->replicas[i].clock_rate > 1.01;
        s->replicas[i].joins = i >= s->config.replica_count;
        sim_disk_format(s, i);
        sim_replica_start(s, i);
    }
    sim_clients_start(s);
    sim_faults_begin(s);
    sim_plot_begin(s);
}

static bool clients_idle(const struct sim *s)
{
    for (uint32_t i = 0; i < s->client_count; i++)
        if (s->clients[i].waiting)
            return false;
    return true;
}

static void step(struct sim *s)
{
    struct sim_event e = pop(s);
    s->now_ns = e.at_ns;
    s->result->digest += e.at_ns * 31 + e.kind;
    dispatch(s, &e);
    free(e.bytes);
}

/* With faults until enough has happened, then without until everybody agrees. */
static void run(struct sim *s)
{
    const struct sim_options *o = &s->options;
    uint64_t storm_end_ns = 120 * NS_PER_S;
    while (!s->result->failed && s->now_ns < storm_end_ns &&
           (s->result->count[SIM_OPERATIONS] < o->operations ||
            s->result->count[SIM_VIEWS] < o->view_changes || s->plot.step) &&
           s->model.entry_count < SIM_OPS_MAX - 1000 &&
           s->model.place < s->model.answer_mask / 2 - 1000)
        step(s);
    if (!s->result->failed)
        sim_heal(s);
    uint64_t limit_ns = s->now_ns + 60 * NS_PER_S;
    while (!s->result->failed && s->now_ns < limit_ns) {
        s->stopped = s->result->count[SIM_OPERATIONS] >= o->operations && !sim_lost_members(s);
        if (s->stopped && clients_idle(s) && sim_oracle_converged(s)) {
            if (s->result->count[SIM_VIEWS] < o->view_changes)
                sim_fail(s, "only %lu views began", s->result->count[SIM_VIEWS]);
            return;
        }
        step(s);
    }
    if (s->result->failed)
        return;
    for (uint8_t i = 0; i < s->node_count; i++) {
        const struct vr_replica *r = s->replicas[i].core;
        if (!r)
            continue;
        sim_trace(s,
                  "%u: view %lu log view %lu state %u op %lu durable %lu commit %lu of %lu "
                  "holes %u checkpoint %lu installing %d matched %lu of %lu",
                  i, r->view, r->log_view, r->state, r->op, r->durable_op, r->commit, r->commit_max,
                  r->holes, r->newest.op, r->install.active, r->install.matched, r->install.end.op);
    }
    for (uint32_t i = 0; i < s->client_count; i++) {
        const struct sim_client *c = &s->clients[i];
        if (c->waiting)
            sim_trace(s, "client %lu waits for request %lu in session %lu (before: %lu)", c->id,
                      c->number, c->session, c->last_session);
    }
    sim_fail(s, "no agreement within 60 s after the last fault (%lu operations, %s)",
             s->result->count[SIM_OPERATIONS],
             clients_idle(s) ? "clients idle" : "clients waiting");
}

static void teardown(struct sim *s)
{
    s->result->count[SIM_VIRTUAL_MS] = s->now_ns / NS_PER_MS;
    for (uint8_t i = 0; i < s->node_count; i++) {
        sim_replica_crash(s, i);
        sim_disk_done_with(s, i);
        sim_forget_packets(s, i);
    }
    for (size_t i = 0; i < s->heap_count; i++)
        free(s->heap[i].bytes);
    free(s->heap);
    sim_oracle_done(s);
}

static void append_lines(const struct sim *s, struct strbuf *out)
{
    uint64_t first = s->line_count > SIM_TRACE_LINES ? s->line_count - SIM_TRACE_LINES : 0;
    for (uint64_t i = first; s->lines && i < s->line_count; i++)
        strbuf_printf(out, "%s\n", s->lines[i % SIM_TRACE_LINES]);
}

void sim_dump(void)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    if (under_way)
        append_lines(under_way, &out);
    fputs(strbuf_text(&out), stderr);
}

static void run_once(const struct sim_options *options, struct sim_result *result,
                     struct strbuf *lines)
{
    struct sim *s = memory_zalloc(1, sizeof(*s));
    *result = (struct sim_result){0};
    s->options = *options;
    s->result = result;
    if (lines)
        s->lines = memory_zalloc(SIM_TRACE_LINES, sizeof(*s->lines));
    under_way = s;
    setup(s);
    run(s);
    if (lines)
        append_lines(s, lines);
    under_way = NULL;
    teardown(s);
    free(s->lines);
    free(s);
}

void sim_run(const struct sim_options *options, struct sim_result *ret_result, struct strbuf *out)
{
    bool lines = options->trace || options->keep_lines;
    run_once(options, ret_result, lines ? out : NULL);
    if (ret_result->failed && !lines)
        run_once(options, ret_result, out);
}
