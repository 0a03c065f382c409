/* SPDX-License-Identifier: MIT */
/* assay-vr: viewstamped replication to use, to measure, and to prove. */
#include "base/completion.h"
#include "base/memory.h"
#include "vr/cmd/cmd.h"

#include <errno.h>
#include <stdio.h>

static const struct verb *const verbs[] = {&vr_verb_bench,
                                           &vr_verb_replica,
                                           &vr_verb_key,
                                           &vr_verb_client,
                                           &vr_verb_kv,
                                           &vr_verb_status,
                                           &vr_verb_reconfigure,
                                           &vr_verb_backup,
                                           &vr_verb_restore,
                                           &vr_verb_sim,
                                           NULL};

int vr_fail(const struct verb *verb, const struct error *err, int code)
{
    fprintf(stderr, "assay-vr %s: %s\n", verb->name, err->message);
    return code;
}

bool vr_options(const struct verb *verb, void *target, int argc, char **argv, int *ret_first,
                int *ret_code)
{
    struct error err = {0};
    int first = options_parse_mixed(verb->options, target, argc, argv, &err);
    if (first == OPTIONS_HELP) {
        CLEANUP(strbuf_done) struct strbuf text = {0};
        options_help(verb, &text);
        /* The table's help speaks of assay's verbs. */
        const char *rest = strbuf_text(&text);
        const char *name = "usage: assay ";
        if (str_has_prefix(rest, name)) {
            printf("usage: assay-vr ");
            rest += strlen(name);
        }
        const char *manual = strstr(rest, "\nThe manual: ");
        printf("%.*s\nThe manual: man assay-vr\n",
               manual ? (int)(manual - rest) : (int)strlen(rest), rest);
        *ret_code = 0;
        return false;
    }
    if (first < 0) {
        *ret_code = vr_fail(verb, &err, 2);
        fprintf(stderr, "try 'assay-vr %s --help'\n", verb->name);
        return false;
    }
    if (ret_first) {
        *ret_first = first;
    } else if (first < argc) {
        error_set(&err, -EINVAL, "unexpected argument '%s'", argv[first]);
        *ret_code = vr_fail(verb, &err, 2);
        return false;
    }
    return true;
}

static int help(FILE *out, int code)
{
    fputs("usage: assay-vr COMMAND [OPTION]…\n\n"
          "Viewstamped replication over UDP: a replicated key-value store that can be measured,\n"
          "and a simulator that tries to break it.\n\n",
          out);
    for (unsigned i = 0; verbs[i]; i++)
        fprintf(out, "  %-12s %s\n", verbs[i]->name, verbs[i]->summary);
    fputs("\n"
          "'assay-vr COMMAND --help' describes a command; --completion bash|zsh prints a "
          "completion script.\n",
          out);
    return code;
}

static int completion(const char *shell)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    struct error err = {0};
    struct completion c = {.program = "assay-vr", .verbs = verbs, .words = "--completion"};
    if (completion_write(&out, &c, shell, &err) < 0) {
        fprintf(stderr, "assay-vr: --completion: %s\n", err.message);
        return 2;
    }
    fputs(strbuf_text(&out), stdout);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return help(stderr, 2);
    if (str_eq(argv[1], "--help") || str_eq(argv[1], "-h") || str_eq(argv[1], "help"))
        return help(stdout, 0);
    if (str_eq(argv[1], "--completion"))
        return completion(argc > 2 ? argv[2] : "");
    for (unsigned i = 0; verbs[i]; i++)
        if (str_eq(argv[1], verbs[i]->name))
            return verbs[i]->run(argc - 1, argv + 1);
    fprintf(stderr, "assay-vr: there is no command '%s'; try 'assay-vr --help'\n", argv[1]);
    return 2;
}
