/* SPDX-License-Identifier: MIT */
/* The samples of one function by line and instruction: see annotate.h. */
#include "profile/annotate.h"
#include "base/memory.h"
#include "elf/image.h"
#include "profile/disassemble.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CODE_BYTES_MAX (1u << 20)

uint32_t annotate_main_event(const struct profile *p)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < p->event_count; i++)
        if (p->events[i].samples > p->events[best].samples)
            best = i;
    return best;
}

static uint32_t leaf_location(const struct profile *p, const struct stack_cell *cell)
{
    return p->stacks.nodes[cell->node].location;
}

/* The weight of each symbol: where it ran, inlined or not. */
static uint64_t *weigh_symbols(const struct profile *p, uint32_t event)
{
    uint64_t *weights = memory_zalloc(p->calls.symbol_count + 1, sizeof(*weights));
    for (size_t i = 0; i < p->stacks.cell_count; i++) {
        const struct stack_cell *cell = &p->stacks.cells[i];
        if (cell->event != event || cell->node == STACK_EMPTY)
            continue;
        uint32_t location = leaf_location(p, cell);
        for (uint32_t k = p->location_lists[location]; k < p->location_lists[location + 1]; k++)
            weights[p->calls.frames[p->location_frames[k]].symbol] += cell->weight;
    }
    return weights;
}

/* The name without namespaces, template arguments and parameters: "step" of "a::b<int>::step<2>".
 * Operators are left as they are. */
static size_t bare_name(const char *name, const char **ret_start)
{
    size_t start = 0, end = 0, at = 0;
    unsigned depth = 0;
    for (; name[at] && !(depth == 0 && name[at] == '('); at++) {
        if (depth == 0 && name[at] == ':' && name[at + 1] == ':') {
            start = at + 2;
            end = 0;
            at++;
        } else if (name[at] == '<') {
            if (depth++ == 0)
                end = at;
        } else if (name[at] == '>' && depth > 0) {
            depth--;
        }
    }
    if (end <= start || str_has_prefix(name + start, "operator"))
        end = at;
    *ret_start = name + start;
    return end - start;
}

enum match {
    MATCH_NONE,
    MATCH_BARE,
    MATCH_WHOLE,
};

static enum match match_name(const struct profile_symbol *s, const char *name)
{
    if (!s->name)
        return MATCH_NONE;
    if (str_eq(s->name, name) ||
        (s->function && s->function->linkage_name && str_eq(s->function->linkage_name, name)))
        return MATCH_WHOLE;
    const char *start;
    size_t length = bare_name(s->name, &start);
    return length == strlen(name) && memcmp(start, name, length) == 0 ? MATCH_BARE : MATCH_NONE;
}

static bool is_listed(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(names[i], name))
            return true;
    return false;
}

/* Names that hold the word, else names that are spelled nearly so. */
static void suggest(const struct profile *p, const uint64_t *weights, const char *name,
                    struct strbuf *out)
{
    size_t found = 0, count = 0;
    const char **names = memory_zalloc(p->calls.symbol_count + 1, sizeof(*names));
    for (uint32_t i = 0; i < p->calls.symbol_count; i++) {
        const char *other = p->calls.symbols[i].name;
        if (!other || !weights[i] || strlen(other) > 200 || is_listed(names, count, other))
            continue;
        names[count++] = other;
        if (!strstr(other, name) || found == 3)
            continue;
        strbuf_puts(out, found++ ? ", " : "");
        strbuf_put_safe(out, other, strlen(other), 200);
    }
    if (!found)
        str_nearest(name, names, count, 3, out);
    free(names);
}

int annotate_find(const struct profile *p, uint32_t event, const char *name, const char *dso,
                  uint32_t *ret_symbol, size_t *ret_others, struct error *err)
{
    CLEANUP(memory_freep) uint64_t *weights = weigh_symbols(p, event);
    uint32_t best = IDTABLE_NONE;
    size_t count = 0;
    enum match best_match = MATCH_NONE;
    for (uint32_t i = 0; i < p->calls.symbol_count; i++) {
        const struct profile_symbol *s = &p->calls.symbols[i];
        enum match match = weights[i] ? match_name(s, name) : MATCH_NONE;
        if (match == MATCH_NONE || match < best_match ||
            (dso && !str_eq(p->calls.dsos.items[s->dso], dso)))
            continue;
        count = match > best_match ? 1 : count + 1;
        if (match > best_match || weights[i] > weights[best])
            best = i;
        best_match = match;
    }
    if (best != IDTABLE_NONE) {
        *ret_symbol = best;
        *ret_others = count - 1;
        return 0;
    }
    CLEANUP(strbuf_done) struct strbuf near = {0}, safe = {0};
    suggest(p, weights, name, &near);
    strbuf_put_safe(&safe, name, strlen(name), 200);
    return error_set(err, -ENOENT, "no samples in a function '%s'%s%s%s%s", strbuf_text(&safe),
                     dso ? " of " : "", dso ? dso : "",
                     near.length ? "; did you mean " : "; 'assay report' lists the functions",
                     strbuf_text(&near));
}

