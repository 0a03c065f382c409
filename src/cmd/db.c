/* SPDX-License-Identifier: MIT */
/* `assay db export|import|copy|upgrade|deliver`: whole stores and parts of them. */
#include "base/memory.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "store/store_copy.h"

#include <errno.h>
#include <stddef.h>
#include <sys/stat.h>

struct db_options {
    const char *db;
};

static const struct option options[] = {
    {0, "db", OPTION_STRING, offsetof(struct db_options, db), "PATH", CMD_DB_HELP, "file"},
    {0},
};

struct tally {
    size_t copied, replaced, already;
};

static int copy_one(struct store *from, struct store *to, int64_t id, struct tally *tally,
                    struct error *err)
{
    int64_t new_id;
    enum copy_outcome outcome = COPY_DONE;
    int r = store_copy(from, to, id, &new_id, &outcome, err);
    if (r == 0)
        ++*(outcome == COPY_DONE       ? &tally->copied
            : outcome == COPY_REPLACED ? &tally->replaced
                                       : &tally->already);
    return r;
}

/* Oldest first, so that the new numbers keep the order. */
static int copy_all(struct store *from, struct store *to, struct tally *tally, struct error *err)
{
    CLEANUP(store_list_done) struct store_list list = {0};
    struct store_filter filter = {0};
    int r = store_list(from, &filter, &list, err);
    struct progress progress;
    progress_start(&progress);
    uint64_t runs = 0, done = 0;
    for (size_t i = 0; r == 0 && i < list.count; i++)
        runs += list.items[i].run_count;
    for (size_t i = list.count; r == 0 && i-- > 0;) {
        char some[32], all[32];
        progress_show(&progress, "experiment %zu of %zu, %s of %s runs", list.count - i, list.count,
                      format_thousands(done, some, sizeof(some)),
                      format_thousands(runs, all, sizeof(all)));
        r = copy_one(from, to, list.items[i].id, tally, err);
        done += list.items[i].run_count;
    }
    progress_end(&progress);
    return r;
}

static int copy_named(struct store *from, struct store *to, char **words, struct tally *tally,
                      struct error *err)
{
    int r = 0;
    for (; r == 0 && *words; words++) {
        int64_t id;
        r = store_find(from, *words, &id, err);
        if (r == 0)
            r = copy_one(from, to, id, tally, err);
    }
    return r;
}

/* words name experiments of `from_place`; none means all. */
static int transfer(const char *from_place, const char *to_place, enum store_mode to_mode,
                    char **words, struct error *err)
{
    struct stat a, b;
    if (str_eq(from_place, to_place) && store_is_address(from_place))
        return error_set(err, -EINVAL, "both are the same store");
    if (stat(from_place, &a) == 0 && stat(to_place, &b) == 0 && a.st_dev == b.st_dev &&
        a.st_ino == b.st_ino)
        return error_set(err, -EINVAL, "%s and %s are the same store", from_place, to_place);
    CLEANUP(store_closep) struct store *from = NULL, *to = NULL;
    struct tally tally = {0};
    int r = store_open(&from, from_place, STORE_READ, err);
    if (r == 0)
        r = store_open(&to, to_place, to_mode, err);
    if (r == 0)
        r = words && *words ? copy_named(from, to, words, &tally, err)
                            : copy_all(from, to, &tally, err);
    if (r == 0)
        printf("%zu copied, %zu replaced by longer ones, %zu already there\n", tally.copied,
               tally.replaced, tally.already);
    return r;
}

static int upgrade(const char *place, struct error *err)
{
    struct store *store = NULL;
    int r = store_open(&store, place, STORE_WRITE, err);
    store_close(store);
    if (r == 0)
        printf("%s is up to date\n", place);
    return r;
}

/* What earlier processes could not tell to a store that was out of reach. */
static int deliver(const char *place, struct error *err)
{
    CLEANUP(store_closep) struct store *store = NULL;
    struct store_delivery tally = {0};
    int r = store_open(&store, place, STORE_WRITE, err);
    if (r == 0)
        r = store_deliver(store, &tally, err);
    if (store)
        printf("runs: %zu delivered, %zu already there; files: %zu delivered, %zu not delivered, "
               "%zu still in use\n",
               tally.runs, tally.already, tally.files, tally.failed, tally.busy);
    return r;
}

static int run(int argc, char **argv)
{
    struct error err = {0};
    struct db_options o = {0};
    int first = options_parse_mixed(options, &o, argc, argv, &err);
    if (first == OPTIONS_HELP)
        return cmd_help(&verb_db);
    int count = first < 0 ? 0 : argc - first;
    const char *action = count > 0 ? argv[first] : "", *own = store_place(o.db);
    char **words = first < 0 ? NULL : argv + first + 1;
    int r;
    if (first < 0)
        return cmd_usage(&verb_db, &err);
    if (str_eq(action, "export") && count >= 2)
        r = transfer(own, words[0], STORE_EXPORT, words + 1, &err);
    else if (str_eq(action, "import") && count >= 2)
        r = transfer(words[0], own, STORE_CREATE, words + 1, &err);
    else if (str_eq(action, "copy") && count == 3)
        r = transfer(words[0], words[1], STORE_CREATE, NULL, &err);
    else if (str_eq(action, "upgrade") && count == 1)
        r = upgrade(own, &err);
    else if (str_eq(action, "deliver") && count == 1)
        r = deliver(own, &err);
    else {
        error_set(&err, -EINVAL,
                  "expected export FILE [EXPERIMENT…], import FILE [EXPERIMENT…], copy FROM TO, "
                  "upgrade, or deliver");
        return cmd_usage(&verb_db, &err);
    }
    return r < 0 ? cmd_fail(&verb_db, &err, EXIT_TROUBLE) : EXIT_DONE;
}

const struct verb verb_db = {
    .name = "db",
    .summary = "export, import and copy stores; deliver runs that wait for one",
    .synopsis = "[options] export FILE [EXPERIMENT…] | import FILE [EXPERIMENT…] | copy FROM TO | "
                "upgrade | deliver",
    .examples = "  assay db export sort.assay 12      one experiment in one file\n"
                "  assay db import sort.assay\n"
                "  assay db copy assay.db all.db      resumes if it was interrupted\n"
                "  assay db copy assay.db postgresql://lab@db.example/assay\n"
                "  assay db deliver                   runs that could not be delivered earlier\n",
    .options = options,
    .run = run,
    .words = "export import copy upgrade deliver",
};
