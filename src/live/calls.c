/* SPDX-License-Identifier: MIT */
/* System calls as text: see calls.h. */
#include "live/calls.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "machine/tracefs.h"
#include "monitors/syscall_names.h"
#include "tracepoints/format.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/un.h>
#include <time.h>

#define TEXT_SHOWN_MAX 64 /* bytes of data, as of write(); paths are shown whole */

struct calls {
    /* By number; what was asked for already, and what it is. */
    struct call_shape own[ARRAY_COUNT(syscall_names)];
    const struct call_shape *shapes[ARRAY_COUNT(syscall_names)];
    bool is_known[ARRAY_COUNT(syscall_names)];
    int events_fd;
};

struct calls *calls_new(void)
{
    struct calls *c = memory_zalloc(1, sizeof(*c));
    c->events_fd = tracefs_open_events(NULL);
    return c;
}

void calls_free(struct calls *c)
{
    if (!c)
        return;
    fd_closep(&c->events_fd);
    free(c);
}

static const char *name_of(uint32_t number)
{
    return number < ARRAY_COUNT(syscall_names) ? syscall_names[number] : NULL;
}

const char *calls_name(const struct calls *c, uint32_t number, char *room, size_t size)
{
    (void)c;
    if (name_of(number))
        return name_of(number);
    snprintf(room, size, "syscall_%u", number);
    return room;
}

uint32_t calls_number(const struct calls *c, const char *name)
{
    (void)c;
    for (uint32_t i = 0; i < ARRAY_COUNT(syscall_names); i++)
        if (syscall_names[i] && str_eq(syscall_names[i], name))
            return i;
    return UINT32_MAX;
}

/* How many arguments there are, and which are pointers, as the kernel lists them. */
static const struct call_shape *ask_kernel(struct calls *c, uint32_t number)
{
    struct tp_format format;
    struct call_shape *own = &c->own[number];
    char event[128];
    size_t count = 0;
    snprintf(event, sizeof(event), "sys_enter_%s", name_of(number));
    if (c->events_fd < 0 || tp_format_read(&format, c->events_fd, "syscalls", event, NULL) < 0)
        return NULL;
    own->name = name_of(number);
    for (size_t i = 0; i < format.field_count && count < CALL_ARGUMENTS; i++) {
        const struct tp_field *f = &format.fields[i];
        if (f->is_common || str_has_prefix(f->name, "__"))
            continue;
        own->kinds[count++] = f->is_pointer ? CALL_POINTER : CALL_HEX;
    }
    tp_format_done(&format);
    return own;
}

const struct call_shape *calls_table_shape(const char *name)
{
    for (size_t i = 0; i < call_shape_count; i++)
        if (str_eq(call_shapes[i].name, name))
            return &call_shapes[i];
    return NULL;
}

const struct call_shape *calls_shape(struct calls *c, uint32_t number)
{
    if (!name_of(number))
        return NULL;
    if (c->is_known[number])
        return c->shapes[number];
    c->is_known[number] = true;
    const struct call_shape *listed = calls_table_shape(name_of(number));
    return c->shapes[number] = listed ? listed : ask_kernel(c, number);
}

static void put_words(const struct call_words *set, uint64_t value, struct strbuf *out)
{
    uint64_t whole = value & set->mask, left = value & ~set->mask;
    size_t start = out->length;
    bool found = false;
    for (size_t i = 0; i < set->count && !found && set->mask; i++)
        if (set->items[i].value == whole) {
            strbuf_puts(out, set->items[i].text);
            found = true;
        }
    for (size_t i = 0; i < set->count && left; i++) {
        uint64_t bits = set->items[i].value;
        if (!bits || bits & set->mask || (left & bits) != bits)
            continue;
        strbuf_printf(out, "%s%s", out->length > start ? "|" : "", set->items[i].text);
        left &= ~bits;
    }
    uint64_t unknown = left | (set->mask && !found ? whole : 0);
    if (unknown)
        strbuf_printf(out, "%s0x%llx", out->length > start ? "|" : "", (unsigned long long)unknown);
    for (size_t i = 0; i < set->count && out->length == start; i++)
        if (set->items[i].value == 0)
            strbuf_puts(out, set->items[i].text);
    if (out->length == start)
        strbuf_putc(out, '0');
}

