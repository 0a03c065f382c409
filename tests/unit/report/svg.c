/* SPDX-License-Identifier: MIT */
/* Scales, ticks, escaping and whole plots as SVG. */
#include "base/memory.h"
#include "report/draw/svg_frame.h"
#include "test.h"

#include <stdio.h>

#define EVIL "</script><img src=x onerror=\"evil('&')\">\x1b[31m\x01\xff"

static const char *markup(struct strbuf *out, const char *text)
{
    strbuf_clear(out);
    strbuf_put_markup(out, text);
    return strbuf_text(out);
}

TEST(markup_is_inert)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    CHECK_STR(markup(&out, "a<b>&\"'c"), "a&lt;b&gt;&amp;&quot;&#39;c");
    CHECK_STR(markup(&out, "größer ▲"), "größer ▲");
    const char *evil = markup(&out, EVIL);
    CHECK(!strpbrk(evil, "<>\"'\x1b\x01"));
    CHECK(strstr(evil, "&lt;/script&gt;") != NULL);
    strbuf_clear(&out);
    strbuf_put_content_n(&out, "\"a\" < b", 7);
    CHECK_STR(strbuf_text(&out), "\"a\" &lt; b");
    strbuf_clear(&out);
    strbuf_put_markup_n(&out, "abc", 2);
    CHECK_STR(strbuf_text(&out), "ab");
}

static const char *number(struct strbuf *out, double value)
{
    strbuf_clear(out);
    svg_put_number(out, value);
    return strbuf_text(out);
}

TEST(coordinates_are_short)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    CHECK_STR(number(&out, 3), "3");
    CHECK_STR(number(&out, 3.14), "3.1");
    CHECK_STR(number(&out, -0.01), "0");
    CHECK_STR(number(&out, NAN), "0");
    CHECK_STR(number(&out, INFINITY), "0");
    CHECK_STR(number(&out, 1234.96), "1235");
}

TEST(linear_ticks_are_round_and_within)
{
    double ticks[SVG_TICKS_MAX];
    struct svg_scale s = {.low = 0, .high = 97, .from = 0, .to = 100};
    size_t count = svg_ticks(&s, 5, ticks);
    CHECK_INT(count, 5);
    for (size_t i = 0; i < count; i++)
        CHECK_NEAR(ticks[i], 20.0 * (double)i, 1e-9);
    s = (struct svg_scale){.low = -3, .high = 3};
    count = svg_ticks(&s, 5, ticks);
    CHECK(count >= 3);
    for (size_t i = 0; i < count; i++)
        CHECK(ticks[i] >= -3 && ticks[i] <= 3);
    s = (struct svg_scale){.low = 5, .high = 5};
    CHECK_INT(svg_ticks(&s, 5, ticks), 0);
    s = (struct svg_scale){.low = 0, .high = INFINITY};
    CHECK(svg_ticks(&s, 5, ticks) <= SVG_TICKS_MAX);
}

TEST(log_ticks_are_powers)
{
    double ticks[SVG_TICKS_MAX];
    struct svg_scale s = {.low = 1, .high = 1e6, .log = true};
    size_t count = svg_ticks(&s, 7, ticks);
    CHECK(count >= 4);
    for (size_t i = 0; i < count; i++)
        CHECK_NEAR(log10(ticks[i]), round(log10(ticks[i])), 1e-9);
    s = (struct svg_scale){.low = 1, .high = 30, .log = true};
    count = svg_ticks(&s, 7, ticks);
    CHECK_INT(count, 5); /* 1 2 5 10 20 */
    CHECK_NEAR(ticks[2], 5, 1e-9);
    /* A range without a round value on the logarithmic scale has linear ones. */
    s = (struct svg_scale){.low = 11, .high = 19, .log = true};
    CHECK(svg_ticks(&s, 5, ticks) >= 2);
    /* 300 decades have room, too. */
    s = (struct svg_scale){.low = 1e-150, .high = 1e150, .log = true};
    count = svg_ticks(&s, 7, ticks);
    CHECK(count >= 2 && count <= SVG_TICKS_MAX);
}

TEST(places_on_the_axes)
{
    struct svg_scale s = {.low = 1, .high = 100, .from = 0, .to = 200, .log = true};
    CHECK_NEAR(svg_place(&s, 10), 100, 1e-9);
    s.log = false;
    CHECK_NEAR(svg_place(&s, 50.5), 100, 1e-9);
    s = (struct svg_scale){.low = 4, .high = 4, .from = 0, .to = 200};
    CHECK_NEAR(svg_place(&s, 4), 100, 1e-9); /* one value stands in the middle */
}

