/* SPDX-License-Identifier: MIT */
/*
 * System calls as text: openat(AT_FDCWD, "/etc/passwd", O_RDONLY) = 3.
 *
 * Numbers come from raw_syscalls:sys_enter and sys_exit.  What arguments mean stands in a table for
 * the calls that programs make most (calls_table.c); of the others the kernel's own list of
 * arguments is used where it has one, else the bare numbers are shown.
 */
#ifndef ASSAY_LIVE_CALLS_H
#define ASSAY_LIVE_CALLS_H

#include "base/json.h"
#include "base/strings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CALL_ARGUMENTS 6
#define CALL_TEXT_MAX 256 /* bytes of a text that are read from a process's memory */

enum call_kind {
    CALL_END, /* no further argument */
    CALL_INT,
    CALL_UINT,
    CALL_LONG,
    CALL_HEX,
    CALL_OCTAL,
    CALL_POINTER,
    CALL_FD,
    CALL_DIRFD,
    CALL_PATH,     /* a text */
    CALL_BYTES,    /* as many as the next argument says */
    CALL_SOCKADDR, /* as long as the next argument says */
    CALL_TIMESPEC,
    CALL_SIGNAL,
    CALL_SET, /* CALL_SET + n: words of the set number n, see calls_flags.c */
};

enum call_set {
    SET_OPEN,
    SET_AT,
    SET_PROT,
    SET_MAP,
    SET_WHENCE,
    SET_ACCESS,
    SET_FAMILY,
    SET_SOCKET,
    SET_MSG,
    SET_CLONE,
    SET_FUTEX,
    SET_MADVISE,
    SET_FCNTL,
    SET_CLOCK,
    SET_EPOLL,
    SET_EPOLL_CREATE,
    SET_PIPE,
    SET_SHUTDOWN,
    SET_LEVEL,
    SET_RESOURCE,
    SET_WAIT,
    SET_SIGMASK,
    SET_RANDOM,
    SET_LOCK,
    SET_PRCTL,
    SET_ARCH_PRCTL,
    SET_MREMAP,
    SET_MSYNC,
    SET_FALLOCATE,
    SET_IOCTL,
    SET_EVENTFD,
    SET_TIMERFD,
    SET_SETTIME,
    SET_COUNT,
};

#define CALL_OF(set) (CALL_SET + (set))

struct call_word {
    uint64_t value;
    const char *text;
};

/* The words of a set.  With a mask, its bits are one number (as O_RDONLY is 0) and the rest are
 * flags; with a mask of all bits there are no flags. */
struct call_words {
    const struct call_word *items;
    size_t count;
    uint64_t mask;
};

extern const struct call_words call_sets[SET_COUNT];

struct call_shape {
    const char *name;
    uint8_t kinds[CALL_ARGUMENTS];
    bool returns_pointer;
};

extern const struct call_shape call_shapes[];
extern const size_t call_shape_count;

/* One call of a thread. */
struct call {
    uint32_t number;
    uint64_t arguments[CALL_ARGUMENTS];
    bool has_arguments; /* the entry was seen */
    bool has_result;
    int64_t result;
    /* What was read from the process's memory of an argument, at the call; size 0 for nothing. */
    struct call_memory {
        uint8_t bytes[CALL_TEXT_MAX];
        uint16_t size;
        bool is_cut; /* there was more */
    } memory[2];
    uint8_t memory_of[2]; /* the argument of each */
};

/* Of the table alone; NULL for a call that it lacks. */
const struct call_shape *calls_table_shape(const char *name);

struct calls;
struct calls *calls_new(void);
void calls_free(struct calls *c);
/* "openat", or "syscall_999". */
const char *calls_name(const struct calls *c, uint32_t number, char *room, size_t size);
/* UINT32_MAX when there is no such call. */
uint32_t calls_number(const struct calls *c, const char *name);
/* NULL for a call whose arguments are not known. */
const struct call_shape *calls_shape(struct calls *c, uint32_t number);

/* "openat(AT_FDCWD, "x", O_RDONLY)", and what came of it: " = -1 ENOENT (No such file or
 * directory)". */
void calls_put(struct calls *c, const struct call *call, struct strbuf *out);
void calls_put_result(struct calls *c, const struct call *call, struct strbuf *out);
/* Members "call", "arguments" (texts) and "result" or "error". */
void calls_put_json(struct calls *c, const struct call *call, struct json *j);
/* Whether the result says that it failed. */
bool call_failed(const struct call *call);

#endif
