/* SPDX-License-Identifier: MIT */
/* What -e takes: see event.h. */
#include "counters/event.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/portable.h"
#include "base/strings.h"
#include "counters/catalogue.h"
#include "counters/pmu.h"
#include "counters/probe.h"
#include "machine/tracefs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <linux/hw_breakpoint.h>
#include <stdio.h>

static struct event *push_event(struct event_list *list, const char *name)
{
    struct event *e = &ARRAY_PUSH(list->items, list->count, list->capacity);
    *e = (struct event){.name = memory_strdup(name), .scale = 1};
    e->attr.size = sizeof(e->attr);
    return e;
}

static void event_done(struct event *e)
{
    free(e->name);
    free(e->probe_target);
    free(e->pmu);
    free(e->filter);
}

static void truncate_list(struct event_list *list, size_t count)
{
    while (list->count > count)
        event_done(&list->items[--list->count]);
}

void event_list_remove(struct event_list *list, size_t index)
{
    event_done(&list->items[index]);
    memmove(&list->items[index], &list->items[index + 1],
            (--list->count - index) * sizeof(*list->items));
}

void event_list_done(struct event_list *list)
{
    truncate_list(list, 0);
    free(list->items);
    *list = (struct event_list){0};
}

/* Sets the modes that the letters ask for. */
static int apply_modifiers(struct event *e, const char *letters, struct error *err)
{
    bool user = false, kernel = false, hypervisor = false, guest = false, host = false;
    for (const char *c = letters; *c; c++) {
        switch (*c) {
        case 'u':
            user = true;
            break;
        case 'k':
            kernel = true;
            break;
        case 'h':
            hypervisor = true;
            break;
        case 'G':
            guest = true;
            break;
        case 'H':
            host = true;
            break;
        case 'p':
            if (e->attr.precise_ip == 3)
                return error_set(err, -EINVAL, "'%s': p may be repeated three times at most",
                                 e->name);
            e->attr.precise_ip++;
            break;
        case 'P':
            e->attr.precise_ip = 3;
            break;
        case 'D':
            e->attr.pinned = 1;
            break;
        case 'e':
            e->attr.exclusive = 1;
            break;
        default:
            return error_set(err, -EINVAL, "'%s': unknown modifier '%c'; use u k h G H p P D e",
                             e->name, *c);
        }
    }
    if (user || kernel || hypervisor) {
        e->attr.exclude_user = !user;
        e->attr.exclude_kernel = !kernel;
        e->attr.exclude_hv = !hypervisor;
        e->has_modifier = true;
    }
    if (guest || host) {
        e->attr.exclude_guest = !guest;
        e->attr.exclude_host = !host;
    }
    return 0;
}

/* Cuts ":letters" off the end when all are modifiers, and returns them, else NULL. */
static const char *split_modifiers(char *text)
{
    char *colon = strrchr(text, ':');
    if (!colon || colon == text || !colon[1] || colon[strspn(colon + 1, "ukhGHpPDe") + 1])
        return NULL;
    *colon = '\0';
    return colon + 1;
}

static int parse_breakpoint(struct event_list *list, const char *text, struct error *err)
{
    CLEANUP(memory_freep) char *copy = memory_strdup(text + strlen("mem:"));
    char *access = strchr(copy, ':'), *modifiers = NULL;
    if (access) {
        *access++ = '\0';
        modifiers = strchr(access, ':');
        if (modifiers)
            *modifiers++ = '\0';
    }
    char *length_text = strchr(copy, '/');
    if (length_text)
        *length_text++ = '\0';
    uint64_t address, length = 4;
    int r = parse_u64(copy, &address, err);
    if (r == 0 && length_text)
        r = parse_u64(length_text, &length, err);
    if (r < 0)
        return error_wrap(err, r, "'%s' (mem:ADDRESS[/LENGTH][:rwx])", text);
    if (length != 1 && length != 2 && length != 4 && length != 8)
        return error_set(err, -EINVAL, "'%s': a breakpoint covers 1, 2, 4 or 8 bytes", text);
    uint32_t kind = 0;
    for (const char *c = access ? access : "rw"; *c; c++) {
        if (*c != 'r' && *c != 'w' && *c != 'x')
            return error_set(err, -EINVAL, "'%s': the access must be r, w, rw or x", text);
        kind |= *c == 'r' ? HW_BREAKPOINT_R : *c == 'w' ? HW_BREAKPOINT_W : HW_BREAKPOINT_X;
    }
    if (!kind || ((kind & HW_BREAKPOINT_X) && kind != HW_BREAKPOINT_X))
        return error_set(err, -EINVAL, "'%s': the access must be r, w, rw or x", text);
    struct event *e = push_event(list, text);
    e->attr.type = PERF_TYPE_BREAKPOINT;
    e->attr.bp_type = kind;
    e->attr.bp_addr = address;
    e->attr.bp_len = kind == HW_BREAKPOINT_X ? sizeof(long) : length;
    return modifiers ? apply_modifiers(e, modifiers, err) : 0;
}

