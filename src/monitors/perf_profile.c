/* SPDX-License-Identifier: MIT */
/*
 * perf-profile: where the run's processes spent their time, as shares of all samples in percent.
 *
 *   what is read                         samples of the run with call chains, by `assay record`
 *   perf-profile.calltrace.cycles-pp.X   X is a function and its callers up to the outermost, the
 *                                        function first: samples in it and in what it calls, there
 *   perf-profile.children.cycles-pp.F    samples in F or in anything that it calls
 *   perf-profile.self.cycles-pp.F        samples in F itself
 *   perf-profile.samples, .lost          how many there were, and how many did not fit
 *
 * The names say cycles-pp as the kernel test robot's do, also where the CPU's clock is sampled; the
 * robot cuts chains after five functions, here they are whole up to the program's entry: how many
 * functions before main() or a thread's first one are seen depends on where the sample was taken,
 * and one more or less would make another name.  Shares below the smallest of the
 * table are left out: they are a few samples.
 */
#include "monitors/perf_profile.h"
#include "base/memory.h"
#include "monitors/monitor.h"
#include "profile/profile.h"

/* Chains of one name may be in so many places of the tree; each of them may be too small alone. */
enum { PARTS_MAX = 16 };

enum { CALLTRACE, CHILDREN, SELF, KINDS };
static const struct {
    const char *prefix;
    double percent_min;
} kinds[KINDS] = {{"perf-profile.calltrace.cycles-pp.", 0.5},
                  {"perf-profile.children.cycles-pp.", 0.05},
                  {"perf-profile.self.cycles-pp.", 0.05}};

/* Weights by name. */
struct shares {
    struct share {
        char *name;
        uint64_t weight;
    } * items;
    size_t count, capacity;
    struct idtable table;
};

static uint64_t hash_share(const void *items, uint32_t id)
{
    return hash_string(((const struct share *)items)[id].name);
}

static uint32_t share_of(struct shares *s, const char *name)
{
    uint32_t slot, id;
    IDTABLE_EACH(&s->table, hash_string(name), slot, id)
    if (str_eq(s->items[id].name, name))
        return id;
    id = (uint32_t)s->count;
    ARRAY_PUSH(s->items, s->count, s->capacity) = (struct share){memory_strdup(name), 0};
    idtable_put(&s->table, slot, id);
    if (idtable_is_crowded(&s->table))
        idtable_grow(&s->table, hash_share, s->items);
    return id;
}

static void add_share(struct shares *s, const char *name, uint64_t weight)
{
    uint32_t id = share_of(s, name);
    s->items[id].weight += weight;
}

static void shares_init(struct shares *s)
{
    *s = (struct shares){0};
    idtable_init(&s->table, 8);
}

static void shares_done(struct shares *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->items[i].name);
    free(s->items);
    idtable_done(&s->table);
}

static const char *name_at(const struct calls *c, uint32_t node)
{
    const char *name = calls_symbol(c, c->nodes[node].frame)->name;
    return name ? name : "[unknown]";
}

/* Functions of one name are one, wherever they are. */
static void add_functions(const struct calls *c, struct shares *children, struct shares *self)
{
    CLEANUP(memory_freep) uint32_t *ids = memory_zalloc(c->symbol_count + 1, sizeof(*ids));
    for (size_t i = 0; i < c->symbol_count; i++)
        ids[i] = share_of(children, c->symbols[i].name ? c->symbols[i].name : "[unknown]");
    CLEANUP(memory_freep) size_t *seen = memory_zalloc(children->count + 1, sizeof(*seen));
    for (size_t k = 0; k < c->cell_count; k++) {
        const struct call_cell *cell = &c->cells[k];
        for (uint32_t node = cell->node; node != 0; node = c->nodes[node].parent) {
            uint32_t id = ids[c->frames[c->nodes[node].frame].symbol];
            if (seen[id] != k + 1) /* a recursion counts once */
                children->items[id].weight += cell->weight;
            seen[id] = k + 1;
        }
        if (cell->node)
            add_share(self, name_at(c, cell->node), cell->weight);
    }
}

