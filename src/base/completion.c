/* SPDX-License-Identifier: MIT */
/* Completion scripts for bash, zsh and fish, made from tables of options: see completion.h. */
#include "base/completion_shells.h"
#include "base/memory.h"

#include <errno.h>

bool option_is_end(const struct option *o)
{
    return !o->letter && !o->name && o->kind != OPTION_HEADING;
}

bool option_has_value(const struct option *o)
{
    return o->kind != OPTION_FLAG && o->kind != OPTION_COUNT && o->kind != OPTION_OPTIONAL &&
           o->kind != OPTION_HEADING;
}

/* The bash command that completes the value of an option. */
static void put_bash_value(struct strbuf *out, const struct option *o)
{
    if (!o->complete)
        strbuf_puts(out, "COMPREPLY=()");
    else if (str_eq(o->complete, "file"))
        strbuf_puts(out, "_assay_files -f");
    else if (str_eq(o->complete, "folder"))
        strbuf_puts(out, "_assay_files -d");
    else if (str_eq(o->complete, "event"))
        strbuf_puts(out, "COMPREPLY=($(compgen -W \"$(assay events --names 2>/dev/null)\""
                         " -- \"$word\"))");
    else if (o->complete[0] == '!')
        strbuf_printf(out, "COMPREPLY=($(compgen -W \"$(%s 2>/dev/null)\" -- \"$word\"))",
                      o->complete + 1);
    else
        strbuf_printf(out, "COMPREPLY=($(compgen -W \"%s\" -- \"$word\"))", o->complete);
}

/* What completes the options of a verb, or of a program without verbs. */
static void put_bash_options(struct strbuf *out, const struct verb *verb, const char *indent)
{
    strbuf_printf(out, "%scase \"$previous\" in\n", indent);
    for (const struct option *o = verb->options; o && !option_is_end(o); o++) {
        if (!option_has_value(o))
            continue;
        strbuf_printf(out, "%s    ", indent);
        if (o->letter)
            strbuf_printf(out, "-%c%s", o->letter, o->name ? "|" : "");
        if (o->name)
            strbuf_printf(out, "--%s", o->name);
        strbuf_puts(out, ") ");
        put_bash_value(out, o);
        strbuf_puts(out, "; return ;;\n");
    }
    strbuf_printf(out, "%s    -) ;;\n%sesac\n%soptions=\"--help", indent, indent, indent);
    for (const struct option *o = verb->options; o && !option_is_end(o); o++)
        if (o->name && o->kind != OPTION_HEADING)
            strbuf_printf(out, " --%s", o->name);
        else if (o->letter)
            strbuf_printf(out, " -%c", o->letter);
    strbuf_puts(out, "\"\n");
    if (verb->words && verb->words[0] == '!')
        strbuf_printf(out, "%swords=\"$(%s 2>/dev/null)\"\n", indent, verb->words + 1);
    else if (verb->words)
        strbuf_printf(out, "%swords=\"%s\"\n", indent, verb->words);
}

