/* SPDX-License-Identifier: MIT */
/*
 * Batches of addresses to names.
 *
 * First each module is one job: its table is loaded and its addresses, in order, are looked up.
 * For source lines, addresses that lie in the same compilation unit then form one job each, so that
 * a unit is decoded once and by one thread; workers take jobs from a common counter.
 */
#include "symbols/symbols.h"

#include "base/memory.h"
#include "symbols/debug.h"
#include "symbols/internal.h"

#define FEW_REQUESTS 32 /* not worth a thread */

/* A request in the order of work. */
struct item {
    uint32_t module; /* index; UINT32_MAX for none */
    uint32_t request;
    uint64_t address;
};

/* The requests of one module; after the first step, where its units' jobs stand. */
struct run {
    struct module *module;
    struct item *items;
    size_t count;
    struct debug *debug;
    struct debug_query *queries; /* those with a unit, in order of addresses */
    uint32_t *units;             /* of each query */
    size_t query_count;
};

struct unit_job {
    struct run *run;
    uint32_t unit;
    size_t first, count; /* of the run's queries */
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
    size_t step_count;
    atomic_size_t next; /* relaxed: each value is taken once, results are read after the joins */
};

struct worker {
    struct batch *batch;
    struct arena *arena;
    pthread_t thread;
};

static const struct symbols_frame unknown_frame = {0};

static void *work(void *argument)
{
    struct worker *w = argument;
    struct batch *b = w->batch;
    for (;;) {
        size_t job = atomic_fetch_add_explicit(&b->next, 1, memory_order_relaxed);
        if (job >= b->step_count)
            return NULL;
        b->step(b, job, w->arena);
    }
}

/* Runs the step for each job; this thread works too, alone if no other can be had. */
static void run_step(struct batch *b, size_t count, bool alone,
                     void (*step)(struct batch *, size_t, struct arena *))
{
    struct worker workers[WORKER_COUNT_MAX];
    size_t wanted = alone ? 1 : b->symbols->worker_count, started = 1;
    b->step = step;
    b->step_count = count;
    atomic_store_explicit(&b->next, 0, memory_order_relaxed);
    for (size_t i = 0; i < WORKER_COUNT_MAX; i++)
        workers[i] = (struct worker){.batch = b, .arena = &b->symbols->arenas[i]};
    while (started < wanted && started < count &&
           pthread_create(&workers[started].thread, NULL, work, &workers[started]) == 0)
        started++;
    work(&workers[0]);
    for (size_t i = 1; i < started; i++)
        pthread_join(workers[i].thread, NULL);
}

static int by_module_and_address(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->module != y->module)
        return x->module < y->module ? -1 : 1;
    return x->address < y->address ? -1 : x->address > y->address;
}

static struct item *sort_requests(const struct symbols_request *requests, size_t count)
{
    struct item *items = memory_alloc(count * sizeof(*items));
    for (size_t i = 0; i < count; i++) {
        const struct location *l = &requests[i].location;
        items[i] = (struct item){.module = l->module ? l->module->index : UINT32_MAX,
                                 .request = (uint32_t)i,
                                 .address = l->address};
    }
    qsort(items, count, sizeof(*items), by_module_and_address);
    return items;
}

static void find_units(struct run *run, const struct batch *b, struct function_entry **functions)
{
    struct module *m = run->module;
    run->debug = module_debug(m);
    if (!run->debug)
        return;
    run->queries = memory_alloc(run->count * sizeof(*run->queries));
    run->units = memory_alloc(run->count * sizeof(*run->units));
    for (size_t i = 0; i < run->count; i++) {
        uint64_t address = module_debug_address(m, run->items[i].address);
        uint32_t unit = debug_unit_at(run->debug, address);
        if (unit == DEBUG_NO_UNIT)
            continue;
        run->units[run->query_count] = unit;
        run->queries[run->query_count++] =
            (struct debug_query){.address = address,
                                 .request = &b->requests[run->items[i].request],
                                 .function = functions[i]};
    }
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
    struct function_entry **functions = memory_alloc(run->count * sizeof(*functions));
    for (size_t i = 0; i < run->count; i++) {
        struct symbols_request *request = &b->requests[run->items[i].request];
        struct function_entry *e = functions[i] = module_function_at(m, run->items[i].address);
        request->frames = e ? &e->frame : &unknown_frame;
        request->frame_count = 1;
        if (lines && m->kind == MODULE_CODE)
            answer_piece(m, request, arena);
    }
    if (lines)
        find_units(run, b, functions);
    pthread_mutex_unlock(&m->lock);
    free(functions);
}

static void resolve_unit(struct batch *b, size_t index, struct arena *arena)
{
    const struct unit_job *job = &b->jobs[index];
    debug_resolve(job->run->debug, job->run->module, job->unit, b->want == SYMBOLS_INLINES,
                  job->run->queries + job->first, job->count, arena);
}

struct unit_order {
    uint32_t unit, query;
};

static int by_unit(const void *a, const void *b)
{
    const struct unit_order *x = a, *y = b;
    if (x->unit != y->unit)
        return x->unit < y->unit ? -1 : 1;
    return x->query < y->query ? -1 : x->query > y->query;
}

/* A unit's code may lie in several places: its queries are brought together. */
static void group_by_unit(struct batch *b, struct run *run)
{
    if (run->query_count == 0)
        return;
    struct unit_order *order = memory_alloc(run->query_count * sizeof(*order));
    struct debug_query *sorted = memory_alloc(run->query_count * sizeof(*sorted));
    for (size_t i = 0; i < run->query_count; i++)
        order[i] = (struct unit_order){run->units[i], (uint32_t)i};
    qsort(order, run->query_count, sizeof(*order), by_unit);
    for (size_t i = 0; i < run->query_count; i++) {
        sorted[i] = run->queries[order[i].query];
        if (i == 0 || order[i].unit != order[i - 1].unit)
            ARRAY_PUSH(b->jobs, b->job_count, b->job_capacity) =
                (struct unit_job){.run = run, .unit = order[i].unit, .first = i};
        b->jobs[b->job_count - 1].count++;
    }
    free(order);
    free(run->queries);
    run->queries = sorted;
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
    struct item *items = sort_requests(requests, count);
    split_into_runs(&b, items, count);
    run_step(&b, b.run_count, count < FEW_REQUESTS, resolve_names);
    for (size_t i = 0; i < b.run_count; i++)
        group_by_unit(&b, &b.runs[i]);
    run_step(&b, b.job_count, b.job_count < 2, resolve_unit);
    for (size_t i = 0; i < b.run_count; i++) {
        free(b.runs[i].queries);
        free(b.runs[i].units);
    }
    free(b.jobs);
    free(b.runs);
    free(items);
}