static void add_line(struct annotation *a, const struct profile_srcline *s,
                     const struct stack_cell *cell)
{
    for (size_t i = 0; i < a->line_count; i++) {
        struct annotate_line *l = &a->lines[i];
        if (l->line == s->line &&
            (l->file == s->file || (l->file && s->file && str_eq(l->file, s->file)))) {
            l->samples += cell->samples;
            l->weight += cell->weight;
            return;
        }
    }
    ARRAY_PUSH(a->lines, a->line_count, a->line_capacity) =
        (struct annotate_line){s->file, s->line, cell->samples, cell->weight};
}

static void add_host(struct annotation *a, uint32_t symbol, uint64_t weight)
{
    for (size_t i = 0; i < a->host_count; i++)
        if (a->hosts[i].symbol == symbol) {
            a->hosts[i].weight += weight;
            return;
        }
    ARRAY_PUSH(a->hosts, a->host_count, a->host_capacity) = (struct annotate_host){symbol, weight};
}

static int compare_lines(const void *left, const void *right)
{
    const struct annotate_line *a = left, *b = right;
    int order = strcmp(a->file ? a->file : "", b->file ? b->file : "");
    return order ? order : a->line < b->line ? -1 : a->line > b->line;
}

static int compare_hosts(const void *left, const void *right)
{
    const struct annotate_host *a = left, *b = right;
    return a->weight < b->weight ? 1 : a->weight > b->weight ? -1 : 0;
}

/* Samples on one address of the function's own code. */
struct hit {
    uint64_t address, samples, weight;
};

static int compare_hits(const void *left, const void *right)
{
    const struct hit *a = left, *b = right;
    return a->address < b->address ? -1 : a->address > b->address;
}

struct hits {
    struct hit *items;
    size_t count, capacity;
};

static void collect(struct annotation *a, const struct profile *p, struct hits *hits)
{
    for (size_t i = 0; i < p->stacks.cell_count; i++) {
        const struct stack_cell *cell = &p->stacks.cells[i];
        if (cell->event != a->event || cell->node == STACK_EMPTY)
            continue;
        uint32_t location = leaf_location(p, cell);
        uint32_t first = p->location_lists[location], end = p->location_lists[location + 1];
        for (uint32_t k = first; k < end; k++) {
            const struct profile_frame *f = &p->calls.frames[p->location_frames[k]];
            if (f->symbol != a->symbol)
                continue;
            a->samples += cell->samples;
            a->weight += cell->weight;
            add_line(a, &p->calls.srclines[f->srcline], cell);
            uint32_t host = p->calls.frames[p->location_frames[end - 1]].symbol;
            if (host == a->symbol) {
                ARRAY_PUSH(hits->items, hits->count, hits->capacity) = (struct hit){
                    p->stacks.locations[location].address, cell->samples, cell->weight};
            } else {
                a->inlined_weight += cell->weight;
                add_host(a, host, cell->weight);
            }
            break;
        }
    }
}

size_t kernel_memory_read(const char *path, uint64_t address, void *buffer, size_t size)
{
    struct image memory;
    uint64_t offset;
    size_t left, got = 0;
    if (image_open(&memory, path, NULL) < 0)
        return 0;
    if (image_address_to_offset(&memory, address, &offset, &left))
        got = image_read(&memory, offset, buffer, size < left ? size : left);
    image_close(&memory);
    return got;
}

