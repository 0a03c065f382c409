/* SPDX-License-Identifier: MIT */
/* Finding, checking and filling the holes in a spec's texts. */
#include "spec/holes.h"
#include "base/memory.h"
#include "run/command.h"
#include "spec/spec_read.h"

#include <errno.h>

/* One hole: `{name}` or `{name.key}`. */
struct hole {
    const char *name, *key; /* key is NULL when there is none */
    size_t name_length, key_length;
};

/* The hole that begins at text[0] == '{'; its whole length, 0 when there is none. */
static size_t hole_at(const char *text, struct hole *ret)
{
    const char *end = strchr(text, '}');
    if (!end)
        return 0;
    size_t length = (size_t)(end - text) - 1;
    const char *dot = memchr(text + 1, '.', length);
    size_t name_length = dot ? (size_t)(dot - text) - 1 : length;
    if (!spec_is_name(text + 1, name_length))
        return 0;
    if (dot && !spec_is_name(dot + 1, length - name_length - 1))
        return 0;
    *ret = (struct hole){.name = text + 1,
                         .name_length = name_length,
                         .key = dot ? dot + 1 : NULL,
                         .key_length = dot ? length - name_length - 1 : 0};
    return length + 2;
}

static bool is(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

static size_t hole_factor(const struct spec *s, const struct hole *h)
{
    size_t f = 0;
    while (f < s->factor_count && !is(h->name, h->name_length, s->factors[f].name))
        f++;
    return f;
}

static size_t hole_build(const struct spec *s, const struct hole *h)
{
    if (!is(h->name, h->name_length, "build"))
        return s->build_count;
    size_t b = 0;
    while (b < s->build_count && (h->key ? !is(h->key, h->key_length, s->builds[b].name)
                                         : s->builds[b].name[0] && s->build_count > 1))
        b++;
    return b;
}

/* The role that {host.ROLE} or {on.ROLE} names; the count when there is none. */
static size_t hole_host(const struct spec *s, const struct hole *h, const char *kind)
{
    size_t i = 0;
    if (!h->key || !is(h->name, h->name_length, kind))
        return s->host_count;
    while (i < s->host_count && !is(h->key, h->key_length, s->hosts[i].name))
        i++;
    return i;
}

/* Whether {hosts.ROLE} names a role. */
static bool is_group_hole(const struct spec *s, const struct hole *h)
{
    if (h->key && is(h->name, h->name_length, "hosts"))
        for (size_t i = 0; i < s->host_count; i++)
            if (is(h->key, h->key_length, s->hosts[i].group))
                return true;
    return false;
}

static bool is_host_hole(const struct spec *s, const struct hole *h)
{
    return hole_host(s, h, "host") < s->host_count || hole_host(s, h, "on") < s->host_count ||
           is_group_hole(s, h);
}

static void fill_host(struct strbuf *out, const struct spec *s, const struct hole *h)
{
    size_t host = hole_host(s, h, "host"), on = hole_host(s, h, "on"), shown = 0;
    if (host < s->host_count)
        strbuf_puts(out, s->hosts[host].address ? s->hosts[host].address : "");
    for (size_t i = 0; is_group_hole(s, h) && i < s->host_count; i++)
        if (is(h->key, h->key_length, s->hosts[i].group))
            strbuf_printf(out, "%s%s", shown++ ? "," : "",
                          s->hosts[i].address ? s->hosts[i].address : "");
    if (on < s->host_count && s->hosts[on].launcher) /* within a text for a shell */
        strbuf_put_command(out, (char *const *)s->hosts[on].launcher);
}

static bool is_number_hole(const struct hole *h)
{
    return !h->key && (is(h->name, h->name_length, "cell") ||
                       is(h->name, h->name_length, "round") || is(h->name, h->name_length, "seed"));
}

/* Calls visit for each hole; texts between are given with a hole of NULL. */
static void walk(const char *text,
                 void (*visit)(void *context, const char *piece, size_t length,
                               const struct hole *hole),
                 void *context)
{
    for (const char *c = text; *c;) {
        size_t plain = strcspn(c, "{}");
        struct hole hole;
        size_t length;
        if (plain) {
            visit(context, c, plain, NULL);
            c += plain;
        } else if (c[0] == c[1]) { /* {{ or }} */
            visit(context, c, 1, NULL);
            c += 2;
        } else if (*c == '{' && (c == text || c[-1] != '$') && (length = hole_at(c, &hole))) {
            visit(context, c, length, &hole);
            c += length;
        } else {
            visit(context, c, 1, NULL);
            c++;
        }
    }
}

struct filler {
    struct strbuf *out;
    const struct hole_values *v;
};

static void fill_factor(struct strbuf *out, const struct spec_level *level, const struct hole *h)
{
    if (!h->key) {
        strbuf_puts(out, level->name);
        return;
    }
    for (size_t i = 0; i < level->attributes.count; i++)
        if (is(h->key, h->key_length, level->attributes.items[i].name))
            strbuf_puts(out, level->attributes.items[i].value);
}

static void fill(void *context, const char *piece, size_t length, const struct hole *h)
{
    struct filler *f = context;
    const struct hole_values *v = f->v;
    if (!h) {
        strbuf_append(f->out, piece, length);
        return;
    }
    size_t factor = hole_factor(v->spec, h), build = hole_build(v->spec, h);
    if (factor < v->spec->factor_count) {
        if (v->levels)
            fill_factor(f->out, v->levels[factor], h);
    } else if (build < v->spec->build_count) {
        if (v->builds)
            strbuf_puts(f->out, v->builds[build] ? v->builds[build] : "");
        else if (v->build_folder && build == v->own_build)
            strbuf_puts(f->out, v->build_folder);
    } else if (is_host_hole(v->spec, h)) {
        fill_host(f->out, v->spec, h);
    } else if (is(h->name, h->name_length, "cell")) {
        strbuf_printf(f->out, "%llu", (unsigned long long)v->cell);
    } else if (is(h->name, h->name_length, "round")) {
        strbuf_printf(f->out, "%llu", (unsigned long long)v->round);
    } else if (is(h->name, h->name_length, "seed")) {
        strbuf_printf(f->out, "%llu", (unsigned long long)v->seed);
    }
}

void holes_fill(struct strbuf *out, const char *text, const struct hole_values *values)
{
    struct filler f = {.out = out, .v = values};
    walk(text, fill, &f);
}

struct user {
    const struct spec *s;
    bool *factors;
};

static void use(void *context, const char *piece, size_t length, const struct hole *h)
{
    (void)piece, (void)length;
    struct user *u = context;
    size_t factor = h ? hole_factor(u->s, h) : SIZE_MAX;
    if (factor < u->s->factor_count)
        u->factors[factor] = true;
}

void holes_factors(const struct spec *s, const char *text, bool *used)
{
    struct user u = {.s = s, .factors = used};
    walk(text, use, &u);
}

struct checker {
    struct spec_reader r;
    size_t line;
    int code;
};

/* An attribute must be there for at least one value: the others leave the hole empty. */
static bool some_level_has(const struct spec_factor *f, const struct hole *h)
{
    for (size_t l = 0; l < f->level_count; l++)
        for (size_t a = 0; a < f->levels[l].attributes.count; a++)
            if (is(h->key, h->key_length, f->levels[l].attributes.items[a].name))
                return true;
    return false;
}

static void check(void *context, const char *piece, size_t length, const struct hole *h)
{
    struct checker *c = context;
    const struct spec *s = c->r.s;
    if (!h || c->code < 0 || is_number_hole(h) || hole_build(s, h) < s->build_count ||
        is_host_hole(s, h))
        return;
    size_t factor = hole_factor(s, h);
    if (factor < s->factor_count) {
        if (h->key && !some_level_has(&s->factors[factor], h))
            c->code = spec_fail(&c->r, c->line, "%.*s: no value of %s has '%.*s'", (int)length,
                                piece, s->factors[factor].name, (int)h->key_length, h->key);
        return;
    }
    const char *known[SPEC_FACTORS_MAX + 4];
    size_t count = 0;
    for (; count < s->factor_count; count++)
        known[count] = s->factors[count].name;
    if (s->build_count)
        known[count++] = "build";
    known[count++] = "cell";
    known[count++] = "round";
    known[count++] = "seed";
    CLEANUP(strbuf_done) struct strbuf near = {0};
    CLEANUP(memory_freep) char *name = memory_strndup(h->name, h->name_length);
    size_t found = str_nearest(name, known, count, 3, &near);
    c->code = spec_fail(
        &c->r, c->line,
        "%.*s: there is no factor '%s'%s%s%s (for literal braces, write them twice)", (int)length,
        piece, name, found ? "; did you mean " : "", strbuf_text(&near), found ? "?" : "");
}

static void check_text(struct checker *c, const char *text, size_t line)
{
    if (!text || c->code < 0)
        return;
    c->line = line;
    walk(text, check, c);
}

static void check_command(struct checker *c, const struct spec_command *command)
{
    check_text(c, command->text, command->line);
    for (size_t i = 0; command->words && command->words[i]; i++)
        check_text(c, command->words[i], command->line);
}

static void check_pairs(struct checker *c, const struct text_pairs *pairs)
{
    for (size_t i = 0; i < pairs->count; i++)
        check_text(c, pairs->items[i].value, pairs->items[i].line);
}

static bool command_uses_factors(const struct spec *s, const struct spec_command *command)
{
    bool used[SPEC_FACTORS_MAX] = {false};
    if (command->text)
        holes_factors(s, command->text, used);
    for (size_t i = 0; command->words && command->words[i]; i++)
        holes_factors(s, command->words[i], used);
    for (size_t f = 0; f < s->factor_count; f++)
        if (used[f])
            return true;
    return false;
}

static void check_steps(struct checker *c, const struct spec_step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        check_command(c, &steps[i].command);
        check_text(c, steps[i].ready_text, steps[i].command.line);
        if (c->code == 0 && steps[i].once && command_uses_factors(c->r.s, &steps[i].command))
            c->code = spec_fail(&c->r, steps[i].command.line,
                                "a step that runs once per experiment cannot use a factor");
    }
}

