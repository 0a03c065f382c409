/* SPDX-License-Identifier: MIT */
/* The terminal: see term.h. */
#include "base/term.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/strings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PROGRESS_AFTER_NS (2 * NS_PER_S)
#define PROGRESS_EVERY_NS (100 * NS_PER_MS)
#define LOG_EVERY_NS (60 * NS_PER_S)

bool term_is_dumb(void)
{
    const char *kind = getenv("TERM");
    return !kind || !*kind || str_eq(kind, "dumb");
}

bool term_has_colour(int fd)
{
    const char *no_colour = getenv("NO_COLOR");
    return !(no_colour && *no_colour) && !term_is_dumb() && isatty(fd);
}

bool term_has_utf8(int fd)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char *locale = NULL;
    for (size_t i = 0; i < ARRAY_COUNT(names) && !(locale && *locale); i++)
        locale = getenv(names[i]);
    return locale && (strcasestr(locale, "utf-8") || strcasestr(locale, "utf8")) && isatty(fd);
}

size_t term_columns(int fd)
{
    struct winsize size;
    if (ioctl(fd, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
        return 80;
    return size.ws_col;
}

void progress_start(struct progress *p)
{
    *p = (struct progress){.start_ns = clock_now_ns(),
                           .enabled = isatty(STDERR_FILENO) && !term_is_dumb()};
}

void progress_show(struct progress *p, const char *format, ...)
{
    if (!p->enabled && !p->log_as)
        return;
    uint64_t now_ns = clock_now_ns();
    if (now_ns - p->start_ns < (p->enabled ? PROGRESS_AFTER_NS : LOG_EVERY_NS))
        return;
    if (p->shown_ns && now_ns - p->shown_ns < (p->enabled ? PROGRESS_EVERY_NS : LOG_EVERY_NS))
        return;
    p->shown_ns = now_ns;
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (!p->enabled) {
        fprintf(stderr, "%s: %s\n", p->log_as, line);
        return;
    }
    /* Cut at the terminal's width, not inside a character. */
    size_t columns = term_columns(STDERR_FILENO);
    size_t length = str_column_bytes(line, columns ? columns - 1 : 0);
    fprintf(stderr, "\r\033[K%.*s", (int)length, line);
    fflush(stderr);
}

void progress_end(struct progress *p)
{
    if (p->shown_ns && p->enabled)
        fputs("\r\033[K", stderr);
    p->shown_ns = 0;
}
