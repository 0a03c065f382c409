/* SPDX-License-Identifier: MIT */
/* Names of JIT code: see perfmap.h. */
#include "symbols/names/perfmap.h"

#include "base/fd.h"
#include "base/memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define JIT_FILE_BYTES_MAX (1ull << 30)

/* A hexadecimal number, with or without 0x; NULL when there is none or it is too large. */
static const char *parse_hex(const char *at, const char *end, uint64_t *ret_value)
{
    uint64_t value = 0;
    size_t digits = 0;
    if (end - at > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))
        at += 2;
    for (; at < end && digits < 17; at++, digits++) {
        char c = *at;
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
                                                : 16;
        if (digit == 16)
            break;
        value = value << 4 | digit;
    }
    *ret_value = value;
    return digits >= 1 && digits <= 16 ? at : NULL;
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    return at;
}

static bool parse_line(const char *at, const char *end, struct symtab_builder *builder)
{
    uint64_t start, size;
    at = parse_hex(skip_blanks(at, end), end, &start);
    if (!at || at == end || (*at != ' ' && *at != '\t'))
        return false;
    at = parse_hex(skip_blanks(at, end), end, &size);
    if (!at || at == end || (*at != ' ' && *at != '\t'))
        return false;
    at = skip_blanks(at, end);
    while (end > at && (end[-1] == '\r' || end[-1] == ' '))
        end--;
    size_t length = (size_t)(end - at);
    /* A zero byte would end the name in our table: it ends it here. */
    length = strnlen(at, length < SYMBOLS_NAME_MAX ? length : SYMBOLS_NAME_MAX);
    if (length == 0 || size == 0 || start + size < start)
        return false;
    symtab_add(builder, start, size, UINT64_MAX, SYMTAB_GLOBAL, at, length);
    return true;
}

size_t perfmap_parse(const char *text, size_t length, struct symtab_builder *builder)
{
    size_t bad = 0;
    const char *end = text + length;
    for (const char *line = text; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop)
            stop = end;
        if (stop > line && !parse_line(line, stop, builder))
            bad++;
        line = stop + 1;
    }
    return bad;
}

/* The last number in the line "NSpid:" of the process: what it calls itself in its container.
 * 0 when it does not live. */
static long inner_pid(pid_t pid)
{
    char path[64];
    long inner = 0;
    CLEANUP(strbuf_done) struct strbuf status = {0};
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    if (file_read(path, &status, NULL) < 0)
        return 0;
    const char *line = strstr(strbuf_text(&status), "\nNSpid:");
    for (const char *at = line ? line + 7 : ""; *at && *at != '\n';) {
        char *next;
        long number = strtol(at, &next, 10);
        if (next == at)
            break;
        inner = number;
        at = next;
    }
    return inner;
}

enum perfmap_found perfmap_read_file(const char *path, struct strbuf *out)
{
    CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return PERFMAP_MISSING;
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return PERFMAP_FOREIGN;
    char block[65536];
    while (out->length < JIT_FILE_BYTES_MAX) {
        ssize_t got = read(fd, block, sizeof(block));
        if (got <= 0)
            break;
        strbuf_append(out, block, (size_t)got);
    }
    strbuf_append(out, "", 0);
    return PERFMAP_READ;
}

enum perfmap_found perfmap_read(const char *path, pid_t pid, struct strbuf *out)
{
    enum perfmap_found found = perfmap_read_file(path, out);
    long inner = found == PERFMAP_MISSING && pid > 0 ? inner_pid(pid) : 0;
    if (inner <= 0)
        return found;
    CLEANUP(memory_freep)
    char *inside = memory_printf("/proc/%d/root%s/perf-%ld.map", (int)pid, "/tmp", inner);
    return perfmap_read_file(inside, out);
}
