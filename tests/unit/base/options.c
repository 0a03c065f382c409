/* SPDX-License-Identifier: MIT */
#include "base/options.h"
#include "base/memory.h"
#include "test.h"

#include <errno.h>
#include <stddef.h>

struct sample {
    bool all;
    unsigned detail;
    const char *output, *sim;
    struct option_list events, ranges;
    uint64_t repeat, interval_ns;
};

static const struct option table[] = {
    {0, NULL, OPTION_HEADING, 0, NULL, "What", NULL},
    {'a', "all", OPTION_FLAG, offsetof(struct sample, all), NULL, "all", NULL},
    {'d', NULL, OPTION_COUNT, offsetof(struct sample, detail), NULL, "more", NULL},
    {'o', "output", OPTION_STRING, offsetof(struct sample, output), "FILE", "file", "file"},
    {0, "sim", OPTION_OPTIONAL, offsetof(struct sample, sim), "full", "sim", NULL},
    {'e', "event", OPTION_LIST, offsetof(struct sample, events), "EVENT", "event", "event"},
    {'P', "range", OPTION_LIST, offsetof(struct sample, ranges), "VAR MIN MAX", "range", NULL},
    {'r', "repeat", OPTION_U64, offsetof(struct sample, repeat), "N", "repeat", NULL},
    {'I', "interval", OPTION_MS, offsetof(struct sample, interval_ns), "MS", "interval", NULL},
    {0},
};

static int parse(struct sample *s, struct error *err, char **argv)
{
    int argc = 0;
    while (argv[argc])
        argc++;
    *s = (struct sample){0};
    return options_parse(table, s, argc, argv, err);
}

TEST(all_spellings)
{
    struct sample s;
    struct error err;
    char *argv[] = {"stat",    "-a", "-ddd",  "-r5",   "--output=x", "-e",   "a",
                    "--event", "b",  "--sim", "-I100", "--",         "-cmd", NULL};
    CHECK_INT(parse(&s, &err, argv), 12);
    CHECK(s.all);
    CHECK_INT(s.detail, 3);
    CHECK_INT(s.repeat, 5);
    CHECK_STR(s.output, "x");
    CHECK_STR(s.sim, "");
    CHECK_INT(s.events.count, 2);
    CHECK_STR(s.events.items[1], "b");
    CHECK_INT(s.interval_ns, 100000000);
    free(s.events.items);
}

TEST(parsing_stops_at_the_command)
{
    struct sample s;
    struct error err;
    char *argv[] = {"stat", "-a", "ls", "-d", NULL};
    CHECK_INT(parse(&s, &err, argv), 2);
    CHECK_INT(s.detail, 0);
}

TEST(mixed_parsing_goes_on)
{
    struct sample s = {0};
    struct error err;
    char *argv[] = {"compare", "one", "-a", "two", "-r", "3", NULL};
    CHECK_INT(options_parse_mixed(table, &s, 6, argv, &err), 4);
    CHECK_STR(argv[4], "one");
    CHECK_STR(argv[5], "two");
    CHECK_INT(s.repeat, 3);
    CHECK(s.all);
}

TEST(errors_name_the_option)
{
    struct sample s;
    struct error err;
    CHECK_INT(parse(&s, &err, (char *[]){"stat", "--repaet=3", NULL}), -EINVAL);
    CHECK_CONTAINS(err.message, "did you mean --repeat");
    CHECK_INT(parse(&s, &err, (char *[]){"stat", "-z", NULL}), -EINVAL);
    CHECK_CONTAINS(err.message, "-z");
    CHECK_INT(parse(&s, &err, (char *[]){"stat", "-r", NULL}), -EINVAL);
    CHECK_CONTAINS(err.message, "needs a value: N");
    CHECK_INT(parse(&s, &err, (char *[]){"stat", "-r", "many", NULL}), -EINVAL);
    CHECK_CONTAINS(err.message, "option --repeat: 'many'");
    CHECK_INT(parse(&s, &err, (char *[]){"stat", "--all=3", NULL}), -EINVAL);
    CHECK_INT(parse(&s, &err, (char *[]){"stat", "--help", NULL}), OPTIONS_HELP);
}

TEST(help_lists_every_option)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    const struct verb verb = {
        .name = "stat", .summary = "count", .synopsis = "-- CMD", .options = table};
    options_help(&verb, &out);
    CHECK_CONTAINS(strbuf_text(&out), "usage: assay stat -- CMD\n");
    CHECK_CONTAINS(strbuf_text(&out), "  -r, --repeat N");
    CHECK_CONTAINS(strbuf_text(&out), "--sim[=full]");
}

TEST(a_list_may_take_several_words_at_a_time)
{
    struct sample s;
    struct error err;
    char *argv[] = {"x", "-P", "a", "-1", "2", "--range", "b", "3", "4", "-a", "rest", NULL};
    CHECK_INT(parse(&s, &err, argv), 10);
    CHECK_INT(s.ranges.count, 6);
    CHECK_STR(s.ranges.items[1], "-1");
    CHECK_STR(s.ranges.items[5], "4");
    CHECK(s.all);
    free(s.ranges.items);
    char *attached[] = {"x", "-Pa", "1", "2", "--range=b", "3", "4", "rest", NULL};
    CHECK_INT(parse(&s, &err, attached), 7);
    CHECK_INT(s.ranges.count, 6);
    CHECK_STR(s.ranges.items[3], "b");
    free(s.ranges.items);
    char *few[] = {"x", "-P", "a", "1", NULL};
    CHECK_INT(parse(&s, &err, few), -EINVAL);
    CHECK_CONTAINS(err.message, "VAR MIN MAX");
    free(s.ranges.items);
}
