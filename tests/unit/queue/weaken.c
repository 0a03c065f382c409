/* SPDX-License-Identifier: MIT */
#include "weaken.h"

#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WEAKENED_MAX (is_deep() ? 3000000 : 250000)
#define RANDOM_EXECUTIONS (is_deep() ? 1000000 : 20000)

struct model {
    const struct explore_scenario *scenarios;
    size_t count;
    const char *name;
};

static bool is_deep(void)
{
    return getenv("QUEUE_DEEP") != NULL;
}

/* How many interruptions fewer than the scenario says. */
static unsigned less;

static struct explore_limits limits_for(const struct explore_scenario *s, bool weak,
                                        uint64_t states_max)
{
    unsigned preemptions = s->preemptions + is_deep();
    return (struct explore_limits){weak, preemptions > less ? preemptions - less : 0,
                                   weak ? s->stale_reads + is_deep() : 0, states_max};
}

static bool is_of(const struct model *m, size_t i)
{
    return strcmp(m->scenarios[i].name, m->name) == 0;
}

/* Runs the scenarios of a model; true when all of them hold. */
static bool explore_all(const struct model *m, bool weak, uint64_t states_max, bool must_complete,
                        uint64_t *states, char *failure, size_t size)
{
    for (size_t i = m->count; i-- > 0;) {
        if (!is_of(m, i))
            continue;
        const struct explore_scenario *s = &m->scenarios[i];
        struct explore_report r;
        struct explore_limits limits = limits_for(s, weak, states_max);
        explore_run(s, &limits, &r);
        *states += r.states;
        if (getenv("QUEUE_VERBOSE") && must_complete)
            printf("# %s %u threads weak %d: %llu states\n", m->name, s->thread_count, weak,
                   (unsigned long long)r.states);
        if (r.failed || (!r.complete && must_complete)) {
            snprintf(failure, size, "scenario %zu, %u threads: %s", i, s->thread_count,
                     r.failed ? r.failure : "the limit on states was reached");
            return false;
        }
    }
    return true;
}

/* The same by chance, far from the orders that a search begins with. */
static bool random_all(const struct model *m, char *failure, size_t size)
{
    for (size_t i = m->count; i-- > 0;) {
        if (!is_of(m, i))
            continue;
        struct explore_report r;
        explore_random(&m->scenarios[i], &(struct explore_limits){.weak = true}, RANDOM_EXECUTIONS,
                       &r);
        if (r.failed) {
            snprintf(failure, size, "scenario %zu, %u threads, by chance: %s", i,
                     m->scenarios[i].thread_count, r.failure);
            return false;
        }
    }
    return true;
}

/* Every interleaving of a strong memory and of a weak one, within limits. */
static void check_holds(const struct model *m)
{
    char failure[600] = "";
    uint64_t states = 0;
    for (int weak = 0; weak < 2; weak++)
        if (!explore_all(m, weak, WEAKEN_STATES_MAX, true, &states, failure, sizeof(failure)))
            test_fail(__FILE__, __LINE__, "%s, %s memory: %s", m->name, weak ? "weak" : "strong",
                      failure);
    if (!random_all(m, failure, sizeof(failure)))
        test_fail(__FILE__, __LINE__, "%s: %s", m->name, failure);
    printf("# %s: %llu states\n", m->name, (unsigned long long)states);
}

