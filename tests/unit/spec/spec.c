/* SPDX-License-Identifier: MIT */
#include "spec/spec.h"
#include "base/memory.h"
#include "base/strings.h"
#include "run/command.h"
#include "session/extract.h"
#include "spec/matrix.h"
#include "test.h"

#include <errno.h>

static const char full[] = "name: net\n"
                           "question: which one?\n"
                           "command: ./send {variant} '{size} bytes' {variant.flag}\n"
                           "factors:\n"
                           "  variant:\n"
                           "    - name: send\n"
                           "      flag: -s\n"
                           "      env: {LD_PRELOAD: lib.so}\n"
                           "    - sendmsg\n"
                           "  size: [64, 1k]\n"
                           "  threads: 2\n"
                           "exclude:\n"
                           "  - {variant: sendmsg, size: [64]}\n"
                           "include:\n"
                           "  - {variant: zerocopy, size: 9, threads: 1}\n"
                           "build:\n"
                           "  command: make {variant} OUT={build}\n"
                           "  inputs: ['*.c', Makefile]\n"
                           "setup:\n"
                           "  start: ./server {threads}\n"
                           "  ready: {port: 5001}\n"
                           "  timeout: 3s\n"
                           "teardown: rm -f x\n"
                           "metrics:\n"
                           "  rate: {unit: MB/s, better: higher}\n"
                           "  lost: {regex: 'lost=([0-9]+)', better: lower, headline: false}\n"
                           "counters: [cycles, instructions]\n"
                           "monitors: {interval: 500ms, list: [vmstat, mpstat]}\n"
                           "rounds: {min: 5, max: 50}\n"
                           "precision: 1.5%\n"
                           "budget: 2m\n"
                           "baseline: {variant: send}\n"
                           "profile: changed\n"
                           "quick:\n"
                           "  factors: {size: [64]}\n"
                           "  rounds: 2\n";

static int parse(struct spec *s, const char *text, bool quick, struct error *err)
{
    return spec_parse(s, "dir/t.yaml", text, strlen(text), quick, err);
}

TEST(kernels_are_machines)
{
    static const char text[] = "name: k\ncommand: ./x\n"
                               "factors: {kernel: [a, {name: b, image: ./vmlinuz}]}\n"
                               "vm: {arch: arm64, memory: 1G, cpus: 2, files: [x, 'y:/z'],"
                               " rounds_per_boot: 3, accel: tcg, boot_timeout: 30s}\n";
    struct spec s;
    struct error err = {0};
    CHECK_INT(parse(&s, text, false, &err), 0);
    if (err.code)
        return;
    CHECK_INT(s.kernel_factor, 0);
    CHECK_INT(s.vm.memory_bytes, 1 << 30);
    CHECK_INT(s.vm.cpus, 2);
    CHECK_INT(s.vm.file_count, 2);
    CHECK_INT(s.vm.rounds_per_boot, 3);
    CHECK_INT(s.vm.accel, VM_ACCEL_TCG);
    CHECK_INT(s.vm.boot_timeout_ns, 30000000000);
    spec_done(&s);
    CHECK_INT(parse(&s, "name: k\ncommand: x\nfactors: {size: [1]}\n", false, &err), 0);
    CHECK(s.kernel_factor == SPEC_NO_FACTOR);
    spec_done(&s);
}

TEST(everything_is_read)
{
    struct spec s;
    struct error err = {0};
    CHECK_INT(parse(&s, full, false, &err), 0);
    if (err.code) {
        test_fail(__FILE__, __LINE__, "%s", err.message);
        return;
    }
    CHECK_STR(s.name, "net");
    CHECK_STR(s.folder, "dir");
    CHECK_INT(s.factor_count, 3);
    CHECK_STR(s.factors[0].levels[0].attributes.items[0].value, "-s");
    CHECK_STR(s.factors[0].levels[0].environment.items[0].value, "lib.so");
    CHECK_INT(s.factors[2].level_count, 1);
    CHECK_INT(s.build_count, 1);
    CHECK_STR(s.builds[0].inputs[1], "Makefile");
    CHECK(s.setups[0].background);
    CHECK_INT(s.setups[0].ready, READY_PORT);
    CHECK_INT(s.setups[0].timeout_ns, 3000000000LL);
    CHECK_INT(s.metric_count, 2);
    CHECK_INT(s.metrics[0].better, METRIC_HIGHER);
    CHECK(!s.metrics[1].headline);
    CHECK_STR(s.counters, "cycles,instructions");
    CHECK_INT(s.monitor_count, 2);
    CHECK_INT(s.monitor_interval_ns, 500000000);
    CHECK_INT(s.rounds, 5);
    CHECK_INT(s.rounds_max, 50);
    CHECK_NEAR(s.precision, 0.015, 1e-12);
    CHECK_INT(s.budget_ns, 120000000000LL);
    CHECK_INT(s.profile, PROFILE_CHANGED);
    spec_done(&s);
}

