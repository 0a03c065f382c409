/* SPDX-License-Identifier: MIT */
/* Pages and flame graphs: what is written is inert, whole, and read back as it was. */
#include "report/page/page.h"
#include "base/memory.h"
#include "report/html/html.h"
#include "report/page/columns.h"
#include "report/text/stat.h"
#include "test.h"

#include <stdio.h>

#define EVIL "</script><img src=x onerror=\"evil('&')\">\x1b[31m\x01"

/* main -> one, two; two has so many samples on this side. */
static void make_flame(struct flame *f, const char *label, const char *leaf, uint64_t samples)
{
    *f = (struct flame){.label = memory_strdup(label),
                        .event = memory_strdup("cpu-clock"),
                        .notes = memory_strdup(""),
                        .is_time = true};
    const char *names[] = {"prog", "main", "one", leaf};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        ARRAY_PUSH(f->names, f->name_count, f->name_capacity) =
            (struct flame_name){.text = memory_strdup(names[i]),
                                .dso = memory_strdup(i ? "/bin/" EVIL : ""),
                                .flags = i ? 0 : FLAME_COMM};
    const uint64_t own[] = {0, 10, 400, samples};
    const uint32_t depths[] = {0, 1, 2, 2};
    for (uint32_t i = 0; i < 4; i++)
        ARRAY_PUSH(f->nodes, f->node_count, f->node_capacity) = (struct flame_node){
            .depth = depths[i], .name = i, .self_samples = own[i], .self_weight = own[i] * 1000};
    flame_sum(f);
}

static void make_page(struct page *page, uint64_t samples, const char *leaf)
{
    struct embedded *e = &page->data;
    for (int s = 0; s < 2; s++)
        make_flame(&ARRAY_PUSH(e->flames, e->flame_count, e->flame_capacity), s ? EVIL : "base",
                   leaf, s ? samples : 400);
    struct error err = {0};
    CHECK_INT(page_prepare(page, &err), 0);
}

static const struct flame_name *name_of(const struct flame *f, const char *text)
{
    for (size_t i = 0; i < f->name_count; i++)
        if (strcmp(f->names[i].text, text) == 0)
            return &f->names[i];
    return NULL;
}

TEST(frames_are_coloured_by_the_rule_of_rows)
{
    CLEANUP(page_done) struct page more = {0}, same = {0}, less = {0};
    make_page(&more, 800, "two");
    CHECK(name_of(&more.data.flames[1], "two")->flags & FLAME_MORE);
    CHECK(name_of(&more.data.flames[0], "two")->flags & FLAME_MORE);
    /* As much as before, though a smaller share of the whole. */
    CHECK_INT(name_of(&more.data.flames[1], "one")->flags & (FLAME_MORE | FLAME_LESS), 0);
    make_page(&same, 410, "two");
    CHECK_INT(name_of(&same.data.flames[1], "two")->flags & (FLAME_MORE | FLAME_LESS), 0);
    make_page(&less, 100, "two");
    CHECK(name_of(&less.data.flames[0], "two")->flags & FLAME_LESS);
    CLEANUP(strbuf_done) struct strbuf out = {0};
    flame_pair_put_svg(&more.pair, "flame-diff", false, &out);
    CHECK(strstr(strbuf_text(&out), "+ two") != NULL);
    CHECK(strstr(strbuf_text(&out), "− ") == NULL);
}

TEST(functions_of_two_names_are_one)
{
    CLEANUP(page_done) struct page page = {0};
    struct embedded *e = &page.data;
    make_flame(&ARRAY_PUSH(e->flames, e->flame_count, e->flame_capacity), "base", "malloc", 400);
    make_flame(&ARRAY_PUSH(e->flames, e->flame_count, e->flame_capacity), "new", "tc_malloc", 400);
    e->flames[1].names[3].known_as = memory_strdup("malloc");
    struct error err = {0};
    CHECK_INT(page_prepare(&page, &err), 0);
    CHECK_INT(page.pair.node_count, 4); /* no path of its own for the other name */
}

TEST(hostile_names_are_text)
{
    CLEANUP(page_done) struct page page = {0};
    CLEANUP(strbuf_done) struct strbuf out = {0};
    make_page(&page, 800, EVIL);
    html_put_page(&out, &page);
    const char *text = strbuf_text(&out);
    CHECK(!strstr(text, "<img") && !strchr(text, '\x1b') && !strchr(text, '\x01'));
    size_t ends = 0;
    for (const char *at = text; (at = strstr(at, "</script>")); at++)
        ends++;
    CHECK_INT(ends, 2);
    CHECK(strstr(text, "&lt;/script&gt;") != NULL);
}

