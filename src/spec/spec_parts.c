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
static int check_keys(struct spec_reader *reader, const struct tree *map, const char *what,
                      const char *const *known, size_t count)
{
    for (size_t i = 0; i < map->count; i++) {
        bool found = false;
        for (size_t k = 0; k < count && !found; k++)
            found = str_eq(known[k], map->keys[i].text);
        if (!found)
            return spec_fail_unknown(reader, &map->keys[i], what, known, count);
    }
    return 0;
}

static int read_one_build(struct spec_reader *reader, const struct tree *value,
                          struct spec_build *b)
{
    static const char *const keys[] = {"name", "command", "inputs"};
    b->line = value->line;
    b->name = "";
    if (value->kind != TREE_MAP)
        return spec_want_command(reader, value, "build", &b->command);
    int r = check_keys(reader, value, "key of build", keys, ARRAY_COUNT(keys));
    const struct tree *command = tree_get(value, "command"), *name = tree_get(value, "name"),
                      *inputs = tree_get(value, "inputs");
    if (r == 0 && !command)
        r = spec_fail(reader, value->line, "build: 'command' is missing");
    if (r == 0)
        r = spec_want_command(reader, command, "build.command", &b->command);
    if (r == 0 && name)
        r = spec_want_text(reader, name, "build.name", &b->name);
    if (r == 0 && name && !spec_is_name(b->name, strlen(b->name)))
        r = spec_fail(reader, name->line, "build.name: '%s' is not a valid name", b->name);
    size_t count;
    if (r == 0 && inputs)
        r = spec_want_texts(reader, inputs, "build.inputs", &b->inputs, &count);
    return r;
}

int spec_read_build(struct spec_reader *reader, const struct tree *value)
{
    struct spec *s = reader->s;
    /* A list of texts is one command; a list of mappings is several builds. */
    bool many = value->kind == TREE_LIST && value->count > 0 && value->items[0].kind == TREE_MAP;
    s->build_count = many ? value->count : 1;
    s->builds = spec_alloc(reader, s->build_count, sizeof(*s->builds));
    for (size_t i = 0; i < s->build_count; i++) {
        int r = read_one_build(reader, many ? &value->items[i] : value, &s->builds[i]);
        if (r < 0)
            return r;
        for (size_t k = 0; k < i; k++)
            if (str_eq(s->builds[k].name, s->builds[i].name))
                return spec_fail(reader, s->builds[i].line,
                                 "build: two builds need different names");
    }
    return 0;
}

static int read_ready(struct spec_reader *reader, const struct tree *value, struct spec_step *step)
{
    static const char *const keys[] = {"port", "output", "file", "command"};
    static const enum spec_ready kinds[] = {READY_PORT, READY_OUTPUT, READY_FILE, READY_COMMAND};
    int r = spec_want(reader, value, TREE_MAP, "ready");
    if (r == 0)
        r = check_keys(reader, value, "key of ready", keys, ARRAY_COUNT(keys));
    if (r == 0 && value->count != 1)
        r = spec_fail(reader, value->line, "ready: give one of port, output, file or command");
    for (size_t k = 0; r == 0 && k < ARRAY_COUNT(keys); k++)
        if (str_eq(value->keys[0].text, keys[k])) {
            step->ready = kinds[k];
            return spec_want_text(reader, &value->items[0], keys[k], &step->ready_text);
        }
    return r;
}

static int read_per(struct spec_reader *reader, const struct tree *value, struct spec_step *step)
{
    const char *text;
    int r = spec_want_text(reader, value, "per", &text);
    if (r == 0 && !str_eq(text, "run") && !str_eq(text, "experiment"))
        r = spec_fail(reader, value->line, "per: must be run or experiment, not '%s'", text);
    if (r == 0)
        step->once = str_eq(text, "experiment");
    return r;
}

static int read_step(struct spec_reader *reader, const struct tree *value, const char *what,
                     bool may_start, struct spec_step *step)
{
    static const char *const keys[] = {"command", "start", "ready", "timeout", "per"};
    step->timeout_ns = READY_TIMEOUT_NS;
    if (value->kind != TREE_MAP)
        return spec_want_command(reader, value, what, &step->command);
    int r = check_keys(reader, value, what, keys, ARRAY_COUNT(keys));
    const struct tree *command = tree_get(value, "command"), *start = tree_get(value, "start"),
                      *ready = tree_get(value, "ready"), *timeout = tree_get(value, "timeout"),
                      *per = tree_get(value, "per");
    if (r == 0 && !command == !start)
        r = spec_fail(reader, value->line, "%s: give either command (to run) or start (a server)",
                      what);
    if (r == 0 && start && !may_start)
        r = spec_fail(reader, start->line, "%s: nothing to run; give a command", what);
    if (r == 0)
        r = spec_want_command(reader, start ? start : command, start ? "start" : "command",
                              &step->command);
    step->background = start != NULL;
    if (r == 0 && ready && !start)
        r = spec_fail(reader, ready->line, "ready: only valid with start, not with command");
    if (r == 0 && ready)
        r = read_ready(reader, ready, step);
    if (r == 0 && timeout)
        r = spec_want_duration(reader, timeout, "timeout", &step->timeout_ns);
    if (r == 0 && per)
        r = read_per(reader, per, step);
    return r;
}

