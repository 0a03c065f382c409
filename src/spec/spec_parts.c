/* SPDX-License-Identifier: MIT */
/* The larger parts of a spec: builds, steps before and after, metrics. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/strings.h"
#include "spec/spec_read.h"

#include <errno.h>

/* How long a server may take to become ready unless the spec says otherwise. */
#define READY_TIMEOUT_NS (30 * NS_PER_S)

/* Each key of the map must be one of the known names. */
static int check_keys(struct spec_reader *r, const struct tree *map, const char *what,
                      const char *const *known, size_t count)
{
    for (size_t i = 0; i < map->count; i++) {
        bool found = false;
        for (size_t k = 0; k < count && !found; k++)
            found = str_eq(known[k], map->keys[i].text);
        if (!found)
            return spec_fail_unknown(r, &map->keys[i], what, known, count);
    }
    return 0;
}

static int read_one_build(struct spec_reader *r, const struct tree *value, struct spec_build *b)
{
    static const char *const keys[] = {"name", "command", "inputs"};
    b->line = value->line;
    b->name = "";
    if (value->kind != TREE_MAP)
        return spec_want_command(r, value, "build", &b->command);
    int code = check_keys(r, value, "key of build", keys, ARRAY_COUNT(keys));
    const struct tree *command = tree_get(value, "command"), *name = tree_get(value, "name"),
                      *inputs = tree_get(value, "inputs");
    if (code == 0 && !command)
        code = spec_fail(r, value->line, "build: 'command' is missing");
    if (code == 0)
        code = spec_want_command(r, command, "build.command", &b->command);
    if (code == 0 && name)
        code = spec_want_text(r, name, "build.name", &b->name);
    if (code == 0 && name && !spec_is_name(b->name, strlen(b->name)))
        code = spec_fail(r, name->line, "build.name: '%s' is not a valid name", b->name);
    size_t count;
    if (code == 0 && inputs)
        code = spec_want_texts(r, inputs, "build.inputs", &b->inputs, &count);
    return code;
}

int spec_read_build(struct spec_reader *r, const struct tree *value)
{
    struct spec *s = r->s;
    /* A list of texts is one command; a list of mappings is several builds. */
    bool many = value->kind == TREE_LIST && value->count > 0 && value->items[0].kind == TREE_MAP;
    s->build_count = many ? value->count : 1;
    s->builds = spec_alloc(r, s->build_count, sizeof(*s->builds));
    for (size_t i = 0; i < s->build_count; i++) {
        int code = read_one_build(r, many ? &value->items[i] : value, &s->builds[i]);
        if (code < 0)
            return code;
        for (size_t k = 0; k < i; k++)
            if (str_eq(s->builds[k].name, s->builds[i].name))
                return spec_fail(r, s->builds[i].line, "build: two builds need different names");
    }
    return 0;
}

static int read_ready(struct spec_reader *r, const struct tree *value, struct spec_step *step)
{
    static const char *const keys[] = {"port", "output", "file", "command"};
    static const enum spec_ready kinds[] = {READY_PORT, READY_OUTPUT, READY_FILE, READY_COMMAND};
    int code = spec_want(r, value, TREE_MAP, "ready");
    if (code == 0)
        code = check_keys(r, value, "key of ready", keys, ARRAY_COUNT(keys));
    if (code == 0 && value->count != 1)
        code = spec_fail(r, value->line, "ready: give one of port, output, file or command");
    for (size_t k = 0; code == 0 && k < ARRAY_COUNT(keys); k++)
        if (str_eq(value->keys[0].text, keys[k])) {
            step->ready = kinds[k];
            return spec_want_text(r, &value->items[0], keys[k], &step->ready_text);
        }
    return code;
}

static int read_per(struct spec_reader *r, const struct tree *value, struct spec_step *step)
{
    const char *text;
    int code = spec_want_text(r, value, "per", &text);
    if (code == 0 && !str_eq(text, "run") && !str_eq(text, "experiment"))
        code = spec_fail(r, value->line, "per: must be run or experiment, not '%s'", text);
    if (code == 0)
        step->once = str_eq(text, "experiment");
    return code;
}

