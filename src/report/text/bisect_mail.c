/* SPDX-License-Identifier: MIT */
/*
 * The mail about a change: what, how much, how sure, on which machine, with which commands.  The
 * text and the Markdown have the same parts, in the same order, and differ in their marks only.
 */
#include "base/memory.h"
#include "config.h"
#include "report/text/ab.h"
#include "report/text/bisect_internal.h"

#include <math.h>
#include <stdio.h>

enum { TEXT_COLUMNS = 24, CHANGE_COLUMNS = 34 };

/* A mail being written. */
struct mail {
    struct strbuf *out;
    const struct bisect_view *v;
    const struct bisect *b;
    bool markdown;
};

static void put_safe(struct mail *m, const char *text)
{
    strbuf_put_safe(m->out, text, strlen(text), 300);
}

/* Words of people: marks in them are none of the mail's. */
static void put_words(struct mail *m, const char *text)
{
    CLEANUP(strbuf_done) struct strbuf safe = {0};
    strbuf_put_safe(&safe, text, strlen(text), 300);
    for (const char *at = strbuf_text(&safe); *at; at++) {
        if (m->markdown && strchr("\\`*_[]<>#|~", *at))
            strbuf_putc(m->out, '\\');
        strbuf_putc(m->out, *at);
    }
}

static void put_heading(struct mail *m, const char *text)
{
    strbuf_printf(m->out, m->markdown ? "\n#### %s\n\n" : "\n%s:\n\n", text);
}

static void put_commit(struct mail *m, size_t commit)
{
    const struct bisect_commit *c = &m->b->commits[commit];
    strbuf_printf(m->out, m->markdown ? "`%.12s` (" : "%.12s (", c->hash);
    put_words(m, c->subject);
    strbuf_puts(m->out, ")");
}

static void put_indented(struct mail *m, const char *language, const char *text)
{
    if (m->markdown)
        strbuf_printf(m->out, "```%s\n", language);
    else
        strbuf_puts(m->out, "  ");
    strbuf_puts(m->out, text);
    strbuf_puts(m->out, m->markdown ? "\n```\n" : "\n");
}

/* Pads what was written since `from` to a column. */
static void pad(struct mail *m, size_t from, size_t columns)
{
    size_t used = str_columns(m->out->data + from);
    strbuf_pad(m->out, ' ', used < columns ? columns - used : 1);
}

static void put_cell(struct mail *m, const char *unit, const struct outcome_cell *cell)
{
    size_t from = m->out->length;
    strbuf_put_measured(m->out, cell->summary.median, unit);
    strbuf_puts(m->out, " ");
    strbuf_put_deviation(m->out, unit, &cell->summary);
    if (m->markdown)
        strbuf_puts(m->out, " | ");
    else
        pad(m, from, TEXT_COLUMNS);
}

/* `found` is what the mail opens with, for the row of its metric: one interval for one thing. */
static void put_row(struct mail *m, const struct bisect_metrics *metrics, size_t row,
                    const struct comparison *found)
{
    const struct store_metric *metric = &metrics->outcome.data->metrics[row];
    const struct outcome_cell *after = outcome_cell(&metrics->outcome, row, 1);
    strbuf_puts(m->out, m->markdown ? "| " : "  ");
    put_cell(m, metric->unit, outcome_cell(&metrics->outcome, row, 0));
    size_t from = m->out->length;
    if (found || after->judged)
        strbuf_put_change(m->out, found ? found : &after->judged->comparison, metric->unit);
    if (m->markdown)
        strbuf_puts(m->out, " | ");
    else
        pad(m, from, CHANGE_COLUMNS);
    put_cell(m, metric->unit, after);
    put_safe(m, metric->name);
    strbuf_puts(m->out, m->markdown ? " |\n" : "\n");
}