static int read_steps(struct spec_reader *reader, const struct tree *value, const char *what,
                      bool may_start, struct spec_step **ret_steps, size_t *ret_count)
{
    bool many = value->kind == TREE_LIST && value->count > 0 && value->items[0].kind == TREE_MAP;
    size_t count = many ? value->count : 1;
    struct spec_step *steps = spec_alloc(reader, count, sizeof(*steps));
    for (size_t i = 0; i < count; i++) {
        int r = read_step(reader, many ? &value->items[i] : value, what, may_start, &steps[i]);
        if (r < 0)
            return r;
    }
    *ret_steps = steps;
    *ret_count = count;
    return 0;
}

int spec_read_setup(struct spec_reader *reader, const struct tree *value)
{
    return read_steps(reader, value, "setup", true, &reader->s->setups, &reader->s->setup_count);
}

int spec_read_teardown(struct spec_reader *reader, const struct tree *value)
{
    return read_steps(reader, value, "teardown", false, &reader->s->teardowns,
                      &reader->s->teardown_count);
}

static int read_better(struct spec_reader *reader, const struct tree *value, struct spec_metric *m)
{
    const char *text;
    int r = spec_want_text(reader, value, "better", &text);
    if (r < 0)
        return r;
    if (!str_eq(text, "higher") && !str_eq(text, "lower"))
        return spec_fail(reader, value->line, "better: must be higher or lower, not '%s'", text);
    m->better = str_eq(text, "higher") ? METRIC_HIGHER : METRIC_LOWER;
    m->better_given = true;
    return 0;
}

static int compile_pattern(struct spec_reader *reader, const struct tree *value,
                           struct spec_metric *m)
{
    int r = spec_want_text(reader, value, "regex", &m->pattern);
    if (r < 0)
        return r;
    int problem = regcomp(&m->regex, m->pattern, REG_EXTENDED | REG_NEWLINE);
    if (problem) {
        char words[128];
        regerror(problem, &m->regex, words, sizeof(words));
        return spec_fail(reader, value->line, "regex: '%s': %s", m->pattern, words);
    }
    m->regex_ready = true;
    if (m->regex.re_nsub < 1)
        return spec_fail(reader, value->line, "regex: '%s' has no parentheses around the number",
                         m->pattern);
    m->source = METRIC_REGEX;
    return 0;
}

/* {below: 0.1, say: "…"} or with above. */
static int read_note(struct spec_reader *reader, const struct tree *value, struct spec_metric *m)
{
    static const char *const keys[] = {"below", "above", "say"};
    const struct tree *below = tree_get(value, "below"), *above = tree_get(value, "above"),
                      *say = tree_get(value, "say");
    const char *text;
    int r = check_keys(reader, value, "key of a note", keys, ARRAY_COUNT(keys));
    if (r == 0 && (!say || !below == !above))
        r = spec_fail(reader, value->line, "note: needs 'say', and either 'below' or 'above'");
    if (r == 0)
        r = spec_want_text(reader, below ? below : above, below ? "below" : "above", &text);
    if (r == 0 && parse_double(text, &m->note_limit, NULL) < 0)
        r = spec_fail(reader, value->line, "note: '%s' is not a number", text);
    m->note_above = above != NULL;
    return r == 0 ? spec_want_text(reader, say, "say", &m->note) : r;
}

