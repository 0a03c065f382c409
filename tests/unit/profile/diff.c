/* SPDX-License-Identifier: MIT */
/* Functions of two programs matched and compared, on profiles made by hand. */
#include "profile/diff.h"
#include "base/memory.h"
#include "test.h"

#include <stdlib.h>

struct made {
    struct profile profile;
    struct profile_event event;
    struct function functions[32];
    size_t function_count;
};

static void made_init(struct made *m)
{
    *m = (struct made){.event = {.name = "cpu-clock", .is_time = true, .has_callers = true}};
    calls_init(&m->profile.calls);
    m->profile.path = "made.data";
    m->profile.events = &m->event;
    m->profile.event_count = 1;
}

static void made_done(struct made *m)
{
    calls_done(&m->profile.calls);
}

struct place {
    const char *dso, *file;
    uint32_t line;
    bool is_kernel;
};

static uint32_t add_function(struct made *m, const char *name, const char *linkage_name,
                             struct place place)
{
    struct calls *c = &m->profile.calls;
    struct function *f = &m->functions[m->function_count++];
    *f = (struct function){.name = name,
                           .linkage_name = linkage_name,
                           .declared_file = place.file,
                           .declared_line = place.line};
    ARRAY_PUSH(c->symbols, c->symbol_count, c->symbol_capacity) =
        (struct profile_symbol){.name = name,
                                .function = f,
                                .dso = names_add(&c->dsos, &c->arena, place.dso),
                                .is_kernel = place.is_kernel};
    return (uint32_t)c->symbol_count - 1;
}

/* A stack of one caller (or IDTABLE_NONE) and a running function. */
static void add_samples(struct made *m, uint32_t caller, uint32_t running, bool inlined,
                        uint64_t samples)
{
    struct calls *c = &m->profile.calls;
    uint32_t node = 0;
    if (caller != IDTABLE_NONE)
        node = calls_push(c, 0, calls_frame(c, caller, 0, false));
    node = calls_push(c, node, calls_frame(c, running, 0, inlined));
    calls_add(c, node, 0, 0, 0, samples, samples * 1000);
    m->event.samples += samples;
}

static struct diff compare(const struct made *a, const struct made *b)
{
    struct diff_run runs[2] = {{&a->profile, 0, 1}, {&b->profile, 0, 1}};
    struct diff_options o = {
        .sides = {{.runs = &runs[0], .run_count = 1}, {.runs = &runs[1], .run_count = 1}}};
    struct diff d;
    struct error err;
    CHECK_INT(diff_build(&d, &o, &err), 0);
    return d;
}

static const struct diff_row *row_of(const struct diff *d, const char *name)
{
    for (size_t i = 0; i < d->row_count; i++)
        if (str_eq(d->rows[i].name, name))
            return &d->rows[i];
    test_fail(__FILE__, __LINE__, "there is no row %s", name);
    abort();
}

static void check_name_of(bool is_kernel, const char *linkage_name, const char *expected)
{
    CLEANUP(strbuf_done) struct strbuf name = {0};
    bool is_alias;
    match_name(linkage_name, is_kernel, &name, &is_alias);
    CHECK_STR(strbuf_text(&name), expected);
}

static void check_name(const char *linkage_name, const char *expected)
{
    check_name_of(false, linkage_name, expected);
}

TEST(names_of_a_kernel_are_those_of_another)
{
    check_name_of(true, "__pi_memset", "memset");
    check_name_of(true, "__memset", "memset");
    check_name_of(true, "memset", "memset");
    check_name_of(true, "kmem_cache_alloc_noprof", "kmem_cache_alloc");
    check_name_of(true, "mas_store.isra.0", "mas_store");
    check_name_of(true, "__kmalloc", "__kmalloc");
    check_name_of(true, "_noprof", "_noprof");
    check_name_of(true, "__pi_", "__pi_");
}

