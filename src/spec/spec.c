/* SPDX-License-Identifier: MIT */
/*
 * Reading a spec.  Keys are read in the order of the table below, whatever their order in the
 * file, because some refer to others; the quick section comes last and replaces what it names.
 */
#include "spec/spec.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"
#include "exact/tool.h"
#include "monitors/monitors.h"
#include "spec/holes.h"
#include "spec/spec_read.h"

#include <errno.h>
#include <unistd.h>

#define ROUNDS_DEFAULT 10
#define ROUNDS_MAX 1000000
#define MONITOR_INTERVAL_NS NS_PER_S

static int read_name(struct spec_reader *reader, const struct tree *value)
{
    int r = spec_want_text(reader, value, "name", &reader->s->name);
    if (r == 0 && (strpbrk(reader->s->name, "\n\t") || strlen(reader->s->name) > 200))
        r = spec_fail(reader, value->line, "name: must be one line of at most 200 bytes");
    return r;
}

static int read_question(struct spec_reader *reader, const struct tree *value)
{
    return spec_want_text(reader, value, "question", &reader->s->question);
}

static int read_command(struct spec_reader *reader, const struct tree *value)
{
    return spec_want_command(reader, value, "command", &reader->s->command);
}

static int read_shell(struct spec_reader *reader, const struct tree *value)
{
    bool shell = false;
    int r = spec_want_bool(reader, value, "shell", &shell);
    if (r == 0 && shell && reader->s->command.words)
        r = spec_fail(reader, value->line, "shell: the command must be a string, not a list");
    if (r == 0)
        reader->s->command.shell = shell;
    return r;
}

static int read_env(struct spec_reader *reader, const struct tree *value)
{
    return spec_want_pairs(reader, value, "env", &reader->s->environment);
}

static int read_input(struct spec_reader *reader, const struct tree *value)
{
    return spec_want_text(reader, value, "input", &reader->s->input);
}

static int read_work(struct spec_reader *reader, const struct tree *value)
{
    return spec_want_text(reader, value, "work", &reader->s->work);
}

static int read_counters(struct spec_reader *reader, const struct tree *value)
{
    const char **names;
    size_t count;
    int r = spec_want_texts(reader, value, "counters", &names, &count);
    if (r < 0)
        return r;
    CLEANUP(strbuf_done) struct strbuf list = {0};
    for (size_t i = 0; i < count; i++)
        strbuf_printf(&list, "%s%s", i ? "," : "", names[i]);
    reader->s->counters = arena_strdup(&reader->s->arena, strbuf_text(&list));
    return 0;
}

static int read_exact(struct spec_reader *reader, const struct tree *value)
{
    struct error err;
    int r = spec_want_text(reader, value, "exact", &reader->s->exact);
    if (r == 0 && exact_check_word(reader->s->exact, &err) < 0)
        return spec_fail(reader, value->line,
                         "exact: '%s' is not known; write exact: true, exact: user, exact: arm64 "
                         "or exact: model",
                         reader->s->exact);
    return r;
}

static int read_monitor_names(struct spec_reader *reader, const struct tree *value)
{
    struct spec *s = reader->s;
    int r = spec_want_texts(reader, value, "monitors", &s->monitors, &s->monitor_count);
    for (size_t i = 0; r == 0 && i < s->monitor_count; i++) {
        if (monitor_find(s->monitors[i]))
            continue;
        const char *known[MONITORS_MAX];
        size_t count = monitor_names(known);
        struct tree key = {.text = s->monitors[i],
                           .line = value->kind == TREE_LIST ? value->items[i].line : value->line};
        r = spec_fail_unknown(reader, &key, "monitor", known, count);
    }
    return r;
}

int spec_add_monitors(struct spec *s, const char *const *names, size_t count, struct error *err)
{
    const char **all = arena_alloc(&s->arena, (s->monitor_count + count) * sizeof(*all));
    size_t total = 0;
    for (; total < s->monitor_count; total++)
        all[total] = s->monitors[total];
    for (size_t i = 0; i < count; i++) {
        bool there = false;
        for (size_t k = 0; k < total && !there; k++)
            there = str_eq(all[k], names[i]);
        if (!monitor_find(names[i])) {
            const char *known[MONITORS_MAX];
            CLEANUP(strbuf_done) struct strbuf near = {0};
            str_nearest(names[i], known, monitor_names(known), 3, &near);
            return error_set(err, -EINVAL, "there is no monitor '%s'%s%s", names[i],
                             near.length ? "; near: " : "", strbuf_text(&near));
        }
        if (!there)
            all[total++] = names[i];
    }
    s->monitors = all;
    s->monitor_count = total;
    return 0;
}

