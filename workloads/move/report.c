/* SPDX-License-Identifier: MIT */
/* Figures of a run: see report.h. */
#include "report.h"
#include "base/json.h"
#include "base/memory.h"
#include "cc.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void add(struct figures *f, const char *name, double value, const char *unit,
                const char *words)
{
    if (!isfinite(value))
        return;
    assert(f->count < FIGURES_MAX);
    f->list[f->count++] = (struct figure){name, unit, value, words};
}

double figures_get(const struct figures *f, const char *name)
{
    for (size_t i = 0; i < f->count; i++)
        if (str_eq(f->list[i].name, name))
            return f->list[i].value;
    return NAN;
}

/* How a number grew between two marks. */
#define GREW(result, from, to, member) \
    ((double)((result)->marks[to].member - (result)->marks[from].member))

/* System calls: traced from outside where that worked, else as the loop counted them. */
static double calls_per_message(const struct side_result *r)
{
    if (r->calls_traced && GREW(r, 2, 3, messages) > 0)
        return GREW(r, 2, 3, traced_calls) / GREW(r, 2, 3, messages);
    return GREW(r, 0, 1, calls) / GREW(r, 0, 1, messages);
}

struct side_names {
    const char *kb, *message, *calls, *switches, *words_kb, *words_message, *words_calls,
        *words_switches;
};

static const struct side_names send_names = {"send_cpu_ns_per_kb",
                                             "send_cpu_ns_per_message",
                                             "send_calls_per_message",
                                             "send_switches_per_message",
                                             "sender's CPU per KB",
                                             "sender's CPU per message",
                                             "sender's system calls per message",
                                             "sender's context switches per message"};
static const struct side_names receive_names = {"receive_cpu_ns_per_kb",
                                                "receive_cpu_ns_per_message",
                                                "receive_calls_per_message",
                                                "receive_switches_per_message",
                                                "receiver's CPU per KB",
                                                "receiver's CPU per message",
                                                "receiver's system calls per message",
                                                "receiver's context switches per message"};

static void add_side(struct figures *f, const struct side_result *r, const struct side_names *n)
{
    double messages = GREW(r, 0, 1, messages), kb = GREW(r, 0, 1, bytes) / 1024;
    add(f, n->kb, GREW(r, 0, 1, cpu_ns) / kb, "ns", n->words_kb);
    add(f, n->message, GREW(r, 0, 1, cpu_ns) / messages, "ns", n->words_message);
    add(f, n->calls, calls_per_message(r), "calls", n->words_calls);
    add(f, n->switches, GREW(r, 0, 1, switches) / messages, "switches", n->words_switches);
}

static void add_zerocopy(struct figures *f, const struct side_result *send)
{
    /* All of them, also those that came after the last mark: each is a fact. */
    double granted = (double)send->end.granted, refused = (double)send->end.refused;
    if (granted + refused == 0)
        return;
    add(f, "zerocopy_granted", granted, "sends", "zero-copy sends granted");
    add(f, "zerocopy_refused", refused, "sends", "zero-copy sends copied anyway");
    add(f, "zerocopy_granted_share", 100 * granted / (granted + refused), "%",
        "share of zero-copy that was granted");
}

void figures_from(const struct settings *s, const struct run_result *r, struct figures *f)
{
    bool alone = s->send->role == ROLE_ALONE;
    const struct side_result *sent = &r->send, *got = alone ? sent : &r->receive;
    double seconds = GREW(got, 0, 1, t_ns) / 1e9;
    *f = (struct figures){0};
    add(f, "throughput", 8 * GREW(got, 0, 1, bytes) / seconds / 1e9, "Gbit/s", "throughput");
    add(f, "messages", GREW(got, 0, 1, messages), "msg", "messages in the measured time");
    add(f, "messages_per_second", GREW(got, 0, 1, messages) / seconds, "msg/s", "messages");
    add_side(f, sent, &send_names);
    if (!alone)
        add_side(f, got, &receive_names);
    double kb = GREW(got, 0, 1, bytes) / 1024;
    add(f, "cpu_ns_per_kb", (GREW(sent, 0, 1, cpu_ns) + (alone ? 0 : GREW(got, 0, 1, cpu_ns))) / kb,
        "ns", "both sides' CPU per KB");
    add(f, "context_switches_per_second",
        (GREW(sent, 0, 1, switches) + (alone ? 0 : GREW(got, 0, 1, switches))) / seconds,
        "switches/s", "context switches");
    /* A datagram in one piece is copied past the tracepoint, and a pipe has none. */
    if (got->copies_traced && GREW(got, 2, 3, bytes) > 0 &&
        s->transport & TRANSPORT_STREAM_SOCKETS && !(s->receive && s->receive->untraced))
        add(f, "receive_copied_per_byte", GREW(got, 2, 3, copied_bytes) / GREW(got, 2, 3, bytes),
            "B/B", "bytes copied per byte on receive");
    add_zerocopy(f, sent);
    double mapped = alone ? 0 : (double)got->end.granted;
    if (!alone && mapped + (double)got->end.refused > 0)
        add(f, "receive_mapped_share", 100 * mapped / (mapped + (double)got->end.refused), "%",
            "bytes mapped instead of copied on receive");
    if (sent->tcp) {
        add(f, "segment_bytes", GREW(sent, 0, 1, segment_bytes) / GREW(sent, 0, 1, segments), "B",
            "average segment");
        add(f, "retransmits", GREW(sent, 0, 1, retransmits), "segments", "retransmitted");
    }
    if (sent->end.waits)
        add(f, "buffer_waits", (double)sent->end.waits, "waits", "waits for a free buffer");
    if (s->transport == TRANSPORT_UDP && !alone)
        add(f, "delivered", 100 * (double)got->end.messages / (double)sent->end.messages, "%",
            "datagrams that arrived");
    if (s->cc_fair)
        add(f, "fair_cc_is_cubic", s->cc ? 100 : 0, "%",
            "share of connections that use cubic (--cc fair)");
    if (s->verify)
        add(f, "verified", (double)got->verified, "messages", "messages verified");
}

