/* SPDX-License-Identifier: MIT */
/* `assay explain BASE NEW`: why is the new one slower or faster? */
#include "why/explain.h"
#include "analysis/cellpairs.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/term.h"
#include "cmd/bench_command.h"
#include "cmd/cmd.h"
#include "cmd/explain_bill.h"
#include "counters/explain.h"
#include "report/text/explain.h"
#include "run/command.h"
#include "why/explain_cells.h"
#include "why/explanation.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

struct explain_cli {
    const char *bench, *db, *in, *work, *shell, *keep, *seed, *output, *html;
    uint64_t rounds, profiles, frequency_hz, timeout_ns;
    bool no_shell, sim, no_sim, force, all, commands;
    const char *json, *csv, *markdown;
};

#define O(field) offsetof(struct explain_cli, field)

static const struct option options[] = {
    {'r', "rounds", OPTION_U64, O(rounds), "N", "measured rounds (default 10; of one command 5)",
     NULL},
    {0, "profiles", OPTION_U64, O(profiles), "N", "profiled rounds (default 6)", NULL},
    {'F', "freq", OPTION_U64, O(frequency_hz), "HZ",
     "samples per second (default: chosen by the length of a run)", NULL},
    {'w', "work", OPTION_STRING, O(work), "METRIC",
     "the program's metric that counts the work done", NULL},
    {0, "sim", OPTION_FLAG, O(sim), NULL, "simulate caches and branches, however long it takes",
     NULL},
    {0, "no-sim", OPTION_FLAG, O(no_sim), NULL, "do not simulate caches and branches", NULL},
    {'f', "force", OPTION_FLAG, O(force), NULL, "profile even if nothing changed", NULL},
    {0, "timeout", OPTION_SECONDS, O(timeout_ns), "TIME", "treat a run that takes longer as failed",
     NULL},
    {0, "output", OPTION_STRING, O(output), OUTPUT_VALUE, OUTPUT_HELP, OUTPUT_WORDS},
    {0, "seed", OPTION_STRING, O(seed), "N", "seed for the order of the runs", NULL},
    {0, NULL, OPTION_HEADING, 0, NULL, "Two commands", NULL},
    {0, "commands", OPTION_FLAG, O(commands), NULL,
     "treat both arguments as commands, whatever the store holds", NULL},
    {0, "bench", OPTION_STRING, O(bench), "NAME",
     "treat both as programs with assay.h, and explain this benchmark", NULL},
    {0, "shell", OPTION_STRING, O(shell), "SHELL", "run the commands with this shell", NULL},
    {'N', "no-shell", OPTION_FLAG, O(no_shell), NULL, "run the commands without a shell", NULL},
    {0, NULL, OPTION_HEADING, 0, NULL, "The store", NULL},
    {0, "db", OPTION_STRING, O(db), "PATH", CMD_DB_HELP, "file"},
    {0, "in", OPTION_STRING, O(in), "EXPERIMENT",
     "the experiment for factor=value (default: the newest with that factor)", NULL},
    {0, NULL, OPTION_HEADING, 0, NULL, "Output", NULL},
    {'o', "keep", OPTION_STRING, O(keep), "DIR", "keep the recordings in this directory", "file"},
    {'a', "all", OPTION_FLAG, O(all), NULL, "show every reason, however small", NULL},
    {'j', "json", OPTION_OPTIONAL, O(json), "FILE", CMD_JSON_HELP, "file"},
    {0, "csv", OPTION_OPTIONAL, O(csv), "FILE", CMD_CSV_HELP, "file"},
    {0, "markdown", OPTION_OPTIONAL, O(markdown), "FILE", CMD_MARKDOWN_HELP, "file"},
    {0, "html", OPTION_STRING, O(html), "FILE",
     "also write one command's bill as an HTML page, with its threads over time", "file"},
    {0},
};

/* What is printed, cell by cell. */
struct printer {
    const struct explain_cli *cli;
    const char *place;       /* of the result, NULL for none */
    struct strbuf out, text; /* the result, and the text for people */
    struct json json;
    size_t count;
    bool is_warned;
};

