/* SPDX-License-Identifier: MIT */
/* `assay completion SHELL`: prints the completion script for bash or zsh, made from the verbs'
 * own tables of options, so that it cannot fall behind them. */
#include "base/memory.h"
#include "cmd/cmd.h"

#include <errno.h>

static bool is_end(const struct option *o)
{
    return !o->letter && !o->name && o->kind != OPTION_HEADING;
}

static bool has_value(const struct option *o)
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
        strbuf_puts(out, "COMPREPLY=($(compgen -f -- \"$word\"))");
    else if (str_eq(o->complete, "event"))
        strbuf_puts(out, "COMPREPLY=($(compgen -W \"$(assay events --names 2>/dev/null)\""
                         " -- \"$word\"))");
    else
        strbuf_printf(out, "COMPREPLY=($(compgen -W \"%s\" -- \"$word\"))", o->complete);
}

static void put_bash_verb(struct strbuf *out, const struct verb *verb)
{
    strbuf_printf(out, "        %s)\n            case \"$previous\" in\n", verb->name);
    for (const struct option *o = verb->options; o && !is_end(o); o++) {
        if (!has_value(o))
            continue;
        strbuf_puts(out, "                ");
        if (o->letter)
            strbuf_printf(out, "-%c%s", o->letter, o->name ? "|" : "");
        if (o->name)
            strbuf_printf(out, "--%s", o->name);
        strbuf_puts(out, ") ");
        put_bash_value(out, o);
        strbuf_puts(out, "; return ;;\n");
    }
    strbuf_puts(out, "            esac\n            options=\"--help");
    for (const struct option *o = verb->options; o && !is_end(o); o++)
        if (o->name && o->kind != OPTION_HEADING)
            strbuf_printf(out, " --%s", o->name);
        else if (o->letter)
            strbuf_printf(out, " -%c", o->letter);
    strbuf_puts(out, "\"\n            ;;\n");
}

static void put_bash(struct strbuf *out)
{
    strbuf_puts(out, "# bash completion for assay; made by 'assay completion bash'.\n"
                     "_assay()\n{\n"
                     "    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}"
                     " options= i\n"
                     "    COMPREPLY=()\n"
                     "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                     "        COMPREPLY=($(compgen -W \"--help --version help");
    for (size_t i = 0; verbs[i]; i++)
        strbuf_printf(out, " %s", verbs[i]->name);
    strbuf_puts(out, "\" -- \"$word\"))\n        return\n    fi\n"
                     "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
                     "        if [ \"${COMP_WORDS[i]}\" = -- ]; then\n"
                     "            if [ $((i + 1)) -eq \"$COMP_CWORD\" ]; then\n"
                     "                COMPREPLY=($(compgen -c -- \"$word\"))\n"
                     "            else\n"
                     "                COMPREPLY=($(compgen -f -- \"$word\"))\n"
                     "            fi\n"
                     "            return\n        fi\n    done\n"
                     "    case \"${COMP_WORDS[1]}\" in\n");
    for (size_t i = 0; verbs[i]; i++)
        put_bash_verb(out, verbs[i]);
    strbuf_puts(out, "    esac\n"
                     "    case \"$word\" in\n"
                     "        -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
                     "        *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
                     "    esac\n"
                     "}\n"
                     "complete -o filenames -o bashdefault -F _assay assay\n");
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
        strbuf_printf(out, "--%s%s", o->name, has_value(o) ? "=" : "");
    strbuf_putc(out, '[');
    put_zsh_text(out, o->help);
    strbuf_putc(out, ']');
    if (has_value(o)) {
        strbuf_putc(out, ':');
        put_zsh_text(out, o->value);
        strbuf_putc(out, ':');
        if (o->complete && str_eq(o->complete, "file"))
            strbuf_puts(out, "_files");
        else if (o->complete && str_eq(o->complete, "event"))
            strbuf_puts(out, "(${(f)\"$(assay events --names 2>/dev/null)\"})");
        else if (o->complete)
            strbuf_printf(out, "(%s)", o->complete);
    }
    strbuf_puts(out, "' \\\n");
}

static void put_zsh(struct strbuf *out)
{
    strbuf_puts(out, "#compdef assay\n# zsh completion for assay; made by 'assay completion "
                     "zsh'.\n_assay()\n{\n"
                     "    local -a verbs\n    verbs=(\n");
    for (size_t i = 0; verbs[i]; i++) {
        strbuf_printf(out, "        '%s:", verbs[i]->name);
        put_zsh_text(out, verbs[i]->summary);
        strbuf_puts(out, "'\n");
    }
    strbuf_puts(out, "    )\n"
                     "    if (( CURRENT == 2 )); then\n"
                     "        _describe verb verbs\n        return\n    fi\n"
                     "    local verb=$words[2]\n"
                     "    shift words\n    (( CURRENT-- ))\n"
                     "    case $verb in\n");
    for (size_t i = 0; verbs[i]; i++) {
        strbuf_printf(out, "        %s)\n            _arguments -s \\\n", verbs[i]->name);
        for (const struct option *o = verbs[i]->options; o && !is_end(o); o++) {
            if (o->kind == OPTION_HEADING)
                continue;
            if (o->name)
                put_zsh_option(out, o, false);
            if (o->letter)
                put_zsh_option(out, o, true);
        }
        strbuf_puts(out, "                '--help[help]' \\\n                '*::command:_normal'\n"
                         "            ;;\n");
    }
    strbuf_puts(out, "    esac\n}\n_assay \"$@\"\n");
}

static int run(int argc, char **argv)
{
    struct error err;
    int first = options_parse(verb_completion.options, NULL, argc, argv, &err);
    if (first < 0)
        return cmd_usage(&verb_completion, &err);
    if (first == OPTIONS_HELP)
        return cmd_help(&verb_completion);
    CLEANUP(strbuf_done) struct strbuf out = {0};
    if (first == argc - 1 && str_eq(argv[first], "bash"))
        put_bash(&out);
    else if (first == argc - 1 && str_eq(argv[first], "zsh"))
        put_zsh(&out);
    else {
        error_set(&err, -EINVAL, "name one shell: bash or zsh");
        return cmd_usage(&verb_completion, &err);
    }
    fputs(strbuf_text(&out), stdout);
    return EXIT_DONE;
}

static const struct option options[] = {{0}};

const struct verb verb_completion = {
    .name = "completion",
    .summary = "print the completion script for a shell",
    .synopsis = "bash|zsh",
    .options = options,
    .run = run,
};