int holes_check(const struct spec *s, struct error *err)
{
    struct checker c = {.r = {.s = (struct spec *)s, .err = err}};
    check_command(&c, &s->command);
    check_text(&c, s->input, s->command.line);
    check_pairs(&c, &s->environment);
    for (size_t f = 0; f < s->factor_count; f++)
        for (size_t l = 0; l < s->factors[f].level_count; l++)
            check_pairs(&c, &s->factors[f].levels[l].environment);
    for (size_t b = 0; b < s->build_count; b++)
        check_command(&c, &s->builds[b].command);
    check_steps(&c, s->setups, s->setup_count);
    check_steps(&c, s->teardowns, s->teardown_count);
    for (size_t m = 0; m < s->metric_count; m++)
        check_text(&c, s->metrics[m].file, s->metrics[m].line);
    return c.code;
}

struct words {
    char **items;
    size_t count, capacity;
};

/* "{on.ROLE}" alone becomes the launcher's words. */
static bool add_launcher(struct words *w, const char *text, const struct spec *s)
{
    struct hole hole;
    if (text[0] != '{' || hole_at(text, &hole) != strlen(text))
        return false;
    size_t on = hole_host(s, &hole, "on");
    if (on == s->host_count)
        return false;
    for (size_t i = 0; s->hosts[on].launcher && s->hosts[on].launcher[i]; i++)
        ARRAY_PUSH(w->items, w->count, w->capacity) = memory_strdup(s->hosts[on].launcher[i]);
    return true;
}

