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
#include "monitors/monitors.h"
#include "spec/holes.h"
#include "spec/spec_read.h"

#include <errno.h>
#include <unistd.h>

#define ROUNDS_DEFAULT 10
#define ROUNDS_MAX 1000000
#define MONITOR_INTERVAL_NS NS_PER_S

static int read_name(struct spec_reader *r, const struct tree *value)
{
    int code = spec_want_text(r, value, "name", &r->s->name);
    if (code == 0 && (strpbrk(r->s->name, "\n\t") || strlen(r->s->name) > 200))
        code = spec_fail(r, value->line, "name: must be one line of at most 200 bytes");
    return code;
}

static int read_question(struct spec_reader *r, const struct tree *value)
{
    return spec_want_text(r, value, "question", &r->s->question);
}

static int read_command(struct spec_reader *r, const struct tree *value)
{
    return spec_want_command(r, value, "command", &r->s->command);
}

static int read_shell(struct spec_reader *r, const struct tree *value)
{
    bool shell = false;
    int code = spec_want_bool(r, value, "shell", &shell);
    if (code == 0 && shell && r->s->command.words)
        code = spec_fail(r, value->line, "shell: the command must be a string, not a list");
    if (code == 0)
        r->s->command.shell = shell;
    return code;
}

static int read_env(struct spec_reader *r, const struct tree *value)
{
    return spec_want_pairs(r, value, "env", &r->s->environment);
}

static int read_input(struct spec_reader *r, const struct tree *value)
{
    return spec_want_text(r, value, "input", &r->s->input);
}

static int read_work(struct spec_reader *r, const struct tree *value)
{
    return spec_want_text(r, value, "work", &r->s->work);
}

static int read_counters(struct spec_reader *r, const struct tree *value)
{
    const char **names;
    size_t count;
    int code = spec_want_texts(r, value, "counters", &names, &count);
    if (code < 0)
        return code;
    CLEANUP(strbuf_done) struct strbuf list = {0};
    for (size_t i = 0; i < count; i++)
        strbuf_printf(&list, "%s%s", i ? "," : "", names[i]);
    r->s->counters = arena_strdup(&r->s->arena, strbuf_text(&list));
    return 0;
}