TEST(scales_are_widened_to_round_values)
{
    struct svg_scale s = {.low = 3.2, .high = 9.7};
    svg_scale_round(&s, false);
    CHECK(s.low <= 3.2 && s.high >= 9.7);
    s = (struct svg_scale){.low = 3.2, .high = 9.7};
    svg_scale_round(&s, true);
    CHECK_NEAR(s.low, 0, 1e-12);
    s = (struct svg_scale){.low = 0, .high = 0};
    svg_scale_round(&s, false);
    CHECK(s.high > s.low);
    s = (struct svg_scale){.low = 8, .high = 8, .log = true};
    svg_scale_round(&s, false);
    CHECK(s.low < 8 && s.high > 8);
}

/* Tags that are opened are closed, in order; what is in quotes is not looked at. */
static bool is_balanced(const char *text)
{
    char stack[64][16];
    size_t depth = 0;
    for (const char *at = text; (at = strchr(at, '<')); at++) {
        size_t length = strcspn(at + 1, " />\n");
        const char *end = at;
        bool quoted = false;
        for (; *end && (quoted || *end != '>'); end++)
            quoted ^= *end == '"';
        if (!*end)
            return false;
        if (at[1] == '/') {
            length = strcspn(at + 2, ">");
            if (!depth || strncmp(stack[depth - 1], at + 2, length) != 0 ||
                stack[depth - 1][length])
                return false;
            depth--;
        } else if (end[-1] != '/') {
            if (depth == 64 || length >= 16)
                return false;
            snprintf(stack[depth++], 16, "%.*s", (int)length, at + 1);
        }
    }
    return depth == 0;
}

static void draw(struct plot *p, bool alone, struct strbuf *out)
{
    strbuf_clear(out);
    plot_put_svg(p, alone ? PLOT_ALONE : PLOT_PAGE, out);
    CHECK(is_balanced(strbuf_text(out)));
    CHECK(!strstr(strbuf_text(out), "nan") && !strstr(strbuf_text(out), "inf"));
    CHECK(!strstr(strbuf_text(out), "<img"));
    CHECK(!strchr(strbuf_text(out), '\x1b') && !strchr(strbuf_text(out), '\x01'));
}

static struct plot make_plot(bool log)
{
    struct plot p = {.kind = "curve", .id = "curve", .title = EVIL, .description = EVIL};
    p.x = (struct plot_axis){.label = EVIL, .unit = "bytes", .log = log, .at_values = true};
    p.y = (struct plot_axis){.label = EVIL, .unit = "ns", .log = log};
    return p;
}

TEST(hostile_names_are_text_in_every_part_of_a_plot)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    const unsigned styles[] = {PLOT_LINE | PLOT_MARKS | PLOT_BARS, PLOT_LINE | PLOT_BAND,
                               PLOT_STEPS, PLOT_DOTS, PLOT_GUIDE | PLOT_LINE};
    const char *words[] = {EVIL, "b", EVIL};
    for (int log = 0; log < 2; log++)
        for (int categories = 0; categories < 2; categories++) {
            struct plot p = make_plot(log);
            if (categories)
                p.x =
                    (struct plot_axis){.label = EVIL, .unit = "", .words = words, .word_count = 3};
            for (size_t i = 0; i < ARRAY_COUNT(styles); i++) {
                struct plot_series *s = plot_add_series(&p, EVIL, styles[i], i);
                for (int k = 1; k < 4; k++)
                    plot_add_point(s, k, k * 10, k * 9, i % 2 ? (double)NAN : k * 11.0);
            }
            plot_add_mark(&p, true, 2, 1.5, 2.5, EVIL);
            plot_add_mark(&p, false, 12, NAN, NAN, EVIL);
            draw(&p, false, &out);
            CHECK(strstr(strbuf_text(&out), "&lt;/script&gt;") != NULL);
            draw(&p, true, &out);
            CHECK(strstr(strbuf_text(&out), "xmlns") != NULL);
            plot_done(&p);
        }
}

TEST(values_that_no_axis_can_show)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    struct plot p = make_plot(true);
    struct plot_series *s = plot_add_series(&p, "a", PLOT_LINE | PLOT_MARKS | PLOT_BAND, 0);
    plot_add_point(s, NAN, 1, 1, 1); /* left out */
    plot_add_point(s, 1, INFINITY, 1, 1);
    CHECK_INT(s->count, 0);
    CHECK(!plot_has_points(&p));
    draw(&p, false, &out);
    plot_add_point(s, 0, -5, -6, -4); /* no logarithm: the axes become linear */
    plot_add_point(s, 10, 1e300, -1e300, 1e308);
    CHECK(plot_has_points(&p));
    draw(&p, false, &out);
    plot_done(&p);
}

