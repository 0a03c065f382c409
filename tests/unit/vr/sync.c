/* SPDX-License-Identifier: MIT */
/* What a transport says is on disk was given to the kernel to put there: asked of the kernel. */
#include "base/clock.h"
#include "base/fd.h"
#include "test.h"
#include "vr/net/io.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

struct ended {
    uint32_t tag;
    int result;
};

static void on_packet(void *context, uint32_t socket, const union vr_address *from,
                      const void *bytes, size_t size)
{
    (void)context, (void)socket, (void)from, (void)bytes, (void)size;
}

static void on_disk(void *context, uint32_t tag, int result)
{
    *(struct ended *)context = (struct ended){tag, result};
}

/* Opens a transport; false: this machine has it not. */
static bool open_way(struct vr_io *io, const struct vr_io_way *way, int *socket, struct ended *e)
{
    union vr_address any = vr_address_any(AF_INET, true);
    struct vr_io_handler handler = {on_packet, on_disk, e};
    struct error err = {0};
    *e = (struct ended){0};
    *socket = vr_socket_open(&any, &err);
    CHECK(*socket >= 0);
    if (vr_io_open(io, way, socket, 1, 2048, true, handler, &err) == 0)
        return true;
    close(*socket);
    return false;
}

static void close_way(struct vr_io *io, int socket)
{
    vr_io_close(io);
    close(socket);
}

static int await(struct vr_io *io, struct ended *e, uint32_t tag)
{
    struct error err = {0};
    uint64_t end_ns = clock_now_ns() + 60 * NS_PER_S;
    while (e->tag != tag && clock_now_ns() < end_ns)
        vr_io_turn(io, clock_now_ns() + 20 * NS_PER_MS, &err);
    CHECK_INT(e->tag, tag);
    return e->result;
}

/* A pipe cannot be synced, and nobody but the kernel knows that. */
TEST(a_sync_reaches_the_kernel)
{
    unsigned tried = 0;
    for (size_t i = 0; vr_io_ways[i]; i++) {
        struct vr_io io;
        struct ended e;
        int socket, ends[2];
        if (!open_way(&io, vr_io_ways[i], &socket, &e))
            continue;
        CHECK_INT(pipe(ends), 0);
        io.way->sync(&io, ends[1], 7);
        int result = await(&io, &e, 7);
        if (result != -EINVAL)
            test_fail(__FILE__, __LINE__, "%s: the sync of a pipe ended with %d",
                      vr_io_ways[i]->name, result);
        close(ends[0]);
        close(ends[1]);
        close_way(&io, socket);
        tried++;
    }
    CHECK(tried >= 1);
}

/* Pages of the file that the kernel has not written yet; -1: it does not tell. */
static long long dirty_pages(int fd)
{
    struct {
        uint64_t offset, length;
    } all = {0, 0};
    struct {
        uint64_t cached, dirty, in_writeback, evicted, evicted_lately;
    } pages = {0};
    return syscall(SYS_cachestat, fd, &all, &pages, 0) ? -1 : (long long)pages.dirty;
}

static void write_durably(const struct vr_io_way *way, int fd)
{
    static const unsigned char sector[4096] = {1};
    struct vr_io io;
    struct ended e;
    int socket;
    if (!open_way(&io, way, &socket, &e))
        return;
    io.way->write(&io, fd, sector, sizeof(sector), 0, true, 8);
    CHECK_INT(await(&io, &e, 8), sizeof(sector));
    if (dirty_pages(fd) != 0)
        test_fail(__FILE__, __LINE__, "%s: a durable write left a dirty page", way->name);
    close_way(&io, socket);
}

TEST(a_durable_write_leaves_nothing_behind)
{
    static const unsigned char sector[4096] = {1};
    char path[] = "sync-XXXXXX"; /* where the build is: /tmp may be memory */
    struct statfs fs;
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    unlink(path);
    CHECK_INT(pwrite(fd, sector, sizeof(sector), 0), sizeof(sector));
    if (fstatfs(fd, &fs) || fs.f_type == TMPFS_MAGIC || dirty_pages(fd) <= 0) {
        test_skip("the kernel does not tell here which pages are dirty (cachestat)");
        close(fd);
        return;
    }
    CHECK_INT(fdatasync(fd), 0);
    CHECK_INT(dirty_pages(fd), 0);
    for (size_t i = 0; vr_io_ways[i]; i++)
        write_durably(vr_io_ways[i], fd);
    close(fd);
}
