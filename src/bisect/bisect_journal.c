/* SPDX-License-Identifier: MIT */
/*
 * The journal of a bisect: lines of fields, separated by tabs.  First what was asked for (set) and
 * the commits, then what happened, each as one write, so that whatever kills assay cuts off the
 * last record only, which is dropped when the journal is read:
 *
 *   assay-bisect  2
 *   set           NAME     TEXT
 *   commit        HASH     MERGE AUTHOR SUBJECT
 *   search
 *   built | failed | unusable   NUMBER
 *   unit          UNIT     BETTER METRIC      of the metric, before the first round
 *   round         VALUE…            of the commits that the search had asked for
 *   metric        NAME UNIT KIND BETTER TRAITS BOUND BOUND VALUE VALUE      of a confirmation
 *   end                                                             of the round
 *   stolen                          a round that does not count
 *   retry         NUMBER   a round that does not count: a run of this commit failed
 *   reasons       NUMBER   LINES    of a commit that was found
 */
#include "base/fd.h"
#include "base/memory.h"
#include "bisect/bisect_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

enum { FIELDS_MAX = 12 };

#define O(field) offsetof(struct bisect_settings, field)
const struct bisect_setting bisect_setting_table[] = {
    {"good", SETTING_TEXT, O(good)},
    {"bad", SETTING_TEXT, O(bad)},
    {"build", SETTING_TEXT, O(build)},
    {"run", SETTING_TEXT, O(run)},
    {"bench", SETTING_TEXT, O(bench)},
    {"program", SETTING_TEXT, O(program)},
    {"metric", SETTING_TEXT, O(metric)},
    {"events", SETTING_TEXT, O(events)},
    {"cpus", SETTING_TEXT, O(cpus)},
    {"better", SETTING_TEXT, O(better)},
    {"output", SETTING_TEXT, O(output)},
    {"exact", SETTING_TEXT, O(exact)},
    {"prefix", SETTING_TEXT, O(prefix)},
    {"seed", SETTING_COUNT, O(seed)},
    {"timeout_ns", SETTING_COUNT, O(timeout_ns)},
    {"warmup", SETTING_COUNT, O(warmup)},
    {"error", SETTING_SHARE, O(error)},
    {"min_change", SETTING_SHARE, O(min_change)},
    {"rounds_first", SETTING_COUNT, O(rounds_first)},
    {"rounds_max", SETTING_COUNT, O(rounds_max)},
    {"stride", SETTING_COUNT, O(stride)},
    {"all", SETTING_COUNT, O(all)},
    {"keep", SETTING_COUNT, O(keep)},
    {"explain", SETTING_COUNT, O(explain)},
    {0},
};

static char *journal_path(const struct bisect *b)
{
    return memory_printf("%s/journal", b->folder);
}

/* A field: tabs, line ends and backslashes are written as \t, \n and \\. */
static void put_field(struct strbuf *out, const char *text)
{
    strbuf_putc(out, '\t');
    for (; *text; text++) {
        if (*text == '\t' || *text == '\n' || *text == '\\')
            strbuf_putc(out, '\\');
        strbuf_putc(out, *text == '\t' ? 't' : *text == '\n' ? 'n' : *text);
    }
}

static void unescape(char *field)
{
    char *to = field;
    for (; *field; field++, to++) {
        bool escaped = *field == '\\' && field[1];
        field += escaped;
        *to = !escaped ? *field : *field == 't' ? '\t' : *field == 'n' ? '\n' : *field;
    }
    *to = '\0';
}

static int append(struct bisect *b, const struct strbuf *text, struct error *err)
{
    int r = fd_write_all(b->journal_fd, text->data, text->length);
    return r < 0 ? error_errno(err, r, "writing %s/journal", b->folder) : 0;
}