TEST(a_page_is_read_back_as_it_was)
{
    CLEANUP(page_done) struct page page = {0}, again = {0};
    CLEANUP(strbuf_done) struct strbuf out = {0}, first = {0}, second = {0};
    struct error err = {0};
    make_page(&page, 800, EVIL);
    struct embedded *e = &page.data;
    e->flames[1].names[2].known_as = memory_strdup("uno");
    struct embedded_history *h = &ARRAY_PUSH(e->histories, e->history_count, e->history_capacity);
    *h = (struct embedded_history){.label = memory_strdup("cell"),
                                   .metric = memory_strdup("wall"),
                                   .unit = memory_strdup("ns"),
                                   .medians = memory_zalloc(2, sizeof(double)),
                                   .lows = memory_zalloc(2, sizeof(double)),
                                   .highs = memory_zalloc(2, sizeof(double)),
                                   .experiments = memory_zalloc(2, sizeof(int64_t)),
                                   .commits = memory_zalloc(2, sizeof(char *)),
                                   .count = 2};
    h->medians[0] = 1.5;
    h->medians[1] = 2.5;
    h->lows[0] = h->highs[1] = NAN;
    h->commits[0] = memory_strdup("abc");
    h->commits[1] = memory_strdup(EVIL);
    static const char explained[] =
        "{\"format\":\"assay-explain-1\",\"explanations\":[{\"base\":\"a\",\"new\":\"b\","
        "\"cell\":\"\",\"per\":\"op\",\"profiled\":true,\"words\":\"whole\",\"reasons\":[{\"kind\":"
        "\"function\",\"name\":\"</script>\",\"words\":\"</script> +3 ns\",\"evidence\":\"x\\ny\","
        "\"cost\":{\"half_width\":1,\"significant\":true,\"share\":0.7}}]}]}";
    int r = explanations_read(&e->explanations, explained, strlen(explained), &err);
    html_put_page(&out, &page);
    if (r < 0 || embedded_read(&again.data, out.data, out.length, "page", &err) < 0) {
        test_skip("assay was built without jansson");
        return;
    }
    embedded_put_json(&first, &page.data, NULL);
    embedded_put_json(&second, &again.data, NULL);
    CHECK_STR(strbuf_text(&second), strbuf_text(&first));
    CHECK_INT(again.data.explanations.count, 1);
    CHECK(again.data.explanations.items[0].reasons[0].is_sure);
    CHECK(strstr(strbuf_text(&out), "<b>&lt;/script&gt;</b> +3 ns<br><small>x</small>") != NULL);
    CHECK(isnan(again.data.histories[0].lows[0]));
}

TEST(damaged_pages_are_refused)
{
    CLEANUP(page_done) struct page page = {0};
    CLEANUP(strbuf_done) struct strbuf out = {0};
    struct error err = {0};
    make_page(&page, 800, "two");
    html_put_page(&out, &page);
    const char *element = strstr(strbuf_text(&out), "id=\"assay-data\"");
    CHECK(element != NULL);
    size_t start = (size_t)(element - out.data);
    for (size_t cut = start; cut < start + 400 && cut < out.length; cut += 7) {
        CLEANUP(embedded_done) struct embedded e = {0};
        CHECK(embedded_read(&e, out.data, cut, "cut.html", &err) < 0);
        CHECK(strstr(err.message, "cut.html") != NULL);
    }
}

TEST(columns_are_read_as_they_were_written)
{
    const uint64_t values[] = {0, 1, 57, 58, 90, 91, 8280, 8281, 123456789012345, INT64_MAX};
    for (size_t count = 0; count <= ARRAY_COUNT(values); count++) {
        CLEANUP(strbuf_done) struct strbuf text = {0};
        CLEANUP(column_done) struct column c = {0};
        column_put(&text, values, count);
        CHECK(!strchr(strbuf_text(&text), '"') && !strchr(strbuf_text(&text), '\\'));
        CHECK(column_read(&c, text.data, text.length));
        CHECK_INT(c.count, count);
        CHECK(!count || memcmp(c.values, values, count * sizeof(*values)) == 0);
    }
    const char *const damaged[] = {"",   "0",     "2#",           "1\\",   "1\"",
                                   "1 ", "1\x7f", ";###########", "\xff#", ":~~~~~~~~~~"};
    for (size_t i = 0; i < ARRAY_COUNT(damaged); i++) {
        CLEANUP(column_done) struct column c = {0};
        CHECK(!column_read(&c, damaged[i], strlen(damaged[i])));
    }
}

TEST(lines_fit_the_terminal)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    const char *long_text = "state      done, started today, 3 cells\n"
                            "  a note that is indented and long\n"
                            "short\n\nünïcödé ünïcödé\nend";
    strbuf_puts(&text, long_text);
    strbuf_fit_lines(&text, 0);
    CHECK_STR(strbuf_text(&text), long_text);
    strbuf_fit_lines(&text, 24);
    CHECK_STR(strbuf_text(&text), "state      done, started\n"
                                  "           today, 3\n"
                                  "           cells\n"
                                  "  a note that is\n"
                                  "  indented and long\n"
                                  "short\n\nünïcödé ünïcödé\nend");
    strbuf_clear(&text); /* colours take no columns */
    strbuf_puts(&text, "\033[2mstate\033[0m      done, started today\n"
                       "\033[1;31m2 of 9 runs failed, \033[0mand one did not\n"
                       "\033[32mas long as this line is\033[0m");
    strbuf_fit_lines(&text, 24);
    CHECK_STR(strbuf_text(&text), "\033[2mstate\033[0m      done, started\n"
                                  "           today\n"
                                  "\033[1;31m2 of 9 runs failed, \033[0mand\n"
                                  "one did not\n"
                                  "\033[32mas long as this line is\033[0m");
}

TEST(words_of_kilobytes_are_cut)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    char word[2000];
    memset(word, 'w', sizeof(word));
    memcpy(word, "<b> is ", 7);
    word[sizeof(word) - 1] = '\0';
    html_put_words(&out, word);
    CHECK(out.length < 100);
    CHECK(str_has_prefix(strbuf_text(&out), "&lt;b&gt; is www"));
    CHECK_CONTAINS(strbuf_text(&out), "w…");
}