/* Functions that start programs and threads, and what no symbol is known of. */
static bool is_before_entry(const char *name)
{
    static const char *const names[] = {"[unknown]", "_start", "start_thread", "ret_from_fork",
                                        "ret_from_fork_asm"};
    static const char *const starts[] = {"__libc_start_", "_dl_start", "_dl_relocate_static_pie",
                                         "clone",         "__clone",   "thread_start"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        if (str_eq(name, names[i]))
            return true;
    for (size_t i = 0; i < ARRAY_COUNT(starts); i++)
        if (str_has_prefix(name, starts[i]))
            return true;
    return false;
}

/* The outermost function of the node's chain that belongs to the program; the node itself where
 * there is none, and 0 where only its callees do. */
static uint32_t find_entry(const struct calls *c, uint32_t node)
{
    uint32_t entry = 0, outermost = node;
    for (uint32_t at = node; at != 0; at = c->nodes[at].parent) {
        const char *name = name_at(c, at);
        if (str_eq(name, "main"))
            return at;
        if (!is_before_entry(name))
            entry = at;
        outermost = at;
    }
    return entry || outermost != node ? entry : node;
}

static void add_chains(const struct calls *c, uint64_t weight_min, struct shares *chains)
{
    CLEANUP(memory_freep) uint64_t *weights = memory_zalloc(c->node_count + 1, sizeof(*weights));
    CLEANUP(strbuf_done) struct strbuf name = {0};
    for (size_t k = 0; k < c->cell_count; k++)
        weights[c->cells[k].node] += c->cells[k].weight;
    for (size_t n = c->node_count; n-- > 1;) /* parents come before their children */
        weights[c->nodes[n].parent] += weights[n];
    for (uint32_t n = 1; n < c->node_count; n++) {
        uint32_t entry = find_entry(c, n);
        if (!entry || weights[n] < weight_min / PARTS_MAX)
            continue;
        strbuf_clear(&name);
        for (uint32_t at = n; at != 0; at = at == entry ? 0 : c->nodes[at].parent)
            strbuf_printf(&name, "%s%s", name.length ? "." : "", name_at(c, at));
        add_share(chains, strbuf_text(&name), weights[n]);
    }
}

void perf_profile_give(const struct profile *p, profile_row_fn *f, void *context)
{
    struct shares shares[KINDS];
    CLEANUP(strbuf_done) struct strbuf name = {0};
    uint64_t total = 0, samples = 0;
    for (size_t k = 0; k < p->calls.cell_count; k++) {
        total += p->calls.cells[k].weight;
        samples += p->calls.cells[k].samples;
    }
    f(context, "perf-profile.samples", (double)samples, "");
    f(context, "perf-profile.lost", (double)perfdata_lost(&p->losses), "");
    for (size_t k = 0; k < KINDS; k++)
        shares_init(&shares[k]);
    add_functions(&p->calls, &shares[CHILDREN], &shares[SELF]);
    add_chains(&p->calls, (uint64_t)(kinds[CALLTRACE].percent_min / 100 * (double)total),
               &shares[CALLTRACE]);
    for (size_t k = 0; k < KINDS; k++) {
        for (size_t i = 0; i < shares[k].count; i++) {
            double percent = total ? 100 * (double)shares[k].items[i].weight / (double)total : 0;
            if (percent < kinds[k].percent_min)
                continue;
            strbuf_clear(&name);
            strbuf_puts(&name, kinds[k].prefix);
            strbuf_put_safe(&name, shares[k].items[i].name, strlen(shares[k].items[i].name), 4000);
            f(context, strbuf_text(&name), percent, "%");
        }
        shares_done(&shares[k]);
    }
}

int perf_profile_rows(const char *path, profile_row_fn *f, void *context, struct error *err)
{
    struct profile *p;
    int r = profile_load(&p, path, &(struct profile_options){.want = SYMBOLS_NAMES}, err);
    if (r < 0)
        return r;
    profile_symbolize(p);
    perf_profile_give(p, f, context);
    profile_free(p);
    return 0;
}

/* The session records the run and reads the rows: see session_watch.c. */
static int profile_open(struct monitor_instance *i, struct error *err)
{
    (void)i, (void)err;
    return 0;
}

const struct monitor monitor_perf_profile = {
    .name = "perf-profile",
    .what = "shares of the run's samples by call chain and function",
    .class = MONITOR_PROFILES,
    .open = profile_open,
};
