/* SPDX-License-Identifier: MIT */
/* See measured.h. */
#include "base/measured.h"
#include "base/clock.h"
#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

void strbuf_put_grouped(struct strbuf *out, double value, int decimals, int width)
{
    char digits[64], grouped[80];
    snprintf(digits, sizeof(digits), "%.*f", decimals, value);
    size_t length = strlen(digits), whole = strcspn(digits, "."), used = 0;
    size_t sign = digits[0] == '-';
    for (size_t i = 0; i < length && used + 2 < sizeof(grouped); i++) {
        if (i > sign && i < whole && (whole - i) % 3 == 0)
            grouped[used++] = ',';
        grouped[used++] = digits[i];
    }
    grouped[used] = '\0';
    strbuf_printf(out, "%*s", width, grouped);
}

/* Decimals that give a number four significant digits. */
static int four_digits(double value)
{
    double magnitude = fabs(value);
    return magnitude >= 999.95 ? 0 : magnitude >= 99.995 ? 1 : magnitude >= 9.9995 ? 2 : 3;
}

static const struct time_unit {
    const char *name, *sign;
    double ns;
} time_units[] = {{"microsecond", "µs", 1e3}, {"millisecond", "ms", 1e6}, {"second", "s", 1e9}};
static const struct time_unit *wanted_unit; /* set once, before anything is shown */

void measured_use_time_unit(const char *name)
{
    wanted_unit = NULL;
    for (size_t i = 0; name && i < ARRAY_COUNT(time_units); i++)
        if (str_eq(name, time_units[i].name))
            wanted_unit = &time_units[i];
}

static void put_time(struct strbuf *out, double ns)
{
    if (wanted_unit) {
        double value = ns / wanted_unit->ns;
        strbuf_put_grouped(out, value, fabs(value) < 1 ? 6 : four_digits(value), 0);
        strbuf_printf(out, " %s", wanted_unit->sign);
        return;
    }
    static const struct {
        double below_ns, unit_ns;
        const char *name;
    } units[] = {{999.95, 1, "ns"}, {999.95e3, 1e3, "µs"}, {999.95e6, 1e6, "ms"}};
    for (size_t i = 0; i < ARRAY_COUNT(units); i++)
        if (fabs(ns) < units[i].below_ns) {
            double value = ns / units[i].unit_ns;
            strbuf_printf(out, "%.*f %s", ns == 0 ? 0 : four_digits(value), value, units[i].name);
            return;
        }
    strbuf_put_grouped(out, ns / 1e9, four_digits(ns / 1e9), 0);
    strbuf_puts(out, " s");
}

static void put_number(struct strbuf *out, double value)
{
    if (fabs(value) >= 1e15 || (value != 0 && fabs(value) < 1e-3))
        strbuf_printf(out, "%.4g", value);
    else if (value == floor(value) || fabs(value) >= 9999.5)
        strbuf_put_grouped(out, value, 0, 0);
    else if (fabs(value) < 0.0995) /* "0.00123", which has no smaller unit; at least 0.001 */
        strbuf_printf(out, "%.*f", fabs(value) < 0.00995 ? 5 : 4, value);
    else
        strbuf_put_grouped(out, value, four_digits(value), 0);
}

/* Units that follow one another: "0.02034 Gbit/s" and "20,340,000 bit/s" read badly. */
static const struct {
    const char *unit, *smaller;
    double factor;
} unit_steps[] = {{"Gbit/s", "Mbit/s", 1000}, {"Mbit/s", "kbit/s", 1000}, {"kbit/s", "bit/s", 1000},
                  {"GB/s", "MB/s", 1000},     {"MB/s", "kB/s", 1000},     {"kB/s", "B/s", 1000},
                  {"GiB/s", "MiB/s", 1024},   {"MiB/s", "KiB/s", 1024},   {"KiB/s", "B/s", 1024},
                  {"s", "ms", 1000},          {"ms", "µs", 1000},         {"us", "ns", 1000},
                  {"ms", "us", 1000},         {"µs", "ns", 1000}};

/* The next unit and what to multiply by; NULL for none.  The first that fits is taken. */
static const char *next_unit(const char *unit, bool smaller, double *ret_factor)
{
    for (size_t i = 0; i < ARRAY_COUNT(unit_steps); i++)
        if (str_eq(unit, smaller ? unit_steps[i].unit : unit_steps[i].smaller)) {
            *ret_factor = smaller ? unit_steps[i].factor : 1 / unit_steps[i].factor;
            return smaller ? unit_steps[i].smaller : unit_steps[i].unit;
        }
    return NULL;
}

bool measured_scales(const char *unit)
{
    double factor;
    return str_eq(unit, "ns") || str_eq(unit, "bytes") || next_unit(unit, true, &factor) ||
           next_unit(unit, false, &factor);
}

/* To a unit in which it has some digits before the point, and few. */
static void scale(double *value, const char **unit)
{
    double factor;
    const char *next;
    if (!isfinite(*value) || *value == 0 || str_eq(*unit, "ns"))
        return;
    while (fabs(*value) < 0.1 && (next = next_unit(*unit, true, &factor))) {
        *value *= factor;
        *unit = next;
    }
    while (fabs(*value) >= 9999.5 && (next = next_unit(*unit, false, &factor))) {
        *value *= factor;
        *unit = next;
    }
}

static bool ends_with(const char *text, size_t length, const char *end)
{
    size_t size = strlen(end);
    return length >= size && !memcmp(text + length - size, end, size);
}

/* How many letters of a word make it a plural: of "calls", one; of "ms" none. */
static size_t plural_letters(const char *word, size_t length)
{
    if (length < 4 || !ends_with(word, length, "s") || ends_with(word, length, "ss") ||
        ends_with(word, length, "ies"))
        return 0;
    return ends_with(word, length, "sses") || ends_with(word, length, "xes") ||
                   ends_with(word, length, "ches") || ends_with(word, length, "shes")
               ? 2
               : 1;
}

void strbuf_put_unit(struct strbuf *out, bool is_one, const char *unit)
{
    size_t letters = strspn(unit, "abcdefghijklmnopqrstuvwxyz");
    size_t cut = is_one ? plural_letters(unit, letters) : 0;
    if (*unit)
        strbuf_printf(out, " %.*s%s", (int)(letters - cut), unit, unit + letters);
}

void strbuf_put_measured(struct strbuf *out, double value, const char *unit)
{
    char text[32];
    scale(&value, &unit);
    if (!isfinite(value)) {
        strbuf_putc(out, '-');
    } else if (str_eq(unit, "ns")) {
        put_time(out, value);
    } else if (str_eq(unit, "bytes")) {
        strbuf_puts(out, value < 0 ? "-" : "");
        strbuf_puts(out, format_bytes(fabs(value), text, sizeof(text)));
    } else {
        put_number(out, value);
        strbuf_put_unit(out, value == 1, unit);
    }
}

char *format_moment(uint64_t at_ns, char *buffer, size_t size)
{
    time_t seconds = (time_t)(at_ns / NS_PER_S);
    struct tm tm;
    buffer[0] = '\0';
    if (at_ns && localtime_r(&seconds, &tm))
        strftime(buffer, size, "%Y-%m-%d %H:%M", &tm);
    return buffer;
}
