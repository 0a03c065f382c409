/* SPDX-License-Identifier: MIT */
/* Catch2's XML reporter: <BenchmarkResults name="fib 20" …> and in it <mean value="1234" …>, in ns.
 * Only these elements are read, one by one. */
#include "base/memory.h"
#include "bench/printed/printed.h"
#include "bench/printed/span.h"

#include <errno.h>

/* The five entities that every XML has, and characters by number below 128. */
static char *unescape(struct span s)
{
    static const struct {
        const char *name;
        char c;
    } entities[] = {
        {"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
    CLEANUP(strbuf_done) struct strbuf out = {0};
    while (s.length) {
        size_t used = 1;
        char c = s.at[0];
        for (size_t i = 0; c == '&' && used == 1 && i < ARRAY_COUNT(entities); i++)
            if (span_starts(s, entities[i].name)) {
                used = strlen(entities[i].name);
                c = entities[i].c;
            }
        strbuf_putc(&out, c ? c : '?');
        s.at += used;
        s.length -= used;
    }
    return memory_strdup(strbuf_text(&out));
}

/* attribute="…" within the tag; false when it is not there. */
static bool attribute(struct span tag, const char *name, struct span *ret)
{
    CLEANUP(memory_freep) char *key = memory_printf(" %s=\"", name);
    const char *at = span_find(tag, key);
    if (!at)
        return false;
    at += strlen(key);
    const char *end = memchr(at, '"', (size_t)(tag.at + tag.length - at));
    if (!end)
        return false;
    *ret = (struct span){at, (size_t)(end - at)};
    return true;
}

static int take_mean(struct printed_results *results, const char *name, struct span tag,
                     struct error *err)
{
    struct span value;
    double ns;
    if (!attribute(tag, "value", &value) || !span_number(&value, &ns) || value.length)
        return error_set(err, -EINVAL, "the mean of %s has no value", name);
    return printed_add(printed_results_get(results, name, strlen(name)), ns, err);
}

int printed_catch2_parse(struct printed_results *results, const char *text, size_t length,
                         struct error *err)
{
    CLEANUP(memory_freep) char *name = NULL;
    struct span rest = {text, length}, value;
    int r = 0;
    for (const char *at; r == 0 && rest.length && (at = memchr(rest.at, '<', rest.length));) {
        const char *end = memchr(at, '>', (size_t)(rest.at + rest.length - at));
        if (!end)
            break;
        struct span tag = {at, (size_t)(end - at)};
        rest.length -= (size_t)(end + 1 - rest.at);
        rest.at = end + 1;
        if (span_starts(tag, "<BenchmarkResults") && attribute(tag, "name", &value)) {
            free(name);
            name = unescape(value);
        } else if (span_starts(tag, "<mean") && name) {
            r = take_mean(results, name, tag, err);
            free(name);
            name = NULL;
        }
    }
    if (r == 0 && !results->count)
        return error_set(err, -ENODATA, "there are no <BenchmarkResults> in it");
    return r;
}