/* Bit 0 of config says "at the return". */
static int parse_uprobe(struct event_list *list, const char *text, bool at_return,
                        struct error *err)
{
    CLEANUP(memory_freep) char *copy = memory_strdup(strchr(text, ':') + 1);
    char *symbol = strrchr(copy, ':');
    if (!symbol || symbol == copy || !symbol[1])
        return error_set(err, -EINVAL, "'%s': write %s:BINARY:SYMBOL or %s:BINARY:0xOFFSET", text,
                         at_return ? "uretprobe" : "uprobe", at_return ? "uretprobe" : "uprobe");
    *symbol++ = '\0';
    uint32_t type;
    if (pmu_type("uprobe", &type, NULL) < 0)
        return error_set(err, -ENOENT, "'%s': this kernel has no uprobes (CONFIG_UPROBE_EVENTS)",
                         text);
    CLEANUP(memory_freep) char *path = NULL;
    uint64_t offset = 0;
    int r = probe_find(copy, symbol, &path, &offset, err);
    if (r < 0)
        return error_wrap(err, r, "'%s'", text);
    struct event *e = push_event(list, text);
    e->probe_target = path;
    path = NULL;
    e->attr.type = type;
    e->attr.config = at_return;
    e->attr.config1 = (uint64_t)(uintptr_t)e->probe_target;
    e->attr.config2 = offset;
    return 0;
}

static int parse_kprobe(struct event_list *list, const char *text, bool at_return,
                        struct error *err)
{
    uint32_t type;
    const char *function = strchr(text, ':') + 1;
    if (!*function)
        return error_set(err, -EINVAL, "'%s': write kprobe:FUNCTION", text);
    if (pmu_type("kprobe", &type, NULL) < 0)
        return error_set(err, -ENOENT, "'%s': this kernel has no kprobes (CONFIG_KPROBE_EVENTS)",
                         text);
    struct event *e = push_event(list, text);
    e->probe_target = memory_strdup(function);
    e->attr.type = type;
    e->attr.config = at_return;
    e->attr.config1 = (uint64_t)(uintptr_t)e->probe_target;
    return 0;
}

