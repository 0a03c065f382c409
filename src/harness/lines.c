/* SPDX-License-Identifier: MIT */
/* See lines.h. */
#include "harness/lines.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool lines_next(struct lines *l)
{
    if (!l->at || !*l->at)
        return false;
    size_t length = strcspn(l->at, "\n"), kept = length;
    if (kept > sizeof(l->line) - 1)
        kept = sizeof(l->line) - 1;
    memcpy(l->line, l->at, kept);
    while (kept && l->line[kept - 1] == '\r')
        kept--;
    l->line[kept] = '\0';
    l->is_cut = l->at[length] != '\n';
    l->at += length + !l->is_cut;
    l->number++;
    return true;
}

const char *lines_run_end(const char *text, bool (*begins)(const char *line),
                          bool (*ends)(const char *line))
{
    struct lines l = {.at = text};
    bool is_over = false;
    for (const char *start = text; lines_next(&l); start = l.at) {
        if (is_over && begins(l.line))
            return start;
        is_over |= ends(l.line);
    }
    return l.at;
}

size_t lines_words(char *line, char **ret_words)
{
    size_t count = 0;
    char *rest = NULL;
    for (char *word = strtok_r(line, " \t", &rest); word && count < LINES_WORDS_MAX;
         word = strtok_r(NULL, " \t", &rest))
        ret_words[count++] = word;
    return count;
}

static char *unquote(char *field)
{
    size_t length = strlen(field);
    if (length >= 2 && field[0] == '"' && field[length - 1] == '"') {
        field[length - 1] = '\0';
        field++;
    }
    return field;
}

size_t lines_fields(char *line, char separator, char **ret_fields)
{
    size_t count = 0;
    bool quoted = false;
    char *start = line;
    for (char *at = line; count < LINES_WORDS_MAX; at++) {
        quoted ^= *at == '"';
        if (*at && (*at != separator || quoted))
            continue;
        bool is_end = !*at;
        *at = '\0';
        ret_fields[count++] = unquote(start);
        start = at + 1;
        if (is_end)
            break;
    }
    return count;
}

bool lines_number(const char *text, double *ret_value, const char **ret_rest)
{
    char *end;
    if (!((*text >= '0' && *text <= '9') || *text == '-' || *text == '.' || *text == '+'))
        return false;
    double value = strtod(text, &end);
    if (end == text || !isfinite(value) || (!ret_rest && *end))
        return false;
    *ret_value = value;
    if (ret_rest)
        *ret_rest = end;
    return true;
}

bool lines_duration(const char *text, double *ret_ns, const char **ret_rest)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ps", 1e-3}, {"ns", 1}, {"us", 1e3}, {"µs", 1e3}, /* U+00B5 */
                 {"μs", 1e3},                                       /* U+03BC */
                 {"ms", 1e6},  {"s", 1e9}};
    const char *unit;
    double value;
    text += strspn(text, " ");
    if (!lines_number(text, &value, &unit))
        return false;
    unit += strspn(unit, " ");
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
        if (strncmp(unit, units[i].name, strlen(units[i].name)) == 0) {
            *ret_ns = value * units[i].ns;
            if (ret_rest)
                *ret_rest = unit + strlen(units[i].name);
            return true;
        }
    return false;
}