/* The metric, and every other one whose difference stands; the rest by name. */
static void put_table(struct mail *m, const struct bisection_change *c)
{
    CLEANUP(bisect_metrics_done) struct bisect_metrics metrics;
    bisect_metrics_init(&metrics, m->b, c->step);
    put_heading(m, "what changed");
    if (m->markdown)
        strbuf_printf(m->out, "| %.12s | change | %.12s | metric |\n|---:|---:|---:|---|\n",
                      m->b->commits[c->lo].hash, m->b->commits[c->hi].hash);
    else
        strbuf_printf(m->out, "  %-*.12s%-*s%-*.12s%s\n", TEXT_COLUMNS, m->b->commits[c->lo].hash,
                      CHANGE_COLUMNS, "change", TEXT_COLUMNS, m->b->commits[c->hi].hash, "metric");
    CLEANUP(strbuf_done) struct strbuf others = {0};
    if (metrics.outcome.headline != DATASET_NONE)
        put_row(m, &metrics, metrics.outcome.headline, &c->change);
    for (size_t i = 0; i < metrics.outcome.data->metric_count; i++) {
        const struct outcome_cell *after = outcome_cell(&metrics.outcome, i, 1);
        if (i == metrics.outcome.headline)
            continue;
        if (after->judged && after->judged->changed)
            put_row(m, &metrics, i, NULL);
        else
            strbuf_printf(&others, "%s%s", others.length ? ", " : "",
                          metrics.outcome.data->metrics[i].name);
    }
    const char *indent = m->markdown ? "" : "  ";
    strbuf_printf(m->out,
                  "%s%sThe change is taken within rounds, in which both commits ran, and so is not "
                  "quite the ratio of\n%sthe medians, which are of each commit's own runs.\n",
                  m->markdown ? "\n" : "", indent, indent);
    if (others.length) {
        strbuf_puts(m->out, m->markdown ? "\n" : "  ");
        strbuf_puts(m->out, "No confirmed change: ");
        put_safe(m, strbuf_text(&others));
        strbuf_puts(m->out, ".\n");
    }
}

/* The reasons that were found when both sides were profiled, one in each line. */
static void put_reasons(struct mail *m, const struct bisection_change *c)
{
    const char *at = m->b->commits[c->hi].reasons;
    if (!at || !*at)
        return;
    put_heading(m, "what accounts for it");
    while (*at) {
        size_t length = strcspn(at, "\n");
        strbuf_puts(m->out, m->markdown ? "- " : "  ");
        strbuf_put_safe(m->out, at, length, 300);
        strbuf_putc(m->out, '\n');
        at += length + (at[length] == '\n');
    }
}

static void put_sureness(struct mail *m, const struct bisection_change *c)
{
    const struct bisection_step *step = &m->b->search.steps[c->step];
    strbuf_printf(m->out,
                  "How certain: in %zu fresh rounds of the commit and the one before it, a commit "
                  "that changes nothing\n"
                  "would show as much ",
                  step->round_count);
    if (step->p < 1e-6)
        strbuf_puts(m->out, "in fewer than one case in a million");
    else
        strbuf_printf(m->out, "in one case in %.0f", 1 / step->p);
    strbuf_printf(m->out, " (allowed: one in %.0f). The interval is a 95 %% interval.\n",
                  1 / step->chance);
}

/* Which metric it is where assay chose it. */
static void put_choice(struct mail *m)
{
    if (!m->b->metric_chosen)
        return;
    if (str_eq(m->b->settings.metric, "cpu"))
        strbuf_puts(m->out, "\n"
                            "cpu is user plus system time: the command never waits on its own, so "
                            "its wall time is this\n"
                            "plus the time others took from it.\n");
}

/* The line that a commit which mends a regression has, as Linux and others want it. */
static void put_tag(struct mail *m, const struct bisection_change *c)
{
    const struct bisect_commit *commit = &m->b->commits[c->hi];
    if (bisect_is_range(c) || !str_eq(verdict_change_name(&c->change, m->b->better), "regression"))
        return;
    strbuf_puts(m->out, "\nFor a commit that fixes it:\n\n");
    CLEANUP(strbuf_done) struct strbuf line = {0};
    strbuf_printf(&line, "Fixes: %.12s (\"", commit->hash);
    strbuf_put_safe(&line, commit->subject, strlen(commit->subject), 300);
    strbuf_puts(&line, "\")");
    put_indented(m, "", strbuf_text(&line));
}

