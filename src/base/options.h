/* SPDX-License-Identifier: MIT */
/*
 * Command lines from a table.  One table per verb says what the verb takes; parsing, --help, the
 * shell completions and the test that every option stands in its man page all come from it.
 */
#ifndef ASSAY_BASE_OPTIONS_H
#define ASSAY_BASE_OPTIONS_H

#include "base/error.h"
#include "base/strings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_kind {
    OPTION_FLAG,     /* bool *: set to true */
    OPTION_COUNT,    /* unsigned *: one more each time */
    OPTION_STRING,   /* const char **: points into argv */
    OPTION_OPTIONAL, /* const char **: --name or --name=VALUE; "" when no value was given */
    OPTION_LIST,     /* struct option_list *: may be given several times; when its value is called
                        "VAR MIN MAX", each time takes three words and appends them all */
    OPTION_U64,      /* uint64_t * */
    OPTION_DOUBLE,   /* double * */
    OPTION_MS,       /* uint64_t * in nanoseconds; a bare number counts milliseconds */
    OPTION_SECONDS,  /* uint64_t * in nanoseconds; a bare number counts seconds */
    OPTION_BYTES,    /* uint64_t * */
    OPTION_HEADING,  /* no option: help starts a new group */
};

struct option_list {
    const char **items;
    size_t count, capacity;
};

struct option {
    char letter;      /* 0 when there is none */
    const char *name; /* without the dashes; NULL when there is none */
    enum option_kind kind;
    size_t offset;     /* of the target in the verb's struct of options */
    const char *value; /* how help calls the value; NULL for flags */
    const char *help;
    /* "file", "folder", "event", words separated by blanks, or "!" and a command that prints words;
     * NULL for nothing */
    const char *complete;
};

struct verb {
    const char *name;
    const char *summary;               /* one line for the list of verbs */
    const char *synopsis;              /* behind "usage: assay NAME " */
    const char *examples;              /* lines for the end of --help, or NULL */
    const struct option *options;      /* ends with {0} */
    int (*run)(int argc, char **argv); /* argv[0] is the verb; returns the exit code */
    /* What may stand where no option does, as struct option says it; NULL for files only. */
    const char *words;
};

/*
 * Writes into the struct at target.  Parses argv[1..] up to the first word that is no option, or up
 * to and over "--". Returns the index of the first word left over, OPTIONS_HELP when --help was
 * asked for, or a negative errno with words.
 */
#define OPTIONS_HELP 0
int options_parse(const struct option *table, void *target, int argc, char **argv,
                  struct error *err);

/* As options_parse, but options may stand behind other words too; those are moved to the end. */
int options_parse_mixed(const struct option *table, void *target, int argc, char **argv,
                        struct error *err);

/* The share that an option of type OPTION_STRING gives: see parse_share. */
int option_share(const char *name, const char *text, double most, double *ret_share,
                 struct error *err);

void options_help(const struct verb *verb, struct strbuf *out);

#endif