/* The first word is a verb; behind "--" stands a command. */
static void put_bash_verbs(struct strbuf *out, const struct completion *c)
{
    strbuf_puts(out, "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                     "        COMPREPLY=($(compgen -W \"--help");
    strbuf_printf(out, "%s%s", *c->words ? " " : "", c->words);
    for (size_t i = 0; c->verbs[i]; i++)
        strbuf_printf(out, " %s", c->verbs[i]->name);
    strbuf_puts(out, "\" -- \"$word\"))\n        return\n    fi\n"
                     "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
                     "        if [ \"${COMP_WORDS[i]}\" = -- ]; then\n"
                     "            if [ $((i + 1)) -eq \"$COMP_CWORD\" ]; then\n"
                     "                COMPREPLY=($(compgen -c -- \"$word\"))\n"
                     "            else\n"
                     "                _assay_files -f\n"
                     "            fi\n"
                     "            return\n        fi\n    done\n"
                     "    case \"${COMP_WORDS[1]}\" in\n");
    for (size_t i = 0; c->verbs[i]; i++) {
        strbuf_printf(out, "        %s)\n", c->verbs[i]->name);
        put_bash_options(out, c->verbs[i], "            ");
        strbuf_puts(out, "            ;;\n");
    }
    strbuf_puts(out, "    esac\n");
}

/* The program's name as a function of the shell. */
static void put_function(struct strbuf *out, const char *program)
{
    strbuf_putc(out, '_');
    for (; *program; program++)
        strbuf_putc(out, *program == '-' ? '_' : *program);
}

/* Readline ends words at = and :, so that what is completed is put together again, and what stands
 * before the last of them is taken off the replies. */
static const char bash_words[] =
    "    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
    "    local given=${COMP_LINE:0:COMP_POINT} before= options= words= i\n"
    "    local line=$given\n"
    "    given=${given##*[[:space:]]}\n"
    "    if [[ $given == *[=:]* && $word != \"$given\" && $given == *\"$word\" ]]; then\n"
    "        before=${given%\"$word\"}\n"
    "        [[ $word != [=:] ]] || before=$given\n"
    "        line=${line%\"$given\"}\n"
    "        line=${line%\"${line##*[![:space:]]}\"}\n"
    "        previous=${line##*[[:space:]]} word=$given\n"
    "        if [[ $word == --*=* ]]; then\n"
    "            previous=${word%%=*} word=${word#*=}\n"
    "            before=${before#\"$previous=\"}\n"
    "        fi\n"
    "    fi\n"
    "    COMPREPLY=()\n";

static const char bash_files[] = "_assay_files()\n{\n"
                                 "    compopt -o filenames 2>/dev/null\n"
                                 "    COMPREPLY=($(compgen \"$1\" -- \"$word\"))\n}\n";

/* What is offered for the word: a function of its own, as it ends in many places. */
static void put_bash_offer(struct strbuf *out, const struct completion *c)
{
    put_function(out, c->program);
    strbuf_puts(out, "_offer()\n{\n");
    if (c->verbs)
        put_bash_verbs(out, c);
    else
        put_bash_options(out, c->only, "    ");
    strbuf_puts(out, "    case \"$word\" in\n"
                     "        -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")); return ;;\n"
                     "    esac\n");
    if (!c->verbs && *c->words)
        strbuf_printf(out, "    COMPREPLY=($(compgen -W \"$(%s 2>/dev/null)\" -- \"$word\"))\n}\n",
                      c->words);
    else
        strbuf_puts(out, "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
                         "    if [ ${#COMPREPLY[@]} -eq 0 ]; then _assay_files -f; else"
                         " COMPREPLY+=($(compgen -f -- \"$word\")); fi\n}\n");
}

static void put_bash(struct strbuf *out, const struct completion *c)
{
    strbuf_printf(out, "# bash completion for %s, generated by the program itself.\n%s", c->program,
                  bash_files);
    put_bash_offer(out, c);
    put_function(out, c->program);
    strbuf_printf(out, "()\n{\n%s    ", bash_words);
    put_function(out, c->program);
    strbuf_puts(out, "_offer\n"
                     "    COMPREPLY=(\"${COMPREPLY[@]#\"$before\"}\")\n}\n"
                     "complete -o bashdefault -F ");
    put_function(out, c->program);
    strbuf_printf(out, " %s\n", c->program);
}

/* Text inside zsh's single quotes and the brackets of _arguments. */
static void put_zsh_text(struct strbuf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            strbuf_puts(out, "'\\''");
        else if (*text == '[' || *text == ']' || *text == ':')
            strbuf_printf(out, "\\%c", *text);
        else
            strbuf_putc(out, *text);
    }
}

