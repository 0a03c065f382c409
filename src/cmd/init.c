/* SPDX-License-Identifier: MIT */
/*
 * `assay init COMMAND…`: a first spec for the commands that a person has, with a comment at each
 * line that says what could stand there.  Where the commands have equally many words, the ones in
 * which they differ become the variant; else each command is given to a shell as a whole.
 */
#include "base/fd.h"
#include "base/json.h"
#include "base/memory.h"
#include "cmd/cmd.h"
#include "run/command.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <unistd.h>

enum { COMMANDS_MAX = 64, NAME_BYTES_MAX = 24 };

struct init_options {
    const char *output, *name;
    bool force;
};

#define O(field) offsetof(struct init_options, field)

static const struct option options[] = {
    {'o', "output", OPTION_STRING, O(output), "FILE", "write to this file (default: NAME.yaml)",
     "file"},
    {'n', "name", OPTION_STRING, O(name), "NAME", "name of the experiment (default: experiment)",
     NULL},
    {'f', "force", OPTION_FLAG, O(force), NULL, "replace an existing file", NULL},
    {0},
};

/* The commands, taken apart. */
struct plan {
    size_t count, word_count;
    const char *texts[COMMANDS_MAX];
    char **words[COMMANDS_MAX];
    bool needs_shell[COMMANDS_MAX];
    bool by_words; /* all have word_count words and need no shell */
    char *names[COMMANDS_MAX];
};

static void plan_done(struct plan *p)
{
    for (size_t i = 0; i < p->count; i++) {
        command_free_words(p->words[i]);
        free(p->names[i]);
    }
}

static size_t count_words(char *const *words)
{
    size_t count = 0;
    while (words && words[count])
        count++;
    return count;
}

static int take_apart(struct plan *p, char **texts, size_t count, struct error *err)
{
    p->by_words = true;
    for (size_t i = 0; i < count; i++, p->count++) {
        p->texts[i] = texts[i];
        int r = command_split(texts[i], &p->words[i], &p->needs_shell[i], err);
        if (r < 0)
            return error_wrap(err, r, "'%s'", texts[i]);
        size_t words = count_words(p->words[i]);
        p->word_count = i ? p->word_count : words;
        p->by_words = p->by_words && !p->needs_shell[i] && words == p->word_count;
    }
    return 0;
}

static bool differs(const struct plan *p, size_t word)
{
    for (size_t i = 1; i < p->count; i++)
        if (!str_eq(p->words[i][word], p->words[0][word]))
            return true;
    return false;
}

/* What distinguishes a command, as a name without blanks: ./new becomes new, -O2 becomes O2. */
static char *make_name(const struct plan *p, size_t index)
{
    CLEANUP(strbuf_done) struct strbuf from = {0};
    struct strbuf name = {0};
    for (size_t w = 0; p->by_words && w < p->word_count; w++)
        if (differs(p, w))
            strbuf_printf(&from, "%s%s", from.length ? "-" : "", p->words[index][w]);
    const char *text = from.length ? strbuf_text(&from) : p->texts[index];
    const char *slash = from.length ? strrchr(text, '/') : NULL;
    for (const char *c = slash && slash[1] ? slash + 1 : text; *c && name.length < NAME_BYTES_MAX;
         c++) {
        bool plain = isalnum((unsigned char)*c) || *c == '.' || *c == '_' || *c == '+';
        if (plain)
            strbuf_putc(&name, *c);
        else if (name.length && name.data[name.length - 1] != '-')
            strbuf_putc(&name, '-');
    }
    while (name.length && name.data[name.length - 1] == '-')
        name.data[--name.length] = '\0';
    if (!name.length)
        strbuf_printf(&name, "variant%zu", index + 1);
    return name.data;
}

static bool is_taken(const struct plan *p, size_t index, const char *name)
{
    for (size_t i = 0; i < index; i++)
        if (str_eq(p->names[i], name))
            return true;
    return false;
}

static void name_all(struct plan *p)
{
    for (size_t i = 0; i < p->count; i++) {
        char *name = make_name(p, i);
        for (size_t n = 2; is_taken(p, i, name); n++) {
            free(name);
            CLEANUP(memory_freep) char *first = make_name(p, i);
            name = memory_printf("%s-%zu", first, n);
        }
        p->names[i] = name;
    }
}

static void put_text(struct strbuf *out, const char *text)
{
    strbuf_put_json(out, text, strlen(text));
}

/* A word that all have: a brace in it must not become a hole. */
static void put_literal(struct strbuf *out, const char *word)
{
    CLEANUP(strbuf_done) struct strbuf safe = {0};
    for (; *word; word++) {
        strbuf_putc(&safe, *word);
        if (*word == '{' || *word == '}')
            strbuf_putc(&safe, *word);
    }
    put_text(out, strbuf_text(&safe));
}

static void put_command(struct strbuf *out, const struct plan *p)
{
    strbuf_puts(out, "command: [");
    if (!p->by_words)
        strbuf_puts(out, "/bin/sh, -c, \"{variant.run}\"");
    for (size_t w = 0; p->by_words && w < p->word_count; w++) {
        strbuf_puts(out, w ? ", " : "");
        if (differs(p, w))
            strbuf_printf(out, "\"{variant.word%zu}\"", w + 1);
        else
            put_literal(out, p->words[0][w]);
    }
    strbuf_puts(out, "]\n");
}

