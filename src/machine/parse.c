/* SPDX-License-Identifier: MIT */
/* The texts of /proc and /sys: see parse.h. */
#include "machine/parse.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

const char *proc_next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end && end[1] ? end + 1 : NULL;
}

static void copy_cut(char *to, size_t size, const char *from, size_t length)
{
    if (!size)
        return;
    if (length >= size)
        length = size - 1;
    memcpy(to, from, length);
    to[length] = '\0';
}

/* The trimmed value behind the key, when this is the key's line. */
static bool line_field(const char *line, const char *key, const char **ret_value,
                       size_t *ret_length)
{
    size_t key_length = strlen(key);
    if (strncmp(line, key, key_length) != 0)
        return false;
    const char *at = line + key_length;
    while (*at == ' ' || *at == '\t')
        at++;
    if (*at != ':' && *at != '=')
        return false;
    at++;
    while (*at == ' ' || *at == '\t')
        at++;
    size_t length = strcspn(at, "\n");
    while (length && isspace((unsigned char)at[length - 1]))
        length--;
    if (length >= 2 && (at[0] == '"' || at[0] == '\'') && at[length - 1] == at[0]) {
        at++;
        length -= 2;
    }
    *ret_value = at;
    *ret_length = length;
    return true;
}

bool proc_field(const char *text, const char *key, char *value, size_t size)
{
    const char *found;
    size_t length;
    for (const char *line = text; line; line = proc_next_line(line))
        if (line_field(line, key, &found, &length)) {
            copy_cut(value, size, found, length);
            return true;
        }
    return false;
}

/* Digits only: no sign, no blanks before. */
static bool parse_digits(const char *text, const char **ret_end, int base, uint64_t *ret_value)
{
    if (base == 16 ? !isxdigit((unsigned char)*text) : !isdigit((unsigned char)*text))
        return false;
    char *end;
    unsigned long long value = strtoull(text, &end, base);
    if (end == text)
        return false;
    *ret_value = value;
    if (ret_end)
        *ret_end = end;
    return true;
}

bool proc_field_u64(const char *text, const char *key, uint64_t *ret_value)
{
    char value[64];
    return proc_field(text, key, value, sizeof(value)) && parse_digits(value, NULL, 10, ret_value);
}

bool proc_field_hex(const char *text, const char *key, uint64_t *ret_value)
{
    char value[64];
    return proc_field(text, key, value, sizeof(value)) && parse_digits(value, NULL, 16, ret_value);
}

bool proc_chosen(const char *text, char *word, size_t size)
{
    const char *open = strchr(text, '[');
    const char *close = open ? strchr(open, ']') : NULL;
    if (!close || close == open + 1)
        return false;
    copy_cut(word, size, open + 1, (size_t)(close - open - 1));
    return true;
}

bool proc_stat_times(const char *text, struct proc_times *ret_times)
{
    struct proc_times t = {0};
    for (const char *line = text; line; line = proc_next_line(line)) {
        if (!str_has_prefix(line, "cpu "))
            continue;
        uint64_t *const fields[] = {&t.user,   &t.nice, &t.system,  &t.idle,
                                    &t.iowait, &t.irq,  &t.softirq, &t.steal};
        const char *at = line + 3;
        size_t count = 0;
        for (; count < sizeof(fields) / sizeof(fields[0]); count++) {
            while (*at == ' ')
                at++;
            if (!parse_digits(at, &at, 10, fields[count]))
                break;
        }
        /* Kernels before 2.6 stop at idle; then there is no steal time to be had. */
        if (count < 4)
            return false;
        *ret_times = t;
        return true;
    }
    return false;
}

bool proc_pressure_line(const char *text, const char *kind, struct proc_pressure *ret_pressure)
{
    size_t length = strlen(kind);
    for (const char *line = text; line; line = proc_next_line(line)) {
        if (strncmp(line, kind, length) != 0 || line[length] != ' ')
            continue;
        struct proc_pressure p;
        if (sscanf(line + length, " avg10=%lf avg60=%lf avg300=%lf total=%" SCNu64, &p.avg10,
                   &p.avg60, &p.avg300, &p.total_us) != 4)
            return false;
        *ret_pressure = p;
        return true;
    }
    return false;
}

bool proc_cgroup_line(const char *line, struct proc_cgroup *ret_cgroup)
{
    size_t length = strcspn(line, "\n");
    const char *first = memchr(line, ':', length);
    if (!first || first == line)
        return false;
    for (const char *at = line; at < first; at++)
        if (!isdigit((unsigned char)*at))
            return false;
    const char *second = memchr(first + 1, ':', length - (size_t)(first + 1 - line));
    if (!second || second[1] != '/')
        return false;
    *ret_cgroup = (struct proc_cgroup){.controllers = first + 1,
                                       .controllers_length = (size_t)(second - first - 1),
                                       .path = second + 1,
                                       .path_length = length - (size_t)(second + 1 - line)};
    return true;
}

bool proc_maps_line(const char *line, struct proc_mapping *ret_mapping)
{
    struct proc_mapping m = {0};
    const char *at;
    if (!parse_digits(line, &at, 16, &m.start) || *at++ != '-')
        return false;
    if (!parse_digits(at, &at, 16, &m.end) || *at++ != ' ' || m.end <= m.start)
        return false;
    if (strcspn(at, " \n") != 4 || at[4] != ' ')
        return false;
    m.is_executable = at[2] == 'x';
    at += 5;
    if (!parse_digits(at, &at, 16, &m.file_offset) || *at != ' ')
        return false;
    /* The device and the inode, then blanks, then the path, which may hold blanks itself. */
    for (int i = 0; i < 2; i++) {
        at += strspn(at, " ");
        at += strcspn(at, " \n");
    }
    at += strspn(at, " ");
    m.path = at;
    m.path_length = strcspn(at, "\n");
    *ret_mapping = m;
    return true;
}

bool proc_cache_size(const char *text, uint64_t *ret_bytes)
{
    const char *unit;
    uint64_t value;
    if (!parse_digits(text, &unit, 10, &value))
        return false;
    while (*unit == ' ')
        unit++;
    unsigned shift = *unit == 'K' || *unit == 'k' ? 10 : *unit == 'M' ? 20 : *unit == 'G' ? 30 : 0;
    if (value > UINT64_MAX >> shift)
        return false;
    *ret_bytes = value << shift;
    return true;
}