static void put_opening(struct mail *m, const struct bisection_change *c)
{
    const struct bisect *b = m->b;
    const char *unit = bisect_unit(b);
    const char *bold = m->markdown ? "**" : "";
    strbuf_printf(m->out, "assay noticed a %s", bold);
    strbuf_put_change(m->out, &c->change, unit);
    strbuf_printf(m->out, " %s of ", verdict_change_name(&c->change, b->better));
    put_safe(m, b->settings.metric);
    strbuf_printf(m->out, "%s on %s", bold,
                  bisect_is_range(c) ? "one of these commits:\n" : "commit ");
    if (bisect_is_range(c)) {
        for (size_t i = c->lo + 1; i <= c->hi; i++) {
            strbuf_puts(m->out, m->markdown ? "\n- " : "\n  ");
            put_commit(m, i);
            strbuf_puts(m->out, i < c->hi ? ", which cannot be built or run" : "");
        }
        strbuf_puts(m->out, "\n");
    } else {
        put_commit(m, c->hi);
        strbuf_puts(m->out, m->markdown ? "  \nby " : "\nby ");
        put_safe(m, b->commits[c->hi].author);
        strbuf_puts(m->out, m->markdown ? ", after " : "\nafter ");
        put_commit(m, c->lo);
        strbuf_puts(m->out, ".\n");
    }
    if (!bisect_is_range(c) && b->commits[c->hi].is_merge)
        strbuf_printf(m->out,
                      "\nThe commit is a merge; to search what it merged:\n"
                      "assay bisect --good $(git merge-base %.12s^1 %.12s^2) --bad %.12s^2 …\n",
                      b->commits[c->hi].hash, b->commits[c->hi].hash, b->commits[c->hi].hash);
    strbuf_puts(m->out, "\n");
    put_sureness(m, c);
    put_choice(m);
    put_tag(m, c);
}

/* The kernels of the emulated machines, from good to bad, each once. */
static void put_kernels(struct mail *m, const char *start)
{
    const char *last = NULL;
    strbuf_printf(m->out, "%scounted in an emulated machine, under Linux ", start);
    for (size_t i = 0; i < m->b->commit_count; i++) {
        const char *kernel = m->b->commits[i].kernel;
        if (!kernel || (last && str_eq(kernel, last)))
            continue;
        strbuf_puts(m->out, last ? ", then " : "");
        put_safe(m, kernel);
        last = kernel;
    }
    strbuf_printf(m->out, "%s; the host's own load does not change such counts\n",
                  last ? "" : "as --run boots it");
}

static void put_environment(struct mail *m)
{
    const struct machine *machine = m->v->machine;
    const struct bisect_settings *s = &m->b->settings;
    const char *start = m->markdown ? "- " : "  ";
    char memory[32];
    put_heading(m, "environment");
    if (machine)
        strbuf_printf(m->out, "%smachine: %s, %zu CPUs, %s of memory\n%skernel: %s on %s\n", start,
                      machine->cpu_model, machine->cpu_count,
                      format_bytes((double)machine->memory_bytes, memory, sizeof(memory)), start,
                      machine->kernel_release, machine->distribution);
    if (bisect_counts_in_machine(m->b))
        put_kernels(m, start);
    strbuf_printf(m->out, "%sassay: %s, seed %llu\n", start, ASSAY_VERSION,
                  (unsigned long long)s->seed);
    const struct {
        const char *name, *value;
    } lines[] = {{"build", s->build},
                 {"run", *s->bench ? s->program : s->run},
                 {"benchmark", s->bench},
                 {"in the directory", s->prefix},
                 {"on the CPUs", s->cpus}};
    for (size_t i = 0; i < ARRAY_COUNT(lines); i++)
        if (*lines[i].value) {
            strbuf_printf(m->out, "%s%s: %s", start, lines[i].name, m->markdown ? "`" : "");
            put_safe(m, lines[i].value);
            strbuf_puts(m->out, m->markdown ? "`\n" : "\n");
        }
}

