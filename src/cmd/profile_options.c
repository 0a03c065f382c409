/* SPDX-License-Identifier: MIT */
/* Options of the verbs that read profiles: see profile_options.h. */
#include "cmd/profile_options.h"
#include "base/memory.h"

#include <errno.h>
#include <unistd.h>

static const char *own(struct profile_cli *cli, char *text)
{
    ARRAY_PUSH(cli->owned, cli->owned_count, cli->owned_capacity) = text;
    return text;
}

/* "a,b" given once is the same as "a" and "b" given twice. */
static void split_words(struct profile_cli *cli, const struct option_list *list,
                        struct option_list *words)
{
    for (size_t i = 0; i < list->count; i++)
        for (const char *at = list->items[i]; *at;) {
            size_t length = strcspn(at, ",");
            if (length)
                ARRAY_PUSH(words->items, words->count, words->capacity) =
                    own(cli, memory_strndup(at, length));
            at += length + (at[length] == ',');
        }
}

static int parse_numbers(struct profile_cli *cli, const struct option_list *list, const char *what,
                         uint32_t **ret_numbers, size_t *ret_count, struct error *err)
{
    struct option_list words = {0};
    split_words(cli, list, &words);
    uint32_t *numbers = memory_zalloc(words.count + 1, sizeof(*numbers));
    int r = 0;
    for (size_t i = 0; i < words.count && r == 0; i++) {
        uint64_t value;
        r = parse_u64(words.items[i], &value, err);
        if (r == 0 && value > UINT32_MAX)
            r = error_set(err, -ERANGE, "'%s' is too large", words.items[i]);
        if (r < 0)
            error_wrap(err, r, "option --%s", what);
        else
            numbers[i] = (uint32_t)value;
    }
    *ret_numbers = numbers;
    *ret_count = words.count;
    free(words.items);
    return r;
}

int profile_cli_file(const struct profile_cli *cli, int count, char **words, const char **ret_path,
                     struct error *err)
{
    if (count > 1 || (count == 1 && cli->input))
        return error_set(err, -EINVAL, "expected one recording; unexpected argument '%s'",
                         words[count - 1]);
    *ret_path = count == 1 ? words[0] : cli->input ? cli->input : "perf.data";
    return 0;
}

int profile_cli_apply(struct profile_cli *cli, struct profile_options *o, struct error *err)
{
    struct profile_filter *f = &o->filter;
    f->events = (struct name_filter){.patterns = cli->events.items, .count = cli->events.count};
    int r = parse_numbers(cli, &cli->pids, "pid", &cli->pid_numbers, &f->pid_count, err);
    if (r == 0)
        r = parse_numbers(cli, &cli->tids, "tid", &cli->tid_numbers, &f->tid_count, err);
    if (r == 0 && cli->cpus)
        r = parse_cpu_list(cli->cpus, &cli->cpu_numbers, &f->cpu_count, err);
    if (r == 0 && cli->time)
        r = profile_parse_time(cli->time, f, err);
    if (r < 0)
        return r;
    f->pids = cli->pid_numbers;
    f->tids = cli->tid_numbers;
    f->cpus = cli->cpu_numbers;
    split_words(cli, &cli->comms, &cli->comm_words);
    split_words(cli, &cli->dsos, &cli->dso_words);
    o->fold_variants = cli->fold_variants;
    o->symbols.file_root = cli->root;
    o->symbols.kallsyms_path = cli->kallsyms;
    o->symbols.demangle = cli->no_demangle  ? DEMANGLE_NONE
                          : cli->full_names ? DEMANGLE_FULL
                                            : DEMANGLE_SHORT;
    return 0;
}

static void show_progress(void *context, uint64_t done, uint64_t total)
{
    struct progress *p = context;
    char text[32], all[32];
    format_bytes((double)done, text, sizeof(text));
    if (total)
        progress_show(p, "reading %s of %s (%.0f %%)", text,
                      format_bytes((double)total, all, sizeof(all)),
                      100.0 * (double)done / (double)total);
    else
        progress_show(p, "reading: %s so far", text);
}

static void show_waiting(void *context, const char *what)
{
    progress_show(context, "%s", what);
}

int profile_cli_load(struct profile_cli *cli, const char *path, struct profile_options *o,
                     struct profile **ret_profile, struct error *err)
{
    progress_start(&cli->progress);
    o->progress = show_progress;
    o->progress_context = &cli->progress;
    o->symbols.waiting = show_waiting;
    o->symbols.waiting_context = &cli->progress;
    struct profile *profile;
    int r = profile_load(&profile, path, o, err);
    if (r == -ENOENT && !cli->input && str_eq(path, "perf.data"))
        r = error_set(err, r,
                      "no perf.data in this directory; name a recording, or create one with 'assay "
                      "record -- COMMAND'");
    if (r == 0) {
        progress_show(&cli->progress, "naming %zu %s", profile->stacks.location_count,
                      plural(profile->stacks.location_count, "address", "addresses"));
        profile_symbolize(profile);
        *ret_profile = profile;
    }
    progress_end(&cli->progress);
    return r;
}

void profile_cli_done(struct profile_cli *cli)
{
    for (size_t i = 0; i < cli->owned_count; i++)
        free(cli->owned[i]);
    free(cli->owned);
    free(cli->pid_numbers);
    free(cli->tid_numbers);
    free(cli->cpu_numbers);
    free(cli->comm_words.items);
    free(cli->dso_words.items);
    free(cli->events.items);
    free(cli->comms.items);
    free(cli->dsos.items);
    free(cli->symbols.items);
    free(cli->through.items);
    free(cli->pids.items);
    free(cli->tids.items);
}
