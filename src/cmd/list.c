/* SPDX-License-Identifier: MIT */
/* `assay list`: the experiments in the store. */
#include "base/memory.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "report/text/experiment.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

struct list_options {
    const char *db, *name;
    uint64_t most;
    bool all;
    const char *json;
};

#define O(field) offsetof(struct list_options, field)

static const struct option options[] = {
    {0, "db", OPTION_STRING, O(db), "PATH", CMD_DB_HELP, "file"},
    {'n', "lines", OPTION_U64, O(most), "N", "show the newest N (50)", NULL},
    {'a', "all", OPTION_FLAG, O(all), NULL, "show all", NULL},
    {0, "name", OPTION_STRING, O(name), "NAME", "only experiments with this name", NULL},
    {'j', "json", OPTION_OPTIONAL, O(json), "FILE", CMD_JSON_HELP, "file"},
    {0},
};

static int list_with(const struct list_options *o, struct error *err)
{
    CLEANUP(store_closep) struct store *store = NULL;
    int r = store_open(&store, store_place(o->db), STORE_READ, err);
    if (r < 0)
        return cmd_fail(&verb_list, err, EXIT_TROUBLE);
    struct store_filter filter = {.name = o->name, .most = o->all ? 0 : o->most};
    CLEANUP(store_list_done) struct store_list list = {0};
    r = store_list(store, &filter, &list, err);
    if (r < 0)
        return cmd_fail(&verb_list, err, EXIT_TROUBLE);
    CLEANUP(strbuf_done) struct strbuf out = {0};
    if (o->json)
        report_list_json(&out, &list);
    if (o->json && cmd_write(o->json, &out, err) < 0)
        return cmd_fail(&verb_list, err, EXIT_TROUBLE);
    if (!cmd_wants_text(o->json))
        return EXIT_DONE;
    strbuf_clear(&out);
    report_list_text(&out, &list, term_has_colour(STDOUT_FILENO),
                     isatty(STDOUT_FILENO) ? term_columns(STDOUT_FILENO) : 0);
    fputs(strbuf_text(&out), stdout);
    if (!o->all && list.count == o->most)
        printf("(the newest %zu; --all shows all)\n", list.count);
    return EXIT_DONE;
}

static int run(int argc, char **argv)
{
    struct error err = {0};
    struct list_options o = {.most = 50};
    int first = options_parse_mixed(options, &o, argc, argv, &err);
    if (first == OPTIONS_HELP)
        return cmd_help(&verb_list);
    if (first > 0 && first < argc)
        first = error_set(&err, -EINVAL, "'%s': list takes no arguments", argv[first]);
    if (first < 0)
        return cmd_usage(&verb_list, &err);
    return list_with(&o, &err);
}

const struct verb verb_list = {
    .name = "list",
    .summary = "list the experiments in the store",
    .synopsis = "[options]",
    .examples = "  assay list\n  assay list --name queue-throughput --all\n",
    .options = options,
    .run = run,
};
