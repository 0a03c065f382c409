/* SPDX-License-Identifier: MIT */
/* Catch2's XML reporter: the mean of each BENCHMARK with its bounds.  It writes no single samples.
 * Only what is needed of XML is read: start tags with their attributes. */
#include "base/memory.h"
#include "base/strings.h"
#include "harness/formats.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

bool catch2_is(const char *text)
{
    return str_has_prefix(text, "<?xml") &&
           (strstr(text, "<Catch2TestRun") || strstr(text, "<Catch name="));
}

/* "&lt;" and its like. */
static void put_unescaped(struct strbuf *out, const char *text, size_t length)
{
    static const struct {
        const char *name;
        char sign;
    } entities[] = {
        {"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
    for (size_t i = 0; i < length;) {
        size_t e = 0;
        while (e < ARRAY_COUNT(entities) &&
               (strlen(entities[e].name) > length - i ||
                strncmp(text + i, entities[e].name, strlen(entities[e].name)) != 0))
            e++;
        bool found = e < ARRAY_COUNT(entities);
        strbuf_putc(out, found ? entities[e].sign : text[i]);
        i += found ? strlen(entities[e].name) : 1;
    }
}

/* Where the tag ends; Catch2 leaves a '>' in an attribute as it is. */
static const char *end_of(const char *tag)
{
    bool quoted = false;
    for (; *tag && (quoted || *tag != '>'); tag++)
        quoted ^= *tag == '"';
    return tag;
}

/* The attribute of the tag that begins at `tag`; the caller frees it; NULL when there is none. */
static char *attribute(const char *tag, const char *name)
{
    const char *end = end_of(tag);
    CLEANUP(memory_freep) char *sought = memory_printf(" %s=\"", name);
    const char *at = strstr(tag, sought);
    if (!at || at > end)
        return NULL;
    at += strlen(sought);
    const char *close = strchr(at, '"');
    if (!close)
        return NULL;
    CLEANUP(strbuf_done) struct strbuf out = {0};
    put_unescaped(&out, at, (size_t)(close - at));
    return memory_strdup(strbuf_text(&out));
}

static double number_of(const char *tag, const char *name)
{
    CLEANUP(memory_freep) char *text = attribute(tag, name);
    double value = NAN;
    struct error ignored;
    if (text)
        parse_double(text, &value, &ignored);
    return value;
}

/* Looks no farther than `end`: of many results each would search the whole file. */
static const char *tag_in(const char *at, const char *end, const char *tag)
{
    return memmem(at, (size_t)(end - at), tag, strlen(tag));
}

static void read_result(struct harness_results *r, const char *test, const char *at,
                        const char *end)
{
    CLEANUP(memory_freep) char *name = attribute(at, "name");
    CLEANUP(memory_freep)
    char *full = memory_printf("%s%s%s", test, *test ? ": " : "", name ? name : "benchmark");
    struct harness_benchmark *b = harness_add(r, full);
    const char *mean = tag_in(at, end, "<mean "), *spread = tag_in(at, end, "<standardDeviation ");
    if (mean)
        harness_summary(b, "mean", "ns", HARNESS_TIME, number_of(mean, "value"));
    if (spread)
        harness_summary(b, "stddev", "ns", HARNESS_COST, number_of(spread, "value"));
    const char *failed = tag_in(at, end, "<failed ");
    if (failed) {
        CLEANUP(memory_freep) char *message = attribute(failed, "message");
        harness_set(&b->failure, message ? message : "it failed");
    }
}

static int check_format(struct harness_results *r, const char *text, struct error *err)
{
    static const int formats[] = {2, 3, -1};
    const char *run = strstr(text, "<Catch2TestRun");
    if (!run)
        return 0;
    CLEANUP(memory_freep) char *format = attribute(run, "xml-format-version");
    CLEANUP(memory_freep) char *version = attribute(run, "catch2-version");
    harness_set(&r->version, version);
    return format ? harness_check_version("Catch2 with XML format", format, formats, err) : 0;
}

/* A benchmark's test case and the sections it is in: "sort/large". */
struct place {
    struct strbuf name;
    size_t lengths[64]; /* of the name outside of each section */
    size_t depth;
};

static void cut(struct strbuf *name, size_t length)
{
    if (name->length > length) {
        name->length = length;
        name->data[length] = '\0';
    }
}

static void follow(struct place *p, const char *tag)
{
    bool is_test = str_has_prefix(tag, "<TestCase "), is_section = str_has_prefix(tag, "<Section ");
    if (is_test) {
        p->depth = 0;
        cut(&p->name, 0);
    }
    if (str_has_prefix(tag, "</Section>") && p->depth && --p->depth < ARRAY_COUNT(p->lengths))
        cut(&p->name, p->lengths[p->depth]);
    if (!is_test && !is_section)
        return;
    CLEANUP(memory_freep) char *name = attribute(tag, "name");
    if (is_section && p->depth < ARRAY_COUNT(p->lengths)) {
        p->lengths[p->depth] = p->name.length;
        strbuf_putc(&p->name, '/');
    }
    p->depth += is_section;
    if (name && p->depth <= ARRAY_COUNT(p->lengths))
        strbuf_puts(&p->name, name);
}

static void place_done(struct place *p)
{
    strbuf_done(&p->name);
}

int catch2_read(struct harness_results *r, const char *text, struct error *err)
{
    static const char benchmark[] = "<BenchmarkResults ", closing[] = "</BenchmarkResults>";
    CLEANUP(place_done) struct place place = {0};
    const char *top = strstr(text, "<Catch2TestRun");
    CLEANUP(memory_freep) char *suite = attribute(top ? top : strstr(text, "<Catch "), "name");
    harness_set(&r->suite, suite);
    int code = check_format(r, text, err);
    if (code < 0)
        return code;
    for (const char *at = strchr(text, '<'); at; at = strchr(at + 1, '<')) {
        follow(&place, at);
        if (!str_has_prefix(at, benchmark))
            continue;
        const char *end = strstr(at, closing);
        if (!end)
            return error_set(err, -EINVAL, "the file ends within a benchmark's results");
        read_result(r, strbuf_text(&place.name), at, end);
        at = end;
    }
    if (!strstr(text, top ? "</Catch2TestRun>" : "</Catch>"))
        return error_set(err, -EINVAL, "the file ends before </%s>: let the tool write it again",
                         top ? "Catch2TestRun" : "Catch");
    return 0;
}