static int read_monitors(struct spec_reader *reader, const struct tree *value)
{
    if (value->kind != TREE_MAP)
        return read_monitor_names(reader, value);
    int r = 0;
    for (size_t i = 0; r == 0 && i < value->count; i++) {
        const struct tree *key = &value->keys[i];
        static const char *const known[] = {"interval", "list"};
        if (str_eq(key->text, "interval"))
            r = spec_want_duration(reader, &value->items[i], "interval",
                                   &reader->s->monitor_interval_ns);
        else if (str_eq(key->text, "list"))
            r = read_monitor_names(reader, &value->items[i]);
        else
            r = spec_fail_unknown(reader, key, "key of monitors", known, ARRAY_COUNT(known));
    }
    if (r == 0 && reader->s->monitor_interval_ns < 10 * NS_PER_MS)
        r = spec_fail(reader, value->line, "monitors: an interval must be at least 10ms");
    return r;
}

static int read_rounds(struct spec_reader *reader, const struct tree *value)
{
    struct spec *s = reader->s;
    if (value->kind != TREE_MAP) {
        int r = spec_want_u64(reader, value, "rounds", 1, ROUNDS_MAX, &s->rounds);
        s->rounds_max = 0;
        return r;
    }
    static const char *const known[] = {"min", "max"};
    int r = 0;
    for (size_t i = 0; r == 0 && i < value->count; i++) {
        const struct tree *key = &value->keys[i];
        if (str_eq(key->text, "min"))
            r = spec_want_u64(reader, &value->items[i], "rounds.min", 1, ROUNDS_MAX, &s->rounds);
        else if (str_eq(key->text, "max"))
            r = spec_want_u64(reader, &value->items[i], "rounds.max", 1, ROUNDS_MAX,
                              &s->rounds_max);
        else
            r = spec_fail_unknown(reader, key, "key of rounds", known, ARRAY_COUNT(known));
    }
    if (r == 0 && s->rounds_max && s->rounds_max < s->rounds)
        r = spec_fail(reader, value->line, "rounds: max is below min");
    return r;
}

static int read_warmup(struct spec_reader *reader, const struct tree *value)
{
    return spec_want_u64(reader, value, "warmup", 0, ROUNDS_MAX, &reader->s->warmup);
}

static int read_attempts(struct spec_reader *reader, const struct tree *value)
{
    return spec_want_u64(reader, value, "attempts", 1, 100, &reader->s->attempts);
}

static int read_precision(struct spec_reader *reader, const struct tree *value)
{
    const char *text;
    int r = spec_want_text(reader, value, "precision", &text);
    if (r < 0)
        return r;
    if (parse_share(text, 1, &reader->s->precision, NULL) < 0)
        return spec_fail(reader, value->line,
                         "precision: must be a percentage, e.g. 1%% or 0.01, not '%s'", text);
    return 0;
}

static int read_budget(struct spec_reader *reader, const struct tree *value)
{
    return spec_want_duration(reader, value, "budget", &reader->s->budget_ns);
}

static int read_timeout(struct spec_reader *reader, const struct tree *value)
{
    return spec_want_duration(reader, value, "timeout", &reader->s->timeout_ns);
}

static int read_baseline(struct spec_reader *reader, const struct tree *value)
{
    int r = spec_want_pairs(reader, value, "baseline", &reader->s->baseline);
    for (size_t i = 0; r == 0 && i < reader->s->baseline.count; i++) {
        const struct text_pair *p = &reader->s->baseline.items[i];
        size_t f = 0;
        while (f < reader->s->factor_count && !str_eq(reader->s->factors[f].name, p->name))
            f++;
        if (f == reader->s->factor_count)
            return spec_fail(reader, p->line, "baseline: there is no factor '%s'", p->name);
        size_t l = 0;
        const struct spec_factor *factor = &reader->s->factors[f];
        while (l < factor->level_count && !str_eq(factor->levels[l].name, p->value))
            l++;
        if (l == factor->level_count)
            return spec_fail(reader, p->line, "baseline: %s has no value '%s'", p->name, p->value);
    }
    return r;
}

