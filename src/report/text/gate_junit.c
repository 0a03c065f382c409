/* SPDX-License-Identifier: MIT */
/*
 * What a gate found as JUnit XML, which most CI systems show: a test for each metric and cell.  A
 * regression is a failure, runs that failed are an error; what cannot be told is skipped, with the
 * reason.
 */
#include "report/text/gate.h"

#include "base/memory.h"

static void put_escaped(struct strbuf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '&')
            strbuf_puts(out, "&amp;");
        else if (*text == '<')
            strbuf_puts(out, "&lt;");
        else if (*text == '>')
            strbuf_puts(out, "&gt;");
        else if (*text == '"')
            strbuf_puts(out, "&quot;");
        else if ((unsigned char)*text < ' ') /* XML has no way to write most of them */
            strbuf_putc(out, ' ');
        else
            strbuf_putc(out, *text);
    }
}

static bool is_undecided(const struct gate_result_set *set, const struct gate_row *row)
{
    return set->control_failed || row->set_aside || row->result == GATE_INCONCLUSIVE;
}

static void put_change(struct strbuf *out, const struct gate_row *row)
{
    CLEANUP(strbuf_done) struct strbuf change = {0};
    gate_put_interval(&change, &row->change.comparison, row->unit);
    put_escaped(out, strbuf_text(&change));
}

static void put_case(struct strbuf *out, const struct gate_result_set *set,
                     const struct gate_row *row)
{
    strbuf_puts(out, "    <testcase classname=\"assay.gate\" name=\"");
    put_escaped(out, row->metric);
    strbuf_puts(out, row->cell[0] ? ", " : "");
    put_escaped(out, row->cell);
    strbuf_puts(out, "\">\n");
    if (is_undecided(set, row))
        strbuf_printf(out, "      <skipped message=\"%s\"/>\n",
                      set->control_failed ? "the base differs from itself on this machine"
                      : row->set_aside    ? "wall time cannot tell; CPU time was judged instead"
                                          : "cannot tell: more rounds would be needed");
    else if (row->result == GATE_REGRESSION) {
        strbuf_puts(out, "      <failure type=\"regression\" message=\"");
        put_change(out, row);
        strbuf_printf(out, ", at most %.3g %% worse allowed\"/>\n", 100 * row->limit);
    }
    strbuf_puts(out, "      <system-out>");
    put_change(out, row);
    strbuf_printf(out, " in %zu %s</system-out>\n    </testcase>\n",
                  row->change.comparison.base_count,
                  plural(row->change.comparison.base_count, "round", "rounds"));
}

static void put_failure(struct strbuf *out, const struct gate_failure *f)
{
    strbuf_puts(out, "    <testcase classname=\"assay.gate\" name=\"");
    put_escaped(out, f->cell);
    strbuf_printf(out, "\">\n      <error message=\"%zu of %zu %s failed\"/>\n    </testcase>\n",
                  f->failed_count, f->run_count, plural(f->run_count, "run", "runs"));
}

void gate_write_junit(struct strbuf *out, const struct gate_result_set *set)
{
    size_t failures = 0, skipped = 0;
    for (size_t i = 0; i < set->count; i++) {
        skipped += is_undecided(set, &set->rows[i]);
        failures += !is_undecided(set, &set->rows[i]) && set->rows[i].result == GATE_REGRESSION;
    }
    strbuf_printf(out,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
                  "  <testsuite name=\"assay gate\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\""
                  " skipped=\"%zu\">\n",
                  set->count + set->failure_count, failures, set->failure_count, skipped);
    for (size_t i = 0; i < set->count; i++)
        put_case(out, set, &set->rows[i]);
    for (size_t i = 0; i < set->failure_count; i++)
        put_failure(out, &set->failures[i]);
    strbuf_puts(out, "  </testsuite>\n</testsuites>\n");
}
