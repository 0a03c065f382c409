/* SPDX-License-Identifier: MIT */
/* The findings of `assay doctor` as a table: what, state, what was seen, and how to enable it. */
#include "base/memory.h"
#include "base/term.h"
#include "cmd/doctor.h"

#define STATE_COLUMNS 7 /* of "limited" and "unknown" */
#define REMEDY_INDENT 4

#define COLOUR_HEADING "\033[1m"
#define COLOUR_OFF "\033[0m"

void doctor_wrap(struct strbuf *out, const char *text, size_t used, size_t indent, size_t columns)
{
    bool fresh = true; /* nothing of the text is on this line yet */
    while (*text) {
        size_t length = strcspn(text, " "), width = str_columns_n(text, length);
        if (!fresh && used + 1 + width > columns) {
            strbuf_putc(out, '\n');
            strbuf_pad(out, ' ', indent);
            used = indent;
            fresh = true;
        }
        if (!fresh) {
            strbuf_putc(out, ' ');
            used++;
        }
        /* A word longer than a whole line is cut where the line ends. */
        size_t room = columns > used ? columns - used : 1;
        if (width > room) {
            length = str_column_bytes(text, room);
            width = room;
        }
        strbuf_append(out, text, length);
        used += width;
        fresh = false;
        text += length;
        while (*text == ' ')
            text++;
    }
    strbuf_putc(out, '\n');
}

static const char *state_colour(const struct finding *f)
{
    if (f->state == FINDING_UNKNOWN)
        return "";
    if (!f->remedy)
        return f->state == FINDING_YES ? "\033[32m" : "";
    return f->state == FINDING_NO ? "\033[31m" : "\033[33m";
}

static void put_finding(const struct finding *f, struct strbuf *out, size_t what_columns,
                        size_t columns, bool colour)
{
    const char *state = finding_state_name(f->state);
    size_t before = 2 + what_columns + 2 + STATE_COLUMNS + 2;
    strbuf_printf(out, "  %s", f->what);
    strbuf_pad(out, ' ', what_columns + 2 - str_columns(f->what));
    if (colour && *state_colour(f))
        strbuf_printf(out, "%s%s" COLOUR_OFF, state_colour(f), state);
    else
        strbuf_puts(out, state);
    strbuf_pad(out, ' ', STATE_COLUMNS + 2 - strlen(state));
    doctor_wrap(out, f->detail, before, before, columns);
    if (!f->remedy)
        return;
    strbuf_pad(out, ' ', REMEDY_INDENT);
    strbuf_puts(out, "→ ");
    doctor_wrap(out, f->remedy, REMEDY_INDENT + 2, REMEDY_INDENT + 2, columns);
}

static void put_identity(const struct machine *m, struct strbuf *out, size_t columns)
{
    CLEANUP(strbuf_done) struct strbuf line = {0};
    char memory[32];
    strbuf_printf(&line, "%s, %zu processor%s", *m->cpu_model ? m->cpu_model : "unknown processor",
                  m->cpu_count, m->cpu_count == 1 ? "" : "s");
    if (m->cpu_usable_count && m->cpu_usable_count != m->cpu_count)
        strbuf_printf(&line, " (%zu for this process)", m->cpu_usable_count);
    strbuf_printf(&line, ", %s; Linux %s %s",
                  format_bytes((double)m->memory_bytes, memory, sizeof(memory)), m->kernel_release,
                  m->arch);
    if (*m->distribution)
        strbuf_printf(&line, "; %s", m->distribution);
    doctor_wrap(out, strbuf_text(&line), 0, 0, columns);
}

void doctor_table(const struct machine *m, struct strbuf *out, size_t columns, bool colour)
{
    size_t what_columns = 0;
    for (size_t i = 0; i < m->finding_count; i++)
        if (str_columns(m->findings[i].what) > what_columns)
            what_columns = str_columns(m->findings[i].what);
    put_identity(m, out, columns);
    const char *group = "";
    for (size_t i = 0; i < m->finding_count; i++) {
        const struct finding *f = &m->findings[i];
        if (!str_eq(f->group, group))
            strbuf_printf(out, "\n%s%s%s\n", colour ? COLOUR_HEADING : "", f->group,
                          colour ? COLOUR_OFF : "");
        group = f->group;
        put_finding(f, out, what_columns, columns, colour);
    }
}