static int read_monitor_names(struct spec_reader *r, const struct tree *value)
{
    struct spec *s = r->s;
    int code = spec_want_texts(r, value, "monitors", &s->monitors, &s->monitor_count);
    for (size_t i = 0; code == 0 && i < s->monitor_count; i++) {
        if (monitor_find(s->monitors[i]))
            continue;
        const char *known[MONITORS_MAX];
        size_t count = monitor_names(known);
        struct tree key = {.text = s->monitors[i],
                           .line = value->kind == TREE_LIST ? value->items[i].line : value->line};
        code = spec_fail_unknown(r, &key, "monitor", known, count);
    }
    return code;
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

static int read_monitors(struct spec_reader *r, const struct tree *value)
{
    if (value->kind != TREE_MAP)
        return read_monitor_names(r, value);
    int code = 0;
    for (size_t i = 0; code == 0 && i < value->count; i++) {
        const struct tree *key = &value->keys[i];
        static const char *const known[] = {"interval", "list"};
        if (str_eq(key->text, "interval"))
            code = spec_want_duration(r, &value->items[i], "interval", &r->s->monitor_interval_ns);
        else if (str_eq(key->text, "list"))
            code = read_monitor_names(r, &value->items[i]);
        else
            code = spec_fail_unknown(r, key, "key of monitors", known, ARRAY_COUNT(known));
    }
    if (code == 0 && r->s->monitor_interval_ns < 10 * NS_PER_MS)
        code = spec_fail(r, value->line, "monitors: an interval must be at least 10ms");
    return code;
}

static int read_rounds(struct spec_reader *r, const struct tree *value)
{
    struct spec *s = r->s;
    if (value->kind != TREE_MAP) {
        int code = spec_want_u64(r, value, "rounds", 1, ROUNDS_MAX, &s->rounds);
        s->rounds_max = 0;
        return code;
    }
    static const char *const known[] = {"min", "max"};
    int code = 0;
    for (size_t i = 0; code == 0 && i < value->count; i++) {
        const struct tree *key = &value->keys[i];
        if (str_eq(key->text, "min"))
            code = spec_want_u64(r, &value->items[i], "rounds.min", 1, ROUNDS_MAX, &s->rounds);
        else if (str_eq(key->text, "max"))
            code = spec_want_u64(r, &value->items[i], "rounds.max", 1, ROUNDS_MAX, &s->rounds_max);
        else
            code = spec_fail_unknown(r, key, "key of rounds", known, ARRAY_COUNT(known));
    }
    if (code == 0 && s->rounds_max && s->rounds_max < s->rounds)
        code = spec_fail(r, value->line, "rounds: max is below min");
    return code;
}

static int read_warmup(struct spec_reader *r, const struct tree *value)
{
    return spec_want_u64(r, value, "warmup", 0, ROUNDS_MAX, &r->s->warmup);
}

static int read_attempts(struct spec_reader *r, const struct tree *value)
{
    return spec_want_u64(r, value, "attempts", 1, 100, &r->s->attempts);
}

static int read_precision(struct spec_reader *r, const struct tree *value)
{
    const char *text;
    int code = spec_want_text(r, value, "precision", &text);
    if (code < 0)
        return code;
    size_t length = strlen(text);
    bool percent = text[length - 1] == '%';
    CLEANUP(memory_freep) char *number = memory_strndup(text, length - percent);
    double share;
    if (parse_double(number, &share, NULL) < 0 || !(share > 0) || (share /= percent ? 100 : 1) >= 1)
        return spec_fail(r, value->line,
                         "precision: must be a percentage, e.g. 1%% or 0.01, not '%s'", text);
    r->s->precision = share;
    return 0;
}

static int read_budget(struct spec_reader *r, const struct tree *value)
{
    return spec_want_duration(r, value, "budget", &r->s->budget_ns);
}

static int read_timeout(struct spec_reader *r, const struct tree *value)
{
    return spec_want_duration(r, value, "timeout", &r->s->timeout_ns);
}

static int read_baseline(struct spec_reader *r, const struct tree *value)
{
    int code = spec_want_pairs(r, value, "baseline", &r->s->baseline);
    for (size_t i = 0; code == 0 && i < r->s->baseline.count; i++) {
        const struct text_pair *p = &r->s->baseline.items[i];
        size_t f = 0;
        while (f < r->s->factor_count && !str_eq(r->s->factors[f].name, p->name))
            f++;
        if (f == r->s->factor_count)
            return spec_fail(r, p->line, "baseline: there is no factor '%s'", p->name);
        size_t l = 0;
        const struct spec_factor *factor = &r->s->factors[f];
        while (l < factor->level_count && !str_eq(factor->levels[l].name, p->value))
            l++;
        if (l == factor->level_count)
            return spec_fail(r, p->line, "baseline: %s has no value '%s'", p->name, p->value);
    }
    return code;
}

static int read_profile(struct spec_reader *r, const struct tree *value)
{
    const char *text;
    int code = spec_want_text(r, value, "profile", &text);
    if (code < 0)
        return code;
    if (str_eq(text, "none"))
        r->s->profile = PROFILE_NONE;
    else if (str_eq(text, "changed"))
        r->s->profile = PROFILE_CHANGED;
    else if (str_eq(text, "all"))
        r->s->profile = PROFILE_ALL;
    else
        return spec_fail(r, value->line, "profile: must be changed, all or none, not '%s'", text);
    return 0;
}

static int read_layout(struct spec_reader *r, const struct tree *value)
{
    const char *text;
    int code = spec_want_text(r, value, "layout", &text);
    if (code == 0 && !str_eq(text, "vary") && !str_eq(text, "fixed"))
        code = spec_fail(r, value->line, "layout: must be vary or fixed, not '%s'", text);
    if (code == 0)
        r->s->vary_layout = str_eq(text, "vary");
    return code;
}

static int read_needs(struct spec_reader *r, const struct tree *value)
{
    const char **names;
    size_t count;
    int code = spec_want_texts(r, value, "needs", &names, &count);
    if (code < 0)
        return code;
    CLEANUP(strbuf_done) struct strbuf list = {0};
    for (size_t i = 0; i < count; i++)
        strbuf_printf(&list, "%s%s", i ? "," : "", names[i]);
    r->s->needs = arena_strdup(&r->s->arena, strbuf_text(&list));
    return 0;
}

static int read_cpus(struct spec_reader *r, const struct tree *value)
{
    return spec_want_text(r, value, "cpus", &r->s->cpus);
}

static int read_nice(struct spec_reader *r, const struct tree *value)
{
    const char *text;
    double number;
    int code = spec_want_text(r, value, "nice", &text);
    if (code < 0)
        return code;
    if (parse_double(text, &number, NULL) < 0 || number < -20 || number > 19 ||
        number != (int)number)
        return spec_fail(r, value->line,
                         "nice: must be a whole number between -20 and 19, not '%s'", text);
    r->s->nice = (int)number;
    return 0;
}

static int read_cgroup(struct spec_reader *r, const struct tree *value)
{
    return spec_want_pairs(r, value, "cgroup", &r->s->cgroup);
}

static int read_seed(struct spec_reader *r, const struct tree *value)
{
    r->s->has_seed = true;
    return spec_want_u64(r, value, "seed", 0, INT64_MAX, &r->s->seed);
}

static int read_allow_failures(struct spec_reader *r, const struct tree *value)
{
    return spec_want_bool(r, value, "allow_failures", &r->s->allow_failures);
}

static spec_read_fn read_quick;

static const struct spec_key keys[] = {
    {"name", read_name, false},
    {"question", read_question, false},
    {"command", read_command, false},
    {"shell", read_shell, false},
    {"factors", spec_read_factors, true},
    {"hosts", spec_read_hosts, false},
    {"exclude", spec_read_exclude, false},
    {"include", spec_read_include, false},
    {"build", spec_read_build, false},
    {"setup", spec_read_setup, false},
    {"teardown", spec_read_teardown, false},
    {"metrics", spec_read_metrics, false},
    {"work", read_work, false},
    {"env", read_env, false},
    {"input", read_input, false},
    {"counters", read_counters, true},
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

static int check_known(struct spec_reader *r, const struct tree *map, bool quick)
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
            return spec_fail_unknown(r, &map->keys[i], quick ? "key of quick" : "key", known,
                                     count);
    }
    return 0;
}

