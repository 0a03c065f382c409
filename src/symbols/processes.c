/* SPDX-License-Identifier: MIT */
/* The address spaces of all processes of a recording: see addrspace.h. */
#include "symbols/addrspace.h"

#include "base/memory.h"
#include "symbols/internal.h"
#include "symbols/names/jitdump.h"
#include "symbols/names/perfmap.h"

#define ENDED_COUNT 1024u /* processes whose maps are kept after their end */
#define BPF_MODULE "[bpf]"

/* Code that a JIT compiler made at some time. */
struct jit_event {
    uint64_t time_ns, start, size, offset;
};

struct jit_dump {
    char *path;
    struct module *module;
    struct jit_event *events; /* by time */
    size_t count, capacity;
    size_t applied; /* those before are in the maps */
    struct jit_dump *next;
};

struct process {
    pid_t pid;
    struct addrspace *space;
    struct jit_dump *dumps;
    struct addrspace *all_jit; /* all code of the dumps, whenever it was made; NULL until needed */
    bool ended;
    uint64_t end_number; /* which end of a process it was */
    struct process *next;
};

struct processes {
    struct symbols *symbols;
    struct addrspace *kernel; /* code that came at run time */
    struct process **table;   /* hash table by pid */
    size_t table_size, count;
    struct {
        pid_t pid;
        uint64_t number;
    } ended[ENDED_COUNT]; /* a ring */
    uint64_t end_count;
};

struct processes *processes_new(struct symbols *symbols)
{
    struct processes *p = memory_zalloc(1, sizeof(*p));
    p->symbols = symbols;
    p->kernel = addrspace_new();
    return p;
}

static void process_free(struct process *process)
{
    while (process->dumps) {
        struct jit_dump *next = process->dumps->next;
        free(process->dumps->path);
        free(process->dumps->events);
        free(process->dumps);
        process->dumps = next;
    }
    addrspace_free(process->space);
    addrspace_free(process->all_jit);
    free(process);
}

void processes_free(struct processes *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->table_size; i++) {
        for (struct process *at = p->table[i], *next; at; at = next) {
            next = at->next;
            process_free(at);
        }
    }
    free(p->table);
    addrspace_free(p->kernel);
    free(p);
}

static size_t bucket(const struct processes *p, pid_t pid)
{
    return (size_t)((uint32_t)pid * 2654435761u >> 4) & (p->table_size - 1);
}

static struct process **find_process(const struct processes *p, pid_t pid)
{
    if (p->table_size == 0)
        return NULL;
    struct process **at = &p->table[bucket(p, pid)];
    while (*at && (*at)->pid != pid)
        at = &(*at)->next;
    return *at ? at : NULL;
}

static void grow(struct processes *p)
{
    if (p->count < p->table_size)
        return;
    struct process **old = p->table;
    size_t old_size = p->table_size;
    p->table_size = old_size ? old_size * 2 : 64;
    p->table = memory_zalloc(p->table_size, sizeof(*p->table));
    for (size_t i = 0; i < old_size; i++) {
        for (struct process *at = old[i], *next; at; at = next) {
            next = at->next;
            struct process **head = &p->table[bucket(p, at->pid)];
            at->next = *head;
            *head = at;
        }
    }
    free(old);
}

static void remove_process(struct processes *p, pid_t pid)
{
    struct process **at = find_process(p, pid);
    if (!at)
        return;
    struct process *process = *at;
    *at = process->next;
    p->count--;
    process_free(process);
}

/* Takes the space over. */
static struct process *add_process(struct processes *p, pid_t pid, struct addrspace *space)
{
    grow(p);
    struct process *process = memory_zalloc(1, sizeof(*process));
    process->pid = pid;
    process->space = space;
    struct process **head = &p->table[bucket(p, pid)];
    process->next = *head;
    *head = process;
    p->count++;
    return process;
}

static struct process *get_process(struct processes *p, pid_t pid)
{
    struct process **at = find_process(p, pid);
    return at ? *at : add_process(p, pid, addrspace_new());
}