TEST(names_lose_what_compilers_and_libraries_add)
{
    check_name("work", "work");
    check_name("work.isra.0", "work");
    check_name("work.constprop.0.cold", "work");
    check_name("__memmove_avx_unaligned_erms", "memcpy");
    check_name("__memcpy_evex_unaligned", "memcpy");
    check_name("__memset_avx2_unaligned", "memset");
    check_name("__strlen_sse2", "strlen");
    check_name("__GI___libc_write", "write");
    check_name("__GI___read", "read");
    check_name("__libc_malloc", "malloc");
    check_name("tc_malloc", "malloc");
    check_name("je_free", "free");
    check_name("tc_new", "_Znwm");
    check_name("tc_deletearray", "free");
    check_name("write@plt", "write");
    check_name("__my_own", "__my_own");
    check_name("_ZN3foo3barEv.part.0", "_ZN3foo3barEv");
    check_name("tc_something", "tc_something");
    check_name("_", "_");
}

TEST(variants_aliases_and_inlined_code_are_one_row)
{
    struct made a, b;
    made_init(&a);
    made_init(&b);
    uint32_t main_a = add_function(&a, "main", "main", (struct place){.dso = "prog-O0"});
    uint32_t main_b = add_function(&b, "main", "main", (struct place){.dso = "prog-O2"});
    add_samples(&a, main_a,
                add_function(&a, "helper", "helper", (struct place){"prog-O0", "p.c", 5, false}),
                false, 300);
    add_samples(&b, main_b,
                add_function(&b, "helper", "helper", (struct place){"prog-O2", "p.c", 5, false}),
                true, 100);
    add_samples(&a, main_a, add_function(&a, "sum", "sum", (struct place){.dso = "prog-O0"}), false,
                50);
    add_samples(&b, main_b,
                add_function(&b, "sum.isra.0", "sum.isra.0", (struct place){.dso = "prog-O2"}),
                false, 40);
    add_samples(&a, main_a,
                add_function(&a, "__libc_malloc", "__libc_malloc", (struct place){.dso = "libc"}),
                false, 20);
    add_samples(&b, main_b,
                add_function(&b, "tc_malloc", "tc_malloc", (struct place){.dso = "libtcmalloc"}),
                false, 10);
    struct diff d = compare(&a, &b);
    CHECK_INT(d.row_count, 4);
    const struct diff_row *helper = row_of(&d, "helper");
    CHECK_NEAR(helper->self.change, -200 * 1000, 1e-6);
    CHECK_INT(helper->match.kind, MATCH_SAME);
    CHECK(!helper->is_inlined[SIDE_A] && helper->is_inlined[SIDE_B]);
    CHECK_INT(row_of(&d, "sum")->match.kind, MATCH_VARIANT);
    CHECK_INT(row_of(&d, "malloc")->match.kind, MATCH_ALIAS);
    /* main never runs itself, but all runs in it. */
    CHECK_NEAR(row_of(&d, "main")->total.change, -220 * 1000, 1e-6);
    CHECK_NEAR(row_of(&d, "main")->self.a, 0, 0);
    CHECK_NEAR(d.whole.change, -220 * 1000, 1e-6);
    CHECK_NEAR(d.unattributed.change, 0, 1e-6);
    CHECK(str_eq(d.rows[0].name, "helper"));
    CHECK_INT(diff_row_of(&d, SIDE_B, 0, main_b), diff_row_of(&d, SIDE_A, 0, main_a));
    CHECK(!d.has_interval && d.why_no_interval);
    diff_done(&d);
    made_done(&a);
    made_done(&b);
}

TEST(static_functions_of_one_name_stay_apart)
{
    struct made sides[2];
    for (int i = 0; i < 2; i++) {
        struct made *m = &sides[i];
        made_init(m);
        uint32_t first =
            add_function(m, "init", "init", (struct place){"prog", "/src/one.c", 10, false});
        uint32_t second =
            add_function(m, "init", "init", (struct place){"prog", "/src/two.c", 90, false});
        add_samples(m, IDTABLE_NONE, first, false, i ? 100 : 10);
        add_samples(m, IDTABLE_NONE, second, false, 500);
    }
    struct diff d = compare(&sides[0], &sides[1]);
    CHECK_INT(d.row_count, 2);
    CHECK_NEAR(d.rows[0].self.change, 90 * 1000, 1e-6);
    CHECK_NEAR(d.rows[1].self.change, 0, 1e-6);
    diff_done(&d);
    made_done(&sides[0]);
    made_done(&sides[1]);
}

