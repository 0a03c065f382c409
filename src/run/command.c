/* SPDX-License-Identifier: MIT */
/* A command line as a person types it: see command.h. */
#include "run/command.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/strings.h"

#include <errno.h>

/* What a shell knows itself and PATH may not hold. */
static const char *const shell_words[] = {
    "!",        ".",       ":",      "alias", "bg",    "break",  "case",     "cd",      "command",
    "continue", "do",      "eval",   "exec",  "exit",  "export", "fg",       "for",     "function",
    "hash",     "if",      "jobs",   "let",   "local", "read",   "readonly", "return",  "select",
    "set",      "shift",   "source", "time",  "times", "trap",   "type",     "typeset", "ulimit",
    "umask",    "unalias", "unset",  "until", "wait",  "while",  "{",        "[[",
};

/* A text being split. */
struct splitter {
    const char *text;
    size_t at;
    struct strbuf word;
    bool in_word; /* an empty pair of quotes is a word, too */
    bool needs_shell;
    char **words;
    size_t count, capacity;
};

static void end_word(struct splitter *s)
{
    if (s->in_word)
        ARRAY_PUSH(s->words, s->count, s->capacity) = memory_strdup(strbuf_text(&s->word));
    strbuf_clear(&s->word);
    s->in_word = false;
}

static int in_single_quotes(struct splitter *s, struct error *err)
{
    const char *end = strchr(s->text + s->at, '\'');
    if (!end)
        return error_set(err, -EINVAL, "unclosed ' at byte %zu in: %s", s->at, s->text);
    strbuf_append(&s->word, s->text + s->at, (size_t)(end - s->text) - s->at);
    s->at = (size_t)(end - s->text) + 1;
    return 0;
}

static int in_double_quotes(struct splitter *s, struct error *err)
{
    size_t start = s->at;
    for (char c; (c = s->text[s->at]) != '"'; s->at++) {
        if (!c)
            return error_set(err, -EINVAL, "unclosed \" at byte %zu in: %s", start, s->text);
        if (c == '\\' && s->text[s->at + 1] && strchr("$`\"\\\n", s->text[s->at + 1])) {
            if (s->text[++s->at] != '\n')
                strbuf_putc(&s->word, s->text[s->at]);
            continue;
        }
        s->needs_shell |= c == '$' || c == '`';
        strbuf_putc(&s->word, c);
    }
    s->at++;
    return 0;
}

/* An unquoted character that means something to a shell. */
static bool is_special(const struct splitter *s, char c)
{
    if (strchr("|&;<>()$`*?[\n", c))
        return true;
    if (c == '~' || c == '#')
        return !s->in_word;
    /* NAME=value before the command. */
    return c == '=' && s->count == 0;
}

static int split_one(struct splitter *s, struct error *err)
{
    char c = s->text[s->at];
    if (c == ' ' || c == '\t') {
        end_word(s);
        s->at++;
        return 0;
    }
    s->needs_shell |= is_special(s, c);
    s->in_word = true;
    s->at++;
    if (c == '\'')
        return in_single_quotes(s, err);
    if (c == '"')
        return in_double_quotes(s, err);
    if (c == '\\') {
        if (!s->text[s->at])
            return error_set(err, -EINVAL, "nothing follows the last \\ in: %s", s->text);
        c = s->text[s->at++];
        s->needs_shell |= c == '\n';
    }
    strbuf_putc(&s->word, c);
    return 0;
}

static bool is_shell_word(const char *word)
{
    for (size_t i = 0; i < ARRAY_COUNT(shell_words); i++)
        if (str_eq(word, shell_words[i]))
            return true;
    return false;
}

int command_split(const char *text, char ***ret_words, bool *ret_needs_shell, struct error *err)
{
    struct splitter s = {.text = text};
    int r = 0;
    while (r == 0 && text[s.at])
        r = split_one(&s, err);
    end_word(&s);
    strbuf_done(&s.word);
    ARRAY_PUSH(s.words, s.count, s.capacity) = NULL;
    if (r == 0 && !s.words[0])
        r = error_set(err, -EINVAL, "a command is empty");
    if (r < 0) {
        command_free_words(s.words);
        return r;
    }
    *ret_words = s.words;
    *ret_needs_shell = s.needs_shell || is_shell_word(s.words[0]);
    return 0;
}

void command_free_words(char **words)
{
    for (size_t i = 0; words && words[i]; i++)
        free(words[i]);
    free(words);
}

int command_needs_shell(const char *text, bool *ret_needs_shell, struct error *err)
{
    char **words;
    int r = command_split(text, &words, ret_needs_shell, err);
    if (r == 0)
        command_free_words(words);
    return r;
}

static int init_direct(struct command *c, struct error *err)
{
    bool needs_shell;
    int r = command_split(c->text, &c->argv, &needs_shell, err);
    if (r < 0)
        return r;
    if (needs_shell)
        return error_set(err, -EINVAL, "this needs a shell (quote it, or drop -N): %s", c->text);
    return 0;
}

static int init_shell(struct command *c, const char *shell, struct error *err)
{
    bool needs_shell;
    char **words;
    int r = command_split(shell, &words, &needs_shell, err);
    if (r < 0)
        return error_wrap(err, r, "the shell");
    size_t count = 0;
    while (words[count])
        count++;
    c->argv = memory_resize(words, count + 3, sizeof(*words));
    c->argv[count] = memory_strdup("-c");
    c->argv[count + 1] = memory_strdup(c->text);
    c->argv[count + 2] = NULL;
    c->through_shell = true;
    return 0;
}

int command_init(struct command *c, const char *text, const char *shell, struct error *err)
{
    *c = (struct command){.text = memory_strdup(text)};
    int r = 0;
    if (!text[strspn(text, " \t\n")])
        r = error_set(err, -EINVAL, "a command is empty");
    if (r == 0)
        r = shell ? init_shell(c, shell, err) : init_direct(c, err);
    /* A path is relative to where the command runs, so only names are looked up here. */
    if (r == 0 && !strchr(c->argv[0], '/'))
        r = process_find(c->argv[0], &c->program, err);
    if (r < 0)
        command_done(c);
    return r;
}

void command_done(struct command *c)
{
    command_free_words(c->argv);
    free(c->text);
    free(c->program);
    *c = (struct command){0};
}

char **command_join_words(char *const *before, char *const *argv)
{
    char **words = NULL;
    size_t count = 0, capacity = 0;
    for (size_t i = 0; before && before[i]; i++)
        ARRAY_PUSH(words, count, capacity) = before[i];
    for (size_t i = 0; argv[i]; i++)
        ARRAY_PUSH(words, count, capacity) = argv[i];
    ARRAY_PUSH(words, count, capacity) = NULL;
    return words;
}