static const char *step_words(const struct bisection_step *step)
{
    switch (step->outcome) {
    case BISECTION_DIFFERS:
        return step->kind == BISECTION_ENDS ? "good and bad differ" : "confirmed";
    case BISECTION_SAME:
        return step->kind == BISECTION_SPLIT ? "like both" : "no difference that matters";
    case BISECTION_LEFT:
        return "the change is not after it";
    case BISECTION_RIGHT:
        return "the change is after it";
    case BISECTION_BOTH:
        return "between the two: there are several changes";
    case BISECTION_UNDECIDED:
        return "cannot tell";
    case BISECTION_REFUTED:
        return "withdrawn: the stretch does not differ";
    case BISECTION_DROPPED:
        return "skipped: it fails to run";
    case BISECTION_OPEN:
        break;
    }
    return "not finished";
}

/* How the search went: one line for each step. */
static void put_search(struct mail *m)
{
    const struct bisection *s = &m->b->search;
    const char *unit = bisect_unit(m->b);
    size_t skipped = 0;
    for (size_t i = 0; i < s->count; i++)
        skipped += s->states[i] == COMMIT_SKIPPED;
    put_heading(m, "how it was found");
    strbuf_printf(m->out,
                  "%s%zu %s after good up to bad; %zu %s built, %llu %s. Each candidate ran in the "
                  "same\n%srounds as both ends of its stretch.\n\n",
                  m->markdown ? "" : "  ", s->count - 1, plural(s->count - 1, "commit", "commits"),
                  bisection_build_count(s) - skipped,
                  plural(bisection_build_count(s) - skipped, "tree", "trees"),
                  (unsigned long long)m->b->run_count, plural(m->b->run_count, "run", "runs"),
                  m->markdown ? "" : "  ");
    if (m->b->stolen_count)
        strbuf_printf(
            m->out,
            "%srounds not counted because the host took time from one of their runs: %llu\n\n",
            m->markdown ? "" : "  ", (unsigned long long)m->b->stolen_count);
    if (m->markdown)
        strbuf_puts(m->out, "| commit | number | rounds | change over the stretch | |\n"
                            "|---|---:|---:|---|---|\n");
    for (size_t i = 0; i < s->step_count; i++) {
        const struct bisection_step *step = &s->steps[i];
        size_t at = step->kind == BISECTION_SPLIT ? step->mid : step->hi;
        strbuf_printf(m->out,
                      m->markdown ? "| `%.12s` | %zu | %zu | " : "  %.12s %5zu %4zu rounds  ",
                      m->b->commits[at].hash, at, step->round_count);
        size_t from = m->out->length;
        if (step->outcome != BISECTION_DROPPED)
            strbuf_put_change(m->out, &step->whole, unit);
        if (m->markdown)
            strbuf_puts(m->out, " | ");
        else
            pad(m, from, CHANGE_COLUMNS);
        strbuf_printf(m->out, "%s%s\n", step_words(step), m->markdown ? " |" : "");
    }
    for (size_t i = 0; skipped && i < s->count; i++)
        if (s->states[i] == COMMIT_SKIPPED) {
            strbuf_puts(m->out,
                        m->markdown ? "\nSkipped, cannot be built or run: " : "  skipped: ");
            put_commit(m, i);
            strbuf_puts(m->out, "\n");
        }
    for (size_t i = 0; i < s->count; i++)
        if (m->b->commits[i].failed_runs && s->states[i] != COMMIT_SKIPPED) {
            strbuf_printf(m->out, m->markdown ? "\n%s: " : "  %s: ", "Failed sometimes");
            put_commit(m, i);
            strbuf_printf(m->out, ", %llu %s of its command, whose rounds were measured again\n",
                          (unsigned long long)m->b->commits[i].failed_runs,
                          plural(m->b->commits[i].failed_runs, "run", "runs"));
        }
}

static void put_reproduce(struct mail *m, size_t lo, size_t hi)
{
    CLEANUP(strbuf_done) struct strbuf command = {0};
    put_heading(m, "to measure it again");
    bisect_put_reproduce(&command, m->b, lo, hi);
    put_indented(m, "sh", strbuf_text(&command));
}

