/* SPDX-License-Identifier: MIT */
#include "vr/disk/disk.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#define PATIENCE_NS (3 * NS_PER_S)
#define RETRY_NS (10 * NS_PER_MS)
#define SYNC_TAG 0xffffu
#define LANE_ENTRIES 0
#define LANE_PAGES 1
#define ZEROS_BYTES ((size_t)1 << 20)

static size_t round_to_sector(size_t size)
{
    return (size + VR_DISK_SECTOR - 1) / VR_DISK_SECTOR * VR_DISK_SECTOR;
}

static unsigned char *aligned(size_t size)
{
    void *place = NULL;
    size = round_to_sector(size);
    if (posix_memalign(&place, VR_DISK_SECTOR, size))
        abort();
    memset(place, 0, size);
    return place;
}

static int no_room(int result, const char *path, uint64_t bytes, struct error *err)
{
    return error_errno(err, result,
                       "%s: a replica's file takes %lu MiB; make room, or lower slots, keys or "
                       "sessions in the configuration",
                       path, bytes >> 20);
}

static int fill(int fd, const char *path, uint64_t from, uint64_t bytes, struct error *err)
{
    CLEANUP(memory_freep) unsigned char *zeros = memory_zalloc(1, ZEROS_BYTES);
    for (uint64_t at = from; at < bytes;) {
        size_t size = bytes - at < ZEROS_BYTES ? (size_t)(bytes - at) : ZEROS_BYTES;
        ssize_t written = pwrite(fd, zeros, size, (off_t)at);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return no_room(written ? -errno : -EIO, path, bytes, err);
        at += (uint64_t)written;
    }
    return 0;
}

static int sync_folder(const char *path)
{
    CLEANUP(memory_freep) char *copy = memory_strdup(path);
    CLEANUP(fd_closep) int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 || fsync(fd) ? -errno : 0;
}

/* Pages are written when they are first used; that they have room is seen to now, where the file
 * system can do that. */
static int reserve(int fd, const char *path, const struct vr_store *store, struct error *err)
{
    int result = 0;
    if (fallocate(fd, 0, (off_t)store->pages_offset,
                  (off_t)(store->heads_offset - store->pages_offset)))
        result = -errno;
    return result && result != -EOPNOTSUPP ? no_room(result, path, store->total_bytes, err) : 0;
}

static int write_new(int fd, const char *path, const struct vr_config *config, struct error *err)
{
    struct vr_store store;
    unsigned char sector[VR_DISK_SECTOR];
    uint64_t offset;
    vr_store_init(&store, config, VR_DISK_SECTOR);
    /* Without entries and checkpoints there is only the superblock. */
    int result = fill(fd, path, 0, store.pages_offset, err);
    if (!result && !config->in_memory)
        result = reserve(fd, path, &store, err);
    if (!result && !config->in_memory)
        result = fill(fd, path, store.heads_offset, store.total_bytes, err);
    uint32_t incarnation = 0;
    while (incarnation == 0 && getrandom(&incarnation, sizeof(incarnation), 0) < 0)
        ;
    size_t size = vr_store_format(&store, incarnation, sector, &offset);
    if (!result && (pwrite(fd, sector, size, (off_t)offset) != (ssize_t)size || fsync(fd)))
        result = error_errno(err, -errno, "%s", path);
    vr_store_done(&store);
    return result;
}

/* Whether this name is still the open file's: who was first may have finished it meanwhile. */
static bool is_still(int fd, const char *path)
{
    struct stat open_one, named;
    return fstat(fd, &open_one) == 0 && stat(path, &named) == 0 &&
           open_one.st_ino == named.st_ino && open_one.st_dev == named.st_dev;
}