static void put_zsh_option(struct strbuf *out, const struct option *o, bool letter)
{
    strbuf_puts(out, "                '*");
    if (letter)
        strbuf_printf(out, "-%c", o->letter);
    else
        strbuf_printf(out, "--%s%s", o->name, option_has_value(o) ? "=" : "");
    strbuf_putc(out, '[');
    put_zsh_text(out, o->help);
    strbuf_putc(out, ']');
    if (option_has_value(o)) {
        strbuf_putc(out, ':');
        put_zsh_text(out, o->value);
        strbuf_putc(out, ':');
        if (o->complete && str_eq(o->complete, "file"))
            strbuf_puts(out, "_files");
        else if (o->complete && str_eq(o->complete, "folder"))
            strbuf_puts(out, "_files -/");
        else if (o->complete && str_eq(o->complete, "event"))
            strbuf_puts(out, "(${(f)\"$(assay events --names 2>/dev/null)\"})");
        else if (o->complete && o->complete[0] == '!')
            strbuf_printf(out, "(${(f)\"$(%s 2>/dev/null)\"})", o->complete + 1);
        else if (o->complete)
            strbuf_printf(out, "(%s)", o->complete);
    }
    strbuf_puts(out, "' \\\n");
}

static void put_zsh_options(struct strbuf *out, const struct verb *verb, const char *rest)
{
    strbuf_puts(out, "            _arguments -s \\\n");
    for (const struct option *o = verb->options; o && !option_is_end(o); o++) {
        if (o->kind == OPTION_HEADING)
            continue;
        if (o->name)
            put_zsh_option(out, o, false);
        if (o->letter)
            put_zsh_option(out, o, true);
    }
    strbuf_printf(out, "                '--help[help]' \\\n                '%s'\n", rest);
}

/* What stands where no option does: a verb's words or files, else a command. */
static char *zsh_rest(const char *words)
{
    if (!words)
        return memory_strdup("*::command:_normal");
    if (words[0] == '!')
        return memory_printf("*:word:{ compadd -- ${(f)\"$(%s 2>/dev/null)\"}; _files }",
                             words + 1);
    return memory_printf("*:word:{ compadd -- %s; _files }", words);
}

static void put_zsh_verbs(struct strbuf *out, const struct completion *c)
{
    strbuf_puts(out, "    local -a verbs\n    verbs=(\n");
    for (size_t i = 0; c->verbs[i]; i++) {
        strbuf_printf(out, "        '%s:", c->verbs[i]->name);
        put_zsh_text(out, c->verbs[i]->summary);
        strbuf_puts(out, "'\n");
    }
    strbuf_puts(out, "    )\n"
                     "    if (( CURRENT == 2 )); then\n"
                     "        _describe verb verbs\n        return\n    fi\n"
                     "    local verb=$words[2]\n"
                     "    shift words\n    (( CURRENT-- ))\n"
                     "    case $verb in\n");
    for (size_t i = 0; c->verbs[i]; i++) {
        strbuf_printf(out, "        %s)\n", c->verbs[i]->name);
        CLEANUP(memory_freep) char *rest = zsh_rest(c->verbs[i]->words);
        put_zsh_options(out, c->verbs[i], rest);
        strbuf_puts(out, "            ;;\n");
    }
    strbuf_puts(out, "    esac\n");
}

static void put_zsh(struct strbuf *out, const struct completion *c)
{
    strbuf_printf(out, "#compdef %s\n# zsh completion for %s, generated by the program itself.\n",
                  c->program, c->program);
    put_function(out, c->program);
    strbuf_puts(out, "()\n{\n");
    CLEANUP(memory_freep)
    char *rest = *c->words ? memory_printf("*:word:(${(f)\"$(%s 2>/dev/null)\"})", c->words)
                           : memory_strdup("*:file:_files");
    if (c->verbs)
        put_zsh_verbs(out, c);
    else
        put_zsh_options(out, c->only, rest);
    strbuf_puts(out, "}\n");
    put_function(out, c->program);
    strbuf_puts(out, " \"$@\"\n");
}

int completion_write(struct strbuf *out, const struct completion *c, const char *shell,
                     struct error *err)
{
    if (str_eq(shell, "bash"))
        put_bash(out, c);
    else if (str_eq(shell, "zsh"))
        put_zsh(out, c);
    else if (str_eq(shell, "fish"))
        completion_put_fish(out, c);
    else
        return error_set(err, -EINVAL, "no completion for '%s': use bash, zsh or fish", shell);
    return 0;
}
