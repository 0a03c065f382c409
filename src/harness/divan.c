/* SPDX-License-Identifier: MIT */
/*
 * The table that divan prints: a tree of names, and for each benchmark fastest, slowest, median,
 * mean, samples and iterations.  divan chooses a unit for each figure; they are kept in
 * nanoseconds, so that one series has one unit.  It writes no single samples.
 */
#include "base/memory.h"
#include "base/strings.h"
#include "harness/formats.h"
#include "harness/lines.h"

#include <errno.h>

enum { DEPTH_MAX = 32 };
static const char bar[] = "│", branch[] = "├─ ", last[] = "╰─ ";

bool divan_is(const char *text)
{
    return strstr(text, "fastest") && strstr(text, "slowest") && strstr(text, "median") &&
           strstr(text, bar);
}

/* Steps over the lines of the tree; the depth of what stands behind them, or -1 for a line that
 * goes on with another. */
static int depth_of(const char **at)
{
    int depth = 0;
    for (;; depth++) {
        if (str_has_prefix(*at, branch) || str_has_prefix(*at, last)) {
            *at += strlen(branch);
            return depth + 1;
        }
        if (str_has_prefix(*at, "│  "))
            *at += strlen("│  ");
        else if (str_has_prefix(*at, "   "))
            *at += 3;
        else
            return -1;
    }
}

/* The name ends where two blanks or a figure's column begin. */
static size_t name_length(const char *text)
{
    const char *gap = strstr(text, "  ");
    return gap ? (size_t)(gap - text) : strcspn(text, " ");
}

static void put_figures(struct harness_results *r, char *const *path, int depth, const char *rest)
{
    static const char *const names[] = {"fastest", "slowest", "median", "mean"};
    static const int order[] = {2, 3, 0, 1}; /* the median first: it is what is judged */
    double ns[ARRAY_COUNT(names)];
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (!lines_duration(rest, &ns[i], NULL))
            return;
        const char *next = strstr(rest, bar);
        rest = next ? next + strlen(bar) : "";
    }
    CLEANUP(strbuf_done) struct strbuf name = {0};
    for (int i = 1; i <= depth; i++)
        strbuf_printf(&name, "%s%s", i > 1 ? "/" : "", path[i]);
    struct harness_benchmark *b = harness_benchmark(r, strbuf_text(&name));
    for (size_t i = 0; i < ARRAY_COUNT(order); i++)
        harness_summary(b, names[order[i]], "ns", HARNESS_TIME, ns[order[i]]);
}

int divan_read(struct harness_results *r, const char *text, struct error *err)
{
    struct lines l = {.at = text};
    char *path[DEPTH_MAX + 1] = {0};
    int code = 0;
    while (lines_next(&l) && code == 0) {
        const char *at = l.line;
        size_t length;
        if (!*r->suite && strstr(at, "fastest")) {
            CLEANUP(memory_freep) char *name = memory_strndup(at, name_length(at));
            harness_set(&r->suite, name);
        }
        int depth = depth_of(&at);
        if (depth < 0)
            continue;
        if (depth > DEPTH_MAX) {
            code = error_set(err, -EINVAL, "line %zu: more than %d levels", l.number, DEPTH_MAX);
            continue;
        }
        length = name_length(at);
        for (int i = depth; i <= DEPTH_MAX; i++) {
            free(path[i]);
            path[i] = NULL;
        }
        path[depth] = memory_strndup(at, length);
        bool whole = true;
        for (int i = 1; i <= depth; i++)
            whole = whole && path[i];
        if (whole)
            put_figures(r, path, depth, at + length);
    }
    for (int i = 0; i <= DEPTH_MAX; i++)
        free(path[i]);
    return code;
}