int vr_disk_format(const char *path, const struct vr_config *config, struct error *err)
{
    CLEANUP(memory_freep) char *temporary = memory_printf("%s.new", path);
    if (access(path, F_OK) == 0)
        return error_set(err, -EEXIST,
                         "%s already exists; a replica that forgets what it promised can lose "
                         "acknowledged data, so remove it only if you abandon its cluster",
                         path);
    CLEANUP(fd_closep) int fd = open(temporary, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_errno(err, -errno, "%s", temporary);
    if (flock(fd, LOCK_EX | LOCK_NB) || !is_still(fd, temporary) || ftruncate(fd, 0))
        return error_set(err, -EBUSY, "%s: another process is creating this file", path);
    int result = write_new(fd, temporary, config, err);
    if (!result && link(temporary, path))
        result = error_errno(err, -errno, "%s", path);
    unlink(temporary);
    if (!result && (result = sync_folder(path)) != 0)
        error_errno(err, result, "the directory of %s", path);
    return result;
}

static int read_file_at(void *context, uint64_t offset, void *bytes, size_t size)
{
    int fd = *(int *)context;
    for (size_t got = 0; got < size;) {
        ssize_t more = pread(fd, (char *)bytes + got, size - got, (off_t)(offset + got));
        if (more < 0 && errno == EINTR)
            continue;
        if (more <= 0)
            return -EIO;
        got += (size_t)more;
    }
    return 0;
}

static int open_file(const char *path, int flags, struct error *err)
{
    int fd = open(path, flags | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return error_set(
            err, -ENOENT,
            "%s: no such file; the first start needs --format, and so does a start after "
            "the disk was lost: then 'assay-vr reconfigure --replace' adds it again",
            path);
    return fd < 0 ? error_errno(err, -errno, "%s", path) : fd;
}

/* After a crash the kernel may take a moment to let go of what a ring still held. */
static int lock(int fd, const char *path, struct error *err)
{
    uint64_t end_ns = clock_now_ns() + PATIENCE_NS;
    struct timespec rest = {.tv_nsec = 10 * (long)NS_PER_MS};
    while (flock(fd, LOCK_EX | LOCK_NB)) {
        if (errno != EWOULDBLOCK)
            return error_errno(err, -errno, "locking %s", path);
        if (clock_now_ns() > end_ns)
            return error_set(err, -EBUSY, "%s is in use by another replica", path);
        nanosleep(&rest, NULL);
    }
    return 0;
}

static void close_lanes(struct vr_disk *d)
{
    fd_closep(&d->fds[LANE_ENTRIES]);
    fd_closep(&d->fds[LANE_PAGES]);
}

static int open_lanes(struct vr_disk *d, const char *path, struct error *err)
{
    *d = (struct vr_disk){.fds = {-1, -1}, .direct = true};
    for (unsigned i = 0; i < 2; i++) {
        d->fds[i] = d->direct ? open(path, O_RDWR | O_CLOEXEC | O_DIRECT) : -1;
        if (d->fds[i] < 0) {
            d->direct = false;
            d->fds[i] = open_file(path, O_RDWR, err);
        }
        if (d->fds[i] < 0)
            return d->fds[i];
    }
    return 0;
}

static void prepare(struct vr_disk *d)
{
    const struct vr_store *s = &d->store;
    uint32_t buffers = s->config.in_memory ? 4 : VR_DISK_WRITES_MAX;
    size_t each = round_to_sector(vr_store_phase_bytes_max(s));
    d->buffers = aligned(buffers * each);
    d->heads = aligned(s->heads_bytes);
    /* Twice: while some are told, the core may come with all of them again. */
    d->refused_max = 2 * (s->config.slots + VR_PAGES_OUT_MAX + 8);
    d->refused = memory_zalloc(d->refused_max, sizeof(*d->refused));
    d->head_queued = memory_zalloc(s->heads_bytes / VR_DISK_SECTOR + 1, sizeof(bool));
    for (uint32_t i = 0; i < buffers; i++)
        d->items[i].buffer = d->buffers + i * each;
    for (uint32_t i = buffers; i < VR_DISK_WRITES_MAX; i++)
        d->used[i] = true;
}

static int repair_heads(struct vr_disk *d, struct error *err)
{
    const struct vr_store *s = &d->store;
    memcpy(d->heads, s->heads, s->heads_bytes);
    ssize_t written =
        pwrite(d->fds[LANE_ENTRIES], d->heads, s->heads_bytes, (off_t)s->heads_offset);
    if (written != (ssize_t)s->heads_bytes || fdatasync(d->fds[LANE_ENTRIES]))
        return error_errno(err, written >= 0 && written != (ssize_t)s->heads_bytes ? -EIO : -errno,
                           "the second copies of the log's headers cannot be written, and without "
                           "them nothing may be acknowledged; repair the disk, then start again");
    return 0;
}

int vr_disk_open(struct vr_disk *d, const char *path, const struct vr_config *config,
                 struct vr_loaded *ret_loaded, struct error *err)
{
    CLEANUP(fd_closep) int read_fd = open_file(path, O_RDONLY, err);
    if (read_fd < 0)
        return read_fd;
    int result = open_lanes(d, path, err);
    if (!result)
        result = lock(d->fds[LANE_ENTRIES], path, err);
    if (result) {
        close_lanes(d);
        return result;
    }
    vr_store_init(&d->store, config, VR_DISK_SECTOR);
    result = vr_store_load(&d->store, read_file_at, &read_fd, ret_loaded, err);
    if (result) {
        vr_store_done(&d->store);
        close_lanes(d);
        return error_wrap(err, result, "%s", path);
    }
    prepare(d);
    result = ret_loaded->heads_stale ? repair_heads(d, err) : 0;
    if (result) {
        vr_loaded_done(ret_loaded);
        vr_disk_close(d);
        return error_wrap(err, result, "%s", path);
    }
    return 0;
}

void vr_disk_close(struct vr_disk *d)
{
    close_lanes(d);
    free(d->buffers);
    free(d->heads);
    free(d->head_queued);
    free(d->refused);
    vr_store_done(&d->store);
}

static unsigned phases_of(const struct vr_write *write)
{
    return write->kind == VR_WRITE_PAGE ? 1 : 2;
}

static uint32_t take_item(struct vr_disk *d)
{
    for (uint32_t i = 0; i < VR_DISK_WRITES_MAX; i++) {
        uint32_t index = (d->next_free + i) % VR_DISK_WRITES_MAX;
        if (!d->used[index]) {
            d->used[index] = true;
            d->next_free = index + 1;
            return index;
        }
    }
    return UINT32_MAX;
}

void vr_disk_submit(struct vr_disk *d, const struct vr_write *write)
{
    bool page = write->kind == VR_WRITE_PAGE;
    struct vr_lane *lane = &d->lanes[page ? LANE_PAGES : LANE_ENTRIES];
    uint32_t index = take_item(d);
    if (index == UINT32_MAX) {
        /* The core has one write of each slot under way at most, some of pages, and of the view. */
        assert(d->refused_count < d->refused_max);
        d->refused[d->refused_count++] = *write;
        return;
    }
    struct vr_disk_item *item = &d->items[index];
    item->write = *write;
    item->phase = 0;
    /* What is to be written is kept now: its place in memory may be used again before. */
    item->size = vr_store_phase(&d->store, write, 0, item->buffer, &item->offset);
    lane->waiting[lane->waiting_count++] = index;
}

static void queue_write(struct vr_disk *d, uint32_t lane, const void *bytes, size_t size,
                        uint64_t offset, uint32_t index)
{
    d->lanes[lane].outstanding++;
    d->io->way->write(d->io, d->fds[lane], bytes, size, offset, d->lanes[lane].dsync,
                      lane << 16 | index);
}

/* The second phase of entries: several heads share a sector, which is written once. */
static bool add_head(struct vr_disk *d, struct vr_disk_item *item)
{
    unsigned char sector[VR_DISK_SECTOR];
    item->size = vr_store_phase(&d->store, &item->write, 1, sector, &item->offset);
    uint64_t place = item->offset - d->store.heads_offset;
    memcpy(d->heads + place, sector, VR_DISK_SECTOR);
    bool first = !d->head_queued[place / VR_DISK_SECTOR];
    d->head_queued[place / VR_DISK_SECTOR] = true;
    return first;
}

static void begin(struct vr_disk *d, uint32_t number)
{
    struct vr_lane *lane = &d->lanes[number];
    bool write_it[VR_DISK_WRITES_MAX];
    uint32_t writes = 0;
    memcpy(lane->active + lane->active_count, lane->waiting,
           lane->waiting_count * sizeof(lane->waiting[0]));
    lane->active_count += lane->waiting_count;
    lane->waiting_count = 0;
    for (uint32_t i = 0; i < lane->active_count; i++) {
        struct vr_disk_item *item = &d->items[lane->active[i]];
        write_it[i] = true;
        if (item->phase == 1 && item->write.kind == VR_WRITE_ENTRY)
            write_it[i] = add_head(d, item);
        else if (item->phase == 1)
            item->size = vr_store_phase(&d->store, &item->write, 1, item->buffer, &item->offset);
        writes += write_it[i];
    }
    lane->busy = true;
    lane->failed = lane->syncing = false;
    lane->dsync = writes == 1;
    d->cycles++;
    for (uint32_t i = 0; i < lane->active_count; i++) {
        struct vr_disk_item *item = &d->items[lane->active[i]];
        bool head = item->phase == 1 && item->write.kind == VR_WRITE_ENTRY;
        const void *bytes = head ? d->heads + (item->offset - d->store.heads_offset) : item->buffer;
        if (head)
            d->head_queued[(item->offset - d->store.heads_offset) / VR_DISK_SECTOR] = false;
        if (write_it[i])
            queue_write(d, number, bytes, item->size, item->offset, lane->active[i]);
    }
}

static void tell_refused(struct vr_disk *d, uint64_t now_ns)
{
    /* What the core tries again at once, and is refused again, is for the next time. */
    uint32_t count = d->refused_count;
    if (count == 0 || now_ns < d->refused_due_ns)
        return;
    d->refused_due_ns = now_ns + RETRY_NS;
    for (uint32_t i = 0; i < count; i++) {
        struct vr_write write = d->refused[i];
        d->written(d->context, &write, true);
    }
    d->refused_count -= count;
    memmove(d->refused, d->refused + count, d->refused_count * sizeof(d->refused[0]));
}

void vr_disk_kick(struct vr_disk *d, uint64_t now_ns)
{
    tell_refused(d, now_ns);
    for (uint32_t i = 0; i < 2; i++) {
        struct vr_lane *lane = &d->lanes[i];
        if (!lane->busy && lane->active_count + lane->waiting_count && now_ns >= lane->resume_ns)
            begin(d, i);
    }
}

uint64_t vr_disk_deadline_ns(const struct vr_disk *d)
{
    uint64_t at = d->refused_count ? d->refused_due_ns : UINT64_MAX;
    for (uint32_t i = 0; i < 2; i++) {
        const struct vr_lane *lane = &d->lanes[i];
        if (!lane->busy && lane->active_count + lane->waiting_count && lane->resume_ns < at)
            at = lane->resume_ns;
    }
    return at;
}

bool vr_disk_failing(const struct vr_disk *d, uint64_t now_ns, uint64_t for_ns)
{
    for (uint32_t i = 0; i < 2; i++)
        if (d->lanes[i].failing_since_ns && now_ns - d->lanes[i].failing_since_ns > for_ns)
            return true;
    return false;
}

static void finish(struct vr_disk *d, struct vr_lane *lane, uint64_t now_ns)
{
    uint32_t ended[VR_DISK_WRITES_MAX], ended_count = 0, kept = 0;
    for (uint32_t i = 0; i < lane->active_count; i++) {
        struct vr_disk_item *item = &d->items[lane->active[i]];
        item->phase++;
        /* Superblocks tell nothing about the room for entries, where there are entries. */
        if (!lane->failed && (item->write.kind != VR_WRITE_DURABLE || d->store.config.in_memory))
            lane->failing_since_ns = 0;
        if (lane->failed || item->phase == phases_of(&item->write))
            ended[ended_count++] = lane->active[i];
        else
            lane->active[kept++] = lane->active[i];
    }
    lane->active_count = kept;
    lane->busy = false;
    if (lane->failed) {
        d->failures++;
        if (!lane->failing_since_ns)
            lane->failing_since_ns = now_ns;
        lane->resume_ns = now_ns + RETRY_NS;
    }
    bool failed = lane->failed;
    for (uint32_t i = 0; i < ended_count; i++) {
        struct vr_write write = d->items[ended[i]].write;
        d->used[ended[i]] = false;
        vr_store_ended(&d->store, &write, failed);
        d->written(d->context, &write, failed);
    }
}

void vr_disk_ended(struct vr_disk *d, uint32_t tag, int result, uint64_t now_ns)
{
    uint32_t number = tag >> 16, index = tag & 0xffff;
    assert(number < 2 && (index == SYNC_TAG || index < VR_DISK_WRITES_MAX));
    struct vr_lane *lane = &d->lanes[number];
    size_t wanted = index == SYNC_TAG ? 0 : d->items[index].size;
    assert(lane->busy && lane->outstanding > 0);
    if (result < 0 || (size_t)result != wanted) {
        lane->failed = true;
        d->last_error = result < 0 ? result : -EIO;
    }
    if (--lane->outstanding)
        return;
    if (!lane->syncing && !lane->dsync && !lane->failed) {
        lane->syncing = true;
        lane->outstanding = 1;
        d->io->way->sync(d->io, d->fds[number], number << 16 | SYNC_TAG);
        return;
    }
    finish(d, lane, now_ns);
}