int bisect_journal_create(struct bisect *b, struct error *err)
{
    CLEANUP(memory_freep) char *path = journal_path(b);
    CLEANUP(strbuf_done) struct strbuf text = {0};
    strbuf_puts(&text, "assay-bisect\t2\n");
    for (const struct bisect_setting *s = bisect_setting_table; s->name; s++) {
        const char *at = (const char *)&b->settings + s->offset;
        strbuf_printf(&text, "set\t%s", s->name);
        if (s->kind == SETTING_TEXT)
            put_field(&text, *(char *const *)at);
        else if (s->kind == SETTING_COUNT)
            strbuf_printf(&text, "\t%llu", (unsigned long long)*(const uint64_t *)at);
        else
            strbuf_printf(&text, "\t%.17g", *(const double *)at);
        strbuf_putc(&text, '\n');
    }
    for (size_t i = 0; i < b->commit_count; i++) {
        strbuf_printf(&text, "commit\t%s\t%d", b->commits[i].hash, b->commits[i].is_merge);
        put_field(&text, b->commits[i].author);
        put_field(&text, b->commits[i].subject);
        strbuf_putc(&text, '\n');
    }
    strbuf_puts(&text, "search\n");
    int r = file_write(path, text.data, text.length, err);
    if (r < 0)
        return r;
    b->journal_fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    return b->journal_fd < 0 ? error_errno(err, -errno, "%s", path) : 0;
}

int bisect_journal_build(struct bisect *b, size_t commit, const char *how, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    strbuf_printf(&text, "%s\t%zu\n", how, commit);
    return append(b, &text, err);
}

int bisect_journal_reasons(struct bisect *b, size_t commit, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    strbuf_printf(&text, "reasons\t%zu", commit);
    put_field(&text, b->commits[commit].reasons);
    strbuf_putc(&text, '\n');
    return append(b, &text, err);
}

int bisect_journal_unit(struct bisect *b, const struct store_metric *m, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    strbuf_puts(&text, "unit");
    put_field(&text, m->unit);
    strbuf_printf(&text, "\t%d", (int)m->facts.better);
    put_field(&text, m->name);
    strbuf_putc(&text, '\n');
    return append(b, &text, err);
}

int bisect_journal_stolen(struct bisect *b, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    strbuf_puts(&text, "stolen\n");
    return append(b, &text, err);
}

int bisect_journal_retry(struct bisect *b, size_t commit, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    strbuf_printf(&text, "retry\t%zu\n", commit);
    b->commits[commit].failed_runs++;
    return append(b, &text, err);
}

int bisect_journal_kernel(struct bisect *b, size_t commit, struct error *err)
{
    struct bisect_commit *c = &b->commits[commit];
    CLEANUP(strbuf_done) struct strbuf text = {0};
    if (!c->kernel || c->kernel_is_kept)
        return 0;
    strbuf_printf(&text, "kernel\t%zu", commit);
    put_field(&text, c->kernel);
    strbuf_putc(&text, '\n');
    c->kernel_is_kept = true;
    return append(b, &text, err);
}

/* name, unit, kind, better, traits, whether each side is a bound, and the two values. */
static void put_metric(struct strbuf *text, const struct dataset *d, size_t metric)
{
    const struct store_metric *m = &d->metrics[metric];
    strbuf_puts(text, "metric");
    put_field(text, m->name);
    put_field(text, m->unit);
    put_field(text, m->kind);
    strbuf_printf(text, "\t%d\t%lld\t%d\t%d", (int)m->facts.better,
                  (long long)store_traits_number(m->facts), dataset_is_bound(d, metric, 0),
                  dataset_is_bound(d, metric, 1));
    for (size_t side = 0; side < 2; side++) {
        struct dataset_column column = dataset_column(d, metric, side);
        strbuf_printf(text, "\t%.17g", column.count ? column.values[0] : NAN);
    }
    strbuf_putc(text, '\n');
}

int bisect_journal_round(struct bisect *b, const struct bisect_round *round, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    strbuf_puts(&text, "round");
    for (size_t i = 0; i < round->count; i++)
        strbuf_printf(&text, "\t%.17g", round->values[i]);
    strbuf_putc(&text, '\n');
    for (size_t i = 0; round->all && i < round->all->metric_count; i++)
        put_metric(&text, round->all, i);
    strbuf_puts(&text, "end\n");
    return append(b, &text, err);
}

/* A journal being read. */
struct reading {
    struct bisect *b;
    char *at, *end;
    size_t line;
    char *fields[FIELDS_MAX];
    size_t count;
};

/* The next line's fields; false at the end or where the last line is not whole. */
static bool next_line(struct reading *in)
{
    char *stop = memchr(in->at, '\n', (size_t)(in->end - in->at));
    if (!stop)
        return false;
    *stop = '\0';
    in->count = 0;
    for (char *field = in->at; field && in->count < FIELDS_MAX;) {
        char *tab = strchr(field, '\t');
        if (tab)
            *tab = '\0';
        unescape(field);
        in->fields[in->count++] = field;
        field = tab ? tab + 1 : NULL;
    }
    in->at = stop + 1;
    in->line++;
    return true;
}