static const char *calls_how(const struct side_result *r)
{
    return r->calls_traced ? "the raw_syscalls tracepoint" : "the loop's own count";
}

static void put_congestion_control(const struct settings *s, struct strbuf *out)
{
    char name[CC_NAME_BYTES];
    if (!(s->transport & TRANSPORT_STREAMS_TCP) || !*cc_in_force(s, name))
        return;
    strbuf_printf(out, "congestion control: %s%s\n", name,
                  s->cc        ? ""
                  : s->cc_fair ? ", the system's default: no permission to choose " CC_FAIR
                               : ", the system's default");
}

static void put_notes(const struct settings *s, const struct run_result *r, const struct figures *f,
                      struct strbuf *out)
{
    bool alone = s->send->role == ROLE_ALONE;
    strbuf_printf(out, "claimed copies (--prove checks them): sending: %s", s->send->claim.words);
    if (!alone)
        strbuf_printf(out, "; receiving: %s", s->receive->claim.words);
    strbuf_putc(out, '\n');
    strbuf_printf(out, "system calls: by %s%s\n", calls_how(&r->send),
                  s->no_trace ? "" : ", in a separate window after the measured one");
    put_congestion_control(s, out);
    if (!alone && !s->no_trace && !r->receive.copies_traced &&
        s->transport & TRANSPORT_STREAM_SOCKETS)
        strbuf_puts(out, "copied bytes: not counted (BPF on tracepoints needs root); --prove shows "
                         "what it can without it\n");
    double share = figures_get(f, "zerocopy_granted_share");
    if (share < 50)
        strbuf_puts(out, "zero-copy was requested but refused: the kernel copied anyway\n");
    uint64_t busy = alone ? s->threads : 2 * s->threads;
    if (r->send.cpus && busy > r->send.cpus)
        strbuf_printf(out, "oversubscribed: %llu threads on %llu CPUs\n", (unsigned long long)busy,
                      (unsigned long long)r->send.cpus);
}

void report_text(const struct settings *s, const struct run_result *r, const struct figures *f,
                 struct strbuf *out)
{
    char size[32], wall[32];
    format_bytes((double)s->size, size, sizeof(size));
    format_duration(GREW(s->receive ? &r->receive : &r->send, 0, 1, t_ns), wall, sizeof(wall));
    strbuf_printf(out, "%s%s%s over %s: %s messages, %llu thread%s, %s\n\n", s->send->name,
                  s->receive ? " → " : "", s->receive ? s->receive->name : "",
                  transport_text(s->transport), size, (unsigned long long)s->threads,
                  s->threads == 1 ? "" : "s", wall);
    for (size_t i = 0; i < f->count; i++) {
        const struct figure *g = &f->list[i];
        char number[48];
        if (g->value >= 1000)
            format_thousands((uint64_t)llround(g->value), number, sizeof(number));
        else
            snprintf(number, sizeof(number), "%.4g", g->value);
        strbuf_printf(out, "%16s %-10s %s\n", number, g->unit, g->words);
    }
    strbuf_putc(out, '\n');
    put_notes(s, r, f, out);
}

void report_json(const struct settings *s, const struct run_result *r, const struct figures *f,
                 struct strbuf *out)
{
    struct json j = {.out = out};
    json_object(&j, NULL);
    json_string(&j, "variant", s->send->name);
    json_string(&j, "receive", s->receive ? s->receive->name : NULL);
    json_string(&j, "transport", transport_text(s->transport));
    char cc[CC_NAME_BYTES];
    json_string(&j, "congestion_control",
                s->transport & TRANSPORT_STREAMS_TCP && *cc_in_force(s, cc) ? cc : NULL);
    json_u64(&j, "size", s->size);
    json_u64(&j, "threads", s->threads);
    json_u64(&j, "fields", s->fields);
    json_u64(&j, "batch", s->batch);
    json_u64(&j, "cpus", r->send.cpus);
    json_string(&j, "claim_send", s->send->claim.words);
    json_string(&j, "claim_receive", s->receive ? s->receive->claim.words : NULL);
    json_string(&j, "calls_counted_by", r->send.calls_traced ? "tracepoint" : "loop");
    json_bool(&j, "copies_counted", r->receive.copies_traced);
    json_object(&j, "metrics");
    for (size_t i = 0; i < f->count; i++)
        json_double(&j, f->list[i].name, f->list[i].value);
    json_end(&j);
    json_object(&j, "units");
    for (size_t i = 0; i < f->count; i++)
        json_string(&j, f->list[i].name, f->list[i].unit);
    json_end(&j);
    json_end(&j);
    strbuf_putc(out, '\n');
}

void report_metrics(const struct figures *f)
{
    const char *number = getenv("ASSAY_METRICS_FD");
    uint64_t fd;
    if (!number || parse_u64(number, &fd, NULL) < 0)
        return;
    for (size_t i = 0; i < f->count; i++)
        dprintf((int)fd, "assay.metric %s %.9g %s\n", f->list[i].name, f->list[i].value,
                f->list[i].unit);
}