static void print(struct printer *p, const struct explain *e)
{
    struct explain_view v = {.e = e, .all = p->cli->all, .colour = term_has_colour(STDOUT_FILENO)};
    if (p->cli->json) {
        report_explain_json(&p->json, &v);
    } else if (p->cli->csv) {
        if (!p->count)
            report_explain_csv_head(&p->out);
        report_explain_csv(&p->out, &v);
    } else if (p->cli->markdown) {
        strbuf_puts(&p->out, p->count ? "\n" : "");
        report_explain_markdown(&p->out, &v);
    }
    if (cmd_wants_text(p->place)) {
        strbuf_puts(&p->text, p->count ? "\n" : "");
        report_explain_text(&p->text, &v);
    }
    p->count++;
}

static void show_progress(struct progress *p, enum explain_phase phase, uint64_t round,
                          uint64_t count)
{
    static const char *const phases[] = {"measuring", "profiling", "counting", "simulating",
                                         "tracing"};
    progress_show(p, "%s: round %llu of %llu", phases[phase], (unsigned long long)round + 1,
                  (unsigned long long)count);
}

/* Two commands as a person typed them. */
struct two_commands {
    struct command commands[SIDE_COUNT];
    uint64_t timeout_ns;
    const char *output;
    struct progress progress;
};

static int run_command(void *context, unsigned side, struct runner *runner, char *const *before,
                       struct run_result *result, struct error *err)
{
    struct two_commands *t = context;
    const struct command *c = &t->commands[side];
    char **words = command_join_words(before, c->argv);
    struct run_spec spec = {.argv = words,
                            .program = before ? "/proc/self/exe" : c->program,
                            .stdout_to = output_parse(t->output),
                            .output_path = t->output,
                            .stderr_to = RUN_KEEP,
                            .timeout_ns = t->timeout_ns};
    int r = runner_run(runner, &spec, result, err);
    free(words);
    return r < 0 ? r : run_check(result, c->text, err);
}

static char *const *command_argv(void *context, unsigned side)
{
    struct two_commands *t = context;
    return t->commands[side].argv;
}

static void command_progress(void *context, enum explain_phase phase, uint64_t round,
                             uint64_t count)
{
    struct two_commands *t = context;
    show_progress(&t->progress, phase, round, count);
}

static int init_command(const struct explain_cli *cli, struct command *c, const char *text,
                        struct error *err)
{
    bool needs_shell = false;
    int r = command_needs_shell(text, &needs_shell, err);
    const char *shell = cli->shell ? cli->shell : needs_shell && !cli->no_shell ? "/bin/sh" : NULL;
    return r < 0 ? r : command_init(c, text, shell, err);
}

static int explain_commands(const struct explain_cli *cli, const struct explain_settings *settings,
                            char *const words[SIDE_COUNT], struct printer *p, struct error *err)
{
    struct two_commands t = {.timeout_ns = cli->timeout_ns, .output = cli->output};
    struct explain e = {.label = memory_strdup("")};
    int r = explain_need_events("no profiles, which explain a difference ('assay ab' compares "
                                "without them)",
                                err);
    for (unsigned s = 0; s < SIDE_COUNT && r == 0; s++) {
        e.names[s] = memory_strdup(words[s]);
        r = init_command(cli, &t.commands[s], words[s], err);
    }
    progress_start(&t.progress);
    struct explain_runs runs = {
        .run = run_command, .argv = command_argv, .progress = command_progress, .context = &t};
    if (r == 0)
        r = explain_run(&e, settings, &runs, err);
    progress_end(&t.progress);
    if (r == 0)
        print(p, &e);
    explain_done(&e);
    command_done(&t.commands[SIDE_A]);
    command_done(&t.commands[SIDE_B]);
    return r;
}

static void cells_progress(void *context, enum explain_phase phase, uint64_t round, uint64_t count)
{
    show_progress(context, phase, round, count);
}

