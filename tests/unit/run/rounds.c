/* SPDX-License-Identifier: MIT */
/* Rounds: every command once in each, in an order of its own; how they end, and what is kept. */
#include "run/rounds.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"
#include "test.h"

#include <stdlib.h>
#include <unistd.h>

enum { COMMANDS = 3 };

struct fixture {
    char folder[32];
    struct event_list events;
    struct contestant contestants[COMMANDS];
    struct rounds_spec spec;
    struct rounds rounds;
    struct error err;
};

/* Commands that write their letter into a file. */
static void fixture_init(struct fixture *f)
{
    *f = (struct fixture){.folder = "/tmp/assay-rounds-XXXXXX"};
    CHECK(mkdtemp(f->folder) != NULL);
    for (size_t i = 0; i < COMMANDS; i++) {
        struct contestant *c = &f->contestants[i];
        CLEANUP(memory_freep) char *text = memory_printf("printf %c >>log", (char)('a' + i));
        CHECK_INT(command_init(&c->command, text, "/bin/sh", &f->err), 0);
        c->name = (char *)"x";
        c->is_reference = i == 0;
    }
    f->spec = (struct rounds_spec){.contestants = f->contestants,
                                   .contestant_count = COMMANDS,
                                   .events = &f->events,
                                   .rounds_min = 1,
                                   .working_dir = f->folder,
                                   .hook_shell = "/bin/sh",
                                   .seed = 7};
}

static void set_command(struct fixture *f, size_t index, const char *text)
{
    command_done(&f->contestants[index].command);
    CHECK_INT(command_init(&f->contestants[index].command, text, "/bin/sh", &f->err), 0);
}

static void fixture_done(struct fixture *f)
{
    CLEANUP(memory_freep) char *remove = memory_printf("rm -rf '%s'", f->folder);
    CHECK_INT(system(remove), 0);
    rounds_done(&f->rounds);
    for (size_t i = 0; i < COMMANDS; i++)
        command_done(&f->contestants[i].command);
}

/* What the commands wrote since the last time; the caller frees it. */
static char *take_log(struct fixture *f)
{
    CLEANUP(memory_freep) char *path = memory_printf("%s/log", f->folder);
    struct strbuf text = {0};
    if (access(path, F_OK) < 0)
        return memory_strdup("");
    CHECK_INT(file_read(path, &text, &f->err), 0);
    unlink(path);
    return text.data;
}

static int run(struct fixture *f)
{
    rounds_done(&f->rounds);
    int r = rounds_run(&f->spec, &f->rounds, &f->err);
    if (r < 0)
        test_fail(__FILE__, __LINE__, "%s", f->err.message);
    return r;
}

/* Every block of three letters has each of them. */
static bool is_in_rounds(const char *log, size_t count)
{
    if (strlen(log) != count * COMMANDS)
        return false;
    for (size_t i = 0; i < count; i++)
        for (char c = 'a'; c < 'a' + COMMANDS; c++)
            if (!memchr(log + i * COMMANDS, c, COMMANDS))
                return false;
    return true;
}

TEST(each_round_has_every_command_once_in_an_order_of_the_seed)
{
    CLEANUP(fixture_done) struct fixture f;
    fixture_init(&f);
    f.spec.rounds_min = f.spec.rounds_max = 8;
    run(&f);
    CLEANUP(memory_freep) char *first = take_log(&f);
    CHECK(is_in_rounds(first, 8));
    CHECK_INT(f.rounds.count, 8);
    CHECK_INT(f.rounds.end, ROUNDS_DONE);
    /* Positions are told as they were, not all rounds have one order. */
    bool moved = false;
    for (size_t i = 0; i < 8; i++)
        for (size_t k = 0; k < COMMANDS; k++) {
            size_t position = f.rounds.items[i].runs[k].position;
            CHECK_INT(first[i * COMMANDS + position], 'a' + (int)k);
            moved |= position != k;
        }
    CHECK(moved);
    run(&f);
    CLEANUP(memory_freep) char *again = take_log(&f);
    CHECK_STR(again, first);
    f.spec.seed = 8;
    run(&f);
    CLEANUP(memory_freep) char *other = take_log(&f);
    CHECK(strcmp(other, first) != 0);
}

TEST(warm_ups_are_run_and_not_kept)
{
    CLEANUP(fixture_done) struct fixture f;
    fixture_init(&f);
    f.spec.warmup_count = 2;
    f.spec.rounds_min = f.spec.rounds_max = 3;
    run(&f);
    CLEANUP(memory_freep) char *log = take_log(&f);
    CHECK(is_in_rounds(log, 5));
    CHECK_INT(f.rounds.warmup_done, 2);
    CHECK_INT(f.rounds.count, 3);
}

static bool after_five(const struct rounds *r, const struct rounds_spec *spec, void *context)
{
    (void)spec;
    ++*(size_t *)context;
    return r->count >= 5;
}

TEST(they_end_when_they_are_precise_but_not_before_the_least)
{
    CLEANUP(fixture_done) struct fixture f;
    size_t asked = 0;
    fixture_init(&f);
    f.spec.is_precise = after_five;
    f.spec.context = &asked;
    f.spec.rounds_min = 3;
    run(&f);
    CHECK_INT(f.rounds.count, 5);
    CHECK_INT(f.rounds.end, ROUNDS_PRECISE);
    CHECK_INT(asked, 3);   /* after rounds 3, 4 and 5 */
    f.spec.rounds_max = 4; /* the most comes first */
    run(&f);
    CHECK_INT(f.rounds.count, 4);
    CHECK_INT(f.rounds.end, ROUNDS_DONE);
}