static int read_step(struct spec_reader *r, const struct tree *value, const char *what,
                     bool may_start, struct spec_step *step)
{
    static const char *const keys[] = {"command", "start", "ready", "timeout", "per"};
    step->timeout_ns = READY_TIMEOUT_NS;
    if (value->kind != TREE_MAP)
        return spec_want_command(r, value, what, &step->command);
    int code = check_keys(r, value, what, keys, ARRAY_COUNT(keys));
    const struct tree *command = tree_get(value, "command"), *start = tree_get(value, "start"),
                      *ready = tree_get(value, "ready"), *timeout = tree_get(value, "timeout"),
                      *per = tree_get(value, "per");
    if (code == 0 && !command == !start)
        code =
            spec_fail(r, value->line, "%s: give either command (to run) or start (a server)", what);
    if (code == 0 && start && !may_start)
        code = spec_fail(r, start->line, "%s: nothing to run; give a command", what);
    if (code == 0)
        code = spec_want_command(r, start ? start : command, start ? "start" : "command",
                                 &step->command);
    step->background = start != NULL;
    if (code == 0 && ready && !start)
        code = spec_fail(r, ready->line, "ready: only valid with start, not with command");
    if (code == 0 && ready)
        code = read_ready(r, ready, step);
    if (code == 0 && timeout)
        code = spec_want_duration(r, timeout, "timeout", &step->timeout_ns);
    if (code == 0 && per)
        code = read_per(r, per, step);
    return code;
}

static int read_steps(struct spec_reader *r, const struct tree *value, const char *what,
                      bool may_start, struct spec_step **ret_steps, size_t *ret_count)
{
    bool many = value->kind == TREE_LIST && value->count > 0 && value->items[0].kind == TREE_MAP;
    size_t count = many ? value->count : 1;
    struct spec_step *steps = spec_alloc(r, count, sizeof(*steps));
    for (size_t i = 0; i < count; i++) {
        int code = read_step(r, many ? &value->items[i] : value, what, may_start, &steps[i]);
        if (code < 0)
            return code;
    }
    *ret_steps = steps;
    *ret_count = count;
    return 0;
}

int spec_read_setup(struct spec_reader *r, const struct tree *value)
{
    return read_steps(r, value, "setup", true, &r->s->setups, &r->s->setup_count);
}

int spec_read_teardown(struct spec_reader *r, const struct tree *value)
{
    return read_steps(r, value, "teardown", false, &r->s->teardowns, &r->s->teardown_count);
}

static int read_better(struct spec_reader *r, const struct tree *value, struct spec_metric *m)
{
    const char *text;
    int code = spec_want_text(r, value, "better", &text);
    if (code < 0)
        return code;
    if (!str_eq(text, "higher") && !str_eq(text, "lower"))
        return spec_fail(r, value->line, "better: must be higher or lower, not '%s'", text);
    m->better = str_eq(text, "higher") ? METRIC_HIGHER : METRIC_LOWER;
    m->better_given = true;
    return 0;
}

static int compile_pattern(struct spec_reader *r, const struct tree *value, struct spec_metric *m)
{
    int code = spec_want_text(r, value, "regex", &m->pattern);
    if (code < 0)
        return code;
    int problem = regcomp(&m->regex, m->pattern, REG_EXTENDED | REG_NEWLINE);
    if (problem) {
        char words[128];
        regerror(problem, &m->regex, words, sizeof(words));
        return spec_fail(r, value->line, "regex: '%s': %s", m->pattern, words);
    }
    m->regex_ready = true;
    if (m->regex.re_nsub < 1)
        return spec_fail(r, value->line, "regex: '%s' has no parentheses around the number",
                         m->pattern);
    m->source = METRIC_REGEX;
    return 0;
}

/* {below: 0.1, say: "…"} or with above. */
static int read_note(struct spec_reader *r, const struct tree *value, struct spec_metric *m)
{
    static const char *const keys[] = {"below", "above", "say"};
    const struct tree *below = tree_get(value, "below"), *above = tree_get(value, "above"),
                      *say = tree_get(value, "say");
    const char *text;
    int code = check_keys(r, value, "key of a note", keys, ARRAY_COUNT(keys));
    if (code == 0 && (!say || !below == !above))
        code = spec_fail(r, value->line, "note: needs 'say', and either 'below' or 'above'");
    if (code == 0)
        code = spec_want_text(r, below ? below : above, below ? "below" : "above", &text);
    if (code == 0 && parse_double(text, &m->note_limit, NULL) < 0)
        code = spec_fail(r, value->line, "note: '%s' is not a number", text);
    m->note_above = above != NULL;
    return code == 0 ? spec_want_text(r, say, "say", &m->note) : code;
}

