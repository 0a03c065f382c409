/* SPDX-License-Identifier: MIT */
/* Conversation with QEMU's monitor (its documentation: docs/interop/qmp-spec): a line of JSON for
 * each command, one for its answer, and others for events in between. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "vm/machine_internal.h"

#include <errno.h>
#include <sys/socket.h>

#define ANSWER_NS (30 * NS_PER_S)
enum { LINE_MAX_BYTES = 1 << 16 };

/* A line of the monitor's, without its end. */
static int read_line(struct vm_machine *m, struct strbuf *line, struct error *err)
{
    uint64_t deadline_ns = clock_now_ns() + ANSWER_NS;
    strbuf_clear(line);
    while (line->length < LINE_MAX_BYTES) {
        struct pollfd watched = {.fd = m->monitor, .events = POLLIN};
        char c;
        int ready = process_poll_fds(&watched, 1, deadline_ns, true);
        if (process_signals_caught())
            return error_set(err, -EINTR, "interrupted");
        if (ready <= 0 && clock_now_ns() >= deadline_ns)
            return vm_machine_broken(m, -ETIMEDOUT, "did not answer its monitor in time", err);
        ssize_t got = ready > 0 ? read(m->monitor, &c, 1) : -1;
        if (got == 0 || (got < 0 && ready > 0 && errno != EINTR))
            return vm_machine_broken(m, -EPIPE, "did not start", err);
        if (got == 1 && c == '\n')
            return 0;
        if (got == 1)
            strbuf_putc(line, c);
    }
    return vm_machine_broken(m, -EPROTO, "gave an invalid answer to its monitor", err);
}

int vm_monitor_ask(struct vm_machine *m, const char *command, struct strbuf *answer,
                   struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf line = {0};
    CLEANUP(memory_freep) char *text = memory_printf("%s\n", command);
    if (send(m->monitor, text, strlen(text), MSG_NOSIGNAL) < 0)
        return vm_machine_broken(m, -EPIPE, "did not start", err);
    for (;;) {
        int r = read_line(m, &line, err);
        if (r < 0)
            return r;
        if (str_has_prefix(strbuf_text(&line), "{\"error\"")) {
            CLEANUP(memory_freep)
            char *what = memory_printf("refused %s: %.300s", command, strbuf_text(&line));
            return vm_machine_broken(m, -EPROTO, what, err);
        }
        if (!str_has_prefix(strbuf_text(&line), "{\"return\""))
            continue; /* an event */
        if (answer) {
            strbuf_clear(answer);
            strbuf_puts(answer, strbuf_text(&line));
        }
        return 0;
    }
}

int vm_monitor_open(struct vm_machine *m, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf greeting = {0};
    int r = read_line(m, &greeting, err);
    if (r == 0)
        r = vm_monitor_ask(m, "{\"execute\":\"qmp_capabilities\"}", NULL, err);
    /* The memory is a file of its own: it does not have to be written and read. */
    if (r == 0)
        r = vm_monitor_ask(m,
                           "{\"execute\":\"migrate-set-capabilities\",\"arguments\":{"
                           "\"capabilities\":[{\"capability\":\"x-ignore-shared\",\"state\":true}"
                           "]}}",
                           NULL, err);
    return r;
}
