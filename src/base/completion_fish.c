/* SPDX-License-Identifier: MIT */
/* Completion scripts for fish: see completion.h. */
#include "base/completion_shells.h"
#include "base/memory.h"

static void put_quoted(struct strbuf *out, const char *text)
{
    strbuf_putc(out, '\'');
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            strbuf_putc(out, '\\');
        strbuf_putc(out, *text);
    }
    strbuf_putc(out, '\'');
}

/* What completes a value or a word: words, or the output of a command. */
static void put_candidates(struct strbuf *out, const char *complete)
{
    CLEANUP(memory_freep) char *text = NULL;
    if (!complete || str_eq(complete, "file") || str_eq(complete, "folder"))
        return;
    if (str_eq(complete, "event"))
        text = memory_strdup("(assay events --names 2>/dev/null)");
    else if (complete[0] == '!')
        text = memory_printf("(%s 2>/dev/null)", complete + 1);
    else
        text = memory_strdup(complete);
    strbuf_puts(out, " -a ");
    put_quoted(out, text);
}

static void put_options(struct strbuf *out, const char *program, const struct verb *verb,
                        const char *condition)
{
    for (const struct option *o = verb->options; o && !option_is_end(o); o++) {
        if (o->kind == OPTION_HEADING)
            continue;
        strbuf_printf(out, "complete -c %s%s", program, condition);
        if (o->letter)
            strbuf_printf(out, " -s %c", o->letter);
        if (o->name)
            strbuf_printf(out, " -l %s", o->name);
        bool is_file =
            o->complete && (str_eq(o->complete, "file") || str_eq(o->complete, "folder"));
        if (option_has_value(o))
            strbuf_puts(out, is_file ? " -r -F" : " -x");
        put_candidates(out, o->complete);
        strbuf_puts(out, " -d ");
        put_quoted(out, o->help);
        strbuf_putc(out, '\n');
    }
    if (verb->words) {
        strbuf_printf(out, "complete -c %s%s", program, condition);
        put_candidates(out, verb->words);
        strbuf_putc(out, '\n');
    }
}

void completion_put_fish(struct strbuf *out, const struct completion *c)
{
    strbuf_printf(out, "# fish completion for %s, made by itself.\n", c->program);
    if (!c->verbs) {
        put_options(out, c->program, c->only, "");
        if (*c->words)
            strbuf_printf(out, "complete -c %s -f -a '(%s 2>/dev/null)'\n", c->program, c->words);
        return;
    }
    for (size_t i = 0; c->verbs[i]; i++) {
        strbuf_printf(out, "complete -c %s -n __fish_use_subcommand -f -a %s -d ", c->program,
                      c->verbs[i]->name);
        put_quoted(out, c->verbs[i]->summary);
        strbuf_putc(out, '\n');
    }
    for (size_t i = 0; c->verbs[i]; i++) {
        CLEANUP(memory_freep)
        char *condition = memory_printf(" -n '__fish_seen_subcommand_from %s'", c->verbs[i]->name);
        put_options(out, c->program, c->verbs[i], condition);
    }
}