static int read_profile(struct spec_reader *reader, const struct tree *value)
{
    const char *text;
    int r = spec_want_text(reader, value, "profile", &text);
    if (r < 0)
        return r;
    if (str_eq(text, "none"))
        reader->s->profile = PROFILE_NONE;
    else if (str_eq(text, "changed"))
        reader->s->profile = PROFILE_CHANGED;
    else if (str_eq(text, "all"))
        reader->s->profile = PROFILE_ALL;
    else
        return spec_fail(reader, value->line, "profile: must be changed, all or none, not '%s'",
                         text);
    return 0;
}

static int read_layout(struct spec_reader *reader, const struct tree *value)
{
    const char *text;
    int r = spec_want_text(reader, value, "layout", &text);
    if (r == 0 && !str_eq(text, "vary") && !str_eq(text, "fixed"))
        r = spec_fail(reader, value->line, "layout: must be vary or fixed, not '%s'", text);
    if (r == 0)
        reader->s->vary_layout = str_eq(text, "vary");
    return r;
}

static int read_needs(struct spec_reader *reader, const struct tree *value)
{
    const char **names;
    size_t count;
    int r = spec_want_texts(reader, value, "needs", &names, &count);
    if (r < 0)
        return r;
    CLEANUP(strbuf_done) struct strbuf list = {0};
    for (size_t i = 0; i < count; i++)
        strbuf_printf(&list, "%s%s", i ? "," : "", names[i]);
    reader->s->needs = arena_strdup(&reader->s->arena, strbuf_text(&list));
    return 0;
}

static int read_cpus(struct spec_reader *reader, const struct tree *value)
{
    return spec_want_text(reader, value, "cpus", &reader->s->cpus);
}

static int read_nice(struct spec_reader *reader, const struct tree *value)
{
    const char *text;
    double number;
    int r = spec_want_text(reader, value, "nice", &text);
    if (r < 0)
        return r;
    if (parse_double(text, &number, NULL) < 0 || number < -20 || number > 19 ||
        number != (int)number)
        return spec_fail(reader, value->line,
                         "nice: must be a whole number between -20 and 19, not '%s'", text);
    reader->s->nice = (int)number;
    return 0;
}

static int read_cgroup(struct spec_reader *reader, const struct tree *value)
{
    return spec_want_pairs(reader, value, "cgroup", &reader->s->cgroup);
}

static int read_seed(struct spec_reader *reader, const struct tree *value)
{
    reader->s->has_seed = true;
    return spec_want_u64(reader, value, "seed", 0, INT64_MAX, &reader->s->seed);
}

static int read_allow_failures(struct spec_reader *reader, const struct tree *value)
{
    return spec_want_bool(reader, value, "allow_failures", &reader->s->allow_failures);
}

static spec_read_fn read_quick;

static const struct spec_key keys[] = {
    {"name", read_name, false},
    {"question", read_question, false},
    {"command", read_command, false},
    {"shell", read_shell, false},
    {"factors", spec_read_factors, true},
    {"hosts", spec_read_hosts, false},
    {"exclude", spec_read_exclude, true},
    {"include", spec_read_include, false},
    {"build", spec_read_build, false},
    {"setup", spec_read_setup, false},
    {"teardown", spec_read_teardown, false},
    {"metrics", spec_read_metrics, false},
    {"work", read_work, false},
    {"env", read_env, false},
    {"input", read_input, false},
    {"counters", read_counters, true},
    {"exact", read_exact, true},
    {"monitors", read_monitors, true},
    {"rounds", read_rounds, true},
    {"warmup", read_warmup, true},
    {"attempts", read_attempts, true},
    {"precision", read_precision, true},
    {"budget", read_budget, true},
    {"timeout", read_timeout, true},
    {"baseline", read_baseline, true},
    {"profile", read_profile, true},
    {"layout", read_layout, true},
    {"needs", read_needs, true},
    {"cpus", read_cpus, true},
    {"nice", read_nice, true},
    {"cgroup", read_cgroup, true},
    {"vm", spec_read_vm, true},
    {"seed", read_seed, false},
    {"allow_failures", read_allow_failures, true},
    {"quick", read_quick, false},
};