/* Bytes between quotes, as C writes them. */
static void put_quoted(const uint8_t *bytes, size_t size, bool is_cut, struct strbuf *out)
{
    static const char letters[] = "\n\r\t\v\f\"\\", escapes[] = "nrtvf\"\\";
    strbuf_putc(out, '"');
    for (size_t i = 0; i < size; i++) {
        const char *found = bytes[i] ? strchr(letters, bytes[i]) : NULL;
        bool digit_follows = i + 1 < size && bytes[i + 1] >= '0' && bytes[i + 1] <= '7';
        if (found)
            strbuf_printf(out, "\\%c", escapes[found - letters]);
        else if (bytes[i] >= 0x20 && bytes[i] < 0x7f)
            strbuf_putc(out, (char)bytes[i]);
        else
            strbuf_printf(out, digit_follows ? "\\%03o" : "\\%o", bytes[i]);
    }
    strbuf_puts(out, is_cut ? "\"..." : "\"");
}

static void put_address(const struct call_memory *m, struct strbuf *out)
{
    char text[INET6_ADDRSTRLEN] = "?";
    uint16_t family = 0;
    if (m->size >= sizeof(family))
        memcpy(&family, m->bytes, sizeof(family));
    if (family == AF_INET && m->size >= sizeof(struct sockaddr_in)) {
        struct sockaddr_in in;
        memcpy(&in, m->bytes, sizeof(in));
        inet_ntop(AF_INET, &in.sin_addr, text, sizeof(text));
        strbuf_printf(out, "{AF_INET, %s:%u}", text, ntohs(in.sin_port));
    } else if (family == AF_INET6 && m->size >= sizeof(struct sockaddr_in6)) {
        struct sockaddr_in6 in;
        memcpy(&in, m->bytes, sizeof(in));
        inet_ntop(AF_INET6, &in.sin6_addr, text, sizeof(text));
        strbuf_printf(out, "{AF_INET6, [%s]:%u}", text, ntohs(in.sin6_port));
    } else if (family == AF_UNIX) {
        const uint8_t *path = m->bytes + sizeof(family);
        size_t size = m->size - sizeof(family), start = size && !path[0];
        strbuf_puts(out, start ? "{AF_UNIX, @" : "{AF_UNIX, ");
        put_quoted(path + start, strnlen((const char *)path + start, size - start), false, out);
        strbuf_putc(out, '}');
    } else {
        strbuf_puts(out, "{");
        put_words(&call_sets[SET_FAMILY], family, out);
        strbuf_puts(out, ", ...}");
    }
}

/* What was read of the argument's memory, or NULL. */
static const struct call_memory *memory_at(const struct call *call, size_t argument)
{
    for (size_t i = 0; i < ARRAY_COUNT(call->memory); i++)
        if (call->memory[i].size && call->memory_of[i] == argument)
            return &call->memory[i];
    return NULL;
}

static void put_pointer(uint64_t value, struct strbuf *out)
{
    if (value)
        strbuf_printf(out, "0x%llx", (unsigned long long)value);
    else
        strbuf_puts(out, "NULL");
}

static void put_memory(const struct call *call, size_t argument, enum call_kind kind,
                       struct strbuf *out)
{
    const struct call_memory *m = memory_at(call, argument);
    uint64_t length = argument + 1 < CALL_ARGUMENTS ? call->arguments[argument + 1] : 0;
    if (!m) {
        put_pointer(call->arguments[argument], out);
    } else if (kind == CALL_PATH) {
        put_quoted(m->bytes, strnlen((const char *)m->bytes, m->size), m->is_cut, out);
    } else if (kind == CALL_BYTES) {
        size_t size = m->size < length ? m->size : (size_t)length;
        size = size < TEXT_SHOWN_MAX ? size : TEXT_SHOWN_MAX;
        put_quoted(m->bytes, size, size < length, out);
    } else if (kind == CALL_SOCKADDR) {
        put_address(m, out);
    } else if (m->size >= sizeof(struct timespec)) {
        struct timespec t;
        memcpy(&t, m->bytes, sizeof(t));
        strbuf_printf(out, "{%lld.%09ld}", (long long)t.tv_sec, t.tv_nsec);
    }
}

static void put_signal(uint64_t value, struct strbuf *out)
{
    const char *name = value < 65 ? signal_name((int)value) : NULL;
    if (name)
        strbuf_printf(out, "SIG%s", name);
    else
        strbuf_printf(out, "%d", (int)value);
}

