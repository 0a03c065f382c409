/* SPDX-License-Identifier: MIT */
/* A comparison as a mail in the form of the kernel test robot's: see compare.h. */
#include "base/memory.h"
#include "report/text/compare.h"

#include <math.h>
#include <stdlib.h>

/* The headline that changed most, else the first one; NULL where there is none. */
static const struct compare_row *find_headline(const struct compare *c)
{
    const struct compare_row *found = NULL;
    for (size_t i = 0; i < c->row_count; i++) {
        const struct compare_row *row = &c->rows[i];
        if (!row->judged.headline || !row->judged.is_there)
            continue;
        bool is_larger =
            found && row->judged.changed &&
            (!found->judged.changed || fabs(compare_change(row)) > fabs(compare_change(found)));
        if (!found || is_larger)
            found = row;
    }
    return found;
}

static void put_change(struct strbuf *out, const struct compare_row *row)
{
    double change = compare_change(row);
    strbuf_puts(out, row->metric->name);
    if (!row->judged.changed)
        strbuf_puts(out, " unchanged");
    else if (isfinite(change))
        strbuf_printf(out, " %+.1f %%", 100 * change);
}

void report_compare_subject(struct strbuf *out, const struct compare *c)
{
    const struct compare_row *row = find_headline(c);
    strbuf_printf(out, "%s: ", c->base->experiment.name);
    if (row)
        put_change(out, row);
    else
        strbuf_puts(out, "comparison");
}

static void put_commit(struct strbuf *out, const struct compare_side *s, const char *word)
{
    strbuf_printf(out, "%s %s (\"", word, s->name);
    strbuf_put_safe(out, s->subject, strlen(s->subject), 300);
    strbuf_puts(out, "\")\n");
}

static void put_machine(struct strbuf *out, const struct dataset *d)
{
    CLEANUP(memory_freep) char *arch = compare_vm_fact(d, "arch");
    CLEANUP(memory_freep) char *cpu = compare_vm_fact(d, "cpu");
    CLEANUP(memory_freep) char *cpus = compare_vm_fact(d, "cpus");
    CLEANUP(memory_freep) char *memory = compare_vm_fact(d, "memory_bytes");
    CLEANUP(memory_freep) char *words = compare_vm_fact(d, "kernel_words");
    CLEANUP(memory_freep) char *append = compare_vm_fact(d, "append");
    if (!arch || !cpu || !cpus || !memory)
        return;
    strbuf_printf(out,
                  "test machine: emulated (QEMU, %s, %s), %s CPU%s, %llu MiB of memory, kernel "
                  "command line: %s%s%s\n",
                  arch, cpu, cpus, atoi(cpus) == 1 ? "" : "s", strtoull(memory, NULL, 10) >> 20,
                  words ? words : "", append ? " " : "", append ? append : "");
}

static void put_parameters(struct strbuf *out, const struct compare *c, size_t pair)
{
    const struct dataset *d = c->base;
    bool any = false;
    for (size_t f = 0; f < d->factor_count; f++) {
        const char *base = d->cells[c->pairs[pair].base_cell].levels[f];
        if (c->within && !str_eq(base, c->new->cells[c->pairs[pair].new_cell].levels[f]))
            continue;
        strbuf_printf(out, "%s\t%s: %s\n", any ? "" : "parameters:\n\n", d->factors[f], base);
        any = true;
    }
}

void report_compare_mail(struct strbuf *out, const struct compare_view *v, const char *functions)
{
    const struct compare *c = v->c;
    const struct compare_row *row = find_headline(c);
    size_t pair = row ? row->pair : 0;
    CLEANUP(compare_side_done) struct compare_side base = {0}, new = {0};
    strbuf_puts(out, "Hello,\n\n");
    if (row) {
        strbuf_puts(out, "assay measured: ");
        put_change(out, row);
        strbuf_printf(out, "\n(%s)\n", row->judged.verdict.text);
    }
    if (c->pair_count) {
        compare_side_find(&base, c, pair, false);
        compare_side_find(&new, c, pair, true);
        strbuf_putc(out, '\n');
        put_commit(out, &new, "commit:");
        put_commit(out, &base, "compared with:");
    }
    strbuf_printf(out, "\ntestcase: %s\n", c->base->experiment.name);
    put_machine(out, c->base);
    if (c->pair_count)
        put_parameters(out, c, pair);
    strbuf_puts(out, "\nWhat is needed to reproduce it is attached.\n\nDetails are as below:\n\n");
    report_compare_lkp(out, v);
    if (*functions)
        strbuf_printf(
            out,
            "\nWhich functions account for it; the changes add up to that of the whole:\n\n"
            "%s",
            functions);
}