TEST(dots_are_relative_and_end_where_they_should)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    struct plot p = make_plot(false);
    p.title = p.description = p.x.label = p.y.label = "x";
    struct plot_series *s = plot_add_series(&p, NULL, PLOT_DOTS, 0);
    plot_add_point(s, 0, 0, NAN, NAN);
    plot_add_point(s, 10, 100, NAN, NAN);
    plot_add_point(s, 0, 0, NAN, NAN);
    draw(&p, false, &out);
    int x, y, dx, dy, bx, by;
    const char *path = strstr(strbuf_text(&out), "<path class=\"d s0\" d=\"m");
    CHECK(path != NULL);
    if (path)
        CHECK_INT(sscanf(path + 22, "m%d %dh0m%d%dh0m%d %dh0", &x, &y, &dx, &dy, &bx, &by), 6);
    CHECK(path && dx > 0 && dy < 0 && dx == -bx && dy == -by);
    plot_done(&p);
}

/* The labels of a plot: the texts of all its <text> elements, joined by "|". */
static const char *labels(struct plot *p, struct strbuf *out, struct strbuf *ret)
{
    draw(p, false, out);
    strbuf_clear(ret);
    for (const char *at = strbuf_text(out); (at = strstr(at, "<text ")); at++) {
        const char *start = strchr(at, '>') + 1;
        strbuf_printf(ret, "|%.*s", (int)strcspn(start, "<"), start);
    }
    strbuf_puts(ret, "|");
    return strbuf_text(ret);
}

static struct plot plain_plot(void)
{
    struct plot p = {.kind = "curve", .id = "curve", .title = "t", .description = "d"};
    p.x = (struct plot_axis){.label = "x", .unit = "", .at_values = true};
    p.y = (struct plot_axis){.label = "y", .unit = ""};
    return p;
}

TEST(ticks_have_short_texts)
{
    CLEANUP(strbuf_done) struct strbuf out = {0}, text = {0};
    struct plot p = plain_plot();
    struct plot_series *s = plot_add_series(&p, NULL, PLOT_LINE, 0);
    plot_add_point(s, 500, 1, NAN, NAN);
    plot_add_point(s, 64000, 2, NAN, NAN);
    plot_add_point(s, 128000, 2, NAN, NAN);
    CHECK_CONTAINS(labels(&p, &out, &text), "|500|64k|128k|");
    p.x.unit = "bytes";
    CHECK_CONTAINS(labels(&p, &out, &text), "|125 KiB|");
    p.y.unit = "ns";
    CHECK_CONTAINS(labels(&p, &out, &text), "|1 ns|");
    plot_done(&p);
    /* The largest prefix does not turn into digits of its own. */
    p = plain_plot();
    s = plot_add_series(&p, NULL, PLOT_LINE, 0);
    plot_add_point(s, 1e15, 1, NAN, NAN);
    plot_add_point(s, 4e18, 2, NAN, NAN);
    CHECK_CONTAINS(labels(&p, &out, &text), "|1P|4000P|");
    plot_done(&p);
}

TEST(ticks_that_are_close_get_more_digits)
{
    CLEANUP(strbuf_done) struct strbuf out = {0}, text = {0};
    struct plot p = plain_plot();
    struct plot_series *s = plot_add_series(&p, NULL, PLOT_LINE, 0);
    plot_add_point(s, 1, 1.00001, NAN, NAN);
    plot_add_point(s, 2, 1.00003, NAN, NAN);
    CHECK_CONTAINS(labels(&p, &out, &text), "|1.00002|");
    plot_done(&p);
}

TEST(more_values_than_ticks_have_round_ticks)
{
    CLEANUP(strbuf_done) struct strbuf out = {0}, text = {0};
    struct plot p = plain_plot();
    struct plot_series *s = plot_add_series(&p, NULL, PLOT_LINE, 0);
    for (int i = 0; i < 60; i++)
        plot_add_point(s, i + 0.37, i, NAN, NAN);
    CHECK_CONTAINS(labels(&p, &out, &text), "|10|20|30|40|50|");
    plot_done(&p);
}

TEST(one_point_and_no_point_can_be_drawn)
{
    CLEANUP(strbuf_done) struct strbuf out = {0}, text = {0};
    struct plot p = plain_plot();
    struct plot_series *s = plot_add_series(&p, "one", PLOT_LINE | PLOT_MARKS | PLOT_BAND, 0);
    CHECK_CONTAINS(labels(&p, &out, &text), "|x|"); /* a series without points has no legend */
    CHECK(!strstr(strbuf_text(&text), "one"));
    plot_add_point(s, 3, 7, 6, 8);
    CHECK_CONTAINS(labels(&p, &out, &text), "|one|");
    CHECK_CONTAINS(strbuf_text(&text), "|7|");
    CHECK(!strstr(strbuf_text(&out), "class=\"b s0\"")); /* no band of one point */
    plot_done(&p);
}

