/* SPDX-License-Identifier: MIT */
/* assay-move: every way of moving messages from one process to another, with the copies proven. */
#include "base/completion.h"
#include "base/memory.h"
#include "base/options.h"
#include "config.h"
#include "ping.h"
#include "prove.h"
#include "report.h"
#include "run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

#define O(field) offsetof(struct settings, field)

static const struct option table[] = {
    {.kind = OPTION_HEADING, .help = "What to move, and how"},
    {'v', "variant", OPTION_STRING, O(variant_name), "NAME",
     "how to send, or SEND/RECEIVE; --list shows them (send)",
     "!assay-move --list | tail -n +2 | cut -d\" \" -f1"},
    {'r', "receive", OPTION_STRING, O(receive_name), "NAME", "how to receive (recv-big)", NULL},
    {'t', "transport", OPTION_STRING, O(transport_name), "KIND",
     "tcp, unix, udp, pipe, shm or veth (tcp where possible)", "tcp unix udp pipe shm veth"},
    {'s', "size", OPTION_BYTES, O(size), "BYTES", "size of a message (4096)", NULL},
    {'n', "threads", OPTION_U64, O(threads), "N",
     "number of connections, each with a thread on both sides (1)", NULL},
    {0, "fields", OPTION_U64, O(fields), "N", "pieces of a message, for variants that use them (8)",
     NULL},
    {0, "batch", OPTION_U64, O(batch), "K", "messages per call, for variants that batch (16)",
     NULL},
    {0, "pieces", OPTION_U64, O(pieces), "N", "number of buffers in the iovec variants (1000)",
     NULL},
    {.kind = OPTION_HEADING, .help = "How to measure"},
    {'S', "seconds", OPTION_SECONDS, O(seconds_ns), "S", "how long to measure (2)", NULL},
    {0, "warmup", OPTION_SECONDS, O(warmup_ns), "S", "warm-up time (0.3)", NULL},
    {0, "pin", OPTION_STRING, O(pin), "HOW",
     "none, spread, same, or CPU lists as SENDERS:RECEIVERS (none)", "none spread same"},
    {0, "verify", OPTION_FLAG, O(verify), NULL, "number every message and check it", NULL},
    {0, "no-trace", OPTION_FLAG, O(no_trace), NULL,
     "do not count calls and copies after the measured time", NULL},
    {0, "ping", OPTION_OPTIONAL, O(ping), "HOW",
     "measure round trips instead of a stream; HOW: spin, busypoll, nagle, quickack", NULL},
    {0, "rate", OPTION_U64, O(rate), "N",
     "--ping: round trips per second, on a schedule (each after the previous one)", NULL},
    {.kind = OPTION_HEADING, .help = "The sockets"},
    {0, "cc", OPTION_STRING, O(cc), "NAME",
     "TCP congestion control; fair: cubic if permitted (system: the system's default)",
     "system fair cubic reno bbr"},
    {0, "buffer", OPTION_BYTES, O(buffer_bytes), "BYTES",
     "socket buffers or pipe size (the system's)", NULL},
    {0, "receive-size", OPTION_BYTES, O(receive_bytes), "BYTES",
     "size of one receive (chosen by the receive side)", NULL},
    {.kind = OPTION_HEADING, .help = "Between hosts"},
    {0, "listen", OPTION_STRING, O(listen_address), "[HOST:]PORT",
     "receive from senders that connect", NULL},
    {0, "once", OPTION_FLAG, O(once), NULL, "exit after one run", NULL},
    {0, "connect", OPTION_STRING, O(connect_address), "HOST:PORT", "send to a listening assay-move",
     NULL},
    {.kind = OPTION_HEADING, .help = "Output"},
    {0, "list", OPTION_FLAG, O(list), NULL, "list the variants and what each claims", NULL},
    {0, "prove", OPTION_OPTIONAL, O(prove), "WAYS",
     "check the claims: completions,aliasing,bpf,profile (all)", NULL},
    {0, "json", OPTION_FLAG, O(json), NULL, "print JSON", NULL},
    {0, "completion", OPTION_STRING, O(completion), "SHELL",
     "print the completion script for a shell", "bash zsh fish"},
    {0},
};

