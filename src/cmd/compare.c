/* SPDX-License-Identifier: MIT */
/* `assay compare BASE NEW`: two experiments, two commits, or two values of a factor. */
#include "analysis/compare.h"
#include "analysis/sparse.h"
#include "base/memory.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "cmd/compare_mail.h"
#include "report/page/embedded.h"
#include "report/text/compare.h"
#include "report/text/stat.h"
#include "store/store_rows.h"

#include <errno.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

struct compare_options {
    const char *db, *in, *only;
    const char *json, *csv, *markdown, *mail;
    bool all, lkp;
};

#define O(field) offsetof(struct compare_options, field)

static const struct option options[] = {
    {0, "db", OPTION_STRING, O(db), "PATH", CMD_DB_HELP, "file"},
    {0, "in", OPTION_STRING, O(in), "EXPERIMENT",
     "the experiment for factor=value (default: the newest with that factor)", NULL},
    {'a', "all", OPTION_FLAG, O(all), NULL, "show every metric, not only headlines and changes",
     NULL},
    {'m', "metric", OPTION_STRING, O(only), "TEXT", "only metrics whose names contain this",
     "!assay completion --list metrics"},
    {0, "lkp", OPTION_FLAG, O(lkp), NULL, "use the layout of the kernel test robot", NULL},
    {0, "mail", OPTION_STRING, O(mail), "FILE",
     "write a message in the robot's form: the table, functions, and what reproduces it", "file"},
    {'j', "json", OPTION_OPTIONAL, O(json), "FILE", CMD_JSON_HELP, "file"},
    {0, "csv", OPTION_OPTIONAL, O(csv), "FILE", CMD_CSV_HELP, "file"},
    {0, "markdown", OPTION_OPTIONAL, O(markdown), "FILE", CMD_MARKDOWN_HELP, "file"},
    {0},
};

/* What is compared, as it was named, and where it is from. */
struct sides {
    const char *base, *new;
    struct store *store; /* NULL for files */
    int64_t id;          /* of the experiment whose spec is told */
};

static int write_mail(const struct compare_options *o, const struct compare *c,
                      const struct sides *sides, struct error *err)
{
    struct compare_view view = {.c = c, .all = o->all, .only = o->only};
    CLEANUP(memory_freep) char *spec = NULL;
    if (sides->store)
        store_document(sides->store, sides->id, "spec", &spec, NULL);
    return compare_mail_write(&(struct compare_mail){.view = &view,
                                                     .base = sides->base,
                                                     .new = sides->new,
                                                     .db = o->db,
                                                     .in = o->in,
                                                     .spec = spec},
                              o->mail, err);
}

static int print(const struct compare_options *o, const struct compare *c,
                 const struct sides *sides, struct error *err)
{
    struct compare_view view = {.c = c,
                                .all = o->all,
                                .only = o->only,
                                .colour = term_has_colour(STDOUT_FILENO),
                                .bars = term_has_utf8(STDOUT_FILENO),
                                .columns = isatty(STDOUT_FILENO) ? term_columns(STDOUT_FILENO) : 0};
    CLEANUP(strbuf_done) struct strbuf out = {0};
    const char *place = o->json ? o->json : o->csv ? o->csv : o->markdown;
    if (o->mail)
        return write_mail(o, c, sides, err);
    if (o->json)
        report_compare_json(&out, &view);
    else if (o->csv)
        report_compare_csv(&out, &view);
    else if (o->markdown)
        report_compare_markdown(&out, &view);
    int r = place ? cmd_write(place, &out, err) : 0;
    if (r < 0 || !cmd_wants_text(place))
        return r;
    strbuf_clear(&out);
    if (o->lkp)
        report_compare_lkp(&out, &view);
    else
        report_compare_text(&out, &view);
    if (!o->lkp)
        strbuf_fit_lines(&out, view.columns);
    return cmd_write(NULL, &out, err);
}

/* The experiment that --in names, else the newest one that has the factor. */
static int find_with_factor(struct store *store, const char *in, const char *word, int64_t *ret_id,
                            struct error *err)
{
    if (in)
        return store_find(store, in, ret_id, err);
    CLEANUP(memory_freep) char *factor = memory_strndup(word, strcspn(word, "="));
    int r = store_newest_with_factor(store, factor, ret_id, err);
    if (r == 0 && !*ret_id)
        r = error_set(err, -ENOENT, "no experiment in the store has a factor '%s'", factor);
    return r;
}

static int compare_values(const struct compare_options *o, struct store *store, const char *base,
                          const char *new, struct error *err)
{
    int64_t id;
    struct dataset d;
    int r = find_with_factor(store, o->in, base, &id, err);
    if (r == 0)
        r = dataset_load(&d, store, id, err);
    if (r < 0)
        return r;
    struct compare c;
    r = compare_levels(&c, &d, base, new, err);
    if (r == 0)
        r = print(o, &c, &(struct sides){base, new, store, id}, err);
    compare_done(&c);
    dataset_done(&d);
    return r;
}