static int by_time(const void *a, const void *b)
{
    const struct jit_event *x = a, *y = b;
    return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

/* The module's address of each piece by the compiler's number: open addressing. */
struct place {
    uint64_t index, address;
    bool used;
};

static struct place *find_place(struct place *table, size_t size, uint64_t index)
{
    size_t at = (size_t)(index * 0x9e3779b97f4a7c15ull >> 32) & (size - 1);
    while (table[at].used && table[at].index != index)
        at = (at + 1) & (size - 1);
    return &table[at];
}

/* Names of files repeat from line to line. */
static void copy_lines(struct module *m, const struct jitdump_code *code,
                       struct code_piece *details)
{
    struct code_line *lines = arena_alloc(&m->arena, code->line_count * sizeof(*lines));
    for (size_t i = 0; i < code->line_count; i++) {
        const char *file = code->lines[i].file;
        lines[i] = code->lines[i];
        if (i && file == code->lines[i - 1].file)
            lines[i].file = lines[i - 1].file;
        else if (file)
            lines[i].file = arena_strdup(&m->arena, file);
    }
    details->lines = lines;
    details->line_count = code->line_count;
}

static void add_events(struct jit_dump *jit, const struct jitdump *dump)
{
    size_t size = 64;
    while (size < dump->count * 2)
        size *= 2;
    struct place *places = memory_zalloc(size, sizeof(*places));
    const char *file = arena_strdup(&jit->module->arena, jit->path);
    for (size_t i = 0; i < dump->count; i++) {
        const struct jitdump_code *code = &dump->codes[i];
        struct place *place = find_place(places, size, code->index);
        if (code->moved && !place->used)
            continue;
        if (!code->moved) { /* a piece that moved keeps its place in the module */
            struct code_piece details = {.file = file, .file_offset = code->bytes_offset};
            copy_lines(jit->module, code, &details);
            uint64_t address = module_add_piece(jit->module, code->name, code->size, &details);
            *place = (struct place){.index = code->index, .address = address, .used = true};
        }
        ARRAY_PUSH(jit->events, jit->count, jit->capacity) =
            (struct jit_event){code->time_ns, code->address, code->size, place->address};
    }
    free(places);
}

static void load_dump(struct processes *p, struct process *process, const char *path)
{
    for (struct jit_dump *jit = process->dumps; jit; jit = jit->next)
        if (str_eq(jit->path, path))
            return;
    struct jit_dump *jit = memory_zalloc(1, sizeof(*jit));
    jit->path = memory_strdup(path);
    const char *slash = strrchr(path, '/');
    jit->module = symbols_named_module(p->symbols, MODULE_CODE, slash ? slash + 1 : path);
    jit->next = process->dumps;
    process->dumps = jit;
    addrspace_free(process->all_jit);
    process->all_jit = NULL;

    CLEANUP(strbuf_done) struct strbuf bytes = {0};
    CLEANUP(memory_freep) char *inside = memory_printf("/proc/%d/root%s", (int)process->pid, path);
    CLEANUP(jitdump_done) struct jitdump dump = {0};
    struct error err;
    bool is_brought = portable_file(p->symbols, path, &bytes);
    enum perfmap_found found = is_brought ? PERFMAP_READ : perfmap_read_file(path, &bytes);
    if (found == PERFMAP_MISSING)
        found = perfmap_read_file(inside, &bytes);
    if (found != PERFMAP_READ) {
        symbols_diagnose(p->symbols, jit->module, DIAGNOSTIC_FILE_MISSING,
                         found == PERFMAP_FOREIGN
                             ? "%s belongs to another user and is ignored: JIT code has no names; "
                               "to use it, become that user or give the file to yourself"
                             : "%s was not found: JIT code has no names",
                         path);
        return;
    }
    if (jitdump_parse(bytes.data, bytes.length, &dump, &err) < 0) {
        symbols_diagnose(p->symbols, jit->module, DIAGNOSTIC_JIT_MALFORMED, "%s: %s", path,
                         err.message);
        return;
    }
    if (dump.truncated)
        symbols_diagnose(p->symbols, jit->module, DIAGNOSTIC_JIT_MALFORMED,
                         "%s ends within a record: using what comes before it", path);
    add_events(jit, &dump);
    if (jit->count)
        qsort(jit->events, jit->count, sizeof(*jit->events), by_time);
}

static void apply_event(struct addrspace *space, const struct jit_dump *jit, size_t index)
{
    const struct jit_event *e = &jit->events[index];
    addrspace_map(space, e->start, e->size, e->offset, jit->module);
}

/* Code made up to a time enters the maps. */
static void apply_dumps(struct process *process, uint64_t time_ns)
{
    for (struct jit_dump *jit = process->dumps; jit; jit = jit->next)
        while (jit->applied < jit->count &&
               (time_ns == 0 || jit->events[jit->applied].time_ns <= time_ns))
            apply_event(process->space, jit, jit->applied++);
}

static bool is_jitdump(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    if (!str_has_prefix(name, "jit-"))
        return false;
    size_t digits = strspn(name + 4, "0123456789");
    return digits > 0 && str_eq(name + 4 + digits, ".dump");
}

void processes_map(struct processes *p, pid_t pid, const struct process_map *map)
{
    struct process *process = get_process(p, pid);
    if (process->ended) { /* the number is used again, and the fork was not seen */
        remove_process(p, pid);
        process = get_process(p, pid);
    }
    if (is_jitdump(map->path)) {
        load_dump(p, process, map->path);
        return;
    }
    apply_dumps(process, map->time_ns ? map->time_ns : 1);
    struct module_key key = {.path = map->path,
                             .build_id = map->build_id,
                             .pid = pid,
                             .map_start = map->start,
                             .map_end = map->start + map->length,
                             .inode = map->inode,
                             .dev_major = map->dev_major,
                             .dev_minor = map->dev_minor};
    struct module *module = symbols_module(p->symbols, &key);
    /* In anonymous memory addresses are what names are found by. */
    bool by_address = module_kind(module) == MODULE_PERFMAP;
    addrspace_map(process->space, map->start, map->length, by_address ? map->start : map->offset,
                  module);
}

void processes_fork(struct processes *p, pid_t parent, pid_t child)
{
    if (parent == child)
        return;
    struct process **from = find_process(p, parent);
    struct addrspace *space = from ? addrspace_copy((*from)->space) : addrspace_new();
    remove_process(p, child);
    add_process(p, child, space);
}

void processes_exec(struct processes *p, pid_t pid)
{
    remove_process(p, pid);
    add_process(p, pid, addrspace_new());
}

void processes_exit(struct processes *p, pid_t pid)
{
    struct process **at = find_process(p, pid);
    if (!at || (*at)->ended)
        return;
    (*at)->ended = true;
    (*at)->end_number = ++p->end_count;
    size_t place = p->end_count % ENDED_COUNT;
    pid_t oldest = p->ended[place].pid;
    uint64_t number = p->ended[place].number;
    p->ended[place].pid = pid;
    p->ended[place].number = p->end_count;
    struct process **old = number ? find_process(p, oldest) : NULL;
    if (old && (*old)->ended && (*old)->end_number == number)
        remove_process(p, oldest);
}

void processes_kernel_code(struct processes *p, uint64_t start, uint64_t size, const char *name,
                           bool removed)
{
    if (removed) {
        addrspace_unmap(p->kernel, start, size);
        return;
    }
    struct location code = symbols_add_code(p->symbols, BPF_MODULE, name, size);
    addrspace_map(p->kernel, start, size, code.address, code.module);
}

/* The clock of the jitdump may not be that of the samples: then any piece at the address. */
static bool find_in_dumps(struct process *process, uint64_t address, struct location *ret_location)
{
    if (!process->dumps)
        return false;
    if (!process->all_jit) {
        process->all_jit = addrspace_new();
        for (const struct jit_dump *jit = process->dumps; jit; jit = jit->next)
            for (size_t i = 0; i < jit->count; i++)
                apply_event(process->all_jit, jit, i);
    }
    struct location location;
    if (!addrspace_find(process->all_jit, address, &location))
        return false;
    *ret_location = location;
    return true;
}

bool processes_find(struct processes *p, pid_t pid, bool kernel, uint64_t address, uint64_t time_ns,
                    struct location *ret_location)
{
    if (kernel) {
        if (!addrspace_find(p->kernel, address, ret_location))
            *ret_location = (struct location){symbols_kernel(p->symbols), address};
        return true;
    }
    struct process **at = find_process(p, pid);
    if (!at) {
        *ret_location = (struct location){NULL, address};
        return false;
    }
    apply_dumps(*at, time_ns);
    bool found = addrspace_find((*at)->space, address, ret_location);
    bool named = found && module_kind(ret_location->module) != MODULE_PERFMAP;
    return named || find_in_dumps(*at, address, ret_location) || found;
}

const struct addrspace *processes_space(struct processes *p, pid_t pid, uint64_t time_ns)
{
    struct process **at = find_process(p, pid);
    if (!at)
        return NULL;
    apply_dumps(*at, time_ns);
    return (*at)->space;
}
