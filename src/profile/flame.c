/* SPDX-License-Identifier: MIT */
/* Trees of frames: built by looking each path up, then brought into preorder. */
#include "profile/flame.h"
#include "base/memory.h"

/* While it is built: nodes linked to their parents. */
struct loose_node {
    uint32_t parent, name, first, next, place;
    uint64_t samples[2], weight[2];
};

struct builder {
    struct loose_node *nodes;
    size_t count, capacity;
    struct idtable table;
};

static uint64_t node_hash(const void *items, uint32_t id)
{
    const struct loose_node *n = (const struct loose_node *)items + id;
    return hash_mix(n->parent, n->name);
}

static void builder_init(struct builder *b)
{
    *b = (struct builder){0};
    idtable_init(&b->table, 12);
    ARRAY_PUSH(b->nodes, b->count, b->capacity) =
        (struct loose_node){.parent = IDTABLE_NONE, .first = IDTABLE_NONE, .next = IDTABLE_NONE};
}

static void builder_done(struct builder *b)
{
    free(b->nodes);
    idtable_done(&b->table);
}

static uint32_t child_of(struct builder *b, uint32_t parent, uint32_t name)
{
    uint32_t slot, id;
    IDTABLE_EACH(&b->table, hash_mix(parent, name), slot, id)
    if (b->nodes[id].parent == parent && b->nodes[id].name == name)
        return id;
    id = (uint32_t)b->count;
    ARRAY_PUSH(b->nodes, b->count, b->capacity) = (struct loose_node){
        .parent = parent, .name = name, .first = IDTABLE_NONE, .next = b->nodes[parent].first};
    b->nodes[parent].first = id;
    idtable_put(&b->table, slot, id);
    if (idtable_is_crowded(&b->table))
        idtable_grow(&b->table, node_hash, b->nodes);
    return id;
}

/* Numbers of names, found by what they were made from. */
struct name_finder {
    struct flame *flame;
    const struct profile *profile;
    uint32_t *of_symbol; /* 2 × symbol + inlined -> name + 1 */
    uint32_t *of_comm;
};

static uint32_t name_of_symbol(struct name_finder *f, const struct profile_frame *frame)
{
    uint32_t *known = &f->of_symbol[2 * frame->symbol + frame->inlined];
    if (*known)
        return *known - 1;
    const struct calls *calls = &f->profile->calls;
    const struct profile_symbol *symbol = &calls->symbols[frame->symbol];
    struct strbuf text = {0};
    calls_put_name(calls, frame->symbol, &text);
    struct flame *flame = f->flame;
    ARRAY_PUSH(flame->names, flame->name_count, flame->name_capacity) = (struct flame_name){
        .text = memory_strdup(strbuf_text(&text)),
        .dso = memory_strdup(calls->dsos.items[symbol->dso]),
        .flags = (symbol->is_kernel ? FLAME_KERNEL : 0u) | (frame->inlined ? FLAME_INLINED : 0u),
        .symbol = frame->symbol};
    strbuf_done(&text);
    *known = (uint32_t)flame->name_count;
    return *known - 1;
}

static uint32_t name_of_comm(struct name_finder *f, uint32_t task)
{
    uint32_t comm = f->profile->tasks.items[task].comm;
    if (f->of_comm[comm])
        return f->of_comm[comm] - 1;
    struct flame *flame = f->flame;
    ARRAY_PUSH(flame->names, flame->name_count, flame->name_capacity) =
        (struct flame_name){.text = memory_strdup(f->profile->tasks.comms.items[comm]),
                            .dso = memory_strdup(""),
                            .flags = FLAME_COMM,
                            .symbol = FLAME_NO_SYMBOL};
    f->of_comm[comm] = (uint32_t)flame->name_count;
    return f->of_comm[comm] - 1;
}