static int read_metric_keys(struct spec_reader *reader, const struct tree *value,
                            struct spec_metric *m)
{
    static const char *const keys[] = {"unit", "better", "headline", "regex",
                                       "json", "file",   "optional", "note"};
    const struct tree *regex = tree_get(value, "regex"), *json = tree_get(value, "json"),
                      *better = tree_get(value, "better"), *unit = tree_get(value, "unit"),
                      *headline = tree_get(value, "headline"), *file = tree_get(value, "file"),
                      *note = tree_get(value, "note");
    int r = check_keys(reader, value, "key of a metric", keys, ARRAY_COUNT(keys));
    if (r == 0 && regex && json)
        r = spec_fail(reader, json->line, "metric %s: regex and json cannot be used together",
                      m->name);
    if (r == 0 && file && !regex && !json)
        r = spec_fail(reader, file->line, "metric %s: file needs regex or json", m->name);
    if (r == 0 && unit)
        r = spec_want_text(reader, unit, "unit", &m->unit);
    if (r == 0 && better)
        r = read_better(reader, better, m);
    if (r == 0 && headline)
        r = spec_want_bool(reader, headline, "headline", &m->headline);
    if (r == 0 && file)
        r = spec_want_text(reader, file, "file", &m->file);
    if (r == 0 && tree_get(value, "optional"))
        r = spec_want_bool(reader, tree_get(value, "optional"), "optional", &m->optional);
    if (r == 0 && note)
        r = read_note(reader, note, m);
    if (r == 0 && regex)
        r = compile_pattern(reader, regex, m);
    if (r == 0 && json) {
        r = spec_want_text(reader, json, "json", &m->pattern);
        m->source = METRIC_JSON;
    }
    return r;
}

int spec_read_metrics(struct spec_reader *reader, const struct tree *value)
{
    struct spec *s = reader->s;
    int r = spec_want(reader, value, TREE_MAP, "metrics");
    if (r < 0)
        return r;
    s->metrics = spec_alloc(reader, value->count, sizeof(*s->metrics));
    for (size_t i = 0; i < value->count; i++) {
        struct spec_metric *m = &s->metrics[s->metric_count++];
        *m = (struct spec_metric){.name = value->keys[i].text,
                                  .unit = "",
                                  .line = value->keys[i].line,
                                  .headline = true,
                                  .better = METRIC_NEITHER};
        if (!m->name[0])
            return spec_fail(reader, m->line, "metrics: a name is empty");
        if (value->items[i].kind == TREE_SCALAR && value->items[i].is_null)
            continue;
        r = spec_want(reader, &value->items[i], TREE_MAP, m->name);
        if (r == 0)
            r = read_metric_keys(reader, &value->items[i], m);
        if (r < 0)
            return r;
    }
    return 0;
}

static int add_role(struct spec_reader *reader, const struct tree *key, uint64_t count)
{
    struct spec *s = reader->s;
    if (!spec_is_name(key->text, strlen(key->text)))
        return spec_fail(reader, key->line, "hosts: '%s' is not a valid name", key->text);
    if (s->host_count + count > SPEC_HOSTS_MAX)
        return spec_fail(reader, key->line, "hosts: at most %d are allowed", SPEC_HOSTS_MAX);
    for (uint64_t i = 0; i < count; i++) {
        CLEANUP(memory_freep)
        char *name = count > 1 ? memory_printf("%s%llu", key->text, (unsigned long long)i + 1)
                               : memory_strdup(key->text);
        for (size_t k = 0; k < s->host_count; k++)
            if (str_eq(s->hosts[k].name, name))
                return spec_fail(reader, key->line, "hosts: '%s' is listed twice", name);
        s->hosts[s->host_count++] = (struct spec_host){.name = arena_strdup(&s->arena, name),
                                                       .group = arena_strdup(&s->arena, key->text)};
    }
    return 0;
}

/* {ROLE: COUNT, …} or [ROLE, …]. */
int spec_read_hosts(struct spec_reader *reader, const struct tree *value)
{
    static const char *const taken[] = {"host", "hosts", "on"};
    struct spec *s = reader->s;
    if (value->kind == TREE_SCALAR || value->count == 0)
        return spec_fail(reader, value->line,
                         "hosts: must be roles, e.g. {sender: 1, receiver: 1}");
    for (size_t f = 0; f < s->factor_count; f++)
        for (size_t i = 0; i < ARRAY_COUNT(taken); i++)
            if (str_eq(s->factors[f].name, taken[i]))
                return spec_fail(reader, value->line,
                                 "hosts: a factor cannot have the name of the role '%s'", taken[i]);
    s->hosts = spec_alloc(reader, SPEC_HOSTS_MAX, sizeof(*s->hosts));
    int r = 0;
    for (size_t i = 0; r == 0 && i < value->count; i++) {
        uint64_t count = 1;
        const struct tree *key = value->kind == TREE_MAP ? &value->keys[i] : &value->items[i];
        if (value->kind == TREE_MAP)
            r = spec_want_u64(reader, &value->items[i], "hosts", 1, SPEC_HOSTS_MAX, &count);
        else
            r = spec_want(reader, key, TREE_SCALAR, "hosts");
        if (r == 0)
            r = add_role(reader, key, count);
    }
    return r;
}
