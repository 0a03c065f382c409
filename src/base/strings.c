/* SPDX-License-Identifier: MIT */
/* Text: see strings.h. */
#include "base/strings.h"
#include "base/clock.h"
#include "base/memory.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

void strbuf_done(struct strbuf *b)
{
    free(b->data);
    *b = (struct strbuf){0};
}

void strbuf_clear(struct strbuf *b)
{
    b->length = 0;
    if (b->data)
        b->data[0] = '\0';
}

void strbuf_append(struct strbuf *b, const char *bytes, size_t length)
{
    b->data = memory_grow(b->data, &b->capacity, b->length + length + 1, 1);
    if (length)
        memcpy(b->data + b->length, bytes, length);
    b->length += length;
    b->data[b->length] = '\0';
}

void strbuf_puts(struct strbuf *b, const char *string)
{
    strbuf_append(b, string, strlen(string));
}

void strbuf_putc(struct strbuf *b, char c)
{
    strbuf_append(b, &c, 1);
}

void strbuf_pad(struct strbuf *b, char c, size_t count)
{
    b->data = memory_grow(b->data, &b->capacity, b->length + count + 1, 1);
    memset(b->data + b->length, c, count);
    b->length += count;
    b->data[b->length] = '\0';
}

void strbuf_printf(struct strbuf *b, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length > 0) {
        b->data = memory_grow(b->data, &b->capacity, b->length + (size_t)length + 1, 1);
        vsnprintf(b->data + b->length, (size_t)length + 1, format, again);
        b->length += (size_t)length;
    }
    va_end(again);
}

const char *strbuf_text(const struct strbuf *b)
{
    return b->data ? b->data : "";
}

bool str_has_suffix(const char *string, const char *suffix)
{
    size_t length = strlen(string), tail = strlen(suffix);
    return length >= tail && memcmp(string + length - tail, suffix, tail) == 0;
}

int parse_u64(const char *text, uint64_t *ret_value, struct error *err)
{
    if (!isdigit((unsigned char)text[0]))
        return error_set(err, -EINVAL, "'%s' is not a whole number", text);
    char *end;
    errno = 0;
    bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    unsigned long long value = strtoull(text, &end, hex ? 16 : 10);
    if (errno == ERANGE)
        return error_set(err, -ERANGE, "'%s' is too large", text);
    if (*end || (hex && end == text + 1))
        return error_set(err, -EINVAL, "'%s' is not a whole number", text);
    *ret_value = value;
    return 0;
}

/* The number at the start of the text; *ret_end points behind it. */
static int parse_leading_number(const char *text, double *ret_value, const char **ret_end,
                                struct error *err)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || errno == ERANGE || !isfinite(value))
        return error_set(err, -EINVAL, "'%s' is not a number", text);
    *ret_value = value;
    *ret_end = end;
    return 0;
}

int parse_double(const char *text, double *ret_value, struct error *err)
{
    const char *end;
    double value;
    int r = parse_leading_number(text, &value, &end, err);
    if (r < 0)
        return r;
    if (*end)
        return error_set(err, -EINVAL, "'%s' is not a number", text);
    *ret_value = value;
    return 0;
}

int parse_share(const char *text, double most, double *ret_share, struct error *err)
{
    size_t length = strlen(text);
    bool percent = length && text[length - 1] == '%';
    CLEANUP(memory_freep) char *number = memory_strndup(text, length - percent);
    double value = 0;
    int r = parse_double(number, &value, err);
    if (r < 0)
        return r;
    value /= percent ? 100 : 1;
    if (!(value > 0 && value < 1 && value <= most))
        return error_set(err, -EINVAL,
                         most < 1 ? "'%s' is not a percentage up to %g%%, e.g. 1%% or 0.01"
                                  : "'%s' is not a percentage, e.g. 1%% or 0.01",
                         text, 100 * most);
    *ret_share = value;
    return 0;
}

struct unit {
    const char *name;
    double factor;
};

