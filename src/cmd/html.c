/* SPDX-License-Identifier: MIT */
/* `assay html`: a run, a comparison or a profile as one file to look at and to send. */
#include "report/html/html.h"
#include "base/fd.h"
#include "base/memory.h"
#include "cmd/cmd.h"
#include "cmd/page_sources.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

struct html_options {
    const char *db, *output, *title;
    bool source;
};

#define O(field) offsetof(struct html_options, field)

static const struct option options[] = {
    {'o', "output", OPTION_STRING, O(output), "FILE", "write to this file (default: report.html)",
     "file"},
    {0, "title", OPTION_STRING, O(title), "TEXT", "the page's heading", NULL},
    {0, "source", OPTION_FLAG, O(source), NULL,
     "put source and assembly of the hottest functions of recordings into the page", NULL},
    {0, "db", OPTION_STRING, O(db), "PATH", CMD_DB_HELP, "file"},
    {0},
};

static int write_page(const struct html_options *o, struct page *page, struct error *err)
{
    const char *path = o->output ? o->output : "report.html";
    CLEANUP(strbuf_done) struct strbuf out = {0};
    html_put_page(&out, page);
    int r = file_write(path, out.data, out.length, err);
    if (r == 0 && !str_eq(path, "-") && isatty(STDERR_FILENO)) {
        char size[32];
        fprintf(stderr, "assay html: %s, %s\n", path,
                format_bytes((double)out.length, size, sizeof(size)));
    }
    return r;
}

static int run(int argc, char **argv)
{
    struct error err = {0};
    struct html_options o = {0};
    CLEANUP(strbuf_done) struct strbuf command = {0};
    page_sources_command(&command, argv);
    int first = options_parse_mixed(options, &o, argc, argv, &err);
    if (first == OPTIONS_HELP)
        return cmd_help(&verb_html);
    if (first < 0)
        return cmd_usage(&verb_html, &err);
    CLEANUP(page_done) struct page page = {0};
    page.data.command = memory_strdup(strbuf_text(&command));
    page.title = o.title ? memory_strdup(o.title) : NULL;
    int r = page_sources_load(&page, o.db, argc - first, argv + first, &err);
    for (size_t i = 0; r == 0 && o.source && i < page.data.flame_count; i++)
        if (page.data.flames[i].path)
            r = page_add_source(&page.data.flames[i], page.data.flames[i].path, &err);
    if (r == 0) {
        page_plot(&page);
        r = write_page(&o, &page, &err);
    }
    return r < 0 ? cmd_fail(&verb_html, &err, r == -EINVAL ? EXIT_USAGE : EXIT_TROUBLE) : EXIT_DONE;
}

const struct verb verb_html = {
    .name = "html",
    .summary = "write a run, a comparison or a profile as one HTML file",
    .synopsis = "[options] [EXPERIMENT | FACTOR=VALUE | RECORDING | ab.json | report.html]…",
    .examples =
        "  assay html -o report.html                         the newest experiment\n"
        "  assay html 12 15 -o report.html                   15 against 12\n"
        "  assay html variant=send variant=sendmsg           within the newest experiment\n"
        "  assay html perf.data                              a profile\n"
        "  assay html --source perf.data                     with the code of hot functions\n"
        "  assay html old.data new.data                      two profiles and their differences\n"
        "  assay html ab.json                                what assay ab --json wrote\n",
    .options = options,
    .run = run,
    .words = "!assay completion --list sides",
};
