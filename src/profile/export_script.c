/* SPDX-License-Identifier: MIT */
/*
 * Text as `perf script` prints it, which many tools read.  Addresses are those in the binary, as
 * perf has them in call chains.
 */
#include "base/memory.h"
#include "profile/export.h"

#include <string.h>

static void put_safe(struct strbuf *out, const char *text)
{
    strbuf_put_safe(out, text, strlen(text), SYMBOLS_NAME_MAX);
}

static void put_frame(struct export_out *out, uint32_t location, uint32_t frame)
{
    const struct profile *p = out->profile;
    const struct stack_location *l = &p->stacks.locations[location];
    const struct profile_frame *f = &p->calls.frames[frame];
    const struct profile_symbol *s = &p->calls.symbols[f->symbol];
    uint64_t address = l->address + (l->flags & STACK_CALLER ? 1 : 0);
    strbuf_printf(&out->text, "\t%16llx ", (unsigned long long)address);
    if (!s->name)
        strbuf_puts(&out->text, "[unknown]");
    else
        put_safe(&out->text, s->name);
    if (f->inlined) {
        strbuf_puts(&out->text, " (inlined)\n");
        return;
    }
    if (s->name && s->function && address >= s->function->start)
        strbuf_printf(&out->text, "+0x%llx", (unsigned long long)(address - s->function->start));
    strbuf_puts(&out->text, " (");
    const struct module *module = s->function ? s->function->module : l->module;
    put_safe(&out->text, module ? module_path(module) : "[unknown]");
    strbuf_puts(&out->text, ")\n");
}

static void put_sample(struct export_out *out, const struct profile_sample *s)
{
    const struct profile *p = out->profile;
    put_safe(&out->text, tasks_comm(&p->tasks, s->task));
    strbuf_printf(&out->text, " %5u ", p->tasks.items[s->task].tid);
    if (s->cpu != UINT32_MAX)
        strbuf_printf(&out->text, "[%03u] ", s->cpu);
    strbuf_printf(&out->text, "%5llu.%06llu: %10llu ",
                  (unsigned long long)(s->time_ns / 1000000000),
                  (unsigned long long)(s->time_ns % 1000000000 / 1000),
                  (unsigned long long)export_weight(out, 1, s->weight));
    put_safe(&out->text, p->events[s->event].name);
    strbuf_puts(&out->text, ": \n");
    for (uint32_t node = s->node; node; node = p->stacks.nodes[node].parent) {
        uint32_t location = p->stacks.nodes[node].location;
        for (uint32_t i = p->location_lists[location]; i < p->location_lists[location + 1]; i++)
            put_frame(out, location, p->location_frames[i]);
    }
    strbuf_putc(&out->text, '\n');
    export_spill(out);
}

void export_perf_script(struct export_out *out)
{
    for (size_t i = 0; i < out->profile->sample_count; i++)
        put_sample(out, &out->profile->samples[i]);
}