static int parse_pmu(struct event_list *list, const char *text, struct error *err)
{
    CLEANUP(memory_freep) char *pmu = memory_strdup(text);
    char *terms = strchr(pmu, '/');
    *terms++ = '\0';
    char *modifiers = strrchr(terms, '/');
    if (!modifiers || !*pmu)
        return error_set(err, -EINVAL, "'%s': write PMU/TERMS/", text);
    *modifiers++ = '\0';
    if (*modifiers == ':')
        modifiers++;
    struct perf_event_attr attr = {.size = sizeof(attr)};
    struct pmu_terms extra;
    int r = pmu_parse(pmu, terms, &attr, &extra, err);
    if (r < 0)
        return r;
    struct event *e = push_event(list, *extra.name ? extra.name : text);
    e->attr = attr;
    e->pmu = memory_strdup(pmu);
    e->scale = extra.scale;
    memcpy(e->unit, extra.unit, sizeof(e->unit));
    return *modifiers ? apply_modifiers(e, modifiers, err) : 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Tracepoints and their systems are folders; files such as "enable" stand beside them. */
static int is_folder(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && entry->d_type == DT_DIR;
}

/* Adds one tracepoint. */
static int add_tracepoint(struct event_list *list, int events_fd, const char *system,
                          const char *name, const char *modifiers, struct error *err)
{
    uint64_t id;
    int r = tracefs_event_id(events_fd, system, name, &id, err);
    if (r < 0)
        return r;
    CLEANUP(memory_freep)
    char *full =
        memory_printf("%s:%s%s%s", system, name, modifiers ? ":" : "", modifiers ? modifiers : "");
    struct event *e = push_event(list, full);
    e->attr.type = PERF_TYPE_TRACEPOINT;
    e->attr.config = id;
    return modifiers ? apply_modifiers(e, modifiers, err) : 0;
}

/* Says which names of the folder come near to the one that is not there. */
static int unknown_tracepoint(int events_fd, const char *system, const char *name,
                              struct error *err)
{
    struct dirent **list;
    int count = scan_folder(events_fd, system, &list, is_folder, by_name);
    const char *what = name;
    if (count < 0) {
        what = system;
        count = scan_folder(events_fd, ".", &list, is_folder, by_name);
    }
    if (count < 0)
        return error_set(err, -ENOENT, "there is no tracepoint '%s:%s'", system, name);
    CLEANUP(memory_freep)
    const char **names = memory_zalloc((size_t)count, sizeof(*names));
    for (int i = 0; i < count; i++)
        names[i] = list[i]->d_name;
    CLEANUP(strbuf_done) struct strbuf near = {0};
    size_t found = str_nearest(what, names, (size_t)count, 3, &near);
    for (int i = 0; i < count; i++)
        free(list[i]);
    free(list);
    if (!found)
        return error_set(
            err, -ENOENT,
            "there is no tracepoint '%s:%s' on this machine; search with 'assay events %s'", system,
            name, what);
    return error_set(err, -ENOENT, "there is no tracepoint '%s:%s' on this machine; similar %s: %s",
                     system, name, what == system ? "systems" : "names", strbuf_text(&near));
}

static int parse_tracepoint(struct event_list *list, const char *text, struct error *err)
{
    CLEANUP(memory_freep) char *system = memory_strdup(text);
    char *name = strchr(system, ':');
    *name++ = '\0';
    const char *modifiers = split_modifiers(name);
    CLEANUP(fd_closep) int events_fd = tracefs_open_events(err);
    if (events_fd < 0)
        return error_wrap(err, events_fd, "'%s'", text);
    if (!strpbrk(name, "*?[")) {
        int r = add_tracepoint(list, events_fd, system, name, modifiers, err);
        return r == -ENOENT ? unknown_tracepoint(events_fd, system, name, err) : r;
    }
    struct dirent **entries;
    int count = strchr(system, '/') ? -1 : scan_folder(events_fd, system, &entries, NULL, by_name);
    if (count < 0)
        return unknown_tracepoint(events_fd, system, name, err);
    size_t before = list->count;
    int r = 0;
    for (int i = 0; i < count; i++) {
        /* Folders hold files such as "enable" too; they have no id and are passed over. */
        if (r == 0 && entries[i]->d_name[0] != '.' && fnmatch(name, entries[i]->d_name, 0) == 0) {
            r = add_tracepoint(list, events_fd, system, entries[i]->d_name, modifiers, err);
            if (r == -ENOENT)
                r = 0;
        }
        free(entries[i]);
    }
    free(entries);
    if (r == 0 && list->count == before)
        return error_set(err, -ENOENT, "no tracepoint matches '%s'", text);
    return r;
}

static bool is_raw(const char *text)
{
    return text[0] == 'r' && text[1] && text[strspn(text + 1, "0123456789abcdefABCDEF") + 1] == 0;
}

static int unknown_event(const char *text, struct error *err)
{
    size_t count;
    const struct catalogue_entry *all = catalogue(&count);
    CLEANUP(memory_freep) const char **names = memory_zalloc(2 * count, sizeof(*names));
    size_t name_count = 0;
    for (size_t i = 0; i < count; i++) {
        names[name_count++] = all[i].name;
        if (all[i].alias)
            names[name_count++] = all[i].alias;
    }
    CLEANUP(strbuf_done) struct strbuf near = {0}, safe = {0};
    strbuf_put_safe(&safe, text, strlen(text), 80);
    if (str_nearest(text, names, name_count, 3, &near))
        return error_set(
            err, -ENOENT,
            "unknown event '%s'; similar names: %s; 'assay events' lists what this machine has",
            strbuf_text(&safe), strbuf_text(&near));
    return error_set(err, -ENOENT, "unknown event '%s'; 'assay events' lists what this machine has",
                     strbuf_text(&safe));
}

static int too_many_digits(const char *text, struct error *err)
{
    return error_set(err, -ERANGE, "'%s': a raw event has 16 hexadecimal digits at most", text);
}

static int parse_named(struct event_list *list, const char *text, struct error *err)
{
    CLEANUP(memory_freep) char *name = memory_strdup(text);
    const char *modifiers = split_modifiers(name);
    const struct catalogue_entry *entry = catalogue_find(name);
    if (!entry && !is_raw(name))
        return strchr(text, ':') ? parse_tracepoint(list, text, err) : unknown_event(text, err);
    if (!entry && strlen(name) > 1 + 16)
        return too_many_digits(text, err);
    struct event *e = push_event(list, text);
    if (entry) {
        e->attr.type = entry->type;
        e->attr.config = entry->config;
        e->in_ns = entry->in_ns;
    } else {
        e->attr.type = PERF_TYPE_RAW;
        e->attr.config = strtoull(name + 1, NULL, 16);
    }
    return modifiers ? apply_modifiers(e, modifiers, err) : 0;
}

static int parse_one(struct event_list *list, const char *text, struct error *err)
{
    static const struct {
        const char *prefix;
        int (*parse)(struct event_list *, const char *, bool, struct error *);
        bool at_return;
    } probes[] = {
        {"uprobe:", parse_uprobe, false},
        {"uretprobe:", parse_uprobe, true},
        {"kprobe:", parse_kprobe, false},
        {"kretprobe:", parse_kprobe, true},
    };
    if (!*text)
        return error_set(err, -EINVAL, "an event's name is missing");
    if (str_has_prefix(text, "mem:"))
        return parse_breakpoint(list, text, err);
    for (size_t i = 0; i < ARRAY_COUNT(probes); i++)
        if (str_has_prefix(text, probes[i].prefix))
            return probes[i].parse(list, text, probes[i].at_return, err);
    return strchr(text, '/') ? parse_pmu(list, text, err) : parse_named(list, text, err);
}

/* How long the event at text is: up to a comma or brace that does not stand between slashes of a
 * PMU's terms. */
static size_t event_length(const char *text)
{
    static const char *const paths[] = {"mem:", "uprobe:", "uretprobe:"};
    bool has_path = false;
    for (size_t i = 0; i < ARRAY_COUNT(paths); i++)
        has_path |= str_has_prefix(text, paths[i]);
    bool inside = false;
    size_t length = 0;
    for (; text[length]; length++) {
        char c = text[length];
        if (c == '/' && !has_path)
            inside = !inside;
        else if (!inside && (c == ',' || c == '}' || c == '{'))
            break;
    }
    return length;
}

/* Parses events up to the end or to the closing brace of a group. */
static int parse_sequence(struct event_list *list, const char **text, unsigned group,
                          struct error *err)
{
    for (;;) {
        size_t length = event_length(*text), first = list->count;
        CLEANUP(memory_freep) char *one = memory_strndup(*text, length);
        int r = parse_one(list, one, err);
        if (r < 0)
            return r;
        for (size_t i = first; i < list->count; i++)
            list->items[i].group = group;
        *text += length;
        if (**text != ',' || (*text)[1] == '{')
            return 0;
        *text += 1;
    }
}

static int parse_group(struct event_list *list, const char **text, struct error *err)
{
    size_t first = list->count;
    *text += 1;
    int r = parse_sequence(list, text, ++list->group_count, err);
    if (r < 0)
        return r;
    if (**text != '}')
        return error_set(err, -EINVAL, "unclosed group: '}' is missing");
    *text += 1;
    if (**text != ':')
        return 0;
    size_t length = strcspn(*text + 1, ",");
    CLEANUP(memory_freep) char *modifiers = memory_strndup(*text + 1, length);
    *text += 1 + length;
    for (size_t i = first; i < list->count; i++) {
        r = apply_modifiers(&list->items[i], modifiers, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int event_list_parse(struct event_list *list, const char *text, struct error *err)
{
    size_t before = list->count;
    const char *at = text;
    int r;
    for (;;) {
        r = *at == '{' ? parse_group(list, &at, err) : parse_sequence(list, &at, 0, err);
        if (r < 0 || !*at)
            break;
        if (*at != ',') {
            r = error_set(err, -EINVAL, "'%s': a comma is missing before '%s'", text, at);
            break;
        }
        at++;
    }
    if (r < 0)
        truncate_list(list, before);
    return r;
}

void event_list_default(struct event_list *list, bool systemwide, unsigned detail)
{
    static const char *const names[] = {
        "context-switches,cpu-migrations,page-faults,cycles,instructions,branches,branch-misses",
        "minor-faults,major-faults,L1-dcache-loads,L1-dcache-load-misses,LLC-loads,LLC-load-misses",
        ("L1-icache-loads,L1-icache-load-misses,dTLB-loads,dTLB-load-misses,iTLB-loads,"
         "iTLB-load-misses"),
        "L1-dcache-prefetches,L1-dcache-prefetch-misses",
    };
    event_list_parse(list, systemwide ? "cpu-clock" : "task-clock", NULL);
    for (size_t i = 0; i <= detail && i < ARRAY_COUNT(names); i++)
        event_list_parse(list, names[i], NULL);
}

const struct event *event_list_partner(const struct event_list *list, const struct event *like,
                                       uint32_t type, uint64_t config)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct event *e = &list->items[i];
        bool clock = type == PERF_TYPE_SOFTWARE;
        if (e->attr.type == type && e->attr.config == config &&
            (clock || (e->attr.exclude_user == like->attr.exclude_user &&
                       e->attr.exclude_kernel == like->attr.exclude_kernel)))
            return e;
    }
    return NULL;
}