/* Reports of these cells tell it from now on. */
static int keep(const struct explain_cli *cli, const struct explain *e, struct error *err)
{
    CLEANUP(store_closep) struct store *store = NULL;
    CLEANUP(strbuf_done) struct strbuf text = {0};
    struct json j = {.out = &text, .compact = true};
    json_object(&j, NULL);
    json_string(&j, "format", "assay-explain-1");
    json_array(&j, "explanations");
    report_explain_json(&j, &(struct explain_view){.e = e});
    json_end(&j);
    json_end(&j);
    int r = store_open(&store, store_place(cli->db), STORE_WRITE, err);
    return r < 0 ? r
                 : explanation_keep(store, e->experiments[SIDE_B], e->uuids[SIDE_A],
                                    e->cells[SIDE_A], e->cells[SIDE_B], strbuf_text(&text), err);
}

static void cells_found(void *context, const struct explain *e)
{
    struct printer *p = context;
    struct error err = {0};
    print(p, e);
    if (e->profiled && keep(p->cli, e, &err) < 0 && !p->is_warned) {
        fprintf(
            stderr,
            "assay explain: the explanation could not be stored, so reports will not show it: %s\n",
            err.message);
        p->is_warned = true;
    }
}

static int explain_store(const struct explain_cli *cli, const struct explain_settings *settings,
                         char *const words[SIDE_COUNT], struct printer *p, struct error *err)
{
    struct progress progress;
    progress_start(&progress);
    struct explain_cells cells = {.db = cli->db,
                                  .in = cli->in,
                                  .output = cli->output,
                                  .words = {words[SIDE_A], words[SIDE_B]},
                                  .settings = settings,
                                  .timeout_ns = cli->timeout_ns,
                                  .progress = cells_progress,
                                  .progress_context = &progress,
                                  .found = cells_found,
                                  .found_context = p};
    int r = explain_cells_run(&cells, err);
    progress_end(&progress);
    return r;
}

/* factor=value and nothing else: a shell would set a variable and end. */
static bool runs_nothing(const char *word)
{
    return strchr(word, '=') && strcspn(word, " \t/") == strlen(word);
}

/* Whether both words are something in the store.  A store that is not there has nothing, which is
 * an error where the words can mean nothing else. */
static int look_in_store(const struct explain_cli *cli, char *const words[SIDE_COUNT],
                         bool *ret_in_store, struct error *err)
{
    CLEANUP(store_closep) struct store *store = NULL;
    struct error missing;
    *ret_in_store = false;
    if (cli->commands)
        return 0;
    const char *place = store_place(cli->db);
    int r = store_open(&store, place, STORE_READ, &missing);
    *ret_in_store = r == 0 && cell_word_is_known(store, words[SIDE_A]) &&
                    cell_word_is_known(store, words[SIDE_B]);
    if (*ret_in_store || !runs_nothing(words[SIDE_A]) || !runs_nothing(words[SIDE_B]))
        return 0;
    if (r < 0)
        *err = missing;
    return r < 0 ? r
                 : error_set(err, -ENOENT,
                             "%s has no experiment with '%s' and '%s' ('assay list' shows what it "
                             "holds, --db names another store)",
                             place, words[SIDE_A], words[SIDE_B]);
}

static const char *result_place(const struct explain_cli *cli)
{
    return cli->json ? cli->json : cli->csv ? cli->csv : cli->markdown;
}

/*
 * Of emulated machines: times mean nothing there, and what the experiment sampled inside is all
 * there is to know.  The reasons are the functions of its profiles.
 */
static int explain_emulated(const struct explain_cli *cli, char *const words[SIDE_COUNT])
{
    char *argv[12] = {(char *)verb_diff.name};
    int argc = 1;
    if (cli->db) {
        argv[argc++] = (char *)"--db";
        argv[argc++] = (char *)cli->db;
    }
    if (cli->in) {
        argv[argc++] = (char *)"--in";
        argv[argc++] = (char *)cli->in;
    }
    const char *place = result_place(cli);
    CLEANUP(memory_freep)
    char *form = place ? memory_printf("--%s%s%s",
                                       cli->json  ? "json"
                                       : cli->csv ? "csv"
                                                  : "markdown",
                                       *place ? "=" : "", place)
                       : NULL;
    if (form)
        argv[argc++] = form;
    argv[argc++] = words[SIDE_A];
    argv[argc++] = words[SIDE_B];
    fputs("assay explain: these cells ran in emulated machines, where times mean nothing and are "
          "not measured again: the reasons are the functions in their profiles, as in assay diff\n",
          stderr);
    return verb_diff.run(argc, argv);
}

