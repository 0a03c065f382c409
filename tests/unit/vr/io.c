/* SPDX-License-Identifier: MIT */
/* What replicas and clients are made of: transports, the file with group commit, the histogram, the
 * configuration. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "test.h"
#include "vr/disk/disk.h"
#include "vr/load/hist.h"
#include "vr/net/cluster.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

TEST(the_histogram_is_within_a_hundredth)
{
    struct vr_hist *h = memory_zalloc(1, sizeof(*h));
    CHECK_INT(vr_hist_at(h, 0.5), 0);
    for (uint64_t value = 1; value <= 100000; value++)
        vr_hist_add(h, value, 1);
    CHECK_NEAR((double)vr_hist_at(h, 0.5), 50000, 500);
    CHECK_NEAR((double)vr_hist_at(h, 0.99), 99000, 990);
    CHECK_INT(vr_hist_at(h, 1.0), 100000);
    CHECK_NEAR(vr_hist_mean(h), 50000.5, 1e-6);
    vr_hist_add(h, UINT64_MAX, 1);
    CHECK_INT(h->total, 100001);
    free(h);
}

TEST(the_histogram_adds_what_waiting_hid)
{
    struct vr_hist *h = memory_zalloc(1, sizeof(*h)), *c = memory_zalloc(1, sizeof(*c));
    vr_hist_add(h, 10, 99);
    vr_hist_add(h, 1000, 1);
    vr_hist_correct(h, 10, c);
    /* 1000, and 990, 980 … 10, which were never asked. */
    CHECK_INT(c->total, 99 + 100);
    CHECK_INT(vr_hist_at(h, 0.9), 10);
    CHECK_NEAR((double)vr_hist_at(c, 0.9), 810, 10);
    vr_hist_correct(h, 0, c);
    CHECK_INT(c->total, 100);
    free(h);
    free(c);
}

TEST(the_configuration_is_read)
{
    struct vr_cluster c;
    struct error err = {0};
    CHECK_INT(vr_cluster_parse(&c,
                               "# three\ncluster 7\nreplica 127.0.0.1:4701\n"
                               "replica 127.0.0.1:4702 # second\nreplica 127.0.0.1:4703\n"
                               "spare 127.0.0.1:4704\ntimeout 50ms\nheartbeat 10\nkeys 100\n",
                               "folder/cluster.conf", &err),
              0);
    CHECK_INT(c.config.cluster, 7);
    CHECK_INT(c.config.replica_count, 3);
    CHECK_INT(c.node_count, 4);
    CHECK_INT(c.config.timeout_ns, 50 * NS_PER_MS);
    CHECK_INT(c.config.heartbeat_ns, 10 * NS_PER_MS);
    CHECK_INT(c.config.kv_capacity, 100);
    CHECK(!c.open);
    CHECK_STR(c.key_path, "folder/cluster.key");
    char *file = vr_cluster_file(&c, 2);
    CHECK_STR(file, "folder/./replica-2.vr");
    free(file);
    vr_cluster_done(&c);
}

static void refused(const char *text, const char *words)
{
    struct vr_cluster c;
    struct error err = {0};
    CHECK(vr_cluster_parse(&c, text, "f", &err) != 0);
    if (!strstr(err.message, words))
        test_fail(__FILE__, __LINE__, "'%s' not in '%s'", words, err.message);
}

