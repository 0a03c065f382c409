/* SPDX-License-Identifier: MIT */
/* Which cells get more rounds: those with the widest intervals, each with what it is compared
 * with. */
#include "base/memory.h"
#include "numbers/random.h"
#include "session/session_internal.h"
#include "test.h"

enum { CELLS_MAX = 16 };

struct made {
    struct session s;
    struct session_options options;
    bool kept[CELLS_MAX];
    struct session_cell cells[CELLS_MAX];
    struct rng rng;
    struct error err;
};

static void make(struct made *m, const char *spec)
{
    *m = (struct made){0};
    rng_seed(&m->rng, 17);
    m->s.options = &m->options;
    m->s.kept = m->kept;
    m->s.cells = m->cells;
    if (spec_parse(&m->s.spec, "test.yaml", spec, strlen(spec), false, &m->err) < 0 ||
        matrix_make(&m->s.matrix, &m->s.spec, &m->err) < 0)
        test_fail(__FILE__, __LINE__, "%s", m->err.message);
    CHECK(m->s.matrix.count <= CELLS_MAX);
    for (size_t c = 0; c < m->s.matrix.count; c++)
        m->kept[c] = true;
    session_make_values(&m->s);
}

static void made_done(struct made *m)
{
    for (size_t c = 0; c < m->s.matrix.count; c++)
        free(m->cells[c].rounds);
    dataset_done(m->s.values);
    free(m->s.values);
    matrix_done(&m->s.matrix);
    spec_done(&m->s.spec);
}

static void fill(struct made *m, size_t cell, double level, double noise, uint32_t rounds)
{
    for (uint32_t r = 0; r < rounds; r++)
        session_note_value(&m->s, cell, r, level * exp(noise * rng_normal(&m->rng)));
}

/* The cells of the next round as a text of letters: "ac". */
static const char *choose(struct made *m)
{
    static char text[CELLS_MAX + 1];
    size_t cells[CELLS_MAX], count = session_choose_extra(&m->s, cells);
    for (size_t i = 0; i < count; i++)
        text[i] = (char)('a' + cells[i]);
    text[count] = '\0';
    return text;
}

#define THREE "name: t\ncommand: x\nfactors: {v: [a, b, c]}\nbaseline: {v: a}\nprecision: 2%\n"

TEST(the_widest_cell_goes_on_with_its_baseline)
{
    CLEANUP(made_done) struct made m;
    make(&m, THREE);
    fill(&m, 0, 100, 0.001, 20);
    fill(&m, 1, 100, 0.001, 20);
    fill(&m, 2, 100, 0.2, 20);
    CHECK_STR(choose(&m), "ac");
    CHECK(m.s.widest > 0.02);
    CHECK(m.cells[1].half_width < 0.02);
    CHECK(isnan(m.cells[0].half_width)); /* the baseline's own does not count */
}

TEST(nothing_goes_on_when_all_are_precise_enough)
{
    CLEANUP(made_done) struct made m;
    make(&m, THREE);
    for (size_t c = 0; c < 3; c++)
        fill(&m, c, 100, 0.001, 20);
    CHECK_STR(choose(&m), "");
    CHECK(m.s.widest <= 0.02);
    /* The option is asked before the spec. */
    m.options.precision = 1e-6;
    CHECK_STR(choose(&m), "abc");
}

TEST(without_a_limit_the_widest_half_goes_on)
{
    CLEANUP(made_done) struct made m;
    make(&m, THREE);
    fill(&m, 0, 100, 0.001, 20);
    fill(&m, 1, 100, 0.001, 20);
    fill(&m, 2, 100, 0.05, 20);
    m.options.no_precision = true;
    CHECK_STR(choose(&m), "ac");
}

TEST(one_value_says_nothing_yet)
{
    CLEANUP(made_done) struct made m;
    make(&m, THREE);
    for (size_t c = 0; c < 3; c++)
        fill(&m, c, 100, 0.001, 1);
    CHECK_STR(choose(&m), "abc");
    CHECK(isinf(m.s.widest));
}

TEST(values_that_never_vary_are_precise)
{
    CLEANUP(made_done) struct made m;
    make(&m, THREE);
    for (size_t c = 0; c < 3; c++)
        fill(&m, c, 100, 0, 10);
    CHECK_STR(choose(&m), "");
    CHECK_NEAR(m.s.widest, 0, 1e-12);
}

TEST(a_cell_without_a_baseline_stands_for_itself)
{
    CLEANUP(made_done) struct made m;
    make(&m, "name: t\ncommand: x\nfactors: {v: [a, b]}\nprecision: 2%\n");
    fill(&m, 0, 100, 0.001, 20);
    fill(&m, 1, 100, 0.2, 20);
    CHECK_STR(choose(&m), "b");
}

TEST(cells_that_are_not_run_are_not_chosen)
{
    CLEANUP(made_done) struct made m;
    make(&m, THREE);
    m.kept[0] = false;
    fill(&m, 1, 100, 0.2, 20);
    CHECK_STR(choose(&m), "b"); /* its baseline is not run: its own interval counts */
    CHECK(!session_cell_changed(&m.s, 1));
}

TEST(rounds_come_in_any_order)
{
    CLEANUP(made_done) struct made m;
    make(&m, THREE);
    static const uint32_t order[] = {5, 1, 9, 3};
    for (size_t i = 0; i < ARRAY_COUNT(order); i++)
        session_note_value(&m.s, 0, order[i], order[i]);
    CHECK_INT(m.cells[0].count, 4);
    for (size_t i = 1; i < 4; i++)
        CHECK(m.cells[0].rounds[i - 1] < m.cells[0].rounds[i]);
    CHECK(session_has_round(&m.cells[0], 9));
    CHECK(session_has_round(&m.cells[0], 1));
    CHECK(!session_has_round(&m.cells[0], 2));
    CHECK(!session_has_round(&m.cells[0], 10));
    CHECK(!session_has_round(&m.cells[1], 0));
    dataset_settle(m.s.values);
    struct dataset_column column = dataset_column(m.s.values, 0, 0);
    for (size_t i = 0; i < 4; i++)
        CHECK_NEAR(column.values[i], m.cells[0].rounds[i], 0);
}

TEST(a_change_is_told_from_noise)
{
    CLEANUP(made_done) struct made m;
    make(&m, THREE);
    fill(&m, 0, 100, 0.01, 20);
    fill(&m, 1, 110, 0.01, 20);
    fill(&m, 2, 100, 0.01, 20);
    CHECK(session_cell_changed(&m.s, 1));
    CHECK(!session_cell_changed(&m.s, 2));
    CHECK(!session_cell_changed(&m.s, 0)); /* not from itself */
}

TEST(the_sides_of_a_gate_go_on_together)
{
    CLEANUP(made_done) struct made m;
    make(&m, THREE);
    m.options.side_count = 3; /* base, control, new: the control must see what the change sees */
    fill(&m, 0, 100, 0.001, 20);
    fill(&m, 1, 100, 0.001, 20);
    fill(&m, 2, 100, 0.2, 20);
    CHECK_STR(choose(&m), "abc");
}
