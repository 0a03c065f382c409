/* SPDX-License-Identifier: MIT */
#include "vr/host/host.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "vr/core/planted.h"

#include <errno.h>
#include <sys/random.h>

#define PATIENCE_NS (3 * NS_PER_S)
#define PROBES 8
#define LEAST_WAIT_NS (50 * NS_PER_US)
#define LONGEST_WAIT_NS NS_PER_S

static uint64_t random_word(void)
{
    uint64_t word = 0;
    while (getrandom(&word, sizeof(word), 0) != sizeof(word))
        ;
    return word;
}

static struct vr_place *place_of(struct vr_host *h, uint64_t client)
{
    uint32_t at = (uint32_t)((client * 0x9e3779b97f4a7c15) >> 32);
    struct vr_place *oldest = &h->places[at & h->place_mask];
    for (uint32_t i = 0; i < PROBES; i++) {
        struct vr_place *p = &h->places[(at + i) & h->place_mask];
        if (p->client == client)
            return p;
        if (p->seen < oldest->seen)
            oldest = p;
    }
    return oldest;
}

/* Only a newer request moves a client: one that was caught and sent again from elsewhere does not
 * turn its replies away.  Which of two that sent the same is the client nobody knows, if the other
 * was first: both are answered. */
static void remember(struct vr_host *h, const struct vr_header *header,
                     const union vr_address *from)
{
    if (header->client == 0)
        return;
    struct vr_place *p = place_of(h, header->client);
    p->seen = ++h->place_turn;
    if (p->client == header->client && header->number <= p->number && !PLANTED(PLACES_MOVED)) {
        if (header->number == p->number && !vr_address_same(from, &p->address)) {
            p->other = *from;
            p->has_other = true;
        }
        return;
    }
    p->client = header->client;
    p->number = header->number;
    p->address = *from;
    p->seal = h->packets.from;
    p->has_other = false;
}

struct destinations {
    struct vr_host *host;
    bool prepare;
    union vr_address to[VR_NODES_MAX];
    uint32_t count;
};

static void send_datagram(void *context, uint8_t to, uint64_t client, const void *bytes,
                          size_t size)
{
    struct destinations *d = context;
    (void)to, (void)client;
    bool once = d->prepare && d->count > 1 && vr_tc_covers(&d->host->tc, d->to, d->count);
    vr_io_send(&d->host->io, 0, once ? &d->host->tc.group : d->to, once ? 1 : d->count, bytes,
               size);
}

/* The host's own figures; the core does not know them. */
static void complete_status(struct vr_host *h, const struct vr_message *m)
{
    struct vr_status *status = (struct vr_status *)(uintptr_t)m->first;
    const struct vr_io_counters *c = &h->io.counters;
    for (unsigned i = 1; i < VR_DROP_COUNT; i++)
        status->dropped[i] += h->packets.dropped[i];
    status->strangers = h->strangers;
    status->packets_sent = c->sent;
    status->packets_received = c->received;
    status->send_failures = c->send_failures;
    status->waits = c->waits;
    status->waits_empty = c->waits_empty;
    status->disk_cycles = h->disk.cycles;
    status->disk_failures = h->disk.failures;
    status->early_acks = vr_xdp_acknowledged(&h->xdp);
    status->fell_back = h->tc_error.code || h->xdp_error.code;
    status->direct = h->disk.direct && !h->cluster->config.in_memory;
}

static bool same_content(const struct vr_message *a, const struct vr_message *b)
{
    return a->to != VR_TO_CLIENT && b->to != VR_TO_CLIENT && a->first == b->first &&
           a->second == b->second && a->first_size == b->first_size &&
           a->second_size == b->second_size &&
           memcmp(&a->header, &b->header, sizeof(a->header)) == 0;
}

