/* SPDX-License-Identifier: MIT */
/* Progress in a log: standard error is a file here. */
#include "base/term.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* What three calls within a minute write that begin so many seconds after the start. */
static void log_after(uint64_t seconds, const char *log_as, struct strbuf *ret_text)
{
    char path[] = "/tmp/assay-term-XXXXXX";
    int fd = mkstemp(path), kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    struct progress p;
    struct error err;
    fflush(stderr);
    dup2(fd, STDERR_FILENO);
    progress_start(&p);
    p.log_as = log_as;
    p.start_ns -= seconds * NS_PER_S;
    for (int i = 0; i < 3; i++)
        progress_show(&p, "round %d", i);
    progress_end(&p);
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(fd);
    CHECK_INT(file_read(path, ret_text, &err), 0);
    unlink(path);
}

TEST(a_log_gets_a_line_a_minute)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    log_after(61, "assay run", &text);
    CHECK_STR(strbuf_text(&text), "assay run: round 0\n");
    strbuf_clear(&text);
    log_after(59, "assay run", &text);
    CHECK_STR(strbuf_text(&text), "");
    log_after(61, NULL, &text);
    CHECK_STR(strbuf_text(&text), "");
}