TEST(a_wrong_configuration_is_named)
{
    refused("", "no replica");
    refused("replica 127.0.0.1:0\n", "not a port");
    refused("replica 127.0.0.1:99999\n", "not a port");
    refused("replica 127.0.0.256:1\n", "not an IPv4 address");
    refused("replica [::g]:1\n", "not an IPv6 address");
    refused("replica ::1:1\n", "write IPv6 as [::1]:4701");
    refused("replica [::1]\n", "write IPv6 as [::1]:4701");
    refused("replica no-such-host.invalid:1\n", "has no address");
    refused("replica 127.0.0.1:1\nreplica [::1]:2\nreplica 127.0.0.1:3\n", "different kinds");
    refused("replica 127.0.0.1:1\nslots 10\n", "line 2: slots must be between 64");
    refused("replica 127.0.0.1:1\ntimeout\n", "has no value");
    refused("replica 127.0.0.1:1\ntimeout 20ms\nheartbeat 20ms\n", "twice the heartbeat");
    refused("replica 127.0.0.1:1\nspare 127.0.0.1:2\nreplica 127.0.0.1:3\n",
            "spares must come after");
    refused("replica 127.0.0.1:1\ntransport pigeon\n", "no transport");
    refused("replica 127.0.0.1:1\nbatch-bytes 4100\n", "multiple of 8");
    refused("replica 127.0.0.1:1\nslots 100\ncheckpoint-every 50\n", "multiple of 64");
}

/* The file, with a transport that does what it is told at once or keeps it for later. */
struct slow {
    struct vr_io io;
    struct {
        int fd;
        const void *bytes;
        size_t size;
        uint64_t offset;
        uint32_t tag;
        bool is_sync, dsync;
    } queue[64];
    unsigned count, writes, syncs;
    int fail; /* a negative errno for everything */
    struct vr_disk disk;
    unsigned ended, failed;
};

static void slow_write(struct vr_io *io, int fd, const void *bytes, size_t size, uint64_t offset,
                       bool dsync, uint32_t tag)
{
    struct slow *s = io->state;
    s->queue[s->count].fd = fd;
    s->queue[s->count].bytes = bytes;
    s->queue[s->count].size = size;
    s->queue[s->count].offset = offset;
    s->queue[s->count].is_sync = false;
    s->queue[s->count].dsync = dsync;
    s->queue[s->count++].tag = tag;
    s->writes++;
}

static void slow_sync(struct vr_io *io, int fd, uint32_t tag)
{
    struct slow *s = io->state;
    s->queue[s->count].fd = fd;
    s->queue[s->count].is_sync = true;
    s->queue[s->count++].tag = tag;
    s->syncs++;
}

static const struct vr_io_way slow_way = {.name = "slow", .write = slow_write, .sync = slow_sync};

static void on_written(void *context, const struct vr_write *write, bool failed)
{
    struct slow *s = context;
    (void)write;
    s->ended++;
    s->failed += failed;
}

/* Ends everything that is under way. */
static void end_all(struct slow *s, uint64_t now_ns)
{
    unsigned count = s->count;
    s->count = 0;
    for (unsigned i = 0; i < count; i++) {
        int result = s->fail;
        if (!result && !s->queue[i].is_sync)
            result = (int)pwrite(s->queue[i].fd, s->queue[i].bytes, s->queue[i].size,
                                 (off_t)s->queue[i].offset);
        vr_disk_ended(&s->disk, s->queue[i].tag, result, now_ns);
    }
}

static struct vr_config small_config(void)
{
    struct vr_config config;
    vr_config_default(&config);
    config.slots = 64;
    config.checkpoint_every = 16;
    config.batch_bytes = 4096;
    config.sessions = 4;
    config.kv_capacity = 8;
    return config;
}

static struct vr_write entry_write(const struct vr_config *config, uint64_t op, uint64_t parent,
                                   unsigned char *body)
{
    struct vr_request request = {.client = 1, .number = op};
    memcpy(body, &request, sizeof(request));
    struct vr_entry entry = {.op = op, .parent = parent, .size = sizeof(request), .count = 1};
    (void)config;
    entry.body_checksum = vr_hash(body, entry.size);
    entry.checksum = vr_entry_checksum(&entry);
    return (struct vr_write){
        .kind = VR_WRITE_ENTRY, .entry = entry, .bytes = body, .size = entry.size};
}