static int read_keys(struct spec_reader *r, const struct tree *map, bool quick)
{
    int code = check_known(r, map, quick);
    for (size_t k = 0; code == 0 && k < ARRAY_COUNT(keys); k++) {
        const struct tree *value = tree_get(map, keys[k].name);
        if (value && (!quick || keys[k].in_quick))
            code = keys[k].read(r, value);
    }
    return code;
}

/* The section is checked always, and used when the quick experiment was asked for. */
static int read_quick(struct spec_reader *r, const struct tree *value)
{
    int code = spec_want(r, value, TREE_MAP, "quick");
    if (code < 0)
        return code;
    struct spec before = *r->s;
    struct spec_factor *factors = before.factors;
    if (factors) {
        r->s->factors = spec_alloc(r, SPEC_FACTORS_MAX, sizeof(*factors));
        memcpy(r->s->factors, factors, before.factor_count * sizeof(*factors));
    }
    if (!tree_get(value, "precision"))
        r->s->precision = tree_get(value, "rounds") ? 0 : r->s->precision;
    r->in_quick = true;
    code = read_keys(r, value, true);
    r->in_quick = false;
    r->s->include_count = 0;
    if (!r->s->quick) {
        struct arena arena = r->s->arena;
        *r->s = before;
        r->s->arena = arena;
    }
    return code;
}

static int check_whole(struct spec_reader *r)
{
    struct spec *s = r->s;
    if (!s->name)
        return error_set(r->err, -EINVAL, "%s: 'name' is missing", s->file);
    if (!s->command.text && !s->command.words)
        return error_set(r->err, -EINVAL, "%s: 'command' is missing", s->file);
    if (!s->rounds)
        s->rounds = ROUNDS_DEFAULT;
    int code = spec_check_vm(r);
    return code < 0 ? code : holes_check(s, r->err);
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
    struct spec_reader r = {.s = s, .err = err};
    struct tree root;
    int code = tree_parse(s->file, text, length, &s->arena, &root, err);
    if (code == 0)
        code = spec_want(&r, &root, TREE_MAP, "a spec");
    if (code == 0)
        code = read_keys(&r, &root, false);
    if (code == 0 && quick && !tree_get(&root, "quick"))
        code = error_set(err, -EINVAL, "%s: no 'quick' section", s->file);
    if (code == 0)
        code = check_whole(&r);
    if (code < 0)
        spec_done(s);
    return code;
}

int spec_load(struct spec *s, const char *path, bool quick, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    int r = file_read(path, &text, err);
    if (r < 0)
        return r;
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