TEST(the_time_ends_them_after_one_round_at_least)
{
    CLEANUP(fixture_done) struct fixture f;
    fixture_init(&f);
    f.spec.rounds_min = 1000000;
    f.spec.time_max_ns = 1;
    run(&f);
    CHECK_INT(f.rounds.count, 1);
    CHECK_INT(f.rounds.end, ROUNDS_TIME);
}

TEST(a_failure_ends_them_and_its_round_is_not_kept)
{
    CLEANUP(fixture_done) struct fixture f;
    fixture_init(&f);
    /* Fails from the third round on. */
    set_command(&f, 1,
                "printf b >>log; printf x >>n; echo told; echo words >&2; test $(wc -c <n) -lt 3");
    f.spec.rounds_min = f.spec.rounds_max = 10;
    run(&f);
    CHECK_INT(f.rounds.end, ROUNDS_FAILURE);
    CHECK_INT(f.rounds.count, 2);
    CHECK(f.rounds.unfinished_runs < COMMANDS);
    CHECK_STR(f.rounds.failure.what, "the command");
    CHECK_CONTAINS(f.rounds.failure.text, "printf b");
    CHECK_STR(strbuf_text(&f.rounds.failure.output_stderr), "words\n");
    CHECK_INT(f.rounds.failure.exit_code, 1);
    CHECK_STR(strbuf_text(&f.rounds.failure.output_stdout), "told\n");
    CHECK(!f.rounds.failure.stdout_was_discarded);
    f.spec.stdout_to = RUN_DISCARD;
    run(&f);
    CHECK_STR(strbuf_text(&f.rounds.failure.output_stdout), "");
    CHECK(f.rounds.failure.stdout_was_discarded);
}

TEST(failures_may_be_allowed_and_are_counted)
{
    CLEANUP(fixture_done) struct fixture f;
    fixture_init(&f);
    set_command(&f, 2, "exit 7");
    f.spec.ignored_failures.all = true;
    f.spec.rounds_min = f.spec.rounds_max = 3;
    run(&f);
    CHECK_INT(f.rounds.end, ROUNDS_DONE);
    CHECK_INT(f.rounds.count, 3);
    CHECK_INT(f.rounds.failed_runs, 3);
    CHECK_INT(f.rounds.items[0].runs[2].status, 7 << 8);
    CHECK_INT(f.rounds.items[0].runs[0].status, 0);
}

TEST(hooks_run_where_they_belong)
{
    CLEANUP(fixture_done) struct fixture f;
    fixture_init(&f);
    for (size_t i = 0; i < COMMANDS; i++) {
        f.contestants[i].setup = (char *)"printf S >>log";
        f.contestants[i].cleanup = (char *)"printf C >>log";
    }
    f.contestants[1].prepare = (char *)"printf P >>log";
    f.spec.rounds_min = f.spec.rounds_max = 2;
    run(&f);
    CLEANUP(memory_freep) char *log = take_log(&f);
    CHECK_INT(strlen(log), 2 + 2 * (COMMANDS + 1));
    CHECK_INT(log[0], 'S'); /* once, though three commands share it */
    CHECK_INT(log[strlen(log) - 1], 'C');
    for (const char *at = log; (at = strchr(at, 'b')); at++)
        CHECK_INT(at[-1], 'P');
}

TEST(a_setup_that_fails_is_told_and_cleaned_up)
{
    CLEANUP(fixture_done) struct fixture f;
    fixture_init(&f);
    f.contestants[0].setup = (char *)"exit 5";
    f.contestants[0].cleanup = (char *)"printf C >>log";
    run(&f);
    CHECK_INT(f.rounds.end, ROUNDS_FAILURE);
    CHECK_STR(f.rounds.failure.what, "the setup command");
    CHECK_INT(f.rounds.failure.exit_code, 5);
    CHECK_INT(f.rounds.count, 0);
    CLEANUP(memory_freep) char *log = take_log(&f);
    CHECK_STR(log, "C");
}

TEST(the_environment_changes_its_size_unless_told_not_to)
{
    CLEANUP(fixture_done) struct fixture f;
    fixture_init(&f);
    f.spec.rounds_min = f.spec.rounds_max = 6;
    run(&f);
    bool differ = false;
    for (size_t i = 1; i < f.rounds.count; i++)
        differ |= f.rounds.items[i].padding_bytes != f.rounds.items[0].padding_bytes;
    CHECK(differ);
    f.spec.no_padding = true;
    run(&f);
    for (size_t i = 0; i < f.rounds.count; i++)
        CHECK_INT(f.rounds.items[i].padding_bytes, 0);
}

TEST(figures_of_the_programs_are_kept_and_bad_lines_counted)
{
    CLEANUP(fixture_done) struct fixture f;
    fixture_init(&f);
    set_command(&f, 0,
                "echo 'assay.metric ops 42 count' >&$ASSAY_METRICS_FD; "
                "echo 'assay.metric broken' >&$ASSAY_METRICS_FD");
    f.spec.rounds_min = f.spec.rounds_max = 2;
    run(&f);
    CHECK_INT(f.rounds.items[1].runs[0].metric_count, 1);
    CHECK_STR(f.rounds.items[1].runs[0].metrics[0].name, "ops");
    CHECK_NEAR(f.rounds.items[1].runs[0].metrics[0].value, 42, 1e-12);
    CHECK_INT(f.rounds.refused_metrics.line_count, 2);
    CHECK_CONTAINS(f.rounds.refused_metrics.items[0].line, "broken");
}