/* A number with one of the units behind it, as a whole count of the smallest unit. */
static int parse_with_unit(const char *text, const struct unit *units, size_t unit_count,
                           double default_factor, const char *example, uint64_t *ret_value,
                           struct error *err)
{
    const char *end;
    double value;
    int r = parse_leading_number(text, &value, &end, err);
    if (r < 0)
        return r;
    double factor = *end ? 0 : default_factor;
    for (size_t i = 0; i < unit_count && *end; i++)
        if (str_eq(end, units[i].name))
            factor = units[i].factor;
    if (factor <= 0 || value < 0 || value * factor >= 1.8e19)
        return error_set(err, -EINVAL, "'%s' is out of range or has an unknown unit; write %s",
                         text, example);
    *ret_value = (uint64_t)(value * factor + 0.5);
    return 0;
}

int parse_duration_ns(const char *text, uint64_t default_unit_ns, uint64_t *ret_ns,
                      struct error *err)
{
    static const struct unit units[] = {{"ns", 1},  {"us", 1e3}, {"µs", 1e3},   {"ms", 1e6},
                                        {"s", 1e9}, {"m", 6e10}, {"min", 6e10}, {"h", 3.6e12}};
    return parse_with_unit(text, units, ARRAY_COUNT(units), (double)default_unit_ns,
                           "e.g. 500ms, 2s or 1m", ret_ns, err);
}

int parse_size_bytes(const char *text, uint64_t *ret_bytes, struct error *err)
{
    static const struct unit units[] = {{"b", 1},
                                        {"B", 1},
                                        {"k", 1024.0},
                                        {"K", 1024.0},
                                        {"kB", 1024.0},
                                        {"KB", 1024.0},
                                        {"KiB", 1024.0},
                                        {"m", 1048576.0},
                                        {"M", 1048576.0},
                                        {"MB", 1048576.0},
                                        {"MiB", 1048576.0},
                                        {"g", 1073741824.0},
                                        {"G", 1073741824.0},
                                        {"GB", 1073741824.0},
                                        {"GiB", 1073741824.0}};
    return parse_with_unit(text, units, ARRAY_COUNT(units), 1, "e.g. 4096, 64k or 1M", ret_bytes,
                           err);
}

int parse_cpu_list(const char *text, int **ret_list, size_t *ret_count, struct error *err)
{
    int *list = NULL;
    size_t count = 0, capacity = 0;
    const char *at = text;
    while (*at) {
        char *end;
        unsigned long first = strtoul(at, &end, 10), last;
        if (!isdigit((unsigned char)*at))
            goto bad;
        last = first;
        if (*end == '-') {
            at = end + 1;
            if (!isdigit((unsigned char)*at))
                goto bad;
            last = strtoul(at, &end, 10);
        }
        if (last < first || last > 1 << 20)
            goto bad;
        for (unsigned long cpu = first; cpu <= last; cpu++)
            ARRAY_PUSH(list, count, capacity) = (int)cpu;
        at = end;
        if (*at == ',' && at[1])
            at++;
        else if (*at && *at != '\n')
            goto bad;
        else
            break;
    }
    if (!count)
        goto bad;
    *ret_list = list;
    *ret_count = count;
    return 0;
bad:
    free(list);
    return error_set(err, -EINVAL, "'%s' is not a list of CPUs; write e.g. 0-3,7", text);
}

size_t str_distance(const char *a, const char *b)
{
    size_t length = strlen(b);
    CLEANUP(memory_freep) size_t *row = memory_zalloc(length + 1, sizeof(*row));
    for (size_t j = 0; j <= length; j++)
        row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < length; j++) {
            size_t above = row[j + 1];
            bool same = tolower((unsigned char)a[i]) == tolower((unsigned char)b[j]);
            size_t best = diagonal + !same;
            if (above + 1 < best)
                best = above + 1;
            if (row[j] + 1 < best)
                best = row[j] + 1;
            row[j + 1] = best;
            diagonal = above;
        }
    }
    return row[length];
}

/* The distance, or SIZE_MAX where the lengths alone tell that it is beyond the limit. */
static size_t distance_within(const char *word, const char *candidate, size_t limit)
{
    size_t a = strlen(word), b = strlen(candidate);
    return (a > b ? a - b : b - a) > limit ? SIZE_MAX : str_distance(word, candidate);
}