static const char *bit_name(unsigned bit)
{
    return bit == EXPLORE_acquire ? "acquire" : bit == EXPLORE_release ? "release" : "the fence";
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool weakened_fails(const struct model *m, struct explore_site *s, unsigned bit,
                           char *failure, size_t size)
{
    uint64_t states = 0;
    bool held = true;
    s->weakened = bit;
    /* The nearest first: few interruptions show most. */
    for (less = 2; held; less--) {
        held = explore_all(m, true, WEAKENED_MAX, false, &states, failure, size);
        if (less == 0)
            break;
    }
    less = 0;
    s->weakened = 0;
    return !held;
}

/* The models' own steps need not be shown. */
static bool is_of_queues(const struct explore_site *s)
{
    return strstr(s->file, "workloads/queue/") != NULL;
}

static bool is_wanted(const struct explore_site *s)
{
    const char *only = getenv("QUEUE_SITE");
    return is_of_queues(s) && s->used && (!only || strncmp(only, s->function, strlen(only)) == 0);
}

/* Takes each ordering away that the model uses, one at a time; something must fail then. */
static void check_needs_all(const struct model *m)
{
    char failure[600] = "";
    for (struct explore_site *s = explore_sites(); s; s = s->next) {
        for (unsigned bit = 1; bit <= EXPLORE_seq_cst; bit *= 2) {
            if (!(s->order & bit) || (s->needed & bit) || !is_wanted(s))
                continue;
            if (!weakened_fails(m, s, bit, failure, sizeof(failure)))
                continue;
            s->needed |= bit;
            if (getenv("QUEUE_VERBOSE"))
                printf("# %s:%d %s in %s without %s: %s: %s\n", base_name(s->file), s->line,
                       s->what, s->function, bit_name(bit), m->name, failure);
        }
    }
}

/* QUEUE_ONLY holds names with commas between them. */
static bool is_chosen(const char *name)
{
    const char *only = getenv("QUEUE_ONLY");
    size_t length = strlen(name);
    for (const char *at = only; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == length && strncmp(at, name, length) == 0)
            return true;
    return !only;
}

void weaken_check(const struct explore_scenario *scenarios, size_t count, const char *name)
{
    const struct model m = {scenarios, count, name};
    if (!is_chosen(name))
        return;
    explore_forget_uses();
    check_holds(&m);
    if (!getenv("QUEUE_HOLDS"))
        check_needs_all(&m);
}

void weaken_check_long(const struct explore_scenario *scenarios, size_t count, const char *name)
{
    const struct model m = {scenarios, count, name};
    if (getenv("QUEUE_ONLY") && is_chosen(name))
        check_holds(&m);
}

/* Whether this is a run of everything. */
static bool is_whole(void)
{
    return !getenv("QUEUE_ONLY") && !getenv("QUEUE_HOLDS") && !getenv("QUEUE_SITE");
}

/* Runs behind the models, which are linked before this file. */
TEST(z_every_ordering_was_seen_to_be_needed)
{
    unsigned needed = 0, open = 0;
    for (struct explore_site *s = explore_sites(); s; s = s->next) {
        for (unsigned bit = 1; bit <= EXPLORE_seq_cst; bit *= 2) {
            if (!(s->order & bit) || !is_of_queues(s))
                continue;
            if (s->needed & bit) {
                needed++;
                continue;
            }
            open++;
            printf("# not shown: %s of the %s in %s, %s:%d\n", bit_name(bit), s->what, s->function,
                   base_name(s->file), s->line);
            if (is_whole())
                test_fail(__FILE__, __LINE__, "nothing fails without %s of the %s in %s, %s:%d",
                          bit_name(bit), s->what, s->function, base_name(s->file), s->line);
        }
    }
    printf("# %u orderings shown to be needed, %u not\n", needed, open);
}

/*
 * The sources' text: an ordering that no model has come by would be in no list of sites.
 */
static const char *const steps[] = {"Q_LOAD(", "Q_STORE(", "Q_ADD(",   "Q_SWAP(",
                                    "Q_CAS(",  "Q_FENCE(", "Q_LIGHT(", "Q_HEAVY("};

/* The step that begins in the text, and where its closing parenthesis is. */
static const char *find_step(const char *text, const char **ret_end)
{
    const char *first = NULL;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        const char *found = strstr(text, steps[i]);
        first = found && (!first || found < first) ? found : first;
    }
    unsigned depth = 0;
    for (const char *at = first; at && *at; at++) {
        depth += *at == '(';
        if (*at == ')' && --depth == 0) {
            *ret_end = at;
            return first;
        }
    }
    return NULL;
}

static bool is_relaxed(const char *end)
{
    return end[-1] == 'd' && memcmp(end - 7, "relaxed", 7) == 0;
}

/* Steps of comments and of macros are none; a word of mpmc's states, which is read and written
 * byte by byte here (see there), has the order of the bytes. */
static bool is_elsewhere(const char *text, const char *step, const char *end)
{
    const char *line = step;
    while (line > text && line[-1] != '\n')
        line--;
    bool comment = strncmp(line, " *", 2) == 0 || strncmp(line, "#define", 7) == 0;
    const char *word = strstr(step, "(const uint64_t *)states"), *each = strstr(step, "MPMC_EACH");
    return comment || (word && word < end) || (each && each < end);
}

static bool was_run(const char *file, int from, int to)
{
    for (struct explore_site *s = explore_sites(); s; s = s->next)
        if (is_of_queues(s) && strcmp(base_name(s->file), file) == 0 && s->line >= from &&
            s->line <= to)
            return true;
    return false;
}

static void check_text(const char *file, const char *text)
{
    const char *at = text, *end, *counted = text;
    int line = 1;
    for (const char *step; (step = find_step(at, &end)); at = end) {
        for (; counted < step; counted++)
            line += *counted == '\n';
        int last = line;
        for (const char *c = step; c < end; c++)
            last += *c == '\n';
        if (!is_relaxed(end) && !is_elsewhere(text, step, end) && !was_run(file, line, last))
            test_fail(__FILE__, __LINE__, "no model runs the step in %s:%d", file, line);
    }
}

TEST(z_every_ordering_was_run)
{
    static const char *const files[] = {"faa.h", "gate.c",    "gate.h",  "mpmc.h",
                                        "ms.h",  "reclaim.h", "nodes.h", "spsc.h"};
    static char text[100000];
    if (!is_whole())
        return;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char path[1024];
        snprintf(path, sizeof(path), "%s/%s", QUEUE_SOURCES, files[i]);
        FILE *f = fopen(path, "r");
        if (!f) {
            test_fail(__FILE__, __LINE__, "%s cannot be read", path);
            continue;
        }
        text[fread(text, 1, sizeof(text) - 1, f)] = 0;
        fclose(f);
        check_text(files[i], text);
    }
}