static int check_known(struct spec_reader *reader, const struct tree *map, bool quick)
{
    const char *known[ARRAY_COUNT(keys)];
    size_t count = 0;
    for (size_t k = 0; k < ARRAY_COUNT(keys); k++)
        if (!quick || keys[k].in_quick)
            known[count++] = keys[k].name;
    for (size_t i = 0; i < map->count; i++) {
        size_t k = 0;
        while (k < count && !str_eq(known[k], map->keys[i].text))
            k++;
        if (k == count)
            return spec_fail_unknown(reader, &map->keys[i], quick ? "key of quick" : "key", known,
                                     count);
    }
    return 0;
}

static int read_keys(struct spec_reader *reader, const struct tree *map, bool quick)
{
    int r = check_known(reader, map, quick);
    for (size_t k = 0; r == 0 && k < ARRAY_COUNT(keys); k++) {
        const struct tree *value = tree_get(map, keys[k].name);
        if (value && (!quick || keys[k].in_quick))
            r = keys[k].read(reader, value);
    }
    return r;
}

/* The section is checked always, and used when the quick experiment was asked for. */
static int read_quick(struct spec_reader *reader, const struct tree *value)
{
    int r = spec_want(reader, value, TREE_MAP, "quick");
    if (r < 0)
        return r;
    struct spec before = *reader->s;
    struct spec_factor *factors = before.factors;
    if (factors) {
        reader->s->factors = spec_alloc(reader, SPEC_FACTORS_MAX, sizeof(*factors));
        memcpy(reader->s->factors, factors, before.factor_count * sizeof(*factors));
    }
    if (!tree_get(value, "precision"))
        reader->s->precision = tree_get(value, "rounds") ? 0 : reader->s->precision;
    reader->in_quick = true;
    r = read_keys(reader, value, true);
    reader->in_quick = false;
    reader->s->include_count = 0;
    if (!reader->s->quick) {
        struct arena arena = reader->s->arena;
        *reader->s = before;
        reader->s->arena = arena;
    }
    return r;
}

static int check_whole(struct spec_reader *reader)
{
    struct spec *s = reader->s;
    if (!s->name)
        return error_set(reader->err, -EINVAL, "%s: 'name' is missing", s->file);
    if (!s->command.text && !s->command.words)
        return error_set(reader->err, -EINVAL, "%s: 'command' is missing", s->file);
    if (!s->rounds)
        s->rounds = ROUNDS_DEFAULT;
    int r = spec_check_vm(reader);
    return r < 0 ? r : holes_check(s, reader->err);
}

static char *folder_of(struct arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return arena_strdup(arena, ".");
    return arena_strndup(arena, path, slash == path ? 1 : (size_t)(slash - path));
}

int spec_parse(struct spec *s, const char *file, const char *text, size_t length, bool quick,
               struct error *err)
{
    *s = (struct spec){.question = "",
                       .counters = "",
                       .needs = "",
                       .quick = quick,
                       .attempts = 1,
                       .warmup = 1,
                       .vary_layout = true,
                       .kernel_factor = SPEC_NO_FACTOR,
                       .profile = PROFILE_NONE,
                       .monitor_interval_ns = MONITOR_INTERVAL_NS};
    s->file = arena_strdup(&s->arena, file);
    s->folder = folder_of(&s->arena, file);
    s->text = arena_strndup(&s->arena, text, length);
    struct spec_reader reader = {.s = s, .err = err};
    struct tree root;
    int r = tree_parse(s->file, text, length, &s->arena, &root, err);
    if (r == 0)
        r = spec_want(&reader, &root, TREE_MAP, "a spec");
    if (r == 0)
        r = read_keys(&reader, &root, false);
    if (r == 0 && quick && !tree_get(&root, "quick"))
        r = error_set(err, -EINVAL, "%s: no 'quick' section", s->file);
    if (r == 0)
        r = check_whole(&reader);
    if (r < 0)
        spec_done(s);
    return r;
}

int spec_load(struct spec *s, const char *path, bool quick, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    int reader = file_read(path, &text, err);
    if (reader < 0)
        return reader;
    return spec_parse(s, path, strbuf_text(&text), text.length, quick, err);
}

void spec_done(struct spec *s)
{
    for (size_t i = 0; i < s->metric_count; i++)
        if (s->metrics[i].regex_ready)
            regfree(&s->metrics[i].regex);
    arena_done(&s->arena);
    *s = (struct spec){0};
}
