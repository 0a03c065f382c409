/* SPDX-License-Identifier: MIT */
/* `assay rm`: experiments out of the store. */
#include "base/memory.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "report/text/experiment.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

struct rm_options {
    const char *db;
};

static const struct option options[] = {
    {0, "db", OPTION_STRING, offsetof(struct rm_options, db), "PATH", CMD_DB_HELP, "file"},
    {0},
};

static int remove_one(struct store *store, const char *word, struct error *err)
{
    int64_t id;
    CLEANUP(store_experiment_done) struct store_experiment e = {0};
    int r = store_find(store, word, &id, err);
    if (r == 0)
        r = store_experiment(store, id, &e, err);
    if (r == 0 && e.alive)
        r = error_set(err, -EBUSY, "experiment %lld is running; stop it first", (long long)id);
    if (r == 0)
        r = store_remove(store, id, err);
    if (r == 0)
        printf("removed experiment %lld (%s, %llu %s)\n", (long long)id, e.name,
               (unsigned long long)e.run_count, plural(e.run_count, "run", "runs"));
    return r;
}

static int run(int argc, char **argv)
{
    struct error err = {0};
    struct rm_options o = {0};
    int first = options_parse_mixed(options, &o, argc, argv, &err);
    if (first == OPTIONS_HELP)
        return cmd_help(&verb_rm);
    if (first >= argc)
        first = error_set(&err, -EINVAL, "name the experiments to remove; 'assay list' shows them");
    if (first < 0)
        return cmd_usage(&verb_rm, &err);
    CLEANUP(store_closep) struct store *store = NULL;
    int r = store_open(&store, store_place(o.db), STORE_WRITE, &err);
    for (int i = first; r == 0 && i < argc; i++)
        r = remove_one(store, argv[i], &err);
    return r < 0 ? cmd_fail(&verb_rm, &err, EXIT_TROUBLE) : EXIT_DONE;
}

const struct verb verb_rm = {
    .name = "rm",
    .summary = "remove experiments from the store",
    .synopsis = "[options] EXPERIMENT…",
    .examples = "  assay rm 12 13\n",
    .options = options,
    .run = run,
    .words = "!assay completion --list experiments",
};