static void add_word(struct words *w, const char *text, const struct hole_values *values)
{
    if (add_launcher(w, text, values->spec))
        return;
    struct strbuf filled = {0};
    strbuf_puts(&filled, "");
    holes_fill(&filled, text, values);
    ARRAY_PUSH(w->items, w->count, w->capacity) = filled.data ? filled.data : memory_strdup("");
}

int holes_command(const struct spec_command *command, const struct hole_values *values,
                  char ***ret_words, struct error *err)
{
    struct words w = {0};
    if (command->shell) {
        ARRAY_PUSH(w.items, w.count, w.capacity) = memory_strdup("/bin/sh");
        ARRAY_PUSH(w.items, w.count, w.capacity) = memory_strdup("-c");
        add_word(&w, command->text, values);
    } else if (command->text) {
        /* Split before the holes are filled, so that a value with blanks stays one word. */
        bool needs_shell;
        char **words;
        int r = command_split(command->text, &words, &needs_shell, err);
        if (r < 0)
            return error_wrap(err, r, "%s:%zu", values->spec->file, command->line);
        for (size_t i = 0; words[i]; i++)
            add_word(&w, words[i], values);
        command_free_words(words);
    } else {
        for (size_t i = 0; command->words[i]; i++)
            add_word(&w, command->words[i], values);
    }
    ARRAY_PUSH(w.items, w.count, w.capacity) = NULL;
    if (!w.items[0] || !w.items[0][0]) {
        command_free_words(w.items);
        return error_set(err, -EINVAL, "%s:%zu: the command is empty", values->spec->file,
                         command->line);
    }
    *ret_words = w.items;
    return 0;
}
