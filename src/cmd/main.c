/* SPDX-License-Identifier: MIT */
/* assay: which version is faster, by how much, and why?  Finds the verb and runs it. */
#include "base/memory.h"
#include "cmd/cmd.h"
#include "vm/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

const struct verb *const verbs[] = {
    /* compare */
    &verb_ab,
    &verb_explain,
    /* measure */
    &verb_stat,
    &verb_events,
    &verb_record,
    &verb_doctor,
    &verb_vm,
    /* experiments */
    &verb_init,
    &verb_run,
    &verb_compare,
    &verb_answers,
    &verb_gate,
    &verb_bisect,
    &verb_history,
    &verb_list,
    &verb_show,
    &verb_rm,
    &verb_db,
    /* to look at and to send */
    &verb_html,
    &verb_plot,
    &verb_serve,
    /* profiles */
    &verb_report,
    &verb_annotate,
    &verb_diff,
    &verb_export,
    /* the rest */
    &verb_completion,
    NULL,
};

/* A message may quote a file or an argument, and so any bytes: what a terminal would act upon is
 * written out.  Line ends stay: other programs' words are quoted with theirs. */
static void print_message(const struct verb *verb, const struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf safe = {0};
    for (const char *at = err->message;; at++) {
        size_t length = strcspn(at, "\n");
        strbuf_put_safe(&safe, at, length, SIZE_MAX);
        strbuf_putc(&safe, '\n');
        at += length;
        if (!*at)
            break;
    }
    fprintf(stderr, "assay %s: %s", verb->name, strbuf_text(&safe));
}

int cmd_fail(const struct verb *verb, const struct error *err, int code)
{
    fflush(stdout);
    print_message(verb, err);
    return code;
}

int cmd_usage(const struct verb *verb, const struct error *err)
{
    print_message(verb, err);
    fprintf(stderr, "Try 'assay %s --help'.\n", verb->name);
    return EXIT_USAGE;
}

int cmd_help(const struct verb *verb)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    options_help(verb, &text);
    fputs(strbuf_text(&text), stdout);
    return EXIT_DONE;
}

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; verbs[i]; i++)
        if (str_eq(verbs[i]->name, name))
            return verbs[i];
    return NULL;
}

static int print_help(FILE *stream)
{
    fputs("usage: assay VERB [options]\n\n"
          "A Linux performance workbench: which version is faster, by how much, and why?\n\n",
          stream);
    for (size_t i = 0; verbs[i]; i++)
        fprintf(stream, "  %-12s %s\n", verbs[i]->name, verbs[i]->summary);
    fputs("\n'assay VERB --help' tells what a verb takes; 'man assay' is the manual.\n", stream);
    return stream == stdout ? EXIT_DONE : EXIT_USAGE;
}

static int unknown_verb(const char *name)
{
    const char *names[64];
    size_t count = 0;
    for (size_t i = 0; verbs[i] && count < ARRAY_COUNT(names); i++)
        names[count++] = verbs[i]->name;
    CLEANUP(strbuf_done) struct strbuf near = {0}, safe = {0};
    strbuf_put_safe(&safe, name, strlen(name), 80);
    fprintf(stderr, "assay: unknown verb '%s'", strbuf_text(&safe));
    if (str_nearest(name, names, count, 3, &near))
        fprintf(stderr, "; did you mean %s?", strbuf_text(&near));
    fputs("\nTry 'assay --help'.\n", stderr);
    return EXIT_USAGE;
}

/* Output that could not be written whole is a failure of the command. */
static int close_output(int code)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    fprintf(stderr, "assay: writing standard output failed: %s\n",
            errno ? strerror(errno) : "not all of it was written");
    return code ? code : EXIT_TROUBLE;
}

/* A standard stream that is closed must not become the number of a file that assay opens and then
 * takes for it.  What stands in its place refuses reading and writing, as if it were closed, and
 * is closed for the command. */
static void occupy_standard_streams(void)
{
    int fd;
    do
        fd = open("/", O_PATH | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int main(int argc, char **argv)
{
    if (vm_guest_is(argv))
        vm_guest_serve();
    occupy_standard_streams();
    if (argc < 2)
        return print_help(stderr);
    const char *name = argv[1];
    if (str_eq(name, "--version") || str_eq(name, "version")) {
        cmd_version(stdout);
        return close_output(EXIT_DONE);
    }
    if (str_eq(name, "--help") || str_eq(name, "-h"))
        return close_output(print_help(stdout));
    if (str_eq(name, "help")) {
        const struct verb *topic = argc > 2 ? find_verb(argv[2]) : NULL;
        if (argc > 2 && !topic)
            return unknown_verb(argv[2]);
        return close_output(topic ? cmd_help(topic) : print_help(stdout));
    }
    const struct verb *verb = find_verb(name);
    if (!verb)
        return unknown_verb(name);
    return close_output(verb->run(argc - 1, argv + 1));
}