static int open_slow(struct slow *s, const char *path, const struct vr_config *config,
                     struct vr_loaded *loaded)
{
    struct error err = {0};
    int result = vr_disk_open(&s->disk, path, config, loaded, &err);
    s->io = (struct vr_io){.way = &slow_way, .state = s};
    s->disk.io = &s->io;
    s->disk.written = on_written;
    s->disk.context = s;
    return result;
}

TEST(writes_are_gathered_and_two_phases_follow_each_other)
{
    char path[] = "/tmp/assay-vr-unit-XXXXXX";
    struct vr_config config = small_config();
    struct vr_loaded loaded;
    struct error err = {0};
    struct slow *s = memory_zalloc(1, sizeof(*s));
    close(mkstemp(path));
    unlink(path);
    CHECK_INT(vr_disk_format(path, &config, &err), 0);
    CHECK_INT(vr_disk_format(path, &config, &err), -EEXIST);
    CHECK_INT(open_slow(s, path, &config, &loaded), 0);
    CHECK_INT(loaded.image.durable.fresh, VR_FRESH_NEW);
    CHECK(loaded.image.durable.incarnation != 0);
    vr_loaded_done(&loaded);

    unsigned char bodies[3][64];
    uint64_t parent = vr_genesis_checksum(config.cluster);
    for (uint64_t op = 1; op <= 3; op++) {
        struct vr_write w = entry_write(&config, op, parent, bodies[op - 1]);
        parent = w.entry.checksum;
        vr_disk_submit(&s->disk, &w);
        if (op == 2) {
            vr_disk_kick(&s->disk, 1);
            CHECK_INT(s->writes, 2); /* op 3 waits for the next */
        }
    }
    vr_disk_kick(&s->disk, 1);
    CHECK_INT(s->writes, 2);
    end_all(s, 1); /* both are written: one sync */
    CHECK_INT(s->syncs, 1);
    CHECK_INT(s->ended, 0);
    end_all(s, 1);
    vr_disk_kick(&s->disk, 1);
    CHECK_INT(s->writes, 4); /* one sector of heads for ops 1 and 2, and op 3 */
    end_all(s, 1);
    end_all(s, 1);
    CHECK_INT(s->ended, 2);
    vr_disk_kick(&s->disk, 1);
    CHECK_INT(s->writes, 5);
    CHECK(s->queue[0].dsync); /* alone: no sync of its own */
    end_all(s, 1);
    CHECK_INT(s->syncs, 2);
    CHECK_INT(s->ended, 3);
    CHECK_INT(s->failed, 0);
    vr_disk_close(&s->disk);

    CHECK_INT(open_slow(s, path, &config, &loaded), 0);
    CHECK_INT(loaded.image.count, 3);
    CHECK_INT(loaded.damaged, 0);
    CHECK_INT(loaded.image.uncertain, 0);
    vr_loaded_done(&loaded);
    vr_disk_close(&s->disk);
    unlink(path);
    free(s);
}

TEST(a_write_that_fails_is_told_and_not_tried_at_once)
{
    char path[] = "/tmp/assay-vr-unit-XXXXXX";
    struct vr_config config = small_config();
    struct vr_loaded loaded;
    struct error err = {0};
    struct slow *s = memory_zalloc(1, sizeof(*s));
    close(mkstemp(path));
    unlink(path);
    CHECK_INT(vr_disk_format(path, &config, &err), 0);
    CHECK_INT(open_slow(s, path, &config, &loaded), 0);
    vr_loaded_done(&loaded);
    unsigned char body[64];
    struct vr_write w = entry_write(&config, 1, 0, body);
    s->fail = -ENOSPC;
    vr_disk_submit(&s->disk, &w);
    vr_disk_kick(&s->disk, 1000);
    end_all(s, 1000);
    CHECK_INT(s->ended, 1);
    CHECK_INT(s->failed, 1);
    CHECK_INT(s->disk.last_error, -ENOSPC);
    CHECK(!vr_disk_failing(&s->disk, 1500, 1000));
    CHECK(vr_disk_failing(&s->disk, 2500, 1000));
    vr_disk_submit(&s->disk, &w);
    vr_disk_kick(&s->disk, 1001);
    CHECK_INT(s->count, 0);
    CHECK(vr_disk_deadline_ns(&s->disk) > 1001);
    s->fail = 0;
    vr_disk_kick(&s->disk, vr_disk_deadline_ns(&s->disk));
    CHECK_INT(s->count, 1);
    /* No room for more than it can hold: told as failed, nothing lost. */
    for (unsigned i = 0; i < VR_DISK_WRITES_MAX + 5; i++) /* one is under way already */
        vr_disk_submit(&s->disk, &w);
    CHECK_INT(s->failed, 1);
    vr_disk_kick(&s->disk, 2 * NS_PER_S);
    CHECK_INT(s->failed, 1 + 5 + 1);
    vr_disk_close(&s->disk);
    unlink(path);
    free(s);
}

