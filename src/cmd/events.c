/* SPDX-License-Identifier: MIT */
/* `assay events`: what can be counted on this machine, with a line on each. */
#include "base/fd.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/portable.h"
#include "cmd/cmd.h"
#include "counters/catalogue.h"
#include "counters/counters.h"
#include "counters/explain.h"
#include "counters/pmu.h"
#include "machine/tracefs.h"

#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stddef.h>

struct events_options {
    bool all, names;
    const char *json;
};

static const struct option options[] = {
    {'A', "all", OPTION_FLAG, offsetof(struct events_options, all), NULL,
     "also list events that this machine does not have", NULL},
    {0, "names", OPTION_FLAG, offsetof(struct events_options, names), NULL, "print only the names",
     NULL},
    {'j', "json", OPTION_OPTIONAL, offsetof(struct events_options, json), "FILE", CMD_JSON_HELP,
     "file"},
    {0},
};

struct listing {
    const struct events_options *options;
    const char *word; /* to search for, or NULL */
    struct strbuf *out;
    struct json json;
    const char *heading; /* printed before the next line */
    size_t shown, missing;
};

static void show(struct listing *l, const char *kind, const char *name, const char *alias,
                 const char *help, bool is_here)
{
    if (l->word && !strcasestr(name, l->word) && !strcasestr(help, l->word) &&
        !(alias && strcasestr(alias, l->word)))
        return;
    if (!is_here && !l->options->all) {
        l->missing++;
        return;
    }
    l->shown++;
    if (l->options->json) {
        json_object(&l->json, NULL);
        json_string(&l->json, "name", name);
        if (alias)
            json_string(&l->json, "alias", alias);
        json_string(&l->json, "kind", kind);
        json_string(&l->json, "help", help);
        json_bool(&l->json, "supported", is_here);
        json_end(&l->json);
        return;
    }
    if (l->options->names) {
        strbuf_printf(l->out, "%s\n", name);
        return;
    }
    if (l->heading)
        strbuf_printf(l->out, "%s%s\n", l->shown > 1 ? "\n" : "", l->heading);
    l->heading = NULL;
    CLEANUP(memory_freep)
    char *both = alias ? memory_printf("%s, %s", name, alias) : memory_strdup(name);
    strbuf_printf(l->out, "  %-38s %s%s\n", both, help, is_here ? "" : "  (not available)");
}

