/* SPDX-License-Identifier: MIT */
/* A file in memory that a command writes to: see memfile.h. */
#include "run/memfile.h"
#include "base/fd.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

int memfile_open(const char *name, struct error *err)
{
    CLEANUP(fd_closep) int low = memfd_create(name, MFD_CLOEXEC);
    if (low < 0)
        return error_errno(err, -errno, "a file in memory for %s", name);
    int fd = fcntl(low, F_DUPFD_CLOEXEC, 10);
    return fd < 0 ? error_errno(err, -errno, "a file in memory for %s", name) : fd;
}

static size_t size_of(int fd)
{
    struct stat st;
    return fstat(fd, &st) < 0 || st.st_size < 0 ? 0 : (size_t)st.st_size;
}

void memfile_reset(int fd)
{
    if (size_of(fd) && ftruncate(fd, 0) < 0)
        return;
    lseek(fd, 0, SEEK_SET);
}

size_t memfile_trim(int fd, size_t head_bytes, size_t tail_bytes)
{
    size_t size = size_of(fd);
    if (size < 2 * (head_bytes + tail_bytes) + 65536)
        return size;
    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)head_bytes,
              (off_t)(size - head_bytes - tail_bytes));
    return size;
}

static void read_at(int fd, size_t at, size_t end, struct strbuf *out)
{
    char bytes[4096];
    while (at < end) {
        size_t want = end - at < sizeof(bytes) ? end - at : sizeof(bytes);
        ssize_t got = pread(fd, bytes, want, (off_t)at);
        if (got <= 0)
            return;
        strbuf_append(out, bytes, (size_t)got);
        at += (size_t)got;
    }
}

bool memfile_read_head(int fd, size_t most, struct strbuf *out)
{
    size_t size = size_of(fd);
    read_at(fd, 0, size < most ? size : most, out);
    return size > most;
}

bool memfile_read_tail(int fd, size_t most, struct strbuf *out)
{
    size_t size = size_of(fd);
    read_at(fd, size > most ? size - most : 0, size, out);
    return size > most;
}
