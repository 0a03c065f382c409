/* SPDX-License-Identifier: MIT */
/* Call chains of the kernel by number, and their names: see trace.h. */
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"
#include "monitors/trace.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>

/* What the kernel does to write the record down. */
static const char *const machinery[] = {"perf_trace_",  "__traceiter_", "perf_tp_",
                                        "trace_event_", "perf_swevent", "__perf_",
                                        "perf_event_",  "__bpf_trace_"};

/* Where an interrupt begins; what it interrupted has nothing to do with it. */
static const char *const interrupts[] = {"asm_sysvec_", "asm_common_interrupt", "el1h_64_irq",
                                         "el0t_64_irq", "ret_from_exception"};

void chains_init(struct chains *c)
{
    *c = (struct chains){0};
    idtable_init(&c->table, 8);
}

void chains_done(struct chains *c)
{
    free(c->addresses);
    free(c->items);
    idtable_done(&c->table);
    symbols_free(c->symbols);
    *c = (struct chains){0};
}

void chains_clear(struct chains *c)
{
    idtable_done(&c->table);
    idtable_init(&c->table, 8);
    c->address_count = c->count = 0;
}

static uint64_t hash_of_item(const void *items, uint32_t id)
{
    return ((const struct chain_place *)items)[id].hash;
}

uint32_t chains_intern(struct chains *c, const uint64_t *chain, size_t count)
{
    uint64_t hash = 0;
    uint32_t kept = 0, slot, id;
    size_t first = c->address_count;
    for (size_t i = 0; i < count; i++) {
        if (chain[i] >= PERF_CONTEXT_MAX) /* a mark: here begins the kernel's part, or a user's */
            continue;
        ARRAY_PUSH(c->addresses, c->address_count, c->address_capacity) = chain[i];
        hash = hash_mix(hash, chain[i]);
        kept++;
    }
    IDTABLE_EACH(&c->table, hash, slot, id)
    {
        const struct chain_place *p = &c->items[id];
        if (p->hash == hash && p->count == kept &&
            (kept == 0 ||
             memcmp(c->addresses + p->first, c->addresses + first, kept * sizeof(uint64_t)) == 0)) {
            c->address_count = first;
            return id;
        }
    }
    id = (uint32_t)c->count;
    ARRAY_PUSH(c->items, c->count, c->capacity) = (struct chain_place){first, kept, hash};
    idtable_put(&c->table, slot, id);
    if (idtable_is_crowded(&c->table))
        idtable_grow(&c->table, hash_of_item, c->items);
    return id;
}

static bool is_left_out(const char *name, const char *const *skips)
{
    for (size_t i = 0; i < ARRAY_COUNT(machinery); i++)
        if (str_has_prefix(name, machinery[i]))
            return true;
    for (; *skips; skips++)
        if (str_eq(name, *skips))
            return true;
    return false;
}

static bool ends_chain(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(interrupts); i++)
        if (str_has_prefix(name, interrupts[i]))
            return true;
    return false;
}

/* Names may be any bytes; what stands in a metric's name is printed as it is. */
static void put_name(struct strbuf *out, const char *name)
{
    if (out->length)
        strbuf_putc(out, '.');
    strbuf_put_safe(out, name, strlen(name), 128);
}

static char *join(const struct symbols_request *requests, size_t count, const char *const *skips)
{
    struct strbuf out = {0};
    bool begun = false;
    for (size_t i = 0; i < count; i++) {
        const struct function *f = requests[i].frames[0].function;
        const char *name = f ? f->name : "[unknown]";
        if (!begun && is_left_out(name, skips))
            continue;
        begun = true;
        put_name(&out, name);
        if (ends_chain(name))
            break;
    }
    return out.data ? out.data : memory_strdup("[unknown]");
}

void chains_name(struct chains *c, const char *const *skips, char **names)
{
    if (!c->symbols)
        c->symbols = symbols_new(&(struct symbols_options){.thread_count = 1});
    struct module *kernel = symbols_kernel(c->symbols);
    CLEANUP(memory_freep)
    struct symbols_request *requests = memory_zalloc(c->address_count + 1, sizeof(*requests));
    for (size_t i = 0; i < c->count; i++)
        for (size_t k = 0; k < c->items[i].count; k++) {
            size_t place = c->items[i].first + k;
            /* A caller's address is the one behind its call. */
            requests[place].location =
                (struct location){kernel, c->addresses[place] - (k > 0 ? 1 : 0)};
        }
    if (c->address_count)
        symbols_resolve(c->symbols, requests, c->address_count, SYMBOLS_NAMES);
    for (size_t i = 0; i < c->count; i++)
        names[i] = join(requests + c->items[i].first, c->items[i].count, skips);
}

size_t chains_first(char *const *names, size_t index)
{
    size_t first = 0;
    while (!str_eq(names[first], names[index]))
        first++;
    return first;
}

int chains_check(struct error *err)
{
    FILE *f = fopen("/proc/kallsyms", "re");
    char line[512];
    bool hidden = true;
    for (size_t i = 0; f && hidden && i < 64 && fgets(line, sizeof(line), f); i++)
        hidden = strtoull(line, NULL, 16) == 0;
    if (f)
        fclose(f);
    if (hidden)
        return error_set(err, -EACCES,
                         "the kernel hides the names of its functions; run as root, or run: sudo "
                         "sysctl kernel.kptr_restrict=0");
    return 0;
}
