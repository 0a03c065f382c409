/* SPDX-License-Identifier: MIT */
/*
 * Batches of addresses to names, in three steps of jobs for several threads:
 *
 * 1. for each module: load its table, look its addresses up in order; for source lines, see which
 *    addresses its table of lines does not know yet, and in which compilation units they lie;
 * 2. for each of those units: decode it;
 * 3. for each module with lines: copy the functions that were hit from the decoded units into the
 *    table of lines, and answer from there.
 */
#include "symbols/symbols.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "symbols/dwarf/debug.h"
#include "symbols/internal.h"
#include "symbols/names/jitdump.h"
#include "symbols/tables/keysort.h"

#define CHAIN_LENGTH_MAX 256u /* inlined calls within each other that are shown */
#define FEW_REQUESTS 32       /* not worth a thread */

/* A request in the order of work. */
struct item {
    uint32_t module; /* index; UINT32_MAX for none */
    uint32_t request;
    uint64_t address;
};

/* The requests of one module. */
struct run {
    struct module *module;
    struct item *items;
    size_t count;
    struct function_entry **functions; /* of the items, where lines are wanted */
    uint64_t *unknown;                 /* addresses in terms of the DWARF, in order */
    size_t unknown_count, unknown_capacity;
};

struct unit_job {
    struct debug *debug;
    uint32_t unit;
};

struct batch {
    struct symbols *symbols;
    struct symbols_request *requests;
    enum symbols_want want;
    struct run *runs;
    size_t run_count, run_capacity;
    struct unit_job *jobs;
    size_t job_count, job_capacity;
    void (*step)(struct batch *batch, size_t job, struct arena *arena);
};

static const struct symbols_frame unknown_frame = {0};

static void do_job(void *context, size_t index, size_t who)
{
    struct batch *b = context;
    b->step(b, index, &b->symbols->arenas[who]);
}

static void run_step(struct batch *b, size_t count, bool alone,
                     void (*step)(struct batch *, size_t, struct arena *))
{
    b->step = step;
    parallel_each(count, alone ? 1 : b->symbols->worker_count, do_job, b);
}

/* By module, then by address. */
static struct item *sort_requests(const struct symbols_request *requests, size_t count)
{
    struct item *items = memory_alloc(count * sizeof(*items));
    struct keysort_item *keys = memory_alloc(count * sizeof(*keys));
    for (size_t i = 0; i < count; i++)
        keys[i] = (struct keysort_item){requests[i].location.address, (uint32_t)i};
    keysort(keys, count);
    for (size_t i = 0; i < count; i++) {
        const struct module *m = requests[keys[i].index].location.module;
        keys[i].key = m ? m->index : UINT32_MAX;
    }
    keysort(keys, count);
    for (size_t i = 0; i < count; i++)
        items[i] = (struct item){.module = (uint32_t)keys[i].key,
                                 .request = keys[i].index,
                                 .address = requests[keys[i].index].location.address};
    free(keys);
    return items;
}

/* Which addresses the table of lines does not know yet. */
static void find_unknown(struct run *run)
{
    struct module *m = run->module;
    const struct linetab *lines = module_lines(m);
    for (size_t i = 0; lines && i < run->count; i++) {
        uint64_t address = module_lines_address(m, run->items[i].address);
        if (!linetab_find(lines, address))
            ARRAY_PUSH(run->unknown, run->unknown_count, run->unknown_capacity) = address;
    }
    if (run->unknown_count)
        module_debug(m);
}