/* What else is in the range. */
static void put_rest(struct mail *m)
{
    const struct bisection *s = &m->b->search;
    const char *unit = bisect_unit(m->b);
    if (s->more_changes)
        strbuf_puts(m->out, "\nThere is another change in the range: --all finds them all.\n");
    for (size_t i = 0; i < s->rest_count; i++) {
        const struct bisection_rest *rest = &s->rests[i];
        strbuf_puts(m->out, rest->differs ? "\nNot attributed to a single commit: "
                                          : "\nToo noisy to tell whether there is a change: ");
        strbuf_put_change(m->out, &rest->change, unit);
        strbuf_printf(m->out, " between %.12s and %.12s.\n", m->b->commits[rest->lo].hash,
                      m->b->commits[rest->hi].hash);
    }
    if (s->found_count < 2 || s->found[0].change.scale != COMPARISON_RATIO)
        return;
    double product = 1;
    for (size_t i = 0; i < s->found_count; i++)
        product *= s->found[i].change.estimate;
    strbuf_printf(m->out,
                  "\nThe %zu changes add up to %+.1f %%; bad to good, measured: ", s->found_count,
                  100 * (product - 1));
    strbuf_put_change(m->out, &bisection_ends(s)->whole, unit);
    strbuf_puts(m->out, ".\n");
}

/* " by 1a2b3c", or the range where only one of several commits can be named. */
static void put_culprit(struct mail *m, const struct bisection_change *c)
{
    if (bisect_is_range(c))
        strbuf_printf(m->out, " by one of %zu commits, %.12s..%.12s", c->hi - c->lo,
                      m->b->commits[c->lo].hash, m->b->commits[c->hi].hash);
    else
        strbuf_printf(m->out, " by %.12s", m->b->commits[c->hi].hash);
}

static void put_subject(struct mail *m)
{
    const struct bisection *s = &m->b->search;
    strbuf_puts(m->out, m->markdown ? "### assay bisect: " : "Subject: ");
    if (s->found_count == 1 && !bisect_is_range(&s->found[0])) {
        strbuf_puts(m->out, "[");
        put_words(m, m->b->commits[s->found[0].hi].subject);
        strbuf_puts(m->out, "] ");
    }
    put_safe(m, m->b->settings.metric);
    if (s->verdict != BISECTION_FOUND) {
        strbuf_puts(m->out, ": no commit found\n\n");
        return;
    }
    for (size_t i = 0; i < s->found_count; i++) {
        const struct comparison *c = &s->found[i].change;
        strbuf_printf(m->out, "%s ", i ? ";" : ":");
        if (c->scale == COMPARISON_RATIO)
            strbuf_printf(m->out, "%s%.1f %% ", c->estimate < 1 ? "−" : "+",
                          fabs(100 * (c->estimate - 1)));
        strbuf_puts(m->out, verdict_change_name(c, m->b->better));
        put_culprit(m, &s->found[i]);
    }
    strbuf_puts(m->out, "\n\n");
}

static void put_mail(struct mail *m)
{
    const struct bisection *s = &m->b->search;
    put_subject(m);
    for (size_t i = 0; i < s->found_count; i++) {
        if (i)
            strbuf_puts(m->out, m->markdown ? "\n---\n\n" : "\n\n");
        put_opening(m, &s->found[i]);
        put_table(m, &s->found[i]);
        put_reasons(m, &s->found[i]);
        put_reproduce(m, s->found[i].lo, s->found[i].hi);
    }
    bisect_put_verdict(m->out, m->b);
    put_rest(m);
    put_environment(m);
    put_search(m);
}

void report_bisect_text(struct strbuf *out, const struct bisect_view *v)
{
    put_mail(&(struct mail){.out = out, .v = v, .b = v->b});
}

void report_bisect_markdown(struct strbuf *out, const struct bisect_view *v)
{
    put_mail(&(struct mail){.out = out, .v = v, .b = v->b, .markdown = true});
}