static void remove_folder(const char *path)
{
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
    rmdir(path);
}

static int make_folder(const struct explain_cli *cli, char **ret_path, struct error *err)
{
    char *path = cli->keep ? memory_strdup(cli->keep)
                           : memory_printf("%s/assay-explain-XXXXXX", temporary_folder());
    bool made = cli->keep ? mkdir(path, 0777) == 0 || errno == EEXIST : mkdtemp(path) != NULL;
    int code = -errno;
    char *whole = made ? realpath(path, NULL) : NULL;
    if (!whole)
        error_errno(err, made ? -errno : code, "creating the directory %s for recordings", path);
    free(path);
    *ret_path = whole;
    return whole ? 0 : made ? -ENOENT : code;
}

static int fill_settings(const struct explain_cli *cli, struct explain_settings *s,
                         struct error *err)
{
    *s = (struct explain_settings){.rounds = cli->rounds,
                                   .profile_rounds = cli->profiles,
                                   .frequency_hz = cli->frequency_hz,
                                   .force = cli->force,
                                   .simulate = cli->sim      ? EXPLAIN_SIM_ALWAYS
                                               : cli->no_sim ? EXPLAIN_SIM_NEVER
                                                             : EXPLAIN_SIM_SHORT,
                                   .work = cli->work};
    if (cli->seed)
        return parse_u64(cli->seed, &s->seed, err);
    if (getrandom(&s->seed, sizeof(s->seed), 0) != sizeof(s->seed))
        return error_errno(err, -errno, "getting a random seed");
    s->seed &= INT64_MAX; /* what readers of JSON take for an integer */
    return 0;
}

static int explain(const struct explain_cli *cli, char **words)
{
    struct error err = {0};
    struct explain_settings settings;
    struct printer p = {.cli = cli, .place = result_place(cli)};
    CLEANUP(memory_freep) char *folder = NULL;
    p.json.out = &p.out;
    if (fill_settings(cli, &settings, &err) < 0)
        return cmd_usage(&verb_explain, &err);
    bool in_store, emulated = false;
    int r = look_in_store(cli, words, &in_store, &err);
    if (r == 0 && in_store)
        r = explain_cells_are_emulated(
            &(struct explain_cells){
                .db = cli->db, .in = cli->in, .words = {words[SIDE_A], words[SIDE_B]}},
            &emulated, &err);
    if (r == 0 && emulated)
        return explain_emulated(cli, words);
    if (r == 0)
        r = make_folder(cli, &folder, &err);
    if (r < 0)
        return cmd_fail(&verb_explain, &err, EXIT_TROUBLE);
    settings.folder = folder;
    if (cli->json) {
        json_object(&p.json, NULL);
        json_string(&p.json, "format", "assay-explain-1");
        json_u64(&p.json, "seed", settings.seed);
        json_array(&p.json, "explanations");
    }
    process_signals_catch();
    r = in_store ? explain_store(cli, &settings, words, &p, &err)
                 : explain_commands(cli, &settings, words, &p, &err);
    int signal = process_signals_caught();
    process_signals_restore();
    if (cli->json) {
        json_end(&p.json);
        json_end(&p.json);
        strbuf_putc(&p.out, '\n');
    }
    if (r == 0 && p.place)
        r = cmd_write(p.place, &p.out, &err);
    if (r == 0)
        r = cmd_write(NULL, &p.text, &err);
    strbuf_done(&p.out);
    strbuf_done(&p.text);
    if (!cli->keep)
        remove_folder(folder);
    if (signal)
        return cmd_interrupted(&verb_explain, signal, "the runs so far are not enough to explain");
    return r < 0 ? cmd_fail(&verb_explain, &err, EXIT_TROUBLE) : EXIT_DONE;
}