/* Lines of code that was registered with them. */
static void answer_piece(const struct module *m, struct symbols_request *request,
                         struct arena *arena)
{
    const struct code_piece *piece = module_piece_at(m, request->location.address);
    if (!piece || piece->line_count == 0)
        return;
    uint64_t offset = request->location.address - piece->start;
    size_t low = 0, high = piece->line_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (piece->lines[middle].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return;
    struct symbols_frame *frame = arena_alloc(arena, sizeof(*frame));
    *frame = request->frames[0];
    frame->file = piece->lines[low - 1].file;
    frame->line = piece->lines[low - 1].line;
    request->frames = frame;
}

static void resolve_names(struct batch *b, size_t index, struct arena *arena)
{
    struct run *run = &b->runs[index];
    struct module *m = run->module;
    bool lines = b->want != SYMBOLS_NAMES;
    pthread_mutex_lock(&m->lock);
    module_load_table(m);
    if (lines)
        run->functions = memory_alloc(run->count * sizeof(*run->functions));
    for (size_t i = 0; i < run->count; i++) {
        struct symbols_request *request = &b->requests[run->items[i].request];
        struct function_entry *e = module_function_at(m, run->items[i].address);
        request->frames = e ? &e->frame : &unknown_frame;
        request->frame_count = 1;
        if (lines)
            run->functions[i] = e;
        if (lines && m->kind == MODULE_CODE)
            answer_piece(m, request, arena);
    }
    if (lines)
        find_unknown(run);
    pthread_mutex_unlock(&m->lock);
}

static int by_unit(const void *a, const void *b)
{
    const struct unit_job *x = a, *y = b;
    return x->unit < y->unit ? -1 : x->unit > y->unit;
}

/* Each unit once: addresses in order may go back and forth between units. */
static void list_units(struct batch *b, const struct run *run)
{
    struct debug *debug = run->module->debug;
    size_t first = b->job_count;
    for (size_t i = 0; debug && i < run->unknown_count; i++) {
        uint32_t unit = debug_unit_at(debug, run->unknown[i]);
        bool again = b->job_count > first && b->jobs[b->job_count - 1].unit == unit;
        if (unit != DEBUG_NO_UNIT && !again)
            ARRAY_PUSH(b->jobs, b->job_count, b->job_capacity) = (struct unit_job){debug, unit};
    }
    size_t count = b->job_count - first, kept = first;
    if (count == 0)
        return;
    qsort(b->jobs + first, count, sizeof(*b->jobs), by_unit);
    for (size_t i = first + 1; i < b->job_count; i++)
        if (b->jobs[i].unit != b->jobs[kept].unit)
            b->jobs[++kept] = b->jobs[i];
    b->job_count = kept + 1;
}

static void decode_unit(struct batch *b, size_t index, struct arena *arena)
{
    (void)arena;
    debug_decode(b->jobs[index].debug, b->jobs[index].unit);
}

/* Paths are copied once: those in the table move when it grows. */
static const char *file_path(struct module *m, uint32_t index)
{
    struct linetab *t = m->lines;
    const char *path = linetab_file(t, index);
    if (!path)
        return NULL;
    if (t->path_count < t->files.count) {
        t->paths = memory_resize(t->paths, t->files.count, sizeof(*t->paths));
        memset(t->paths + t->path_count, 0, (t->files.count - t->path_count) * sizeof(*t->paths));
        t->path_count = t->files.count;
    }
    if (!t->paths[index])
        t->paths[index] = arena_strdup(&m->arena, path);
    return t->paths[index];
}

/* The function of an origin, made when it is first needed. */
static const struct function *origin_function(struct module *m, uint32_t index)
{
    struct linetab *t = m->lines;
    const struct linetab_origin *o = linetab_origin(t, index);
    if (!o)
        return NULL;
    if (t->function_count < t->origins.count) {
        t->functions = memory_resize(t->functions, t->origins.count, sizeof(*t->functions));
        memset(t->functions + t->function_count, 0,
               (t->origins.count - t->function_count) * sizeof(*t->functions));
        t->function_count = t->origins.count;
    }
    const char *name = linetab_string(t, o->name), *linkage = linetab_string(t, o->linkage_name);
    if (!t->functions[index])
        t->functions[index] = module_inlined(m, name || linkage ? name : "[inlined]", linkage,
                                             linetab_file(t, o->file), o->line);
    return t->functions[index];
}

/* The function with the code: the symbol table's, or DWARF's where that has none. */
static const struct function *outer_function(struct module *m, const struct linetab_node *node,
                                             struct function_entry *symbol)
{
    if (!symbol)
        return node ? origin_function(m, node->origin) : NULL;
    struct function *f = &symbol->function;
    const struct linetab_origin *o =
        node && !f->declared_file ? linetab_origin(m->lines, node->origin) : NULL;
    if (o) {
        f->declared_file = file_path(m, o->file);
        f->declared_line = f->declared_file ? o->line : 0;
    }
    return f;
}

static void answer(struct module *m, struct symbols_request *request, uint64_t address,
                   struct function_entry *symbol, bool inlines, struct arena *arena)
{
    const struct linetab *t = m->lines;
    const struct linetab_span *span = linetab_find(t, address);
    if (!span)
        return;
    struct symbols_frame chain[CHAIN_LENGTH_MAX], frame = {0};
    uint32_t count = 0, file;
    linetab_place(t, span, address, &file, &frame.line);
    frame.file = file_path(m, file);
    const struct linetab_node *node =
        inlines ? linetab_node(t, linetab_node_at(t, span, address)) : NULL;
    while (node && node->parent != LINETAB_NONE) {
        if (count < CHAIN_LENGTH_MAX - 1) {
            frame.function = origin_function(m, node->origin);
            frame.inlined = true;
            chain[count++] = frame;
        }
        frame.file = file_path(m, node->call_file);
        frame.line = node->call_line;
        node = linetab_node(t, node->parent);
    }
    frame.function = outer_function(m, node, symbol);
    frame.inlined = false;
    chain[count++] = frame;
    struct symbols_frame *frames = arena_alloc(arena, count * sizeof(*frames));
    memcpy(frames, chain, count * sizeof(*frames));
    request->frames = frames;
    request->frame_count = count;
}

static void resolve_lines(struct batch *b, size_t index, struct arena *arena)
{
    struct run *run = &b->runs[index];
    struct module *m = run->module;
    if (!m->lines)
        return;
    pthread_mutex_lock(&m->lock);
    uint64_t known_end = 0;
    for (size_t i = 0; m->debug && i < run->unknown_count; i++)
        if (run->unknown[i] >= known_end) /* else: in the function that was copied last */
            known_end = debug_copy(m->debug, run->unknown[i], m->lines);
    linetab_sort(m->lines);
    for (size_t i = 0; i < run->count; i++)
        answer(m, &b->requests[run->items[i].request],
               module_lines_address(m, run->items[i].address), run->functions[i],
               b->want == SYMBOLS_INLINES, arena);
    module_store_lines(m);
    if (m->debug)
        debug_drop(m->debug);
    pthread_mutex_unlock(&m->lock);
}

static void split_into_runs(struct batch *b, struct item *items, size_t count)
{
    struct symbols *symbols = b->symbols;
    for (size_t i = 0; i < count; i++) {
        if (items[i].module == UINT32_MAX) {
            b->requests[items[i].request].frames = &unknown_frame;
            b->requests[items[i].request].frame_count = 1;
            continue;
        }
        if (i == 0 || items[i].module != items[i - 1].module)
            ARRAY_PUSH(b->runs, b->run_count, b->run_capacity) =
                (struct run){.module = symbols->modules[items[i].module], .items = &items[i]};
        b->runs[b->run_count - 1].count++;
    }
}

void symbols_resolve(struct symbols *symbols, struct symbols_request *requests, size_t count,
                     enum symbols_want want)
{
    if (count == 0 || count > UINT32_MAX)
        return;
    struct batch b = {.symbols = symbols, .requests = requests, .want = want};
    bool alone = count < FEW_REQUESTS;
    struct item *items = sort_requests(requests, count);
    split_into_runs(&b, items, count);
    run_step(&b, b.run_count, alone, resolve_names);
    if (want != SYMBOLS_NAMES) {
        for (size_t i = 0; i < b.run_count; i++)
            list_units(&b, &b.runs[i]);
        run_step(&b, b.job_count, false, decode_unit);
        run_step(&b, b.run_count, alone, resolve_lines);
    }
    for (size_t i = 0; i < b.run_count; i++) {
        free(b.runs[i].functions);
        free(b.runs[i].unknown);
    }
    free(b.jobs);
    free(b.runs);
    free(items);
}