size_t str_nearest(const char *word, const char *const *candidates, size_t count, size_t most,
                   struct strbuf *out)
{
    size_t shown = 0;
    /* Near means up to a third of the word is wrong, or the word is a part of the name. */
    size_t limit = strlen(word) / 3 + 1;
    CLEANUP(memory_freep) size_t *distances = memory_zalloc(count, sizeof(*distances));
    for (size_t i = 0; i < count; i++)
        distances[i] = distance_within(word, candidates[i], limit);
    for (size_t distance = 0; distance <= limit && shown < most; distance++)
        for (size_t i = 0; i < count && shown < most; i++) {
            if (distances[i] != distance)
                continue;
            strbuf_printf(out, "%s%s", shown ? ", " : "", candidates[i]);
            shown++;
        }
    for (size_t i = 0; i < count && shown < most && strlen(word) >= 3; i++) {
        if (distances[i] <= limit || !strstr(candidates[i], word))
            continue;
        strbuf_printf(out, "%s%s", shown ? ", " : "", candidates[i]);
        shown++;
    }
    return shown;
}

char *format_thousands(uint64_t value, char *buffer, size_t size)
{
    char digits[24];
    int length = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value);
    size_t out = 0;
    for (int i = 0; i < length && out + 2 < size; i++) {
        if (i && (length - i) % 3 == 0)
            buffer[out++] = ',';
        buffer[out++] = digits[i];
    }
    buffer[out] = '\0';
    return buffer;
}

/* Three significant digits. */
static void format_three(double value, const char *unit, char *buffer, size_t size)
{
    double magnitude = fabs(value);
    int decimals = magnitude < 9.995 ? 2 : magnitude < 99.95 ? 1 : 0;
    snprintf(buffer, size, "%.*f %s", decimals, value, unit);
}

char *format_duration(double ns, char *buffer, size_t size)
{
    double magnitude = fabs(ns);
    if (magnitude < 999.5)
        format_three(ns, "ns", buffer, size);
    else if (magnitude < 999.5e3)
        format_three(ns / 1e3, "µs", buffer, size);
    else if (magnitude < 999.5e6)
        format_three(ns / 1e6, "ms", buffer, size);
    else
        format_three(ns / 1e9, "s", buffer, size);
    return buffer;
}

char *format_bytes(double bytes, char *buffer, size_t size)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    while (bytes >= 1023.5 && unit + 1 < ARRAY_COUNT(units)) {
        bytes /= 1024;
        unit++;
    }
    if (unit == 0)
        snprintf(buffer, size, "%.0f B", bytes);
    else
        format_three(bytes, units[unit], buffer, size);
    return buffer;
}

/* The length of the valid, printable UTF-8 character at text, 0 when there is none. */
static size_t printable_length(const unsigned char *text, size_t length)
{
    if (text[0] < 0x80)
        return text[0] >= 0x20 && text[0] != 0x7f;
    size_t size = str_utf8_length(text, length);
    uint32_t code = text[0] & (0xffu >> (size + 1));
    for (size_t i = 1; i < size; i++)
        code = code << 6 | (text[i] & 0x3f);
    /* C1 controls, and the marks that reorder or break lines. */
    bool disturbs = code < 0xa0 || (code >= 0x200b && code <= 0x200f) ||
                    (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
                    code == 0xfeff;
    return disturbs ? 0 : size;
}

void strbuf_put_safe(struct strbuf *b, const char *text, size_t length, size_t most)
{
    const unsigned char *bytes = (const unsigned char *)text;
    size_t at = 0;
    while (at < length && at < most) {
        size_t size = printable_length(bytes + at, length - at);
        if (size)
            strbuf_append(b, text + at, size);
        else
            strbuf_printf(b, "\\x%02x", bytes[at]);
        at += size ? size : 1;
    }
    if (at < length)
        strbuf_puts(b, "…");
}

void strbuf_put_command(struct strbuf *b, char *const *argv)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_@%+=:,./-";
    for (size_t i = 0; argv[i]; i++) {
        const char *word = argv[i];
        if (i)
            strbuf_putc(b, ' ');
        if (*word && word[strspn(word, plain)] == '\0') {
            strbuf_puts(b, word);
            continue;
        }
        strbuf_putc(b, '\'');
        for (; *word; word++) {
            if (*word == '\'')
                strbuf_puts(b, "'\\''");
            else
                strbuf_putc(b, *word);
        }
        strbuf_putc(b, '\'');
    }
}
