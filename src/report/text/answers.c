/* SPDX-License-Identifier: MIT */
/* See answers.h. */
#include "report/text/answers.h"
#include "base/json.h"
#include "base/memory.h"
#include "report/text/experiment.h"

enum { ANSWERS_OF_A_KIND = 12, PLACES_MAX = 8 };

static const struct {
    const char *kind, *heading;
} kinds[] = {
    {"best", "Which is best?"},
    {"crossover", "At what size does one overtake the other?"},
    {"saturation", "Where does adding more stop helping?"},
    {"surprise", "Which cells are surprising?"},
    {"constant", "What is always the same for a variant?"},
    {"efficiency", "What does a unit of work cost?"},
    {"note", "What else do the results show?"},
};

/* The same sentence about several places is said once. */
static bool same_sentence(const struct answer *a, const struct answer *b)
{
    return str_eq(a->kind, b->kind) && str_eq(a->metric, b->metric) && str_eq(a->text, b->text);
}

static void put_places(struct strbuf *out, const struct answers *a, size_t first)
{
    size_t places = 0;
    for (size_t i = first; i < a->count; i++) {
        if (!same_sentence(&a->items[i], &a->items[first]) || !a->items[i].where[0])
            continue;
        if (places < PLACES_MAX)
            strbuf_printf(out, "%s%s", places ? "; " : "", a->items[i].where);
        places++;
    }
    if (places > PLACES_MAX)
        strbuf_printf(out, "; and %zu more", places - PLACES_MAX);
    if (places)
        strbuf_puts(out, ": ");
}

static bool was_said(const struct answers *a, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (same_sentence(&a->items[i], &a->items[index]))
            return true;
    return false;
}

static void put_answer(struct strbuf *out, const struct answers *a, size_t index)
{
    const struct answer *answer = &a->items[index];
    strbuf_puts(out, "  ");
    put_places(out, a, index);
    strbuf_put_safe(out, answer->text, strlen(answer->text), 1000);
    strbuf_printf(out, " (%s)\n", answer->metric);
}

/* A crossover that was found, which has figures, tells more than one that was not. */
static void put_kind(struct strbuf *out, const struct answers *a, const char *kind, size_t most)
{
    size_t shown = 0, count = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < a->count; i++) {
            const struct answer *answer = &a->items[i];
            bool first = !str_eq(kind, "crossover") || answer->number_count > 0;
            if (!str_eq(answer->kind, kind) || first != (pass == 0) || was_said(a, i))
                continue;
            count++;
            if (count > most)
                continue;
            put_answer(out, a, i);
            shown++;
        }
    if (count > shown)
        strbuf_printf(out, "  … and %zu more: --all\n", count - shown);
}

void report_answers_text(struct strbuf *out, const struct answers *a, bool all, bool colour)
{
    const struct store_experiment *e = &a->d->experiment;
    strbuf_printf(out, "experiment %lld: ", (long long)e->id);
    strbuf_put_safe(out, e->name, strlen(e->name), 200);
    strbuf_putc(out, '\n');
    if (e->question[0]) {
        strbuf_put_safe(out, e->question, strlen(e->question), 400);
        strbuf_putc(out, '\n');
    }
    report_losses_text(out, a->d, colour);
    for (size_t k = 0; k < ARRAY_COUNT(kinds); k++) {
        bool has_any = false;
        for (size_t i = 0; i < a->count && !has_any; i++)
            has_any = str_eq(a->items[i].kind, kinds[k].kind);
        if (!has_any)
            continue;
        strbuf_printf(out, "\n%s%s%s\n", colour ? "\033[1m" : "", kinds[k].heading,
                      colour ? "\033[0m" : "");
        put_kind(out, a, kinds[k].kind, all ? SIZE_MAX : ANSWERS_OF_A_KIND);
    }
    if (a->count)
        return;
    bool is_import = a->d->factor_count && !dataset_has_rivals(a->d, 0);
    strbuf_puts(out,
                is_import
                    ? "\nThe benchmarks of one file do different things and are not compared with "
                      "each other; to compare them anyway: --variant benchmark\n"
                    : "\nThere is nothing to compare: the experiment has only one cell, or no "
                      "factor whose values are names; choose one with --variant FACTOR.\n");
}

void report_answers_json(struct strbuf *out, const struct answers *a)
{
    struct json j = {.out = out};
    json_object(&j, NULL);
    json_string(&j, "format", "assay-answers-1");
    json_i64(&j, "experiment", a->d->experiment.id);
    json_string(&j, "name", a->d->experiment.name);
    json_string(&j, "question", a->d->experiment.question);
    json_array(&j, "answers");
    for (size_t i = 0; i < a->count; i++) {
        const struct answer *answer = &a->items[i];
        json_object(&j, NULL);
        json_string(&j, "kind", answer->kind);
        json_string(&j, "metric", answer->metric);
        json_string(&j, "where", answer->where);
        json_string(&j, "text", answer->text);
        json_bool(&j, "certain", answer->certain);
        json_object(&j, "numbers");
        for (size_t n = 0; n < answer->number_count; n++)
            json_double(&j, answer->numbers[n].name, answer->numbers[n].value);
        json_end(&j);
        json_end(&j);
    }
    json_end(&j);
    json_end(&j);
}