static int read_metric_keys(struct spec_reader *r, const struct tree *value, struct spec_metric *m)
{
    static const char *const keys[] = {"unit", "better", "headline", "regex",
                                       "json", "file",   "optional", "note"};
    const struct tree *regex = tree_get(value, "regex"), *json = tree_get(value, "json"),
                      *better = tree_get(value, "better"), *unit = tree_get(value, "unit"),
                      *headline = tree_get(value, "headline"), *file = tree_get(value, "file"),
                      *note = tree_get(value, "note");
    int code = check_keys(r, value, "key of a metric", keys, ARRAY_COUNT(keys));
    if (code == 0 && regex && json)
        code =
            spec_fail(r, json->line, "metric %s: regex and json cannot be used together", m->name);
    if (code == 0 && file && !regex && !json)
        code = spec_fail(r, file->line, "metric %s: file needs regex or json", m->name);
    if (code == 0 && unit)
        code = spec_want_text(r, unit, "unit", &m->unit);
    if (code == 0 && better)
        code = read_better(r, better, m);
    if (code == 0 && headline)
        code = spec_want_bool(r, headline, "headline", &m->headline);
    if (code == 0 && file)
        code = spec_want_text(r, file, "file", &m->file);
    if (code == 0 && tree_get(value, "optional"))
        code = spec_want_bool(r, tree_get(value, "optional"), "optional", &m->optional);
    if (code == 0 && note)
        code = read_note(r, note, m);
    if (code == 0 && regex)
        code = compile_pattern(r, regex, m);
    if (code == 0 && json) {
        code = spec_want_text(r, json, "json", &m->pattern);
        m->source = METRIC_JSON;
    }
    return code;
}

int spec_read_metrics(struct spec_reader *r, const struct tree *value)
{
    struct spec *s = r->s;
    int code = spec_want(r, value, TREE_MAP, "metrics");
    if (code < 0)
        return code;
    s->metrics = spec_alloc(r, value->count, sizeof(*s->metrics));
    for (size_t i = 0; i < value->count; i++) {
        struct spec_metric *m = &s->metrics[s->metric_count++];
        *m = (struct spec_metric){.name = value->keys[i].text,
                                  .unit = "",
                                  .line = value->keys[i].line,
                                  .headline = true,
                                  .better = METRIC_NEITHER};
        if (!m->name[0])
            return spec_fail(r, m->line, "metrics: a name is empty");
        if (value->items[i].kind == TREE_SCALAR && value->items[i].is_null)
            continue;
        code = spec_want(r, &value->items[i], TREE_MAP, m->name);
        if (code == 0)
            code = read_metric_keys(r, &value->items[i], m);
        if (code < 0)
            return code;
    }
    return 0;
}

static int add_role(struct spec_reader *r, const struct tree *key, uint64_t count)
{
    struct spec *s = r->s;
    if (!spec_is_name(key->text, strlen(key->text)))
        return spec_fail(r, key->line, "hosts: '%s' is not a valid name", key->text);
    if (s->host_count + count > SPEC_HOSTS_MAX)
        return spec_fail(r, key->line, "hosts: at most %d are allowed", SPEC_HOSTS_MAX);
    for (uint64_t i = 0; i < count; i++) {
        CLEANUP(memory_freep)
        char *name = count > 1 ? memory_printf("%s%llu", key->text, (unsigned long long)i + 1)
                               : memory_strdup(key->text);
        for (size_t k = 0; k < s->host_count; k++)
            if (str_eq(s->hosts[k].name, name))
                return spec_fail(r, key->line, "hosts: '%s' is listed twice", name);
        s->hosts[s->host_count++] = (struct spec_host){.name = arena_strdup(&s->arena, name),
                                                       .group = arena_strdup(&s->arena, key->text)};
    }
    return 0;
}

/* {ROLE: COUNT, …} or [ROLE, …]. */
int spec_read_hosts(struct spec_reader *r, const struct tree *value)
{
    static const char *const taken[] = {"host", "hosts", "on"};
    struct spec *s = r->s;
    if (value->kind == TREE_SCALAR || value->count == 0)
        return spec_fail(r, value->line, "hosts: must be roles, e.g. {sender: 1, receiver: 1}");
    for (size_t f = 0; f < s->factor_count; f++)
        for (size_t i = 0; i < ARRAY_COUNT(taken); i++)
            if (str_eq(s->factors[f].name, taken[i]))
                return spec_fail(r, value->line,
                                 "hosts: a factor cannot have the name of the role '%s'", taken[i]);
    s->hosts = spec_alloc(r, SPEC_HOSTS_MAX, sizeof(*s->hosts));
    int code = 0;
    for (size_t i = 0; code == 0 && i < value->count; i++) {
        uint64_t count = 1;
        const struct tree *key = value->kind == TREE_MAP ? &value->keys[i] : &value->items[i];
        if (value->kind == TREE_MAP)
            code = spec_want_u64(r, &value->items[i], "hosts", 1, SPEC_HOSTS_MAX, &count);
        else
            code = spec_want(r, key, TREE_SCALAR, "hosts");
        if (code == 0)
            code = add_role(r, key, count);
    }
    return code;
}