TEST(cells_follow_from_factors)
{
    struct spec s;
    struct matrix m;
    struct error err = {0};
    CHECK_INT(parse(&s, full, false, &err), 0);
    CHECK_INT(matrix_make(&m, &s, &err), 0);
    CHECK_INT(m.count, 4); /* 2 × 2 × 1, one excluded, one included */
    CHECK_STR(m.cells[0].label, "variant=send size=64 threads=2");
    CHECK_STR(m.cells[2].label, "variant=sendmsg size=1k threads=2");
    CHECK_STR(m.cells[3].label, "variant=zerocopy size=9 threads=1");
    CHECK_INT(m.cells[2].baseline, 1);
    CHECK_INT(m.cells[3].baseline, 3); /* nothing to compare it with */
    bool kept[4];
    CHECK_INT(matrix_select(&m, "2-3", kept, &err), 0);
    CHECK(!kept[0] && kept[1] && kept[2] && !kept[3]);
    CHECK_INT(matrix_select(&m, "variant=send,size=1k", kept, &err), 0);
    CHECK(!kept[0] && kept[1] && !kept[2] && !kept[3]);
    CHECK_INT(matrix_select(&m, "size=64,size=9", kept, &err), 0);
    CHECK(kept[0] && !kept[1] && !kept[2] && kept[3]);
    CHECK_INT(matrix_select(&m, "5", kept, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "1 to 4");
    CHECK_INT(matrix_select(&m, "size=7", kept, &err), -EINVAL);
    CHECK_INT(matrix_select(&m, "sizes=64", kept, &err), -EINVAL);
    CHECK_INT(matrix_select(&m, "send", kept, &err), -EINVAL);
    matrix_done(&m);
    spec_done(&s);
}

TEST(the_quick_section_replaces)
{
    struct spec s;
    struct matrix m;
    struct error err = {0};
    CHECK_INT(parse(&s, full, true, &err), 0);
    CHECK_INT(s.rounds, 2);
    CHECK_INT(s.rounds_max, 0);
    CHECK_NEAR(s.precision, 0, 0); /* rounds alone were asked for */
    CHECK_INT(matrix_make(&m, &s, &err), 0);
    CHECK_INT(m.count, 1);
    matrix_done(&m);
    spec_done(&s);
    CHECK_INT(parse(&s, "name: a\ncommand: b\n", true, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "no 'quick' section");
}

TEST(the_quick_section_excludes_for_itself)
{
    static const char text[] = "name: a\n"
                               "command: b {x} {y}\n"
                               "factors: {x: [1, 2], y: [1, 2, 3]}\n"
                               "exclude: [{x: 1, y: 1}, {x: 1, y: 2}]\n"
                               "quick:\n"
                               "  factors: {y: [1, 2]}\n"
                               "  exclude: [{x: 2, y: 2}]\n";
    for (int quick = 0; quick < 2; quick++) {
        struct spec s;
        struct matrix m;
        struct error err = {0};
        CHECK_INT(parse(&s, text, quick, &err), 0);
        CHECK_INT(matrix_make(&m, &s, &err), 0);
        CHECK_INT(m.count, quick ? 3 : 4);
        matrix_done(&m);
        spec_done(&s);
    }
}

TEST(holes_are_filled)
{
    struct spec s;
    struct matrix m;
    struct error err = {0};
    CHECK_INT(parse(&s, full, false, &err), 0);
    CHECK_INT(matrix_make(&m, &s, &err), 0);
    const char *builds[] = {"/b"};
    struct hole_values values = {
        .spec = &s, .levels = m.cells[0].levels, .builds = builds, .cell = 1, .round = 3};
    char **words = NULL;
    CHECK_INT(holes_command(&s.command, &values, &words, &err), 0);
    CHECK_STR(words[1], "send");
    CHECK_STR(words[2], "64 bytes");
    CHECK_STR(words[3], "-s");
    CHECK(words[4] == NULL);
    command_free_words(words);
    CLEANUP(strbuf_done) struct strbuf text = {0};
    holes_fill(&text, "{build}/x ${HOME} {{size}} {} {print $1} {cell}.{round}", &values);
    CHECK_STR(strbuf_text(&text), "/b/x ${HOME} {size} {} {print $1} 1.3");
    matrix_done(&m);
    spec_done(&s);
}

/* Each wrong spec names its line and what is wrong. */
TEST(complaints_name_the_place)
{
    static const struct {
        const char *text, *line, *words;
    } cases[] = {
        {"", "t.yaml", "empty"},
        {"- a\n", ":1:", "must be a mapping"},
        {"name: a\n", "t.yaml", "'command' is missing"},
        {"command: a\n", "t.yaml", "'name' is missing"},
        {"name: a\ncomand: b\n", ":2:", "unknown key 'comand'; did you mean command?"},
        {"name: a\ncommand: b\nname: c\n", ":3:", "(first on line 1)"},
        {"name: a\ncommand: [\n", ":3:", ""},
        {"name: a\ncommand: b {siz}\nfactors: {size: [1]}\n", ":2:", "did you mean size"},
        {"name: a\ncommand: b 'c\n", ":2:", "command: "},
        {"name: a\ncommand: b\nrounds: many\n", ":3:", "rounds: 'many'"},
        {"name: a\ncommand: b\nrounds: 0\n", ":3:", "must be between 1"},
        {"name: a\ncommand: b\nprecision: 200%\n", ":3:", "percentage, e.g. 1%"},
        {"name: a\ncommand: b\nbudget: 5 parsecs\n", ":3:", "budget: "},
        {"name: a\ncommand: b\nfactors: {}\nbaseline: {x: 1}\n", ":4:", "no factor 'x'"},
        {"name: a\ncommand: b\nfactors:\n  x: [1]\nbaseline: {x: 2}\n", ":5:", "no value '2'"},
        {"name: a\ncommand: b\nfactors:\n  x: [1, 1]\n", ":4:", "twice"},
        {"name: a\ncommand: b\nfactors:\n  x: []\n", ":4:", "no values"},
        {"name: a\ncommand: b\nfactors:\n  1x: [1]\n", ":4:", "not a valid name"},
        {"name: a\ncommand: b\nfactors:\n  round: [1]\n", ":4:", "reserved name"},
        {"name: a\ncommand: b\nfactors: {x: [1]}\nexclude: [{y: 1}]\n", ":4:", "factor 'y'"},
        {"name: a\ncommand: b\nfactors: {x: [1]}\nexclude: [{x: 2}]\n", ":4:", "no value '2'"},
        {"name: a\ncommand: b\nfactors: {x: [1], y: [2]}\ninclude: [{x: 2}]\n",
         ":4:", "y is missing"},
        {"name: a\ncommand: b\nmetrics:\n  m: {regex: 'x('}\n", ":4:", "regex"},
        {"name: a\ncommand: b\nmetrics:\n  m: {regex: 'x'}\n", ":4:", "parentheses"},
        {"name: a\ncommand: b\nmetrics:\n  m: {better: faster}\n", ":4:", "higher or lower"},
        {"name: a\ncommand: b\nmonitors: [vmstats]\n", ":3:", "did you mean vmstat"},
        {"name: a\ncommand: b\nsetup: {ready: {port: 1}}\n", ":3:", "either command"},
        {"name: a\ncommand: b\nsetup: {command: c, ready: {port: 1}}\n",
         ":3:", "only valid with start"},
        {"name: a\ncommand: b\nteardown: {start: c}\n", ":3:", "nothing to run"},
        {"name: a\ncommand: b\nnice: 40\n", ":3:", "-20 and 19"},
        {"name: a\ncommand: b\nquick: {name: c}\n", ":3:", "key of quick"},
        {"name: a\ncommand: b\nquick: {factors: {x: [1]}}\n", ":3:", "no factor 'x' to replace"},
        {"name: a\ncommand: b\nsetup: {start: c, per: experiment}\nfactors: {x: [1]}\n", "", NULL},
        {"name: a\ncommand: b\nsetup: {start: 'c {x}', per: experiment}\nfactors: {x: [1]}\n",
         ":3:", "cannot use a factor"},
        {"a: &a [*a]\n", "", ""},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct spec s;
        struct error err = {0};
        int r = parse(&s, cases[i].text, false, &err);
        if (!cases[i].words) {
            CHECK_INT(r, 0);
            spec_done(&s);
            continue;
        }
        if (r == 0) {
            test_fail(__FILE__, __LINE__, "accepted: %s", cases[i].text);
            spec_done(&s);
            continue;
        }
        CHECK_CONTAINS(err.message, cases[i].line);
        CHECK_CONTAINS(err.message, cases[i].words);
    }
}

TEST(numbers_are_found_in_text)
{
    struct error err = {0};
    double value = 0;
    regex_t regex;
    CHECK_INT(regcomp(&regex, "^rate: ([0-9.,e+-]+)", REG_EXTENDED | REG_NEWLINE), 0);
    CHECK_INT(extract_regex(&regex, "rate: 1\nxrate: 3\nrate: 2,500.5 MB\n", &value, &err), 0);
    CHECK_NEAR(value, 2500.5, 0); /* the last one */
    CHECK_INT(extract_regex(&regex, "nothing", &value, &err), -ENOENT);
    regfree(&regex);
    int r = extract_json("{\"a\": [1, {\"b\": 2.5}]}", "a.1.b", &value, &err);
    if (r == -ENOTSUP) {
        test_skip("built without jansson");
        return;
    }
    CHECK_INT(r, 0);
    CHECK_NEAR(value, 2.5, 0);
    CHECK_INT(
        extract_json("starting\n{\"a\": [1, {\"b\": \"7\"}]}\ndone", "$.a[1].b", &value, &err), 0);
    CHECK_NEAR(value, 7, 0);
    CHECK_INT(extract_json("{\"a\": 1}", "b", &value, &err), -ENOENT);
    CHECK_INT(extract_json("{\"a\": {}}", "a", &value, &err), -EINVAL);
    CHECK_INT(extract_json("no json", "a", &value, &err), -EINVAL);
}