TEST(words_are_cut_between_characters)
{
    CLEANUP(strbuf_done) struct strbuf out = {0}, text = {0};
    struct plot p = plain_plot();
    const char *words[12];
    for (size_t i = 0; i < ARRAY_COUNT(words); i++)
        words[i] = i == 0 ? "größtmögliche" : i == 5 ? "" : "w";
    p.x = (struct plot_axis){.label = "x", .unit = "", .words = words, .word_count = 12};
    struct plot_series *s = plot_add_series(&p, NULL, PLOT_MARKS, 0);
    plot_add_point(s, 0, 1, NAN, NAN);
    CHECK_CONTAINS(labels(&p, &out, &text), "|grö…che|"); /* twice its room, on two lines */
    plot_done(&p);
}

TEST(long_names_keep_both_ends)
{
    static const struct {
        const char *word, *cut;
        size_t fits;
    } names[] = {{"./program --mode=fast", "./prog…de=fast", 14},
                 {"./program --mode=slow", "./prog…de=slow", 14},
                 {"short", "short", 5},
                 {"größtmögliche", "g…he", 2},
                 {"ääääääääää", "ää…äää", 6}};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        CLEANUP(strbuf_done) struct strbuf out = {0};
        svg_put_word(&out, names[i].word, names[i].fits);
        CHECK_STR(strbuf_text(&out), names[i].cut);
    }
}

TEST(ticks_have_no_digits_that_say_nothing)
{
    static const struct {
        double value;
        const char *unit, *text;
    } ticks[] = {{1e7, "ns", "10 ms"}, {5e6, "ns", "5 ms"},      {2.5e6, "ns", "2.5 ms"},
                 {0, "ns", "0 ns"},    {1024, "bytes", "1 KiB"}, {100, "", "100"}};
    for (size_t i = 0; i < ARRAY_COUNT(ticks); i++) {
        CLEANUP(strbuf_done) struct strbuf out = {0};
        struct plot_axis axis = {.unit = ticks[i].unit};
        svg_tick_text(&axis, ticks[i].value, 4, &out);
        CHECK_STR(strbuf_text(&out), ticks[i].text);
    }
}

TEST(words_that_are_too_wide_stand_on_two_lines)
{
    CLEANUP(strbuf_done) struct strbuf out = {0}, text = {0};
    struct plot p = plain_plot();
    const char *words[] = {"send8", "copy-send", "sendmsg", "zerocopy-fields", "batch-send"};
    p.x = (struct plot_axis){.label = "x", .unit = "", .words = words, .word_count = 5};
    struct plot_series *s = plot_add_series(&p, NULL, PLOT_MARKS, 0);
    plot_add_point(s, 0, 1, NAN, NAN);
    CHECK_CONTAINS(labels(&p, &out, &text), "|send8|copy-send|sendmsg|zerocopy-fields|batch-send|");
    plot_done(&p);
}

TEST(groups_of_words_have_a_row_of_their_own)
{
    CLEANUP(strbuf_done) struct strbuf out = {0}, text = {0};
    struct plot p = plain_plot();
    const char *words[] = {"1", "20", "300", "1", "20", "300"};
    const char *outer[] = {"good", "", "", "a-longer-name", "", ""};
    p.x = (struct plot_axis){
        .label = "x", .unit = "", .words = words, .outer = outer, .word_count = 6};
    struct plot_series *s = plot_add_series(&p, NULL, PLOT_MARKS, 0);
    plot_add_point(s, 0, 1, NAN, NAN);
    CHECK_CONTAINS(labels(&p, &out, &text), "|1|20|300|1|20|300|good|a-longer-name|x|");
    plot_done(&p);
}

TEST(intervals_stand_in_the_marks_title)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    struct plot p = plain_plot();
    p.y.unit = "ns";
    struct plot_series *s = plot_add_series(&p, NULL, PLOT_MARKS | PLOT_BARS, 1);
    plot_add_point(s, 1, 2e6, 1e6, 3e6);
    plot_add_point(s, 2, 2e6, NAN, 3e6);
    draw(&p, false, &out);
    CHECK_CONTAINS(strbuf_text(&out), ": 2.000 ms [1.000 ms, 3.000 ms]</title>");
    CHECK_CONTAINS(strbuf_text(&out), ": 2.000 ms</title>");
    plot_done(&p);
}

TEST(an_axis_that_cannot_be_logarithmic_is_linear)
{
    CLEANUP(strbuf_done) struct strbuf out = {0}, text = {0};
    struct plot p = plain_plot();
    p.y.log = true;
    struct plot_series *s = plot_add_series(&p, NULL, PLOT_LINE, 0);
    plot_add_point(s, 1, 0, NAN, NAN);
    plot_add_point(s, 2, 1000, NAN, NAN);
    CHECK_CONTAINS(labels(&p, &out, &text), "|0|200|400|600|800|1000|");
    plot_done(&p);
}
