/* SPDX-License-Identifier: MIT */
/* See mail.h.  Every part is text, quoted-printable (RFC 2045, 6.7): names of functions make lines
 * that are longer than a message may have. */
#include "report/mail/mail.h"
#include "base/sha256.h"

#include <stdio.h>
#include <string.h>

enum { LINE_MAX_COLUMNS = 76 };
#define EOL "\r\n"

static bool is_plain(const char *at)
{
    unsigned char c = (unsigned char)*at;
    bool ends_line = at[1] == '\n' || at[1] == '\0';
    return c == ' ' || c == '\t' ? !ends_line : c > ' ' && c < 127 && c != '=';
}

static void put_quoted(struct strbuf *out, const char *text)
{
    size_t column = 0;
    for (; *text; text++) {
        size_t width = is_plain(text) ? 1 : 3;
        if (*text == '\n') {
            strbuf_puts(out, EOL);
            column = 0;
            continue;
        }
        if (column + width > LINE_MAX_COLUMNS - 1) {
            strbuf_puts(out, "=" EOL);
            column = 0;
        }
        if (width == 1)
            strbuf_putc(out, *text);
        else
            strbuf_printf(out, "=%02X", (unsigned char)*text);
        column += width;
    }
    if (column)
        strbuf_puts(out, EOL);
}

/* A header has no line ends, and here nothing but ASCII. */
static void put_header(struct strbuf *out, const char *name, const char *value)
{
    strbuf_printf(out, "%s: ", name);
    for (; *value; value++)
        if ((unsigned char)*value < 128)
            strbuf_putc(out, *value < ' ' || *value == 127 ? ' ' : *value);
        else if (((unsigned char)*value & 0xc0) != 0x80)
            strbuf_putc(out, '?');
    strbuf_puts(out, EOL);
}

/* Days and months are English, whatever the locale. */
static void put_date(struct strbuf *out, time_t date)
{
    static const char days[] = "SunMonTueWedThuFriSat",
                      months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct tm t;
    gmtime_r(&date, &t);
    strbuf_printf(out, "Date: %.3s, %d %.3s %d %02d:%02d:%02d +0000" EOL, days + 3 * t.tm_wday,
                  t.tm_mday, months + 3 * t.tm_mon, t.tm_year + 1900, t.tm_hour, t.tm_min,
                  t.tm_sec);
}

/* What no part contains: the encoding leaves no "=_" in them. */
static void name_boundary(const struct mail *m, char *ret, size_t size)
{
    struct sha256 sum;
    char digits[65];
    sha256_start(&sum);
    for (size_t i = 0; i < m->part_count; i++)
        sha256_add_text(&sum, m->parts[i].text);
    sha256_end(&sum, digits);
    snprintf(ret, size, "=_%.24s", digits);
}

static void put_part(struct strbuf *out, const struct mail_part *p)
{
    strbuf_puts(out, "Content-Type: text/plain; charset=utf-8" EOL);
    strbuf_puts(out, "Content-Transfer-Encoding: quoted-printable" EOL);
    if (p->name)
        strbuf_printf(out, "Content-Disposition: attachment; filename=\"%s\"" EOL, p->name);
    strbuf_puts(out, EOL);
    put_quoted(out, p->text);
}

void report_mail(struct strbuf *out, const struct mail *m)
{
    char boundary[64];
    name_boundary(m, boundary, sizeof(boundary));
    put_header(out, "From", m->from);
    put_header(out, "Subject", m->subject);
    put_date(out, m->date);
    strbuf_printf(out, "Message-ID: <%lld.%s@assay.invalid>" EOL, (long long)m->date, boundary + 2);
    strbuf_puts(out, "MIME-Version: 1.0" EOL);
    strbuf_printf(out, "Content-Type: multipart/mixed; boundary=\"%s\"" EOL EOL, boundary);
    for (size_t i = 0; i < m->part_count; i++) {
        strbuf_printf(out, EOL "--%s" EOL, boundary);
        put_part(out, &m->parts[i]);
    }
    strbuf_printf(out, EOL "--%s--" EOL, boundary);
}