static const struct verb verb_move = {
    .name = "move",
    .summary = "Move messages from one process to another, and measure what that costs",
    .synopsis = "[options]",
    .examples = "  assay-move --variant send --size 64\n"
                "  assay-move --variant zerocopy --size 64k --threads 2 --cc fair\n"
                "  assay-move --variant batch-send --batch 32 --size 512 --verify\n"
                "  assay-move --ping --transport unix --size 64 --rate 10000\n"
                "  assay-move --prove\n"
                "  assay-move --listen 5300        (on one host)\n"
                "  assay-move --connect HOST:5300  (on another)\n",
    .options = table,
};

static int fail(const struct error *err, int exit_code)
{
    CLEANUP(strbuf_done) struct strbuf safe = {0};
    fflush(stdout);
    strbuf_put_safe(&safe, err->message, strlen(err->message), SIZE_MAX);
    fprintf(stderr, "assay-move: %s\n", strbuf_text(&safe));
    if (exit_code == 2)
        fputs("Try 'assay-move --help'.\n", stderr);
    return exit_code;
}

static int help(void)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    options_help(&verb_move, &text);
    /* The table's help speaks of "assay move", this program is "assay-move". */
    char *name = strstr(text.data, "assay move");
    if (name)
        name[5] = '-';
    fputs(text.data, stdout);
    return 0;
}

static const char *copies_text(enum copies c)
{
    static const char *const words[] = {"none", "one", "two", "if refused", "some", "-"};
    return words[c];
}

static int list(void)
{
    static const char *const roles[] = {"send", "receive", "alone"};
    printf("%-18s %-8s %-11s %-8s %s\n", "variant", "side", "send copies", "receive", "");
    for (size_t i = 0; variants[i]; i++) {
        const struct variant *v = variants[i];
        if (!v->hidden)
            printf("%-18s %-8s %-11s %-8s %s\n", v->name, roles[v->role],
                   copies_text(v->claim.send), copies_text(v->claim.receive), v->summary);
    }
    return 0;
}

static int completion(const char *shell, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    struct completion c = {.program = "assay-move", .only = &verb_move, .words = ""};
    if (completion_write(&out, &c, shell, err) < 0)
        return fail(err, 2);
    fputs(strbuf_text(&out), stdout);
    return 0;
}

static int run(const struct settings *s)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    struct error err = {0};
    struct run_result result;
    struct figures figures;
    int r = s->connect_address ? run_connect(s, &result, &err) : run_here(s, &result, &err);
    if (r < 0)
        return fail(&err, 1);
    figures_from(s, &result, &figures);
    if (s->json)
        report_json(s, &result, &figures, &text);
    else
        report_text(s, &result, &figures, &text);
    fputs(strbuf_text(&text), stdout);
    report_metrics(&figures);
    return 0;
}

static int ping(struct settings *s)
{
    struct error err = {0};
    struct ping_how how;
    CLEANUP(memory_freep) struct ping_result *result = memory_zalloc(1, sizeof(*result));
    if (settings_check_ping(s, &err) < 0 || ping_how_parse(s->ping, &how, &err) < 0)
        return fail(&err, 2);
    if (ping_run(s, result, &err) < 0)
        return fail(&err, 1);
    ping_report(s, result);
    return 0;
}

int main(int argc, char **argv)
{
    struct settings s;
    struct error err = {0};
    settings_defaults(&s);
    signal(SIGPIPE, SIG_IGN);
    if (argc > 1 && str_eq(argv[1], "--version")) {
        printf("assay-move %s\n", ASSAY_VERSION);
        return 0;
    }
    int first = options_parse(table, &s, argc, argv, &err);
    if (first < 0)
        return fail(&err, 2);
    if (first == OPTIONS_HELP)
        return help();
    if (first < argc) {
        error_set(&err, -EINVAL, "unexpected argument '%s'", argv[first]);
        return fail(&err, 2);
    }
    if (s.list)
        return list();
    if (s.completion)
        return completion(s.completion, &err);
    if (s.listen_address)
        return run_listen(&s, &err) < 0 ? fail(&err, 1) : 0;
    if (s.prove) {
        size_t contradictions = 0;
        int r = prove(&s, &contradictions, &err);
        return r < 0 ? fail(&err, 2) : contradictions ? 1 : 0;
    }
    if (s.rate && !s.ping) {
        error_set(&err, -EINVAL, "--rate needs --ping");
        return fail(&err, 2);
    }
    int code = s.ping ? ping(&s) : settings_check(&s, &err) < 0 ? fail(&err, 2) : run(&s);
    settings_done(&s);
    return code;
}
