/* SPDX-License-Identifier: MIT */
/* The verbs: `assay NAME` is verb_NAME in NAME.c, with its page in docs/man/assay-NAME.1.scd. */
#ifndef ASSAY_CMD_CMD_H
#define ASSAY_CMD_CMD_H

#include "base/error.h"
#include "base/options.h"
#include "base/strings.h"

#include <stdio.h>

/* Exit codes of every verb; a verb that runs a command passes that command's own code through. */
enum {
    EXIT_DONE = 0,
    EXIT_TROUBLE = 1,          /* the work could not be done */
    EXIT_USAGE = 2,            /* the command line is wrong */
    EXIT_MEASURE_FAILED = 125, /* a verb that runs a command failed itself */
};

extern const struct verb verb_annotate;
extern const struct verb verb_ab;
extern const struct verb verb_bench;
extern const struct verb verb_completion;
extern const struct verb verb_events;
extern const struct verb verb_export;
extern const struct verb verb_report;
extern const struct verb verb_record;
extern const struct verb verb_stat;
extern const struct verb verb_top;
extern const struct verb verb_trace;
extern const struct verb verb_sched;
extern const struct verb verb_locks;
extern const struct verb verb_doctor;
extern const struct verb verb_import;
extern const struct verb verb_init;
extern const struct verb verb_run;
extern const struct verb verb_answers;
extern const struct verb verb_compare;
extern const struct verb verb_diff;
extern const struct verb verb_explain;
extern const struct verb verb_gate;
extern const struct verb verb_bisect;
extern const struct verb verb_history;
extern const struct verb verb_html;
extern const struct verb verb_plot;
extern const struct verb verb_serve;
extern const struct verb verb_list;
extern const struct verb verb_show;
extern const struct verb verb_rm;
extern const struct verb verb_db;
extern const struct verb verb_vm;

/* Of the option --db, wherever a store is used. */
#define CMD_DB_HELP "the store: a file or postgresql://… (default: $ASSAY_DB, else ./assay.db)"

/* All verbs, in the order of the help; ends with NULL. */
extern const struct verb *const verbs[];

struct exact_tool;
/* exact_tool_find with a line of progress. */
int cmd_find_exact(struct exact_tool *tool, const char *word, struct error *err);

/* "assay NAME: message" on standard error; returns the error's own exit code, else code. */
int cmd_fail(const struct verb *verb, const struct error *err, int code);
/* "assay NAME: interrupted by signal 2: words" on standard error; returns 128 + signal. */
int cmd_interrupted(const struct verb *verb, int signal, const char *words);
/* The same for a wrong command line, with a pointer to --help; returns EXIT_USAGE. */
int cmd_usage(const struct verb *verb, const struct error *err);
/* The version, the commit and what was compiled in. */
void cmd_version(FILE *stream);
/* Prints the verb's help; returns EXIT_DONE. */
int cmd_help(const struct verb *verb);

/* Of --json, --csv and --markdown in every verb: NULL where they were not given, "" for standard
 * output, else the file. */
#define CMD_JSON_HELP "print JSON, or write it to this file"
#define CMD_CSV_HELP "print CSV, or write it to this file"
#define CMD_MARKDOWN_HELP "print a Markdown table, or write it to this file"
/* Writes a result to such a place; NULL is standard output, too.  What a file refuses goes to
 * standard error, so that nothing is lost. */
int cmd_write(const char *place, const struct strbuf *text, struct error *err);
/* Whether the text for people is printed, too: unless standard output has the result. */
bool cmd_wants_text(const char *place);

#endif