static int bad_line(const struct reading *in, struct error *err)
{
    return error_set(err, -EINVAL, "%s/journal, line %zu: damaged; assay bisect --abort removes it",
                     in->b->folder, in->line);
}

static int read_setting(struct reading *in, struct error *err)
{
    for (const struct bisect_setting *s = bisect_setting_table; s->name; s++) {
        char *at = (char *)&in->b->settings + s->offset;
        if (in->count < 3 || !str_eq(s->name, in->fields[1]))
            continue;
        if (s->kind == SETTING_COUNT)
            return parse_u64(in->fields[2], (uint64_t *)at, err) < 0 ? bad_line(in, err) : 0;
        if (s->kind == SETTING_SHARE)
            return parse_double(in->fields[2], (double *)at, err) < 0 ? bad_line(in, err) : 0;
        free(*(char **)at);
        *(char **)at = memory_strdup(in->fields[2]);
        return 0;
    }
    return bad_line(in, err);
}

static int read_head(struct reading *in, struct error *err)
{
    struct bisect *b = in->b;
    if (!next_line(in) || in->count != 2 || !str_eq(in->fields[0], "assay-bisect") ||
        !str_eq(in->fields[1], "2"))
        return error_set(err, -EINVAL,
                         "%s/journal is not a journal of this version of assay bisect", b->folder);
    while (next_line(in)) {
        int r = 0;
        if (str_eq(in->fields[0], "search"))
            return b->commit_count >= 2 ? 0 : bad_line(in, err);
        if (str_eq(in->fields[0], "set"))
            r = read_setting(in, err);
        else if (str_eq(in->fields[0], "commit") && in->count == 5 && strlen(in->fields[1]) >= 40)
            ARRAY_PUSH(b->commits, b->commit_count, b->commit_capacity) =
                (struct bisect_commit){.hash = memory_strdup(in->fields[1]),
                                       .is_merge = str_eq(in->fields[2], "1"),
                                       .author = memory_strdup(in->fields[3]),
                                       .subject = memory_strdup(in->fields[4])};
        else
            r = bad_line(in, err);
        if (r < 0)
            return r;
    }
    return bad_line(in, err);
}

static int read_build(struct reading *in, struct error *err)
{
    struct bisection_action action;
    uint64_t commit;
    bool unusable = str_eq(in->fields[0], "unusable");
    if (in->count != 2 || parse_u64(in->fields[1], &commit, err) < 0)
        return bad_line(in, err);
    bisection_next(&in->b->search, &action);
    bool fits = action.kind == (unusable ? BISECTION_MEASURE : BISECTION_BUILD);
    bool asked = false;
    for (size_t i = 0; fits && i < action.commit_count; i++)
        asked |= action.commits[i] == commit;
    if (!asked)
        return bad_line(in, err);
    if (unusable)
        bisection_unusable(&in->b->search, commit);
    else
        bisection_built(&in->b->search, commit, str_eq(in->fields[0], "built"));
    return 0;
}

static int read_unit(struct reading *in, struct error *err)
{
    uint64_t better;
    if (in->count != 4 || parse_u64(in->fields[2], &better, err) < 0 || better > METRIC_NEITHER)
        return bad_line(in, err);
    bisect_set_unit(in->b, in->fields[1], (enum metric_better)better);
    if (!*in->b->settings.metric) {
        free(in->b->settings.metric);
        in->b->settings.metric = memory_strdup(in->fields[3]);
        in->b->metric_chosen = true;
    }
    return 0;
}

/* A text of a commit: the number is the line's second field, the text its third. */
static int read_commit_text(struct reading *in, size_t offset, struct error *err)
{
    uint64_t commit;
    if (in->count != 3 || parse_u64(in->fields[1], &commit, err) < 0 ||
        commit >= in->b->commit_count)
        return bad_line(in, err);
    char **text = (char **)((char *)&in->b->commits[commit] + offset);
    free(*text);
    *text = memory_strdup(in->fields[2]);
    in->b->commits[commit].kernel_is_kept = in->b->commits[commit].kernel != NULL;
    return 0;
}