static void put_variants(struct strbuf *out, const struct plan *p)
{
    for (size_t i = 0; i < p->count; i++) {
        strbuf_puts(out, "    - {name: ");
        put_text(out, p->names[i]);
        if (!p->by_words) {
            CLEANUP(memory_freep)
            char *run = memory_printf("%s%s", p->needs_shell[i] ? "" : "exec ", p->texts[i]);
            strbuf_puts(out, ", run: ");
            put_text(out, run);
        }
        for (size_t w = 0; p->by_words && w < p->word_count; w++)
            if (differs(p, w)) {
                strbuf_printf(out, ", word%zu: ", w + 1);
                put_text(out, p->words[i][w]);
            }
        strbuf_puts(out, "}\n");
    }
}

static void put_spec(struct strbuf *out, const struct plan *p, const char *name, const char *file)
{
    strbuf_printf(
        out,
        "# An experiment for assay, written by 'assay init'; 'man assay-run' describes all keys.\n"
        "#   assay run --dry-run %s    the plan, without running anything\n"
        "#   assay run %s              runs it, or resumes it\n"
        "#   assay answers             the results;  assay html last -o report.html\n",
        file, file);
    strbuf_puts(out, "name: ");
    put_text(out, name);
    strbuf_puts(
        out, "\n"
             "question: which variant is fastest?\n"
             "\n"
             "# Commands run in this file's directory. {variant.…} is what its variant defines.\n");
    put_command(out, p);
    strbuf_puts(out, "\nfactors:\n  variant:\n");
    put_variants(out, p);
    strbuf_puts(out, "  # Every further factor multiplies the cells; use it as {size} above:\n"
                     "  # size: [1000, 10000]\n"
                     "\n"
                     "# What to compare the others with.\n"
                     "baseline: {variant: ");
    put_text(out, p->names[0]);
    strbuf_puts(out,
                "}\n"
                "\n"
                "# Each round runs every cell once, in shuffled order; 10 to 30 are usual.\n"
                "rounds: 10\n"
                "# warmup: 1              # warm-up rounds, not kept\n"
                "# timeout: 60s           # treat a run that takes longer as failed\n"
                "# input: data.txt        # standard input of every run\n"
                "# counters: [task-clock, context-switches, page-faults]\n"
                "# metrics:               # values that the program prints as NAME=VALUE or JSON\n"
                "#   operations_per_second: {better: higher}\n"
                "# build:                 # runs once for each variant first; creates {build}\n"
                "#   command: make -s -B OUT={build}\n"
                "# profile: changed       # sample the cells that differ, for 'assay explain'\n"
                "quick:                   # what 'assay run --quick' does instead\n"
                "  rounds: 8\n");
}

static int write_spec(const struct init_options *o, const struct plan *p, struct error *err)
{
    const char *name = o->name ? o->name : "experiment";
    CLEANUP(memory_freep)
    char *path = o->output ? memory_strdup(o->output) : memory_printf("%s.yaml", name);
    if (!o->force && access(path, F_OK) == 0)
        return error_set(err, -EEXIST, "%s already exists; --force replaces it, -o names another",
                         path);
    CLEANUP(strbuf_done) struct strbuf text = {0};
    put_spec(&text, p, name, path);
    CLEANUP(outfile_done) struct outfile file = {0};
    int r = outfile_open(&file, path, err);
    if (r == 0)
        r = outfile_write(&file, text.data, text.length, err);
    if (r == 0)
        r = outfile_commit(&file, err);
    if (r == 0)
        printf("%s: %zu variants; next: assay run --dry-run %s\n", path, p->count, path);
    return r;
}

static int check(const struct init_options *o, size_t count, struct error *err)
{
    if (count < 2)
        return error_set(
            err, -EINVAL,
            "give two commands or more, each as one quoted argument: assay init './old' './new'");
    if (count > COMMANDS_MAX)
        return error_set(err, -EINVAL, "at most %d commands", COMMANDS_MAX);
    if (o->name && (!*o->name || strchr(o->name, '/')))
        return error_set(err, -EINVAL, "--name: '%s' is not a valid file name", o->name);
    return 0;
}

static int run(int argc, char **argv)
{
    struct error err = {0};
    struct init_options o = {0};
    int first = options_parse_mixed(options, &o, argc, argv, &err);
    if (first == OPTIONS_HELP)
        return cmd_help(&verb_init);
    size_t count = first > 0 ? (size_t)(argc - first) : 0;
    if (first > 0 && check(&o, count, &err) < 0)
        first = -EINVAL;
    if (first < 0)
        return cmd_usage(&verb_init, &err);
    CLEANUP(plan_done) struct plan plan = {0};
    int r = take_apart(&plan, argv + first, count, &err);
    if (r == 0) {
        name_all(&plan);
        r = write_spec(&o, &plan, &err);
    }
    return r < 0 ? cmd_fail(&verb_init, &err, EXIT_TROUBLE) : EXIT_DONE;
}

const struct verb verb_init = {
    .name = "init",
    .summary = "write a first spec for commands, to build on",
    .synopsis = "[options] COMMAND COMMAND…",
    .examples = "  assay init './old' './new' && assay run experiment.yaml\n"
                "  assay init -n packing 'gzip -1 -k -c data' 'gzip -9 -k -c data'\n",
    .options = options,
    .run = run,
};
