/* SPDX-License-Identifier: MIT */
/* `assay plot`: one plot of a report as a file of its own, SVG or PNG. */
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "cmd/cmd.h"
#include "cmd/page_sources.h"
#include "report/html/html.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

struct plot_options {
    const char *db, *output, *plot, *width;
    bool list;
};

#define O(field) offsetof(struct plot_options, field)

static const struct option options[] = {
    {'o', "output", OPTION_STRING, O(output), "FILE", "FILE.svg or FILE.png (default: plot.svg)",
     "file"},
    {'p', "plot", OPTION_STRING, O(plot), "NAME", "which plot, by its name in --list",
     "curve ratio scaling efficiency misses strip ecdf percentiles pairs monitor history flame "
     "diff"},
    {'l', "list", OPTION_FLAG, O(list), NULL, "list the available plots", NULL},
    {0, "width", OPTION_STRING, O(width), "PIXELS", "width of a PNG (default: 1280)", NULL},
    {0, "db", OPTION_STRING, O(db), "PATH", CMD_DB_HELP, "file"},
    {0},
};

static void list_plots(const struct page *page)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    for (size_t i = 0; i < page->plot_count; i++)
        if (plot_has_points(&page->plots[i])) {
            strbuf_printf(&out, "%-16s ", page->plots[i].id);
            strbuf_put_safe(&out, page->plots[i].title, strlen(page->plots[i].title), 200);
            strbuf_putc(&out, '\n');
        }
    if (page->has_pair)
        strbuf_puts(&out, "diff             differences between the two profiles\n");
    for (size_t i = 0; i < page->data.flame_count; i++) {
        strbuf_printf(&out, i ? "flame-%zu          " : "flame            ", i + 1);
        const char *label = page->data.flames[i].label;
        strbuf_puts(&out, "flame graph of ");
        strbuf_put_safe(&out, label, strlen(label), 200);
        strbuf_putc(&out, '\n');
    }
    fputs(strbuf_text(&out), stdout);
}

/* Draws the plot of that name; without one the first there is. */
static int draw(const struct page *page, const char *name, struct strbuf *out, struct error *err)
{
    for (size_t i = 0; i < page->plot_count; i++)
        if (plot_has_points(&page->plots[i]) && (!name || str_eq(page->plots[i].id, name))) {
            plot_put_svg(&page->plots[i], PLOT_ALONE, out);
            return 0;
        }
    if (page->has_pair && (!name || str_eq(name, "diff"))) {
        flame_pair_put_svg(&page->pair, "diff", true, out);
        return 0;
    }
    for (size_t i = 0; i < page->data.flame_count; i++) {
        CLEANUP(memory_freep) char *id = memory_printf(i ? "flame-%zu" : "flame", i + 1);
        if (name && !str_eq(name, id))
            continue;
        flame_put_svg(&page->data.flames[i], id, true, false, out);
        return 0;
    }
    for (size_t i = 0; name && i < page->plot_count; i++)
        if (str_eq(page->plots[i].id, name))
            return error_set(err, -ENODATA, "'%s' has nothing to show%s%s", name,
                             page->plots[i].note ? ": " : "",
                             page->plots[i].note ? page->plots[i].note : "");
    return error_set(err, -ENOENT, "no plot '%s'; --list shows the available plots",
                     name ? name : "");
}

/* PNG is rsvg-convert's work. */
static int write_png(const struct strbuf *svg, const char *path, const char *width,
                     struct error *err)
{
    CLEANUP(fd_closep) int from = memfd_create("plot.svg", MFD_CLOEXEC);
    CLEANUP(fd_closep) int to = memfd_create("plot.png", MFD_CLOEXEC);
    if (from < 0 || to < 0 || fd_write_all(from, svg->data, svg->length) < 0 ||
        lseek(from, 0, SEEK_SET) < 0)
        return error_errno(err, -errno, "keeping the picture in memory");
    char *const argv[] = {(char *)"rsvg-convert", (char *)"--width", (char *)width,
                          (char *)"--keep-aspect-ratio", NULL};
    struct process_spec spec = {.argv = argv, .stdin_fd = from, .stdout_fd = to, .stderr_fd = -1};
    pid_t pid;
    struct process_result result;
    int r = process_spawn(&spec, &pid, err);
    if (r == -ENOENT)
        return error_set(err, r,
                         "PNG needs rsvg-convert (Debian: librsvg2-bin); SVG needs nothing: "
                         "-o FILE.svg");
    if (r == 0)
        r = process_wait(pid, &result, err);
    if (r == 0 && result.status != 0)
        r = error_set(err, -EIO, "rsvg-convert failed");
    if (r < 0)
        return r;
    off_t size = lseek(to, 0, SEEK_END);
    if (size <= 0)
        return error_set(err, -EIO, "rsvg-convert wrote nothing");
    void *bytes = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, to, 0);
    if (bytes == MAP_FAILED)
        return error_errno(err, -errno, "reading the picture");
    r = file_write(path, bytes, (size_t)size, err);
    munmap(bytes, (size_t)size);
    return r;
}

static int plot(const struct plot_options *o, struct page *page, struct error *err)
{
    page_plot(page);
    if (o->list) {
        list_plots(page);
        return 0;
    }
    CLEANUP(strbuf_done) struct strbuf out = {0};
    const char *path = o->output ? o->output : "plot.svg";
    int r = draw(page, o->plot, &out, err);
    if (r < 0)
        return r;
    return str_has_suffix(path, ".png") ? write_png(&out, path, o->width ? o->width : "1280", err)
                                        : file_write(path, out.data, out.length, err);
}

static int check(const struct plot_options *o, struct error *err)
{
    uint64_t width = 1280;
    if (o->width && parse_u64(o->width, &width, err) < 0)
        return error_wrap(err, -EINVAL, "option --width");
    if (width < 16 || width > 20000)
        return error_set(err, -EINVAL, "--width must be between 16 and 20000");
    if (o->output && !str_eq(o->output, "-") && !str_has_suffix(o->output, ".svg") &&
        !str_has_suffix(o->output, ".png"))
        return error_set(err, -EINVAL, "'%s': the name must end in .svg or .png", o->output);
    return 0;
}

static int run(int argc, char **argv)
{
    struct error err = {0};
    struct plot_options o = {0};
    int first = options_parse_mixed(options, &o, argc, argv, &err);
    if (first == OPTIONS_HELP)
        return cmd_help(&verb_plot);
    if (first > 0 && check(&o, &err) < 0)
        first = -EINVAL;
    if (first < 0)
        return cmd_usage(&verb_plot, &err);
    CLEANUP(page_done) struct page page = {0};
    int r = page_sources_load(&page, o.db, argc - first, argv + first, &err);
    if (r == 0)
        r = plot(&o, &page, &err);
    return r < 0 ? cmd_fail(&verb_plot, &err, r == -EINVAL ? EXIT_USAGE : EXIT_TROUBLE) : EXIT_DONE;
}

const struct verb verb_plot = {
    .name = "plot",
    .summary = "draw one plot of a run, a comparison or a profile",
    .synopsis = "[options] [EXPERIMENT | FACTOR=VALUE | RECORDING | ab.json | report.html]…",
    .examples = "  assay plot --list\n"
                "  assay plot 12 -p ratio -o ratio.svg\n"
                "  assay plot variant=send variant=sendmsg -p pairs -o pairs.png\n"
                "  assay plot perf.data -o flame.svg\n",
    .options = options,
    .run = run,
    .words = "!assay completion --list sides",
};