static int read_retry(struct reading *in, struct error *err)
{
    uint64_t commit;
    if (in->count != 2 || parse_u64(in->fields[1], &commit, err) < 0 ||
        commit >= in->b->commit_count)
        return bad_line(in, err);
    in->b->commits[commit].failed_runs++;
    return 0;
}

/* One line of a round's table. */
static int read_metric(struct reading *in, size_t step, uint32_t round, struct error *err)
{
    uint64_t numbers[4];
    double values[2];
    if (in->count != 10)
        return bad_line(in, err);
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++)
        if (parse_u64(in->fields[4 + i], &numbers[i], err) < 0)
            return bad_line(in, err);
    if (numbers[0] > METRIC_NEITHER)
        return bad_line(in, err);
    for (size_t i = 0; i < 2; i++)
        values[i] = strtod(in->fields[8 + i], NULL); /* may be nan */
    struct store_metric metric = {.name = in->fields[1],
                                  .unit = in->fields[2],
                                  .kind = in->fields[3],
                                  .facts =
                                      store_facts_of((int64_t)numbers[0], (int64_t)numbers[1])};
    const bool bounds[] = {numbers[2] != 0, numbers[3] != 0};
    bisect_keep_values(in->b, step, round, &metric, bounds, values);
    return 0;
}

static int read_round(struct reading *in, struct error *err)
{
    struct bisection_action action;
    double values[3];
    bisection_next(&in->b->search, &action);
    size_t count = in->count - 1, step = in->b->search.step_count - 1;
    if (action.kind != BISECTION_MEASURE || count != action.commit_count)
        return bad_line(in, err);
    for (size_t i = 0; i < count; i++)
        if (parse_double(in->fields[1 + i], &values[i], err) < 0 || !isfinite(values[i]))
            return bad_line(in, err);
    const struct bisect_table *table = bisect_table(in->b, step);
    uint32_t round = table ? table->round_count : 0;
    while (next_line(in) && str_eq(in->fields[0], "metric")) {
        int r = read_metric(in, step, round, err);
        if (r < 0)
            return r;
    }
    if (!str_eq(in->fields[0], "end"))
        return bad_line(in, err);
    bisection_round(&in->b->search, values);
    in->b->run_count += count;
    return 0;
}

/* Where the last whole record ends: a round without its end is none. */
static size_t whole_length(const char *text, size_t length)
{
    while (length && text[length - 1] != '\n')
        length--;
    for (size_t at = length; at;) {
        size_t start = at - 1;
        while (start && text[start - 1] != '\n')
            start--;
        if (!str_has_prefix(text + start, "round\t") && !str_has_prefix(text + start, "metric\t"))
            return at;
        at = start;
    }
    return 0;
}

int bisect_journal_read(struct bisect *b, void (*init_search)(struct bisect *b), struct error *err)
{
    CLEANUP(memory_freep) char *path = journal_path(b);
    CLEANUP(strbuf_done) struct strbuf text = {0};
    int r = file_read(path, &text, err);
    if (r == -ENOENT)
        return error_set(err, r, "there is no bisect to resume: no %s", path);
    if (r < 0)
        return r;
    size_t length = whole_length(strbuf_text(&text), text.length);
    struct reading reading = {.b = b, .at = text.data, .end = text.data + length};
    if (!length)
        return bad_line(&reading, err);
    r = read_head(&reading, err);
    if (r < 0)
        return r;
    init_search(b);
    while (r == 0 && next_line(&reading)) {
        const char *what = reading.fields[0];
        if (str_eq(what, "built") || str_eq(what, "failed") || str_eq(what, "unusable"))
            r = read_build(&reading, err);
        else if (str_eq(what, "unit"))
            r = read_unit(&reading, err);
        else if (str_eq(what, "reasons"))
            r = read_commit_text(&reading, offsetof(struct bisect_commit, reasons), err);
        else if (str_eq(what, "kernel"))
            r = read_commit_text(&reading, offsetof(struct bisect_commit, kernel), err);
        else if (str_eq(what, "stolen"))
            b->stolen_count++;
        else if (str_eq(what, "retry"))
            r = read_retry(&reading, err);
        else
            r = str_eq(what, "round") ? read_round(&reading, err) : bad_line(&reading, err);
    }
    if (r < 0)
        return r;
    b->journal_fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (b->journal_fd < 0 || ftruncate(b->journal_fd, (off_t)length) < 0)
        return error_errno(err, -errno, "%s", path);
    return 0;
}
