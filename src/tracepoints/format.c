/* SPDX-License-Identifier: MIT */
/* Formats of tracepoints: see format.h. */
#include "tracepoints/format.h"
#include "base/fd.h"
#include "base/memory.h"
#include "tracepoints/print.h"

#include <errno.h>
#include <stdio.h>

#define FIELD_COUNT_MAX 512

/* The number behind a label such as "offset:" in [at, end). */
static bool number_behind(const char *at, const char *end, const char *label, uint32_t *ret)
{
    size_t length = strlen(label);
    for (; at + length < end; at++)
        if (memcmp(at, label, length) == 0) {
            uint64_t value = 0;
            for (at += length; at < end && *at >= '0' && *at <= '9' && value < UINT32_MAX; at++)
                value = value * 10 + (uint64_t)(*at - '0');
            *ret = (uint32_t)value;
            return value <= 1u << 20;
        }
    return false;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool has_word(const char *text, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at++)
        if ((at == text || !is_word(at[-1])) && !is_word(at[length]))
            return true;
    return false;
}

/* "__data_loc char[] name", "unsigned long args[6]", "const char * filename" */
static bool read_declaration(struct tp_field *f, struct arena *arena, const char *at,
                             const char *end)
{
    CLEANUP(memory_freep) char *text = memory_strndup(at, (size_t)(end - at));
    char *bracket = strchr(text, '['), *stop = text + strlen(text);
    uint64_t count = 0;
    f->is_dynamic = str_has_prefix(text, "__data_loc ") || str_has_prefix(text, "__rel_loc ");
    f->is_relative = str_has_prefix(text, "__rel_loc ");
    if (bracket && bracket[1] && stop[-1] == ']') {
        stop = bracket;
        for (const char *digit = bracket + 1; *digit >= '0' && *digit <= '9'; digit++)
            count = count * 10 + (uint64_t)(*digit - '0');
        f->is_array = true;
    }
    char *start = stop;
    while (start > text && is_word(start[-1]))
        start--;
    if (start == stop)
        return false;
    f->name = arena_strndup(arena, start, (size_t)(stop - start));
    *start = '\0';
    f->is_common = str_has_prefix(f->name, "common_");
    f->is_pointer = strchr(text, '*');
    f->is_text =
        (f->is_array || f->is_dynamic) && has_word(text, "char") && !has_word(text, "unsigned");
    f->element_size = f->is_array && count && f->size % count == 0 ? (uint32_t)(f->size / count)
                      : f->is_dynamic                              ? 1
                                                                   : f->size;
    if (f->is_array && !count && !f->is_dynamic)
        f->element_size = f->is_text ? 1 : f->size;
    return true;
}

static void add_field(struct tp_format *f, size_t *capacity, const char *line, const char *end)
{
    static const char label[] = "field:";
    const char *at = line + sizeof(label) - 1, *stop = memchr(at, ';', (size_t)(end - at));
    struct tp_field field = {0};
    uint32_t is_signed = 0;
    if (!stop || f->field_count >= FIELD_COUNT_MAX ||
        !number_behind(stop, end, "offset:", &field.offset) ||
        !number_behind(stop, end, "size:", &field.size))
        return;
    number_behind(stop, end, "signed:", &is_signed);
    field.is_signed = is_signed;
    if (read_declaration(&field, &f->arena, at, stop))
        ARRAY_PUSH(f->fields, f->field_count, *capacity) = field;
}

static void read_line(struct tp_format *f, size_t *capacity, const char *line, const char *end)
{
    while (line < end && (*line == '\t' || *line == ' '))
        line++;
    CLEANUP(memory_freep) char *text = memory_strndup(line, (size_t)(end - line));
    if (str_has_prefix(text, "name: "))
        f->name = arena_strdup(&f->arena, text + 6);
    else if (str_has_prefix(text, "ID: "))
        f->id = strtoull(text + 4, NULL, 10);
    else if (str_has_prefix(text, "field:"))
        add_field(f, capacity, line, end);
}

int tp_format_parse(struct tp_format *ret, const char *system, const char *text, size_t length,
                    struct error *err)
{
    static const char print_label[] = "\nprint fmt: ";
    struct tp_format f = {0};
    size_t capacity = 0;
    CLEANUP(memory_freep) char *copy = memory_strndup(text, length);
    char *print = strstr(copy, print_label);
    const char *end = print ? print : copy + strlen(copy);
    f.system = arena_strdup(&f.arena, system);
    for (const char *line = copy; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop ? stop : end;
        read_line(&f, &capacity, line, stop);
        line = stop + 1;
    }
    if (!f.name) {
        tp_format_done(&f);
        return error_set(err, -EBADMSG, "a tracepoint's format has no name");
    }
    if (print)
        f.print = tp_print_parse(&f, print + sizeof(print_label) - 1);
    *ret = f;
    return 0;
}

int tp_format_read(struct tp_format *ret, int events_fd, const char *system, const char *name,
                   struct error *err)
{
    char path[300];
    CLEANUP(strbuf_done) struct strbuf text = {0};
    snprintf(path, sizeof(path), "%s/%s/format", system, name);
    int r = file_read_at(events_fd, path, &text, err);
    return r < 0 ? error_wrap(err, r, "tracefs")
                 : tp_format_parse(ret, system, strbuf_text(&text), text.length, err);
}

