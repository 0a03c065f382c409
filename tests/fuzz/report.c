/* SPDX-License-Identifier: MIT */
/* Fuzzes everything that is made of a recording: merging, naming, tables, trees and exports. */
#include "base/fd.h"
#include "base/memory.h"
#include "profile/annotate.h"
#include "profile/export/export.h"
#include "report/browser/browser.h"
#include "report/profile/annotate_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void print_all(struct profile *p)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    struct profile_view view = {
        .rows = {.keys = {ROW_COMM, ROW_DSO, ROW_SYMBOL, ROW_SRCLINE, ROW_CPU}, .key_count = 5},
        .trees = true,
        .columns = 100,
    };
    profile_put_text(p, &view, &out);
    view.rows.children = true;
    view.order = CALLTREE_CALLER;
    profile_put_text(p, &view, &out);
    profile_put_csv(p, &view, &out);
    profile_put_json(p, &view, &out);
    /* Nothing from the file may reach a terminal as it is. */
    for (size_t i = 0; i < out.length; i++)
        if ((unsigned char)out.data[i] < 0x20 && out.data[i] != '\n')
            abort();
    struct browser b;
    browser_init(&b, p, &view);
    browser_toggle(&b);
    browser_open_all(&b, true);
    browser_zoom(&b, ZOOM_FUNCTION);
    for (size_t i = 0; i < b.line_count; i++)
        browser_put_line(&b, i, 80, &out);
    browser_done(&b);
}

static void export_all(const struct profile *p)
{
    struct error err;
    for (int format = EXPORT_FOLDED; format <= EXPORT_PERF_SCRIPT; format++) {
        struct export_options o = {.format = (enum export_format)format,
                                   .event = annotate_main_event(p)};
        struct outfile file;
        if (outfile_open(&file, "/dev/null", &err) < 0)
            return;
        profile_export(p, &o, &file, &err);
        outfile_done(&file);
    }
}

static void annotate_first(struct profile *p)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    struct annotation a;
    annotate_build(&a, p, annotate_main_event(p), 0, "/dev/null");
    annotate_put_text(&a, p, &(struct annotate_view){0}, &out);
    annotate_put_json(&a, p, &out);
    annotate_done(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(fd_closep) int fd = memfd_create("input", MFD_CLOEXEC);
    char path[64];
    if (fd < 0 || fd_write_all(fd, data, size) < 0)
        return 0;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    struct profile_options options = {
        .symbols = {.thread_count = 1,
                    .no_cache = true,
                    .no_debuginfod = true,
                    .kallsyms_path = "/dev/null",
                    .perfmap_folder = "/nowhere",
                    .debug_folders = "/nowhere",
                    .perf_cache = "/nowhere"},
        .want = SYMBOLS_INLINES,
        .with_lines = true,
        .with_cpus = true,
        .with_samples = true,
        .with_fields = true,
    };
    struct profile *p;
    struct error err;
    if (profile_load(&p, path, &options, &err) < 0)
        return 0;
    profile_symbolize(p);
    print_all(p);
    if (p->event_count) {
        export_all(p);
        if (p->calls.symbol_count)
            annotate_first(p);
    }
    profile_free(p);
    return 0;
}
