/* SPDX-License-Identifier: MIT */
/*
 * An annotated function as text: its source with the share of samples on each line, then its
 * instructions with theirs, between the source lines they came from.
 */
#include "base/json.h"
#include "base/memory.h"
#include "report/profile/annotate_report.h"
#include "report/profile/profile_report.h"
#include "report/profile/source.h"

#include <string.h>
#include <sys/stat.h>

#define CONTEXT 3      /* lines shown around those with samples */
#define WHOLE_LINES 80 /* up to this distance everything between two lines is shown */

struct text {
    const struct annotation *a;
    const struct profile *profile;
    const struct annotate_view *view;
    struct sources sources;
    struct strbuf *out;
};

static double share_of(uint64_t weight, uint64_t total)
{
    return total ? 100.0 * (double)weight / (double)total : 0;
}

static void put_share(const struct text *t, uint64_t weight)
{
    double share = share_of(weight, t->a->weight);
    bool colour = t->view->colour && share >= 0.5;
    if (!weight) {
        strbuf_pad(t->out, ' ', 9);
        return;
    }
    if (colour)
        strbuf_puts(t->out, share >= 5 ? "\033[31m" : "\033[32m");
    strbuf_printf(t->out, "%8.2f%%", share);
    if (colour)
        strbuf_puts(t->out, "\033[m");
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static void put_safe(struct strbuf *out, const char *text)
{
    strbuf_put_safe(out, text, strlen(text), 4096);
}

/* Tabs become blanks so that columns stay where they are. */
static void put_code(const struct text *t, const char *text, size_t length, size_t used)
{
    CLEANUP(strbuf_done) struct strbuf line = {0};
    for (size_t i = 0; i < length && line.length < 4096; i++) {
        if (text[i] == '\t')
            strbuf_pad(&line, ' ', 8 - line.length % 8);
        else
            strbuf_putc(&line, text[i]);
    }
    size_t room = t->view->columns > used + 20 ? t->view->columns - used : 0;
    strbuf_put_safe(t->out, strbuf_text(&line), line.length,
                    room && line.length > room ? room - 1 : 4096);
}

static void put_head(const struct text *t)
{
    const struct annotation *a = t->a;
    const struct profile *p = t->profile;
    const struct profile_symbol *s = &p->calls.symbols[a->symbol];
    struct strbuf *out = t->out;
    strbuf_puts(out, "# ");
    symbol_put_name(&p->calls, a->symbol, false, 0, out);
    strbuf_puts(out, "  in ");
    put_safe(out, p->calls.dsos.items[s->dso]);
    strbuf_printf(out, "\n# %llu %s, %.2f %% of event '", (unsigned long long)a->samples,
                  plural(a->samples, "sample", "samples"),
                  share_of(a->weight, p->events[a->event].weight));
    put_safe(out, p->events[a->event].name);
    strbuf_puts(out, "'; percentages below are of these.\n");
    if (a->elsewhere_weight)
        strbuf_printf(out, "# %.2f %% are in parts split off by the compiler.\n",
                      share_of(a->elsewhere_weight, a->weight));
    if (a->inlined_weight) {
        strbuf_printf(
            out, "# %.2f %% are where it was inlined:", share_of(a->inlined_weight, a->weight));
        for (size_t i = 0; i < a->host_count && i < 4; i++) {
            strbuf_puts(out, i ? ", " : " ");
            symbol_put_name(&p->calls, a->hosts[i].symbol, false, 60, out);
            strbuf_printf(out, " (%.1f %%)", share_of(a->hosts[i].weight, a->weight));
        }
        strbuf_puts(out, "\n# Annotate those to see the instructions.\n");
    }
    strbuf_puts(out, "#\n");
}

static void put_source_line(const struct text *t, const struct source_file *file, uint32_t line,
                            uint64_t weight)
{
    const char *text;
    size_t length;
    put_share(t, weight);
    strbuf_printf(t->out, " %6u  ", line);
    if (source_line(file, line, &text, &length))
        put_code(t, text, length, 18);
    strbuf_putc(t->out, '\n');
}

/* One file's lines from a->lines[first] to before [end]. */
static void put_source_file(const struct text *t, struct sources *sources, size_t first, size_t end)
{
    const struct annotation *a = t->a;
    const struct source_file *file = sources_get(sources, a->lines[first].file);
    strbuf_puts(t->out, "# ");
    put_safe(t->out, a->lines[first].file);
    strbuf_putc(t->out, '\n');
    if (!file->is_there) {
        strbuf_puts(t->out, "# The source was not found, so only line numbers are shown.\n");
        for (size_t i = first; i < end; i++)
            put_source_line(t, file, a->lines[i].line, a->lines[i].weight);
        return;
    }
    uint32_t shown = 0;
    for (size_t i = first; i < end; i++) {
        uint32_t line = a->lines[i].line;
        uint32_t from = line > CONTEXT ? line - CONTEXT : 1;
        if (shown && from <= shown + WHOLE_LINES / (end - first > 20 ? 4 : 1))
            from = shown + 1;
        else if (shown)
            strbuf_puts(t->out, "              …\n");
        for (uint32_t k = from; k < line; k++)
            put_source_line(t, file, k, 0);
        put_source_line(t, file, line, a->lines[i].weight);
        shown = line;
    }
    for (uint32_t k = shown + 1; k <= shown + CONTEXT && k <= file->line_count; k++)
        put_source_line(t, file, k, 0);
}

static void note_newer(const struct text *t, const struct source_file *file)
{
    const struct function *f = t->profile->calls.symbols[t->a->symbol].function;
    const char *binary = f ? module_file(f->module) : NULL;
    struct stat info;
    if (binary && file->is_there && stat(binary, &info) == 0 && file->changed > info.st_mtime)
        strbuf_puts(t->out, "# The source is newer than the binary: lines may have moved.\n");
}

static void put_source(struct text *t)
{
    const struct annotation *a = t->a;
    size_t first = 0;
    uint64_t unknown = 0;
    bool any = false;
    for (; first < a->line_count && !a->lines[first].file; first++)
        unknown += a->lines[first].weight;
    for (size_t end; first < a->line_count; first = end) {
        for (end = first + 1;
             end < a->line_count && str_eq(a->lines[end].file, a->lines[first].file);)
            end++;
        note_newer(t, sources_get(&t->sources, a->lines[first].file));
        put_source_file(t, &t->sources, first, end);
        strbuf_puts(t->out, "#\n");
        any = true;
    }
    if (!any)
        strbuf_puts(t->out, "# No source, because this function has no debug information: build "
                            "with -g or install its debug package.\n"
                            "#\n");
    else if (unknown)
        strbuf_printf(t->out, "# %.2f %% have no source line.\n#\n", share_of(unknown, a->weight));
}

static bool same_line(const struct annotate_instruction *a, const struct annotate_instruction *b)
{
    return a->line == b->line &&
           (a->file == b->file || (a->file && b->file && str_eq(a->file, b->file)));
}

static void put_line_above(struct text *t, const struct annotate_instruction *insn)
{
    const char *text;
    size_t length;
    if (!insn->file || !insn->line)
        return;
    strbuf_pad(t->out, ' ', 10);
    if (t->view->colour)
        strbuf_puts(t->out, "\033[2m");
    size_t before = t->out->length;
    put_safe(t->out, base_name(insn->file));
    strbuf_printf(t->out, ":%u", insn->line);
    const struct source_file *file = sources_get(&t->sources, insn->file);
    if (source_line(file, insn->line, &text, &length)) {
        strbuf_puts(t->out, "  ");
        while (length && (*text == ' ' || *text == '\t'))
            text++, length--;
        put_code(t, text, length, 12 + t->out->length - before);
    }
    if (t->view->colour)
        strbuf_puts(t->out, "\033[m");
    strbuf_putc(t->out, '\n');
}

static void put_assembly(struct text *t)
{
    const struct annotation *a = t->a;
    if (a->missing) {
        strbuf_printf(t->out, "# %s\n", a->missing);
        if (a->instruction_count)
            strbuf_puts(t->out, "# The sampled addresses:\n");
    }
    for (size_t i = 0; i < a->instruction_count; i++) {
        const struct annotate_instruction *insn = &a->instructions[i];
        if (i == 0 || !same_line(insn, &a->instructions[i - 1]))
            put_line_above(t, insn);
        put_share(t, insn->weight);
        strbuf_printf(t->out, " %10llx:  ", (unsigned long long)insn->address);
        if (insn->text)
            put_code(t, insn->text, strlen(insn->text), 24);
        strbuf_putc(t->out, '\n');
    }
}

void annotate_put_text(const struct annotation *a, const struct profile *profile,
                       const struct annotate_view *view, struct strbuf *out)
{
    struct text t = {.a = a, .profile = profile, .view = view, .out = out};
    put_head(&t);
    if (!view->no_source)
        put_source(&t);
    if (!view->no_assembly)
        put_assembly(&t);
    sources_done(&t.sources);
}

void annotate_put_json(const struct annotation *a, const struct profile *p, struct strbuf *out)
{
    const struct profile_symbol *s = &p->calls.symbols[a->symbol];
    struct json j = {.out = out};
    json_object(&j, NULL);
    json_string(&j, "symbol", s->name);
    json_string(&j, "dso", p->calls.dsos.items[s->dso]);
    json_string(&j, "event", p->events[a->event].name);
    json_u64(&j, "samples", a->samples);
    json_u64(&j, "weight", a->weight);
    json_double(&j, "share", share_of(a->weight, p->events[a->event].weight) / 100);
    json_double(&j, "inlined_share", share_of(a->inlined_weight, a->weight) / 100);
    json_array(&j, "lines");
    for (size_t i = 0; i < a->line_count; i++) {
        json_object(&j, NULL);
        json_string(&j, "file", a->lines[i].file);
        json_u64(&j, "line", a->lines[i].line);
        json_u64(&j, "samples", a->lines[i].samples);
        json_double(&j, "share", share_of(a->lines[i].weight, a->weight) / 100);
        json_end(&j);
    }
    json_end(&j);
    json_string(&j, "missing", a->missing);
    json_array(&j, "instructions");
    for (size_t i = 0; i < a->instruction_count; i++) {
        const struct annotate_instruction *insn = &a->instructions[i];
        json_object(&j, NULL);
        json_u64(&j, "address", insn->address);
        json_string(&j, "text", insn->text);
        json_u64(&j, "samples", insn->samples);
        json_double(&j, "share", share_of(insn->weight, a->weight) / 100);
        json_string(&j, "file", insn->file);
        json_u64(&j, "line", insn->line);
        json_end(&j);
    }
    json_end(&j);
    json_end(&j);
    strbuf_putc(out, '\n');
}