/* Does what the core asks for.  A message to several is sealed once. */
static void act(struct vr_host *h)
{
    struct vr_update *u = h->update;
    for (uint32_t i = 0; i < u->message_count;) {
        const struct vr_message *m = &u->messages[i];
        struct destinations d = {.host = h, .prepare = m->header.type == VR_PREPARE};
        struct vr_seal_choice seal = {0};
        if (m->to != VR_TO_CLIENT && h->silent) {
            i++;
            continue;
        }
        if (m->to == VR_TO_CLIENT) {
            const struct vr_place *p = place_of(h, m->header.client);
            i++;
            if (p->client != m->header.client)
                continue; /* it asks everybody when its patience ends */
            if (m->header.type == VR_STATUS_REPLY)
                complete_status(h, m);
            seal = p->seal;
            d.to[d.count++] = p->address;
            if (p->has_other)
                d.to[d.count++] = p->other;
        } else {
            uint32_t first = i;
            for (; i < u->message_count && d.count < VR_NODES_MAX &&
                   (i == first || same_content(m, &u->messages[i]));
                 i++)
                if (u->messages[i].to < h->cluster->node_count)
                    d.to[d.count++] = h->cluster->addresses[u->messages[i].to];
        }
        vr_packets_send(&h->packets, m, seal, send_datagram, &d);
    }
    for (uint32_t i = 0; i < u->write_count; i++)
        vr_disk_submit(&h->disk, &u->writes[i]);
    u->message_count = u->write_count = 0;
    u->scratch_used = 0;
}

static uint64_t now(struct vr_host *h)
{
    if (h->now_ns == 0)
        h->now_ns = clock_now_ns();
    return h->now_ns;
}

static void step(struct vr_host *h, struct vr_event *event)
{
    event->now_ns = now(h);
    vr_step(h->core, event, h->update);
    if (h->update->message_count || h->update->write_count)
        act(h);
}

static void take_packet(struct vr_host *h, const union vr_address *from, const void *bytes,
                        size_t size)
{
    struct vr_header header;
    struct vr_event event = {.kind = VR_EVENT_MESSAGE, .header = &header};
    if (!vr_packets_receive(&h->packets, bytes, size, &header, &event.body))
        return;
    if (header.type == VR_REQUEST || header.type == VR_STATUS ||
        (header.type == VR_GET_STATE && header.replica == VR_TO_CLIENT)) {
        remember(h, &header, from);
    } else if (h->cluster->open && header.replica < h->cluster->node_count) {
        if (!vr_address_same(from, &h->cluster->addresses[header.replica])) {
            h->strangers++;
            return;
        }
    }
    step(h, &event);
}

/* The program that gave the packet has compared its sender with the primary's address. */
static void on_acknowledged(void *context, const void *bytes, size_t size)
{
    struct vr_host *h = context;
    struct vr_header header;
    memcpy(&header, bytes, sizeof(header));
    h->io.counters.received++;
    h->io.counters.sent++;
    if (header.replica < h->cluster->node_count)
        take_packet(h, &h->cluster->addresses[header.replica], bytes, size);
}

/* Before anything else happens to the core: what the device has promised is in its log. */
static void wake(struct vr_host *h)
{
    if (!vr_xdp_gate_is_open(&h->xdp))
        return;
    uint64_t promised = vr_xdp_close_gate(&h->xdp, on_acknowledged, h);
    if (vr_op(h->core) < promised)
        h->broken = true;
}

static void on_packet(void *context, uint32_t socket, const union vr_address *from,
                      const void *bytes, size_t size)
{
    struct vr_host *h = context;
    (void)socket;
    wake(h);
    if (!h->broken)
        take_packet(h, from, bytes, size);
}

static void on_disk(void *context, uint32_t tag, int result)
{
    struct vr_host *h = context;
    wake(h);
    vr_disk_ended(&h->disk, tag, result, now(h));
}

static void on_written(void *context, const struct vr_write *write, bool failed)
{
    struct vr_host *h = context;
    struct vr_event event = {.kind = VR_EVENT_WRITTEN, .write = write, .failed = failed};
    step(h, &event);
}

static int open_core(struct vr_host *h, const struct vr_config *config, struct error *err)
{
    CLEANUP(memory_freep) char *path = vr_cluster_file(h->cluster, h->index);
    struct vr_loaded loaded;
    int result = vr_disk_open(&h->disk, path, config, &loaded, err);
    if (result)
        return result;
    h->disk.io = &h->io;
    h->disk.written = on_written;
    h->disk.context = h;
    h->damaged = loaded.damaged;
    h->core = vr_replica_new(config, &loaded.image, random_word(), clock_now_ns());
    vr_loaded_done(&loaded);
    return 0;
}

/* After a crash the kernel may take a moment to let go of the address that a ring still held. */
static int open_socket(const union vr_address *address, struct error *err)
{
    uint64_t end_ns = clock_now_ns() + PATIENCE_NS;
    struct timespec rest = {.tv_nsec = 10 * (long)NS_PER_MS};
    int fd = vr_socket_open(address, err);
    while (fd == -EADDRINUSE && clock_now_ns() < end_ns) {
        nanosleep(&rest, NULL);
        fd = vr_socket_open(address, err);
    }
    return fd;
}