TEST(a_new_name_at_the_same_place_is_the_same_function)
{
    struct made a, b;
    made_init(&a);
    made_init(&b);
    add_samples(&a, IDTABLE_NONE,
                add_function(&a, "spin", "spin", (struct place){"p", "/old/s.c", 40, false}), false,
                100);
    add_samples(&b, IDTABLE_NONE,
                add_function(&b, "turn", "turn", (struct place){"p", "/new/s.c", 40, false}), false,
                130);
    add_samples(&a, IDTABLE_NONE, add_function(&a, "C::f", "_ZN1C1fEi", (struct place){.dso = "p"}),
                false, 100);
    add_samples(&b, IDTABLE_NONE, add_function(&b, "C::f", "_ZN1C1fEl", (struct place){.dso = "p"}),
                false, 90);
    add_samples(&b, IDTABLE_NONE,
                add_function(&b, "fresh", "fresh", (struct place){"p", "/new/s.c", 70, false}),
                false, 5);
    struct diff d = compare(&a, &b);
    CHECK_INT(d.row_count, 3);
    CHECK_INT(row_of(&d, "spin")->match.kind, MATCH_RENAMED);
    CHECK_NEAR(row_of(&d, "spin")->self.change, 30 * 1000, 1e-6);
    CHECK_INT(row_of(&d, "C::f")->match.kind, MATCH_RENAMED);
    CHECK_INT(row_of(&d, "fresh")->match.kind, MATCH_ONLY_B);
    diff_done(&d);
    made_done(&a);
    made_done(&b);
}

TEST(the_kernel_and_the_program_are_not_mixed_up)
{
    struct made sides[2];
    for (int i = 0; i < 2; i++) {
        made_init(&sides[i]);
        add_samples(&sides[i], IDTABLE_NONE,
                    add_function(&sides[i], "schedule", "schedule", (struct place){.dso = "p"}),
                    false, 10);
        add_samples(&sides[i], IDTABLE_NONE,
                    add_function(&sides[i], "schedule", "schedule",
                                 (struct place){.dso = "[kernel]", .is_kernel = true}),
                    false, i ? 20 : 10);
    }
    struct diff d = compare(&sides[0], &sides[1]);
    CHECK_INT(d.row_count, 2);
    CHECK(d.rows[0].match.is_kernel);
    diff_done(&d);
    made_done(&sides[0]);
    made_done(&sides[1]);
}

TEST(samples_without_a_name_are_unattributed)
{
    struct made sides[2];
    for (int i = 0; i < 2; i++) {
        made_init(&sides[i]);
        struct calls *c = &sides[i].profile.calls;
        add_samples(&sides[i], IDTABLE_NONE,
                    add_function(&sides[i], "f", "f", (struct place){.dso = "p"}), false, 10);
        ARRAY_PUSH(c->symbols, c->symbol_count, c->symbol_capacity) =
            (struct profile_symbol){.address = 0x1234};
        add_samples(&sides[i], IDTABLE_NONE, (uint32_t)c->symbol_count - 1, false, i ? 30 : 5);
    }
    struct diff d = compare(&sides[0], &sides[1]);
    CHECK_INT(d.row_count, 1);
    CHECK_NEAR(d.unattributed.change, 25 * 1000, 1e-6);
    CHECK_NEAR(d.unattributed.share, 1, 1e-9);
    diff_done(&d);
    made_done(&sides[0]);
    made_done(&sides[1]);
}

TEST(an_empty_profile_is_refused)
{
    struct made a, b;
    made_init(&a);
    made_init(&b);
    add_samples(&a, IDTABLE_NONE, add_function(&a, "f", "f", (struct place){.dso = "p"}), false, 1);
    struct diff_run runs[2] = {{&a.profile, 0, 1}, {&b.profile, 0, 1}};
    struct diff_options o = {
        .sides = {{.runs = &runs[0], .run_count = 1}, {.runs = &runs[1], .run_count = 1}}};
    struct diff d;
    struct error err;
    CHECK(diff_build(&d, &o, &err) < 0);
    CHECK_CONTAINS(err.message, "no samples of cpu-clock");
    diff_done(&d);
    runs[1] = (struct diff_run){&a.profile, 0, 0};
    CHECK(diff_build(&d, &o, &err) < 0);
    CHECK_CONTAINS(err.message, "0 units of work");
    diff_done(&d);
    made_done(&a);
    made_done(&b);
}