/* The node of a stack below its command. */
static uint32_t place_of(struct builder *b, struct name_finder *f, uint32_t task, uint32_t node)
{
    const struct calls *calls = &f->profile->calls;
    uint32_t path[FLAME_DEPTH_MAX];
    size_t depth = 0;
    for (; node && depth < FLAME_DEPTH_MAX; node = calls->nodes[node].parent)
        path[depth++] = calls->nodes[node].frame;
    uint32_t at = child_of(b, 0, name_of_comm(f, task));
    while (depth > 0)
        at = child_of(b, at, name_of_symbol(f, &calls->frames[path[--depth]]));
    return at;
}

/* Names in their own order: paths are the same in every run of assay. */
static int compare_children(const void *left, const void *right, void *context)
{
    const struct builder *b = context;
    uint32_t a = *(const uint32_t *)left, c = *(const uint32_t *)right;
    uint64_t first = b->nodes[a].weight[0] + b->nodes[a].weight[1];
    uint64_t second = b->nodes[c].weight[0] + b->nodes[c].weight[1];
    if (first != second)
        return first < second ? 1 : -1;
    return a < c ? -1 : a > c;
}

/* Calls for each node in preorder, heavy children first, with its depth. */
static void walk(struct builder *b, void (*fn)(void *context, uint32_t node, uint32_t depth),
                 void *context)
{
    struct {
        uint32_t node, depth;
    } *stack = NULL;
    size_t count = 0, capacity = 0, child_capacity = 0;
    uint32_t *children = NULL;
    ARRAY_PUSH(stack, count, capacity).node = 0;
    stack[0].depth = 0;
    while (count) {
        uint32_t node = stack[--count].node, depth = stack[count].depth;
        if (node)
            fn(context, node, depth - 1);
        size_t child_count = 0;
        for (uint32_t c = b->nodes[node].first; c != IDTABLE_NONE; c = b->nodes[c].next)
            ARRAY_PUSH(children, child_count, child_capacity) = c;
        if (child_count)
            qsort_r(children, child_count, sizeof(*children), compare_children, b);
        for (size_t i = child_count; i-- > 0;) {
            ARRAY_PUSH(stack, count, capacity).node = children[i];
            stack[count - 1].depth = depth + 1;
        }
    }
    free(stack);
    free(children);
}

struct flattening {
    struct builder *b;
    struct flame *flame;
    const uint64_t *self_samples, *self_weight; /* by loose node */
};

static void flatten(void *context, uint32_t node, uint32_t depth)
{
    struct flattening *f = context;
    f->b->nodes[node].place = (uint32_t)f->flame->node_count;
    ARRAY_PUSH(f->flame->nodes, f->flame->node_count, f->flame->node_capacity) =
        (struct flame_node){.depth = depth,
                            .name = f->b->nodes[node].name,
                            .self_samples = f->self_samples[node],
                            .self_weight = f->self_weight[node],
                            .samples = f->b->nodes[node].samples[0],
                            .weight = f->b->nodes[node].weight[0]};
}

struct pending {
    uint32_t node;
    uint64_t samples, weight;
};

