/* SPDX-License-Identifier: MIT */
/* `assay ab --exact`: the commands run emulated, and their instructions are compared; which
 * functions account for a difference is found by one run more of each. */
#include "base/fd.h"
#include "base/memory.h"
#include "cmd/ab.h"
#include "cmd/cmd.h"
#include "exact/functions.h"
#include "report/exact/exact.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

enum { ROUNDS = 3, CHANGES_SHOWN = 12 };

int ab_exact_check(const struct ab_options *o, struct error *err)
{
    if (!o->exact)
        return 0;
    const char *with = o->sim             ? "--sim"
                       : o->duet          ? "--duet"
                       : o->copies > 1    ? "--copies"
                       : o->events.count  ? "--event"
                       : o->precision     ? "--precision"
                       : o->imports.count ? "--import-hyperfine"
                                          : NULL;
    if (with)
        return error_set(err, -EINVAL, "--exact and %s cannot be used together", with);
    return exact_check_word(o->exact, err);
}

/* The commands under the emulator; with a path, what they execute by function goes to PATH.N. */
static struct contestant *emulated(const struct contestant *like, size_t count, const char *word,
                                   const char *base)
{
    struct contestant *contestants = memory_zalloc(count + 1, sizeof(*contestants));
    for (size_t i = 0; i < count; i++) {
        CLEANUP(memory_freep) char *path = base ? memory_printf("%s.%zu", base, i) : NULL;
        size_t words = 0;
        contestants[i] = like[i];
        while (like[i].command.argv[words])
            words++;
        struct command own = {.argv = memory_zalloc(words + 1, sizeof(char *))};
        for (size_t k = 0; k < words; k++)
            own.argv[k] = memory_strdup(like[i].command.argv[k]);
        exact_emulate(&own, word, path);
        contestants[i].command.argv = own.argv;
        contestants[i].command.program = own.program;
    }
    return contestants;
}

static void free_contestants(struct contestant *contestants, size_t count)
{
    for (size_t i = 0; contestants && i < count; i++) {
        command_free_words(contestants[i].command.argv);
        free(contestants[i].command.program);
    }
    free(contestants);
}

int ab_exact_open(struct ab_exact *e, struct ab_options *o, struct rounds_spec *spec,
                  struct error *err)
{
    *e = (struct ab_exact){0};
    int r = cmd_find_exact(&e->tool, o->exact, err);
    if (r < 0)
        return r;
    e->word = exact_word(o->exact);
    if (exact_tool_note(&e->tool))
        fprintf(stderr, "assay ab: %s\n", exact_tool_note(&e->tool));
    e->contestants = emulated(spec->contestants, spec->contestant_count, e->word, NULL);
    e->count = spec->contestant_count;
    e->plain = spec->contestants;
    if (str_eq(o->metric, "wall"))
        o->metric = e->tool.metric;
    spec->contestants = e->contestants;
    spec->no_padding = true;
    spec->warmup_count = 0;
    spec->time_min_ns = o->time_ns;
    spec->rounds_min = o->rounds ? o->rounds : o->min_rounds ? o->min_rounds : ROUNDS;
    if (!spec->rounds_max && !o->time_ns)
        spec->rounds_max = spec->rounds_min;
    return 0;
}

void ab_exact_settle(struct rounds *r)
{
    for (size_t i = 0; i < r->count; i++)
        for (size_t k = 0; k < r->contestant_count; k++)
            r->items[i].runs[k].disturbance = (struct disturbance){0};
}

void ab_exact_done(struct ab_exact *e)
{
    free_contestants(e->contestants, e->count);
    exact_tool_done(&e->tool);
    *e = (struct ab_exact){0};
}

/* ---- by function ---- */

static bool differs(const struct ab_exact *e, const struct rounds *r, size_t a, size_t b)
{
    if (!r->count || !run_counts(&r->items[0].runs[a]) || !run_counts(&r->items[0].runs[b]))
        return false;
    double values[2] = {0};
    const size_t sides[] = {a, b};
    for (size_t s = 0; s < 2; s++) {
        const struct run_record *run = &r->items[0].runs[sides[s]];
        for (size_t i = 0; i < run->metric_count; i++)
            if (str_eq(run->metrics[i].name, e->tool.metric))
                values[s] = run->metrics[i].value;
    }
    return values[0] > 0 && values[1] > 0 && values[0] != values[1];
}

static void put_pair(struct strbuf *out, const struct ab_exact *e, const char *base,
                     size_t reference, size_t other)
{
    CLEANUP(memory_freep) char *a = memory_printf("%s.%zu", base, reference);
    CLEANUP(memory_freep) char *b = memory_printf("%s.%zu", base, other);
    CLEANUP(exact_functions_done) struct exact_functions old = {0};
    CLEANUP(exact_functions_done) struct exact_functions new = {0};
    if (exact_functions_read(&old, a, NULL) < 0 || exact_functions_read(&new, b, NULL) < 0)
        return;
    strbuf_puts(out, "\nInstructions by function, ");
    const char *name = e->plain[other].name, *reference_name = e->plain[reference].name;
    strbuf_put_safe(out, name, strlen(name), 60);
    strbuf_puts(out, " against ");
    strbuf_put_safe(out, reference_name, strlen(reference_name), 60);
    strbuf_puts(out, ":\n");
    report_exact_changes(out, &old, &new, CHANGES_SHOWN);
}

/* The pairs that differ. */
static void put_pairs(struct strbuf *out, const struct ab_exact *e, const struct rounds *r,
                      const char *base)
{
    for (size_t i = 0; i < e->count; i++)
        for (size_t k = 0; k < e->count; k++)
            if (e->plain[k].is_reference && !e->plain[i].is_reference &&
                e->plain[k].group == e->plain[i].group && differs(e, r, k, i))
                put_pair(out, e, base, k, i);
}

static bool any_differs(const struct ab_exact *e, const struct rounds *r)
{
    for (size_t i = 0; i < e->count; i++)
        for (size_t k = 0; k < e->count; k++)
            if (e->plain[k].is_reference && e->plain[k].group == e->plain[i].group &&
                differs(e, r, k, i))
                return true;
    return false;
}

int ab_exact_explain(const struct ab_exact *e, const struct rounds_spec *like,
                     const struct rounds *rounds, struct strbuf *out, struct error *err)
{
    if (e->tool.is_cachegrind || rounds->signal || !any_differs(e, rounds))
        return 0;
    CLEANUP(memory_freep)
    char *base = memory_printf("%s/assay-functions-XXXXXX", temporary_folder());
    int fd = mkstemp(base);
    if (fd < 0)
        return error_errno(err, -errno, "%s", base);
    close(fd);
    struct rounds_spec spec = *like;
    struct rounds again;
    struct contestant *contestants = emulated(e->plain, e->count, e->word, base);
    spec.contestants = contestants;
    spec.rounds_min = spec.rounds_max = 1;
    spec.time_min_ns = spec.time_max_ns = 0;
    spec.on_result = NULL;
    spec.on_run = NULL;
    spec.on_tick = NULL;
    spec.context = NULL;
    int r = rounds_run(&spec, &again, err);
    if (r == 0)
        put_pairs(out, e, rounds, base);
    rounds_done(&again);
    free_contestants(contestants, e->count);
    for (size_t i = 0; i < e->count; i++) {
        CLEANUP(memory_freep) char *path = memory_printf("%s.%zu", base, i);
        unlink(path);
    }
    unlink(base);
    return r;
}
