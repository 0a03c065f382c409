/* SPDX-License-Identifier: MIT */
/* `assay sched` and `assay locks`: tables and JSON. */
#include "base/measured.h"
#include "base/utf8.h"
#include "report/bill/threads.h"

#include <stdio.h>

enum { NAME_MOST = 60, LABEL = 22 };

static const char *thread_name(const struct timeline *t, uint32_t thread)
{
    const struct timeline_thread *s = &t->threads[thread];
    return s->piece_count ? t->names.items[s->pieces[s->piece_count - 1].name] : "?";
}

static void put_time(struct strbuf *out, uint64_t ns)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    strbuf_put_measured(&text, (double)ns, "ns");
    size_t width = str_columns(strbuf_text(&text));
    strbuf_pad(out, ' ', width < 11 ? 11 - width : 1);
    strbuf_puts(out, strbuf_text(&text));
}

/* "other programs: cc1 12 ms, make 3 ms". */
static void put_delayers(struct strbuf *out, const struct timeline *t,
                         const struct schedule_thread *s, size_t most)
{
    for (size_t i = 0; i < s->delayer_count && i < most; i++) {
        const struct schedule_delayer *d = &s->delayers[i];
        const char *name = t->names.items[d->name];
        strbuf_puts(out, i ? ", " : "  ");
        strbuf_put_safe(out, name, strlen(name), NAME_MOST);
        strbuf_puts(out, d->is_own ? " (own) " : " ");
        strbuf_put_measured(out, (double)d->ns, "ns");
    }
    if (s->delayer_count > most)
        strbuf_printf(out, ", %zu more", s->delayer_count - most);
}

void report_schedule_text(struct strbuf *out, const struct schedule *s, const struct timeline *t,
                          bool all)
{
    enum { ROWS = 30 };
    uint64_t runs = 0, ready = 0;
    strbuf_printf(out, "%-*s %10s %10s %7s %10s %10s %10s %5s  %s\n", LABEL, "thread", "ran",
                  "delayed", "times", "mean", "longest", "waited", "moved", "delayed by");
    for (size_t i = 0; i < s->count; i++) {
        const struct schedule_thread *r = &s->threads[i];
        char label[64];
        runs += r->runs_ns;
        ready += r->ready_ns;
        if (i >= ROWS && !all)
            continue;
        snprintf(label, sizeof(label), "%.15s %u", thread_name(t, r->thread),
                 t->threads[r->thread].tid);
        size_t before = out->length;
        strbuf_put_safe(out, label, strlen(label), LABEL);
        size_t width = out->length - before;
        strbuf_pad(out, ' ', width < LABEL ? LABEL - width : 0);
        put_time(out, r->runs_ns);
        put_time(out, r->ready_ns);
        strbuf_printf(out, " %7llu", (unsigned long long)r->delays);
        put_time(out, r->delays ? r->ready_ns / r->delays : 0);
        put_time(out, r->ready_max_ns);
        put_time(out, r->waits_ns);
        strbuf_printf(out, " %5llu", (unsigned long long)r->migrations);
        put_delayers(out, t, r, 3);
        strbuf_putc(out, '\n');
    }
    if (s->count > ROWS && !all)
        strbuf_printf(out, "%zu more %s (--all)\n", s->count - ROWS,
                      plural(s->count - ROWS, "thread", "threads"));
    strbuf_printf(out, "\n%zu %s ran for ", s->count, plural(s->count, "thread", "threads"));
    strbuf_put_measured(out, (double)runs, "ns");
    strbuf_printf(out, " in all, and %s ready without a CPU for ", plural(s->count, "was", "were"));
    strbuf_put_measured(out, (double)ready, "ns");
    strbuf_puts(out, "; wall time ");
    strbuf_put_measured(out, (double)(t->end_ns - t->start_ns), "ns");
    strbuf_putc(out, '\n');
}

void report_schedule_json(struct json *j, const struct schedule *s, const struct timeline *t)
{
    json_u64(j, "wall_ns", t->end_ns - t->start_ns);
    json_array(j, "threads");
    for (size_t i = 0; i < s->count; i++) {
        const struct schedule_thread *r = &s->threads[i];
        json_object(j, NULL);
        json_string(j, "name", thread_name(t, r->thread));
        json_u64(j, "pid", t->threads[r->thread].pid);
        json_u64(j, "tid", t->threads[r->thread].tid);
        json_u64(j, "ran_ns", r->runs_ns);
        json_u64(j, "turns", r->turns);
        json_u64(j, "delayed_ns", r->ready_ns);
        json_u64(j, "delays", r->delays);
        json_u64(j, "delay_max_ns", r->ready_max_ns);
        json_u64(j, "preempted", r->preempted);
        json_u64(j, "waited_ns", r->waits_ns);
        json_u64(j, "migrations", r->migrations);
        json_array(j, "delayed_by");
        for (size_t k = 0; k < r->delayer_count; k++) {
            json_object(j, NULL);
            json_string(j, "name", t->names.items[r->delayers[k].name]);
            json_bool(j, "own", r->delayers[k].is_own);
            json_u64(j, "ns", r->delayers[k].ns);
            json_end(j);
        }
        json_end(j);
        json_end(j);
    }
    json_end(j);
}

void report_contention_text(struct strbuf *out, const struct contention *c, bool all)
{
    enum { ROWS = 30 };
    if (!c->count) {
        strbuf_puts(out, "no thread waited for a lock\n");
        return;
    }
    strbuf_printf(out, "%11s %7s %10s %10s  %s\n", "waited", "times", "mean", "longest",
                  "waiter, lock, handed over by");
    for (size_t i = 0; i < c->count && (all || i < ROWS); i++) {
        const struct contention_lock *l = &c->locks[i];
        put_time(out, l->ns);
        strbuf_printf(out, " %7llu", (unsigned long long)l->waits);
        put_time(out, l->ns / l->waits);
        put_time(out, l->max_ns);
        strbuf_puts(out, "  ");
        strbuf_put_safe(out, l->waiter, strlen(l->waiter), 16);
        strbuf_puts(out, l->is_kernel ? ": lock of the kernel, in " : ": ");
        strbuf_put_safe(out, l->wanted, strlen(l->wanted), 2 * NAME_MOST);
        if (l->address)
            strbuf_printf(out, " (at 0x%llx)", (unsigned long long)l->address);
        if (l->giver) {
            strbuf_puts(out, ", by ");
            strbuf_put_safe(out, l->giver, strlen(l->giver), 16);
        }
        strbuf_putc(out, '\n');
    }
    if (c->count > ROWS && !all)
        strbuf_printf(out, "%zu more (--all shows them)\n", c->count - ROWS);
    strbuf_puts(out, "\nall threads together waited ");
    strbuf_put_measured(out, (double)c->ns, "ns");
    strbuf_puts(out, " for locks\n");
}

void report_contention_json(struct json *j, const struct contention *c)
{
    json_u64(j, "waited_ns", c->ns);
    json_array(j, "locks");
    for (size_t i = 0; i < c->count; i++) {
        const struct contention_lock *l = &c->locks[i];
        json_object(j, NULL);
        json_string(j, "waiter", l->waiter);
        json_string(j, "wanted", l->wanted);
        json_bool(j, "kernel", l->is_kernel);
        json_u64(j, "address", l->address);
        json_string(j, "handed_over_by", l->giver);
        json_u64(j, "waits", l->waits);
        json_u64(j, "waited_ns", l->ns);
        json_u64(j, "max_ns", l->max_ns);
        json_end(j);
    }
    json_end(j);
}