static int by_thread_and_time(const void *left, const void *right, void *context)
{
    const struct profile *p = context;
    const struct profile_sample *a = &p->samples[*(const uint32_t *)left];
    const struct profile_sample *b = &p->samples[*(const uint32_t *)right];
    const struct profile_task *s = &p->tasks.items[a->task], *t = &p->tasks.items[b->task];
    if (s->tid != t->tid)
        return s->tid < t->tid ? -1 : 1;
    return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

static void add_order(struct flame *flame, struct builder *b, struct name_finder *f, uint32_t event)
{
    const struct profile *p = f->profile;
    uint32_t *chosen = NULL;
    size_t count = 0, capacity = 0, seen = 0;
    for (size_t i = 0; i < p->sample_count; i++)
        seen += p->samples[i].event == event;
    flame->order_every = (seen + FLAME_ORDER_MAX - 1) / FLAME_ORDER_MAX;
    flame->order_every = flame->order_every ? flame->order_every : 1;
    seen = 0;
    for (size_t i = 0; i < p->sample_count; i++)
        if (p->samples[i].event == event && seen++ % flame->order_every == 0)
            ARRAY_PUSH(chosen, count, capacity) = (uint32_t)i;
    if (count)
        qsort_r(chosen, count, sizeof(*chosen), by_thread_and_time, (void *)p);
    for (size_t i = 0; i < count; i++) {
        const struct profile_sample *s = &p->samples[chosen[i]];
        chosen[i] = b->nodes[place_of(b, f, s->task, p->call_nodes[s->node])].place;
    }
    flame->order = chosen;
    flame->order_count = count;
}

/* ---- over time ---- */

/* The thread's number in the flame; those that are too many share the last one. */
static uint32_t thread_of(struct flame *flame, const struct profile *p, uint32_t task,
                          uint32_t *of_task)
{
    if (of_task[task])
        return of_task[task] - 1;
    const struct profile_task *t = &p->tasks.items[task];
    uint32_t at = 0;
    while (at < flame->thread_count && flame->threads[at].tid != t->tid)
        at++;
    if (at == FLAME_THREADS_MAX) {
        at--;
        free(flame->threads[at].name);
        flame->threads[at].name = memory_strdup("other threads");
    } else if (at == flame->thread_count) {
        ARRAY_PUSH(flame->threads, flame->thread_count, flame->thread_capacity) =
            (struct flame_thread){memory_strdup(p->tasks.comms.items[t->comm]), t->tid};
    }
    of_task[task] = at + 1;
    return at;
}

static uint64_t since_start(const struct profile *p, uint64_t time_ns)
{
    return time_ns > p->first_ns ? time_ns - p->first_ns : 0;
}

/* What a wait is called by: the innermost function in user space, else the innermost. */
static uint32_t waiting_in(struct name_finder *f, const struct profile_sample *s)
{
    const struct calls *calls = &f->profile->calls;
    uint32_t node = f->profile->call_nodes[s->node], leaf = node;
    while (node && calls_symbol(calls, calls->nodes[node].frame)->is_kernel)
        node = calls->nodes[node].parent;
    node = node ? node : leaf;
    return node ? name_of_symbol(f, &calls->frames[calls->nodes[node].frame])
                : name_of_comm(f, s->task);
}

static int longest_first(const void *left, const void *right)
{
    const struct flame_wait *a = left, *b = right;
    return a->length_ns < b->length_ns ? 1 : a->length_ns > b->length_ns ? -1 : 0;
}

static int by_start(const void *left, const void *right)
{
    const struct flame_wait *a = left, *b = right;
    return a->from_ns < b->from_ns ? -1 : a->from_ns > b->from_ns;
}

static void sort_waits(struct flame *flame)
{
    if (!flame->wait_count)
        return;
    qsort(flame->waits, flame->wait_count, sizeof(*flame->waits), longest_first);
    if (flame->wait_count > FLAME_WAITS_MAX) {
        flame->waits_left_out = flame->wait_count - FLAME_WAITS_MAX;
        flame->wait_count = FLAME_WAITS_MAX;
    }
    qsort(flame->waits, flame->wait_count, sizeof(*flame->waits), by_start);
}

/* Samples come in the order of time. */
static void add_moments(struct flame *flame, struct builder *b, struct name_finder *f,
                        uint32_t event)
{
    const struct profile *p = f->profile;
    CLEANUP(memory_freep) uint32_t *of_task = memory_zalloc(p->tasks.count + 1, sizeof(*of_task));
    size_t seen = 0;
    if (!p->first_ns && !p->last_ns) /* a recording without times */
        return;
    for (size_t i = 0; i < p->sample_count; i++)
        seen += p->samples[i].event == event;
    flame->moment_every = (seen + FLAME_MOMENTS_MAX - 1) / FLAME_MOMENTS_MAX;
    flame->moment_every = flame->moment_every ? flame->moment_every : 1;
    seen = 0;
    for (size_t i = 0; i < p->sample_count; i++) {
        const struct profile_sample *s = &p->samples[i];
        uint64_t at_ns = since_start(p, s->time_ns);
        if (s->event == event && seen++ % flame->moment_every == 0)
            ARRAY_PUSH(flame->moments, flame->moment_count, flame->moment_capacity) =
                (struct flame_moment){
                    .at_ns = at_ns,
                    .node = b->nodes[place_of(b, f, s->task, p->call_nodes[s->node])].place,
                    .thread = thread_of(flame, p, s->task, of_task)};
        if (s->event != event && p->events[s->event].is_off_cpu)
            ARRAY_PUSH(flame->waits, flame->wait_count, flame->wait_capacity) =
                (struct flame_wait){.from_ns = at_ns,
                                    .length_ns = s->weight,
                                    .thread = thread_of(flame, p, s->task, of_task),
                                    .name = waiting_in(f, s)};
    }
    sort_waits(flame);
}

void flame_from_profile(struct flame *flame, const struct profile *p, uint32_t event,
                        const char *label)
{
    *flame = (struct flame){.label = memory_strdup(label),
                            .path = p->path ? memory_strdup(p->path) : NULL,
                            .event = memory_strdup(p->events[event].name),
                            .is_time = p->events[event].is_time,
                            .lost = perfdata_lost(&p->losses)};
    struct builder b;
    builder_init(&b);
    struct name_finder f = {
        .flame = flame,
        .profile = p,
        .of_symbol = memory_zalloc(2 * p->calls.symbol_count + 2, sizeof(uint32_t)),
        .of_comm = memory_zalloc(p->tasks.comms.count + 1, sizeof(uint32_t)),
    };
    struct pending *pending = memory_zalloc(p->calls.cell_count + 1, sizeof(*pending));
    for (size_t i = 0; i < p->calls.cell_count; i++) {
        const struct call_cell *cell = &p->calls.cells[i];
        if (cell->event != event)
            continue;
        uint32_t at = place_of(&b, &f, cell->task, cell->node);
        pending[i] = (struct pending){at, cell->samples, cell->weight};
        for (uint32_t up = at; up != IDTABLE_NONE; up = b.nodes[up].parent) {
            b.nodes[up].samples[0] += cell->samples;
            b.nodes[up].weight[0] += cell->weight;
        }
    }
    uint64_t *self_samples = memory_zalloc(b.count, sizeof(uint64_t));
    uint64_t *self_weight = memory_zalloc(b.count, sizeof(uint64_t));
    for (size_t i = 0; i < p->calls.cell_count; i++) {
        self_samples[pending[i].node] += pending[i].samples;
        self_weight[pending[i].node] += pending[i].weight;
    }
    struct flattening to = {&b, flame, self_samples, self_weight};
    walk(&b, flatten, &to);
    flame->samples = b.nodes[0].samples[0];
    flame->weight = b.nodes[0].weight[0];
    if (p->sample_count) {
        add_order(flame, &b, &f, event);
        add_moments(flame, &b, &f, event);
    }
    free(pending);
    free(self_samples);
    free(self_weight);
    free(f.of_symbol);
    free(f.of_comm);
    builder_done(&b);
}

void flame_sum(struct flame *flame)
{
    uint32_t path[FLAME_DEPTH_MAX + 2] = {0};
    flame->samples = flame->weight = 0;
    for (size_t i = 0; i < flame->node_count; i++) {
        struct flame_node *n = &flame->nodes[i];
        n->samples = n->weight = 0;
        if (n->depth > FLAME_DEPTH_MAX)
            n->depth = FLAME_DEPTH_MAX;
        path[n->depth] = (uint32_t)i;
        for (uint32_t d = 0; d <= n->depth; d++) {
            flame->nodes[path[d]].samples += n->self_samples;
            flame->nodes[path[d]].weight += n->self_weight;
        }
        flame->samples += n->self_samples;
        flame->weight += n->self_weight;
    }
}

void flame_done(struct flame *flame)
{
    for (size_t i = 0; i < flame->name_count; i++) {
        free(flame->names[i].text);
        free(flame->names[i].dso);
        free(flame->names[i].known_as);
    }
    free(flame->names);
    free(flame->nodes);
    free(flame->order);
    for (size_t i = 0; i < flame->thread_count; i++)
        free(flame->threads[i].name);
    free(flame->threads);
    free(flame->moments);
    free(flame->waits);
    free(flame->sources);
    free(flame->path);
    free(flame->label);
    free(flame->event);
    free(flame->notes);
    *flame = (struct flame){0};
}

/* ---- two trees ---- */

static uint64_t name_hash(const void *items, uint32_t id)
{
    return hash_string(flame_known_as(&((const struct flame_name *)items)[id]));
}

static uint32_t pair_name(struct flame_pair *pair, struct idtable *table,
                          const struct flame_name *name)
{
    uint32_t slot, id;
    IDTABLE_EACH(table, hash_string(flame_known_as(name)), slot, id)
    if (str_eq(flame_known_as(&pair->names[id]), flame_known_as(name))) {
        pair->names[id].flags |= name->flags & (FLAME_MORE | FLAME_LESS);
        return id;
    }
    id = (uint32_t)pair->name_count;
    ARRAY_PUSH(pair->names, pair->name_count, pair->name_capacity) = *name;
    idtable_put(table, slot, id);
    if (idtable_is_crowded(table))
        idtable_grow(table, name_hash, pair->names);
    return id;
}

struct pair_self {
    uint64_t samples[2], weight[2];
};

struct pair_flattening {
    struct builder *b;
    struct flame_pair *pair;
    const struct pair_self *self;
};

static void flatten_pair(void *context, uint32_t node, uint32_t depth)
{
    struct pair_flattening *f = context;
    const struct loose_node *n = &f->b->nodes[node];
    struct flame_pair_node *to =
        &ARRAY_PUSH(f->pair->nodes, f->pair->node_count, f->pair->node_capacity);
    *to = (struct flame_pair_node){.depth = depth, .name = n->name};
    for (size_t s = 0; s < 2; s++) {
        to->samples[s] = n->samples[s];
        to->weight[s] = n->weight[s];
        to->self_samples[s] = f->self[node].samples[s];
        to->self_weight[s] = f->self[node].weight[s];
    }
}

void flame_pair_init(struct flame_pair *pair, const struct flame *base, const struct flame *new)
{
    *pair = (struct flame_pair){.sides = {base, new}};
    struct builder b;
    builder_init(&b);
    struct idtable names;
    idtable_init(&names, 10);
    struct pair_self *self = memory_zalloc(base->node_count + new->node_count + 2, sizeof(*self));
    for (size_t s = 0; s < 2; s++) {
        const struct flame *f = pair->sides[s];
        uint32_t path[FLAME_DEPTH_MAX + 2] = {0};
        for (size_t i = 0; i < f->node_count; i++) {
            const struct flame_node *n = &f->nodes[i];
            uint32_t depth = n->depth < FLAME_DEPTH_MAX ? n->depth : FLAME_DEPTH_MAX;
            uint32_t at = child_of(&b, path[depth], pair_name(pair, &names, &f->names[n->name]));
            path[depth + 1] = at;
            b.nodes[at].samples[s] += n->samples;
            b.nodes[at].weight[s] += n->weight;
            self[at].samples[s] += n->self_samples;
            self[at].weight[s] += n->self_weight;
        }
    }
    struct pair_flattening to = {&b, pair, self};
    walk(&b, flatten_pair, &to);
    free(self);
    idtable_done(&names);
    builder_done(&b);
}

void flame_pair_done(struct flame_pair *pair)
{
    free(pair->names);
    free(pair->nodes);
    *pair = (struct flame_pair){0};
}
