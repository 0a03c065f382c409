/* SPDX-License-Identifier: MIT */
/* Names that travel with a recording: see portable.h. */
#include "symbols/portable.h"
#include "base/memory.h"
#include "symbols/internal.h"
#include "symbols/names/perfmap.h"
#include "symbols/tables/linetab.h"

#define PORTABLE_MAGIC 0x31656c6261747200ull /* and the version of the layout */
#define PORTABLE_SOURCE "portable"
#define ENTRY_COUNT_MAX (1u << 20)

/* Stands before each entry, which has the path and then the bytes behind it, each padded to a
 * multiple of eight. */
struct portable_head {
    uint32_t kind;        /* enum portable_kind */
    uint32_t module_kind; /* enum module_kind */
    uint64_t lines_shift;
    uint64_t path_size, size;
    struct build_id id;
    uint8_t unused[7];
};

_Static_assert(sizeof(struct portable_head) % 8 == 0, "what follows is aligned");

static void put_entry(struct strbuf *out, struct portable_head head, const char *path,
                      const void *bytes, size_t size)
{
    head.path_size = strlen(path);
    head.size = size;
    strbuf_append(out, (const char *)&head, sizeof(head));
    strbuf_append(out, path, (size_t)head.path_size);
    strbuf_pad(out, '\0', -(size_t)head.path_size & 7);
    strbuf_append(out, bytes, size);
    strbuf_pad(out, '\0', -size & 7);
}

/* A function as the table of its module has it, long enough for the address that was hit. */
static void add_function(struct symtab_builder *builder, const struct module *m,
                         const struct symbols_request *request)
{
    const struct function *f = request->frames[request->frame_count - 1].function;
    if (!f || (f->size == 0 && f->start == 0))
        return;
    uint64_t hit = request->location.address, size = f->size;
    if (hit >= f->start && hit - f->start >= size)
        size = hit - f->start + 1;
    const char *part = f->module != m ? f->module->name : "";
    symtab_set_part(builder, part, strlen(part));
    uint64_t start = symtab_to_address(&m->table, f->start);
    symtab_add(builder, start, size, start + size, SYMTAB_GLOBAL, f->linkage_name,
               strlen(f->linkage_name));
}

static void put_symbols(struct strbuf *out, const struct portable_head *head,
                        const struct module *m, const struct symbols_request *const *requests,
                        size_t count)
{
    struct symtab_builder builder = {0};
    struct symtab table;
    for (size_t i = 0; i < m->table.segment_count; i++)
        symtab_add_segment(&builder, m->table.segments[i].offset, m->table.segments[i].address,
                           m->table.segments[i].size);
    for (size_t i = 0; i < count; i++) {
        const struct function *f = requests[i]->frames[requests[i]->frame_count - 1].function;
        const struct symbols_request *next = i + 1 < count ? requests[i + 1] : NULL;
        if (!next || next->frames[next->frame_count - 1].function != f) /* the last hit in it */
            add_function(&builder, m, requests[i]);
    }
    symtab_build(&builder, &table);
    symtab_seal(&table, &head->id, PORTABLE_SOURCE);
    struct portable_head own = *head;
    own.kind = PORTABLE_SYMBOLS;
    put_entry(out, own, m->path, table.block.bytes, table.block.size);
    symtab_done(&table);
}

static void put_lines(struct strbuf *out, const struct portable_head *head, const struct module *m)
{
    if (!m->lines)
        return;
    struct sealed_block block = linetab_seal(m->lines, &head->id, PORTABLE_SOURCE);
    struct portable_head own = *head;
    own.kind = PORTABLE_LINES;
    put_entry(out, own, m->path, block.bytes, block.size);
    sealed_block_done(&block);
}

/* The file of a JIT compiler whose code was hit. */
static void put_file(struct strbuf *out, const struct module *m)
{
    CLEANUP(strbuf_done) struct strbuf bytes = {0};
    const char *path = m->piece_count ? m->pieces[0].file : NULL;
    if (path && perfmap_read_file(path, &bytes) == PERFMAP_READ)
        put_entry(out, (struct portable_head){.kind = PORTABLE_FILE}, path, bytes.data,
                  bytes.length);
}

static void put_module(struct strbuf *out, struct module *m,
                       const struct symbols_request *const *requests, size_t count)
{
    struct portable_head head = {
        .module_kind = m->kind, .lines_shift = m->lines_shift, .id = m->recorded_id};
    pthread_mutex_lock(&m->lock);
    if (m->kind == MODULE_CODE) {
        put_file(out, m);
    } else {
        put_symbols(out, &head, m, requests, count);
        put_lines(out, &head, m);
    }
    pthread_mutex_unlock(&m->lock);
}

