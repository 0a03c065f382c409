/* SPDX-License-Identifier: MIT */
/*
 * One run of a command whose instructions are counted exactly.
 *
 * The command runs in an emulated machine (machine.h) or in QEMU's user mode, there with the same
 * addresses, the same answers of getrandom(2) and on one processor in each run, with all programs
 * that it executes.  What still varies is what it asks of the real system: times, process IDs, the
 * order in which threads come.
 *
 * Verbs that run commands in rounds put exact_words() before them: the command then runs under a
 * process of assay's (exact_child), which reports the counts as the program's own metrics do
 * (run/metrics.h).
 */
#ifndef ASSAY_EXACT_RUN_H
#define ASSAY_EXACT_RUN_H

#include "base/strings.h"
#include "exact/counts.h"
#include "exact/resolve.h"
#include "exact/tool.h"
#include "run/command.h"

/* The processor that is emulated: fixed, since the C library chooses its functions by it. */
#define EXACT_CPU "max"
#define EXACT_CHILD "exact-child" /* the first word of such a process */

struct exact_result {
    struct exact_counts counts;
    int status;            /* as wait4 gives it */
    uint64_t wall_ns;      /* of the emulation, not of the command */
    bool left_behind;      /* processes of the command went on: what they do later is not counted */
    bool ran_out;          /* the machine had no more memory, and its kernel killed a process */
    bool was_stopped;      /* by a signal for assay, before anything was counted */
    struct strbuf metrics; /* what the program reported (run/metrics.h), where it cannot itself */
    char **foreign;        /* programs that ran uncounted: not for this processor */
    size_t foreign_count, foreign_capacity;
    char **set_id; /* programs that ran without the permissions of their owner */
    size_t set_id_count, set_id_capacity;
};

/* The file of a command that can be emulated; the caller frees it.  The tool may be NULL: a
 * machine. */
int exact_find_program(const struct exact_tool *tool, char *const *argv,
                       struct exact_program *ret_program, char **ret_path, struct error *err);
/* A directory for temporary files; the caller removes it and frees its name. */
int exact_make_folder(char **ret_path, struct error *err);
void exact_remove_folder(const char *path);

/* Runs the command to its end.  *ret_start_code is negative when it could not be started. */
int exact_run(const struct exact_tool *tool, char *const *argv, struct exact_result *result,
              int *ret_start_code, struct error *err);
void exact_result_done(struct exact_result *result);

/* Commands of this process' children that run in a machine, in the directory tree or below, see it
 * in the place of another one: the length of a path is work for the kernel. */
void exact_see_as(const char *tree, const char *seen_as);

/* The words that go before a command, with what counts (exact_word) and the file that its functions
 * are to be written to (NULL for none); the first is to be executed as /proc/self/exe.  Ends with
 * NULL; the caller frees the list with exact_words_free. */
char **exact_words(const char *word, const char *functions_path);
void exact_words_free(char **words);
/* Puts them before a command, which takes them over. */
void exact_emulate(struct command *c, const char *word, const char *functions_path);
/* Such a process: does not return. */
_Noreturn void exact_child(int argc, char **argv);
/* Whether it ended so because the emulated machine failed (vm/exits.h). */
bool exact_machine_failed(int exit_code);

#endif