/* To the first group; when it has changed, packets go one by one. */
static void open_broadcast(struct vr_host *h)
{
    union vr_address peers[VR_REPLICAS_MAX];
    uint32_t count = 0;
    for (uint8_t i = 0; i < h->cluster->config.replica_count; i++)
        if (i != h->index)
            peers[count++] = h->cluster->addresses[i];
    if (h->index < h->cluster->config.replica_count)
        vr_tc_open(&h->tc, h->socket, &h->cluster->addresses[h->index], peers, count,
                   h->cluster->datagram_bytes, &h->tc_error);
}

int vr_host_open(struct vr_host *h, const struct vr_cluster *cluster, uint8_t index,
                 const struct vr_io_way *way, int socket, struct error *err)
{
    *h = (struct vr_host){
        .cluster = cluster, .index = index, .socket = socket, .xdp = {.link_fd = -1}};
    struct vr_config config = cluster->config;
    config.index = index;
    h->disk.fds[0] = h->disk.fds[1] = -1;
    int result = open_core(h, &config, err);
    if (result)
        return result;
    if (h->socket < 0)
        h->socket = open_socket(&cluster->addresses[index], err);
    result = h->socket < 0 ? h->socket : 0;
    struct vr_io_handler handler = {on_packet, on_disk, h};
    if (!result)
        result =
            vr_io_open(&h->io, way, &h->socket, 1, cluster->datagram_bytes, true, handler, err);
    if (!result && way->broadcasts)
        open_broadcast(h);
    if (!result && way->answers)
        vr_xdp_open(&h->xdp, cluster, index, &h->xdp_error);
    vr_packets_init(&h->packets, &config, &cluster->key.keys, cluster->datagram_bytes,
                    random_word());
    vr_cluster_use_keys(cluster, &h->packets);
    h->update = memory_zalloc(1, sizeof(*h->update));
    h->place_mask = 1023;
    while (h->place_mask < 4 * config.sessions)
        h->place_mask = h->place_mask * 2 + 1;
    h->places = memory_zalloc(h->place_mask + 1, sizeof(*h->places));
    if (result)
        vr_host_close(h);
    return result;
}

int vr_host_run(struct vr_host *h, const volatile sig_atomic_t *stop, struct error *err)
{
    struct vr_expected expected;
    while (!*stop) {
        struct vr_event turn = {.kind = VR_EVENT_TURN};
        wake(h);
        if (h->broken)
            return error_set(err, -EBADMSG,
                             "an entry that was acknowledged at the device is not in the log: the "
                             "primary sent something it should not have; restart this replica");
        /* A primary whose disk takes nothing would hold the service when its log is full: it falls
         * silent, so that the others choose another. */
        h->silent = vr_is_primary(h->core) &&
                    vr_disk_failing(&h->disk, now(h), h->cluster->config.timeout_ns);
        step(h, &turn);
        if (h->core->is_old_copy && !h->old_copy_told) {
            h->old_copy_told = true;
            if (h->old_copy)
                h->old_copy(h);
        }
        vr_disk_kick(&h->disk, now(h));
        uint64_t deadline_ns = vr_deadline_ns(h->core), disk_ns = vr_disk_deadline_ns(&h->disk);
        if (disk_ns < deadline_ns)
            deadline_ns = disk_ns;
        /* A time that has passed already is no reason to go round without end. */
        if (deadline_ns < h->now_ns + LEAST_WAIT_NS)
            deadline_ns = h->now_ns + LEAST_WAIT_NS;
        /* A signal that comes just before the wait is noticed after it. */
        if (deadline_ns > h->now_ns + LONGEST_WAIT_NS)
            deadline_ns = h->now_ns + LONGEST_WAIT_NS;
        h->now_ns = 0;
        if (h->xdp.program && vr_expects(h->core, &expected))
            vr_xdp_open_gate(&h->xdp, h->cluster, h->index, &expected);
        int result = vr_io_turn(&h->io, deadline_ns, err);
        if (result)
            return result;
    }
    return 0;
}

void vr_host_close(struct vr_host *h)
{
    vr_xdp_close(&h->xdp);
    vr_io_close(&h->io);
    vr_tc_close(&h->tc);
    if (h->socket >= 0)
        close(h->socket);
    vr_packets_done(&h->packets);
    vr_replica_free(h->core);
    vr_disk_close(&h->disk);
    free(h->update);
    free(h->places);
    *h = (struct vr_host){.socket = -1};
}