static int compare_runs(const struct compare_options *o, struct store *store, const char *base,
                        const char *new, struct error *err)
{
    int64_t base_id, new_id;
    struct dataset a, b;
    int r = store_find(store, base, &base_id, err);
    if (r == 0)
        r = store_find(store, new, &new_id, err);
    if (r == 0 && base_id == new_id)
        r = error_set(err, -EINVAL, "'%s' and '%s' are both experiment %lld", base, new,
                      (long long)base_id);
    if (r == 0)
        r = dataset_load(&a, store, base_id, err);
    if (r < 0)
        return r;
    r = dataset_load(&b, store, new_id, err);
    if (r < 0) {
        dataset_done(&a);
        return r;
    }
    struct compare c;
    sparse_join(&a, &b);
    r = compare_experiments(&c, &a, &b, err);
    if (r == 0)
        r = print(o, &c, &(struct sides){base, new, store, new_id}, err);
    compare_done(&c);
    dataset_done(&a);
    dataset_done(&b);
    return r;
}

/* A report of assay html, or what assay ab --json wrote, and no experiment of the store. */
static bool is_file(const char *word)
{
    struct stat st;
    return stat(word, &st) == 0 && S_ISREG(st.st_mode);
}

static int read_side(struct embedded *e, const char *path, struct error *err)
{
    int r = embedded_read_file(e, path, err);
    if (r == 0 && e->set_count != 1)
        r = error_set(err, -EINVAL, "%s holds %zu %s; compare needs one in each file", path,
                      e->set_count, plural(e->set_count, "experiment", "experiments"));
    return r;
}

static int compare_files(const struct compare_options *o, const char *base, const char *new,
                         struct error *err)
{
    CLEANUP(embedded_done) struct embedded a = {0}, b = {0};
    int r = read_side(&a, base, err);
    if (r == 0)
        r = read_side(&b, new, err);
    if (r < 0)
        return r;
    struct compare c;
    sparse_join(&a.sets[0], &b.sets[0]);
    r = compare_experiments(&c, &a.sets[0], &b.sets[0], err);
    if (r == 0)
        r = print(o, &c, &(struct sides){base, new, NULL, 0}, err);
    compare_done(&c);
    return r;
}

static int run(int argc, char **argv)
{
    struct error err = {0};
    struct compare_options o = {0};
    int first = options_parse_mixed(options, &o, argc, argv, &err);
    if (first == OPTIONS_HELP)
        return cmd_help(&verb_compare);
    if (first > 0 && argc - first != 2)
        first = error_set(&err, -EINVAL,
                          "expected two experiments, two commits, or two factor=value pairs");
    if (first > 0 && !!o.mail + o.lkp + !!o.json + !!o.csv + !!o.markdown > 1)
        first = error_set(&err, -EINVAL,
                          "--lkp, --mail, --json, --csv and --markdown cannot be used together");
    bool files = first > 0 && is_file(argv[first]);
    bool values = first > 0 && !files && strchr(argv[first], '=');
    if (first > 0 && files != is_file(argv[first + 1]))
        first = error_set(&err, -EINVAL, "compare two files or two experiments of the store");
    if (first > 0 && !files && values != !!strchr(argv[first + 1], '='))
        first = error_set(&err, -EINVAL,
                          "compare two experiments or two factor=value pairs, not one of each");
    if (first < 0)
        return cmd_usage(&verb_compare, &err);
    CLEANUP(store_closep) struct store *store = NULL;
    int r = files ? compare_files(&o, argv[first], argv[first + 1], &err)
                  : store_open(&store, store_place(o.db), STORE_READ, &err);
    if (r == 0 && !files)
        r = values ? compare_values(&o, store, argv[first], argv[first + 1], &err)
                   : compare_runs(&o, store, argv[first], argv[first + 1], &err);
    return r < 0 ? cmd_fail(&verb_compare, &err, EXIT_TROUBLE) : EXIT_DONE;
}

const struct verb verb_compare = {
    .name = "compare",
    .summary = "compare two experiments, or two values of a factor",
    .synopsis = "[options] BASE NEW",
    .examples = "  assay compare 12 15\n"
                "  assay compare 1a2b3c4 5d6e7f8                by the commits they were run at\n"
                "  assay compare variant=send8 variant=sendmsg  within the newest experiment\n"
                "  assay compare 12 15 --lkp\n"
                "  assay compare old.html new.html              two reports\n",
    .options = options,
    .run = run,
    .words = "!assay completion --list sides",
};