void tp_format_done(struct tp_format *f)
{
    free(f->fields);
    arena_done(&f->arena);
    *f = (struct tp_format){0};
}

const struct tp_field *tp_format_field(const struct tp_format *f, const char *name)
{
    for (size_t i = 0; i < f->field_count; i++)
        if (str_eq(f->fields[i].name, name))
            return &f->fields[i];
    return NULL;
}

static int64_t load_number(const unsigned char *at, size_t size, bool is_signed)
{
    switch (size) {
    case 1:
        return is_signed ? (int64_t)(int8_t)*at : (int64_t)*at;
    case 2: {
        uint16_t value;
        memcpy(&value, at, sizeof(value));
        return is_signed ? (int64_t)(int16_t)value : (int64_t)value;
    }
    case 4: {
        uint32_t value;
        memcpy(&value, at, sizeof(value));
        return is_signed ? (int64_t)(int32_t)value : (int64_t)value;
    }
    case 8: {
        int64_t value;
        memcpy(&value, at, sizeof(value));
        return value;
    }
    default:
        return 0;
    }
}

int64_t tp_element(const struct tp_field *field, const unsigned char *bytes, size_t size,
                   uint64_t index)
{
    uint32_t element = field->element_size;
    if (!element || index >= size / element)
        return 0;
    return load_number(bytes + index * element, element, field->is_signed);
}

int64_t tp_number(const struct tp_field *field, struct tp_record record)
{
    if (field->offset > record.size || field->size > record.size - field->offset)
        return 0;
    return load_number(record.bytes + field->offset, field->size, field->is_signed);
}

const unsigned char *tp_bytes(const struct tp_field *field, struct tp_record record,
                              size_t *ret_size)
{
    uint64_t offset = field->offset, size = field->size;
    if (offset > record.size || size > record.size - offset)
        return NULL;
    if (field->is_dynamic) {
        uint32_t place;
        if (size < sizeof(place))
            return NULL;
        memcpy(&place, record.bytes + offset, sizeof(place));
        offset = (place & 0xffff) + (field->is_relative ? offset + sizeof(place) : 0);
        size = place >> 16;
        if (offset > record.size || size > record.size - offset)
            return NULL;
    }
    *ret_size =
        field->is_text ? strnlen((const char *)record.bytes + offset, (size_t)size) : (size_t)size;
    return record.bytes + offset;
}

/* A field whose elements are numbers, as text. */
static void put_array(const struct tp_field *f, struct tp_record record, struct strbuf *out)
{
    size_t size = 0;
    const unsigned char *bytes = tp_bytes(f, record, &size);
    strbuf_putc(out, '{');
    for (size_t i = 0; bytes && f->element_size && i < size / f->element_size; i++)
        strbuf_printf(out, "%s0x%llx", i ? ", " : "",
                      (unsigned long long)tp_element(f, bytes, size, i));
    strbuf_putc(out, '}');
}

static void put_field(const struct tp_field *f, struct tp_record record, struct strbuf *out)
{
    size_t size = 0;
    strbuf_printf(out, "%s=", f->name);
    if (f->is_text) {
        const unsigned char *bytes = tp_bytes(f, record, &size);
        strbuf_put_safe(out, bytes ? (const char *)bytes : "", size, SIZE_MAX);
    } else if (f->is_array || f->is_dynamic) {
        put_array(f, record, out);
    } else if (f->is_pointer) {
        strbuf_printf(out, "0x%llx", (unsigned long long)tp_number(f, record));
    } else if (f->is_signed) {
        strbuf_printf(out, "%lld", (long long)tp_number(f, record));
    } else {
        strbuf_printf(out, "%llu", (unsigned long long)tp_number(f, record));
    }
}

void tp_put(const struct tp_format *f, struct tp_record record, struct strbuf *out)
{
    if (f->print) {
        tp_print_put(f->print, record, out);
        return;
    }
    bool any = false;
    for (size_t i = 0; i < f->field_count; i++) {
        if (f->fields[i].is_common)
            continue;
        if (any)
            strbuf_putc(out, ' ');
        put_field(&f->fields[i], record, out);
        any = true;
    }
}

void tp_put_json(const struct tp_format *f, struct tp_record record, struct json *j)
{
    for (size_t i = 0; i < f->field_count; i++) {
        const struct tp_field *field = &f->fields[i];
        size_t size = 0;
        const unsigned char *bytes = field->is_common ? NULL : tp_bytes(field, record, &size);
        if (!bytes)
            continue;
        if (field->is_text) {
            json_string_n(j, field->name, (const char *)bytes, size);
        } else if (field->is_array || field->is_dynamic) {
            json_array(j, field->name);
            for (size_t k = 0; field->element_size && k < size / field->element_size; k++)
                json_i64(j, NULL, tp_element(field, bytes, size, k));
            json_end(j);
        } else if (field->is_signed) {
            json_i64(j, field->name, tp_number(field, record));
        } else {
            json_u64(j, field->name, (uint64_t)tp_number(field, record));
        }
    }
}