static const char *explain_missing(struct annotation *a, struct module *module)
{
    if (module_kind(module) == MODULE_KERNEL)
        snprintf(a->missing_text, sizeof(a->missing_text),
                 "The kernel's code is not available: the disassembly needs /proc/kcore (root, and "
                 "a kernel that provides it) or a vmlinux file of exactly this kernel (Debian: "
                 "linux-image-…-dbg).");
    else if (!module_file(module))
        snprintf(a->missing_text, sizeof(a->missing_text),
                 "The recorded binary '%.300s' was not found, so there is no disassembly.",
                 module_path(module));
    else
        snprintf(a->missing_text, sizeof(a->missing_text),
                 "The function's code could not be read from '%.300s'.", module_file(module));
    return a->missing_text;
}

/* The code of the function; the caller frees it. */
static uint8_t *read_code(struct annotation *a, struct module *module, const struct function *f,
                          const char *kernel_code, size_t *ret_size)
{
    size_t size = f->size < CODE_BYTES_MAX ? f->size : CODE_BYTES_MAX;
    uint8_t *code = memory_zalloc(size + 16, 1);
    size_t got = size ? module_read(module, f->start, code, size) : 0;
    if (!got && size && module_kind(module) == MODULE_KERNEL)
        got = kernel_memory_read(kernel_code ? kernel_code : "/proc/kcore", f->start, code, size);
    if (!got)
        a->missing = explain_missing(a, module);
    *ret_size = got;
    return code;
}

/* Gives each instruction the samples on it, and keeps those on no instruction as lines of their
 * own where nothing could be disassembled. */
static void spread_hits(struct annotation *a, const struct function *f, uint64_t shift,
                        struct hits *hits)
{
    qsort(hits->items, hits->count, sizeof(*hits->items), compare_hits);
    size_t at = 0;
    for (size_t i = 0; i < hits->count; i++) {
        const struct hit *h = &hits->items[i];
        if (h->address < f->start || h->address >= f->start + (f->size ? f->size : UINT32_MAX)) {
            a->elsewhere_weight += h->weight;
            continue;
        }
        uint64_t address = h->address + shift;
        while (at + 1 < a->instruction_count && a->instructions[at + 1].address <= address)
            at++;
        bool found = a->instruction_count && a->instructions[at].address <= address &&
                     (!a->missing || a->instructions[at].address == address);
        if (!found) {
            ARRAY_PUSH(a->instructions, a->instruction_count, a->instruction_capacity) =
                (struct annotate_instruction){.address = address};
            at = a->instruction_count - 1;
        }
        a->instructions[at].samples += h->samples;
        a->instructions[at].weight += h->weight;
    }
}

static void find_lines(struct annotation *a, struct profile *p, struct module *module,
                       uint64_t shift)
{
    struct symbols_request *requests = memory_zalloc(a->instruction_count + 1, sizeof(*requests));
    for (size_t i = 0; i < a->instruction_count; i++)
        requests[i].location = (struct location){module, a->instructions[i].address - shift};
    symbols_resolve(p->symbols, requests, a->instruction_count, SYMBOLS_LINES);
    for (size_t i = 0; i < a->instruction_count; i++)
        if (requests[i].frame_count) {
            a->instructions[i].file = requests[i].frames[0].file;
            a->instructions[i].line = requests[i].frames[0].line;
        }
    free(requests);
}

void annotate_build(struct annotation *a, struct profile *p, uint32_t event, uint32_t symbol,
                    const char *kernel_code)
{
    *a = (struct annotation){.symbol = symbol, .event = event};
    struct hits hits = {0};
    collect(a, p, &hits);
    if (a->line_count)
        qsort(a->lines, a->line_count, sizeof(*a->lines), compare_lines);
    if (a->host_count)
        qsort(a->hosts, a->host_count, sizeof(*a->hosts), compare_hosts);
    const struct function *f = p->calls.symbols[symbol].function;
    if (hits.count && f) {
        struct module *module = f->module;
        uint64_t shift = module_elf_address(module, f->start) - f->start;
        size_t size;
        CLEANUP(memory_freep) uint8_t *code = read_code(a, module, f, kernel_code, &size);
        if (size)
            disassemble(a, p, module, code, size, f->start + shift, shift);
        spread_hits(a, f, shift, &hits);
        find_lines(a, p, module, shift);
    }
    free(hits.items);
}

void annotate_done(struct annotation *a)
{
    for (size_t i = 0; i < a->instruction_count; i++)
        free(a->instructions[i].text);
    free(a->instructions);
    free(a->lines);
    free(a->hosts);
    *a = (struct annotation){0};
}