/* Every transport: datagrams go from one to the other, batches too, and the deadline is kept. */
struct receiver {
    unsigned packets, bytes_ok;
    uint32_t disk_tag;
    int disk_result;
};

static void on_packet(void *context, uint32_t socket, const union vr_address *from,
                      const void *bytes, size_t size)
{
    struct receiver *r = context;
    (void)socket, (void)from;
    r->packets++;
    r->bytes_ok += size == 100 && ((const unsigned char *)bytes)[99] == 7;
}

static void on_disk(void *context, uint32_t tag, int result)
{
    struct receiver *r = context;
    r->disk_tag = tag;
    r->disk_result = result;
}

static void try_way(const struct vr_io_way *way)
{
    union vr_address any = vr_address_any(AF_INET, true), to;
    struct receiver got = {0};
    struct vr_io_handler handler = {on_packet, on_disk, &got};
    struct error err = {0};
    struct vr_io io;
    int sockets[2] = {vr_socket_open(&any, &err), vr_socket_open(&any, &err)};
    socklen_t size = sizeof(to);
    unsigned char packet[100] = {[99] = 7};
    CHECK(sockets[0] >= 0 && sockets[1] >= 0);
    getsockname(sockets[1], &to.any, &size);
    if (vr_io_open(&io, way, sockets, 2, 2048, true, handler, &err)) {
        test_skip(err.message);
        close(sockets[0]);
        close(sockets[1]);
        return;
    }
    uint64_t end_ns = clock_now_ns() + 10 * NS_PER_S;
    for (unsigned i = 0; i < 100; i++)
        vr_io_send(&io, 0, &to, 1, packet, sizeof(packet));
    while (got.packets < 100 && clock_now_ns() < end_ns)
        CHECK_INT(vr_io_turn(&io, clock_now_ns() + 20 * NS_PER_MS, &err), 0);
    CHECK_INT(got.packets, 100);
    CHECK_INT(got.bytes_ok, 100);
    CHECK_INT(io.counters.sent, 100);
    FILE *file = tmpfile();
    io.way->write(&io, fileno(file), packet, sizeof(packet), 0, true, 42);
    while (got.disk_tag != 42 && clock_now_ns() < end_ns)
        vr_io_turn(&io, clock_now_ns() + 20 * NS_PER_MS, &err);
    CHECK_INT(got.disk_result, 100);
    io.way->sync(&io, fileno(file), 43);
    while (got.disk_tag != 43 && clock_now_ns() < end_ns)
        vr_io_turn(&io, clock_now_ns() + 20 * NS_PER_MS, &err);
    CHECK_INT(got.disk_result, 0);
    fclose(file);
    vr_io_close(&io);
    close(sockets[0]);
    close(sockets[1]);
}

TEST(every_transport_carries_packets_and_writes)
{
    for (size_t i = 0; vr_io_ways[i]; i++)
        try_way(vr_io_ways[i]);
}
