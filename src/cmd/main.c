/* SPDX-License-Identifier: MIT */
/* assay: which version is faster, by how much, and why?  Finds the verb and runs it. */
#include "base/fd.h"
#include "base/memory.h"
#include "bench/runner.h"
#include "cmd/cmd.h"
#include "exact/run.h"
#include "vm/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

const struct verb *const verbs[] = {
    /* measure */
    &verb_stat,
    &verb_record,
    &verb_top,
    &verb_trace,
    &verb_sched,
    &verb_locks,
    &verb_init,
    &verb_run,
    &verb_vm,
    &verb_doctor,
    &verb_events,
    /* compare */
    &verb_ab,
    &verb_bench,
    &verb_compare,
    &verb_diff,
    &verb_gate,
    &verb_bisect,
    &verb_history,
    /* explain */
    &verb_explain,
    &verb_answers,
    &verb_report,
    &verb_annotate,
    /* look */
    &verb_list,
    &verb_show,
    &verb_html,
    &verb_plot,
    &verb_serve,
    /* keep */
    &verb_db,
    &verb_import,
    &verb_export,
    &verb_rm,
    /* the shell */
    &verb_completion,
    NULL,
};

/* The jobs by which --help groups the verbs, each with the first verb of its group. */
static const struct {
    const struct verb *first;
    const char *heading;
} jobs[] = {
    {&verb_stat, "measure"},
    {&verb_ab, "compare"},
    {&verb_explain, "explain"},
    {&verb_list, "look at results"},
    {&verb_db, "keep and share results"},
    {&verb_completion, "set up the shell"},
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
    return err->exit_code ? err->exit_code : code;
}

int cmd_interrupted(const struct verb *verb, int signal, const char *words)
{
    fflush(stdout);
    fprintf(stderr, "assay %s: interrupted by signal %d: %s\n", verb->name, signal, words);
    return 128 + signal;
}

bool cmd_wants_text(const char *place)
{
    return !place || (*place && !str_eq(place, "-"));
}

int cmd_write(const char *place, const struct strbuf *text, struct error *err)
{
    if (place && cmd_wants_text(place)) {
        int r = file_write(place, strbuf_text(text), text->length, err);
        if (r < 0)
            fwrite(strbuf_text(text), 1, text->length, stderr);
        return r;
    }
    fwrite(strbuf_text(text), 1, text->length, stdout);
    return 0;
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

static void print_verb(FILE *stream, const struct verb *verb)
{
    for (size_t i = 0; i < ARRAY_COUNT(jobs); i++)
        if (jobs[i].first == verb)
            fprintf(stream, "\n%s\n", jobs[i].heading);
    fprintf(stream, "  %-12s %s\n", verb->name, verb->summary);
}

static int print_help(FILE *stream)
{
    fputs("usage: assay VERB [options]\n\n"
          "A Linux performance workbench: which version is faster, by how much, and why?\n",
          stream);
    for (size_t i = 0; verbs[i]; i++)
        print_verb(stream, verbs[i]);
    fputs("\n'assay VERB --help' describes a verb; 'man assay' is the manual.\n", stream);
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
    if (vm_guest_is_with_mappings(argv))
        return vm_guest_with_mappings(argv);
    if (bench_runner_is(argc, argv))
        return bench_runner_serve(argv);
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
    if (str_eq(name, EXACT_CHILD))
        exact_child(argc, argv);
    const struct verb *verb = find_verb(name);
    if (!verb)
        return unknown_verb(name);
    return close_output(verb->run(argc - 1, argv + 1));
}