static void put_argument(const struct call *call, size_t argument, unsigned kind,
                         struct strbuf *out)
{
    uint64_t value = call->arguments[argument];
    if (kind >= CALL_SET) {
        put_words(&call_sets[kind - CALL_SET], (uint32_t)value, out);
        return;
    }
    switch ((enum call_kind)kind) {
    case CALL_INT:
    case CALL_FD:
        strbuf_printf(out, "%d", (int)value);
        break;
    case CALL_DIRFD:
        if ((int)value == AT_FDCWD)
            strbuf_puts(out, "AT_FDCWD");
        else
            strbuf_printf(out, "%d", (int)value);
        break;
    case CALL_UINT:
        strbuf_printf(out, "%llu", (unsigned long long)value);
        break;
    case CALL_LONG:
        strbuf_printf(out, "%lld", (long long)value);
        break;
    case CALL_OCTAL:
        strbuf_printf(out, value & 0xffff ? "0%o" : "%o", (unsigned)value & 0xffff);
        break;
    case CALL_POINTER:
        put_pointer(value, out);
        break;
    case CALL_SIGNAL:
        put_signal(value, out);
        break;
    case CALL_PATH:
    case CALL_BYTES:
    case CALL_SOCKADDR:
    case CALL_TIMESPEC:
        put_memory(call, argument, (enum call_kind)kind, out);
        break;
    default:
        strbuf_printf(out, value < 10 ? "%llu" : "0x%llx", (unsigned long long)value);
        break;
    }
}

/* The mode of open and openat is there only when a file may be created. */
static size_t argument_count(const struct call_shape *shape, const struct call *call)
{
    size_t count = 0;
    while (shape && count < CALL_ARGUMENTS && shape->kinds[count] != CALL_END)
        count++;
    if (!shape)
        return CALL_ARGUMENTS;
    for (size_t i = 0; i + 1 < count; i++)
        if (shape->kinds[i] == CALL_OF(SET_OPEN) && shape->kinds[i + 1] == CALL_OCTAL &&
            !(call->arguments[i] & (O_CREAT | 020000000)))
            return i + 1;
    return count;
}

void calls_put(struct calls *c, const struct call *call, struct strbuf *out)
{
    char room[32];
    const struct call_shape *shape = calls_shape(c, call->number);
    size_t count = call->has_arguments ? argument_count(shape, call) : 0;
    strbuf_printf(out, "%s(", calls_name(c, call->number, room, sizeof(room)));
    for (size_t i = 0; i < count; i++) {
        if (i)
            strbuf_puts(out, ", ");
        put_argument(call, i, shape ? shape->kinds[i] : CALL_HEX, out);
    }
    bool has_none = shape && argument_count(shape, call) == 0;
    strbuf_puts(out, call->has_arguments || has_none ? ")" : "...)");
}

bool call_failed(const struct call *call)
{
    return call->has_result && call->result < 0 && call->result >= -4095;
}

/* Results that only tracers see: the kernel repeats the call, or makes EINTR of it when a handler
 * for the signal ran.  In strace's words. */
struct restart {
    int code;
    const char *name, *meaning;
};

static const struct restart *restart_of(int code)
{
    static const struct restart all[] = {
        {512, "ERESTARTSYS", "To be restarted if SA_RESTART is set"},
        {513, "ERESTARTNOINTR", "To be restarted"},
        {514, "ERESTARTNOHAND", "To be restarted if no handler"},
        {516, "ERESTART_RESTARTBLOCK", "Interrupted by signal"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(all); i++)
        if (all[i].code == code)
            return &all[i];
    return NULL;
}

static bool returns_pointer(struct calls *c, const struct call *call)
{
    const struct call_shape *shape = calls_shape(c, call->number);
    return shape && shape->returns_pointer;
}

void calls_put_result(struct calls *c, const struct call *call, struct strbuf *out)
{
    int code = call_failed(call) ? (int)-call->result : 0;
    if (!call->has_result)
        strbuf_puts(out, " = ?");
    else if (restart_of(code))
        strbuf_printf(out, " = ? %s (%s)", restart_of(code)->name, restart_of(code)->meaning);
    else if (code)
        strbuf_printf(out, " = -1 %s (%s)", errno_name(code) ? errno_name(code) : "E?",
                      strerror(code));
    else if (returns_pointer(c, call))
        strbuf_printf(out, " = 0x%llx", (unsigned long long)call->result);
    else
        strbuf_printf(out, " = %lld", (long long)call->result);
}

void calls_put_json(struct calls *c, const struct call *call, struct json *j)
{
    char room[32];
    CLEANUP(strbuf_done) struct strbuf text = {0};
    const struct call_shape *shape = calls_shape(c, call->number);
    size_t count = call->has_arguments ? argument_count(shape, call) : 0;
    json_string(j, "call", calls_name(c, call->number, room, sizeof(room)));
    json_array(j, "arguments");
    for (size_t i = 0; i < count; i++) {
        strbuf_clear(&text);
        put_argument(call, i, shape ? shape->kinds[i] : CALL_HEX, &text);
        json_string(j, NULL, strbuf_text(&text));
    }
    json_end(j);
    if (!call->has_result)
        json_null(j, "result");
    else
        json_i64(j, "result", call->result);
    int code = call_failed(call) ? (int)-call->result : 0;
    if (restart_of(code))
        json_string(j, "error", restart_of(code)->name);
    else if (code && errno_name(code))
        json_string(j, "error", errno_name(code));
}