/* One command: its bill. */
static int explain_one(const struct explain_cli *cli, const char *word)
{
    struct error err = {0};
    struct command command = {0};
    CLEANUP(memory_freep) char *folder = NULL;
    int r = init_command(cli, &command, word, &err);
    if (r == 0)
        r = make_folder(cli, &folder, &err);
    if (r < 0) {
        command_done(&command);
        return cmd_fail(&verb_explain, &err, EXIT_TROUBLE);
    }
    int code = explain_bill(&(struct explain_bill){.command = &command,
                                                   .rounds = cli->rounds,
                                                   .frequency_hz = cli->frequency_hz,
                                                   .timeout_ns = cli->timeout_ns,
                                                   .output = cli->output,
                                                   .folder = folder,
                                                   .html = cli->html,
                                                   .all = cli->all,
                                                   .json = cli->json});
    if (!cli->keep)
        remove_folder(folder);
    command_done(&command);
    return code;
}

/* The benchmark as a command, of both programs. */
static int explain_bench(struct explain_cli *cli, char **programs)
{
    char *texts[SIDE_COUNT] = {0};
    struct error err;
    int r = bench_command_texts(cli->bench, programs, NULL, texts, &err);
    cli->commands = true;
    int code = r < 0 ? cmd_fail(&verb_explain, &err, EXIT_TROUBLE) : explain(cli, texts);
    free(texts[SIDE_A]);
    free(texts[SIDE_B]);
    return code;
}

static bool is_recording(const char *word)
{
    char head[8] = {0};
    CLEANUP(fd_closep) int fd = open(word, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return fd >= 0 && read(fd, head, sizeof(head)) == (ssize_t)sizeof(head) &&
           memcmp(head, "PERFILE2", sizeof(head)) == 0;
}

/* What does not go together. */
static int check(const struct explain_cli *cli, int word_count, char **words, struct error *err)
{
    for (int i = 0; i < word_count; i++)
        if (is_recording(words[i]))
            return error_set(err, -EINVAL,
                             "%s is a recording; 'assay report' shows it, and 'assay diff A B' "
                             "compares two",
                             words[i]);
    if (word_count < 1 || word_count > 2)
        return error_set(err, -EINVAL,
                         "expected one command, two commands, two experiments, or two "
                         "factor=value pairs; put a command with arguments in quotes");
    if (!!cli->json + !!cli->csv + !!cli->markdown > 1)
        return error_set(err, -EINVAL, "--json, --csv and --markdown cannot be used together");
    if (cli->sim && cli->no_sim)
        return error_set(err, -EINVAL, "--sim and --no-sim cannot be used together");
    if (cli->shell && cli->no_shell)
        return error_set(err, -EINVAL, "--shell and --no-shell cannot be used together");
    if (cli->bench && word_count != 2)
        return error_set(err, -EINVAL,
                         "--bench explains the difference between two programs; name both");
    if (cli->html && word_count == 2)
        return error_set(err, -EINVAL,
                         "--html draws the bill of one command; for two: assay explain --json A B "
                         "> e.json; assay html e.json");
    if ((cli->csv || cli->markdown) && word_count == 1)
        return error_set(err, -EINVAL,
                         "--csv and --markdown are for a difference; the bill of one command has "
                         "--json and --html");
    return 0;
}

static int run(int argc, char **argv)
{
    struct error err = {0};
    struct explain_cli cli = {0};
    int first = options_parse_mixed(options, &cli, argc, argv, &err);
    if (first == OPTIONS_HELP)
        return cmd_help(&verb_explain);
    if (first < 0 || check(&cli, argc - first, argv + first, &err) < 0)
        return cmd_usage(&verb_explain, &err);
    if (cli.bench)
        return explain_bench(&cli, argv + first);
    return argc - first == 1 ? explain_one(&cli, argv[first]) : explain(&cli, argv + first);
}

const struct verb verb_explain = {
    .name = "explain",
    .summary = "explain where a command's time goes, or why one is faster than another",
    .synopsis = "[options] COMMAND | BASE NEW",
    .examples =
        "  assay explain 'make -j2'                      where the wall time goes\n"
        "  assay explain --html bill.html 'make -j2'     the same as a page, with its threads\n"
        "  assay explain './old 1000' './new 1000'\n"
        "  assay explain --work ops './bench -v1' './bench -v2'\n"
        "  assay explain variant=send8 variant=sendmsg   cells of the newest experiment\n"
        "  assay explain --json ./old ./new | jq '.explanations[0].reasons[0].words'\n",
    .options = options,
    .run = run,
    .words = "!assay completion --list sides",
};
