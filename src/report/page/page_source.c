/* SPDX-License-Identifier: MIT */
/* The code of a profile's hottest functions, put into the page: source lines and instructions, each
 * with its share of the function's samples. */
#include "base/json.h"
#include "base/memory.h"
#include "profile/annotate.h"
#include "report/page/page.h"
#include "report/profile/source.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    FUNCTIONS_MAX = 16,
    CONTEXT = 3,      /* source lines around those with samples */
    CODE_CONTEXT = 4, /* instructions around those */
    CODE_MAX = 400,   /* instructions of a function */
    TEXT_MAX = 200,   /* bytes of a line */
    LINES_MAX = 600,  /* source lines of a function */
};

struct writer {
    struct json j;
    struct sources sources;
    const struct annotation *a;
};

static void put_share(struct json *j, uint64_t weight, uint64_t whole)
{
    char text[32];
    snprintf(text, sizeof(text), "%.2f", whole ? 100.0 * (double)weight / (double)whole : 0.0);
    json_double(j, NULL, strtod(text, NULL));
}

static void put_text(struct json *j, const char *text, size_t length)
{
    CLEANUP(strbuf_done) struct strbuf safe = {0};
    for (size_t i = 0; i < length && i < TEXT_MAX; i++)
        if (text[i] == '\t')
            strbuf_pad(&safe, ' ', 4 - safe.length % 4);
        else
            strbuf_putc(&safe, text[i]);
    json_string(j, NULL, strbuf_text(&safe));
}

/* [number, share, text] */
static void put_line(struct writer *w, const struct source_file *file, uint32_t line,
                     uint64_t weight)
{
    const char *text = "";
    size_t length = 0;
    if (file->is_there)
        source_line(file, line, &text, &length);
    json_array(&w->j, NULL);
    json_u64(&w->j, NULL, line);
    put_share(&w->j, weight, w->a->weight);
    put_text(&w->j, text, length);
    json_end(&w->j);
}

static void put_file(struct writer *w, size_t first, size_t end)
{
    const struct annotate_line *lines = w->a->lines;
    const struct source_file *file = sources_get(&w->sources, lines[first].file);
    size_t put = 0;
    uint32_t shown = 0;
    json_object(&w->j, NULL);
    json_string(&w->j, "file", lines[first].file);
    json_bool(&w->j, "found", file->is_there);
    json_array(&w->j, "lines");
    for (size_t i = first; i < end && put < LINES_MAX; i++) {
        uint32_t line = lines[i].line, from = line > CONTEXT ? line - CONTEXT : 1;
        from = from <= shown ? shown + 1 : from;
        for (uint32_t k = file->is_there ? from : line; k < line; k++, put++)
            put_line(w, file, k, 0);
        put_line(w, file, line, lines[i].weight);
        put++;
        shown = line;
        uint32_t next = i + 1 < end ? lines[i + 1].line : UINT32_MAX;
        for (uint32_t k = line + 1;
             file->is_there && k <= line + CONTEXT && k < next && k <= file->line_count;
             k++, put++) {
            put_line(w, file, k, 0);
            shown = k;
        }
    }
    json_end(&w->j);
    json_end(&w->j);
}

static void put_files(struct writer *w)
{
    const struct annotation *a = w->a;
    size_t first = 0;
    json_array(&w->j, "files");
    while (first < a->line_count && !a->lines[first].file)
        first++;
    for (size_t end; first < a->line_count; first = end) {
        for (end = first + 1;
             end < a->line_count && str_eq(a->lines[end].file, a->lines[first].file);)
            end++;
        put_file(w, first, end);
    }
    json_end(&w->j);
}

/* Whether samples are near the instruction. */
static bool is_near(const struct annotation *a, size_t at)
{
    size_t from = at > CODE_CONTEXT ? at - CODE_CONTEXT : 0;
    for (size_t i = from; i <= at + CODE_CONTEXT && i < a->instruction_count; i++)
        if (a->instructions[i].samples)
            return true;
    return false;
}

/* [address, share, text, line] */
static void put_code(struct writer *w)
{
    const struct annotation *a = w->a;
    size_t put = 0;
    json_array(&w->j, "code");
    for (size_t i = 0; i < a->instruction_count && put < CODE_MAX; i++) {
        const struct annotate_instruction *insn = &a->instructions[i];
        char address[24];
        if (a->instruction_count > CODE_MAX / 4 && !is_near(a, i))
            continue;
        snprintf(address, sizeof(address), "%llx", (unsigned long long)insn->address);
        json_array(&w->j, NULL);
        json_string(&w->j, NULL, address);
        put_share(&w->j, insn->weight, a->weight);
        put_text(&w->j, insn->text ? insn->text : "", insn->text ? strlen(insn->text) : 0);
        json_u64(&w->j, NULL, insn->line);
        json_end(&w->j);
        put++;
    }
    json_end(&w->j);
    json_string(&w->j, "missing", a->missing);
}

static void put_function(struct writer *w, struct profile *p, uint32_t event, uint32_t symbol,
                         const char *name)
{
    struct annotation a;
    annotate_build(&a, p, event, symbol, NULL);
    w->a = &a;
    json_object(&w->j, name);
    json_u64(&w->j, "samples", a.samples);
    put_files(w);
    put_code(w);
    json_end(&w->j);
    annotate_done(&a);
}

static int hottest_first(const void *left, const void *right)
{
    const struct flame_function *a = left, *b = right;
    return a->self < b->self ? 1 : a->self > b->self ? -1 : 0;
}

int page_add_source(struct flame *flame, const char *path, struct error *err)
{
    struct profile_options options = {
        .with_lines = true, .no_callers = true, .want = SYMBOLS_INLINES};
    struct profile *profile;
    int r = profile_load(&profile, path, &options, err);
    if (r < 0)
        return r;
    profile_symbolize(profile);
    CLEANUP(memory_freep) struct flame_function *all = flame_functions(flame);
    CLEANUP(strbuf_done) struct strbuf text = {0};
    struct writer w = {.j = {.out = &text, .compact = true}};
    uint32_t event = profile->event_count ? annotate_main_event(profile) : 0;
    if (flame->name_count)
        qsort(all, flame->name_count, sizeof(*all), hottest_first);
    json_object(&w.j, NULL);
    for (size_t i = 0, put = 0; i < flame->name_count && put < FUNCTIONS_MAX; i++) {
        const struct flame_name *name = &flame->names[all[i].name];
        uint32_t symbol;
        size_t others;
        struct error ignored;
        if (!all[i].self || name->flags & FLAME_COMM || !profile->event_count ||
            annotate_find(profile, event, name->text, NULL, &symbol, &others, &ignored) < 0)
            continue;
        put_function(&w, profile, event, symbol, name->text);
        put++;
    }
    json_end(&w.j);
    sources_done(&w.sources);
    profile_free(profile);
    free(flame->sources);
    flame->sources = memory_strdup(strbuf_text(&text));
    return 0;
}