/* Whether the kernel opens the event for ourselves, in user mode if not otherwise. */
static bool opens(uint32_t type, uint64_t config)
{
    struct perf_event_attr attr = {
        .size = sizeof(attr), .type = type, .config = config, .disabled = 1};
    int fd = counters_open_raw(&attr, 0, -1, -1, 0);
    if (fd == -EACCES || fd == -EPERM) {
        attr.exclude_kernel = 1;
        attr.exclude_hv = 1;
        fd = counters_open_raw(&attr, 0, -1, -1, 0);
    }
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void list_catalogue(struct listing *l, uint32_t type, const char *kind, const char *heading)
{
    size_t count;
    const struct catalogue_entry *all = catalogue(&count);
    l->heading = heading;
    for (size_t i = 0; i < count; i++)
        if (all[i].type == type)
            show(l, kind, all[i].name, all[i].alias, all[i].help, opens(type, all[i].config));
}

static void list_pmu_event(const char *pmu, const char *event, void *context)
{
    struct listing *l = context;
    CLEANUP(memory_freep) char *name = memory_printf("%s/%s/", pmu, event);
    char path[512], terms[256] = "";
    snprintf(path, sizeof(path), "%s/%s/events/%s", PMU_FOLDER, pmu, event);
    file_read_line(path, terms, sizeof(terms));
    show(l, "pmu", name, NULL, terms, true);
}

static void list_pmu(const char *pmu, void *context)
{
    pmu_each_event(pmu, list_pmu_event, context);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* The fields of a tracepoint, from its format file. */
static void put_fields(struct strbuf *out, int events_fd, const char *system, const char *name)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    CLEANUP(memory_freep) char *path = memory_printf("%s/%s/format", system, name);
    if (file_read_at(events_fd, path, &text, NULL) < 0)
        return;
    for (char *at = text.data; (at = strstr(at, "\tfield:"));) {
        at += strlen("\tfield:");
        char *end = at + strcspn(at, ";\n"), *first = end;
        while (first > at && first[-1] != ' ' && first[-1] != '*')
            first--;
        size_t length = strcspn(first, "[;\n");
        if (strncmp(first, "common_", 7) != 0)
            strbuf_printf(out, "%s%.*s", out->length ? " " : "", (int)length, first);
        at = end;
    }
}

static void list_system(struct listing *l, int events_fd, const char *system)
{
    struct dirent **list;
    int count = scan_folder(events_fd, system, &list, is_visible, by_name);
    for (int i = 0; i < count; i++) {
        CLEANUP(memory_freep) char *name = memory_printf("%s:%s", system, list[i]->d_name);
        CLEANUP(strbuf_done) struct strbuf fields = {0};
        bool is_event = list[i]->d_type == DT_DIR;
        bool wanted = !l->word || strcasestr(name, l->word);
        if (is_event && wanted && !l->options->names)
            put_fields(&fields, events_fd, system, list[i]->d_name);
        if (is_event)
            show(l, "tracepoint", name, NULL, strbuf_text(&fields), true);
        free(list[i]);
    }
    if (count >= 0)
        free(list);
}

static int list_tracepoints(struct listing *l, struct error *err)
{
    CLEANUP(fd_closep) int events_fd = tracefs_open_events(err);
    if (events_fd < 0)
        return events_fd;
    l->heading = "Tracepoints, with their fields";
    struct dirent **list;
    int count = scan_folder(events_fd, ".", &list, is_visible, by_name);
    for (int i = 0; i < count; i++) {
        if (list[i]->d_type == DT_DIR)
            list_system(l, events_fd, list[i]->d_name);
        free(list[i]);
    }
    if (count >= 0)
        free(list);
    return 0;
}

static void list_forms(struct listing *l)
{
    uint32_t type;
    l->heading = "Forms";
    show(l, "form", "rNNN", NULL, "a raw hardware event, in hexadecimal",
         opens(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES));
    show(l, "form", "PMU/TERM=VALUE,…/", NULL,
         "an event of a PMU, by the terms in " PMU_FOLDER "/PMU/format", true);
    show(l, "form", "mem:ADDRESS[/LENGTH][:rwx]", NULL, "a hardware breakpoint",
         pmu_type("breakpoint", &type, NULL) == 0);
    bool uprobes = pmu_type("uprobe", &type, NULL) == 0;
    show(l, "form", "uprobe:BINARY:SYMBOL", NULL, "a function's entry in a file", uprobes);
    show(l, "form", "uretprobe:BINARY:SYMBOL", NULL, "a function's return", uprobes);
    bool kprobes = pmu_type("kprobe", &type, NULL) == 0;
    show(l, "form", "kprobe:FUNCTION", NULL, "a kernel function's entry", kprobes);
    show(l, "form", "kretprobe:FUNCTION", NULL, "a kernel function's return", kprobes);
}

static int list_all(const struct events_options *o, const char *word)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    struct listing l = {.options = o, .word = word, .out = &out, .json = {.out = &out}};
    struct error err = {0};
    if (o->json)
        json_array(&l.json, NULL);
    list_catalogue(&l, PERF_TYPE_SOFTWARE, "software", "Software events");
    size_t before = l.shown;
    list_catalogue(&l, PERF_TYPE_HARDWARE, "hardware", "Hardware events");
    list_catalogue(&l, PERF_TYPE_HW_CACHE, "cache", "Cache events");
    bool has_hardware = l.shown > before;
    l.heading = "Events of PMUs, with their terms";
    pmu_each(list_pmu, &l);
    if (!o->names)
        list_forms(&l);
    int tracepoints = list_tracepoints(&l, &err);
    if (o->json)
        json_end(&l.json);
    if (cmd_write(o->json, &out, &err) < 0)
        return cmd_fail(&verb_events, &err, EXIT_TROUBLE);
    if (o->json || o->names)
        return EXIT_DONE;
    if (!has_hardware && l.missing)
        printf("\n"
               "%zu hardware and cache events are not available (no PMU, or it is hidden from this "
               "machine);\n"
               "'assay stat --sim' counts without one, --all lists them.\n",
               l.missing);
    if (tracepoints < 0)
        printf("\n%s\n", err.message);
    if (!l.shown && word) {
        CLEANUP(strbuf_done) struct strbuf safe = {0};
        strbuf_put_safe(&safe, word, strlen(word), 200);
        error_set(&err, -ENOENT, "no event matches '%s'", strbuf_text(&safe));
        return cmd_fail(&verb_events, &err, EXIT_TROUBLE);
    }
    return EXIT_DONE;
}

static int run(int argc, char **argv)
{
    struct error err = {0};
    struct events_options o = {0};
    int first = options_parse_mixed(options, &o, argc, argv, &err);
    if (first == OPTIONS_HELP)
        return cmd_help(&verb_events);
    if (first >= 0 && argc - first > 1)
        first = error_set(&err, -EINVAL, "give one search word at most");
    if (first < 0)
        return cmd_usage(&verb_events, &err);
    const char *word = first < argc ? argv[first] : NULL;
    int r = list_all(&o, word);
    if (r != EXIT_DONE || !o.json || !cmd_wants_text(o.json))
        return r;
    o.json = NULL; /* it is in its file; the text comes besides it */
    return list_all(&o, word);
}

const struct verb verb_events = {
    .name = "events",
    .summary = "list what this machine can count",
    .synopsis = "[options] [WORD]",
    .examples = "  assay events            everything\n"
                "  assay events fault      those that mention faults\n"
                "  assay events sched:     the scheduler's tracepoints\n",
    .options = options,
    .run = run,
};
