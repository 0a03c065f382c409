/* SPDX-License-Identifier: MIT */
/* hyperfine's JSON: what is read, and what is refused. */
#include "analysis/hyperfine.h"
#include "base/fd.h"
#include "base/memory.h"
#include "config.h"
#include "test.h"

#include <errno.h>

static char path[64];

/* Writes the text to a file and imports it. */
static int import(const char *text, struct imported *imported, struct error *err)
{
    strcpy(path, "/tmp/assay-hyperfine-XXXXXX");
    CLEANUP(fd_closep) int fd = mkstemp(path);
    CHECK_INT(fd_write_all(fd, text, strlen(text)), 0);
    const char *paths[] = {path};
    int r = hyperfine_import(paths, 1, imported, err);
    unlink(path);
    return r;
}

/* Whether JSON can be read; where it cannot, checks that this is said. */
static bool can_read(void)
{
    struct error err = {0};
    struct imported imported;
    if (HAVE_JANSSON)
        return true;
    CHECK_INT(import("{}", &imported, &err), -ENOTSUP);
    CHECK_CONTAINS(err.message, "libjansson-dev");
    return false;
}

TEST(results_become_series)
{
    struct error err = {0};
    CLEANUP(imported_done) struct imported i = {0};
    if (!can_read())
        return;
    const char *text = "{\"results\": [{\"command\": \"a\", \"times\": [1, 2.5, 1],"
                       " \"exit_codes\": [0, 1, null], \"parameters\": {\"n\": \"1\"}},"
                       "{\"command\": \"b\", \"times\": [0.5]}, {\"command\": \"b\","
                       " \"times\": [0.25, 3], \"memory_usage_byte\": [1, 2]}]}";
    if (import(text, &i, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
    CHECK_INT(i.count, 3);
    CHECK_STR(i.results[0].name, "a");
    CHECK_STR(i.results[0].parameters, "n=1");
    CHECK_INT(i.results[0].failed_runs, 2);
    CHECK_STR(i.results[1].name, "b #1");
    CHECK_STR(i.results[2].name, "b #2");
    CHECK(!i.paired);
    CHECK_INT(i.results[0].wall_count, 3);
    CHECK_NEAR(i.results[0].wall_ns[1], 2.5e9, 1);
    CHECK_NEAR(i.results[2].wall_ns[0], 0.25e9, 1);
    CLEANUP(dataset_done) struct dataset d;
    dataset_start(&d, "");
    for (size_t c = 0; c < i.count; c++)
        dataset_add_cell(&d, i.results[c].name, "", NULL);
    imported_fill(&i, &d);
    CHECK_INT(d.metric_count, 1); /* not every result has its memory */
    CHECK(d.apart);
    CHECK_INT(dataset_column(&d, 0, 2).count, 2);
}

TEST(a_file_that_says_so_is_paired)
{
    CLEANUP(imported_done) struct imported i = {0};
    if (!can_read())
        return;
    const char *text = "{\"results\": [{\"command\": \"a\", \"times\": [1, 2]},"
                       "{\"command\": \"b\", \"times\": [1, 2]}], \"assay\": {\"paired\": true}}";
    CHECK_INT(import(text, &i, NULL), 0);
    CHECK(i.paired);
}

TEST(what_is_wrong_is_named_with_its_place)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "the file is empty"},
        {"[1, 2", "not JSON"},
        {"[]", "this is not hyperfine"},
        {"{\"results\": {}}", "this is not hyperfine"},
        {"{\"results\": []}", "this is not hyperfine"},
        {"{\"results\": [{\"command\": \"a\\u0000\", \"times\": [1]}]}", "not JSON"},
        {"{\"results\": [1]}", "this is not hyperfine"},
        {"{\"results\": [{\"command\": \"a\", \"mean\": 1, \"median\": 1}]}",
         "there are no 'times'"},
        {"{\"results\": [{\"command\": \"a\", \"times\": [1]}, 1]}", "results[1] has no 'command'"},
        {"{\"results\": [{\"command\": \"a\", \"times\": [1, \"x\"]}]}", "results[0].times[1]"},
        {"{\"results\": [{\"command\": \"a\", \"times\": [1, -1]}]}", "results[0].times[1]"},
        {"{\"results\": [{\"command\": \"a\", \"times\": [1e999]}]}", "not JSON"},
        {"{\"results\": [{\"command\": \"a\", \"times\": [1], \"memory_usage_byte\": [null]}]}",
         "memory_usage_byte[0]"},
    };
    if (!can_read())
        return;
    for (size_t at = 0; at < ARRAY_COUNT(cases); at++) {
        struct error err = {0};
        struct imported i = {0};
        CHECK_INT(import(cases[at].text, &i, &err), -EINVAL);
        CHECK_CONTAINS(err.message, cases[at].words);
        CHECK_CONTAINS(err.message, path);
    }
    struct error err = {0};
    struct imported i = {0};
    const char *missing[] = {"/nonexistent.json"};
    CHECK(hyperfine_import(missing, 1, &i, &err) < 0);
    CHECK_CONTAINS(err.message, "/nonexistent.json");
}
