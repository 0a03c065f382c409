/* SPDX-License-Identifier: MIT */
/* Figures from marks, and verdicts from evidence. */
#include "prove.h"
#include "report.h"
#include "test.h"

static void settings_of(struct settings *s, const char *variant)
{
    struct error err = {0};
    settings_defaults(s);
    s->variant_name = variant;
    s->size = 1024;
    CHECK_INT(settings_check(s, &err), 0);
}

TEST(figures_come_from_between_the_marks)
{
    struct settings s;
    struct run_result r = {0};
    struct figures f;
    settings_of(&s, "send");
    r.receive.marks[0] = (struct snapshot){.t_ns = 1000, .bytes = 500, .messages = 1};
    r.receive.marks[1] = (struct snapshot){
        .t_ns = 1000 + 2000000000ULL, .bytes = 500 + 2048000, .messages = 2001, .cpu_ns = 4000000};
    r.send.marks[1] =
        (struct snapshot){.cpu_ns = 2000000, .bytes = 2048000, .messages = 2000, .calls = 16000};
    figures_from(&s, &r, &f);
    CHECK_NEAR(figures_get(&f, "throughput"), 0.008192, 1e-9);
    CHECK_NEAR(figures_get(&f, "messages_per_second"), 1000, 1e-9);
    CHECK_NEAR(figures_get(&f, "send_cpu_ns_per_kb"), 1000, 1e-6);
    CHECK_NEAR(figures_get(&f, "receive_cpu_ns_per_kb"), 2000, 1e-6);
    CHECK_NEAR(figures_get(&f, "cpu_ns_per_kb"), 3000, 1e-6);
    CHECK_NEAR(figures_get(&f, "send_calls_per_message"), 8, 1e-9);
    CHECK(isnan(figures_get(&f, "receive_copied_per_byte"))); /* was not counted */
    CHECK(isnan(figures_get(&f, "zerocopy_granted")));
    settings_done(&s);
}

TEST(traced_calls_are_preferred)
{
    struct settings s;
    struct run_result r = {0};
    struct figures f;
    settings_of(&s, "send");
    r.receive.marks[1] = (struct snapshot){.t_ns = 1000000000, .bytes = 1024, .messages = 1};
    r.send.marks[1] = (struct snapshot){.messages = 10, .calls = 10, .bytes = 10240};
    r.send.marks[2] = (struct snapshot){.messages = 20, .traced_calls = 5};
    r.send.marks[3] = (struct snapshot){.messages = 30, .traced_calls = 25};
    r.send.calls_traced = 1;
    figures_from(&s, &r, &f);
    CHECK_NEAR(figures_get(&f, "send_calls_per_message"), 2, 1e-9);
    settings_done(&s);
}

static struct proof judged(const char *variant, enum finding a, enum finding b)
{
    struct proof p = {.variant = variant_find(variant), .verdict = UNPROVEN};
    p.ways[WAY_ALIASING].finding = a;
    p.ways[WAY_PROFILE].finding = b;
    prove_judge(&p);
    return p;
}

TEST(verdicts)
{
    CHECK_INT(judged("send", FOUND_COPY, FOUND_NOTHING).verdict, PROVEN);
    CHECK_INT(judged("send", FOUND_NOTHING, FOUND_NOTHING).verdict, UNPROVEN);
    CHECK_INT(judged("send", FOUND_NO_COPY, FOUND_NOTHING).verdict, CONTRADICTED);
    CHECK_INT(judged("send", FOUND_COPY, FOUND_NO_COPY).verdict, CONTRADICTED);
    CHECK_INT(judged("zerocopy", FOUND_COPY, FOUND_COPY).verdict, REFUSED);
    CHECK_INT(judged("zerocopy", FOUND_NO_COPY, FOUND_NOTHING).verdict, PROVEN);
    CHECK_INT(judged("trunc", FOUND_NO_COPY, FOUND_NOTHING).verdict, PROVEN);
    CHECK_INT(judged("trunc", FOUND_COPY, FOUND_NOTHING).verdict, CONTRADICTED);
}

/* A variant that joins must be whole. */
TEST(every_variant_is_whole)
{
    for (size_t i = 0; variants[i]; i++) {
        const struct variant *v = variants[i];
        CHECK(v->name && v->summary && v->run && v->transports);
        CHECK(v->claim.words != NULL);
        CHECK(variant_find(v->name) == v); /* no name twice */
        CHECK(!v->partner || variant_find(v->partner));
    }
}
