/* SPDX-License-Identifier: MIT */
/* See functions.h. */
#include "exact/functions.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"
#include "symbols/symbols.h"

#include <errno.h>
#include <stdio.h>

static int by_name(const void *a, const void *b)
{
    const struct exact_function *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->module, y->module);
}

static int by_size(const void *a, const void *b)
{
    const struct exact_function *x = a, *y = b;
    return x->instructions != y->instructions ? (x->instructions < y->instructions ? 1 : -1)
                                              : by_name(a, b);
}

static void function_done(struct exact_function *f)
{
    free(f->name);
    free(f->module);
}

/* Equal ones become one, the largest comes first. */
static void settle(struct exact_functions *f)
{
    size_t kept = 0;
    if (f->count)
        qsort(f->items, f->count, sizeof(*f->items), by_name);
    for (size_t i = 0; i < f->count; i++) {
        f->instructions += f->items[i].instructions;
        if (kept && by_name(&f->items[kept - 1], &f->items[i]) == 0) {
            f->items[kept - 1].instructions += f->items[i].instructions;
            function_done(&f->items[i]);
        } else {
            f->items[kept++] = f->items[i];
        }
    }
    f->count = kept;
    if (kept)
        qsort(f->items, f->count, sizeof(*f->items), by_size);
}

static void add(struct exact_functions *f, const char *name, const char *module,
                uint64_t instructions)
{
    ARRAY_PUSH(f->items, f->count, f->capacity) =
        (struct exact_function){memory_strdup(name), memory_strdup(module), instructions};
}

/* What a place is called: by its symbol, or by what is known of it. */
static void add_named(struct exact_functions *f, const struct exact_site *site, const char *file,
                      const struct symbols_request *r)
{
    const char *slash = strrchr(file, '/'), *module = slash ? slash + 1 : file;
    const struct function *function =
        r->frame_count ? r->frames[r->frame_count - 1].function : NULL;
    if (!*file)
        add(f, "[code made at run time]", "", site->instructions);
    else
        add(f, function ? function->name : "[unknown]", module, site->instructions);
}

void exact_functions_find(struct exact_functions *f, const struct exact_counts *c)
{
    struct symbols *symbols = symbols_new(&(struct symbols_options){.no_debuginfod = true});
    struct symbols_request *requests = memory_zalloc(c->site_count + 1, sizeof(*requests));
    struct module **modules = memory_zalloc(c->file_count + 1, sizeof(*modules));
    const struct exact_site **sites = memory_zalloc(c->site_count + 1, sizeof(*sites));
    size_t count = 0;
    *f = (struct exact_functions){0};
    for (size_t i = 0; i < c->file_count; i++)
        modules[i] = symbols_module(symbols, &(struct module_key){.path = c->files[i]});
    for (size_t i = 0; i < c->site_capacity; i++)
        if (c->sites[i].instructions) {
            requests[count].location =
                (struct location){modules[c->sites[i].file], c->sites[i].offset};
            sites[count++] = &c->sites[i];
        }
    symbols_resolve(symbols, requests, count, SYMBOLS_NAMES);
    for (size_t i = 0; i < count; i++)
        add_named(f, sites[i], c->files[sites[i]->file], &requests[i]);
    for (size_t i = 0; i < c->named_count; i++)
        add(f, c->named[i].name, c->named[i].module, c->named[i].instructions);
    if (c->unplaced)
        add(f, "[not told apart]", "", c->unplaced);
    settle(f);
    symbols_free(symbols);
    free(requests);
    free(modules);
    free(sites);
}

void exact_functions_done(struct exact_functions *f)
{
    for (size_t i = 0; i < f->count; i++)
        function_done(&f->items[i]);
    free(f->items);
    *f = (struct exact_functions){0};
}

/* ---- changes ---- */

static int64_t change_of(const struct exact_change *c)
{
    return (int64_t)(c->new - c->base);
}

static int by_change(const void *a, const void *b)
{
    int64_t x = change_of(a), y = change_of(b);
    uint64_t one = (uint64_t)(x < 0 ? -x : x), other = (uint64_t)(y < 0 ? -y : y);
    return one != other ? (one < other ? 1 : -1)
                        : strcmp(((const struct exact_change *)a)->name,
                                 ((const struct exact_change *)b)->name);
}

static struct exact_function *sorted_copy(const struct exact_functions *f)
{
    struct exact_function *copy = memory_zalloc(f->count + 1, sizeof(*copy));
    if (f->count) {
        memcpy(copy, f->items, f->count * sizeof(*copy));
        qsort(copy, f->count, sizeof(*copy), by_name);
    }
    return copy;
}

void exact_changes_find(struct exact_changes *c, const struct exact_functions *base,
                        const struct exact_functions *new)
{
    CLEANUP(memory_freep) struct exact_function *a = sorted_copy(base);
    CLEANUP(memory_freep) struct exact_function *b = sorted_copy(new);
    *c = (struct exact_changes){.items =
                                    memory_zalloc(base->count + new->count + 1, sizeof(*c->items))};
    for (size_t i = 0, k = 0; i < base->count || k < new->count;) {
        int order = i == base->count ? 1 : k == new->count ? -1 : by_name(&a[i], &b[k]);
        const struct exact_function *any = order <= 0 ? &a[i] : &b[k];
        struct exact_change change = {any->name, any->module, order <= 0 ? a[i].instructions : 0,
                                      order >= 0 ? b[k].instructions : 0};
        if (change.base != change.new)
            c->items[c->count++] = change;
        i += order <= 0;
        k += order >= 0;
    }
    if (c->count)
        qsort(c->items, c->count, sizeof(*c->items), by_change);
}

void exact_changes_done(struct exact_changes *c)
{
    free(c->items);
    *c = (struct exact_changes){0};
}

/* ---- as a file ---- */

int exact_functions_write(const struct exact_functions *f, const char *path, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    for (size_t i = 0; i < f->count; i++)
        strbuf_printf(&text, "%llu %s\t%s\n", (unsigned long long)f->items[i].instructions,
                      f->items[i].module, f->items[i].name);
    return file_write(path, strbuf_text(&text), text.length, err);
}

int exact_functions_read(struct exact_functions *f, const char *path, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    *f = (struct exact_functions){0};
    int r = file_read(path, &text, err);
    if (r < 0)
        return r;
    char *save = NULL;
    for (char *line = strtok_r(text.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *end, *tab;
        uint64_t instructions = strtoull(line, &end, 10);
        if (end == line || *end != ' ' || !(tab = strchr(end, '\t')))
            return error_set(err, -EBADMSG, "%s: not a list of functions", path);
        *tab = '\0';
        add(f, tab + 1, end + 1, instructions);
    }
    settle(f);
    return 0;
}
