/* SPDX-License-Identifier: MIT */
/* `assay explain COMMAND`: the bill of one command. */
#include "cmd/explain_bill.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "report/bill/bill.h"

#include <stdio.h>
#include <unistd.h>

static void show_progress(void *context, const char *what, uint64_t round, uint64_t count)
{
    progress_show(context, "%s: round %llu of %llu", what, (unsigned long long)round + 1,
                  (unsigned long long)count);
}

static void put_json(struct strbuf *out, const struct bill_view *view)
{
    struct json j = {.out = out};
    json_object(&j, NULL);
    json_string(&j, "format", "assay-bill-1");
    report_bill_json(&j, view);
    json_end(&j);
    strbuf_putc(out, '\n');
}

static int print(const struct explain_bill *cli, const struct bill *b,
                 const struct bill_doubts *doubts, struct outfile *html, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf out = {0}, page = {0};
    int r = 0;
    struct whatifs whatifs;
    whatif_predict(&whatifs, b);
    struct bill_view view = {.b = b,
                             .whatifs = &whatifs,
                             .doubts = doubts,
                             .command = cli->command->text,
                             .all = cli->all,
                             .colour = term_has_colour(STDOUT_FILENO),
                             .columns = term_columns(STDOUT_FILENO)};
    if (cli->json) {
        put_json(&out, &view);
        r = cmd_write(cli->json, &out, err);
        strbuf_clear(&out);
    }
    if (r == 0 && cmd_wants_text(cli->json)) {
        report_bill_text(&out, &view);
        r = cmd_write(NULL, &out, err);
    }
    if (r < 0 || !cli->html)
        return r;
    report_bill_html(&page, &view);
    r = outfile_write(html, page.data, page.length, err);
    return r < 0 ? r : outfile_commit(html, err);
}

/* Measures and prints; the page's file is opened first, so that nothing is measured in vain. */
static int measure(const struct explain_bill *cli, const struct bill_settings *settings,
                   struct progress *progress, struct error *err)
{
    CLEANUP(outfile_done) struct outfile html = {.fd = -1};
    struct bill b;
    struct bill_doubts doubts = {0};
    int r = cli->html ? outfile_open(&html, cli->html, err) : 0;
    if (r < 0)
        return r;
    bill_init(&b);
    r = bill_run(&b, &doubts, settings, err);
    progress_end(progress);
    if (r == 0)
        r = print(cli, &b, &doubts, &html, err);
    bill_done(&b);
    bill_doubts_done(&doubts);
    return r;
}

int explain_bill(const struct explain_bill *cli)
{
    struct error err = {0};
    struct progress progress;
    progress_start(&progress);
    struct bill_settings settings = {.command = cli->command,
                                     .rounds = cli->rounds,
                                     .frequency_hz = cli->frequency_hz,
                                     .timeout_ns = cli->timeout_ns,
                                     .output = cli->output,
                                     .folder = cli->folder,
                                     .progress = show_progress,
                                     .context = &progress};
    process_signals_catch();
    int r = measure(cli, &settings, &progress, &err);
    int signal = process_signals_caught();
    process_signals_restore();
    if (signal)
        return cmd_interrupted(&verb_explain, signal,
                               r < 0 ? "there is no bill" : "this is the bill of the runs so far");
    return r < 0 ? cmd_fail(&verb_explain, &err, EXIT_TROUBLE) : EXIT_DONE;
}
