/* SPDX-License-Identifier: MIT */
/*
 * Text as `perf script` prints it, which many tools read.  Addresses are those in the binary, as
 * perf has them in call chains.  The lines of a location are the same wherever it stands, so they
 * are made once.
 */
#include "base/digits.h"
#include "base/memory.h"
#include "profile/export/export.h"
#include "profile/fields.h"

#include <string.h>

/* The lines of all locations, one behind the other. */
struct lines {
    struct strbuf text;
    size_t *ends; /* of each location's lines; 0 until they are made */
    size_t *starts;
};

static void put_safe(struct strbuf *out, const char *text)
{
    strbuf_put_safe(out, text, strlen(text), SYMBOLS_NAME_MAX);
}

static void put_frame(struct strbuf *out, const struct profile *p, uint32_t location,
                      uint32_t frame)
{
    const struct stack_location *l = &p->stacks.locations[location];
    const struct profile_frame *f = &p->calls.frames[frame];
    const struct profile_symbol *s = &p->calls.symbols[f->symbol];
    uint64_t address = l->address + (l->flags & STACK_CALLER ? 1 : 0);
    strbuf_putc(out, '\t');
    strbuf_put_number(out, address, 16, 16, ' ');
    strbuf_putc(out, ' ');
    if (!s->name)
        strbuf_puts(out, "[unknown]");
    else
        put_safe(out, s->name);
    if (f->inlined) {
        strbuf_puts(out, " (inlined)\n");
        return;
    }
    if (s->name && s->function && address >= s->function->start)
        strbuf_printf(out, "+0x%llx", (unsigned long long)(address - s->function->start));
    strbuf_puts(out, " (");
    const struct module *module = s->function ? s->function->module : l->module;
    put_safe(out, module ? module_path(module) : "[unknown]");
    strbuf_puts(out, ")\n");
}

static void make_lines(struct lines *lines, const struct profile *p, uint32_t location)
{
    lines->starts[location] = lines->text.length;
    for (uint32_t i = p->location_lists[location]; i < p->location_lists[location + 1]; i++)
        put_frame(&lines->text, p, location, p->location_frames[i]);
    lines->ends[location] = lines->text.length;
}

static void put_stack(struct export_out *out, struct lines *lines, uint32_t node)
{
    const struct profile *p = out->profile;
    for (; node; node = p->stacks.nodes[node].parent) {
        uint32_t location = p->stacks.nodes[node].location;
        if (!lines->ends[location])
            make_lines(lines, p, location);
        strbuf_append(&out->text, lines->text.data + lines->starts[location],
                      lines->ends[location] - lines->starts[location]);
    }
}

static void put_head(struct export_out *out, const struct profile_sample *s)
{
    const struct profile *p = out->profile;
    struct strbuf *text = &out->text;
    put_safe(text, tasks_comm(&p->tasks, s->task));
    strbuf_putc(text, ' ');
    strbuf_put_number(text, p->tasks.items[s->task].tid, 10, 5, ' ');
    strbuf_putc(text, ' ');
    if (s->cpu != UINT32_MAX) {
        strbuf_putc(text, '[');
        strbuf_put_number(text, s->cpu, 10, 3, '0');
        strbuf_puts(text, "] ");
    }
    strbuf_put_number(text, s->time_ns / 1000000000, 10, 5, ' ');
    strbuf_putc(text, '.');
    strbuf_put_number(text, s->time_ns % 1000000000 / 1000, 10, 6, '0');
    strbuf_puts(text, ": ");
    if (!p->events[s->event].is_tracepoint) { /* perf shows the fields instead */
        strbuf_put_number(text, export_weight(out, 1, s->weight), 10, 10, ' ');
        strbuf_putc(text, ' ');
    }
    put_safe(text, p->events[s->event].name);
    strbuf_puts(text, ": ");
}

void export_perf_script(struct export_out *out)
{
    const struct profile *p = out->profile;
    size_t count = p->stacks.location_count + 1;
    struct lines lines = {.ends = memory_zalloc(count, sizeof(*lines.ends)),
                          .starts = memory_zalloc(count, sizeof(*lines.starts))};
    for (size_t i = 0; i < p->sample_count; i++) {
        const struct profile_event *event = &p->events[p->samples[i].event];
        put_head(out, &p->samples[i]);
        profile_fields_put(p, i, &out->text);
        strbuf_putc(&out->text, '\n');
        if (!event->is_tracepoint || event->has_callers) {
            put_stack(out, &lines, p->samples[i].node);
            strbuf_putc(&out->text, '\n');
        }
        export_spill(out);
    }
    strbuf_done(&lines.text);
    free(lines.ends);
    free(lines.starts);
}