static int by_place(const void *a, const void *b)
{
    const struct location *x = &(*(const struct symbols_request *const *)a)->location;
    const struct location *y = &(*(const struct symbols_request *const *)b)->location;
    if (x->module != y->module)
        return x->module->index < y->module->index ? -1 : 1;
    return x->address < y->address ? -1 : x->address > y->address;
}

void symbols_put_portable(struct symbols *symbols, const struct symbols_request *requests,
                          size_t count, struct strbuf *out)
{
    (void)symbols;
    const uint64_t magic = PORTABLE_MAGIC;
    const struct symbols_request **sorted = memory_zalloc(count + 1, sizeof(const void *));
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (requests[i].location.module && requests[i].frame_count)
            sorted[kept++] = &requests[i];
    qsort(sorted, kept, sizeof(const void *), by_place);
    strbuf_append(out, (const char *)&magic, sizeof(magic));
    for (size_t first = 0, end; first < kept; first = end) {
        struct module *m = sorted[first]->location.module;
        for (end = first + 1; end < kept && sorted[end]->location.module == m;)
            end++;
        put_module(out, m, sorted + first, end - first);
    }
    free(sorted);
}

bool symbols_take_portable(struct symbols *symbols, const void *bytes, size_t size)
{
    uint64_t magic;
    if (size < sizeof(magic) || memcmp(bytes, &(uint64_t){PORTABLE_MAGIC}, sizeof(magic)) != 0)
        return false;
    const char *at = (const char *)bytes + sizeof(magic), *end = (const char *)bytes + size;
    while (symbols->portable_count < ENTRY_COUNT_MAX) {
        struct portable_head head;
        if ((size_t)(end - at) < sizeof(head))
            break;
        memcpy(&head, at, sizeof(head));
        at += sizeof(head);
        size_t left = (size_t)(end - at);
        if (head.path_size > left || head.id.size > BUILD_ID_MAX)
            break;
        const char *path = at;
        size_t path_room = ((size_t)head.path_size + 7) & ~(size_t)7;
        if (path_room > left || head.size > left - path_room)
            break;
        at += path_room;
        ARRAY_PUSH(symbols->portable, symbols->portable_count, symbols->portable_capacity) =
            (struct portable_entry){.kind = (enum portable_kind)head.kind,
                                    .module_kind = (enum module_kind)head.module_kind,
                                    .lines_shift = head.lines_shift,
                                    .path = path,
                                    .path_size = (size_t)head.path_size,
                                    .id = head.id,
                                    .bytes = at,
                                    .size = (size_t)head.size};
        size_t room = ((size_t)head.size + 7) & ~(size_t)7;
        at = room > (size_t)(end - at) ? end : at + room;
    }
    return true;
}

static const struct portable_entry *find_entry(const struct symbols *symbols,
                                               enum portable_kind kind, enum module_kind of,
                                               const char *path, const struct build_id *id)
{
    size_t length = strlen(path);
    for (size_t i = 0; i < symbols->portable_count; i++) {
        const struct portable_entry *e = &symbols->portable[i];
        if (e->kind == kind && e->module_kind == of && e->path_size == length &&
            memcmp(e->path, path, length) == 0 && (!id || build_id_equal(&e->id, id)))
            return e;
    }
    return NULL;
}

/* Tables want memory that is aligned and their own. */
static struct sealed_block copy_block(const struct portable_entry *e)
{
    struct sealed_block block = {.bytes = memory_alloc(e->size + 1), .size = e->size};
    memcpy(block.bytes, e->bytes, e->size);
    return block;
}

bool portable_symbols(struct module *m)
{
    const struct portable_entry *e =
        find_entry(m->symbols, PORTABLE_SYMBOLS, m->kind, m->path, &m->recorded_id);
    return e && symtab_unseal(&m->table, copy_block(e), &e->id, NULL, NULL) == 0;
}

bool portable_lines(struct module *m)
{
    const struct portable_entry *e =
        find_entry(m->symbols, PORTABLE_LINES, m->kind, m->path, &m->recorded_id);
    struct linetab table;
    if (!e || linetab_unseal(&table, copy_block(e), &e->id, NULL, NULL) < 0)
        return false;
    m->lines = memory_alloc(sizeof(*m->lines));
    *m->lines = table;
    m->lines_shift = e->lines_shift;
    return true;
}

bool portable_file(const struct symbols *symbols, const char *path, struct strbuf *out)
{
    const struct portable_entry *e = find_entry(symbols, PORTABLE_FILE, 0, path, NULL);
    if (e)
        strbuf_append(out, e->bytes, e->size);
    return e;
}
