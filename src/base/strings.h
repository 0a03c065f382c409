/* SPDX-License-Identifier: MIT */
/* Text: a growing buffer, parsing of numbers with words for what is wrong, and formatting. */
#ifndef ASSAY_BASE_STRINGS_H
#define ASSAY_BASE_STRINGS_H

#include "base/error.h"

#include "base/utf8.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A growing text, always terminated once something was appended.  Start with {0}. */
struct strbuf {
    char *data;
    size_t length;
    size_t capacity;
};

void strbuf_done(struct strbuf *b);
void strbuf_clear(struct strbuf *b);
void strbuf_append(struct strbuf *b, const char *bytes, size_t length);
void strbuf_puts(struct strbuf *b, const char *string);
void strbuf_putc(struct strbuf *b, char c);
void strbuf_pad(struct strbuf *b, char c, size_t count);
void strbuf_printf(struct strbuf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The text, "" when nothing was appended; it stays the buffer's. */
const char *strbuf_text(const struct strbuf *b);

static inline bool str_eq(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static inline bool str_has_prefix(const char *string, const char *prefix)
{
    return strncmp(string, prefix, strlen(prefix)) == 0;
}

bool str_has_suffix(const char *string, const char *suffix);

/* Names with their values, and the line of a file where each stands. */
struct text_pair {
    const char *name, *value;
    size_t line;
};

struct text_pairs {
    struct text_pair *items;
    size_t count;
};

/* Whole-string parsers: "12x", "" and overflow are errors that name the text.  They leave the
 * output untouched when they fail.  parse_u64 takes decimal and 0x hexadecimal. */
int parse_u64(const char *text, uint64_t *ret_value, struct error *err);
int parse_double(const char *text, double *ret_value, struct error *err);
/* "2%" or "0.02": more than nothing, less than all, and not above `most`. */
int parse_share(const char *text, double most, double *ret_share, struct error *err);
/* "250ms", "1.5s", "2m", "3h", "10us"; a bare number counts in default_unit_ns. */
int parse_duration_ns(const char *text, uint64_t default_unit_ns, uint64_t *ret_ns,
                      struct error *err);
/* "4096", "64k", "1M", "2G" (powers of 1024). */
int parse_size_bytes(const char *text, uint64_t *ret_bytes, struct error *err);
/* "0-3,7": sets ret_list[0..*ret_count) to the numbers in order; the caller frees it. */
int parse_cpu_list(const char *text, int **ret_list, size_t *ret_count, struct error *err);

/* How many single-character edits turn a into b. */
size_t str_distance(const char *a, const char *b);
/* Appends up to `most` candidates near to the word, joined by ", ".  Returns how many. */
size_t str_nearest(const char *word, const char *const *candidates, size_t count, size_t most,
                   struct strbuf *out);

/* The word that goes with a count: "1 cell", "2 cells". */
static inline const char *plural(uint64_t count, const char *one, const char *many)
{
    return count == 1 ? one : many;
}

/* 1234567 -> "1,234,567".  The buffer holds at least 32 bytes. */
char *format_thousands(uint64_t value, char *buffer, size_t size);
/* 1234567 ns -> "1.23 ms" and so on: three significant digits with a unit. */
char *format_duration(double ns, char *buffer, size_t size);
/* 1536 -> "1.5 KiB". */
char *format_bytes(double bytes, char *buffer, size_t size);

/* Appends text from outside so that it cannot disturb a terminal: control characters and invalid
 * UTF-8 become \xNN.  At most `most` bytes of the input are shown, then "…". */
void strbuf_put_safe(struct strbuf *b, const char *text, size_t length, size_t most);

/* Appends a command's words, quoted where a shell would need it. */
void strbuf_put_command(struct strbuf *b, char *const *argv);

#endif
