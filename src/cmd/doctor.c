/* SPDX-License-Identifier: MIT */
/* `assay doctor`: what can be measured on this machine, how well, and what to change. */
#include "cmd/doctor.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "config.h"

#include <errno.h>
#include <sys/random.h>
#include <unistd.h>

#define SECONDS_MOST 3600
#define COLUMNS_LEAST 60
#define COLUMNS_MOST 120

struct doctor_options {
    bool quick, no_noise;
    const char *json;
    uint64_t duration_ns;
    uint64_t seed;
};

static int print_json(const struct machine *m, const struct noise_test *test, const char *place,
                      struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    struct json j = {.out = &out};
    json_object(&j, NULL);
    json_string(&j, "format", "assay-doctor-1");
    json_string(&j, "assay", ASSAY_VERSION);
    machine_write_json(m, &j, "machine");
    if (test)
        noise_test_json(test, &j, "noise");
    json_end(&j);
    return cmd_write(place, &out, err);
}

static size_t table_columns(void)
{
    size_t columns = term_columns(STDOUT_FILENO);
    return columns < COLUMNS_LEAST  ? COLUMNS_LEAST
           : columns > COLUMNS_MOST ? COLUMNS_MOST
                                    : columns;
}

static void print_findings(const struct machine *m)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    doctor_table(m, &out, table_columns(), term_has_colour(STDOUT_FILENO));
    fputs(strbuf_text(&out), stdout);
    fflush(stdout);
}

static void print_noise(const struct noise_test *test)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    noise_test_text(test, &out, table_columns(), term_has_colour(STDOUT_FILENO));
    fputs(strbuf_text(&out), stdout);
}

/* The table comes before the noise test, so that there is something to read meanwhile. */
static int examine(const struct doctor_options *o, const struct machine *m, struct error *err)
{
    bool wants_noise = !o->quick && !o->no_noise;
    bool text = cmd_wants_text(o->json);
    if (text)
        print_findings(m);
    struct noise_test test = {0};
    int r = wants_noise ? noise_test_run(&test, o->duration_ns, o->seed, err) : 0;
    if (r < 0)
        return cmd_fail(&verb_doctor, err, EXIT_TROUBLE);
    if (o->json)
        r = print_json(m, wants_noise ? &test : NULL, o->json, err);
    if (r == 0 && text && wants_noise)
        print_noise(&test);
    int code = test.signal ? 128 + test.signal : EXIT_DONE;
    noise_test_done(&test);
    return r < 0 ? cmd_fail(&verb_doctor, err, EXIT_TROUBLE) : code;
}

static int run(int argc, char **argv)
{
    if (argc == 3 && str_eq(argv[1], NOISE_WORKER))
        return noise_worker(argv[2]);
    struct error err;
    uint32_t seed = 0;
    if (getrandom(&seed, sizeof(seed), 0) < 0)
        seed = (uint32_t)clock_now_ns();
    struct doctor_options o = {.duration_ns = 5 * NS_PER_S, .seed = seed};
    int first = options_parse(verb_doctor.options, &o, argc, argv, &err);
    if (first == OPTIONS_HELP)
        return cmd_help(&verb_doctor);
    if (first > 0 && first < argc)
        first = error_set(&err, -EINVAL, "takes no arguments");
    if (first > 0 && (o.duration_ns == 0 || o.duration_ns > SECONDS_MOST * NS_PER_S))
        first = error_set(
            &err, -EINVAL,
            "--seconds must be more than 0 and at most %d; to skip the noise test, use --no-noise",
            SECONDS_MOST);
    if (first < 0)
        return cmd_usage(&verb_doctor, &err);
    struct machine m;
    machine_probe(&m, o.quick ? MACHINE_QUICK : MACHINE_FULL);
    int code = examine(&o, &m, &err);
    machine_done(&m);
    return code;
}

static const struct option options[] = {
    {0, "json", OPTION_OPTIONAL, offsetof(struct doctor_options, json), "FILE", CMD_JSON_HELP,
     "file"},
    {0, "no-noise", OPTION_FLAG, offsetof(struct doctor_options, no_noise), NULL,
     "skip the noise test", NULL},
    {0, "quick", OPTION_FLAG, offsetof(struct doctor_options, quick), NULL,
     "only what every result file records: no slow tests, no noise test", NULL},
    {0, "seconds", OPTION_SECONDS, offsetof(struct doctor_options, duration_ns), "S",
     "how long to run the noise test (default 5)", NULL},
    {0, "seed", OPTION_U64, offsetof(struct doctor_options, seed), "N",
     "seed for the order of the noise test's runs", NULL},
    {0},
};

const struct verb verb_doctor = {
    .name = "doctor",
    .summary = "check what can be measured here, how well, and what to change",
    .synopsis = "[options]",
    .examples = "  assay doctor\n"
                "  assay doctor --no-noise --json | jq '.machine.findings[] | select(.remedy)'\n",
    .options = options,
    .run = run,
};
